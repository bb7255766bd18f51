# SPDX-License-Identifier: Apache-2.0
"""via_ringw: entries, phases, order, interrupts; full, disabled and failing rings harm nobody else."""

from collections import deque

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from via_tb import AxiMem, cycle, rng, run, stalls, start, until

SIZE = 1 << 16
ENTRY = 32


class Ring:
    """One ring as its host sees it: reads entries whose phase is right, in order."""

    def __init__(self, bench: "Bench", index: int, log2: int) -> None:
        self.bench, self.index, self.log2 = bench, index, log2
        self.base = 0x1000 * (index + 1)
        self.next = 0  # free-running
        self.expect: deque[list[int]] = deque()  # words 0 to 2
        self.got = 0
        self.irqs: list[int] = []
        self.paused = False

    def config(self, enable: bool) -> None:
        self.bench.dut.cfg[self.index].value = enable << 68 | self.log2 << 64 | self.base
        if not enable:
            self.next = 0
            self.head(0)

    def clear(self) -> None:
        self.bench.mem.mem[self.base : self.base + 0x1000] = bytes(0x1000)

    def head(self, index: int) -> None:
        self.bench.dut.head[self.index].value = index & 0xFFFF

    def look(self) -> list[int] | None:
        """The words of the next entry, if it is there."""
        at = self.base + self.next % (1 << self.log2) * ENTRY
        words = [int.from_bytes(self.bench.mem.mem[at + 8 * i : at + 8 * i + 8], "little") for i in range(4)]
        phase = 1 - (self.next >> self.log2 & 1)
        return words if words[3] >> 63 == phase else None

    def take(self) -> bool:
        words = self.look()
        if words is None:
            return False
        want = self.expect.popleft()
        assert words[:3] == want, (
            f"ring {self.index}: {[hex(w) for w in words]}, not {[hex(w) for w in want]}"
        )
        stamp = words[3] & (1 << 63) - 1
        assert stamp <= self.bench.now
        self.next += 1
        self.got += 1
        return True


class Bench:
    def __init__(self, dut, stall: float = 0.0, log2: int = 4, **kw) -> None:
        self.dut, self.r = dut, rng()
        self.now = 0
        self.mem = AxiMem(dut.u_m, "axi", stall=stall, size=SIZE, r=self.r, **kw)
        self.slots = len(dut.cpl_valid)
        self.rings = [Ring(self, i, log2) for i in range(2 * self.slots)]
        self.todo: list[deque[tuple[int, list[int]]]] = [deque() for _ in self.rings]
        self.taken = [0] * len(self.rings)
        self.cpl_errs = [0] * self.slots
        self.stall = [stalls(self.r, stall) for _ in self.rings]
        dut.cpl_valid.value = dut.evt_valid.value = dut.arm.value = dut.time_i.value = 0
        for ring in self.rings:
            ring.config(False)
        self._arm = 0

    async def begin(self, enable: bool = True) -> None:
        await start(self.dut)
        for ring in self.rings:
            ring.clear()
            ring.config(enable)
        self._task = cocotb.start_soon(self._run())
        await ClockCycles(self.dut.clk_i, 2)

    def completion(self, slot: int) -> None:
        r = self.r
        info, size, tag = r.getrandbits(64), r.getrandbits(32), r.getrandbits(32)
        status, op, flags = r.getrandbits(8), r.getrandbits(8), r.getrandbits(8)
        raw = info << 88 | size << 56 | tag << 24 | status << 16 | op << 8 | flags
        self.todo[2 * slot].append((raw, [tag << 32 | status << 16 | op << 8 | flags, size, info]))

    def event(self, slot: int) -> None:
        r = self.r
        info, va, source, write, cause = (r.getrandbits(n) for n in (64, 64, 8, 1, 8))
        raw = info << 81 | va << 17 | source << 9 | write << 8 | cause
        self.todo[2 * slot + 1].append((raw, [source << 16 | write << 8 | cause, va, info]))

    def arm(self, ring: int) -> None:
        self._arm |= 1 << ring

    async def _run(self) -> None:
        d = self.dut
        edge = RisingEdge(d.clk_i)
        up = [False] * len(self.rings)
        while True:
            await edge
            self.now += 1
            ready = [int(d.cpl_ready.value), int(d.evt_ready.value)]
            irq, err, cpl_err = int(d.irq.value), int(d.err.value), int(d.cpl_err.value)
            for i, ring in enumerate(self.rings):
                s, kind = divmod(i, 2)
                if up[i] and ready[kind] >> s & 1:
                    _, words = self.todo[i].popleft()
                    self.taken[i] += 1
                    up[i] = False
                    cfg = int(d.cfg[i].value)
                    if cfg >> 68 and not err >> i & 1 and not (kind == 0 and cpl_err >> s & 1):
                        ring.expect.append(words)
                if irq >> i & 1:
                    ring.irqs.append(cycle())
                    assert int(d.tail[i].value) != int(d.head[i].value)
                if not up[i] and self.todo[i] and not next(self.stall[i]):
                    up[i] = True
                if up[i]:
                    (d.evt if kind else d.cpl)[s].value = self.todo[i][0][0]
            for s in range(self.slots):
                self.cpl_errs[s] += cpl_err >> s & 1
            d.cpl_valid.value = sum(up[2 * s] << s for s in range(self.slots))
            d.evt_valid.value = sum(up[2 * s + 1] << s for s in range(self.slots))
            d.arm.value, self._arm = self._arm, 0
            d.time_i.value = self.now

    def end(self) -> None:
        self._task.cancel()
        self.mem.end()


