# SPDX-License-Identifier: Apache-2.0
"""via_slot_port: an app at work, a host that pages for it, and every way in which the slot is cut off."""

from collections import deque

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from via_tb import AxiMem, AxiRaw, rng, run, stalls, start, until

RUN, QUIESCE, RESET, ISOLATE = 1, 2, 4, 8
H2C, MAP, UNMAP, DENY, SCAN, MOVE_IN, MOVE_OUT = 2, 0x10, 0x11, 0x12, 0x13, 0x20, 0x21
OK, ABORTED, FAULT = 0, 6, 7
MISS, PERM, BOUNDS, BAD_BURST, STREAM, REG_TIMEOUT, RING = 1, 2, 3, 0x12, 0x14, 0x16, 0x17
IRQ, FLUSH = 0x20, 0x21
EOP, HUGE, IN_TABLE = 2, 4, 8
ERR = 1 << 62
PAGE = 4096
SIZE = 1 << 18
WIDTH = 16
PAGES = SIZE // PAGE
TABLE = 1 << 20  # bytes of a page table with 2^17 entries


def check_bits(body: int) -> int:
    """CRC-8 of the upper 48 bits of an entry, bit by bit from the top."""
    crc = 0
    for i in reversed(range(48)):
        crc = (crc << 1 & 0xFF) ^ (7 if crc >> 7 ^ body >> i & 1 else 0)
    return crc


