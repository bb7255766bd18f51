# SPDX-License-Identifier: Apache-2.0
"""via_fn_gate: transparent when open; shut, it begins nothing, ends what was begun, and says when nothing is left."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles

from via_tb import AxiMem, AxiRaw, rng, run, start, until

SIZE = 1 << 14


class Bench:
    def __init__(self, dut, stall: float = 0.0, **kw) -> None:
        self.dut, self.r = dut, rng()
        self.mem = AxiMem(dut.u_m, "axi", stall=stall, size=SIZE, r=self.r, **kw)
        self.mgr = AxiRaw(dut.u_s, "axi", stall=stall, r=self.r)
        for channel in ("r", "b"):  # always taken, as section 8 demands
            self.mgr.stall[channel] = iter(lambda: False, True)
        self.width = self.mgr.width
        self.written: list[tuple[int, list[int]]] = []
        dut.enable.value = 1

    def some(self) -> None:
        """One burst of either kind; writes go to even pages, reads are of odd ones."""
        r = self.r
        beats = r.randint(1, min(8, 4096 // self.width))
        at = r.randrange(4096 // self.width - beats + 1) * self.width
        if r.random() < 0.5:
            self.mgr.read(0x1000 + at, beats, r.randrange(64))
        else:
            words = [r.getrandbits(8 * self.width) for _ in range(beats)]
            self.written.append((0x2000 + at, words))
            self.mgr.write(0x2000 + at, words)

    @property
    def open(self) -> int:
        return self.mem.open_reads + self.mem.open_writes

    def end(self) -> None:
        self.mgr.end()
        self.mem.end()


async def bench(dut, stall: float = 0.0, **kw) -> Bench:
    b = Bench(dut, stall, **kw)
    await start(dut)
    return b


@cocotb.test(timeout_time=100, timeout_unit="us")
async def an_open_gate_adds_no_cycle(dut):
    b = await bench(dut, early=True)
    for _ in range(20):
        b.mgr.read(0, 2)
        b.mgr.write(0x2000, [1, 2])
    await until(dut, lambda: len(b.mgr.b) == 20 and len(b.mgr.r) == 40)
    assert b.mgr.taken["ar"] == [c for c, *_ in b.mem.reads]
    assert b.mgr.taken["aw"] == [c for c, *_ in b.mem.writes]
    # W follows its address by one cycle.
    assert b.mgr.taken["w"] == b.mem.w_beats and b.mgr.taken["w"][0] == b.mgr.taken["aw"][0] + 1
    assert b.mgr.taken["w"] == [b.mgr.taken["w"][0] + i for i in range(40)]
    assert [c for c, *_ in b.mgr.r] == [c for c in b.mem.r_beats]
    assert not int(dut.drained.value), "open"
    b.end()


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def shut_at_any_moment_it_drains_and_loses_nothing(dut):
    for early in (False, True):
        b = await bench(dut, 0.4, latency=5, early=early)
        r = b.r
        b.mem.mem[:] = r.randbytes(SIZE)
        shadow = bytearray(b.mem.mem)
        for rnd in range(100):
            for _ in range(r.randrange(6)):
                b.some()
            await ClockCycles(dut.clk_i, r.randrange(1, 30))
            dut.enable.value = 0
            await until(dut, lambda: int(dut.drained.value), 600, f"round {rnd}: drained")
            assert b.open == 0
            begun = len(b.mem.reads), len(b.mem.writes)
            await ClockCycles(dut.clk_i, r.randrange(1, 20))
            assert (len(b.mem.reads), len(b.mem.writes)) == begun
            dut.enable.value = 1
        await until(dut, lambda: b.mgr.idle and b.open == 0, 3000)  # noqa: B023
        await ClockCycles(dut.clk_i, 3)
        # Reads are of a page nobody writes.
        reads: list[bytes] = []
        for _, at, beats in b.mem.reads:
            reads += [bytes(shadow[at + i * b.width : at + (i + 1) * b.width]) for i in range(beats)]
        assert [d.to_bytes(b.width, "little") for *_, d in b.mgr.r] == reads
        for at, words in b.written:
            shadow[at : at + len(words) * b.width] = b"".join(w.to_bytes(b.width, "little") for w in words)
        assert shadow == b.mem.mem
        assert len(b.mgr.b) == len(b.mem.writes) == len(b.written) > 50 and len(reads) > 50
        assert not any(x[1] for x in b.mgr.b)
        b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def an_address_on_offer_stays_until_it_is_taken(dut):
    b = await bench(dut, latency=3)
    for kind in ("ar", "aw"):
        b.mem.set_stall(1.0)
        await ClockCycles(dut.clk_i, 4)
        if kind == "ar":
            b.mgr.read(0x1000, 2)
            b.mgr.read(0x1000, 2)
        else:
            b.mgr.write(0x2000, [7, 8])
            b.mgr.write(0x2000, [9, 9])
        await ClockCycles(dut.clk_i, 5)
        dut.enable.value = 0
        await ClockCycles(dut.clk_i, 20)
        assert not int(dut.drained.value), f"{kind} is on offer"
        b.mem.set_stall(0.0)
        await until(dut, lambda: int(dut.drained.value))
        assert len(b.mem.reads if kind == "ar" else b.mem.writes) == 1
        dut.enable.value = 1
        await until(dut, lambda: b.mgr.idle and not b.open)
    assert len(b.mem.reads) == len(b.mem.writes) == 2
    b.end()


@cocotb.test(timeout_time=500, timeout_unit="us")
async def once_drained_the_function_may_be_reset(dut):
    """What it had on offer may vanish: none of it has been seen on the other side."""
    b = await bench(dut, 0.3, latency=4, early=True)
    r = b.r
    for _ in range(60):
        for _ in range(8):
            b.some()
        await ClockCycles(dut.clk_i, r.randrange(1, 40))
        dut.enable.value = 0
        await until(dut, lambda: int(dut.drained.value), 600)
        # A burst whose data has begun to flow is over by now, so the rest are whole bursts.
        assert len(b.mgr.taken["w"]) == sum(n for *_, n in b.mem.writes)
        b.mgr.clear()
        await ClockCycles(dut.clk_i, 3)
        dut.enable.value = 1
    b.mgr.read(0x1000, 1)
    b.mgr.write(0x2000, [1])
    n, m = len(b.mgr.r), len(b.mgr.b)
    await until(dut, lambda: len(b.mgr.r) == n + 1 and len(b.mgr.b) == m + 1)
    b.end()


@pytest.mark.parametrize("data_w", [64, 512])
def test_via_fn_gate(data_w):
    run("via_fn_gate_tb", __file__, defines={"VIA_DATA_W": data_w})
