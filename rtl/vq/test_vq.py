# SPDX-License-Identifier: Apache-2.0
"""via_vq whole, against the driver of vq_model.py: any features, any chains, a personality that echoes and feeds, memory that takes its time.

Checked at every write of the device: it may write there; a chain that becomes visible has all its data in memory, the right length, and its
neighbours of one response with it. Drivers sleep until their interrupt: a lost one ends the test.

VIA_SEED=n repeats a run. VIA_LONG=n makes n times as many rounds of random traffic:
    VIA_LONG=50 pytest rtl/vq/test_vq.py
"""

import os
import random
import zlib
from collections import deque
from itertools import pairwise

import cocotb
import pytest
from cocotb.triggers import ClockCycles, Event, RisingEdge, SimTimeoutError, with_timeout
from vq_model import Chain, Features, Host, Queue

from via_tb import AxiMem, cycle, rng, run, stalls, start

SIZE = 1 << 22
RINGS, ARENA = 1 << 17, 1 << 20  # bytes of a queue's rings; where buffers begin
LONG = int(os.environ.get("VIA_LONG") or 1)


def response_to(request: bytes, wlen: int) -> bytes:
    """What the personality says to a request: now nothing, now all there is room for, now something."""
    key = zlib.crc32(request + wlen.to_bytes(4, "little"))
    r = random.Random(key)
    n = r.choice((0, wlen, wlen, r.randint(0, wlen), min(wlen, len(request))))
    return r.randbytes(n)


class Memory(AxiMem):
    """Hands every write to the host's model, runs of bytes at a time."""

    host: Host
    ring_bytes = 0  # written to rings, in whole double words
    ring_packets = 0  # that carry them: one has no hole and does not cross a boundary of 256 bytes
    _ring_end = 0  # where the last one may go on

    def _store(self, addr: int, data: int, strb: int) -> None:
        if self.fails(addr):
            return
        if addr < ARENA:
            self.ring_bytes += strb.bit_count() + 3 & ~3
            runs = (strb & ~(strb << 1)).bit_count()
            goes_on = strb & 1 and addr == self._ring_end and addr % 256
            self.ring_packets += runs - bool(goes_on)
            self._ring_end = addr + self._width if strb >> (self._width - 1) & 1 else 0
        raw = data.to_bytes(self._width, "little")
        at = 0
        while strb >> at:
            if not strb >> at & 1:
                at += 1
                continue
            end = at
            while strb >> end & 1:
                end += 1
            self.host.store(addr + at, raw[at:end])
            at = end