class Host:
    """Sends commands, keeps completions by tag, and answers misses by mapping or denying."""

    def __init__(self, dut, stall: float = 0.0, **kw) -> None:
        self.dut, self.r, self.stall = dut, rng(), stall
        zero = "ctrl loaded load cmd_valid cpl_ready dma_cmd_ready dma_cpl_valid evt_ready ring_err app_valid"
        for name in (
            *zero.split(),
            "app_timeout",
            "m_tvalid",
            "s_tready",
            "slot_reg_rvalid",
            "slot_irq",
            "disk_flush",
            "slot_busy",
            "in_on",
            "out_on",
            "ft_tvalid",
            "fr_tready",
            "table_i",
            "sched",
            "time_i",
        ):
            getattr(dut, name).value = 0
        self.mem = AxiMem(
            dut.u_m, "axi", stall=stall, size=SIZE, r=self.r, fails=lambda a: bool(a & ERR), early=True, **kw
        )
        self.table = AxiMem(dut.u_t, "axi", stall=stall, size=TABLE, r=self.r, fails=lambda a: False)
        self.app = AxiRaw(dut.u_s, stall=stall, r=self.r)

        self.disk = AxiRaw(dut.u_d, stall=0.0, r=self.r)
        args = dut.clk_i, dut.slot_rst_no, False
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "s"), *args)
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "m"), *args)
        for side in (self.sink, self.source):
            side.set_pause_generator(stalls(self.r, stall))
        self.todo: deque[int] = deque()
        self.open: dict[int, tuple[int, int]] = {}  # tag -> op, argument
        self.done: dict[int, tuple[int, int, int]] = {}  # tag -> status, bytes, flags
        self.events: list[tuple[int, int, int, int, int]] = []  # cause, is_write, source, va, info
        self.responses = True
        # Virtual pages 0 to PAGES - 1 may be used, all but some; where they lie is shuffled.
        self.frames = list(range(PAGES))
        self.r.shuffle(self.frames)
        self.denied: set[int] = set()
        self.tag = 0

    async def begin(self) -> None:
        await start(self.dut)
        for task in (self._rings(), self._dma()):
            cocotb.start_soon(task)
        await self.boot()

    async def boot(self) -> None:
        self.dut.loaded.value = 1
        self.dut.ctrl.value = RUN | RESET
        await ClockCycles(self.dut.clk_i, 4)
        self.dut.ctrl.value = RUN
        await ClockCycles(self.dut.clk_i, 4)

    def command(
        self, op: int, addr0: int = 0, addr1: int = 0, size: int = 0, flags: int = 0, ident: int = 0
    ) -> int:
        self.tag += 1
        self.open[self.tag] = op, addr0
        word0 = self.tag << 32 | ident << 24 | flags << 8 | op
        self.todo.append(size << 192 | addr1 << 128 | addr0 << 64 | word0)
        return self.tag

    def status(self, tag: int) -> int:
        return self.done[tag][0] if tag in self.done else -1

    def pa(self, va: int) -> int:
        return self.frames[va // PAGE] * PAGE + va % PAGE

    def poke(self, va: int, data: bytes) -> None:
        for i, x in enumerate(data):
            self.mem.mem[self.pa(va + i)] = x

    def peek(self, va: int, size: int) -> bytes:
        return bytes(self.mem.mem[self.pa(va + i)] for i in range(size))

    async def settle(self, limit: int = 5000) -> None:
        await until(self.dut, lambda: not self.open and not self.todo, limit, f"completions of {self.open}")

    def block_sink(self, block: bool) -> None:
        """The app takes nothing from its stream."""
        self.sink.set_pause_generator(stalls(self.r, 1.0 if block else self.stall))

    def stat(self) -> tuple[int, int, int, int]:
        """cause, isolated, busy, quiet"""
        x = int(self.dut.stat.value)
        return x >> 4, x >> 3 & 1, x >> 2 & 1, x >> 1 & 1

    async def _rings(self) -> None:
        d = self.dut
        edge = RisingEdge(d.clk_i)
        up = False
        pauses = stalls(self.r, 0.2), stalls(self.r, 0.2)
        cpl_up = evt_up = False
        while True:
            await edge
            if up and int(d.cmd_ready.value):
                self.todo.popleft()
                up = False
            if cpl_up and int(d.cpl_valid.value):
                x = int(d.cpl.value)
                tag = x >> 24 & 0xFFFFFFFF
                assert x >> 8 & 0xFF == self.open.pop(tag)[0]
                self.done[tag] = x >> 16 & 0xFF, x >> 56 & 0xFFFFFFFF, x & 0xFF
            if evt_up and int(d.evt_valid.value):
                x = int(d.evt.value)
                event = x & 0xFF, x >> 8 & 1, x >> 9 & 0xFF, x >> 17 & (1 << 64) - 1, x >> 81
                self.events.append(event)
                if self.responses and event[0] in (MISS, PERM):
                    self.respond(event[3] & -PAGE)
            if self.todo and not up:
                d.cmd.value = self.todo[0]
                up = True
            cpl_up, evt_up = not next(pauses[0]), not next(pauses[1])
            d.cmd_valid.value, d.cpl_ready.value, d.evt_ready.value = up, cpl_up, evt_up

    def respond(self, page: int) -> None:
        if page >= SIZE or page // PAGE in self.denied:
            self.command(DENY, page)
        else:
            self.command(MAP, page, self.pa(page) | 7)

    async def _dma(self) -> None:
        """An engine that completes each command after a while."""
        d = self.dut
        edge = RisingEdge(d.clk_i)
        d.dma_cmd_ready.value = 1
        work: deque[tuple[int, int]] = deque()
        up, now = False, 0
        while True:
            await edge
            now += 1
            if int(d.dma_cmd_valid.value):
                work.append((now + 20, int(d.dma_cmd.value)))
            if up and int(d.dma_cpl_ready.value):
                work.popleft()
                up = False
            if work and not up and work[0][0] <= now:
                x = work[0][1]
                d.dma_cpl.value = (x >> 32 & 0xFFFFFFFF) << 24 | (x & 0xFF) << 8
                up = True
            d.dma_cpl_valid.value = up

    async def cut(self, how: int, what: str) -> None:
        """Cuts the slot off by the host, waits until it is quiet, and starts it anew."""
        d = self.dut
        d.ctrl.value = RUN | how
        await ClockCycles(d.clk_i, 2)
        assert self.stat()[1]
        await until(d, lambda: self.stat()[3] and not self.open and not self.todo, 4000, f"{what}: quiet")
        assert not self.mem.open_reads and not self.mem.open_writes, what
        d.ctrl.value = RUN | RESET
        self.app.drop.clear()
        self.app.clear()
        await ClockCycles(d.clk_i, 6)
        self.app.r.clear()
        self.app.b.clear()
        self.sink.clear()
        self.source.clear()
        self.events.clear()
        d.ctrl.value = RUN
        await ClockCycles(d.clk_i, 4)

    async def works(self, what: str = "") -> None:
        """Everything of a slot, with pages that may have to be brought in."""
        r = self.r
        data, size = r.randbytes(2 * PAGE + 55), 2 * PAGE + 55
        self.poke(3 * PAGE + 64, data)
        a = self.command(MOVE_IN, 3 * PAGE + 64, size=size, flags=EOP, ident=9)
        b = self.command(MOVE_OUT, 20 * PAGE + 128, size=4 * PAGE)
        c = self.command(H2C)
        frame = await self.sink.recv()
        assert frame.tdata == data and frame.tid == 9, what
        await self.source.send(AxiStreamFrame(bytes(x ^ 0x5A for x in data)))
        self.app.write(40 * PAGE, [5, 6], ident=33)
        self.app.read(3 * PAGE + 64, 2, ident=34)
        await until(self.dut, lambda: len(self.app.b) == 1 and len(self.app.r) == 2, 4000, what)
        await self.settle()
        assert [self.status(t) for t in (a, b, c)] == [OK] * 3, what
        assert self.done[b] == (OK, size, 1) and self.peek(20 * PAGE + 128, size) == bytes(
            x ^ 0x5A for x in data
        )
        assert self.app.b[0][1:] == (33, 0) and self.peek(40 * PAGE, WIDTH) == (5).to_bytes(WIDTH, "little")
        assert [x[1:4] for x in self.app.r] == [(34, 0, 0), (34, 0, 1)]
        assert self.app.r[0][4] == int.from_bytes(data[:WIDTH], "little")
        self.app.r.clear()
        self.app.b.clear()


async def host(dut, stall: float = 0.0, **kw) -> Host:
    h = Host(dut, stall, **kw)
    await h.begin()
    return h


@cocotb.test(timeout_time=500, timeout_unit="us")
async def an_app_works_on_pages_brought_in_on_demand(dut):
    h = await host(dut, 0.2, latency=6)
    for i in range(4):
        await h.works(f"round {i}")
    assert {e[0] for e in h.events} == {MISS} and {e[2] for e in h.events} == {0, 1}
    await ClockCycles(dut.clk_i, 10)
    assert h.stat() == (0, 0, 0, 1) and int(dut.idle_o.value) == 1


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def streams_and_memory_port_work_together_under_paging(dut):
    """Everything at once, with more pages than the MMU holds; pages are taken away at random."""
    h = await host(dut, 0.1, latency=8)
    r = h.r
    h.denied = {PAGES - 1}
    quarter = SIZE // 4
    data = r.randbytes(quarter - 5 * PAGE)
    h.poke(0, data)
    moves, at, refused = [], 0, 0
    while at < len(data):
        n = min(r.choice((640, PAGE, 3 * PAGE)), len(data) - at)
        moves.append(
            (
                h.command(MOVE_IN, at, size=n, flags=EOP),
                h.command(MOVE_OUT, quarter + at, size=-(-n // WIDTH) * WIDTH),
                at,
                n,
            )
        )
        frame = cocotb.start_soon(h.sink.recv())
        for _ in range(6):
            va = 2 * quarter + r.randrange(2 * quarter // 256) * 256
            refused += va // PAGE in h.denied
            h.app.write(va, [va + i for i in range(8)], ident=r.randrange(64))
        if r.random() < 0.5:
            h.command(UNMAP, r.randrange(PAGES) * PAGE)
        await h.source.send(await frame)
        at += -(-n // WIDTH) * WIDTH
    await until(dut, lambda: h.app.idle and not h.mem.open_writes, 20000)
    await h.settle(20000)
    for i, o, va, n in moves:
        assert h.status(i) == OK and h.done[o] == (OK, n, 1)
        assert h.peek(quarter + va, n) == data[va : va + n]
    assert len(h.app.b) == 6 * len(moves)
    assert len([x for x in h.app.b if x[2]]) == refused


@cocotb.test(timeout_time=500, timeout_unit="us")
async def whatever_the_app_breaks_is_told_once_and_costs_only_itself(dut):
    h = await host(dut, 0.1)
    edge = RisingEdge(dut.clk_i)
    for kind in ("memory", "stream", "registers"):
        await h.works(kind)
        h.events.clear()
        # Moves under way, one of which waits for the app for ever.
        moves = [
            h.command(MOVE_IN, 5 * PAGE, size=3 * PAGE, flags=EOP),
            h.command(MOVE_OUT, 30 * PAGE, size=PAGE),
        ]
        h.block_sink(True)
        dma = h.command(H2C)
        if kind == "memory":
            h.app.ar.append((3, 0x2008, 0, h.app.size, 1))
            want = BAD_BURST, 0, 0, 0x2008, 0
        elif kind == "stream":
            frame = AxiStreamFrame(
                bytes(3 * WIDTH), tkeep=[1] * WIDTH + [1] * (WIDTH - 1) + [0] + [1] * WIDTH
            )
            await h.source.send(frame)
            want = STREAM, 0, 2, 0, 0
        else:
            dut.app.value = 0x124 << 33 | 1 << 32
            dut.app_timeout.value = 1
            await edge
            dut.app_timeout.value = 0
            want = REG_TIMEOUT, 1, 3, 0, 0x124
        await until(dut, lambda: h.stat()[1], 600, kind)
        await until(dut, lambda: h.stat()[3] and not h.open, 2000, f"{kind}: quiet")
        told = [e for e in h.events if e[0] not in (MISS,)]
        assert told == [want], f"{kind}: {told}"
        assert h.stat()[0] == want[0]
        assert [h.status(t) for t in moves] == [ABORTED] * 2 and h.status(dma) == OK
        # The host can still look after its pages.
        page = h.command(SCAN, 3 * PAGE)
        await h.settle()
        assert h.status(page) in (OK, 8)
        h.block_sink(False)
        await h.cut(RESET, kind)
    await h.works("at the end")


@cocotb.test(timeout_time=3000, timeout_unit="us")
async def cut_off_at_any_cycle_the_slot_comes_to_rest(dut):
    """Misses nobody answers, half messages, half bursts, nonsense: the slot gets quiet all the same."""
    h = await host(dut, 0.25, latency=12)
    r = h.r
    full = (1 << WIDTH) - 1
    for rnd in range(18):
        h.responses = r.random() < 0.6
        for _ in range(r.randrange(1, 6)):
            h.command(MOVE_IN, r.randrange(PAGES // 2) * PAGE, size=r.choice((16, 500, 9000)), flags=EOP)
            h.command(MOVE_OUT, (PAGES // 2 + r.randrange(8)) * PAGE, size=r.choice((16, 512, 8192)))
        h.block_sink(r.random() < 0.3)
        for _ in range(r.randrange(6)):
            h.app.read(r.randrange(PAGES) * PAGE, r.choice((1, 64)), r.randrange(64))
            h.app.write(r.randrange(PAGES) * PAGE, [1] * r.choice((1, 64)), r.randrange(64))
        if r.random() < 0.3:
            h.app.aw.append(h.app.ax(0x3000, 8))
            h.app.w.extend((i, full, 0) for i in range(r.randrange(8)))
        if r.random() < 0.3:
            h.app.drop.add(r.choice(("ar", "aw", "w")))
        await h.source.send(AxiStreamFrame(r.randbytes(r.randrange(1, 4000))))
        for _ in range(r.randrange(500)):
            await RisingEdge(dut.clk_i)
            if h.stat()[1]:
                break
        await h.cut(r.choice((ISOLATE, RESET)), f"round {rnd}")
        h.responses = True
        h.block_sink(False)
        if rnd % 5 == 4:
            await h.works(f"after round {rnd}")
    await h.works("at the end")


@cocotb.test(timeout_time=100, timeout_unit="us")
async def registers_reach_the_app(dut):
    await host(dut)
    edge = RisingEdge(dut.clk_i)
    assert int(dut.app_open.value) == 1
    for i in range(8):
        dut.app.value = (4 * i) << 33 | (i & 1) << 32 | 0x1000 + i
        dut.app_valid.value = 1
        await until(dut, lambda: int(dut.slot_reg_valid.value))
        assert int(dut.slot_reg.value) == (4 * i) << 33 | (i & 1) << 32 | 0x1000 + i
        await ClockCycles(dut.clk_i, i)
        dut.slot_reg_rvalid.value, dut.slot_reg_rdata.value = 1, 0x77 + i
        await edge
        dut.slot_reg_rvalid.value = 0
        await until(dut, lambda: int(dut.app_rvalid.value), 10)
        assert int(dut.app_rdata.value) == 0x77 + i and not int(dut.app_err.value)
        dut.app_valid.value = 0
        for _ in range(4):
            await edge
            assert not int(dut.slot_reg_valid.value), "one request reached the slot twice"
    for ctrl in (RUN | ISOLATE, RUN | RESET, 0):
        dut.ctrl.value = ctrl
        await ClockCycles(dut.clk_i, 3)
        assert not int(dut.app_open.value)
        assert int(dut.slot_rst_no.value) == (ctrl == RUN | ISOLATE)
    dut.ctrl.value = RUN
    dut.load.value = 1
    await ClockCycles(dut.clk_i, 3)
    assert not int(dut.app_open.value) and not int(dut.slot_rst_no.value)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def interrupts_and_ring_errors_become_events(dut):
    h = await host(dut)
    for _ in range(40):
        dut.slot_irq.value = 1
        await ClockCycles(dut.clk_i, 1)
        dut.slot_irq.value = 0
        await ClockCycles(dut.clk_i, h.r.randrange(6))
    dut.slot_irq.value = 0
    for bit in range(3):
        dut.ring_err.value = 1 << bit
        await ClockCycles(dut.clk_i, 1)
        dut.ring_err.value = 0
        await ClockCycles(dut.clk_i, 8)
    await until(dut, lambda: int(dut.idle_o.value))
    counts = [e[4] for e in h.events if e[0] == IRQ]
    assert counts == sorted(set(counts)) and counts[-1] == 40
    assert [e[4] for e in h.events if e[0] == RING] == [0, 1, 2]
    dut.disk_flush.value = 1
    await ClockCycles(dut.clk_i, 1)
    dut.disk_flush.value = 0
    await ClockCycles(dut.clk_i, 3)  # idle_o is made in two steps
    await until(dut, lambda: int(dut.idle_o.value))
    assert [e for e in h.events if e[0] == FLUSH] == [(FLUSH, 0, 5, 0, 0)]
    dut.slot_busy.value = 1
    await ClockCycles(dut.clk_i, 3)
    assert h.stat()[2] == 1


@cocotb.test(timeout_time=200, timeout_unit="us")
async def quiesce_lets_the_memory_port_finish(dut):
    h = await host(dut, 0.1, latency=20)
    for i in range(60):
        h.app.read(i % PAGES * PAGE, 8, i)
        h.app.write(i % PAGES * PAGE + 1024, [i] * 8, i)
    await ClockCycles(dut.clk_i, 400)
    dut.ctrl.value = RUN | QUIESCE
    await until(dut, lambda: h.stat()[3], 3000, "quiet")
    assert not h.mem.open_reads and not h.mem.open_writes and not h.stat()[1]
    done = len(h.app.r), len(h.app.b)
    assert done[0] % 8 == 0 and done[1] < 60
    await ClockCycles(dut.clk_i, 200)
    assert (len(h.app.r), len(h.app.b)) == done
    dut.ctrl.value = RUN
    await until(dut, lambda: len(h.app.r) == 480 and len(h.app.b) == 60, 20000)


class Switch:
    """The switch that stream 0 may belong to."""

    def __init__(self, dut, h: Host) -> None:
        args = dut.clk_i, dut.rst_ni, False
        self.dut = dut
        self.tx = AxiStreamSource(AxiStreamBus.from_prefix(dut, "ft"), *args)
        self.rx = AxiStreamSink(AxiStreamBus.from_prefix(dut, "fr"), *args)
        for side in (self.tx, self.rx):
            side.set_pause_generator(stalls(h.r, 0.2))

    async def own(self, both: bool) -> None:
        self.dut.in_on.value = self.dut.out_on.value = both
        await ClockCycles(self.dut.clk_i, 3)


@cocotb.test(timeout_time=500, timeout_unit="us")
async def the_switch_takes_stream_0_and_gives_it_back(dut):
    h = await host(dut, 0.2, latency=6)
    r, f = h.r, Switch(dut, h)
    for rnd in range(4):
        await h.works(f"round {rnd}")
        # Moves that run: one has delivered half a message, one waits.
        h.poke(3 * PAGE, r.randbytes(2 * PAGE))
        moves = [
            h.command(MOVE_IN, 3 * PAGE, size=2 * PAGE, flags=EOP),
            h.command(MOVE_OUT, 20 * PAGE, size=PAGE),
        ]
        begun = int(dut.count[4].value)
        await until(dut, lambda begun=begun: int(dut.count[4].value) > begun + 3, 2000)
        await f.own(True)
        await h.settle()
        assert [h.status(t) for t in moves] == [ABORTED] * 2
        cut = await h.sink.recv()
        assert len(cut.tdata) % WIDTH == 1 and cut.tdata[-1] == 0
        assert cut.tdata[:-1] == h.peek(3 * PAGE, len(cut.tdata) - 1)
        there, back = [[r.randbytes(r.randrange(1, 400)) for _ in range(8)] for _ in range(2)]
        for a, b in zip(there, back, strict=True):
            await f.tx.send(AxiStreamFrame(a, tid=7))
            await h.source.send(AxiStreamFrame(b))
        for a, b in zip(there, back, strict=True):
            got = await h.sink.recv()
            assert got.tdata == a and got.tid == 7
            got = await f.rx.recv()
            assert got.tdata == b
        late = h.command(MOVE_IN, 3 * PAGE, size=64, flags=EOP)
        await h.settle()
        assert h.status(late) == ABORTED
        await f.own(False)
    # A moment is enough to end all moves, and the next message begins anew.
    moves = [h.command(MOVE_IN, 3 * PAGE, size=2 * PAGE, flags=EOP) for _ in range(3)]
    moves.append(h.command(MOVE_OUT, 20 * PAGE, size=PAGE))
    begun = int(dut.count[4].value)
    await until(dut, lambda: int(dut.count[4].value) > begun + 3, 2000)
    dut.in_on.value = dut.out_on.value = 1
    await ClockCycles(dut.clk_i, 1)
    dut.in_on.value = dut.out_on.value = 0
    await h.settle()
    assert [h.status(t) for t in moves] == [ABORTED] * 4
    cut = await h.sink.recv()
    assert len(cut.tdata) % WIDTH == 1 and cut.tdata[-1] == 0
    await h.works("after a moment")
    # Taken away in the midst of a message each way; what is left of the app's goes nowhere, what is left of the other waits.
    await f.own(True)
    await f.tx.send(AxiStreamFrame(r.randbytes(2000)))
    await h.source.send(AxiStreamFrame(r.randbytes(2000)))
    await ClockCycles(dut.clk_i, 20)
    await f.own(False)
    assert not h.source.idle() and not f.tx.idle()
    cut = await h.sink.recv()
    assert len(cut.tdata) % WIDTH == 1 and cut.tdata[-1] == 0
    await until(dut, h.source.idle, 1000, "the rest of the app's message")
    assert not f.tx.idle()
    await f.own(True)
    await until(dut, f.tx.idle, 1000, "the rest of the other message")
    await h.sink.recv()
    await f.own(False)
    await h.works("at the end")
    # Each direction for itself: the app's input from the switch, its output to the mover, and the other way round.
    for into in (True, False):
        data = r.randbytes(WIDTH * 20)
        dut.in_on.value, dut.out_on.value = into, not into
        await ClockCycles(dut.clk_i, 3)
        if into:
            await f.tx.send(AxiStreamFrame(data, tid=3))
            await h.source.send(AxiStreamFrame(data))
            out = h.command(MOVE_OUT, 20 * PAGE, size=len(data))
            await h.settle()
            assert h.status(out) == OK and h.peek(20 * PAGE, len(data)) == data
        else:
            h.poke(3 * PAGE, data)
            moved = h.command(MOVE_IN, 3 * PAGE, size=len(data), flags=EOP)
            await h.source.send(AxiStreamFrame(data))
            await h.settle()
            # Before it is what came of the message that was cut above, which the switch would have ended.
            assert h.status(moved) == OK and (await f.rx.recv()).tdata.endswith(data)
        assert (await h.sink.recv()).tdata == data
    await f.own(False)
    await h.works("after each direction")


@cocotb.test(timeout_time=500, timeout_unit="us")
async def a_disk_shares_the_slots_memory(dut):
    h = await host(dut, 0.1, latency=8)
    r, data, denied = h.r, {}, PAGES - 2
    h.denied = {denied}

    async def load(n: int) -> None:
        for i in range(n):
            va = (PAGES // 2 + r.randrange(8)) * PAGE + i * 4 * WIDTH % PAGE
            data[va] = [r.getrandbits(8 * WIDTH) for _ in range(4)]
            h.disk.write(va, data[va], ident=i % 64)
        await until(dut, lambda: len(h.disk.b) == n and not h.disk.b[-1][2], 8000, "writes")
        for va, words in data.items():
            assert h.peek(va, 4 * WIDTH) == b"".join(w.to_bytes(WIDTH, "little") for w in words)
        for va in data:
            h.disk.read(va, 4, ident=9)
        await until(dut, lambda: len(h.disk.r) == 4 * len(data), 8000, "reads")
        assert [x[4] for x in h.disk.r] == [w for words in data.values() for w in words]
        h.disk.b.clear()
        h.disk.r.clear()

    task = cocotb.start_soon(load(50))
    await h.works("beside the disk")
    await task
    assert {e[2] for e in h.events} == {0, 1}
    # A denied page answers with an error and costs nothing else.
    h.disk.read(denied * PAGE, 2)
    h.disk.write(denied * PAGE, [1, 2])
    await until(dut, lambda: len(h.disk.r) == 2 and len(h.disk.b) == 1, 3000)
    assert {x[2] for x in h.disk.r} == {h.disk.b[0][2]} == {2} and h.stat()[1] == 0
    h.disk.b.clear()
    h.disk.r.clear()
    # Cut off with a miss that nobody answers: errors, soon.
    h.responses = False
    h.disk.read(50 * PAGE, 2)
    h.disk.write(51 * PAGE, [1, 2])
    await ClockCycles(dut.clk_i, 200)
    assert not h.disk.r and not h.disk.b
    dut.ctrl.value = RUN | ISOLATE
    h.disk.read(52 * PAGE, 2)
    await until(dut, lambda: len(h.disk.r) == 4 and len(h.disk.b) == 1, 500, "errors")
    assert {x[2] for x in h.disk.r} == {h.disk.b[0][2]} == {2}
    h.disk.b.clear()
    h.disk.r.clear()
    h.responses = True
    h.events.clear()
    # In an empty slot the store works.
    dut.ctrl.value = 0
    dut.loaded.value = 0
    await ClockCycles(dut.clk_i, 5)
    data.clear()
    await load(10)
    dut.loaded.value = 1
    dut.ctrl.value = RUN
    await h.works("at the end")


@cocotb.test(timeout_time=200, timeout_unit="us")
async def pages_of_the_table_need_no_host(dut):
    """Moves and accesses of the app; the card keeps which pages were used, and how."""
    h = await host(dut, 0.2)
    for page in range(PAGES):
        body = h.frames[page] << 3 | 7
        h.table.mem[8 * page : 8 * page + 8] = (body << 16 | check_bits(body) << 8).to_bytes(8, "little")
    dut.table_i.value = 17 << 1 | 1
    await ClockCycles(dut.clk_i, 3)
    await h.works("with a table")
    assert not h.events
    used = {page: h.table.mem[8 * page] for page in range(PAGES) if h.table.mem[8 * page]}
    assert {3: 1, 4: 1, 5: 1, 20: 3, 21: 3, 22: 3}.items() <= used.items(), used
    tag = h.command(UNMAP, 20 * PAGE, flags=IN_TABLE)
    await h.settle()
    assert h.done[tag] == (OK, 0, 0b110) and not any(h.table.mem[160:168])
    dut.table_i.value = 0


@pytest.mark.parametrize("data_w", [128])
def test_via_slot_port(data_w):
    run(
        "via_slot_port_tb",
        __file__,
        defines={"VIA_DATA_W": data_w, "VIA_NUM_STREAMS": 1},
        sources=["rtl/virtio/via_virtio_pkg.sv"],
    )
