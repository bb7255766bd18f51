# SPDX-License-Identifier: Apache-2.0
"""via_mmu: translation, misses, denials, touched bits, victims, unmap order, rate, abort."""

from collections import deque

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from via_tb import rng, run, stalls, start

MAP, UNMAP, DENY, SCAN = 0x10, 0x11, 0x12, 0x13
HUGE = 1 << 2
LAST_VA = 1 << 48
ERR, HOST = 1 << 62, 1 << 63
V, R, W, HOSTPTE = 1, 2, 4, 8
OK, CARD_ERR, BAD_ARG, NOT_FOUND = 0, 3, 4, 8
ACCESSED, DIRTY, VICTIM, VICTIM_ACCESSED, VICTIM_DIRTY, VICTIM_HUGE = (1 << i for i in range(1, 7))
MISS, PERM, BOUNDS = 1, 2, 3
RD, WR = 0, 1
PAGE, BIG = 1 << 12, 1 << 21
CHAN, CHANS, CHAN_MIB = (
    1 << 34,
    4,
    1 << 14,
)  # of the card: span of a channel in bytes, channels, most memory of one in MiB


class Burst:
    """A burst offered to the MMU, and what became of it."""

    def __init__(self, lane: int, va: int, beats: int, ident: int) -> None:
        self.lane, self.va, self.beats, self.ident = lane, va, beats, ident
        self.taken = self.left = 0  # cycles
        self.pa: int | None = None


class Command:
    def __init__(self, op: int, va: int, pte: int, flags: int, tag: int) -> None:
        self.op, self.va, self.pte, self.flags, self.tag = op, va, pte, flags, tag
        self.taken = self.ended = 0
        self.status = -1
        self.cpl = self.info = self.number = 0


class Bench:
    """Drives every port once a cycle; `event(cause, is_write, source, va)` is called for each event."""

    def __init__(self, dut, r, stall: float = 0.0, latency: int = 1, mib: int = CHAN_MIB) -> None:
        self.dut, self.r, self.latency, self.mib = dut, r, latency, mib
        self.now = 0
        self.todo = deque(), deque()  # not yet accepted
        self.inside = deque(), deque()  # taken, not yet translated
        self.out: tuple[list[Burst], list[Burst]] = [], []
        self.pending = [], []  # cycle at which a burst is done
        self.todo_cmd: deque[Command] = deque()
        self.open_cmd: deque[Command] = deque()
        self.events: list[tuple[int, int, int, int, int]] = []
        self.numbers: list[int] = []  # of each event: commands before it
        self.event = lambda cause, is_write, source, va: None
        self.stall = [stalls(r, stall) for _ in range(8)]
        self.block = [False, False]  # hold p_ready low
        self.hold_done = [False, False]
        self.block_evt = False  # hold evt_ready low
        self.memory = None  # of the page table; its `edge` is called once a cycle
        self.abort = 0
        self.tag = 0

    def push(self, lane: int, va: int, beats: int = 1, ident: int = 0) -> Burst:
        burst = Burst(lane, va, beats, ident)
        self.todo[lane].append(burst)
        return burst

    def command(self, op: int, va: int, pte: int = 0, flags: int = 0) -> Command:
        self.tag += 1
        c = Command(op, va, pte, flags, self.tag)
        self.todo_cmd.append(c)
        return c

    def map(self, va: int, pa: int, perm: int = V | R | W, huge: bool = False) -> Command:
        return self.command(MAP, va, pa | perm | V, HUGE * huge)

    async def begin(self) -> None:
        d = self.dut
        for port in (d.v_valid, d.p_ready, d.done, d.cmd_valid, d.cpl_ready, d.evt_ready, d.abort_i):
            port.value = 0
        for port in (
            d.walk_ar_ready,
            d.walk_r_valid,
            d.walk_aw_ready,
            d.walk_w_ready,
            d.walk_b_valid,
            d.table_i,
        ):
            port.value = 0
        d.chan_mib_i.value = self.mib
        await start(d)
        edge = RisingEdge(d.clk_i)
        while not int(d.idle_o.value):  # the sweep
            await edge
        self._task = cocotb.start_soon(self.drive())

    def end(self) -> None:
        """Stops driving, so that another bench may begin."""
        self._task.cancel()

    async def drive(self) -> None:
        d = self.dut
        edge = RisingEdge(d.clk_i)
        valid = [False, False]
        ready = [False, False]
        cmd_up = cpl_up = evt_up = False
        before: list[int | None] = [None, None]
        before_cpl = before_evt = None
        while True:
            await edge
            self.now += 1
            v_ready, p_valid = int(d.v_ready.value), int(d.p_valid.value)
            for lane in (RD, WR):
                bit = 1 << lane
                word = int(d.p_ax[lane].value) if p_valid & bit else None
                if before[lane] is not None:
                    assert word == before[lane], f"lane {lane}: valid dropped or payload changed"
                before[lane] = word
                if p_valid & bit and ready[lane]:
                    before[lane] = None
                    burst = self.inside[lane].popleft()
                    burst.pa, burst.left = word & (1 << 64) - 1, self.now
                    assert word >> 64 == burst.ident << 8 | burst.beats - 1, f"lane {lane}: id or len changed"
                    self.out[lane].append(burst)
                    self.pending[lane].append(self.now + self.r.randint(1, self.latency))
                if valid[lane] and v_ready & bit:
                    burst = self.todo[lane].popleft()
                    burst.taken = self.now
                    self.inside[lane].append(burst)
                    valid[lane] = False
            # Completions and events, in order and stable until accepted.
            cpl_valid, evt_valid = int(d.cpl_valid.value), int(d.evt_valid.value)
            cpl = int(d.cpl.value) if cpl_valid else None
            evt = int(d.evt.value) if evt_valid else None
            assert before_cpl is None or cpl == before_cpl, "completion dropped or changed"
            assert before_evt is None or evt == before_evt, "event dropped or changed"
            before_cpl, before_evt = cpl, evt
            if cpl_valid and cpl_up:
                before_cpl = None
                c = self.open_cmd.popleft()
                c.ended, c.status, c.cpl, c.info = self.now, cpl >> 16 & 0xFF, cpl & 0xFF, cpl >> 88
                c.number = cpl >> 56 & 0xFFFFFFFF
                assert cpl >> 24 & 0xFFFFFFFF == c.tag and cpl >> 8 & 0xFF == c.op
            if evt_valid and evt_up:
                before_evt = None
                e = (evt & 0xFF, evt >> 8 & 1, evt >> 9 & 0xFF, evt >> 17 & (1 << 64) - 1)
                self.events.append((self.now, *e))
                self.numbers.append(evt >> 97 & 0xFFFF)
                self.event(*e)
            if cmd_up and int(d.cmd_ready.value):
                c = self.todo_cmd.popleft()
                c.taken = self.now
                self.open_cmd.append(c)
                cmd_up = False
            # The next cycle.
            done = v = p = 0
            for lane in (RD, WR):
                due = self.pending[lane]
                if due and not self.hold_done[lane] and due[0] <= self.now:
                    due.pop(0)
                    done |= 1 << lane
                if not valid[lane] and self.todo[lane] and not next(self.stall[lane]):
                    burst = self.todo[lane][0]
                    d.v_ax[lane].value = burst.ident << 72 | burst.beats - 1 << 64 | burst.va
                    valid[lane] = True
                ready[lane] = not self.block[lane] and not next(self.stall[2 + lane])
                v |= valid[lane] << lane
                p |= ready[lane] << lane
            d.done.value, d.v_valid.value, d.p_ready.value = done, v, p
            if not cmd_up and self.todo_cmd and not next(self.stall[4]):
                c = self.todo_cmd[0]
                d.cmd.value = c.tag << 144 | c.flags << 136 | c.op << 128 | c.pte << 64 | c.va
                cmd_up = True
            cpl_up = not next(self.stall[5])
            evt_up = not self.block_evt and not next(self.stall[6])
            d.cmd_valid.value, d.cpl_ready.value, d.evt_ready.value = cmd_up, cpl_up, evt_up
            d.abort_i.value = self.abort
            if self.memory:
                self.memory.edge()

    async def wait(self, cycles: int) -> None:
        edge = RisingEdge(self.dut.clk_i)
        for _ in range(cycles):
            await edge

    async def until(self, condition, limit: int = 2000, what: str = "") -> None:
        edge = RisingEdge(self.dut.clk_i)
        for _ in range(limit):
            if condition():
                return
            await edge
        raise AssertionError(f"not within {limit} cycles: {what or condition}")

    async def settle_commands(self) -> None:
        await self.until(lambda: not self.todo_cmd and not self.open_cmd)

    async def settle(self, limit: int = 4000) -> None:
        """Until everything offered so far came out and completed."""
        await self.until(
            lambda: not any((*self.todo, *self.inside, self.todo_cmd, self.open_cmd, *self.pending)),
            limit,
            "settle",
        )
        await self.wait(4)