class Bench:
    def __init__(
        self,
        dut,
        feat: Features,
        waits: int,
        *,
        stall: float = 0.2,
        latency: int = 20,
        merge: bool = False,
        moderate: int = 0,
    ) -> None:
        self.dut, self.r, self.feat, self.waits, self.merge, self.stall = (
            dut,
            rng(),
            feat,
            waits,
            merge,
            stall,
        )
        self.r = random.Random(self.r.getrandbits(32))
        self.nq = len(dut.cfg)
        self.ahead = dut.at_hand.value == 1  # addresses go with the first beat, so data must not stop
        self.width = len(dut.rd_data) // 8
        self.bad: set[int] = set()  # pages that answer with an error
        self.mem = Memory(
            dut,
            "host",
            latency=latency,
            stall=stall,
            size=SIZE,
            fails=lambda a: a // 4096 in self.bad,
            r=self.r,
        )
        self.host = Host(self.mem.mem, self.r)
        self.mem.host = self.host
        self.host.arena(ARENA, SIZE)
        self.queues: list[Queue | None] = [None] * self.nq
        self.irqs: list[list[int]] = [[] for _ in range(self.nq)]
        self.irq_event = [Event() for _ in range(self.nq)]
        self.errors: list[tuple[int, int]] = []
        self.bell: deque[int] = deque()
        self.bells = 0
        self.fed: list[deque] = [deque() for _ in range(self.nq)]
        self.fed_at = [0] * self.nq
        self.requests: list[list] = [[] for _ in range(self.nq)]
        self.merged: deque[int] = deque()
        self.feed = True
        self.push: deque = deque()  # answers to give next
        self.frame = (1, 3000)
        self.quick = False  # respond with nothing, at once
        self.req_cycles: list[int] = []
        self.shown_cycles: list[int] = []
        self.rd_cycles: list[int] = []
        dut.feat.value, dut.wait_mask.value, dut.moderate.value = feat.bits, waits, moderate
        dut.look.value, dut.lacking.value = 0, 0
        for name in (
            "driver_ok",
            "queue_reset",
            "notify",
            "notify_valid",
            "irq_ready",
            "fail",
            "fail_queue",
            "req_ready",
            "rd_ready",
        ):
            getattr(dut, name).value = 0
        for name in (
            "rsp_queue",
            "rsp_merge",
            "rsp_len",
            "rsp_valid",
            "wr_data",
            "wr_keep",
            "wr_last",
            "wr_valid",
            "stat_addr",
            "stat_write",
        ):
            getattr(dut, name).value = 0
        for q in range(self.nq):
            dut.cfg[q].value = 0
        self.tasks = []

    async def begin(self, sizes: list[int]) -> None:
        await start(self.dut)
        for q, size in enumerate(sizes):
            self.enable(q, size)
        self.dut.driver_ok.value = 1
        self.tasks = [cocotb.start_soon(t) for t in (self._requests(), self._responses(), self._edge())]
        await RisingEdge(self.dut.clk_i)

    def enable(self, q: int, size: int) -> None:
        queue = Queue(self.host, q, RINGS * (q + 1), size, self.feat, self.verify)
        queue.settled = lambda: self.settled(q)
        self.queues[q] = queue
        self.dut.cfg[q].value = queue.config

    def end(self) -> None:
        self.mem.end()
        for task in self.tasks:
            task.cancel()

    # ------------------------------------------------------------ checks
    def verify(self, queue: Queue, chain: Chain, length: int) -> None:
        q = queue.index
        self.shown_cycles.append(cycle())
        if self.waits >> q & 1:
            assert self.fed[q], f"queue {q}: used without a response"
            data, merge = self.fed[q][0]
            want = data[self.fed_at[q] : self.fed_at[q] + chain.wlen]
            self.fed_at[q] += len(want)
            if self.fed_at[q] == len(data):
                self.fed[q].popleft()
                self.fed_at[q] = 0
            else:
                assert merge
        else:
            request = (self.host.gather(chain, False), chain.wlen)
            assert self.requests[q][chain.number] == request, (
                f"queue {q}: chain {chain.number}: wrong request {self.requests[q][chain.number]}"
            )
            want = b"" if self.quick else response_to(*request)
        assert length == len(want), f"queue {q}: chain {chain.number}: used length {length}, not {len(want)}"
        got = self.host.gather(chain, True)
        assert got[:length] == want, f"queue {q}: chain {chain.number}: wrong data"
        assert got[length:] == chain.before[length:], (
            f"queue {q}: chain {chain.number}: written behind its data"
        )

    def settled(self, q: int) -> None:
        assert self.fed_at[q] == 0, f"queue {q}: a part of a merged response is visible"

    # ------------------------------------------------------------ personality
    async def _requests(self) -> None:
        d, edge = self.dut, RisingEdge(self.dut.clk_i)
        self.asked: list[deque] = [deque() for _ in range(self.nq)]
        open_: deque = deque()
        req_stall, rd_stall = stalls(self.r, self.stall), stalls(self.r, self.stall)
        req_up = rd_up = False
        data = bytearray()

        def settle() -> None:
            while open_ and len(data) == open_[0][1]:
                q, _, wlen = open_.popleft()
                self.asked[q].append((bytes(data), wlen))
                self.requests[q].append((bytes(data), wlen))
                data.clear()

        while True:
            await edge
            if req_up and d.req_valid.value == 1:
                open_.append((int(d.req_queue.value), int(d.req_rlen.value), int(d.req_wlen.value)))
                self.req_cycles.append(cycle())
                assert not self.waits >> open_[-1][0] & 1
                settle()
            if rd_up and d.rd_valid.value == 1:
                assert open_, "data before its request"
                left = open_[0][1] - len(data)
                n = min(left, self.width)
                assert int(d.rd_keep.value) == (1 << n) - 1 and int(d.rd_last.value) == (n == left), (n, left)
                data += int(d.rd_data.value).to_bytes(self.width, "little")[:n]
                self.rd_cycles.append(cycle())
                settle()
            req_up, rd_up = not next(req_stall), bool(open_) and not next(rd_stall)
            d.req_ready.value, d.rd_ready.value = req_up, rd_up

    def _choose(self, allowed: bool) -> tuple[int, int, bytes] | None:
        """Queue, merge, data of the next response."""
        d, r = self.dut, self.r
        if self.push:
            return self.push.popleft()
        ready = [q for q in range(self.nq) if self.asked[q]]
        if allowed and self.feed:
            avail = int(d.avail.value)
            ready += [q for q in range(self.nq) if avail >> q & 1]
        if not ready:
            return None
        q = r.choice(ready)
        if not self.waits >> q & 1:
            request, wlen = self.asked[q].popleft()
            return q, 0, b"" if self.quick else response_to(request, wlen)
        room = int((d.room if self.merge else d.head_wlen)[q].value)
        n = min(r.randint(*self.frame), room)
        data = r.randbytes(n)
        self.fed[q].append((data, self.merge))
        return q, int(self.merge), data

    async def _responses(self) -> None:
        d, r, edge = self.dut, self.r, RisingEdge(self.dut.clk_i)
        rsp_stall, wr_stall = stalls(r, self.stall), stalls(r, 0.0 if self.ahead else self.stall)
        beats: deque[tuple[int, int, int]] = deque()
        response = None
        wait_merged = False
        held: bytes = b""
        wr_up = False
        fresh = True
        while True:
            await edge
            fresh = True
            if d.merged_valid.value == 1:
                assert wait_merged, "merged out of turn"
                wait_merged = False
                self.merged.append(int(d.merged.value))
                beats.extend(self._beats(held))
            if response and d.rsp_valid.value == 1 and d.rsp_ready.value == 1:
                _, merge, data = response
                if merge:
                    wait_merged, held = True, data
                else:
                    beats.extend(self._beats(data))
                response, fresh = None, False
                d.rsp_valid.value = 0
            if wr_up and d.wr_ready.value == 1:
                beats.popleft()
                wr_up = False
            if response is None and not wait_merged and not next(rsp_stall):
                response = self._choose(fresh)
                if response:
                    d.rsp_queue.value, d.rsp_merge.value, d.rsp_len.value = (
                        response[0],
                        response[1],
                        len(response[2]),
                    )
                    d.rsp_valid.value = 1
            if not wr_up:
                wr_up = bool(beats) and not next(wr_stall)
                if wr_up:
                    d.wr_data.value, d.wr_keep.value, d.wr_last.value = beats[0]
                d.wr_valid.value = wr_up

    def _beats(self, data: bytes):
        w = self.width
        for at in range(0, len(data), w):
            piece = data[at : at + w]
            # What is not kept is anything.
            yield (
                int.from_bytes(piece + self.r.randbytes(w - len(piece)), "little"),
                (1 << len(piece)) - 1,
                at + w >= len(data),
            )

    # ------------------------------------------------------------ doorbell, interrupts, errors
    async def _edge(self) -> None:
        d, edge = self.dut, RisingEdge(self.dut.clk_i)
        irq_stall = stalls(self.r, self.stall)
        irq_up = False
        while True:
            await edge
            if self.bell:
                d.notify.value, d.notify_valid.value = self.bell.popleft(), 1
                self.bells += 1
            else:
                d.notify_valid.value = 0
            if irq_up and d.irq_valid.value == 1:
                q = int(d.irq_queue.value)
                self.irqs[q].append(cycle())
                self.irq_event[q].set()
            if d.error.value == 1:
                self.errors.append((int(d.error_cause.value), int(d.error_queue.value)))
            irq_up = not next(irq_stall)
            d.irq_ready.value = irq_up

    # ------------------------------------------------------------ driver
    def chain(self, queue: Queue, most: int = 6, longest: int = 5000, length=None) -> Chain:
        """A random chain with its buffers, which hold random bytes."""
        r, host = self.r, self.host
        n = min(r.choice((1, 1, 2, 3, r.randint(1, most))), queue.size)
        reads = r.randint(0, n)
        if self.waits >> queue.index & 1:
            reads = 0 if n == 1 or r.random() < 0.8 else 1
        parts = []
        for i in range(n):
            size = length or r.choice((1, 4, 12, 64, r.randint(1, 200), r.randint(1, longest)))
            at = host.alloc(size, r.choice((1, 1, 2, 64, 4096)) if size <= 4096 else 1)
            parts.append((i >= reads, at, size))
        chain = Chain(parts)
        for _, at, size in parts:
            host.mem[at : at + size] = r.randbytes(size)
        chain.before = host.gather(chain, True)
        return chain

    async def add_all(self, queue: Queue, count: int) -> None:
        r, dut = self.r, self.dut
        while queue.made < count and queue.alive:
            for _ in range(r.randint(1, 8)):
                if queue.made == count or self.host.room < 12:
                    break
                chain = self.chain(queue)
                indirect = self.feat.indirect and r.random() < 0.5
                if not queue.fits(chain, indirect):
                    for _, at, _ in chain.parts:
                        self.host.free(at)
                    break
                queue.add(chain, indirect)
            queue.publish()
            self.kick(queue)
            await ClockCycles(dut.clk_i, r.choice((1, 2, 20, r.randint(1, 400))))

    def kick(self, queue: Queue) -> None:
        bell = queue.notification()
        if bell is not None:
            self.bell.append(bell)

    async def reap_all(self, queue: Queue, count: int) -> None:
        """Takes used chains back; sleeps until an interrupt, or looks now and then without one."""
        r, q, dut = self.r, queue.index, self.dut
        got = 0
        while True:
            while queue.reap():
                got += 1
                await ClockCycles(dut.clk_i, r.choice((1, 1, 2, 20)))
            if got == count:
                return
            event = self.irq_event[q]
            event.clear()
            sleep = r.random() < 0.7
            ahead = 0
            if self.feat.event_idx and len(queue.order) > 2 and r.random() < 0.5:
                some = list(queue.order)[: r.randint(1, len(queue.order) - 1)]
                ahead = sum(len(c.slots) for c in some) if self.feat.packed else len(some)
            queue.interrupts(sleep, ahead)
            if queue.shown:
                continue
            if sleep:
                try:
                    await with_timeout(event.wait(), 100, "us")
                except SimTimeoutError:
                    raise AssertionError(f"queue {q}: no interrupt; {self.state()}") from None
            else:
                await ClockCycles(dut.clk_i, r.randint(1, 300))

    def state(self) -> str:
        d = self.dut
        queues = [(q.made, len(q.order), len(q.shown), q.room) for q in self.queues]
        lines = [
            int(getattr(d, n).value)
            for n in ("still_o", "idle_o", "avail", "req_valid", "rsp_valid", "wr_valid")
        ]
        return f"made, with the device, shown, room: {queues}; still idle avail req rsp wr: {lines}; irqs {[len(i) for i in self.irqs]}; {self.errors}"

    async def quiet(self, limit: int = 3000) -> None:
        for _ in range(limit):
            if self.dut.idle_o.value == 1 and self.dut.still_o.value == 1:
                return
            await RisingEdge(self.dut.clk_i)
        raise AssertionError("does not come to rest")

    async def stat(self, word: int) -> int:
        self.dut.stat_addr.value = word
        await ClockCycles(self.dut.clk_i, 4)
        return int(self.dut.stat_rdata.value)


