# SPDX-License-Identifier: Apache-2.0
"""via_slot_meter: what passes, when, and what is counted of it: rates, caps, the class that goes first."""

from collections import deque
from dataclasses import dataclass

import cocotb
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

from via_tb import rng, run, start, until

LONGEST = 4096 // 16  # beats of a burst
RD, WR = 0, 1


@dataclass
class Config:
    """sched_cfg_t."""

    first: int = 0
    limit: int = 0
    cap: int = 0  # 16 beats
    rate: int = 0  # 1/256 beats a cycle
    depth: int = 0  # 16 beats

    def pack(self) -> int:
        return self.first << 27 | self.limit << 26 | self.cap << 18 | self.rate << 8 | self.depth


class Bench:
    """Offers bursts each way, takes them at random, returns beats and responses after a while, and counts what it sees."""

    def __init__(self, dut, busy: float = 0.0) -> None:
        self.dut, self.r, self.busy = dut, rng(), busy
        self.todo: tuple[deque[tuple[int, int]], ...] = (deque(), deque())  # beats, of host memory
        self.passed: list[list[tuple[int, int, int]]] = [[], []]  # cycle, beats, of host memory
        self.flight = [0, 0]
        self.most = [0, 0]
        self.waits: list[list[int]] = [[], []]  # cycles
        self.now = 0
        self.hold = False  # nothing comes back
        for name in ("cfg", "ar_valid", "aw_valid", "out_ar_ready", "out_aw_ready", "rd_beat", "wr_done"):
            getattr(dut, name).value = 0

    async def begin(self, config: Config) -> None:
        self.dut.cfg.value = config.pack()
        await start(self.dut)
        self.task = cocotb.start_soon(self._run())

    def offer(self, count: int, longest: int = LONGEST) -> None:
        for way in (RD, WR):
            self.todo[way].extend((self.r.choice((1, 2, longest)), self.r.randrange(2)) for _ in range(count))

    def beats(self, way: int, host: int, until: int) -> int:
        return sum(n for cycle, n, at in self.passed[way] if at == host and cycle < until)

    async def _run(self) -> None:
        d, names = self.dut, ("ar", "aw")
        shown = [False, False]
        owed: tuple[deque[int], ...] = (deque(), deque())  # reads: beats; writes: bursts
        while True:
            for way, name in enumerate(names):
                up = bool(self.todo[way])
                getattr(d, f"{name}_valid").value = int(up)
                if up:
                    getattr(d, f"{name}_len").value = self.todo[way][0][0] - 1
                    getattr(d, f"{name}_host").value = self.todo[way][0][1]
                getattr(d, f"out_{name}_ready").value = int(self.r.random() >= self.busy)
                back = bool(owed[way]) and not self.hold and self.r.random() >= self.busy
                (d.rd_beat if way == RD else d.wr_done).value = int(back)
                if back:
                    if way == WR:
                        self.flight[way] -= owed[way].popleft()
                    else:
                        self.flight[way] -= 1
                        owed[way][0] -= 1
                        if not owed[way][0]:
                            owed[way].popleft()
            await ReadOnly()
            for way, name in enumerate(names):
                valid = bool(int(getattr(d, f"out_{name}_valid").value))
                passes = valid and bool(int(getattr(d, f"out_{name}_ready").value))
                taken = bool(int(getattr(d, f"{name}_valid").value)) and bool(
                    int(getattr(d, f"{name}_ready").value)
                )
                assert passes == taken, "both sides see the same handshake"
                assert valid or not shown[way], "an address that was shown stays"
                shown[way] = valid and not passes
                if int(getattr(d, f"{name}_valid").value) and not passes:
                    self.waits[way].append(self.now)
                if passes:
                    beats, host = self.todo[way].popleft()
                    self.passed[way].append((self.now, beats, host))
                    owed[way].append(beats)
                    self.flight[way] += beats
                    self.most[way] = max(self.most[way], self.flight[way])
            await RisingEdge(d.clk_i)
            self.now += 1

    async def check_counters(self) -> None:
        """A burst is counted after two cycles, a cycle in which an address waits after one."""
        await ClockCycles(self.dut.clk_i, 4)
        await ReadOnly()
        counted = [int(x.value) for x in self.dut.beats]
        assert counted == [self.beats(way, host, self.now - 1) for host in (0, 1) for way in (RD, WR)]
        assert [int(x.value) for x in self.dut.waited] == [sum(c < self.now for c in x) for x in self.waits]
        await RisingEdge(self.dut.clk_i)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def without_rate_and_cap_everything_passes_at_once(dut):
    b = Bench(dut)
    b.hold = True
    await b.begin(Config(first=1))
    await ClockCycles(dut.clk_i, 2)
    b.offer(100, 2)
    await until(dut, lambda: not any(b.todo), 200)
    assert all(x[-1][0] - x[0][0] == 99 for x in b.passed) and b.waits == [[], []]
    assert int(dut.first.value) == 1
    await b.check_counters()


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def counters_are_those_of_an_observer(dut):
    """Whatever the settings are, changes while addresses wait among them."""
    b = Bench(dut, busy=0.4)
    await b.begin(Config())
    for _ in range(12):
        b.offer(b.r.randrange(30))
        rate = b.r.choice((0, 100, 512))
        dut.cfg.value = Config(
            b.r.randrange(2), b.r.randrange(2), b.r.choice((0, 1, 40)), rate, b.r.randrange(256)
        ).pack()
        await ClockCycles(dut.clk_i, b.r.randrange(400))
        await b.check_counters()
    dut.cfg.value = 0
    await until(dut, lambda: not any(b.todo), 100000)
    await b.check_counters()
    assert all(b.waits)


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def a_limit_is_kept_in_any_time(dut):
    """Beats passed in any time are at most what the bucket holds, what it gains, and three bursts each way; over a long time the rate is met."""
    for rate, depth, longest in ((64, 4, 16), (300, 0, LONGEST), (17, 1, 2), (512, 255, 64)):
        b = Bench(dut)
        await b.begin(Config(limit=1, rate=rate, depth=depth))
        await ClockCycles(dut.clk_i, 1000)  # the bucket fills
        b.offer(400, longest)
        await until(dut, lambda b=b: min(len(x) for x in b.passed) >= 150, 400_000)
        events = sorted((at, n) for way in b.passed for at, n, _ in way)
        over = 16 * depth + 6 * longest + 2 * rate / 256
        for i in range(0, len(events), 7):
            moved = 0
            for at, n in events[i:]:
                moved += n
                assert moved <= over + (at - events[i][0]) * rate / 256, (
                    rate,
                    depth,
                    moved,
                    at - events[i][0],
                )
        # From when it is empty.
        begin = next(
            i for i in range(len(events)) if sum(n for _, n in events[:i]) > 16 * depth + 4 * longest
        )
        moved, time = sum(n for _, n in events[begin:]), events[-1][0] - events[begin][0]
        assert abs(moved - time * rate / 256) <= 6 * longest + 1, (rate, depth, moved, time)
        b.task.cancel()


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def a_cap_bounds_what_is_under_way(dut):
    for cap in (1, 5):
        b = Bench(dut, busy=0.2)
        b.hold = True
        await b.begin(Config(cap=cap))
        b.offer(60, 64)
        await ClockCycles(dut.clk_i, 300)
        assert all(16 * cap <= x <= 16 * cap - 1 + 128 for x in b.flight), b.flight
        b.hold = False
        await until(dut, lambda b=b: not any(b.todo), 60000)
        assert all(x <= 16 * cap - 1 + 128 for x in b.most), b.most
        await b.check_counters()
        b.task.cancel()


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def who_has_spent_its_bucket_no_longer_goes_first(dut):
    """It goes on all the same, and is first again when the bucket has been refilled."""
    b = Bench(dut)
    await b.begin(Config(first=1, rate=128, depth=8))
    await ClockCycles(dut.clk_i, 300)
    assert int(dut.first.value) == 1
    b.offer(4, 64)
    b.todo[RD].extend([(64, 0)] * 4)
    await until(dut, lambda: not any(b.todo), 100)
    await ClockCycles(dut.clk_i, 4)
    assert int(dut.first.value) == 0
    debt = sum(n for way in b.passed for _, n, _ in way) - 128
    await ClockCycles(dut.clk_i, 2 * debt - 60)
    assert int(dut.first.value) == 0
    await ClockCycles(dut.clk_i, 80)
    assert int(dut.first.value) == 1
    dut.cfg.value = Config(first=0, rate=128, depth=8).pack()
    await ClockCycles(dut.clk_i, 3)
    assert int(dut.first.value) == 0


def test_via_slot_meter():
    run("via_slot_meter_tb", __file__, defines={"VIA_DATA_W": 128})
