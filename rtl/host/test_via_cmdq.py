# SPDX-License-Identifier: Apache-2.0
"""via_cmdq: commands whole and in order, never more than completions have room for."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from via_tb import AxiMem, rng, run, stalls, start, until

SIZE = 1 << 17
ENTRY = 32


class Slot:
    """A host with a command ring, the engines behind it, and the completion ring, as counts."""

    def __init__(self, bench: "Bench", index: int, log2: int, cpl_log2: int) -> None:
        self.bench, self.index, self.log2, self.cpl_log2 = bench, index, log2, cpl_log2
        self.base = 0x8000 * (index + 1)
        self.enabled = False
        self.reset()

    def reset(self) -> None:
        self.tail = 0  # as the host counts, not modulo
        self.words: list[int] = []  # every command given since the ring was enabled
        self.got = 0
        self.running = 0  # fetched and accepted by an engine, not completed
        self.used = 0  # completions in their ring
        self.errors: list[int] = []

    def config(self, enable: bool) -> None:
        d = self.bench.dut
        self.enabled = enable
        d.cmd_cfg[self.index].value = enable << 68 | self.log2 << 64 | self.base
        d.cpl_cfg[self.index].value = 1 << 68 | self.cpl_log2 << 64
        if not enable:
            d.cmd_tail[self.index].value = 0

    @property
    def head(self) -> int:
        return int(self.bench.dut.cmd_head[self.index].value)

    def room(self) -> int:
        return (1 << self.log2) - (self.tail - self.head & 0xFFFF)

    def give(self, count: int) -> None:
        """Writes commands where the card has read, then rings."""
        for _ in range(min(count, self.room())):
            word = self.bench.r.getrandbits(256)
            at = self.base + self.tail % (1 << self.log2) * ENTRY
            self.bench.mem.mem[at : at + ENTRY] = word.to_bytes(ENTRY, "little")
            self.words.append(word)
            self.tail += 1
        self.ring(self.tail)

    def ring(self, tail: int) -> None:
        self.bench.dut.cmd_tail[self.index].value = tail & 0xFFFF


class Bench:
    def __init__(self, dut, stall: float = 0.0, log2: int = 4, cpl_log2: int = 4, **kw) -> None:
        self.dut, self.r = dut, rng()
        self.mem = AxiMem(dut.u_m, "axi", stall=stall, size=SIZE, r=self.r, **kw)
        count = len(dut.cmd_ready)
        self.slots = [Slot(self, i, log2, cpl_log2) for i in range(count)]
        self.stall = [stalls(self.r, stall) for _ in range(count)]
        self.blocked = [False] * count  # the engines take nothing
        self.finish, self.collect = 0.3, 0.3  # how often an engine completes, and the host reads a completion
        dut.cmd_ready.value = dut.cpl_done.value = 0
        for s in self.slots:
            dut.cpl_used[s.index].value = 0
            s.config(False)

    async def begin(self) -> None:
        await start(self.dut)
        for s in self.slots:
            s.config(True)
        self._task = cocotb.start_soon(self._run())

    def end(self) -> None:
        self._task.cancel()
        self.mem.end()

    async def _run(self) -> None:
        d, r = self.dut, self.r
        edge = RisingEdge(d.clk_i)
        ready = [False] * len(self.slots)
        done = 0
        before: list[int | None] = [None] * len(self.slots)
        while True:
            await edge
            valid, err, info = int(d.cmd_valid.value), int(d.err.value), int(d.err_info.value)
            done_now, done = done, 0
            for i, s in enumerate(self.slots):
                word = int(d.cmd[i].value) if valid >> i & 1 else None
                assert before[i] is None or before[i] == word, "command dropped or changed"
                before[i] = word
                if word is not None and ready[i]:
                    before[i] = None
                    if s.words:  # else from before the ring was disabled
                        assert word == s.words[s.got], f"slot {i}: command {s.got}"
                        s.got += 1
                    s.running += 1
                if err >> i & 1:
                    s.errors.append(info >> i & 1)
                s.used += done_now >> i & 1
                if s.running and r.random() < self.finish:
                    s.running -= 1
                    done |= 1 << i
                if s.used and r.random() < self.collect:
                    s.used -= 1
                d.cpl_used[i].value = s.used
                # Everything fetched has its place in the completion ring.
                fetched = (s.head - s.got & 0xFFFF) if s.words else 0
                assert fetched + s.running + s.used <= 1 << s.cpl_log2, (
                    f"slot {i}: fetched without room for the response"
                )
                ready[i] = not self.blocked[i] and not next(self.stall[i])
            d.cpl_done.value = done
            d.cmd_ready.value = sum(x << i for i, x in enumerate(ready))


async def bench(dut, stall: float = 0.0, **kw) -> Bench:
    b = Bench(dut, stall, **kw)
    await b.begin()
    return b


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def commands_arrive_whole_and_in_order(dut):
    """Rings and completion rings of several sizes, many times around."""
    for log2, cpl_log2 in ((4, 4), (4, 6), (5, 4), (8, 5)):
        b = await bench(dut, 0.2, log2=log2, cpl_log2=cpl_log2, latency=9)
        for _ in range(2500):
            await RisingEdge(dut.clk_i)
            for s in b.slots:
                if b.r.random() < 0.05:
                    s.give(b.r.choice((1, 2, 7, 40)))
        await until(dut, lambda: all(s.got == s.tail for s in b.slots), 4000)  # noqa: B023
        assert all(s.got > 200 for s in b.slots), [s.got for s in b.slots]
        assert not any(s.errors for s in b.slots)
        await ClockCycles(dut.clk_i, 2)
        assert int(dut.idle_o.value) == 1
        b.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def without_room_for_answers_nothing_is_fetched(dut):
    b = await bench(dut, cpl_log2=4, log2=6)
    b.collect = 0.0
    s = b.slots[0]
    s.give(40)
    await until(dut, lambda: s.used == 16, 1000)
    await ClockCycles(dut.clk_i, 100)
    assert s.head == 16 and s.got == 16
    b.slots[1].give(10)
    await until(dut, lambda: b.slots[1].got == 10)
    b.collect = 0.2
    await until(dut, lambda: s.got == 40, 3000)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def completions_one_after_the_other_are_all_counted(dut):
    """Nothing else moves meanwhile: every cycle of the pulse counts, or there is soon no room left."""
    b = await bench(dut)
    s = b.slots[0]
    for done in (16, 32, 48):
        b.finish = 0.0
        s.give(16)
        await until(dut, lambda: s.running == 16)
        await ClockCycles(dut.clk_i, 40)
        assert int(dut.idle_o.value) == 1
        b.finish = b.collect = 1.0
        await until(dut, lambda: s.got == done and not s.running and not s.used)  # noqa: B023


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_slot_that_takes_nothing_holds_no_other(dut):
    b = await bench(dut, cpl_log2=8, log2=8)
    b.blocked[0] = True
    b.slots[0].give(200)
    await ClockCycles(dut.clk_i, 100)
    b.slots[1].give(200)
    await until(dut, lambda: b.slots[1].got == 200, 3000)
    assert b.slots[0].got == 0 and b.slots[0].head == 32  # what the queue holds
    b.blocked[0] = False
    await until(dut, lambda: b.slots[0].got == 200, 3000)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_tail_too_far_stops_its_ring_only(dut):
    for ahead in (17, 18, 0x8000, 0xFFFF):
        b = await bench(dut, 0.2, latency=5)
        s, other = b.slots
        s.give(5)
        await until(dut, lambda: s.got == 5)  # noqa: B023
        s.ring(5 + ahead)
        other.give(12)
        await until(dut, lambda: other.got == 12)  # noqa: B023
        await ClockCycles(dut.clk_i, 60)
        assert s.errors == [0] and not other.errors and s.got == 5
        assert int(dut.tail_err.value) == 1 and int(dut.idle_o.value) == 1
        s.ring(6)  # too late
        await ClockCycles(dut.clk_i, 60)
        assert s.got == 5 and int(dut.tail_err.value) == 1
        await off_and_on(b, s)
        s.give(9)
        await until(dut, lambda: s.got == 9)  # noqa: B023
        assert int(dut.tail_err.value) == 0 and s.errors == []
        b.end()


async def off_and_on(b: Bench, s: Slot) -> None:
    s.words = []  # what comes from here on is checked no more: how far it got is the card's business
    s.config(False)
    await until(b.dut, lambda: not int(b.dut.on.value) >> s.index & 1, 300, "ring off")
    # Commands already fetched are still executed and completed.
    await until(
        b.dut, lambda: not int(b.dut.cmd_valid.value) >> s.index & 1 and not s.running and not s.used, 600
    )
    await ClockCycles(b.dut.clk_i, 3)
    s.reset()
    s.config(True)
    await ClockCycles(b.dut.clk_i, 2)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_ring_that_cannot_be_read_stops_alone(dut):
    for bad in (0, 3, 8):
        b = await bench(dut, 0.2, latency=5)
        s, other = b.slots
        width = b.mem._width
        first = s.base + bad * ENTRY // width * width
        b.mem.fails = lambda a: first <= a < s.base + 16 * ENTRY  # noqa: B023
        s.give(12)
        other.give(12)
        await until(dut, lambda: other.got == 12 and s.errors)  # noqa: B023
        await ClockCycles(dut.clk_i, 60)
        assert s.errors == [1] and not other.errors and int(dut.bus_err.value) == 1
        assert s.got <= bad
        s.give(1)
        await ClockCycles(dut.clk_i, 60)
        assert s.errors == [1] and s.got <= bad and int(dut.idle_o.value) == 1
        b.mem.fails = lambda a: False
        await off_and_on(b, s)
        s.give(12)
        await until(dut, lambda: s.got == 12)  # noqa: B023
        assert int(dut.bus_err.value) == 0
        b.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def reads_behind_one_that_failed_bring_nothing(dut):
    """They are in flight when it fails, and nothing is executed that follows a command that is missing."""
    for disabled in (False, True):
        b = await bench(dut, log2=6, cpl_log2=6, latency=60)
        s, reads = b.slots[0], []
        b.mem.fails = lambda a: not reads.append(a) and a < s.base + 16 * ENTRY  # noqa: B023
        s.give(33)
        await ClockCycles(dut.clk_i, 40)
        for _ in range(0 if disabled else 31):
            await ClockCycles(dut.clk_i, 3)
            s.give(1)
        if disabled:
            await off_and_on(b, s)
            assert b.slots[1].errors == s.errors == []
        else:
            await until(dut, lambda: s.errors)  # noqa: B023
            await ClockCycles(dut.clk_i, 200)
            assert s.errors == [1] and s.got == 0 and int(dut.idle_o.value) == 1
        assert max(reads) >= s.base + 16 * ENTRY, "there was no read behind it"
        b.mem.fails = lambda a: False
        if not disabled:
            await off_and_on(b, s)
        s.give(40)
        await until(dut, lambda: s.got == 40)  # noqa: B023
        b.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_ring_enabled_too_early_after_a_failure_says_so(dut):
    """Reads of before are still in flight: it stays stopped until it has been off without any."""
    b = await bench(dut, log2=6, cpl_log2=6, latency=60)
    s = b.slots[0]
    b.mem.fails = lambda a: a < s.base + 16 * ENTRY
    s.give(33)
    await until(dut, lambda: s.errors, 300)
    s.words = []
    s.config(False)
    await ClockCycles(dut.clk_i, 2)
    s.config(True)
    await ClockCycles(dut.clk_i, 200)
    assert int(dut.bus_err.value) == 1 and s.running == 0
    b.mem.fails = lambda a: False
    await off_and_on(b, s)
    s.give(40)
    await until(dut, lambda: s.got == 40)
    b.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def the_next_read_does_not_wait_for_the_one_before(dut):
    latency = 200
    b = await bench(dut, log2=6, cpl_log2=6, latency=latency)
    b.finish = b.collect = 1.0
    s = b.slots[0]
    s.give(64)
    half = latency + 80 + 32 * ENTRY // b.mem._width
    await until(dut, lambda: s.got == 32, half)
    # Those behind wait for space in the queue, not for each other.
    await until(dut, lambda: s.got == 64, half)


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def a_ring_may_be_disabled_at_any_moment(dut):
    b = await bench(dut, 0.3, latency=8, cpl_log2=5)
    s, other = b.slots
    for _ in range(40):
        s.give(b.r.randrange(1, 17))
        other.give(3)
        for _ in range(b.r.randrange(60)):
            await RisingEdge(dut.clk_i)
        await off_and_on(b, s)
        s.give(5)
        await until(dut, lambda: s.got == 5)
    await until(dut, lambda: other.got == other.tail)
    assert not other.errors and other.got > 100


@pytest.mark.parametrize("data_w", [64, 512])
def test_via_cmdq(data_w):
    run("via_cmdq_tb", __file__, defines={"VIA_DATA_W": data_w, "VIA_NUM_SLOTS": 2})