def any_features(r: random.Random) -> Features:
    return Features(*(r.random() < 0.5 for _ in range(5)))


@cocotb.test(timeout_time=20 * LONG, timeout_unit="ms")
async def random_traffic(dut):
    """Every round other features, queue sizes, latencies and chains."""
    outer = rng()
    for turn in range(6 * LONG):
        feat = any_features(outer)
        if turn < 4:
            feat = Features(
                *(getattr(feat, n) for n in ("event_idx", "indirect")),
                turn % 2 == 1,
                turn >= 2,
                feat.notif_data,
            )
        merge = outer.random() < 0.5
        waits = outer.choice((0b0101, 0b0001, 0b0110))
        b = Bench(
            dut,
            feat,
            waits,
            stall=outer.choice((0, 0.1, 0.4)),
            latency=outer.choice((2, 10, 60)),
            merge=merge,
            moderate=outer.choice((0, 0, 200)),
        )
        sizes = [
            outer.choice((3, 7, 16, 50, 256) if feat.packed else (4, 8, 16, 64, 256)) for _ in range(b.nq)
        ]
        dut._log.info("round %d: %s sizes %s waits %s merge %s", turn, feat, sizes, bin(waits), merge)
        await b.begin(sizes)
        count = 60
        tasks = []
        for queue in b.queues:
            tasks.append(cocotb.start_soon(b.add_all(queue, count)))
            tasks.append(cocotb.start_soon(b.reap_all(queue, count)))
        for task in tasks:
            await task
        await b.quiet()
        assert not b.errors, b.errors
        assert all(not f for f in b.fed)
        # Everything was answered, so a reset of the queues finds nothing.
        dut.queue_reset.value = (1 << b.nq) - 1
        await ClockCycles(dut.clk_i, 20)
        assert int(dut.queue_quiet.value) == (1 << b.nq) - 1
        b.end()