async def bench(dut, stall: float = 0.0, latency: int = 1) -> Bench:
    b = Bench(dut, rng(), stall, latency)
    await b.begin()
    return b


@cocotb.test(timeout_time=100, timeout_unit="us")
async def hits_of_both_page_sizes_give_the_right_address(dut):
    b = await bench(dut)
    b.map(0x7FFF_1234_5000, 0xA_BCDE_1000)
    b.map(0x1240_0000, 0x3_4000_0000, huge=True)
    b.map(0x1260_0000, 0x80_0000_0000, perm=R | W | HOSTPTE, huge=True)
    b.map(0xFFFF_FFFF_F000, 0xF_FFFF_FFFF_F000, perm=R | W | HOSTPTE)
    await b.settle()
    want = [
        (0x7FFF_1234_5FC0, 0xA_BCDE_1FC0),
        (0x125A_BC40, 0x3_401A_BC40),
        (0x1260_0040, HOST | 0x80_0000_0040),
        (0xFFFF_FFFF_F800, HOST | 0xF_FFFF_FFFF_F800),
    ]
    for lane in (RD, WR):
        bursts = [b.push(lane, va, beats=1 + i, ident=0x11 * i % 64) for i, (va, _) in enumerate(want)]
        await b.settle()
        assert [x.pa for x in bursts] == [pa for _, pa in want]
    assert not b.events
    assert [int(dut.count[i].value) for i in range(4)] == [4, 4, 0, 0]
    assert int(dut.idle_o.value) == 1


