# SPDX-License-Identifier: Apache-2.0
"""via_mover_out: messages to memory, capacity, rate, full queue, denied pages, abort at any cycle."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSource
from mover_bench import ABORTED, BAD_ARG, FAULT, FULL, LAST, OK, Commands

from via_tb import AxiMem, rng, run, stalls, start, until

SIZE = 1 << 16
WIDTH = 16


class Source:
    """Sends messages beat by beat and counts the beats taken."""

    def __init__(self, dut, r, stall: float) -> None:
        self.dut, self.stall = dut, stalls(r, stall)
        self.todo: list[tuple[int, int, int, int]] = []  # data, keep, id, last
        self.taken = 0
        self._task = cocotb.start_soon(self._run())

    def message(self, data: bytes, ident: int = 0, last: bool = True) -> None:
        for at in range(0, len(data), WIDTH):
            part = data[at : at + WIDTH]
            end = last and at + WIDTH >= len(data)
            self.todo.append((int.from_bytes(part, "little"), (1 << len(part)) - 1, ident, int(end)))

    def end(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        d = self.dut
        edge = RisingEdge(d.clk_i)
        up = False
        d.s_tvalid.value = 0
        while True:
            await edge
            if up and int(d.s_tready.value):
                self.todo.pop(0)
                self.taken += 1
                up = False
            up = up and bool(self.todo)
            if not up and self.todo and not next(self.stall):
                d.s_tdata.value, d.s_tkeep.value, d.s_tid.value, d.s_tlast.value = self.todo[0]
                up = True
            d.s_tvalid.value = up


class Bench:
    def __init__(self, dut, stall: float = 0.0, **kw) -> None:
        self.dut, self.r = dut, rng()
        self.cmd = Commands(dut, self.r, 0x21, stall)
        self.mem = AxiMem(dut.u_m, "axi", stall=stall, size=SIZE, r=self.r, **kw)
        self.source = Source(dut, self.r, stall)

    def quiet(self) -> bool:
        return self.cmd.idle and int(self.dut.idle_o.value) == 1

    def end(self) -> None:
        for x in (self.cmd, self.mem, self.source):
            x.end()


async def bench(dut, stall: float = 0.0, **kw) -> Bench:
    b = Bench(dut, stall, **kw)
    await start(dut)
    return b


@cocotb.test(timeout_time=300, timeout_unit="us")
async def messages_reach_memory(dut):
    """cocotbext-axi sends the messages; nothing is written beside them."""
    r = rng()
    cmd = Commands(dut, r, 0x21, 0.2)
    mem = AxiMem(dut.u_m, "axi", stall=0.2, latency=5, size=SIZE, r=r)
    source = AxiStreamSource(
        AxiStreamBus.from_prefix(dut, "s"), dut.clk_i, dut.rst_ni, reset_active_level=False
    )
    source.set_pause_generator(stalls(r, 0.2))
    await start(dut)
    mem.mem[:] = model = bytearray(r.randbytes(SIZE))
    lengths = [1, 15, 16, 17, 32, 33, 4095, 4096, 4097, 9000, *(r.randrange(1, 600) for _ in range(20))]
    at = 0
    for n in lengths:
        at += r.choice((0, WIDTH, 5 * WIDTH))
        size = -(-n // WIDTH) * WIDTH + r.choice((0, 0, WIDTH, 4096))
        data = r.randbytes(n)
        m = cmd.move(at, size)
        await source.send(AxiStreamFrame(data, tid=n % 256))
        await until(dut, lambda: cmd.idle, 8000)
        model[at : at + n] = data
        assert (m.status, m.bytes, m.cpl_flags, m.info) == (OK, n, LAST, n % 256)
        at += -(-n // WIDTH) * WIDTH
    await until(dut, lambda: int(dut.idle_o.value) == 1)
    assert mem.mem == model


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_long_message_fills_one_move_after_another(dut):
    b = await bench(dut, 0.2)
    sizes = [64, 4096, 16, 1600, 8192]
    data = b.r.randbytes(sum(sizes[:4]) + 77)
    moves, at = [], 4096 - 32
    for size in sizes:
        moves.append(b.cmd.move(at, size))
        at += size + 256
    b.source.message(data)
    await until(dut, b.quiet, 5000)
    assert [m.status for m in moves] == [OK] * 5
    assert [m.bytes for m in moves] == [*sizes[:4], 77]
    assert [m.cpl_flags for m in moves] == [0, 0, 0, 0, LAST]
    assert b"".join(b.mem.mem[m.addr : m.addr + m.bytes] for m in moves) == data
    # One that ends exactly with the capacity has both.
    m = b.cmd.move(0x8000, 64)
    b.source.message(data[:64])
    await until(dut, b.quiet)
    assert (m.bytes, m.cpl_flags) == (64, LAST)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def one_beat_a_cycle_across_moves(dut):
    for n in (8192, 1024, 256):
        b = await bench(dut, latency=6)
        count = 2 if n > 1024 else 14
        data = [b.r.randbytes(n) for _ in range(count)]
        moves = [b.cmd.move(i * n, n) for i in range(count)]
        for x in data:
            b.source.message(x)
        await until(dut, b.quiet, 6000)
        assert all(m.status == OK and m.bytes == n for m in moves)
        assert b.mem.mem[: n * count] == b"".join(data)
        beats = n * count // WIDTH
        cycles = b.mem.w_beats[-1] - b.mem.w_beats[0] + 1
        assert cycles == beats, f"moves of {n}: {cycles} cycles for {beats} beats"
        b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def bad_arguments_are_refused_in_their_place(dut):
    b = await bench(dut, 0.1)
    args = [
        ((0x100, 64), OK),
        ((0x108, 64), BAD_ARG),
        ((0x100, 0), BAD_ARG),
        ((0x100, 24), BAD_ARG),
        ((0x200, 32), OK),
    ]
    moves = [b.cmd.move(*a) for a, _ in args]
    b.source.message(bytes(64))
    b.source.message(bytes(20))
    await until(dut, b.quiet)
    assert [m.status for m in moves] == [s for _, s in args]
    assert [m.bytes for m in moves] == [64, 0, 0, 0, 20]


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_full_queue_refuses_and_never_waits(dut):
    b = await bench(dut)
    moves = [b.cmd.move(0x400 * (i % 16), 0x400) for i in range(24)]
    await until(dut, lambda: not b.cmd.todo, 200, "the port waits")
    await ClockCycles(dut.clk_i, 50)
    assert [m.status for m in moves] == [-1] * 16 + [FULL] * 8
    for i in range(16):
        b.source.message(bytes([i]) * 0x3FF)
    await until(dut, b.quiet, 5000)
    assert [(m.status, m.bytes) for m in moves[:16]] == [(OK, 0x3FF)] * 16


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_denied_page_ends_its_move_only(dut):
    for bad in (0x3000, 0x4000, 0x5000):
        b = await bench(dut, 0.2, latency=7, fails=lambda a: bad <= a < bad + 4096)  # noqa: B023
        moves = [b.cmd.move(0x1000, 1024), b.cmd.move(0x3F00, 0x2000), b.cmd.move(0x2000, 1024)]
        if bad == 0x3000:
            moves.append(b.cmd.move(0x3000, 16))
        for m in moves:
            b.source.message(bytes([7]) * (m.length - 5))
        await until(dut, b.quiet, 8000)
        assert [m.status for m in moves] == [OK, FAULT, OK, FAULT][: len(moves)]
        assert bytes(b.mem.mem[0x1000:0x13FB]) == bytes(b.mem.mem[0x2000:0x23FB]) == bytes([7]) * 1019
        b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def answers_are_taken_while_completions_wait(dut):
    """The testbench asserts that B is never refused."""
    b = await bench(dut)
    b.cmd.hold_cpl = True
    moves = [b.cmd.move(i * 64, 64) for i in range(16)]
    for _ in moves:
        b.source.message(bytes(64))
    await ClockCycles(dut.clk_i, 400)
    assert not b.mem.open_writes and len(b.mem.writes) > 2
    b.cmd.hold_cpl = False
    await until(dut, b.quiet)
    assert all(m.status == OK for m in moves)


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def aborted_at_any_cycle_everything_ends(dut):
    b = await bench(dut, 0.3)
    r = b.r
    for rnd in range(60):
        b.mem.latency = r.choice((1, 10, 60))
        b.mem.fails = lambda a: a >> 12 == 5
        moves = [
            b.cmd.move(r.randrange(0, 8 * 4096, WIDTH), r.choice((16, 96, 4096, 6000)))
            for _ in range(r.randrange(1, 20))
        ]
        for _ in range(r.randrange(24)):
            last = r.random() < 0.9
            b.source.message(r.randbytes(r.choice((1, 90, 2000)) if last else 5 * WIDTH), last=last)
        await ClockCycles(dut.clk_i, r.randrange(400))
        dut.abort_i.value = 1
        await until(dut, lambda: b.quiet() and not b.mem.open_writes, 3000, f"round {rnd}")
        taken = b.source.taken
        await ClockCycles(dut.clk_i, 20)
        assert b.source.taken == taken, f"round {rnd}: takes beats while aborted"
        for m in moves:
            assert m.status in (OK, ABORTED, FAULT, FULL, BAD_ARG), f"round {rnd}: {m}"
            assert m.bytes <= m.length
        # The parent cuts the stream off, and starts the app anew.
        b.source.todo.clear()
        await ClockCycles(dut.clk_i, 2)
        dut.abort_i.value = 0
        await ClockCycles(dut.clk_i, 2)
        m = b.cmd.move(0x1230, 336)
        data = r.randbytes(333)
        b.source.message(data)
        await until(dut, b.quiet, 1000, f"after round {rnd}")
        assert (m.status, m.bytes, m.cpl_flags) == (OK, 333, LAST), f"after round {rnd}: {m}"
        assert b.mem.mem[0x1230 : 0x1230 + 333] == data


@pytest.mark.parametrize("data_w", [128])
def test_via_mover_out(data_w):
    run("via_mover_out_tb", __file__, defines={"VIA_DATA_W": data_w})