async def settle(b: Bench, q: int, count: int, limit: int = 30000) -> None:
    """Waits until `count` chains of the queue are used, takes them back."""
    got = 0
    for _ in range(limit):
        while b.queues[q].reap():
            got += 1
        if got == count:
            return
        await RisingEdge(b.dut.clk_i)
    raise AssertionError(f"{got} of {count} chains used; {b.state()}")


def plain(b: Bench, write: bool, length: int, align: int = 64) -> Chain:
    at = b.host.alloc(length, align)
    chain = Chain([(write, at, length)])
    b.host.mem[at : at + length] = b.r.randbytes(length)
    chain.before = b.host.gather(chain, True)
    return chain


RINGS_OF = {
    "split": Features(),
    "split, event index": Features(event_idx=True),
    "split, in order": Features(in_order=True),
    "split, indirect": Features(indirect=True),
    "packed": Features(packed=True),
    "packed, in order": Features(packed=True, in_order=True),
}


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def small_rate(dut):
    """64-byte packets, all there at once: cycles a packet until it is used, far from memory."""
    for name, feat in RINGS_OF.items():
        for write in (False, True):
            b = Bench(dut, feat, 0b0001, stall=0, latency=120)
            b.quick, b.frame = True, (64, 64)
            await b.begin([256] * b.nq)
            queue = b.queues[int(not write)]
            queue.interrupts(False)
            n = 100
            for _ in range(n):
                queue.add(plain(b, write, 64), feat.indirect)
            queue.publish()
            b.kick(queue)
            await settle(b, queue.index, n)
            cycles = b.shown_cycles
            rate = (cycles[-1] - cycles[20]) / (n - 21)
            dut._log.info("%s, %s: %.2f cycles a packet", name, "receive" if write else "transmit", rate)
            # A batch becomes visible at once, so the measure is coarse.
            assert rate <= 5, (name, write, rate)
            b.end()


