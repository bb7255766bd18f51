# SPDX-License-Identifier: Apache-2.0
"""via_mmu with a page table in card memory: walks, accessed and dirty bits, commands that race with walks, damaged entries."""

from collections import deque
from dataclasses import dataclass

import cocotb
import pytest
from cocotb.triggers import RisingEdge
from test_via_mmu import (
    ACCESSED,
    BAD_ARG,
    BIG,
    CARD_ERR,
    CHAN,
    CHAN_MIB,
    CHANS,
    DENY,
    DIRTY,
    ERR,
    HOSTPTE,
    HUGE,
    MAP,
    MISS,
    NOT_FOUND,
    OK,
    PAGE,
    PERM,
    RD,
    SCAN,
    UNMAP,
    VICTIM,
    WR,
    Bench,
    Command,
    R,
    V,
    W,
    all_out,
)

from via_tb import rng, run, stalls

TABLE = 1 << 3  # flag of a command
DAMAGED = 1 << 7
EV_TABLE = 4
BASE_MIB, LOG2 = 3 << 14 | 8, 17  # channel 3, 8 MiB from its start
KEEP = 4, 8  # blocks of 2 MiB that no translation leads to
ID_W = 6


def crc8(word: int, bits: int) -> int:
    """Bit by bit, from the top: polynomial x^8 + x^2 + x + 1."""
    crc = 0
    for i in reversed(range(bits)):
        top = crc >> 7 ^ word >> i & 1
        crc = (crc << 1 & 0xFF) ^ (7 if top else 0)
    return crc


def encode(va: int, frame: int, rights: int, touched: int = 0) -> int:
    """An entry as it is in memory: rights R and W, touched 1 accessed and 2 dirty."""
    body = va >> 29 << 29 | frame >> 12 << 3 | (rights >> 2 & 1) << 2 | (rights >> 1 & 1) << 1 | 1
    return body << 16 | crc8(body, 48) << 8 | touched


@dataclass
class Read:
    at: int
    ident: int
    due: int  # cycle from which it may be delivered
    looks: int  # cycle at which memory is read
    data: int | None = None