@cocotb.test(timeout_time=100, timeout_unit="us")
async def every_set_is_empty_after_reset(dut):
    """The memories power up with random contents here."""
    b = await bench(dut)
    for s in range(int(dut.PageSets.value)):
        b.command(SCAN, s * PAGE)
    for s in range(int(dut.HugeSets.value)):
        b.command(SCAN, s * BIG, flags=HUGE)
    cmds = list(b.todo_cmd)
    await b.settle(20000)
    assert all(c.status == NOT_FOUND for c in cmds)
    # No stale entry shows up as a victim either.
    ways = int(dut.PageWays.value)
    for s in range(0, int(dut.PageSets.value), 37):
        for w in range(ways):
            c = b.map(s * PAGE + w * (PAGE << 20), w * PAGE)
            await b.settle()
            assert c.status == OK and not c.cpl, f"set {s} way {w}: {c.cpl:#x} {c.info:#x}"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_miss_posts_one_event_and_is_replayed_while_the_other_direction_goes_on(dut):
    b = await bench(dut)
    b.map(0x1000, 0x9000)
    await b.settle()
    missing = b.push(RD, 0x5040, beats=2, ident=0x15)
    behind = b.push(RD, 0x1080)
    await b.until(lambda: b.events)
    assert b.events[0][1:] == (MISS, 0, 1, 0x5040)
    for i in range(20):
        b.push(WR, 0x1000 + 64 * i)
    # Maps of other pages do not end it, and post nothing more.
    b.map(0x6000, 0xA000)
    b.map(0x20_0000, 0x40_0000, huge=True)
    await b.until(lambda: len(b.out[WR]) == 20 and not b.open_cmd and not b.todo_cmd)
    await b.wait(30)
    assert missing.pa is None and behind.pa is None and len(b.events) == 1
    b.map(0x5000, 0xB000)
    await b.settle()
    assert (missing.pa, behind.pa) == (0xB040, 0x9080)
    assert len(b.events) == 1 and int(dut.count[2].value) == 1 and int(dut.count[3].value) == 0


@cocotb.test(timeout_time=100, timeout_unit="us")
async def both_directions_may_miss_at_once_and_a_huge_page_ends_both(dut):
    b = await bench(dut, stall=0.3)
    x = b.push(RD, 0x41_0040)
    y = b.push(WR, 0x41_1040)
    await b.until(lambda: len(b.events) == 2)
    assert sorted(e[2] for e in b.events) == [0, 1]
    b.map(0x40_0000, 0x1_0020_0000, huge=True)
    await b.settle()
    assert (x.pa, y.pa) == (0x1_0021_0040, 0x1_0021_1040)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def permissions_are_kept_apart_for_reads_and_writes(dut):
    b = await bench(dut)
    b.map(0x1000, 0x9000, perm=R)
    b.map(0x20_0000, 0x40_0000, perm=W, huge=True)
    await b.settle()
    ok = [b.push(RD, 0x1040), b.push(WR, 0x20_0040)]
    await b.settle()
    assert [x.pa for x in ok] == [0x9040, 0x40_0040]
    x, y = b.push(WR, 0x1080, ident=0x2A), b.push(RD, 0x20_1080)
    await b.until(lambda: len(b.events) == 2)
    assert sorted(e[1:] for e in b.events) == [(PERM, 0, 0, 0x20_1080), (PERM, 1, 2, 0x1080)]
    # The response to the first is more rights, to the second none.
    widened = b.map(0x1000, 0x9000)
    b.command(DENY, 0x20_0000, flags=HUGE)
    await b.settle()
    assert x.pa == 0x9080 and y.pa & ERR
    assert widened.cpl & VICTIM and widened.info == 0x1000, "the same page is replaced in place"
    # A miss answered without the right is told again, with the other reason.
    b.events.clear()
    z = b.push(WR, 0x7000)
    await b.until(lambda: b.events)
    b.map(0x7000, 0x8000, perm=R)
    await b.until(lambda: len(b.events) == 2)
    assert [e[1] for e in b.events] == [MISS, PERM]
    b.map(0x7000, 0x8000)
    await b.settle()
    assert z.pa == 0x8000


@cocotb.test(timeout_time=100, timeout_unit="us")
async def denied_pages_are_answered_with_an_error_and_harm_nothing_else(dut):
    b = await bench(dut)
    b.map(0x1000, 0x9000)
    nothing = b.command(DENY, 0x3000)
    await b.settle()
    assert nothing.status == NOT_FOUND
    x, y = b.push(RD, 0x3FC0), b.push(RD, 0x1040)
    await b.until(lambda: b.events)
    wrong = b.command(DENY, 0x4000)
    right = b.command(DENY, 0x3000)
    await b.settle()
    assert (wrong.status, right.status) == (NOT_FOUND, OK)
    assert x.pa == ERR | 0xFC0 and y.pa == 0x9040
    # Denied once, not for ever.
    z = b.push(RD, 0x3000)
    await b.until(lambda: len(b.events) == 2)
    b.map(0x3000, 0xC000)
    await b.settle()
    assert z.pa == 0xC000