# Ring: its reads before a frame's payload is here, and the engine's own cycles at most: from the notification to the frame's first beat
# on the stream, and from a response to its used entry in memory and to the interrupt, which waits for a read besides.
LONE = {
    "split": (Features(), 4, (15, 10, 13)),
    "split, notification data": (Features(notif_data=True), 3, (12, 10, 13)),
    "split, in order, notification data": (Features(in_order=True, notif_data=True), 2, (10, 10, 13)),
    "packed, notification data": (Features(packed=True, notif_data=True), 2, (10, 9, 12)),
}


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def lone_chain(dut):
    """One frame out, one back, nothing else: cycles that the engine adds to what it reads and writes."""
    far = 100
    for name, (feat, reads, limits) in LONE.items():
        b = Bench(dut, feat, 0b0001, stall=0, latency=far)
        b.feed = False
        b.quick = True
        await b.begin([64] * b.nq)
        receive, send = b.queues[0], b.queues[1]
        send.interrupts(False)
        receive.interrupts(True)
        for _ in range(5):
            receive.add(plain(b, True, 4 * b.width, 4 * b.width))
        receive.publish()
        b.kick(receive)
        await ClockCycles(dut.clk_i, 10 * far)
        took = []
        for _ in range(3):
            send.add(plain(b, False, 64))
            send.publish()
            begun = cycle()
            b.kick(send)
            await settle(b, 1, 1)
            out = b.rd_cycles[-1] - begun - reads * far
            await ClockCycles(dut.clk_i, 5 * far)
            data = b.r.randbytes(64)
            b.fed[0].append((data, False))
            b.push.append((0, 0, data))
            begun = cycle()
            await settle(b, 0, 1)
            shown = b.shown_cycles[-1] - begun
            await ClockCycles(dut.clk_i, 5 * far)
            took.append((out, shown, b.irqs[0][-1] - begun - far))
        dut._log.info("%s: %s cycles of the engine's own", name, took)
        assert len(b.irqs[0]) == 3
        # A whole burst: its beats come one a cycle, and go on as they come or behind the last one.
        data = b.r.randbytes(4 * b.width)
        b.fed[0].append((data, False))
        b.push.append((0, 0, data))
        begun = cycle()
        await settle(b, 0, 1)
        shown = b.shown_cycles[-1] - begun
        dut._log.info("%s: %d cycles for four beats", name, shown)
        assert shown <= limits[1] + (1 if b.ahead else 4), (name, shown)
        # Of three, as an entry of the used ring may lie across two lines.
        best = tuple(min(one) for one in zip(*took, strict=True))
        assert all(own <= most for own, most in zip(best, limits, strict=True)), (name, took, limits)
        b.end()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def quick_chains_share_what_shows_them(dut):
    """Answers a few cycles apart become visible in batches; one that comes alone is not held back."""
    for name in ("split", "packed"):
        b = Bench(dut, RINGS_OF[name], 0b0001, stall=0, latency=60)
        b.feed = False
        await b.begin([64] * b.nq)
        queue = b.queues[0]
        queue.interrupts(False)
        for _ in range(44):
            queue.add(plain(b, True, 64))
        queue.publish()
        b.kick(queue)
        await ClockCycles(dut.clk_i, 500)

        def response(b: Bench = b) -> int:
            data = b.r.randbytes(64)
            b.fed[0].append((data, False))
            b.push.append((0, 0, data))
            return cycle()

        async def burst(b: Bench = b, response=response) -> None:
            for _ in range(33):
                response()
                await ClockCycles(b.dut.clk_i, 6)

        alone = []
        for _ in range(6):
            await ClockCycles(dut.clk_i, 64)
            given = response()
            await settle(b, 0, 1)
            alone.append(b.shown_cycles[-1] - given)
        before = await b.stat(18)
        cocotb.start_soon(burst())
        await settle(b, 0, 33)
        shown = await b.stat(18) - before
        dut._log.info("%s: %s cycles alone, %d writes for 33 chains", name, alone, shown)
        assert max(alone) <= 16, (name, alone)
        assert shown <= 10, (name, shown)
        b.end()