class Memory:
    """Card memory behind the port of walks. Reads and writes are each in order; a read sees the memory at a random moment of its time."""

    def __init__(self, bench: Bench, latency: int = 30) -> None:
        self.b, self.d, self.latency = bench, bench.dut, latency
        self.width = len(bench.dut.walk_r) - ID_W - 2
        self.words: dict[int, int] = {}  # by address of eight bytes
        self.reads: deque[Read] = deque()
        self.writes: deque[list[int]] = deque()  # address, id, cycle of the write, of the response
        self.beats: deque[int] = deque()
        self.walks = 0
        self.bad: set[int] = set()  # addresses of entries whose beat is answered with an error
        self.bad_write = False
        self.hold = False  # deliver no read
        self.once = False  # no more than one
        self.hold_writes = False
        self.ready = [False] * 3
        self.stall = [stalls(bench.r, 0.2) for _ in range(3)]
        bench.memory = self

    def place(self, va: int) -> int:
        return (BASE_MIB << 20) + (va >> 12 & (1 << LOG2) - 1) * 8

    def put(self, va: int, frame: int, rights: int = R | W, touched: int = 0) -> None:
        self.words[self.place(va)] = encode(va, frame, rights, touched)

    def entry(self, va: int) -> int:
        return self.words.get(self.place(va), 0)

    async def settle(self) -> None:
        """Until writes of accessed and dirty bits, which nothing waits for, are in memory."""
        await self.b.until(lambda: int(self.d.idle_o.value), 500, "writes to the table")

    def edge(self) -> None:
        d, now, r = self.d, self.b.now, self.b.r
        strobes = self.width // 8
        if self.ready[0] and int(d.walk_ar_valid.value):
            word = int(d.walk_ar.value)
            assert word % strobes == 0
            looks = now + r.randint(0, self.latency)
            self.reads.append(
                Read(word & (1 << 64) - 1, word >> 64, looks + r.randint(1, self.latency), looks)
            )
            self.walks += 1
            assert len(self.reads) <= 64
        if self.ready[1] and int(d.walk_aw_valid.value):
            word = int(d.walk_aw.value)
            when = now + r.randint(0, self.latency)
            self.writes.append([word & (1 << 64) - 1, word >> 64, when, when + r.randint(1, self.latency)])
        if self.ready[2] and int(d.walk_w_valid.value):
            self.beats.append(int(d.walk_w.value))
        # Writes, then reads, of this cycle; the oldest first.
        d.walk_b_valid.value = 0
        if self.writes and self.beats and self.writes[0][2] <= now and not self.hold_writes:
            at, ident, when, due = self.writes[0]
            if when >= 0:
                beat = self.beats[0]
                for lane in range(strobes // 8):
                    strobe = beat >> self.width + 8 * lane & 0xFF
                    mask = sum(0xFF << 8 * i for i in range(8) if strobe >> i & 1)
                    if mask:
                        old = self.words.get(at + 8 * lane, 0)
                        self.words[at + 8 * lane] = old & ~mask | beat >> 64 * lane & mask
                self.writes[0][2] = -1
            if due <= now:
                self.writes.popleft()
                self.beats.popleft()
                d.walk_b_valid.value = 1
                d.walk_b.value = ident << 2 | 2 * self.bad_write
        for read in self.reads:
            if read.data is None and read.looks <= now:
                lanes = range(strobes // 8)
                read.data = sum(self.words.get(read.at + 8 * i, 0) << 64 * i for i in lanes)
                if any(read.at + 8 * i in self.bad for i in lanes):
                    read.data |= 2 << self.width
        d.walk_r_valid.value = 0
        if self.reads and self.reads[0].due <= now and self.reads[0].data is not None and not self.hold:
            read = self.reads.popleft()
            self.hold = self.once
            d.walk_r_valid.value = 1
            d.walk_r.value = read.ident << self.width + 2 | read.data
        self.ready = [not next(s) for s in self.stall]
        d.walk_ar_ready.value, d.walk_aw_ready.value, d.walk_w_ready.value = self.ready


def config(enable: bool = True, log2: int = LOG2, base: int = BASE_MIB) -> int:
    base_w = 14 + (CHANS - 1).bit_length()
    return KEEP[1] << 20 + base_w | KEEP[0] << 6 + base_w | base << 6 | log2 << 1 | enable


async def with_table(dut, r=None, stall: float = 0.0, latency: int = 30) -> tuple[Bench, Memory]:
    b = Bench(dut, r or rng(), stall, latency)
    memory = Memory(b, latency)
    await b.begin()
    dut.table_i.value = config()
    await b.wait(5)
    return b, memory


def map_table(b: Bench, va: int, frame: int, rights: int = R | W) -> object:
    return b.command(MAP, va, frame | rights | V, TABLE)


async def done(b: Bench, op: int, va: int, flags: int = TABLE) -> tuple[int, int]:
    c = b.command(op, va, flags=flags)
    await b.settle()
    return c.status, c.cpl


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_page_of_the_table_is_translated_without_the_host(dut):
    """All eight of a line, at both ends of the address space; then from the TLB, without a walk."""
    b, m = await with_table(dut)
    pages = [0x1000 * i for i in range(8)] + [(1 << 48) - 0x1000 * i for i in range(1, 9)]
    frames = {va: (i << 34 if i < CHANS else 0) | (0x12_3000 + i * PAGE) for i, va in enumerate(pages)}
    for va, frame in frames.items():
        m.put(va, frame)
    bursts = [b.push(RD, va + 0x40) for va in pages]
    await b.settle()
    assert [x.pa for x in bursts] == [frames[va] + 0x40 for va in pages]
    walks = m.walks
    assert walks == len(pages)
    bursts = [b.push(RD, va + 0x80) for va in pages]
    await b.settle()
    assert [x.pa for x in bursts] == [frames[va] + 0x80 for va in pages]
    assert m.walks == walks and not b.events
    await m.settle()

    assert all(m.entry(va) == encode(va, frame, R | W, 1) for va, frame in frames.items())
    # The first write takes the right from the table, and leaves the dirty bit there.
    bursts = [b.push(WR, va) for va in pages] + [b.push(WR, va + 64) for va in pages]
    await b.settle()
    assert [x.pa for x in bursts] == [frames[va] for va in pages] + [frames[va] + 64 for va in pages]
    assert (not b.events and len(pages) < m.walks - walks <= 2 * len(pages)) or m.walks - walks == len(pages)
    await m.settle()
    assert all(m.entry(va) == encode(va, frame, R | W, 3) for va, frame in frames.items())
    assert int(dut.idle_o.value) == 1


@cocotb.test(timeout_time=200, timeout_unit="us")
async def what_the_table_does_not_grant_is_an_event(dut):
    b, m = await with_table(dut)
    here = 0x7654_3210_0000
    m.put(here ^ 1 << 40, 0x9000)  # another page at the place of this one
    m.put(0x2000, 0xA000, rights=R)
    m.put(0x3000, 0xB000, rights=W, touched=3)
    b.push(RD, here)
    b.push(RD, 0x5000)
    await b.until(lambda: len(b.events) == 2)
    b.push(WR, 0x2040)
    await b.until(lambda: len(b.events) == 3)
    b.map(here, 0xC000)
    b.map(0x5000, 0xD000)
    b.command(DENY, 0x2000)
    await b.settle()
    b.push(RD, 0x3000)
    await b.until(lambda: len(b.events) == 4)
    b.command(DENY, 0x3000)
    await b.settle()
    assert sorted(e[1:] for e in b.events) == sorted(
        [(MISS, 0, 0, here), (MISS, 0, 0, 0x5000), (PERM, 1, 0, 0x2040), (PERM, 0, 0, 0x3000)]
    )
    assert [x.pa for x in b.out[RD]] == [0xC000, 0xD000, ERR] and b.out[WR][0].pa == ERR | 0x40
    assert m.entry(0x2000) & 0xFF == 0 and m.entry(0x3000) & 0xFF == 3


@cocotb.test(timeout_time=400, timeout_unit="us")
async def a_damaged_entry_is_an_event_and_never_a_translation(dut):
    b, m = await with_table(dut, latency=4)
    va = 0x12_3456_7000
    good = encode(va, 0x9000, R | W)

    async def refused(word: int, why: str) -> None:
        m.words[m.place(va)] = word
        x = b.push(RD, va)
        await b.until(lambda: b.events, what=why)
        assert [e[1:] for e in b.events] == [(EV_TABLE, 0, 0, va)], why
        b.command(DENY, va)
        await b.settle()
        assert x.pa == ERR, why
        b.events.clear()

    for bit in range(8, 64):
        await refused(good ^ 1 << bit, f"bit {bit}")
    # Right check bits, but a page that is not there, or kept from slots.
    for frame in (CHANS * CHAN - PAGE, KEEP[0] * BIG, KEEP[1] * BIG - PAGE, 3 * CHAN + KEEP[0] * BIG):
        if frame == CHANS * CHAN - PAGE:
            dut.chan_mib_i.value = CHAN_MIB - 1
        await refused(encode(va, frame, R | W), f"frame {frame:#x}")
        dut.chan_mib_i.value = CHAN_MIB
    for frame in (KEEP[0] * BIG - PAGE, KEEP[1] * BIG):
        m.put(va, frame)
        x = b.push(RD, va)
        await b.settle()
        assert x.pa == frame
        await done(b, UNMAP, va, 0)
    m.bad.add(m.place(va))
    await refused(good, "an error response")
    m.bad.clear()
    # A command finds it damaged, and removes it.
    m.words[m.place(va)] = good ^ 1 << 40
    assert await done(b, SCAN, va) == (OK, ACCESSED | DIRTY | DAMAGED)
    assert await done(b, UNMAP, va) == (OK, ACCESSED | DIRTY | DAMAGED)
    assert m.entry(va) == 0
    assert await done(b, UNMAP, va) == (NOT_FOUND, 0)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def commands_keep_the_table(dut):
    b, m = await with_table(dut)
    va, frame = 0x5432_1000_7000, 3 * CHAN + 0x55_5000
    c = map_table(b, va, frame)
    await b.settle()
    assert c.status == OK and not c.cpl and m.entry(va) == encode(va, frame, R | W)
    assert await done(b, SCAN, va) == (OK, 0)
    x = b.push(RD, va)
    await b.settle()
    assert x.pa == frame and not m.walks - 1, "the command has brought it to the TLB"
    assert await done(b, SCAN, va) == (OK, ACCESSED)
    assert await done(b, SCAN, va) == (OK, 0)
    x = b.push(WR, va)
    await b.settle()
    assert x.pa == frame and not b.events
    await m.settle()
    assert m.entry(va) == encode(va, frame, R | W, 3)
    assert await done(b, SCAN, va) == (OK, ACCESSED | DIRTY)
    assert m.entry(va) == encode(va, frame, R | W, 2)
    assert await done(b, SCAN, va) == (OK, DIRTY)
    # Other pages at the same place do not mind.
    assert await done(b, UNMAP, va ^ 1 << 45) == (NOT_FOUND, 0)
    assert await done(b, UNMAP, va) == (OK, DIRTY)
    assert m.entry(va) == 0
    assert await done(b, UNMAP, va) == (NOT_FOUND, 0)
    # Fewer rights, in place.
    map_table(b, va, frame)
    b.push(WR, va)
    await b.settle()
    map_table(b, va, frame, R)
    await b.settle()
    x = b.push(WR, va)
    await b.until(lambda: b.events)
    assert b.events[0][1:3] == (PERM, 1)
    b.command(DENY, va)
    await b.settle()
    assert x.pa & ERR and m.entry(va) == encode(va, frame, R)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def commands_for_the_table_that_it_cannot_hold_are_refused(dut):
    b, m = await with_table(dut)
    bad = [
        b.command(MAP, 0x20_0000, BIG * 16 | R | V, TABLE | HUGE),
        b.command(MAP, 0x1000, 0x9000 | R | HOSTPTE | V, TABLE),
        b.command(MAP, 0x1000, KEEP[0] * BIG | R | V, TABLE),
        b.command(MAP, 0x1000, KEEP[0] * BIG | R | V, 0),
        b.command(MAP, 0x20_0000, (KEEP[1] - 1) * BIG | R | V, HUGE),
        b.command(MAP, 0x1000, CHANS * CHAN | R | V, TABLE),
        b.command(UNMAP, 0x1001, 0, TABLE),
        b.command(UNMAP, 0x20_0000, 0, TABLE | HUGE),
    ]
    host = b.command(MAP, 0x1000, KEEP[0] * BIG | R | HOSTPTE | V, 0)
    await b.settle()
    assert [c.status for c in bad] == [BAD_ARG] * len(bad) and host.status == OK
    assert not m.words
    # Nothing is held up by what was refused.
    m.put(0x4000, 0x9000)
    x = b.push(RD, 0x4000)
    await b.settle()
    assert x.pa == 0x9000
    dut.table_i.value = config(enable=False)
    c = map_table(b, 0x8000, 0x9000)
    await b.settle()
    assert c.status == BAD_ARG
    b.push(RD, 0x5000)
    walks = m.walks
    await b.until(lambda: b.events)
    assert m.walks == walks
    b.command(DENY, 0x5000)
    await b.settle()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def walks_displace_no_entry_of_the_host(dut):
    b, m = await with_table(dut)
    ways, sets = int(dut.PageWays.value), int(dut.PageSets.value)
    kept = [(1 + i * sets) * PAGE for i in range(ways)]
    for va in kept:
        b.map(va, va)
    await b.settle()
    for va in kept:
        b.push(WR, va)
    await b.settle()
    other = (1 + ways * sets) * PAGE
    m.put(other, 0x9000)
    x = b.push(RD, other)
    await b.until(lambda: b.events)
    assert b.events[0][1:] == (MISS, 0, 0, other)
    c = map_table(b, other, 0x9000)
    await b.settle()
    assert x.pa == 0x9000 and c.cpl & VICTIM and c.info in kept
    assert [(await done(b, SCAN, va, 0))[1] for va in kept if va != c.info] == [ACCESSED | DIRTY] * (ways - 1)
    # In turn over the entries of the table: without a word.
    for i in range(ways + 1, 3 * ways):
        va = (1 + i * sets) * PAGE
        m.put(va, va)
        x = b.push(RD, va)
        await b.settle()
        assert x.pa == va
    assert len(b.events) == 1
    for i in range(3 * ways, 4 * ways):
        c = map_table(b, (1 + i * sets) * PAGE, 0x9000)
        await b.settle()
        assert not c.cpl & VICTIM or c.info in kept


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def an_unmap_at_any_moment_of_walks_is_exact(dut):
    """Nothing is translated to the old frame once it has completed, and it tells of every write that was."""
    r = rng()
    for _ in range(150):
        b, m = await with_table(dut, r, stall=r.choice((0, 0.2)), latency=r.choice((2, 10, 40)))
        va, old, new = 0x7000_0000, 0x10_0000, 0x20_0000
        map_table(b, va, old)
        await b.settle()
        if r.random() < 0.5:
            await done(b, UNMAP, va, 0)  # only the TLB's
        for i in range(12):
            m.put(0x1000 * i, 0x1000 * i, touched=r.choice((0, 3)))

        def event(cause: int, is_write: int, source: int, at: int) -> None:
            assert at & -PAGE == va  # noqa: B023
            map_table(b, va, new)  # noqa: B023

        b.event = event
        for _ in range(r.randrange(1, 20)):
            b.push(r.choice((RD, WR)), r.choice((va, 0x1000 * r.randrange(12))))
        await b.wait(r.randrange(200))
        c = b.command(UNMAP, va, flags=TABLE)
        await b.until(lambda: c.ended)  # noqa: B023
        for _ in range(r.randrange(10)):
            b.push(r.choice((RD, WR)), va)
        await b.settle()
        mine = [x for lane in (RD, WR) for x in b.out[lane] if x.va & -PAGE == va]
        for x in mine:
            assert x.pa in (old, new) and (x.left <= c.ended or x.pa == new), "translated after its end"
        wrote = any(x.lane == WR and x.pa == old for x in mine)
        assert not wrote or c.cpl & DIRTY, "a write was lost"
        b.end()


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def a_read_and_a_write_of_a_clean_page_at_once_leave_it_dirty(dut):
    """Their walks may both have read the entry before either wrote to it."""
    r = rng()
    for _ in range(100):
        b, m = await with_table(dut, r, latency=r.choice((2, 10, 40)))
        va, frame = 0x7000_0000, 0x9000
        m.put(va, frame)
        lanes = r.choice(((WR, RD), (RD, WR)))
        bursts = []
        for lane in lanes:
            bursts.append(b.push(lane, va))
            await b.wait(r.randrange(8))
        await b.settle()
        await m.settle()
        assert [x.pa for x in bursts] == [frame] * 2 and m.entry(va) == encode(va, frame, R | W, 3)
        b.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def many_walks_are_under_way(dut):
    """32 misses wait for memory, which answers none; then their translations enter, in order."""
    b, m = await with_table(dut, latency=1)
    bursts = [[b.push(lane, (lane * 64 + i) * PAGE + 0x10_0000) for i in range(40)] for lane in (RD, WR)]
    for x in (*bursts[RD], *bursts[WR]):
        m.put(x.va, x.va & -PAGE, touched=3)
    m.hold = True
    await b.until(lambda: len(m.reads) == 32)
    await b.wait(100)
    assert len(m.reads) == 32 and not b.out[RD] and not b.out[WR]
    m.hold = False
    for lane in (RD, WR):
        await all_out(b, lane, bursts[lane])
        assert [x.pa for x in bursts[lane]] == [x.va for x in bursts[lane]]
    assert not b.events


@cocotb.test(timeout_time=200, timeout_unit="us")
async def an_event_port_that_takes_nothing_delays_no_command_of_the_table(dut):
    b, m = await with_table(dut)
    b.block_evt = True
    bursts = [[b.push(lane, (1 + i + 64 * lane) * PAGE) for i in range(64)] for lane in (RD, WR)]
    await b.wait(1000)
    unmap = b.command(UNMAP, 0x7000_0000, flags=TABLE)
    maps = [map_table(b, (1 + i + 64 * lane) * PAGE, i * PAGE) for lane in (RD, WR) for i in range(64)]
    await b.until(lambda: not b.open_cmd and not b.todo_cmd, 20000)
    assert unmap.status == NOT_FOUND and {c.status for c in maps} == {OK} and not b.events
    # There is room for walks when events are taken.
    b.block_evt = False
    for lane in (RD, WR):
        await all_out(b, lane, bursts[lane], 20000)
        assert [x.pa for x in bursts[lane]] == [i * PAGE for i in range(64)]
    dut._log.info(f"{b.now} cycles, {m.walks} walks")


@cocotb.test(timeout_time=100, timeout_unit="us")
async def after_an_error_response_to_a_write_no_walk_translates(dut):
    b, m = await with_table(dut)
    m.put(0x1000, 0x9000)
    m.put(0x2000, 0xA000)
    m.bad_write = True
    x = b.push(RD, 0x1000)
    await b.settle()
    await b.wait(80)
    m.bad_write = False
    y = b.push(RD, 0x2000)
    await b.until(lambda: b.events)
    assert b.events[0][1] == EV_TABLE and x.pa == 0x9000
    b.command(DENY, 0x2000)
    await b.settle()
    assert y.pa & ERR
    b.events.clear()
    dut.table_i.value = config(enable=False)
    await b.wait(6)
    dut.table_i.value = config()
    await b.wait(6)
    y = b.push(RD, 0x2000)
    await b.settle()
    assert y.pa == 0xA000


@cocotb.test(timeout_time=400, timeout_unit="us")
async def a_command_sees_what_those_before_it_have_written(dut):
    """However close they follow one another."""
    r = rng()
    for _ in range(60):
        b, m = await with_table(dut, r, stall=r.choice((0, 0.2)), latency=r.choice((2, 10, 40)))
        pages = [0x7000_0000, 0x7000_0000 + (64 << 12), 0x7100_1000]
        there = dict.fromkeys(pages, 0)
        todo = []
        for i in range(1, 25):
            va = r.choice(pages[: r.randint(1, 3)])
            op = r.choice((MAP, UNMAP, UNMAP, SCAN))
            if op == MAP:
                todo.append((map_table(b, va, i * PAGE), OK))
                there[va] = i * PAGE
            else:
                todo.append((b.command(op, va, flags=TABLE), OK if there[va] else NOT_FOUND))
                if op == UNMAP:
                    there[va] = 0
        await b.settle()
        assert [c.status for c, _ in todo] == [status for _, status in todo]
        for va, frame in there.items():
            assert m.entry(va) & ~0xFF == (encode(va, frame, R | W) & ~0xFF if frame else 0)
        # What was removed stays so.
        gone = [va for va, frame in there.items() if not frame]
        for va in gone:
            b.push(RD, va)
        await b.until(lambda: len(b.events) == len(gone))  # noqa: B023
        assert not b.out[RD]
        b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_page_that_lacks_a_right_and_is_not_in_the_table_is_told_as_such(dut):
    b, m = await with_table(dut)
    b.map(0x2000, 0x9000, perm=R)
    await b.settle()
    x = b.push(WR, 0x2040)
    await b.until(lambda: b.events)
    assert m.walks and [e[1:] for e in b.events] == [(PERM, 1, 0, 0x2040)]
    b.map(0x2000, 0x9000)
    await b.settle()
    assert x.pa == 0x9040


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_table_that_is_not_in_memory_as_a_whole_is_not_used(dut):
    b, m = await with_table(dut)
    usual = BASE_MIB & (1 << 14) - 1  # of its channel
    bad = [
        (config(log2=LOG2 - 1), CHAN_MIB),
        (config(log2=27), CHAN_MIB),
        (config(log2=18, base=BASE_MIB | 1), CHAN_MIB),
        (config(log2=26, base=BASE_MIB), CHAN_MIB),
        (config(), usual),
        (config(log2=18), usual + 1),
    ]
    good = [
        (config(), usual + 1),
        (config(log2=18), usual + 2),
        (config(log2=18, base=BASE_MIB | 2), CHAN_MIB),
        (config(log2=26, base=3 << 14 | 512), 1024),
    ]
    for i, (table, mib) in enumerate(bad + good):
        dut.table_i.value = config(enable=False)
        dut.chan_mib_i.value = mib
        await b.wait(6)
        dut.table_i.value = table
        await b.wait(6)
        fits = i >= len(bad)
        c = map_table(b, 0x1000, 0x9000)
        await b.settle()
        assert c.status == (OK if fits else BAD_ARG), i
        assert len(m.words) == fits, i
        m.words.clear()
        walks = m.walks
        b.push(RD, 0x8_0000_5000)
        await b.until(lambda: b.events)
        assert m.walks - walks == fits and b.events[0][1] == MISS
        b.command(DENY, 0x8_0000_5000)
        b.command(UNMAP, 0x1000)
        await b.settle()
        b.events.clear()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def an_error_response_to_a_write_is_in_the_completion(dut):
    b, m = await with_table(dut)
    c = map_table(b, 0x2000, 0xA000)
    await b.settle()
    assert c.status == OK
    m.bad_write = True
    c = map_table(b, 0x1000, 0x9000)
    await b.settle()
    m.bad_write = False
    assert c.status == CARD_ERR
    # None can be trusted then, though the memory answers: not even the next ones.
    x = b.push(WR, 0x3000)
    await b.until(lambda: b.events)
    assert b.events[0][1] == EV_TABLE
    c = map_table(b, 0x3000, 0x9000)
    await b.settle_commands()
    assert c.status == CARD_ERR
    await b.until(lambda: len(b.events) == 2)
    b.command(DENY, 0x3000)
    await b.settle()
    assert x.pa == ERR
    assert await done(b, SCAN, 0x2000) == (OK, ACCESSED | DIRTY | DAMAGED)
    assert await done(b, UNMAP, 0x2000) == (OK, ACCESSED | DIRTY | DAMAGED)
    dut.table_i.value = config(enable=False)
    await b.wait(6)
    m.words.clear()
    dut.table_i.value = config()
    await b.wait(6)
    # The write of an OpUnmap, too.
    c = map_table(b, 0x1000, 0x9000)
    await b.settle()
    assert c.status == OK
    m.bad_write = True
    assert await done(b, UNMAP, 0x1000) == (OK, DAMAGED)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def an_event_behind_a_map_of_its_page_says_so(dut):
    """Also if the map completes later: its page has left the TLBs again, which nothing else tells."""
    b, _ = await with_table(dut)
    ways, sets = int(dut.PageWays.value), int(dut.PageSets.value)
    page, others = 0x1000, [(1 + i * sets) * PAGE for i in range(1, 2 * ways + 1)]
    b.map(0x2000, 0x8000)
    await b.settle()
    b.hold_done = [True, True]  # completions wait
    b.push(RD, 0x2000)
    b.push(RD, page)
    await b.until(lambda: b.events)
    maps = [map_table(b, page, 0x9000), *(b.map(va, va) for va in others)]
    await b.until(lambda: len(b.out[RD]) == 2 and not b.todo_cmd)
    await b.wait(100)
    x = b.push(RD, page)
    await b.until(lambda: len(b.events) == 2)
    assert not any(c.ended for c in maps) and b.events[1][1:] == (MISS, 0, 0, page)
    b.hold_done = [False, False]
    await b.settle_commands()
    first = maps[0].number
    assert [c.number for c in maps] == list(range(first, first + len(maps)))
    assert b.numbers == [first, first + len(maps)]
    c = map_table(b, page, 0x9000)
    await b.settle()
    assert x.pa == 0x9000 and c.number == first + len(maps)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def it_is_not_quiet_while_the_table_is_read_or_written(dut):
    b, m = await with_table(dut, latency=1)
    b.block_evt = True  # whether the host takes events does not matter
    quiet = lambda: int(dut.quiet_o.value)  # noqa: E731
    assert quiet()
    m.hold = True
    bursts = [[b.push(lane, (lane * 64 + i) * PAGE) for i in range(60)] for lane in (RD, WR)]
    await b.until(lambda: len(m.reads) == 32)
    b.abort = 1
    for lane in (RD, WR):
        await all_out(b, lane, bursts[lane])
    await b.settle()
    await b.wait(50)
    assert m.reads and not quiet()
    m.hold = False
    await b.until(quiet)
    assert not m.reads
    b.abort = 0
    b.block_evt = False
    # A write of an accessed bit, whose burst has left long ago.
    m.put(0x10_0000, 0x9000)
    m.hold_writes = True
    x = b.push(RD, 0x10_0000)
    await b.settle()
    await b.wait(50)
    assert x.pa == 0x9000 and m.writes and not quiet()
    m.hold_writes = False
    await b.until(quiet)
    assert not m.writes and m.entry(0x10_0000) & 1
    # Nothing follows then.
    walks = m.walks
    await b.wait(100)
    assert m.walks == walks and quiet()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def an_abort_that_is_over_before_a_miss_can_be_given_up_loses_it_not(dut):
    """Its walk ends during the abort, while the TLBs are held, as a write does not leave them."""
    b, m = await with_table(dut, latency=1)
    b.map(0x1000, 0x9000)
    await b.settle()
    m.hold = m.once = True
    b.block[WR] = True
    b.push(WR, 0x1000)
    b.command(SCAN, 0x1000, flags=TABLE)
    await b.until(lambda: len(m.reads) == 1)
    x = b.push(RD, 0x5040)
    await b.until(lambda: len(m.reads) == 2)
    m.hold = False
    await b.wait(20)
    assert len(m.reads) == 1
    b.abort = 1
    m.hold = False
    await b.wait(20)
    assert not m.reads and not b.events
    b.abort = 0
    await b.wait(20)
    assert x.pa is None
    b.block[WR] = False
    m.hold = m.once = False
    await b.until(lambda: b.events)
    assert b.events[0][1:] == (MISS, 0, 0, 0x5040)
    b.map(0x5000, 0xA000)
    await b.settle()
    assert x.pa == 0xA040


@cocotb.test(timeout_time=400, timeout_unit="us")
async def an_abort_at_any_moment_of_walks_ends_all(dut):
    for delay in range(0, 120, 7):
        b, m = await with_table(dut, stall=0.1)
        for i in range(20):
            if i % 3:
                m.put(i * PAGE, i * PAGE)
        bursts = [[b.push(lane, i % 20 * PAGE) for i in range(1, 70)] for lane in (RD, WR)]
        await b.wait(delay)
        b.abort = 1
        for lane in (RD, WR):
            await all_out(b, lane, bursts[lane])
        await b.settle()
        b.abort = 0
        await b.wait(100)
        b.events.clear()
        b.event = lambda cause, is_write, source, va: map_table(b, va & -PAGE, va & -PAGE)  # noqa: B023
        later = [[b.push(lane, i % 20 * PAGE) for i in range(30)] for lane in (RD, WR)]
        for lane in (RD, WR):
            await all_out(b, lane, later[lane])
            assert [x.pa for x in later[lane]] == [x.va for x in later[lane]]
        b.end()


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def random_traffic_agrees_with_a_dictionary(dut):
    """A host maps what misses, in the table or without, and unmaps and scans at random, while walks fill the TLBs.

    The frame of each mapping is its own, so a burst that used a stale entry shows itself. A page that was written is always
    reported dirty; one that was not only if a write to it waits, or perhaps if one with the same low bits of its number was written then.
    """
    r = rng()
    b, m = await with_table(dut, r, stall=0.2, latency=20)
    sets = int(dut.PageSets.value)
    pages = [(i * sets + s) * PAGE for i in range(5) for s in range(0, 12)]
    serial = 64
    maps: dict[int, tuple[int, int, bool]] = {}  # serial -> page, rights, in the table
    live: dict[int, int] = {}  # page -> serial
    ended: dict[int, int] = {}
    began: dict[int, int] = {}
    wrote: dict[int, int] = {}  # serial -> first write
    asked: set[int] = set()
    watched: deque[tuple[Command, int]] = deque()

    def event(cause: int, is_write: int, source: int, va: int) -> None:
        nonlocal serial
        assert cause in (MISS, PERM)
        page = va & -PAGE
        if page in asked:
            return
        asked.add(page)
        in_table = live[page] in maps and maps[live[page]][2] if page in live else page // PAGE % 4 > 0
        rights = R | W if in_table or r.random() < 0.8 else W if is_write else R
        if page in live and in_table:
            # It is out of date, or what the table has does not fit: again, as it was.
            n = live[page]
            watched.append((map_table(b, page, n * PAGE, maps[n][1]), n))
            return
        n, serial = serial, serial + 1
        maps[n] = page, rights, in_table
        began[n] = b.now
        c = map_table(b, page, n * PAGE, rights) if in_table else b.map(page, n * PAGE, rights)
        watched.append((c, n))

    b.event = event
    checked = [0, 0]
    hits = dirty = extra = unmaps = 0
    for _ in range(40000):
        await RisingEdge(dut.clk_i)
        for lane in (RD, WR):
            if len(b.todo[lane]) < 4:
                b.push(lane, r.choice(pages) + r.randrange(0, PAGE, 64), 1, r.randrange(64))
            for x in b.out[lane][checked[lane] :]:
                checked[lane] += 1
                n = x.pa // PAGE
                page, rights, _ = maps[n]
                assert x.va & -PAGE == page and x.pa % PAGE == x.va % PAGE and rights & (W if lane else R)
                assert n not in ended or x.left <= ended[n], f"used map {n} after its end"
                if lane == WR:
                    wrote.setdefault(n, x.left)
                hits += 1
        if r.random() < 0.006 and live:
            page = r.choice(list(live))
            if page not in asked:
                asked.add(page)
                in_table = maps[live[page]][2]
                op = r.choice((UNMAP, UNMAP, SCAN))
                watched.append((b.command(op, page, flags=TABLE if in_table else 0), live[page]))
        while watched and watched[0][0].ended:
            c, n = watched.popleft()
            page, _, in_table = maps[n]
            asked.discard(page)
            if c.op == MAP:
                assert c.status == OK
                if c.cpl & VICTIM:
                    gone = live.get(c.info)
                    assert gone is not None and not maps[gone][2], "a page of the table is no victim"
                    if c.info != page:
                        ended[live.pop(c.info)] = c.ended
                    elif gone != n:
                        ended[gone] = c.ended
                live[page] = n
            elif c.op == UNMAP:
                if in_table:
                    assert c.status == OK
                if c.status == OK:
                    unmaps += 1
                    if wrote.get(n, c.ended) < c.ended:
                        assert c.cpl & DIRTY, f"a write by map {n} was lost"
                        dirty += 1
                    elif c.cpl & DIRTY:
                        extra += 1
                    ended[live.pop(page)] = c.ended
                else:
                    live.pop(page, None)
            elif in_table:
                assert c.status == OK
    dut._log.info(
        f"{hits} translated, {m.walks} walks, {unmaps} unmaps, {dirty} of written pages, {extra} of others said to be"
    )
    assert hits > 1000 and unmaps > 100 and dirty > 30 and extra <= unmaps // 3, (hits, unmaps, dirty, extra)


# 64 bits also have a proof, formal/mmu.sby.
@pytest.mark.parametrize("width", [512, pytest.param(64, marks=pytest.mark.long)])
def test_via_mmu_table(width):
    run("via_mmu_tb", __file__, defines={"VIA_DATA_W": width}, parameters={"PageSets": 16})