@cocotb.test(timeout_time=100, timeout_unit="us")
async def touched_bits_follow_reads_and_writes(dut):
    b = await bench(dut)

    async def do(c: Command) -> tuple[int, int]:
        await b.settle()
        return c.status, c.cpl

    for va, pa, huge in ((0x1000, 0x9000, 0), (0x20_0000, 0x40_0000, HUGE)):
        scan = lambda: do(b.command(SCAN, va, flags=huge))  # noqa: B023, E731
        b.map(va, pa, huge=bool(huge))
        assert await scan() == (OK, 0)
        b.push(RD, va + 64)
        await b.settle()
        assert await scan() == (OK, ACCESSED)
        assert await scan() == (OK, 0)
        b.push(WR, va + 64)
        await b.settle()
        assert await scan() == (OK, ACCESSED | DIRTY)
        assert await scan() == (OK, DIRTY), "a scan leaves dirty"
        b.push(RD, va)
        await b.settle()
        assert await do(b.command(UNMAP, va, flags=huge)) == (OK, ACCESSED | DIRTY)
        assert await do(b.command(UNMAP, va, flags=huge)) == (NOT_FOUND, 0)
        assert await scan() == (NOT_FOUND, 0)
        b.map(va, pa, huge=bool(huge))
        assert await scan() == (OK, 0), "a fresh entry is untouched"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_full_set_evicts_and_says_what(dut):
    b = await bench(dut)
    for ways, sets, size, huge in (
        (int(dut.PageWays.value), int(dut.PageSets.value), PAGE, 0),
        (int(dut.HugeWays.value), int(dut.HugeSets.value), BIG, HUGE),
    ):
        pages = [(3 + i * sets) * size for i in range(3 * ways)]
        live: dict[int, int] = {}
        for i, va in enumerate(pages):
            c = b.map(va, i * size, huge=bool(huge))
            await b.settle()
            if i < ways:
                assert c.cpl == 0 and c.info == 0
            else:
                assert c.cpl & VICTIM and c.info in live
                touched = live.pop(c.info)
                assert bool(c.cpl & VICTIM_ACCESSED) == (touched > 0)
                assert bool(c.cpl & VICTIM_DIRTY) == (touched > 1)
                assert bool(c.cpl & VICTIM_HUGE) == bool(huge)
            live[va] = i % 3
            if i % 3:
                b.push(RD if i % 3 == 1 else WR, va)
                await b.settle()
        for va in pages:
            c = b.command(SCAN, va, flags=huge)
            await b.settle()
            assert (c.status == OK) == (va in live)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def wide_addresses_are_answered_with_an_error_at_once(dut):
    b = await bench(dut)
    b.map(0x1000, 0x9000)
    await b.settle()
    x, y = b.push(RD, LAST_VA + 0x1000, ident=0x10), b.push(RD, 0x1000)
    await b.settle()
    assert x.pa & ERR and y.pa == 0x9000
    assert [e[1:] for e in b.events] == [(BOUNDS, 0, 1, LAST_VA + 0x1000)]


