# SPDX-License-Identifier: Apache-2.0
"""The other sides of a personality, for its tests: the queue engine and the user side, as via_vdev_select_tb has them.

b = Bench(dut, stall=0.2)
await b.begin(features=..., ctrl=Ctrl(up=1, kind=BOARD))
chain = b.send(queue, data, wlen)      # a request; chain.response is what the device wrote, None until answered
buffer = b.offer(queue, wlen)          # a chain of a waiting queue
b.rx(frame, ident); b.tx               # the user side
"""

from collections import deque
from dataclasses import dataclass, field

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from via_tb import AxiMem, cycle, rng, stalls, start, until

NONE, BOARD, SLOT = 0, 1, 2


@dataclass
class Ctrl:
    """fn_ctrl_t."""

    reach: int = 0
    up: int = 1
    kind: int = BOARD
    slot: int = 0
    stream: int = 0
    mac: bytes = bytes.fromhex("52540012ab34")
    base: int = 0
    store: int = 0
    sectors: int = 0
    read_only: int = 0
    moderate: int = 0
    header: int = 0
    flush_limit: int = 0
    flush_failed: int = 0
    flush_count: int = 0
    rows: int = 25
    cols: int = 80
    look_count: int = 0
    look_period: int = 1024
    offer: int = 2**64 - 1

    def drive(self, port) -> None:
        """Set `port`, an input of that type."""
        v, total = 0, 0
        mac = int.from_bytes(self.mac, "little")
        for value, width in (
            (self.reach, 16),
            (self.up, 1),
            (self.kind, 2),
            (self.slot, 4),
            (self.stream, 2),
            (mac, 48),
            (self.base, 48),
            (self.store, 4),
            (self.sectors, 40),
            (self.read_only, 1),
            (self.moderate, 16),
            (self.header, 1),
            (self.flush_limit, 16),
            (self.flush_failed, 1),
            (self.flush_count, 16),
            (self.rows, 16),
            (self.cols, 16),
            (self.look_count, 16),
            (self.look_period, 16),
            (self.offer, 64),
        ):
            assert 0 <= value < 1 << width
            v = v << width | value
            total += width
        assert total == len(port), f"fn_ctrl_t has {len(port)} bits, the fields here {total}"
        port.value = v


@dataclass
class Chain:
    queue: int
    data: bytes = b""
    wlen: int = 0
    response: bytes | None = None
    done: int = 0  # cycle of the last byte of the response
    parts: list["Chain"] = field(default_factory=list)


