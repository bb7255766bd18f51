# SPDX-License-Identifier: Apache-2.0
"""via_mover_in: every length and place, messages, rate, full queue, denied pages, abort at any cycle."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamSink
from mover_bench import ABORTED, BAD_ARG, EOP, FAULT, FULL, OK, Commands, Move

from via_tb import AxiMem, rng, run, stalls, start, until

SIZE = 1 << 16
WIDTH = 16


class Sink:
    """Takes the stream beat by beat: (cycle, data, keep, id, last); checks that a beat offered stays."""

    def __init__(self, dut, r, stall: float) -> None:
        self.dut, self.stall = dut, stalls(r, stall)
        self.beats: list[tuple[int, int, int, int, int]] = []
        self.blocked = False
        self._task = cocotb.start_soon(self._run())

    def end(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        d = self.dut
        edge = RisingEdge(d.clk_i)
        ready, now, before = False, 0, None
        d.m_tready.value = 0
        while True:
            await edge
            if not int(d.rst_ni.value):
                continue
            now += 1
            beat = None
            if int(d.m_tvalid.value):
                beat = tuple(int(x.value) for x in (d.m_tdata, d.m_tkeep, d.m_tid, d.m_tlast))
            assert before is None or beat == before, "beat dropped or changed"
            before = beat
            if beat and ready:
                self.beats.append((now, *beat))
                before = None
            ready = not self.blocked and not next(self.stall)
            d.m_tready.value = ready


class Bench:
    def __init__(self, dut, stall: float = 0.0, **kw) -> None:
        self.dut, self.r = dut, rng()
        self.cmd = Commands(dut, self.r, 0x20, stall)
        self.mem = AxiMem(dut.u_m, "axi", stall=stall, size=SIZE, r=self.r, **kw)
        self.mem.mem[:] = self.r.randbytes(SIZE)
        self.sink = Sink(dut, self.r, stall)

    def expect(self, moves: list[Move]) -> list[tuple[int, int, int, int]]:
        """The beats of moves that all end well."""
        beats = []
        for m in moves:
            for at in range(0, m.length, WIDTH):
                n = min(WIDTH, m.length - at)
                last = at + n == m.length and bool(m.flags & EOP)
                data = self.mem.mem[m.addr + at : m.addr + at + WIDTH]
                beats.append((int.from_bytes(data, "little"), (1 << n) - 1, m.ident, int(last)))
        return beats

    def quiet(self) -> bool:
        return self.cmd.idle and int(self.dut.idle_o.value) == 1

    def end(self) -> None:
        for x in (self.cmd, self.mem, self.sink):
            x.end()


async def bench(dut, stall: float = 0.0, **kw) -> Bench:
    b = Bench(dut, stall, **kw)
    await start(dut)
    return b


@cocotb.test(timeout_time=300, timeout_unit="us")
async def messages_arrive_whole(dut):
    """cocotbext-axi takes the stream; lengths around a beat, a burst and a page, at every place of a page."""
    r = rng()
    cmd = Commands(dut, r, 0x20, 0.2)
    mem = AxiMem(dut.u_m, "axi", stall=0.2, latency=5, size=SIZE, r=r)
    mem.mem[:] = r.randbytes(SIZE)
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m"), dut.clk_i, dut.rst_ni, reset_active_level=False)
    sink.set_pause_generator(stalls(r, 0.2))
    await start(dut)
    lengths = [
        1,
        15,
        16,
        17,
        31,
        32,
        33,
        255,
        4095,
        4096,
        4097,
        9000,
        *(r.randrange(1, 600) for _ in range(20)),
    ]
    moves = []
    for i, n in enumerate(lengths):
        place = r.choice((0, 4096 - WIDTH, 4096 - 8 * WIDTH, r.randrange(256) * WIDTH))
        moves.append(cmd.move(r.randrange(12) * 4096 + place, n, EOP, i))
        if len(moves) % 12 == 0:
            await until(dut, lambda: cmd.idle, 8000)
    for m in moves:
        frame = await sink.recv()
        assert frame.tdata == bytes(mem.mem[m.addr : m.addr + m.length]), f"{m}"
        assert frame.tid == m.ident
    await until(dut, lambda: cmd.idle and int(dut.idle_o.value))
    assert [(m.status, m.bytes) for m in moves] == [(OK, m.length) for m in moves]


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_message_may_come_in_pieces(dut):
    """Without FlagEop there is no last, until a move with it ends the message."""
    b = await bench(dut, 0.2)
    moves = [b.cmd.move(i * 4096 + 32, n, EOP * (i == 3), 7) for i, n in enumerate((64, 4096, 16, 21))]
    await until(dut, b.quiet)
    want = b.expect(moves)
    got = [x[1:] for x in b.sink.beats]
    assert len(got) == len(want)
    for x, y in zip(got, want, strict=True):
        full = int.from_bytes(bytes(255 * (y[1] >> i & 1) for i in range(WIDTH)), "little")
        assert x[1:] == y[1:] and x[0] & full == y[0] & full


@cocotb.test(timeout_time=100, timeout_unit="us")
async def one_beat_a_cycle_across_moves(dut):
    for n in (8192, 1024, 256):
        b = await bench(dut, latency=8)
        moves = [b.cmd.move(i * n % SIZE, n, EOP, i) for i in range(8192 * 2 // n if n > 1024 else 14)]
        await until(dut, b.quiet, 6000)
        want = b.expect(moves)
        assert [x[1:] for x in b.sink.beats] == want
        cycles = b.sink.beats[-1][0] - b.sink.beats[0][0] + 1
        assert cycles == len(want), f"moves of {n}: {cycles} cycles for {len(want)} beats"
        b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def bad_arguments_are_refused_in_their_place(dut):
    b = await bench(dut, 0.1)
    args = [
        ((0x100, 64, EOP), OK),
        ((0x108, 64, EOP), BAD_ARG),
        ((0x100, 0, EOP), BAD_ARG),
        ((0x100, 24, 0), BAD_ARG),
        ((0x100, 32, 0), OK),
        ((0x101, 0, 0), BAD_ARG),
        ((0x200, 24, EOP), OK),
    ]
    moves = [b.cmd.move(*a) for a, _ in args]
    await until(dut, b.quiet)
    assert [m.status for m in moves] == [s for _, s in args]
    assert [m.bytes for m in moves] == [m.length if m.status == OK else 0 for m in moves]
    assert len(b.sink.beats) == 4 + 2 + 2


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_full_queue_refuses_and_never_waits(dut):
    b = await bench(dut)
    b.mem.set_stall(1.0)
    moves = [b.cmd.move(0, 4096, EOP) for _ in range(60)]
    await until(dut, lambda: not b.cmd.todo, 200, "the port waits")
    await ClockCycles(dut.clk_i, 100)
    refused = [m for m in moves if m.status == FULL]
    assert all(m.status in (-1, FULL) for m in moves)
    assert 16 <= len(moves) - len(refused) < 60 and all(m.status == -1 for m in moves[:16])
    b.mem.set_stall(0.0)
    await until(dut, b.quiet, 20000)
    assert all(m.status == OK and m.bytes == 4096 for m in moves if m not in refused)
    assert len(b.sink.beats) == 256 * (60 - len(refused))


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_denied_page_ends_its_move_only(dut):
    for at in range(0, 12):
        bad = 0x4000 + at * 512
        b = await bench(dut, 0.2, latency=3, fails=lambda a: bad <= a < bad + 512)  # noqa: B023
        moves = [
            b.cmd.move(0x1000, 800, EOP, 1),
            b.cmd.move(0x3F00, 0x2000, EOP, 2),
            b.cmd.move(0x2000, 900, EOP, 3),
        ]
        await until(dut, b.quiet, 8000)
        assert [m.status for m in moves] == [OK, FAULT, OK]
        sent = bad - 0x3F00
        assert [m.bytes for m in moves] == [800, sent, 900]
        ids = [x[3] for x in b.sink.beats]
        assert ids == [1] * 50 + [2] * (sent // WIDTH) + [3] * 57
        assert [x[4] for x in b.sink.beats if x[3] == 2] == [0] * (sent // WIDTH)
        b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def an_app_that_takes_nothing_holds_no_answers(dut):
    """The testbench asserts that R is never refused."""
    b = await bench(dut)
    b.sink.blocked = True
    moves = [b.cmd.move(i * 4096, 4096, EOP) for i in range(8)]
    await ClockCycles(dut.clk_i, 1500)
    assert not b.mem.open_reads and all(m.status < 0 for m in moves)
    b.sink.blocked = False
    await until(dut, b.quiet, 4000)
    assert [x[1:] for x in b.sink.beats] == b.expect(moves)


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def aborted_at_any_cycle_everything_ends(dut):
    b = await bench(dut, 0.3)
    r = b.r
    for rnd in range(60):
        b.mem.latency = r.choice((1, 10, 60))
        b.mem.fails = lambda a: a >> 12 == 5
        b.sink.beats.clear()
        moves = [
            b.cmd.move(r.randrange(0, 8 * 4096, WIDTH), r.choice((1, 16, 100, 4096, 6000)), EOP, i)
            for i in range(r.randrange(1, 20))
        ]
        await ClockCycles(dut.clk_i, r.randrange(300))
        dut.abort_i.value = 1
        # What the app does not take is dropped by the parent.
        await until(dut, lambda: b.quiet() and not b.mem.open_reads, 3000, f"round {rnd}")
        sent = sum((m.bytes + WIDTH - 1) // WIDTH for m in moves)
        assert sent == len(b.sink.beats), f"round {rnd}: {sent} beats reported, {len(b.sink.beats)} seen"
        for m in moves:
            # A move all of which was sent may have ended well just before.
            assert m.status in (OK, ABORTED, FAULT, FULL), f"round {rnd}: {m}"
            assert m.status != OK or m.bytes == m.length
            assert m.bytes <= m.length
        states = [m.status for m in moves if m.status != FULL]
        assert states == sorted(states, key=lambda s: s == ABORTED), f"round {rnd}: {states}"
        dut.abort_i.value = 0
        await ClockCycles(dut.clk_i, 2)
        b.sink.beats.clear()
        m = b.cmd.move(0x1230, 333, EOP, 5)
        await until(dut, b.quiet, 1000, f"after round {rnd}")
        assert m.status == OK and [x[2:] for x in b.sink.beats] == [x[1:] for x in b.expect([m])]


@pytest.mark.parametrize("data_w", [128])
def test_via_mover_in(data_w):
    run("via_mover_in_tb", __file__, defines={"VIA_DATA_W": data_w})