async def bench(dut, stall: float = 0.0, **kw) -> Bench:
    b = Bench(dut, stall, **kw)
    await b.begin()
    return b


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def entries_of_all_rings_arrive_whole_and_in_order(dut):
    """Many times around small rings. Events wait for the host, completions never have to."""
    for log2 in (4, 5):
        b = await bench(dut, 0.3, log2=log2, latency=6)
        r = b.r
        size = 1 << log2
        for _ in range(6000):
            await RisingEdge(dut.clk_i)
            for s in range(b.slots):
                c, e = b.rings[2 * s], b.rings[2 * s + 1]
                # As via_cmdq does it: no completion without room.
                if c.got + size > b.taken[2 * s] + len(b.todo[2 * s]) and r.random() < 0.2:
                    b.completion(s)
                if len(b.todo[2 * s + 1]) < 3:
                    b.event(s)
                for ring in (c, e):
                    if r.random() < 0.1 and ring.take():
                        ring.head(ring.next)
        assert all(ring.got > 4 * size for ring in b.rings), [ring.got for ring in b.rings]
        assert not int(dut.err.value) and not any(b.cpl_errs)
        b.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def one_entry_in_as_many_cycles_as_it_has_beats(dut):
    b = await bench(dut, log2=7, latency=5, early=True)
    for i in range(100):
        b.completion(i % b.slots)
    await until(dut, lambda: sum(int(t.value) for t in dut.tail) == 100)
    per = max(1, ENTRY // b.mem._width)
    assert b.mem.w_beats[-1] - b.mem.w_beats[0] == 100 * per - 1
    for ring in b.rings:
        while ring.take():
            pass
    assert sum(ring.got for ring in b.rings) == 100
    await ClockCycles(dut.clk_i, 4)
    assert int(dut.idle_o.value) == 1


@cocotb.test(timeout_time=200, timeout_unit="us")
async def interrupts_follow_the_entry_and_come_once(dut):
    b = await bench(dut, latency=20)
    c, e = b.rings[0], b.rings[1]
    b.completion(0)
    await until(dut, lambda: c.look())
    await ClockCycles(dut.clk_i, 30)
    assert not c.irqs, "not asked for"
    # Asked for with an entry there: at once.
    b.arm(0)
    await ClockCycles(dut.clk_i, 6)
    assert len(c.irqs) == 1
    b.completion(0)
    await ClockCycles(dut.clk_i, 60)
    assert len(c.irqs) == 1, "one for each asking"
    # Asked for before: with the entry, not earlier.
    c.take(), c.take()
    c.head(2)
    b.arm(0)
    b.arm(1)
    await ClockCycles(dut.clk_i, 60)
    assert len(c.irqs) == 1 and not e.irqs
    b.completion(0)
    await until(dut, lambda: len(c.irqs) == 2)
    assert c.look(), "the interrupt overtook its entry"
    b.event(0)
    await until(dut, lambda: len(e.irqs) == 1)
    assert e.look()
    assert not any(ring.irqs for ring in b.rings[2:])


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_full_event_ring_waits_alone(dut):
    b = await bench(dut)
    for _ in range(20):
        b.event(0)
    await ClockCycles(dut.clk_i, 300)
    assert b.taken[1] == 16 and int(dut.idle_o.value) == 1
    for _ in range(10):
        b.completion(0)
        b.completion(1)
        b.event(1)
    await until(dut, lambda: b.taken[0] == b.taken[2] == b.taken[3] == 10)
    for _ in range(16):
        assert b.rings[1].take()
    b.rings[1].head(16)
    await until(dut, lambda: b.taken[1] == 20)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_completion_without_room_stops_its_ring_only(dut):
    b = await bench(dut)
    for _ in range(20):
        b.completion(0)
    await until(dut, lambda: b.taken[0] == 20, 300, "completions never wait")
    await ClockCycles(dut.clk_i, 20)
    assert int(dut.err.value) == 1 and b.cpl_errs == [1] + [0] * (b.slots - 1)
    assert int(dut.tail[0].value) <= 16
    b.completion(1)
    b.event(0)
    await until(dut, lambda: b.rings[2].look() and b.rings[1].look())
    # Disabling clears it.
    b.rings[0].config(False)
    await until(dut, lambda: not int(dut.on.value) & 1)
    await ClockCycles(dut.clk_i, 2)
    assert int(dut.err.value) == 0 and int(dut.tail[0].value) == 0
    b.rings[0].expect.clear()
    b.rings[0].clear()
    b.rings[0].config(True)
    await ClockCycles(dut.clk_i, 2)
    b.completion(0)
    await until(dut, lambda: b.rings[0].look())
    assert b.rings[0].take()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_write_that_fails_stops_its_ring_only(dut):
    for i in range(4):
        bad = 0x1000 * (i + 1)
        b = await bench(dut, 0.2, fails=lambda a: bad <= a < bad + 0x1000)  # noqa: B023
        for _ in range(6):
            for s in range(2):
                b.completion(s)
                b.event(s)
        await until(dut, lambda: not any(b.todo), 800)  # noqa: B023
        # An entry that was accepted is on its way for some cycles before the writer is busy with it.
        await ClockCycles(dut.clk_i, 40)
        await until(dut, lambda: int(dut.idle_o.value) == 1, 400)
        assert int(dut.err.value) == 1 << i
        assert b.cpl_errs[:2] == [int(i == 0), int(i == 2)]
        for k, ring in enumerate(b.rings[:4]):
            assert int(dut.tail[k].value) == (0 if k == i else 6)
            if k != i:
                assert all(ring.take() for _ in range(6))
        assert int(dut.idle_o.value) == 1
        b.end()


@cocotb.test(timeout_time=500, timeout_unit="us")
async def a_ring_may_be_disabled_at_any_moment(dut):
    """Entries are dropped, the port stays whole, and the other slot notices nothing."""
    b = await bench(dut, 0.3, log2=4, latency=8)
    r = b.r
    for rnd in range(40):
        for _ in range(r.randrange(60)):
            await RisingEdge(dut.clk_i)
            if len(b.todo[0]) < 2:
                b.completion(0)
            if len(b.todo[1]) < 2:
                b.event(0)
            if b.rings[2].got + 16 > b.taken[2] + len(b.todo[2]):
                b.completion(1)
            if b.rings[2].take():
                b.rings[2].head(b.rings[2].next)
        for i in (0, 1):
            b.rings[i].config(False)
        await until(dut, lambda: not int(dut.on.value) & 3, 300, f"round {rnd}: ring off")
        await until(dut, lambda: not b.todo[0] and not b.todo[1], 300, f"round {rnd}: dropped")
        for i in (0, 1):
            b.rings[i].clear()
            b.rings[i].expect.clear()
            b.rings[i].config(True)
        await ClockCycles(dut.clk_i, 2)
    assert b.rings[2].got > 40
    await until(dut, lambda: int(dut.idle_o.value) == 1)


@pytest.mark.parametrize("data_w", [64, 512])
def test_via_ringw(data_w):
    run("via_ringw_tb", __file__, defines={"VIA_DATA_W": data_w, "VIA_NUM_SLOTS": 2})