class Bench:
    """`stall` is the share of cycles in which each channel pauses. The engine checks what a device must keep."""

    def __init__(self, dut, stall: float = 0.0, width: int = 64, **mem) -> None:
        self.dut, self.r, self.width = dut, rng(), width
        self._stall = {k: stalls(self.r, stall) for k in ("req", "rd", "rsp", "wr", "tx", "rx")}
        self.blocked: set[str] = set()  # channels that pause until taken out
        self.mem = AxiMem(dut.u_mem, "axi", stall=stall, r=self.r, **mem) if mem else None
        self.queues = len(dut.avail)
        self.reqs: deque[Chain] = deque()
        self.rd: deque[tuple[int, int, int]] = deque()
        self.open: list[deque[Chain]] = [deque() for _ in range(self.queues)]  # requests not answered
        self.ready: list[deque[Chain]] = [deque() for _ in range(self.queues)]  # buffers not answered
        self.fails: list[int] = []
        self.changes = 0
        self.rx_beats: deque[tuple[int, int, int, int]] = deque()
        self.tx: list[tuple[int, bytes]] = []  # messages that left: id, bytes
        self.tx_at: list[int] = []  # cycle of their last beats
        self.tx_beats: list[int] = []
        self.wr_beats: list[int] = []
        self.rx_at: list[int] = []  # cycle of each beat taken
        self.responses: list[Chain] = []
        self.app = None  # called with each message that leaves: what comes back
        d = dut
        for s in (
            "features",
            "driver_ok",
            "ctrl",
            "flush_done",
            "flush_failed",
            "req_valid",
            "rd_valid",
            "rsp_ready",
            "merged_valid",
            "wr_ready",
        ):
            getattr(d, s).value = 0
        for s in (
            "avail",
            "head_wlen",
            "room",
            "busy",
            "dev_addr",
            "dev_write",
            "dev_strb",
            "dev_wdata",
            "tx_ready",
            "rx_valid",
        ):
            getattr(d, s).value = 0
        for s in ("req", "rd", "merged", "rx"):
            getattr(d, s).value = 0
        d.in_use.value = (1 << self.queues) - 1

    async def begin(self, features: int = 0, ctrl: Ctrl | None = None) -> None:
        self.dut.features.value = features
        self.set(ctrl or Ctrl())
        await start(self.dut)
        self.dut.driver_ok.value = 1
        self._task = cocotb.start_soon(self._run())
        await RisingEdge(self.dut.clk_i)

    def end(self) -> None:
        """Another may take its place."""
        self._task.cancel()
        if self.mem:
            self.mem.end()

    def set(self, ctrl: Ctrl) -> None:
        self.ctrl = ctrl
        ctrl.drive(self.dut.ctrl)

    # ------------------------------------------------------------ the driver
    def beats(self, data: bytes):
        w = self.width
        for at in range(0, len(data), w):
            part = data[at : at + w]
            yield int.from_bytes(part, "little"), (1 << len(part)) - 1, int(at + w >= len(data))

    def send(self, queue: int, data: bytes = b"", wlen: int = 0) -> Chain:
        c = Chain(queue, data, wlen)
        self.reqs.append(c)
        self.open[queue].append(c)
        self.rd.extend(self.beats(data))
        return c

    def offer(self, queue: int, wlen: int) -> Chain:
        c = Chain(queue, b"", wlen)
        self.ready[queue].append(c)
        return c

    def rx(self, data: bytes, ident: int = 0, last: bool = True) -> None:
        for word, keep, end in self.beats(data):
            self.rx_beats.append((word, keep, end & last, ident))

    async def done(self, *chains: Chain, limit: int = 4000) -> None:
        await until(self.dut, lambda: all(c.response is not None for c in chains), limit, "responses")

    async def config(self, addr: int) -> int:
        self.dut.dev_addr.value = addr
        await RisingEdge(self.dut.clk_i)
        await ReadOnly()
        value = int(self.dut.dev_rdata.value)
        await RisingEdge(self.dut.clk_i)
        return value

    async def config_bytes(self, addr: int, n: int) -> bytes:
        first = addr & ~3
        raw = b"".join([(await self.config(a)).to_bytes(4, "little") for a in range(first, addr + n, 4)])
        return raw[addr - first : addr - first + n]

    # ------------------------------------------------------------ cycle by cycle
    async def _run(self) -> None:
        d = self.dut
        w = self.width
        edge = RisingEdge(d.clk_i)
        req_up = rd_up = rx_up = rsp_up = wr_up = tx_up = False
        pending: deque[tuple[Chain, int, list[Chain]]] = (
            deque()
        )  # answers taken: chain, length, merged chains
        got = bytearray()
        tx_now = bytearray()
        merge_due: deque[tuple[int, int]] = deque()  # queue, buffers
        while True:
            await edge
            now = cycle()
            if int(d.fail.value):
                q = int(d.fail_queue.value)
                self.fails.append(q)
            self.changes += int(d.config_change.value)
            # Requests and their bytes.
            if req_up and d.req_ready.value == 1:
                self.reqs.popleft()
                req_up = False
            if not req_up and self.reqs and not self._pause("req"):
                c = self.reqs[0]
                d.req.value = c.queue << 64 | min(len(c.data), 2**32 - 1) << 32 | c.wlen
                req_up = True
            d.req_valid.value = req_up
            if rd_up and d.rd_ready.value == 1:
                self.rd.popleft()
                rd_up = False
            if not rd_up and self.rd and not self._pause("rd"):
                word, keep, last = self.rd[0]
                # Bytes outside of `keep` are undefined.
                word |= (
                    (self.r.getrandbits(8 * w) >> 8 * keep.bit_length() << 8 * keep.bit_length())
                    if last
                    else 0
                )
                d.rd.value = (last << w | keep) << 8 * w | word
                rd_up = True
            d.rd_valid.value = rd_up
            # Answers.
            d.merged_valid.value = 0
            if merge_due:
                d.merged.value = merge_due.popleft()[1]
                d.merged_valid.value = 1
            if rsp_up and d.rsp_valid.value == 1:
                v = int(d.rsp.value)
                queue, merge, length = v >> 33, v >> 32 & 1, v & 0xFFFFFFFF
                parts: list[Chain] = []
                if self.ready[queue]:
                    assert not self.open[queue]
                    c = self.ready[queue].popleft()
                    left = length - c.wlen
                    while merge and left > 0:
                        assert self.ready[queue], "merged response larger than what is there"
                        parts.append(self.ready[queue].popleft())
                        left -= parts[-1].wlen
                    if merge:
                        merge_due.append((queue, 1 + len(parts)))
                else:
                    assert self.open[queue], f"response to queue {queue} without a chain"
                    c = self.open[queue].popleft()
                total = c.wlen + sum(p.wlen for p in parts)
                assert length <= total, f"queue {queue}: {length} bytes into {total}"
                if length == 0:
                    c.response, c.done = b"", now
                    self.responses.append(c)
                else:
                    pending.append((c, length, parts))
            rsp_up = not self._pause("rsp") and len(pending) < 3
            d.rsp_ready.value = rsp_up
            if wr_up and d.wr_valid.value == 1:
                v = int(d.wr.value)
                data, keep, last = v & (1 << 8 * w) - 1, v >> 8 * w & (1 << w) - 1, v >> 9 * w
                assert pending, "bytes without a response"
                c, length, parts = pending[0]
                n = keep.bit_count()
                assert keep == (1 << n) - 1 and n, "keep is no run"
                assert last or n == w, "a beat without last is not full"
                self.wr_beats.append(now)
                got += data.to_bytes(w, "little")[:n]
                assert len(got) <= length and (len(got) == length) == bool(last), (
                    f"queue {c.queue}: {len(got)} of {length} bytes, last {last}"
                )
                if last:
                    pending.popleft()
                    c.response, c.done, c.parts = bytes(got), now, parts
                    got.clear()
                    self.responses.append(c)
            wr_up = bool(pending) and not merge_due and not self._pause("wr")
            d.wr_ready.value = wr_up
            avail = room = wlen = busy = 0
            for q, chains in enumerate(self.ready):
                if chains:
                    avail |= 1 << q
                    wlen |= chains[0].wlen << 32 * q
                    room |= sum(c.wlen for c in chains) << 32 * q
            for q, _ in merge_due:  # a response takes chains of it: what is told of its room does not count
                busy |= 1 << q
                room |= 0xFFFFFFFF << 32 * q
            d.avail.value, d.room.value, d.head_wlen.value = avail, room, wlen
            d.busy.value = busy
            # The user side.
            if tx_up and d.tx_valid.value == 1:
                v = int(d.tx.value)
                data, keep, last = v & (1 << 8 * w) - 1, v >> 8 * w & (1 << w) - 1, v >> 9 * w & 1
                n = keep.bit_count()
                assert keep == (1 << n) - 1 and (last or n == w) and n, "beat against the stream contract"
                tx_now += data.to_bytes(w, "little")[:n]
                self.tx_beats.append(now)
                if last:
                    self.tx.append((v >> 9 * w + 1, bytes(tx_now)))
                    self.tx_at.append(now)
                    if self.app:
                        self.rx(self.app(bytes(tx_now)), v >> 9 * w + 1)
                    tx_now.clear()
            tx_up = not self._pause("tx")
            d.tx_ready.value = tx_up
            if rx_up and d.rx_ready.value == 1:
                self.rx_beats.popleft()
                self.rx_at.append(now)
                rx_up = False
            if not rx_up and self.rx_beats and not self._pause("rx"):
                word, keep, last, ident = self.rx_beats[0]
                d.rx.value = ((ident << 1 | last) << w | keep) << 8 * w | word
                rx_up = True
            d.rx_valid.value = rx_up

    def _pause(self, name: str) -> bool:
        return name in self.blocked or next(self._stall[name])
