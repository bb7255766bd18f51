# SPDX-License-Identifier: Apache-2.0
"""via_xdma as a driver sees it: identifiers, lists of descriptors, any alignment, write-back, interrupts, errors, hostile lists, stops,
resets, fixed addresses, the user BAR, and the full rate."""

import struct

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from via_tb import AxiMem, cycle, rng, run, stalls, start, until

MAGIC = 0xAD4B
STOP, COMPLETED, EOP = 1, 2, 16
RUN, IE_ALL, FIXED, WB = 1, 0x00FFFE7E, 1 << 25, 1 << 26
S_BUSY, S_STOPPED, S_COMPLETED, S_ALIGN, S_MAGIC, S_IDLE = 1, 2, 4, 8, 16, 64
S_READ, S_WRITE, S_DESC = 9, 14, 19
SIZE = 1 << 20
CHAN_BITS = 34
FULL = 1 << CHAN_BITS - 20  # MiB of a channel without a hole behind it
IE_DATA = 0x3FF << S_READ  # errors of data read and written
IE_VENDOR = 0x1F << S_DESC | 0x1F << S_READ | 0x1E  # what the vendor's driver enables
USER, DMA = 0, 1  # BARs
LISTS = 0xC0000  # descriptors live here in host memory, data below


class Bench:
    """The function between two memories; a clock for time_i; every MSI-X message in `msgs`."""

    def __init__(self, dut, stall: float = 0.0, latency: int = 4) -> None:
        self.dut, self.r = dut, rng()
        self.beat = len(dut.host_wdata) // 8
        self.channels = int(dut.Channels.value)  # as many as there are DRAM channels
        dut.chan_mib_i.value = FULL
        dut.user_rvalid.value = 0
        dut.req_valid.value = 0
        dut.flr_i.value = 0
        dut.bus_master_i.value = 1
        dut.user_irq_i.value = 0
        dut.msix_ready_i.value = 1
        dut.time_i.value = 0
        self.bad_host: set[int] = set()
        self.bad_card: set[int] = set()
        self.host = AxiMem(
            dut, "host", latency=latency, stall=stall, size=SIZE, fails=lambda a: a // 4096 in self.bad_host
        )
        self.card = AxiMem(
            dut, "card", latency=latency, stall=stall, size=SIZE, fails=lambda a: a // 4096 in self.bad_card
        )
        self.msgs: list[int] = []
        self.acks: list[int] = []
        self.user_regs: dict[tuple[int, int], int] = {}  # by slot and address
        self.user_asked = 0
        cocotb.start_soon(self._watch(stalls(self.r, stall)))
        cocotb.start_soon(self._user())

    async def _user(self) -> None:
        """What lies behind the user BAR: answers in 256 cycles."""
        dut, edge = self.dut, RisingEdge(self.dut.clk_i)
        while True:
            await edge
            if dut.rst_ni.value == 0 or dut.user_valid.value == 0:
                continue
            self.user_asked += 1
            request, slot = int(dut.user_req.value), int(dut.user_slot.value)
            for _ in range(self.r.choice((0, 1, 5, 256))):
                await edge
                assert dut.user_valid.value == 1 and int(dut.user_req.value) == request, "not held"
            place = slot, request >> 33
            if request >> 32 & 1:
                self.user_regs[place] = request & 0xFFFFFFFF
            dut.user_rdata.value, dut.user_rvalid.value = self.user_regs.get(place, 0xFFFFFFFF), 1
            await edge
            dut.user_rvalid.value = 0
            await edge
            assert dut.user_valid.value == 0, "valid outlives the response"

    def card_has(self, addr: int) -> bool:
        """Whether the card has a byte there."""
        chan, offset = divmod(addr, 1 << CHAN_BITS)
        return chan < self.channels and offset < int(self.dut.chan_mib_i.value) << 20

    async def _watch(self, stall) -> None:
        dut, ready = self.dut, True
        while True:
            await RisingEdge(dut.clk_i)
            dut.time_i.value = cycle()
            if dut.rst_ni.value == 0:
                continue
            if ready and dut.msix_valid_o.value == 1:
                self.msgs.append(int(dut.msix_vector_o.value))
            if int(dut.user_irq_ack_o.value):
                self.acks.append(int(dut.user_irq_ack_o.value))
            ready = not next(stall)
            dut.msix_ready_i.value = ready

    async def _access(self, addr: int, write: int, data: int, strb: int, cfg: int = 0, bar: int = DMA) -> int:
        dut = self.dut
        dut.req_valid.value, dut.req_cfg.value, dut.req_write.value, dut.req_bar.value = 1, cfg, write, bar
        dut.req_addr.value, dut.req_strb.value, dut.req_wdata.value = addr, strb, data
        for _ in range(300 if bar == USER else 10):
            await RisingEdge(dut.clk_i)
            if dut.req_rvalid.value == 1:
                dut.req_valid.value = 0
                return int(dut.req_rdata.value)
        raise AssertionError(f"no response to an access of {addr:#x}")

    async def read(self, addr: int, cfg: int = 0) -> int:
        return await self._access(addr, 0, 0, 15, cfg)

    async def write(self, addr: int, data: int, strb: int = 15) -> None:
        await self._access(addr, 1, data, strb)

    async def user(self, addr: int, data: int | None = None, strb: int = 15) -> int:
        return await self._access(addr, data is not None, data or 0, strb, bar=USER)

    def desc(
        self,
        at: int,
        src: int,
        dst: int,
        length: int,
        ctl: int,
        nxt: int = 0,
        adj: int = 0,
        magic: int = MAGIC,
    ):
        self.host.mem[at : at + 32] = struct.pack(
            "<IIQQQ", magic << 16 | adj << 8 | ctl, length, src, dst, nxt
        )

    def list(self, at: int, items, last: int = STOP | COMPLETED, each: int = 0, block: int = 64) -> int:
        """Descriptors of `items` (src, dst, len) from `at` in blocks of `block`; says how many are adjacent first."""
        n = len(items)
        place = [at + 32 * i + (i // block) * 160 for i in range(n)]
        for i, (src, dst, length) in enumerate(items):
            end = min((i // block + 1) * block, n)
            if i + 1 == n:
                self.desc(place[i], src, dst, length, last | each)
            else:
                nxt_end = end if i + 1 < end else min(end + block, n)
                self.desc(place[i], src, dst, length, each, place[i + 1], nxt_end - (i + 2))
        return min(block, n) - 1

    async def go(self, c2h: int, at: int, adj: int, control: int = RUN | IE_ALL, ch: int = 0) -> None:
        base = (0x1000 if c2h else 0) + 0x100 * ch
        await self.write(base + 0x4080, at & 0xFFFFFFFF)
        await self.write(base + 0x4084, at >> 32)
        await self.write(base + 0x4088, adj)
        await self.write(base + 0x04, control)

    async def rest(self, c2h: int, limit: int = 3000, ch: int = 0) -> int:
        """Waits until the channel is not busy; its status."""
        for _ in range(limit):
            status = await self.read((0x1000 if c2h else 0) + 0x100 * ch + 0x40)
            if not status & S_BUSY:
                return status
            await ClockCycles(self.dut.clk_i, 3)
        raise AssertionError("the channel stays busy")

    async def flr(self) -> None:
        self.dut.flr_i.value = 1
        await RisingEdge(self.dut.clk_i)
        self.dut.flr_i.value = 0
        await ClockCycles(self.dut.clk_i, 2)
        await until(self.dut, lambda: self.dut.flr_busy_o.value == 0, 8000, "reset")

    async def still(self) -> None:
        await until(self.dut, lambda: self.dut.still_o.value == 1, 500, "still")
        assert self.dut.idle_o.value == 1


@cocotb.test(timeout_time=100, timeout_unit="us")
async def identifies_itself(dut):
    """The words by which a driver finds the blocks; registers that are not there read 0 and swallow writes."""
    b = Bench(dut)
    await start(dut)
    n = int(dut.Channels.value)
    ids = {0x0000: 0x1FC00006, 0x1000: 0x1FC10006, 0x2000: 0x1FC20006, 0x3000: 0x1FC30006}
    ids |= {0x4000: 0x1FC40006, 0x5000: 0x1FC50006, 0x6000: 0x1FC60006}
    for ch in range(4):
        for base in (0x0000, 0x1000, 0x4000, 0x5000):
            want = ids[base] | ch << 8 if ch < n else 0
            assert await b.read(base + 0x100 * ch) == want, hex(base + 0x100 * ch)
    for addr in (0x2000, 0x3000, 0x6000):
        assert await b.read(addr) == ids[addr]
    assert await b.read(0x4C) == 0x00010140
    assert await b.read(0, cfg=1) == 0x903F10EE
    assert await b.read(8, cfg=1) == 0x05800000
    assert await b.read(0x7C, cfg=1) >> 16 == 2 * n + 16 - 1
    # Two BARs of 64 KiB with addresses of 32 bits, and where the second has the MSI-X table and its pending bits.
    assert await b.read(0x10, cfg=1) == await b.read(0x14, cfg=1) == 0xFFFF0000
    assert await b.read(0x80, cfg=1) == 0x8001 and await b.read(0x84, cfg=1) == 0xC001
    for addr in (0x18, 0x34, 0x88, 0x90, 0x94, 0xFC):
        assert await b.read(addr, cfg=1) == 0
    for addr in (0x0800, 0x6ABC, 0x7000, 0xF000, 0x2100, 0x50):
        await b.write(addr, 0xFFFFFFFF)
        assert await b.read(addr) == 0
    # Bits that can be set, set and clear forms, and accesses that are not of a whole word.
    await b.write(0x04, 0xFFFFFFFE)
    assert await b.read(0x04) == IE_ALL | FIXED | WB
    await b.write(0x0C, 1 << 4 | FIXED | WB)
    assert await b.read(0x04) == IE_ALL & ~(1 << 4)
    await b.write(0x08, 1 << 4)
    await b.write(0x04, 0, strb=7)
    assert await b.read(0x08) == IE_ALL
    await b.write(0x90, 0xFFFFFFFF)
    await b.write(0x98, 0xF)
    assert await b.read(0x94) == IE_ALL & ~0xF
    await b.still()


def pieces(r, n: int, area: int, most: int, beat: int, aligned: bool = False):
    """`n` disjoint ranges of both memories below `area`."""
    step = area // n
    items = []
    for i in range(n):
        length = r.choice(
            (1, 2, beat - 1, beat, beat + 1, 2 * beat, r.randrange(1, most), r.randrange(1, most))
        )
        length = min(length, step - 2 * beat)
        room = step - length
        src, dst = r.randrange(room), r.randrange(room)
        if r.random() < 0.3:
            dst = min(dst // beat * beat + src % beat, room)
        if aligned:
            src, dst = src // beat * beat, dst // beat * beat
        items.append((i * step + src, i * step + dst, length))
    r.shuffle(items)
    return items


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def any_alignment(dut):
    """Lists of descriptors of any alignment and length, in one block and in many, both directions at once: every byte."""
    b = Bench(dut, stall=0.2)
    await start(dut)
    r = b.r
    for block in (64, 1, 5):
        b.host.mem[:] = r.randbytes(SIZE)
        b.card.mem[:] = r.randbytes(SIZE)
        want_card, want_host = bytearray(b.card.mem), None
        down = pieces(r, 24, 0x40000, 5000, b.beat)
        up = [(0x80000 + s, 0x60000 + d, n) for s, d, n in pieces(r, 24, 0x40000, 5000, b.beat)]
        # Up reads card memory above the range that down writes, and writes host memory above the range that down reads.
        lists = (LISTS, LISTS + 0x20000 + 32 * r.randrange(3))
        adj = [b.list(lists[0], down, block=block), b.list(lists[1], up, block=block)]
        for s, d, n in down:
            want_card[d : d + n] = b.host.mem[s : s + n]
        want_host = bytearray(b.host.mem)
        for s, d, n in up:
            want_host[d : d + n] = b.card.mem[s : s + n]
        await b.go(0, lists[0], adj[0])
        await b.go(1, lists[1], adj[1])
        for c2h in (0, 1):
            assert await b.rest(c2h) == S_STOPPED | S_COMPLETED
            assert await b.read(0x1000 * c2h + 0x48) == 24
            await b.write(0x1000 * c2h + 0x0C, RUN)
        assert b.card.mem == want_card
        assert b.host.mem == want_host
        assert await b.read(0x44) == S_STOPPED | S_COMPLETED | S_IDLE  # reading clears it
        assert await b.read(0x44) == 0
        await b.write(0x1040, S_COMPLETED)  # writing ones clears them
        assert await b.read(0x1040) == S_STOPPED | S_IDLE
    await b.still()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def poll_mode(dut):
    """The count is written back for descriptors that ask for it, after their data; with an error its top bit is set."""
    b = Bench(dut, stall=0.1)
    await start(dut)
    b.host.mem[:] = b.r.randbytes(SIZE)
    wb = 0x90004 + 4 * b.r.randrange(30)
    for c2h in (0, 1):
        base = 0x1000 * c2h
        before = bytes(b.host.mem)
        b.host.mem[wb - 4 : wb + 8] = bytes(12)
        await b.write(base + 0x88, wb)
        await b.write(base + 0x8C, 0)
        items = [(i * 512 + 3, 0x20000 + i * 512, 300) for i in range(8)]
        adj = b.list(LISTS, items)
        b.desc(LISTS + 32 * 3, *items[3], COMPLETED, LISTS + 32 * 4, 3)
        await b.go(c2h, LISTS, adj, RUN | WB)
        seen = []

        def ended(seen=seen, c2h=c2h):
            value = int.from_bytes(b.host.mem[wb : wb + 4], "little")
            if value and (not seen or seen[-1] != value):
                seen.append(value)
                if c2h and value == 8:  # data before its count
                    assert b.host.mem[0x20000 + 7 * 512 :][:300] == b.card.mem[7 * 512 + 3 :][:300]
            return value == 8

        await until(dut, ended, 3000, "write-back")
        # The write-back of the fourth may tell of a later one that ended meanwhile.
        assert seen[0] >= 4 and len(seen) == 2, seen
        assert await b.rest(c2h) == 0  # nothing is logged unless it is enabled
        assert b.host.mem[wb - 4 : wb] == bytes(4) and b.host.mem[wb + 4 : wb + 8] == bytes(4)
        await b.write(base + 0x04, 0)
        if not c2h:
            assert b.host.mem[:0x90000] == before[:0x90000]
    assert b.msgs == []
    # An error: the third descriptor is broken.
    b.desc(LISTS + 64, 0, 0, 64, 0, LISTS + 96, 4, magic=0xDEAD)
    await b.write(0x88, wb)
    await b.go(0, LISTS, 7, RUN | WB | IE_ALL)
    await until(
        dut, lambda: int.from_bytes(b.host.mem[wb : wb + 4], "little") == 0x80000002, 2000, "error bit"
    )
    assert await b.rest(0) == S_MAGIC
    await b.write(0x04, 0)
    # A place that has no memory: told in the status, nobody waits for it.
    await b.write(0x8C, 1 << 24)
    b.list(LISTS, [(0, 0, 64)])
    await b.go(0, LISTS, 0, RUN | WB | IE_ALL)
    await ClockCycles(dut.clk_i, 100)
    assert await b.rest(0) == S_COMPLETED | S_STOPPED | 1 << S_WRITE
    await b.write(0x04, 0)
    await b.still()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def interrupts(dut):
    """One message for each rise of a request that is enabled, with the vector of its register; masks hold it back."""
    b = Bench(dut, stall=0.2)
    await start(dut)
    n = int(dut.Channels.value)
    c2h = n  # bit of the first C2H channel
    vectors = [1] + [0] * (2 * n - 1)
    vectors[c2h] = 7
    words = [sum(v << 8 * i for i, v in enumerate(vectors[k : k + 4])) for k in range(0, 2 * n, 4)]
    for k, word in enumerate(words):
        await b.write(0x20A0 + 4 * k, word)
        assert await b.read(0x20A0 + 4 * k) == word
    await b.write(0x2014, 1 | 1 << c2h)
    await b.write(0x90, S_STOPPED | S_COMPLETED)
    await b.write(0x1090, S_COMPLETED)
    b.list(LISTS, [(0, 0, 100)])
    await b.go(0, LISTS, 0)
    await until(dut, lambda: b.msgs == [1], 500, "message")
    assert await b.read(0x2044) == 1 and await b.read(0x204C) == 1
    await b.write(0x2018, 1)  # as a handler does: disable, look, clear, enable
    assert await b.read(0x204C) == 0 and await b.read(0x2044) == 1
    assert await b.read(0x44) == S_STOPPED | S_COMPLETED
    await b.write(0x04, 0)
    await b.write(0x2014, 1)
    await ClockCycles(dut.clk_i, 20)
    assert b.msgs == [1]
    # Enabled only after the condition is there; a vector that the function does not have sends nothing.
    await b.write(0x2010, 0)
    await b.go(1, LISTS, 0)
    await b.rest(1)
    await ClockCycles(dut.clk_i, 20)
    assert b.msgs == [1]
    await b.write(0x2010, 1 << c2h)
    await until(dut, lambda: b.msgs == [1, 7], 100, "second message")
    await b.write(0x1098, S_COMPLETED)
    await b.write(0x20A0 + c2h // 4 * 4, 31 << 8 * (c2h % 4))
    await b.write(0x1094, S_COMPLETED)
    await ClockCycles(dut.clk_i, 20)
    assert b.msgs == [1, 7]
    # User interrupts.
    for k in range(4):
        await b.write(0x2080 + 4 * k, sum((4 * k + i) << 8 * i for i in range(4)))
    b.msgs.clear()
    await b.write(0x2004, 0x8005)
    dut.user_irq_i.value = 0xFFFF
    await until(dut, lambda: len(b.acks) == 3, 100, "acknowledgements")
    assert sorted(b.msgs) == [0, 2, 15] and sorted(b.acks) == [1, 4, 0x8000]
    assert await b.read(0x2040) == 0xFFFF and await b.read(0x2048) == 0x8005
    dut.user_irq_i.value = 0xFFFB
    await ClockCycles(dut.clk_i, 4)
    dut.user_irq_i.value = 0xFFFF
    await until(dut, lambda: len(b.acks) == 4, 100, "second rise")
    assert b.msgs[3:] == [2]
    await b.write(0x2008, 2)
    await until(dut, lambda: len(b.acks) == 5, 100, "enabled later")
    assert b.msgs[4:] == [1]
    # No message while bus master is off.
    dut.bus_master_i.value = 0
    await b.write(0x200C, 2)
    await b.write(0x2008, 2)
    await ClockCycles(dut.clk_i, 30)
    assert len(b.msgs) == 5
    dut.bus_master_i.value = 1
    await until(dut, lambda: len(b.msgs) == 6, 100, "bus master on")
    dut.user_irq_i.value = 0
    await b.still()


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def no_completion_is_missed_between_reads_of_the_status(dut):
    """A list without an end, and a driver that reads the status only when a message comes, as Linux' does for cyclic transfers: whenever the
    read is, a completion that it did not show sends another message."""
    b = Bench(dut)
    await start(dut)
    b.desc(LISTS, 0, 0, 64, COMPLETED, LISTS, 0)
    await b.write(0x2014, 1)
    await b.write(0x94, S_COMPLETED)
    await b.go(0, LISTS, 0)
    await until(dut, lambda: b.msgs != [], 500, "the first message")
    for clear_by_reading in (True, False):
        for _ in range(150):
            before = len(b.msgs)
            await ClockCycles(dut.clk_i, b.r.randrange(40))
            if clear_by_reading:
                assert await b.read(0x44) & S_COMPLETED
            else:
                assert await b.read(0x40) & S_COMPLETED
                await b.write(0x40, S_COMPLETED)
            await until(
                dut, lambda before=before: len(b.msgs) > before, 500, "the message of the next completion"
            )
    await b.write(0x0C, RUN)
    await b.rest(0)
    await b.read(0x44)
    await b.still()


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def errors_stop_the_channel(dut):
    """Each kind of error: its bit, the descriptors before it counted, nothing behind it moved, and the next list works."""
    b = Bench(dut, stall=0.2)
    await start(dut)
    r = b.r
    b.bad_host, b.bad_card = {50}, {60}
    far_card, far_host = b.channels << CHAN_BITS, 1 << 52

    def item(i):
        return (i * 700 + 5, 0x60000 + i * 700 + 9, 650)

    cases = [  # direction, what is done to the third descriptor, status
        (0, {"magic": 0xAD4C}, S_MAGIC),
        (0, {"src": 50 * 4096 + 100}, 1 << S_READ + 1),
        (0, {"src": 50 * 4096 - 300}, 1 << S_READ + 1),
        (0, {"dst": 60 * 4096 - 3}, 1 << S_WRITE + 1),
        (0, {"src": far_host}, 1 << S_READ),
        (0, {"src": far_host - 10}, 1 << S_READ),
        (0, {"src": (1 << 64) - 10}, 1 << S_READ),
        (0, {"dst": far_card - 649}, 1 << S_WRITE),
        (0, {"dst": 1 << 63}, 1 << S_WRITE),
        (0, {"dst": 1 << 62}, 1 << S_WRITE),
        (1, {"magic": 0}, S_MAGIC),
        (1, {"src": 60 * 4096 + 1}, 1 << S_READ + 1),
        (1, {"src": 1 << 63}, 1 << S_READ),
        (1, {"dst": 50 * 4096 + 1}, 1 << S_WRITE + 1),
        (1, {"dst": far_host + 5}, 1 << S_WRITE),
        (0, {"list": 50 * 4096}, 1 << S_DESC + 1),
        (1, {"list": far_host}, 1 << S_DESC),
        (1, {"list": LISTS + 16}, S_ALIGN),
    ]
    for c2h, fault, status in cases:
        b.host.mem[:LISTS] = r.randbytes(LISTS)
        b.card.mem[:] = r.randbytes(SIZE)
        to = b.host.mem if c2h else b.card.mem
        before = bytes(to)
        items = [item(i) for i in range(6)]
        done = 2
        if "list" in fault:
            adj = b.list(LISTS, items[:2])
            b.desc(LISTS + 32, *items[1], COMPLETED, fault["list"], 3)
            done = 2
        else:
            adj = b.list(LISTS, items)
            src, dst, length = items[2]
            b.desc(
                LISTS + 64,
                fault.get("src", src),
                fault.get("dst", dst),
                length,
                COMPLETED,
                LISTS + 96,
                2,
                fault.get("magic", MAGIC),
            )
        await b.write(0x1000 * c2h + 0x90, IE_ALL)
        await b.go(c2h, LISTS, adj)
        got = await b.rest(c2h)
        assert got & ~S_COMPLETED == status, (c2h, fault, hex(got), hex(status))
        assert await b.read(0x1000 * c2h + 0x48) == done, fault
        src_mem = b.card.mem if c2h else b.host.mem
        for i, (s, d, n) in enumerate(items):
            # A write that is refused comes back too late to hold the next descriptors.
            if i < 2:
                assert to[d : d + n] == src_mem[s : s + n], (fault, i)
            elif i > 2 and status != 1 << S_WRITE + 1:
                assert to[d : d + n] == before[d : d + n], (fault, i)
        assert await b.read(0x2044) == (1 << int(dut.Channels.value) if c2h else 1)
        await b.write(0x1000 * c2h + 0x04, 0)
        # The next list is as if nothing had been.
        b.list(LISTS, items[:1])
        await b.go(c2h, LISTS, 0)
        assert await b.rest(c2h) == S_STOPPED | S_COMPLETED, fault
        assert await b.read(0x1000 * c2h + 0x48) == 1
        assert to[items[0][1] :][:650] == src_mem[items[0][0] :][:650]
        await b.write(0x1000 * c2h + 0x04, 0)
        assert await b.read(0x1000 * c2h + 0x44) & S_STOPPED
    await b.still()


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def errors_of_data_that_are_not_enabled_do_not_stop(dut):
    """The engine goes on, nothing is logged; what could not be read, or leaves the memories, is not written, the rest is."""
    b = Bench(dut, stall=0.2)
    await start(dut)
    r = b.r
    b.bad_host, b.bad_card = {50}, {80}
    far = b.channels << CHAN_BITS
    items = [(i * 700 + 5, 0x60000 + i * 700 + 9, 650) for i in range(6)]
    most = min(4096, 256 * b.beat)  # bytes of a burst
    slave_only = IE_ALL & ~(2 << S_READ | 2 << S_WRITE)
    cases = [  # direction, third descriptor, control
        (0, (48 * 4096, 0x70000, 4 * 4096), IE_ALL & ~IE_DATA),
        (0, (48 * 4096 + 17, 0x70000 + 3, 4 * 4096 + 1), slave_only),
        (0, (50 * 4096 + 100, 0x70000, 64), IE_ALL & ~IE_DATA),
        (0, (0x8000, 79 * 4096 + 5, 2 * 4096), IE_VENDOR),
        (0, (0x8000, far, 64), IE_VENDOR),
        (0, (1 << 52, 0x8000, 64), IE_ALL & ~IE_DATA),
        (1, (78 * 4096 + 3, 0x70000 + 60, 4 * 4096), IE_ALL & ~IE_DATA),
        (1, (far - 10, 0x8000, 64), IE_ALL & ~IE_DATA),
        (1, (0x8000, 49 * 4096 + 5, 2 * 4096), IE_VENDOR),
        (1, (0x8000, 1 << 60, 64), IE_VENDOR),
    ]
    for c2h, third, control in cases:
        b.host.mem[:LISTS] = r.randbytes(LISTS)
        b.card.mem[:] = r.randbytes(SIZE)
        frm, to = (b.card, b.host) if c2h else (b.host, b.card)
        before, bad = bytes(to.mem), (b.bad_card if c2h else b.bad_host).copy().pop()
        asked = len(frm.reads), len(to.writes)
        adj = b.list(LISTS, [*items[:2], third, *items[3:]])
        base = 0x1000 * c2h
        await b.go(c2h, LISTS, adj, RUN | control)
        assert await b.rest(c2h) == (S_STOPPED | S_COMPLETED), (third, hex(control))
        assert await b.read(base + 0x48) == 6
        for s, d, n in (*items[:2], *items[3:]):
            assert to.mem[d : d + n] == frm.mem[s : s + n], third
        src, dst, length = third
        if src + length > SIZE or dst + length > SIZE:
            assert all(a < SIZE for _, a, _ in (*frm.reads[asked[0] :], *to.writes[asked[1] :])), third
            assert to.mem[:0x60000] == before[:0x60000] and to.mem[0x70000:LISTS] == before[0x70000:LISTS]
        else:
            written = 0
            for burst in range(dst // most * most, dst + length, most):
                at, end = max(dst, burst), min(dst + length, burst + most)
                s, n = src + at - dst, end - at
                touches = s < bad * 4096 + 4096 and s + n > bad * 4096
                beside = s < (bad + 1) * 4096 + b.beat and s + n > bad * 4096 - b.beat
                done = to.mem[at:end] == frm.mem[s : s + n]
                assert done or to.mem[at:end] == before[at:end], (third, hex(at))
                refused = to.fails(at)
                assert done != (touches or refused) or (beside and not touches), (third, hex(at))
                written += done
            assert written >= 2 or length == 64, third
        await b.write(base + 0x04, 0)
    # Each bit is for its own error.
    b.list(LISTS, [(50 * 4096, 0, 64)])
    await b.go(0, LISTS, 0, RUN | 2 << S_READ)
    assert await b.rest(0) == 2 << S_READ and await b.read(0x48) == 0
    await b.still()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_descriptor_stays_in_the_memory_that_is_there(dut):
    """A card address behind the memory of a channel is refused whatever the crossbar would make of it; up to its last byte it is not."""
    b = Bench(dut)
    await start(dut)
    r = b.r
    b.host.mem[:] = r.randbytes(SIZE)
    top = b.channels - 1 << CHAN_BITS  # of the last channel
    cases = [
        (1, at, n)
        for base in {0, top}
        for n in (1, 100, 5000)
        for at in range(base + (1 << 20) - n - 1, base + (1 << 20) + 2)
    ]
    cases = r.sample(cases, 60) if len(cases) > 60 else cases
    cases += [(1, base + at, 10) for base in {0, top} for at in (1 << 20, 1 << 30, 1 << 33, (1 << 34) - 10)]
    cases += [(3, top + (3 << 20) - 64, 64), (3, top + (3 << 20) - 64, 65), (0, 0, 1)]
    # From one channel to the next: only if the first has no hole.
    cases += [(mib, (1 << 34) - 100, 200) for mib in (FULL, FULL - 1, FULL // 2)]
    cases += [
        (1, (1 << 20) - 100, 1 << 27),
        (FULL, (b.channels << CHAN_BITS) - 100, 101),
        (FULL, (b.channels << CHAN_BITS) - 100, 100),
    ]
    for mib, at, n in cases:
        dut.chan_mib_i.value = mib
        for c2h in (0, 1):
            b.card.reads.clear()
            b.card.writes.clear()
            desc = (at, 0x1000, n) if c2h else (0x1000, at, n)
            b.list(LISTS, [desc])
            await b.go(c2h, LISTS, 0)
            status = await b.rest(c2h)
            whole = all(b.card_has(a) for a in (at, at + n - 1, *range(at, at + n, 1 << 20)))
            if whole:
                assert status == S_STOPPED | S_COMPLETED, (mib, hex(at), n, hex(status))
            else:
                assert status == 1 << (S_READ if c2h else S_WRITE), (mib, hex(at), n, hex(status))
            for _, addr, beats in b.card.reads + b.card.writes:
                assert whole and b.card_has(addr) and b.card_has(addr + beats * b.beat - 1), (mib, hex(at), n)
            await b.write(0x1000 * c2h + 0x04, 0)
    await b.still()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def fixed_addresses(dut):
    """Non-incrementing mode: every beat to, or from, the same card address; host addresses advance."""
    b = Bench(dut, stall=0.2)
    await start(dut)
    r, beat = b.r, b.beat
    at = 0x3000 + 3 * beat
    for n in (1, beat, 3 * beat, 9 * beat + beat // 2, 70 * beat, 4096 + 1):
        src = r.randrange(5000)
        b.host.mem[:LISTS] = r.randbytes(LISTS)
        b.card.mem[:] = r.randbytes(SIZE)
        want = bytearray(b.card.mem)
        for k in range(0, n, beat):
            part = b.host.mem[src + k : src + min(k + beat, n)]
            want[at : at + len(part)] = part
        b.card.writes.clear()
        b.list(LISTS, [(src, at, n)])
        await b.go(0, LISTS, 0, RUN | IE_ALL | FIXED)
        assert await b.rest(0) == S_STOPPED | S_COMPLETED and await b.read(0x48) == 1
        assert b.card.mem == want, n
        assert [(a, k) for _, a, k in b.card.writes] == [(at, 1)] * -(-n // beat)
        await b.write(0x04, 0)
        before, dst = bytes(b.host.mem), 0x40000 + r.randrange(5000)
        b.card.reads.clear()
        b.list(LISTS, [(at, dst, n)])
        await b.go(1, LISTS, 0, RUN | IE_ALL | FIXED)
        assert await b.rest(1) == S_STOPPED | S_COMPLETED
        assert b.host.mem[dst : dst + n] == (b.card.mem[at : at + beat] * -(-n // beat))[:n], n
        assert b.host.mem[:dst] == before[:dst] and b.host.mem[dst + n : LISTS] == before[dst + n : LISTS]
        assert {(a, k) for _, a, k in b.card.reads} == {(at, 1)}
        await b.write(0x1004, 0)
    # Less than a beat at any place in it; more must begin with one, or the list ends there with an error that is always told.
    for c2h in (0, 1):
        base = 0x1000 * c2h
        inside, across = [(0x5000, at + 1, beat - 1), (0x5000, at + 1, beat)]
        flip = [(d, s, n) for s, d, n in (inside, across)] if c2h else [inside, across]
        to = b.host.mem if c2h else b.card.mem
        frm = b.card.mem if c2h else b.host.mem
        b.list(LISTS, flip)
        await b.go(c2h, LISTS, 1, RUN | IE_ALL & ~IE_DATA | FIXED)
        assert await b.rest(c2h) == S_ALIGN and await b.read(base + 0x48) == 1
        s, d, n = flip[0]
        assert to[d : d + n] == frm[s : s + n]
        await b.write(base + 0x04, 0)
        # The last beat of the memory is as good as any; the one behind it is not there.
        dut.chan_mib_i.value = 1
        for place, status in (
            ((1 << 20) - beat, S_STOPPED | S_COMPLETED),
            (1 << 20, 1 << (S_READ if c2h else S_WRITE)),
        ):
            b.list(LISTS, [(place, 0x5000, 4 * beat) if c2h else (0x5000, place, 4 * beat)])
            await b.go(c2h, LISTS, 0, RUN | IE_ALL | FIXED)
            assert await b.rest(c2h) == status
            await b.write(base + 0x04, 0)
        dut.chan_mib_i.value = FULL
    await b.still()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_user_bar_leads_to_the_apps(dut):
    """Whole words, one access at a time, whatever the engine does meanwhile; nothing of it reaches the engine's registers."""
    b = Bench(dut, stall=0.2)
    await start(dut)
    b.list(LISTS, [(0, 0x3000, 60000)])
    await b.go(0, LISTS, 0)
    model: dict[int, int] = {}
    for _ in range(40):
        addr = b.r.choice(
            (0x0004, 0x0088, 0x1000, 0x2010, 0x3000, 0x4080, 0xF000 | b.r.randrange(0, 0x1000, 4))
        )
        if b.r.random() < 0.5:
            model[addr] = b.r.getrandbits(32)
            await b.user(addr, model[addr])
        else:
            assert await b.user(addr, strb=b.r.choice((15, 1, 12))) == model.get(addr, 0xFFFFFFFF)
    assert {slot << 12 | addr: v for (slot, addr), v in b.user_regs.items()} == model
    asked = b.user_asked
    await b.user(0x1000, 5, strb=1)
    await b.user(0x1000, 5, strb=12)
    assert b.user_asked == asked, "a write of less than a word"
    await b._access(0x3000, 0, 0, 15, bar=2)
    assert b.user_asked == asked, "there is no third BAR"
    assert await b.rest(0) == S_STOPPED | S_COMPLETED
    assert await b.read(0x04) == RUN | IE_ALL and await b.read(0x4080) == LISTS
    await b.flr()
    assert await b.user(0x0004) == model.get(4, 0xFFFFFFFF)
    await b.still()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def hostile_lists(dut):
    """Lists that loop, descriptors of no bytes, the longest, and rubbish: the channel stays under control and in its bounds."""
    b = Bench(dut, stall=0.1)
    await start(dut)
    r = b.r
    # A descriptor that is its own successor runs until it is stopped.
    b.desc(LISTS, 0, 0x3000, 96, COMPLETED, LISTS, 0)
    await b.go(0, LISTS, 0)
    await ClockCycles(dut.clk_i, 600)
    status = await b.read(0x40)
    assert status & S_BUSY and await b.read(0x48) > 5
    await b.write(0x0C, RUN)
    assert await b.rest(0) == S_COMPLETED | S_IDLE
    # Descriptors of no bytes count and move nothing, also in a loop, also with addresses that do not exist.
    before = bytes(b.card.mem)
    b.list(LISTS, [(1 << 60, 1 << 61, 0)] * 20 + [(0, 0x3000, 96)] + [(0, 0, 0)])
    await b.go(0, LISTS, 21)
    assert await b.rest(0) == S_STOPPED | S_COMPLETED
    assert await b.read(0x48) == 22
    assert b.card.mem == before  # the same 96 bytes
    await b.write(0x0C, RUN)
    b.desc(LISTS, 0, 0, 0, 0, LISTS, 63)
    b.host.mem[LISTS + 32 : LISTS + 4096] = b.host.mem[LISTS : LISTS + 32] * 127
    await b.go(1, LISTS, 63)
    await ClockCycles(dut.clk_i, 300)
    await b.write(0x100C, RUN)
    assert await b.rest(1) == S_IDLE
    # A list ends with its stop, though adjacent descriptors were promised and read.
    b.host.mem[:LISTS] = r.randbytes(LISTS)
    b.list(LISTS, [(i * 64, 0x8000 + i * 64, 64) for i in range(20)])
    b.desc(LISTS + 64, 128, 0x8080, 64, STOP, LISTS + 96, 16)
    b.card.mem[0x8000:0x9000] = bytes(0x1000)
    await b.go(0, LISTS, 19)
    assert await b.rest(0) == S_STOPPED
    await ClockCycles(dut.clk_i, 100)
    assert await b.read(0x48) == 3
    assert b.card.mem[0x8000:0x9000] == b.host.mem[:192] + bytes(0x1000 - 192)
    await b.write(0x0C, RUN)
    # 256 MiB less a byte, then second thoughts: stopping waits for a descriptor that was begun, a reset does not.
    b.desc(LISTS, 0, 0, (1 << 28) - 1, STOP)
    await b.go(0, LISTS, 0)
    await ClockCycles(dut.clk_i, 200)
    await b.write(0x0C, RUN)
    await ClockCycles(dut.clk_i, 100)
    assert await b.read(0x40) & S_BUSY
    await b.flr()
    assert await b.read(0x40) == 0
    await b.still()
    # Rubbish with the right magic: whatever happens, it ends or can be stopped, and only memory that exists is named (AxiMem checks bursts).
    dut.chan_mib_i.value = 1
    b.card.reads.clear()
    b.card.writes.clear()
    for _ in range(12):
        for i in range(64):
            edge = r.randrange(b.channels) << CHAN_BITS | (1 << 20) - r.randrange(3000)
            b.desc(
                LISTS + 32 * i,
                r.choice((r.randrange(SIZE), r.getrandbits(64), (1 << 52) - r.randrange(3000), edge)),
                r.choice((r.randrange(SIZE // 2), r.getrandbits(64), edge)),
                r.choice((r.randrange(3000), r.randrange(200))),
                r.choice((0, 0, 0, 1, r.getrandbits(8))),
                r.choice((LISTS + 32 * r.randrange(64), LISTS + r.randrange(4096), r.getrandbits(64))),
                r.getrandbits(6),
                r.choice((MAGIC,) * 20 + (0,)),
            )
        c2h = r.randrange(2)
        control = RUN | IE_ALL & r.choice((-1, ~IE_DATA)) | r.choice((0, 0, FIXED))
        await b.go(c2h, LISTS + 32 * r.randrange(64), r.randrange(64), control)
        await ClockCycles(dut.clk_i, r.randrange(400))
        await b.write(0x1000 * c2h + 0x0C, RUN)
        await b.rest(c2h)
        for _, addr, beats in b.card.reads + b.card.writes:
            assert b.card_has(addr) and b.card_has(addr + beats * b.beat - 1), hex(addr)
        for _, addr, _ in b.host.reads + b.host.writes:
            assert addr >> 52 == 0
    await b.still()


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def stops_anywhere(dut):
    """Run cleared at any moment: what was begun ends whole, the count says how much, and the next list starts clean, also at once."""
    b = Bench(dut, stall=0.2)
    await start(dut)
    r = b.r
    b.host.mem[:] = r.randbytes(SIZE)
    for turn in range(12):
        c2h = turn % 2
        base = 0x1000 * c2h
        src_mem, to = (b.card.mem, b.host.mem) if c2h else (b.host.mem, b.card.mem)
        src_mem[:0x20000] = r.randbytes(0x20000)
        to[0x40000:0x60000] = bytes(0x20000)
        items = [(i * 900 + 1, 0x40000 + i * 900 + 2, 800) for i in range(40)]
        adj = b.list(LISTS, items, each=COMPLETED, block=r.choice((64, 3)))
        await b.go(c2h, LISTS, adj)
        await ClockCycles(dut.clk_i, r.randrange(1, 500))
        await b.write(base + 0x0C, RUN)
        if turn % 3 != 2:
            status = await b.rest(c2h)
            count = await b.read(base + 0x48)
            assert status & S_IDLE or count == 40, (hex(status), count)
            for i, (s, d, n) in enumerate(items):
                want = src_mem[s : s + n] if i < count else bytes(n)
                assert to[d : d + n] == want, (turn, i, count)
        else:  # a new list without waiting
            b.list(LISTS + 0x10000, [(0, 0x50000, 4000)])
            await b.go(c2h, LISTS + 0x10000, 0)
            assert await b.rest(c2h) == S_STOPPED | S_COMPLETED
            assert await b.read(base + 0x48) == 1
            assert to[0x50000:][:4000] == src_mem[:4000]
        await b.write(base + 0x04, 0)
    # A new list asked for and given up while the old one ends is never begun.
    b.list(LISTS, [(0, 0x40000, 60000)])
    b.list(LISTS + 0x10000, [(0, 0x60000, 4000)])
    b.card.mem[0x60000:0x61000] = bytes(4096)
    await b.go(0, LISTS, 0)
    await ClockCycles(dut.clk_i, 150)
    await b.write(0x0C, RUN)
    await b.go(0, LISTS + 0x10000, 0)
    await b.write(0x0C, RUN)
    assert await b.rest(0) == S_STOPPED | S_COMPLETED | S_IDLE
    await b.still()
    assert await b.read(0x48) == 1 and b.card.mem[0x60000:0x61000] == bytes(4096)
    assert b.card.mem[0x40000:][:60000] == b.host.mem[:60000]


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def resets_and_bus_master(dut):
    """A function-level reset at any moment leaves nothing in flight and no register set; bus master off only holds."""
    b = Bench(dut, stall=0.3)
    await start(dut)
    r = b.r
    b.host.mem[:] = r.randbytes(SIZE)
    for _ in range(10):
        adj = b.list(LISTS, [(i * 900 + 1, 0x40000 + i * 900 + 2, 800) for i in range(40)], block=7)
        await b.write(0x90, IE_ALL)
        await b.write(0x2010, 3)
        await b.go(0, LISTS, adj, RUN | IE_ALL | WB)
        await b.go(1, LISTS, adj)
        await ClockCycles(dut.clk_i, r.randrange(1, 400))
        await b.flr()
        for mem in (b.host, b.card):
            assert mem.open_reads == 0 and mem.open_writes == 0
        for addr in (0x04, 0x40, 0x48, 0x90, 0x4080, 0x2010):
            assert await b.read(addr) == 0
        await b.still()
    dut.bus_master_i.value = 0
    b.list(LISTS, [(0, 0x70001, 5000)])
    await b.go(0, LISTS, 0)
    before = len(b.host.reads)
    await ClockCycles(dut.clk_i, 200)
    assert len(b.host.reads) == before and await b.read(0x40) & S_BUSY
    dut.bus_master_i.value = 1
    assert await b.rest(0) == S_STOPPED | S_COMPLETED
    assert b.card.mem[0x70001:][:5000] == b.host.mem[:5000]
    await b.still()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def credits_and_halt(dut):
    """With credits enabled a descriptor is used for each credit; halted, none is read."""
    b = Bench(dut)
    await start(dut)
    b.host.mem[:] = b.r.randbytes(SIZE)
    adj = b.list(LISTS, [(i * 100, 0x1000 + i * 100, 100) for i in range(10)])
    await b.write(0x6024, 1)
    assert await b.read(0x6020) == 1
    await b.go(0, LISTS, adj)
    await ClockCycles(dut.clk_i, 100)
    assert await b.read(0x48) == 0
    for given in (3, 2):
        await b.write(0x408C, given)
    await ClockCycles(dut.clk_i, 150)
    assert await b.read(0x48) == 5 and await b.read(0x408C) == 0
    await b.write(0x408C, 1023)
    await b.write(0x408C, 1023)
    assert await b.rest(0) == S_STOPPED | S_COMPLETED
    assert 1000 < await b.read(0x408C) <= 1023
    await b.write(0x0C, RUN)
    assert await b.read(0x408C) == 0
    await b.write(0x6028, 1)
    await b.write(0x6014, 1)
    assert await b.read(0x6010) == 1
    before = len(b.host.reads)
    await b.go(0, LISTS, adj)
    await ClockCycles(dut.clk_i, 100)
    assert len(b.host.reads) == before
    await b.write(0x6018, 0x10001)
    assert await b.rest(0) == S_STOPPED | S_COMPLETED
    await b.still()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def full_rate(dut):
    """Large transfers of 4 KiB pages move a beat a cycle, aligned or not, in both directions at once; the counters agree."""
    b = Bench(dut, latency=40)
    await start(dut)
    b.host.mem[:] = b.r.randbytes(SIZE)
    pages = 64 if b.beat == 64 else 8
    total = pages * 4096 // b.beat
    rates = {}
    for name, c2h, src_off, dst_off in (
        ("h2c", 0, 0, 0),
        ("c2h", 1, 0, 0),
        ("h2c unaligned", 0, 3, 0),
        ("c2h unaligned", 1, 0, 5),
    ):
        items = [(i * 4096 + src_off, 0x50000 + i * 4096 + dst_off, 4096) for i in range(pages)]
        adj = b.list(LISTS, items, block=32)
        mem = b.host if c2h else b.card
        mem.w_beats.clear()
        await b.write(0x1000 * c2h + 0xC0, 2 | 4)
        await b.go(c2h, LISTS, adj)
        await b.rest(c2h)
        await b.write(0x1000 * c2h + 0x04, 0)
        span = mem.w_beats[-1] - mem.w_beats[0] + 1
        rates[name] = total / span
        cycles = await b.read(0x1000 * c2h + 0xC4)
        beats = await b.read(0x1000 * c2h + 0xCC)
        assert beats == len(mem.w_beats) and span <= cycles <= span + 250 + 4096 // b.beat, (
            name,
            beats,
            cycles,
            span,
        )
    cocotb.log.info("beats a cycle: %s", {k: round(v, 3) for k, v in rates.items()})
    assert rates["h2c"] >= 0.97 and rates["c2h"] >= 0.97, rates
    # Two bursts of a page each touch a beat more than the page has.
    floor = 0.97 * (4096 // b.beat) / (4096 // b.beat + 1)
    assert min(rates.values()) >= floor, rates
    # Both directions at once.
    for c2h in (0, 1):
        b.list(LISTS + 0x10000 * c2h, [(i * 4096, 0x50000 + i * 4096, 4096) for i in range(pages)], block=32)
    b.card.w_beats.clear()
    b.host.w_beats.clear()
    await b.go(0, LISTS, 31 if pages > 31 else pages - 1)
    await b.go(1, LISTS + 0x10000, 31 if pages > 31 else pages - 1)
    for c2h in (0, 1):
        await b.rest(c2h)
    for mem in (b.card, b.host):
        assert total / (mem.w_beats[-1] - mem.w_beats[0] + 1) >= 0.95
    await b.still()


@pytest.mark.parametrize(("data_w", "channels"), [pytest.param(512, 1, marks=pytest.mark.long), (64, 2)])
def test_via_xdma(data_w, channels):
    run(
        "via_xdma_tb",
        __file__,
        sources=["rtl/virtio/via_virtio_pkg.sv", "rtl/xdma/via_xdma_pkg.sv"],
        defines={"VIA_DATA_W": data_w, "VIA_NUM_CHAN": channels},
        parameters={"Channels": channels},
    )