@cocotb.test(timeout_time=200, timeout_unit="us")
async def wide_addresses_do_not_disturb_commands(dut):
    """The error goes out by itself, also in the middle of a command."""
    for delay in range(16):
        b = await bench(dut)
        b.map(0x7000_1000, 0x9000)
        await b.settle()
        b.push(RD, LAST_VA)
        b.push(WR, LAST_VA)
        await b.wait(delay)
        c = b.command(SCAN, 0x7000_1000)
        await b.settle()
        assert c.status == OK, f"delay {delay}"
        b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def bad_arguments_are_refused(dut):
    b = await bench(dut)
    bad = [
        b.command(MAP, 0x1000, 0x9000 | R),  # not valid
        b.command(MAP, 0x1800, 0x9000 | R | V),  # misaligned
        b.command(MAP, LAST_VA, 0x9000 | R | V),
        b.command(MAP, 0x1000, 0x9000 | R | V | 0x10),
        b.command(MAP, 0x1000, 1 << 52 | 0x9000 | R | V),
        b.command(MAP, 0x1000, 0x20_0000 | R | V, HUGE),
        b.command(MAP, 0x20_0000, 0x1000 | R | V, HUGE),
        b.command(UNMAP, 0x1001),
        b.command(SCAN, 0x1000, 0, HUGE),
    ]
    good = b.command(SCAN, 0x1000)
    await b.settle()
    assert [c.status for c in bad] == [BAD_ARG] * len(bad) and good.status == NOT_FOUND


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_page_beyond_the_memory_is_refused(dut):
    """Each channel ends where its memory does, and card memory where its channels do; a page lies in it as a whole. Host pages do not mind."""
    for mib in (5, CHAN_MIB):
        b = Bench(dut, rng(), mib=mib)
        await b.begin()
        size = mib << 20
        inside, beyond = [], []
        for chan in (0, CHANS - 1):
            base = chan * CHAN
            inside += [
                b.map(0x1000, base + size - PAGE),
                b.map(0x20_0000, base + size // BIG * BIG - BIG, huge=True),
            ]
            if mib < CHAN_MIB:
                beyond += [b.map(0x1000, base + size), b.map(0x1000, base + CHAN - PAGE)]
                # The last MiB of it is not there.
                beyond += [b.map(0x20_0000, base + size // BIG * BIG, huge=True)]
        for bit in range((CHANS * CHAN).bit_length() - 1, 52):
            beyond += [b.map(0x1000, 1 << bit), b.map(0x20_0000, 1 << bit, huge=True)]
        host = b.map(0x9000, (1 << 52) - PAGE, perm=R | W | HOSTPTE)
        await b.settle()
        assert [c.status for c in inside] == [OK] * len(inside)
        assert [c.status for c in beyond] == [BAD_ARG] * len(beyond)
        assert host.status == OK
        last = b.push(RD, 0x1000)
        await b.settle()
        assert last.pa == (CHANS - 1) * CHAN + size - PAGE, "what was refused left the translation as it was"
        b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def unmap_completes_behind_the_bursts_before_it(dut):
    b = await bench(dut)
    b.map(0x1000, 0x9000)
    b.map(0x2000, 0xA000)
    await b.settle()
    for lane in (RD, WR):
        b.hold_done[lane] = True
        for _ in range(3):
            b.push(lane, 0x1000)
        await b.until(lambda: len(b.out[lane]) == 3)  # noqa: B023
        c = b.command(UNMAP, 0x1000)
        await b.until(lambda: c in b.open_cmd)  # noqa: B023
        await b.wait(30)
        # Later bursts do not hold it, and nothing on the page gets through any more.
        b.push(lane, 0x2000)
        await b.until(lambda: len(b.out[lane]) == 4)  # noqa: B023
        late = b.push(lane, 0x1000)
        await b.until(lambda: b.events)
        assert c.status < 0 and late.pa is None
        dones = b.pending[lane]
        for left in range(4, 1, -1):
            assert c.status < 0, f"completed with {left} bursts open"
            b.hold_done[lane] = False
            await b.until(lambda: len(dones) < left)  # noqa: B023
            b.hold_done[lane] = True
            if left > 2:
                await b.wait(6)
        await b.until(lambda: c.status == OK, 20)  # noqa: B023
        assert len(dones) == 1
        b.hold_done[lane] = False
        b.map(0x1000, 0x9000)
        await b.settle()
        assert late.pa == 0x9000
        b.events.clear()
        b.out[lane].clear()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def one_translation_a_cycle(dut):
    b = await bench(dut, latency=4)
    for i in range(8):
        b.map(i * PAGE, i * PAGE)
    b.map(BIG, 4 * BIG, huge=True)
    await b.settle()
    bursts = [
        [b.push(lane, b.r.choice((b.r.randrange(8) * PAGE, BIG)), ident=i % 64) for i in range(1000)]
        for lane in (RD, WR)
    ]
    await b.settle()
    for lane in (RD, WR):
        x = bursts[lane]
        assert x[-1].left - x[0].left == 999, (
            f"lane {lane}: {x[-1].left - x[0].left + 1} cycles for 1000 translations"
        )
        assert {y.left - y.taken for y in x} == {2}
    assert not b.events


@cocotb.test(timeout_time=100, timeout_unit="us")
async def abort_ends_every_wait(dut):
    for delay in range(12):
        b = await bench(dut, stall=0.3)
        b.map(0x1000, 0x9000)
        await b.settle()
        for lane in (RD, WR):
            b.push(lane, 0x1000)
            b.push(lane, 0x7000)
            b.push(lane, 0x1000)
            b.push(lane, LAST_VA)
        await b.wait(delay)
        b.abort = 1
        c = b.map(0x3000, 0x9000)
        await b.settle()
        count = len(b.events)
        for lane in (RD, WR):
            b.push(lane, 0x1000)
            b.push(lane, 0x8000)
        await b.settle()
        for lane in (RD, WR):
            assert all(x.pa & ERR for x in b.out[lane][4:]) and b.out[lane][1].pa & ERR
        assert c.status == OK and len(b.events) == count
        b.abort = 0
        await b.wait(2)
        x = b.push(RD, 0x1000)
        y = b.push(WR, 0x3000)
        await b.settle()
        assert (x.pa, y.pa) == (0x9000, 0x9000)
        b.end()


# ---------------------------------------------------------------- many misses


async def all_out(b: Bench, lane: int, bursts: list[Burst], limit: int = 4000) -> None:
    await b.until(
        lambda: all(x.pa is not None for x in bursts), limit, f"lane {lane}: not all bursts came out"
    )
    order = [x for x in b.out[lane] if x in bursts]
    assert order == bursts, "not in order"


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_miss_lets_later_misses_be_posted_and_nothing_overtakes_it(dut):
    """64 pages each way are missing at once: all are posted, in order, within 128 times two cycles or little more."""
    b = await bench(dut)
    n = 64
    bursts = [[b.push(lane, (lane * n + i) * PAGE + 64) for i in range(n)] for lane in (RD, WR)]
    await b.until(lambda: len(b.events) == 2 * n, 4 * n + 40)
    for lane in (RD, WR):
        assert [e[4] for e in b.events if e[2] == lane] == [x.va for x in bursts[lane]]
    assert [int(dut.count[i].value) for i in range(4)] == [0, 0, n, n]
    # All but the first one: nothing comes out.
    for lane in (RD, WR):
        for i in reversed(range(1, n)):
            b.map((lane * n + i) * PAGE, (lane * n + i) * PAGE)
    await b.until(lambda: not b.open_cmd and not b.todo_cmd, 5000)
    assert not b.out[RD] and not b.out[WR]
    for lane in (RD, WR):
        b.map(lane * n * PAGE, lane * n * PAGE)
        await all_out(b, lane, bursts[lane])
        assert [x.pa for x in bursts[lane]] == [x.va for x in bursts[lane]]
        cycles = bursts[lane][-1].left - bursts[lane][0].left
        assert cycles <= n + 1, f"{cycles} cycles for {n} bursts that were waiting"
    assert len(b.events) == 2 * n
    await b.settle()
    assert int(dut.idle_o.value) == 1


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_page_that_was_posted_is_not_posted_again_by_its_neighbours(dut):
    b = await bench(dut)
    bursts = [[b.push(lane, 0x10_0000 + i * 256) for i in range(64)] for lane in (RD, WR)]  # four pages
    await b.until(lambda: len(b.events) == 8)
    # Changes of other pages post nothing either.
    b.map(0x7000_0000, 0x9000)
    b.map(0x4000_0000, BIG, huge=True)
    b.command(SCAN, 0x7000_0000)
    b.command(DENY, 0x5000_0000)
    await b.wait(700)
    assert len(b.events) == 8
    for i in range(4):
        b.map(0x10_0000 + i * PAGE, i * PAGE)
    for lane in (RD, WR):
        await all_out(b, lane, bursts[lane])
    assert len(b.events) == 8


@cocotb.test(timeout_time=400, timeout_unit="us")
async def pages_that_are_loaded_in_batches_are_posted_once(dut):
    """64 reads under way, all but a few on pages of their own; a host that takes all events at once, and maps a page every 20 cycles."""
    b = await bench(dut)
    n, count = 64, 400
    pages = [i if i % 30 else max(i - 20, 0) for i in range(count)]
    bursts = [b.push(RD, page * PAGE) for page in pages[:n]]
    taken = 0
    while len(b.out[RD]) < count:
        await b.wait(200)
        batch, taken = b.events[taken:], len(b.events)
        for e in batch:
            b.map(e[4], e[4])
            await b.wait(20)
            while len(bursts) < min(count, len(b.out[RD]) + n):
                bursts.append(b.push(RD, pages[len(bursts)] * PAGE))
    await b.settle()
    assert [x.pa for x in bursts] == [page * PAGE for page in pages]
    # At most one more for each page that two bursts wait for.
    assert len(b.events) <= count, f"{len(b.events)} events for {count} bursts"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_look_behind_a_miss_does_not_count_as_an_access(dut):
    b = await bench(dut)
    for i in range(4):
        b.map(i * PAGE, i * PAGE)
    b.map(BIG, BIG, huge=True)
    await b.settle()
    for lane in (RD, WR):
        b.push(lane, 0x7000_0000)
        for i in range(4):
            b.push(lane, i * PAGE)
        b.push(lane, BIG)
    await b.wait(100)
    scans = [b.command(SCAN, i * PAGE) for i in range(4)] + [b.command(SCAN, BIG, flags=HUGE)]
    await b.until(lambda: not b.open_cmd and not b.todo_cmd)
    assert [(c.status, c.cpl) for c in scans] == [(OK, 0)] * 5
    b.map(0x7000_0000, 0x9000)
    await b.settle()
    scans = [b.command(SCAN, i * PAGE) for i in range(4)] + [b.command(SCAN, BIG, flags=HUGE)]
    await b.settle()
    assert [(c.status, c.cpl) for c in scans] == [(OK, ACCESSED | DIRTY)] * 5


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_denial_ends_all_bursts_that_wait_on_its_page_and_no_other(dut):
    for stall in (0.0, 0.3):
        b = Bench(dut, rng(), stall)
        await b.begin()
        good, ro, first, second = 0x1000, 0x2000, 0x3000, 0x4000
        b.map(good, 0x9000)
        b.map(ro, 0xA000, perm=R)
        await b.settle()
        pages = [first, second, good, ro, second, first, ro, good, second]
        bursts = [[b.push(lane, va + 64 * i) for i, va in enumerate(pages)] for lane in (RD, WR)]
        await b.wait(150)
        assert not b.out[RD] and not b.out[WR]
        # In the middle, then what is not there, then what is only missing the right of one direction.
        denials = [b.command(DENY, va) for va in (second, 0x8000, ro)]
        await b.until(lambda: not b.open_cmd and not b.todo_cmd)  # noqa: B023
        assert [c.status for c in denials] == [OK, NOT_FOUND, OK]
        assert not b.out[RD] and not b.out[WR], "a denial of a later burst lets nothing pass"
        # That it was denied remains so, even if the page is mapped then.
        b.map(second, 0xC000)
        b.map(ro, 0xA000)
        b.map(first, 0xB000)
        for lane in (RD, WR):
            await all_out(b, lane, bursts[lane])
            for x, va in zip(bursts[lane], pages, strict=True):
                fails = va == second or (va == ro and lane == WR)
                want = ERR if fails else {good: 0x9000, ro: 0xA000, first: 0xB000}[va]
                assert x.pa == want | x.va & 0xFFF, f"lane {lane}, {x.va:#x}: {x.pa:#x}"
        # Denied once, not for ever.
        late = [b.push(lane, second) for lane in (RD, WR)]
        await b.settle()
        assert [x.pa for x in late] == [0xC000] * 2
        b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def what_was_posted_before_is_posted_again_once_it_was_answered(dut):
    """A page that was mapped and has gone, or was denied, before a further burst on it arrives behind a miss."""
    for lane in (RD, WR):
        for deny in (False, True):
            b = Bench(dut, rng())
            await b.begin()
            x, y = b.push(lane, 0x1000), b.push(lane, 0x5000)
            await b.until(lambda: len(b.events) == 2)  # noqa: B023
            if deny:
                b.command(DENY, 0x5000)
            else:
                b.map(0x5000, 0x9000)
                b.command(UNMAP, 0x5000)
            await b.until(lambda: not b.open_cmd and not b.todo_cmd)  # noqa: B023
            z = b.push(lane, 0x5040)
            await b.until(lambda: len(b.events) == 3)  # noqa: B023
            assert b.events[2][1:] == (MISS, lane, 0, 0x5040) and not b.out[lane]
            b.map(0x5000, 0xA000)
            b.map(0x1000, 0xB000)
            await b.settle()
            assert (x.pa, y.pa, z.pa) == (0xB000, ERR if deny else 0xA000, 0xA040)
            b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_wide_address_behind_a_miss_is_posted_at_its_turn(dut):
    b = await bench(dut)
    for lane in (RD, WR):
        x, y, z = b.push(lane, 0x1000 << lane), b.push(lane, LAST_VA + 0x40), b.push(lane, 0x3000)
        await b.until(lambda: len(b.events) == 2)
        await b.wait(40)
        assert [e[1] for e in b.events] == [MISS, MISS]
        b.map(0x1000 << lane, 0x9000)
        await b.until(lambda: len(b.events) == 3)
        assert b.events[2][1:] == (BOUNDS, lane, 0, LAST_VA + 0x40)
        b.map(0x3000, 0xA000)
        await b.settle()
        assert (x.pa, y.pa, z.pa) == (0x9000, ERR | 0x40, 0xA000)
        b.command(UNMAP, 0x3000)
        await b.settle()
        b.events.clear()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_page_that_comes_and_goes_before_its_turn_is_posted_again(dut):
    """By an unmap, and as the victim of other maps."""
    sets, ways = int(dut.PageSets.value), int(dut.PageWays.value)
    for evict in (False, True):
        for lane in (RD, WR):
            b = Bench(dut, rng())
            await b.begin()
            x, y, z = b.push(lane, 0x1000), b.push(lane, 0x5000), b.push(lane, 0x6000)
            await b.until(lambda: len(b.events) == 3)  # noqa: B023
            b.map(0x5000, 0x9000)
            if evict:
                for w in range(1, 2 * ways + 1):
                    b.map(0x5000 + w * sets * PAGE, w * PAGE)
            else:
                b.command(UNMAP, 0x5000)
            await b.until(lambda: not b.open_cmd and not b.todo_cmd)  # noqa: B023
            await b.wait(50)
            assert len(b.events) == 3 and not b.out[lane]
            b.map(0x1000, 0xA000)
            await b.until(lambda: len(b.events) == 4)  # noqa: B023
            assert x.pa == 0xA000 and b.events[3][1:] == (MISS, lane, 0, 0x5000)
            b.map(0x6000, 0xC000)
            b.map(0x5000, 0xB000)
            await b.settle()
            assert (y.pa, z.pa) == (0xB000, 0xC000) and len(b.events) == 4
            b.end()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def an_unmap_at_any_moment_of_the_scouting_leaves_no_stale_translation(dut):
    for delay in range(60):
        b = Bench(dut, rng())
        await b.begin()
        for i in range(1, 4):
            b.map(i * PAGE, i * PAGE)
        await b.settle()
        frame = {0: 0x90_0000, **{i: i * PAGE for i in range(1, 4)}}
        gone: set[int] = set()

        def event(cause: int, is_write: int, source: int, va: int) -> None:
            page = va // PAGE
            frame[page] = 0xA0_0000 + page * PAGE  # noqa: B023
            if page:
                assert page in gone, f"page {page} was there"  # noqa: B023
                b.map(page * PAGE, frame[page])  # noqa: B023

        b.event = event
        bursts = [[b.push(lane, i % 4 * PAGE) for i in range(12)] for lane in (RD, WR)]
        await b.wait(delay)
        gone |= {2, 3}
        unmaps = [b.command(UNMAP, 2 * PAGE), b.command(UNMAP, 3 * PAGE)]
        await b.until(lambda: all(c.status == OK for c in unmaps))  # noqa: B023
        assert not b.out[RD] and not b.out[WR]
        b.map(0, 0xA0_0000)
        for lane in (RD, WR):
            await all_out(b, lane, bursts[lane])
            for x in bursts[lane]:
                page = x.va // PAGE
                assert x.pa == (PAGE if page == 1 else 0xA0_0000 + page * PAGE), f"delay {delay}"
        b.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def an_event_port_that_takes_nothing_delays_no_command(dut):
    b = await bench(dut)
    b.block_evt = True
    bursts = [[b.push(lane, (1 + i + 32 * lane) * PAGE) for i in range(32)] for lane in (RD, WR)]
    await b.wait(100)
    for lane in (RD, WR):
        for i in range(31):
            b.map((1 + i + 32 * lane) * PAGE, i * PAGE)
    await b.until(lambda: not b.open_cmd and not b.todo_cmd, 2000)
    await b.until(lambda: len(b.out[RD]) == len(b.out[WR]) == 31)
    assert not b.events
    b.block_evt = False
    await b.until(lambda: {32 * PAGE, 64 * PAGE} <= {e[4] for e in b.events})
    for lane in (RD, WR):
        b.command(DENY, 32 * (1 + lane) * PAGE)
        await all_out(b, lane, bursts[lane])
        assert bursts[lane][-1].pa == ERR


@cocotb.test(timeout_time=100, timeout_unit="us")
async def slow_events_are_taken_from_both_directions_in_turn(dut):
    b = await bench(dut)
    b.stall[6] = stalls(b.r, 0.9)
    for i in range(20):
        for lane in (RD, WR):
            b.push(lane, (1 + i + 32 * lane) * PAGE)
    await b.until(lambda: len(b.events) == 40)
    for i in range(41):
        assert abs(2 * sum(e[2] for e in b.events[:i]) - i) <= 4


@cocotb.test(timeout_time=400, timeout_unit="us")
async def an_abort_at_any_moment_ends_all_that_wait_and_what_comes_later_is_posted(dut):
    for delay in range(0, 90, 3):
        b = Bench(dut, rng(), stall=0.1)
        await b.begin()
        b.map(0x1000, 0x9000)
        await b.settle()
        bursts = [[b.push(lane, (i % 5 + 1) * PAGE) for i in range(1, 70)] for lane in (RD, WR)]
        await b.wait(delay)
        b.abort = 1
        for lane in (RD, WR):
            await all_out(b, lane, bursts[lane])
            assert all(x.pa & ERR for x in bursts[lane])
        count = len(b.events)
        await b.settle()
        assert len(b.events) <= count + 2, "what was posted before it, and no more"
        b.abort = 0
        await b.wait(4)
        b.events.clear()
        later = [[b.push(lane, (i % 5 + 1) * PAGE) for i in range(10)] for lane in (RD, WR)]
        b.event = lambda cause, is_write, source, va: b.map(va & -PAGE, va & -PAGE)  # noqa: B023
        for lane in (RD, WR):
            await all_out(b, lane, later[lane])
            assert all(x.pa == (0x9000 if x.va == 0x1000 else x.va) for x in later[lane])
        b.end()


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def random_traffic_agrees_with_a_dictionary(dut):
    """A host maps or denies what misses, with either size and right, and unmaps and scans at random.

    Each burst is checked when it comes out: the frame number of a map is its serial number, so a burst that
    used a stale entry shows itself.
    """
    r = rng()
    b = Bench(dut, r, stall=0.2, latency=20)
    await b.begin()
    small = [(i * 7 + s) * PAGE for i in range(3) for s in range(0, 16)]
    big = [BIG * (2 + 4 * i) for i in range(3)]
    serial = 1
    maps: dict[int, tuple[int, int, int]] = {}  # serial -> page, size, rights
    live: dict[tuple[int, int], int] = {}  # what a host believes: (page, size) -> serial
    ended: dict[int, int] = {}  # serial -> cycle at which its unmap or eviction completed
    watched: list[tuple[Command, int, int]] = []
    denied: set[int] = set()  # a denial answers both directions

    def map_page(va: int, size: int, rights: int) -> None:
        nonlocal serial
        c = b.map(va, serial * BIG, perm=rights, huge=size == BIG)
        maps[serial] = va, size, rights
        watched.append((c, size, serial))
        serial += 1

    def event(cause: int, is_write: int, source: int, va: int) -> None:
        assert cause in (MISS, PERM)
        page = va & -PAGE
        need = W if is_write else R
        kind = r.random()
        if kind < 0.05:
            denied.add(page)
            b.command(DENY, page)
        elif va & -BIG in big:
            map_page(va & -BIG, BIG, r.choice((R | W, need)))
        else:
            map_page(page, PAGE, r.choice((R | W, need)))

    b.event = event
    seen = 0
    checked = [0, 0]
    hits = errors = victims = 0
    for _ in range(20000):
        await RisingEdge(dut.clk_i)
        for lane in (RD, WR):
            if len(b.todo[lane]) < 4:
                base = r.choice(big) + r.randrange(512) * PAGE if r.random() < 0.3 else r.choice(small)
                offset = r.randrange(0, PAGE, 64)
                beats = min(r.randint(1, 4), (PAGE - offset) // 64)  # a burst stays within 4 KiB
                b.push(lane, base + offset, beats, r.randrange(64))
            for x in b.out[lane][checked[lane] :]:
                checked[lane] += 1
                if x.pa & ERR:
                    assert x.va & -PAGE in denied
                    errors += 1
                    continue
                n = x.pa // BIG
                va, size, rights = maps[n]
                assert x.va & -size == va and x.pa % size == x.va % size and rights & (W if lane else R)
                assert n not in ended or x.left <= ended[n], f"used map {n} after its end"
                hits += 1
        if r.random() < 0.02 and live:
            va, size = r.choice(list(live))
            b.command(r.choice((UNMAP, SCAN)), va, flags=HUGE if size == BIG else 0)
            watched.append((b.todo_cmd[-1], size, 0))
        while seen < len(watched) and watched[seen][0].ended:
            c, size, n = watched[seen]
            seen += 1
            key = c.va, size
            if c.op == MAP:
                assert c.status == OK
                if c.cpl & VICTIM:
                    victims += 1
                    assert bool(c.cpl & VICTIM_HUGE) == (size == BIG)
                    ended[live.pop((c.info, size))] = c.ended
                assert key not in live, "the page was there, but was not reported as victim"
                live[key] = n
            elif c.op == UNMAP:
                assert (c.status == OK) == (key in live)
                if key in live:
                    ended[live.pop(key)] = c.ended
            else:
                assert (c.status == OK) == (key in live)
    assert hits > 800 and errors > 20 and victims > 50, (hits, errors, victims)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def bursts_that_end_in_each_of_many_cycles_are_all_counted(dut):
    """Nothing else happens meanwhile: an unmap later waits for all of them, and for no more."""
    b = await bench(dut)
    b.map(0x1000, 0x5000)
    await b.settle()
    b.hold_done = [True, True]
    for lane in (RD, WR):
        for i in range(40):
            b.push(lane, 0x1000 + 64 * i)
    await b.until(lambda: len(b.out[RD]) == len(b.out[WR]) == 40)
    await b.wait(20)
    b.hold_done = [False, False]
    await b.settle()
    unmap = b.command(UNMAP, 0x1000)
    await b.settle()
    assert unmap.status == OK


@pytest.mark.parametrize("page_sets", [1024])
def test_via_mmu(page_sets):
    run("via_mmu_tb", __file__, parameters={"PageSets": page_sets})