PACKET = 24  # bytes of a packet on the link besides its payload; those of a request to read


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def used_chains_take_few_bytes_under_load(dut):
    """64-byte frames in both directions as fast as they go: what used entries, indices and reads of suppression fields take of the link, a frame. (Split rings without IN_ORDER
    have heads in any order here, so descriptors come one by one and in bursts.)"""
    worst = []
    for name, most in (
        ("split", 40),
        ("split, event index", 40),
        ("split, in order", 9),
        ("packed", 44),
        ("packed, in order", 9),
    ):
        b = Bench(dut, RINGS_OF[name], 0b0001, stall=0, latency=120)
        b.quick, b.frame = True, (64, 64)
        b.host.arena(ARENA, SIZE, 4096)
        await b.begin([256] * b.nq)
        n = 256
        for write in (True, False):
            queue = b.queues[int(not write)]
            queue.interrupts(False)
            for _ in range(n):
                queue.add(plain(b, write, 64))
            queue.publish()
            b.kick(queue)
        for _ in range(4000):
            if all(len(b.queues[q].shown) == n for q in (0, 1)):
                break
            await RisingEdge(dut.clk_i)
        await b.quiet()
        bursts, shown, fields = [await b.stat(word) for word in (17, 18, 15)]
        each = (b.mem.ring_bytes + PACKET * (b.mem.ring_packets + fields)) / n
        rate = (b.shown_cycles[-1] - b.shown_cycles[100]) / (2 * n - 101) * 2
        dut._log.info(
            "%s: %.1f bytes a frame there and back (%d bursts of entries, %d batches, %d fields), %.1f cycles",
            name,
            each,
            bursts,
            shown,
            fields,
            rate,
        )
        worst.append((name, each, most))
        b.end()
    assert all(each <= most for _, each, most in worst), worst


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def large_rate(dut):
    """Large buffers at odd addresses, memory 250 cycles away: bytes a cycle."""
    for write in (False, True):
        b = Bench(dut, Features(), 0b0001, stall=0, latency=250)
        b.quick, b.frame = not write, (15000, 15000)
        await b.begin([256] * b.nq)
        queue = b.queues[int(not write)]
        queue.interrupts(False)
        n = 14
        for _ in range(n):
            queue.add(plain(b, write, 15000, 1))
        queue.publish()
        b.kick(queue)
        await settle(b, queue.index, n)
        beats = b.mem.w_beats if write else b.rd_cycles
        middle = beats[len(beats) // 4 : len(beats) * 3 // 4]
        rate = 15000 / 235 * len(middle) / (middle[-1] - middle[0] + 1)
        dut._log.info("%s: %.1f bytes a cycle", "receive" if write else "transmit", rate)
        assert rate >= 54, rate
        b.end()


async def _interrupts(dut, feat: Features) -> None:
    b = Bench(dut, feat, 0, stall=0, latency=10, moderate=400)
    b.quick = True
    await b.begin([16] * b.nq)
    queue = b.queues[2]

    async def one() -> None:
        queue.add(plain(b, False, 100))
        queue.publish()
        b.kick(queue)
        await settle(b, 2, 1)

    queue.interrupts(False)
    for _ in range(5 if feat.event_idx else 20):
        await one()
    await b.quiet()
    assert not b.irqs[2]
    for _ in range(10):
        queue.interrupts(True)
        await one()
        await ClockCycles(dut.clk_i, 60)  # until the device has looked whether to interrupt
    await b.quiet()
    times = b.irqs[2]
    assert len(times) >= 2, (feat, b.state())
    assert all(y - x >= 400 for x, y in pairwise(times)), times
    if feat.event_idx:
        await ClockCycles(dut.clk_i, 500)
        queue.interrupts(True, 3)
        before = len(times)
        for i in range(6):
            await one()
            await b.quiet()
            assert len(times) == before + (i >= 3), (i, times)
    assert not b.errors
    b.end()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def interrupts(dut):
    """None if not wanted; one, not more often than allowed and none lost, if wanted; a lone descriptor's in packed rings."""
    for event_idx in (False, True):
        for packed in (False, True):
            await _interrupts(dut, Features(event_idx=event_idx, packed=packed))


async def _refused(dut, kind: str) -> None:
    b = Bench(dut, Features(event_idx=True), 0b0001, stall=0.1, latency=5)
    b.quick = True
    await b.begin([16] * b.nq)
    q = 0 if kind == "write" else 1
    queue = b.queues[q]
    chain = plain(b, kind == "write", 9000)
    bad = chain.parts[0][1] // 4096 + 1
    if kind in ("payload", "write"):
        b.bad.add(bad)
    b.frame = (9000, 9000)
    cause = {"payload": 9, "write": 8, "used": 8, "field": 7, "request": 10}[kind]
    if kind == "used":
        # The used ring on a page of its own, which cannot be written.
        queue.device = ARENA - 4096
        queue.host.mem[ARENA - 4096 : ARENA] = bytes(4096)
        b.dut.cfg[q].value = queue.config
    elif kind == "field":
        queue.driver = ARENA - 4096 - 4 - 2 * queue.size
        queue.host.mem[ARENA - 8192 : ARENA] = bytes(8192)
        b.dut.cfg[q].value = queue.config
    await ClockCycles(dut.clk_i, 3)
    queue.add(chain)
    queue.publish()
    if kind == "used":
        b.bad.add(ARENA // 4096 - 1)
    if kind == "payload":
        # What could not be read is zero.
        at = chain.parts[0][1]
        real = b.host.gather
        want = bytearray(real(chain, False))
        start_ = bad * 4096 - at
        want[start_ : start_ + 4096] = bytes(len(want[start_ : start_ + 4096]))
        b.host.gather = lambda c, w: bytes(want) if c is chain and not w else real(c, w)
    if kind == "write":
        b.verify = None
        queue.verify = lambda *a: None
    if kind == "field":
        while not queue.shown:
            if b.bells == 0:
                b.kick(queue)
            b.bad.clear()
            await RisingEdge(dut.clk_i)
            if b.mem.w_beats:
                break
        b.bad.add(ARENA // 4096 - 1)
    else:
        b.kick(queue)
    if kind == "request":
        dut.fail.value, dut.fail_queue.value = 1, q
        await RisingEdge(dut.clk_i)
        dut.fail.value = 0
    for _ in range(3000):
        if b.errors:
            break
        await RisingEdge(dut.clk_i)
    assert (cause, q) in b.errors, (kind, b.errors)
    await b.quiet()
    assert await b.stat(1) & 0xF0F == cause | q << 8
    other = b.queues[3]
    other.interrupts(True)
    other.add(plain(b, False, 500))
    other.publish()
    b.kick(other)
    await settle(b, 3, 1)
    await b.quiet()
    assert b.irqs[3]
    b.end()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def refused(dut):
    """Host memory refuses: the error is told, with its queue; requests, answers and other queues go on."""
    for kind in ("payload", "write", "used", "field", "request"):
        await _refused(dut, kind)


@cocotb.test(timeout_time=5 * LONG, timeout_unit="ms")
async def queue_reset(dut):
    """A queue is reset at any moment: once it is quiet the device leaves its memory alone, and it starts anew; other queues do not notice."""
    r = rng()
    for turn in range(4 * LONG):
        feat = any_features(r)
        b = Bench(dut, feat, 0b0101, stall=0.2, latency=15, merge=turn % 2 == 1)
        await b.begin([16, 32, 16, 64])
        others = [q for q in (2, 3)]
        tasks = []
        for q in others:
            tasks.append(cocotb.start_soon(b.add_all(b.queues[q], 30)))
            tasks.append(cocotb.start_soon(b.reap_all(b.queues[q], 30)))
        for _ in range(3):
            victim = r.choice((0, 1))
            queue = b.queues[victim]
            adding = cocotb.start_soon(b.add_all(queue, 1000))
            taking = cocotb.start_soon(b.reap_all(queue, 1000))
            await ClockCycles(dut.clk_i, r.randint(1, 500))
            adding.cancel()
            taking.cancel()
            b.bell = deque(x for x in b.bell if x >> 16 != victim)
            dut.queue_reset.value = 1 << victim
            await ClockCycles(dut.clk_i, 2)
            for _ in range(5000):
                if int(dut.queue_quiet.value) >> victim & 1:
                    break
                await RisingEdge(dut.clk_i)
            else:
                raise AssertionError(
                    f"queue {victim} does not come to rest; {b.state()} {[str(getattr(dut.u_dut, n).value) for n in ('fetch_quiet', 'gather_quiet', 'scatter_quiet', 'used_quiet', 'asked_q')]}"
                )
            dut.cfg[victim].value = 0
            queue.drop()
            await ClockCycles(dut.clk_i, r.randint(2, 50))
            b.fed[victim].clear()
            b.fed_at[victim] = 0
            b.requests[victim].clear()
            dut.queue_reset.value = 0
            b.enable(victim, queue.size)
            await ClockCycles(dut.clk_i, 2)
        queue = b.queues[victim]
        tasks.append(cocotb.start_soon(b.add_all(queue, 20)))
        tasks.append(cocotb.start_soon(b.reap_all(queue, 20)))
        for task in tasks:
            await task
        await b.quiet()
        assert not b.errors
        b.end()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def too_long(dut):
    """A device that answers more than a chain holds: what does not fit is dropped, the next response is whole."""
    for length in (65, 128, 200, 1000):
        b = Bench(dut, Features(), 0b0001, stall=0.2, latency=5)
        await b.begin([16] * b.nq)
        queue = b.queues[0]
        b.feed = False
        sizes = (64, 300, 1)
        for size in sizes:
            queue.add(plain(b, True, size, 1))
        queue.publish()
        b.kick(queue)
        for size in sizes:
            while not int(dut.avail.value) & 1:
                await RisingEdge(dut.clk_i)
            data = b.r.randbytes(length if size != 300 else 300)
            b.fed[0].append((data[:size], False))
            b.push.append((0, 0, data))
            while b.push or dut.rsp_valid.value == 1:
                await RisingEdge(dut.clk_i)
        await settle(b, 0, len(sizes))
        await b.quiet()
        b.end()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def statistics(dut):
    """Counters count, and the trace of a notification has its stages in order."""
    b = Bench(dut, Features(), 0b0000, stall=0, latency=30)
    b.quick = True
    await b.begin([16] * b.nq)
    queue = b.queues[1]
    await b.quiet()
    for _ in range(3):
        queue.add(plain(b, False, 200, 256))  # in one page: one read
        queue.publish()
        b.kick(queue)
        await settle(b, 1, 1)
        await b.quiet()
    words = {
        n: await b.stat(w)
        for n, w in (("rd", 2), ("wr", 4), ("bells", 6), ("requests", 7), ("chains", 8), ("irqs", 9))
    }
    assert words == {"rd": 600, "wr": 0, "bells": 3, "requests": 3, "chains": 3, "irqs": 3}, words
    reads = [await b.stat(w) for w in range(10, 16)]
    assert sum(reads) == len(b.mem.reads), (reads, len(b.mem.reads))
    assert reads[4] == 3 and reads[5] == 3, reads
    writes = [await b.stat(w) for w in range(16, 20)]
    assert writes == [0, 3 if (queue.device + 4) % 64 <= 40 else writes[1], 3, 0] and sum(writes) == len(
        b.mem.writes
    ), writes
    stamps = [await b.stat(32 + 2 * i) for i in range(6)]
    assert stamps == sorted(stamps) and await b.stat(44) == 0x1F, stamps
    spans = []
    for stage in range(5):
        count, low, high, total = [await b.stat(48 + 8 * stage + i) for i in (0, 1, 2, 4)]
        assert count == 3 and 3 * low <= total <= 3 * high
        spans.append(low)
    assert stamps[5] - stamps[0] >= sum(spans)
    # The suppression field is read right behind what shows the chain: between its B and the interrupt there is no second way to memory.
    assert spans[4] < 15, spans
    dut._log.info("stages: %s", spans)
    dut.stat_addr.value, dut.stat_write.value = 0, 1
    await RisingEdge(dut.clk_i)
    dut.stat_write.value = 0
    assert [await b.stat(w) for w in range(2, 20)] == [0] * 18
    b.end()


def rings_read(b: Bench, q: int) -> int:
    """Reads of the index, or of a packed ring, so far."""
    queue = b.queues[q]
    first, last = (
        (queue.desc, queue.desc + 16 * queue.size) if b.feat.packed else (queue.driver, queue.driver + 4)
    )
    return sum(first & ~63 <= addr < last for addr, *_ in b.mem.reads)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def buffers_put_back_without_a_notification(dut):
    """Found while data waits for them, at a bounded rate, whatever the rings; the queue rests after so many looks, and looks again when woken."""
    period, count = 120, 4
    r = rng()
    for bits in range(8):
        packed, in_order, notif_data = (bool(bits >> i & 1) for i in range(3))
        feat = Features(r.random() < 0.5, r.random() < 0.5, packed, in_order, notif_data)
        b = Bench(dut, feat, 0b0001, stall=0.1, latency=20)
        dut.look.value = count << 16 | period
        await b.begin([16] * b.nq)
        queue = b.queues[0]

        def put(n: int) -> int:
            for i in range(n):
                chain = b.chain(queue, longest=100)  # noqa: B023
                indirect = b.feat.indirect and i % 2 == 1  # noqa: B023
                if not queue.fits(chain, indirect):  # noqa: B023
                    return i
                queue.add(chain, indirect)  # noqa: B023
            return n

        # The driver tells of nothing, then of some and keeps quiet about more, also while looks are under way.
        lacking = cocotb.start_soon(_lacking(b))
        for told in (False, True, False, True, False, False):
            n = put(b.r.randint(1, 8))
            queue.publish()
            if told:
                if b.r.random() < 0.5:
                    await ClockCycles(dut.clk_i, b.r.randint(1, 2 * period))
                b.kick(queue)
            await settle(b, 0, n)
        # Nothing more: so many looks, and rest.
        await b.quiet((count + 4) * (period + 100))
        before = rings_read(b, 0)
        await ClockCycles(dut.clk_i, 4 * period)
        assert rings_read(b, 0) == before and dut.still_o.value == 1
        n = put(2)
        queue.publish()
        await ClockCycles(dut.clk_i, 3 * period)
        assert rings_read(b, 0) == before, "it rests"
        # Any notification wakes it.
        b.bell.append(1 << 16 | (1 << 15 if feat.packed else 0) if feat.notif_data else 1 << 16)
        await settle(b, 0, n)
        await b.quiet((count + 4) * (period + 100))
        begun, looked = cycle(), rings_read(b, 0)
        b.bell.append(1 << 16 | (1 << 15 if feat.packed else 0) if feat.notif_data else 1 << 16)
        await ClockCycles(dut.clk_i, 20)
        await b.quiet((count + 4) * (period + 100))
        assert rings_read(b, 0) - looked <= 1 + (cycle() - begun) // period
        # Switched off: never.
        dut.look.value = count << 16
        put(1)
        queue.publish()
        b.bell.append(1 << 16 | (1 << 15 if feat.packed else 0) if feat.notif_data else 1 << 16)
        await ClockCycles(dut.clk_i, 4 * period)
        assert len(queue.order) == 1 and not queue.shown and not b.errors
        lacking.cancel()
        await b.quiet()
        b.end()


async def _lacking(b: Bench) -> None:
    """The personality always has data, and says so when there is no buffer."""
    while True:
        b.dut.lacking.value = 0b1110 | int(b.dut.avail.value) & 1 ^ 1
        await RisingEdge(b.dut.clk_i)


@pytest.mark.parametrize("at_hand", [pytest.param(0, marks=pytest.mark.long), 1])
@pytest.mark.parametrize("num_q", [4])
def test_via_vq(num_q, at_hand):
    run(
        "via_vq_tb",
        __file__,
        parameters={"NumQ": num_q, "AtHand": at_hand},
        sources=["rtl/virtio/via_virtio_pkg.sv"],
        inside=["via_vq"],
    )
