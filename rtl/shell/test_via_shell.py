# SPDX-License-Identifier: Apache-2.0
"""via_shell: two slots at work through rings, DMA, paging, streams; breaking rules harms nobody else."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from via_tb import AxiMem, AxiRaw, rng, run, start, until

SLOTS, CHANS = 2, 2
SLOT, APP, BELL, STEP = 0x10000, 0x20000, 0x40000, 0x1000
FN, FN_STEP, FNS = 0x30000, 0x100, 6
NONE = 0xFFFFFFFF
RUN, RESET, ISOLATE = 1, 4, 8
BLK, XDMA = 2, 6
H2C, C2H, MAP, UNMAP, DENY, MOVE_IN, MOVE_OUT = 2, 3, 0x10, 0x11, 0x12, 0x20, 0x21
OK, ABORTED = 0, 6
MISS, BAD_BURST = 1, 0x12
EOP = 2
PAGE, CHAN = 4096, 1 << 34
HOST_SIZE, CARD_SIZE = 1 << 20, 1 << 18
LOG2 = 5  # entries of a ring
ENTRY = 32
PAGES = 16  # virtual pages of a slot; page p of slot s lies in channel p % CHANS


class Card:
    """The card in its computer: host memory, DRAM, BARs and interrupts."""

    def __init__(self, dut, stall: float = 0.0) -> None:
        self.dut, self.r = dut, rng()
        dut.loaded.value = 0
        for name in ("fn_valid", "fn_req", "fn_flr", "fn_bus_master"):
            getattr(dut, name).value = 0
        self.host = AxiMem(
            dut.u_host,
            "axi",
            stall=stall,
            latency=30,
            size=HOST_SIZE,
            overtake=True,
            early=True,
            ordered=True,
            r=self.r,
        )
        self.dram = [
            AxiMem(dut.gen_chan[c].u_mem, "axi", stall=stall, latency=8, size=CARD_SIZE, r=self.r)
            for c in range(CHANS)
        ]
        self.apps = [AxiRaw(dut.gen_slot[s].u_app, stall=stall, r=self.r) for s in range(SLOTS)]
        bus = AxiLiteBus.from_prefix(dut, "axil")
        self.bars = AxiLiteMaster(bus, dut.clk_i, dut.rst_ni, reset_active_level=False)
        self.irqs = [0] * (2 * SLOTS)
        self.fn_irqs: dict[tuple[int, int], int] = {}  # (function, vector)
        self.stopped = 0

    async def begin(self) -> None:
        await start(self.dut)
        self.dut.loaded.value = (1 << SLOTS) - 1
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        edge = RisingEdge(self.dut.clk_i)
        while True:
            await edge
            self.stopped += int(self.dut.stopped.value)
            if int(self.dut.fn_msix_valid.value):
                irq = int(self.dut.fn_msix_fn.value), int(self.dut.fn_msix_vector.value)
                self.fn_irqs[irq] = self.fn_irqs.get(irq, 0) + 1
            if int(self.dut.msix_valid.value):
                self.irqs[int(self.dut.msix_vector.value)] += 1

    async def read(self, addr: int) -> int:
        return int.from_bytes((await self.bars.read(addr, 4)).data, "little")

    async def write(self, addr: int, value: int) -> None:
        await self.bars.write(addr, value.to_bytes(4, "little"))

    async def fn(
        self,
        fn: int,
        addr: int,
        value: int | None = None,
        size: int = 4,
        *,
        cfg: bool = False,
        bar: int = 0,
    ) -> int:
        """An access to a BAR of a function or to its configuration space; a read of the whole word without `value`."""
        dut, write = self.dut, value is not None
        strb, data = (1 << size) - 1 << addr % 4, (value or 0) << 8 * (addr % 4)
        dut.fn_req.value = (
            fn << 57
            | cfg << 56
            | bar << 53
            | write << 52
            | (addr & ~3) << 36
            | (strb if write else 15) << 32
            | data
        )
        dut.fn_valid.value = 1
        await RisingEdge(dut.clk_i)
        await until(dut, lambda: int(dut.fn_rvalid.value), 500, f"function {fn} at {addr:#x}")
        dut.fn_valid.value = 0
        return int(dut.fn_rdata.value)


class Slot:
    """The driver of one slot: three rings, and pages brought in when they are missed."""

    def __init__(self, card: Card, index: int) -> None:
        self.card, self.index = card, index
        self.regs, self.bell = SLOT + index * STEP, BELL + index * STEP
        self.base = 0x10000 * (index + 1)  # of the rings in host memory
        self.cpl_head = self.evt_head = self.tail = 0
        self.open: set[int] = set()
        self.done: dict[int, tuple[int, int]] = {}  # tag -> status, bytes
        self.events: list[tuple[int, int]] = []  # cause, va
        self.tag = index << 24

    async def begin(self) -> None:
        for ring, offset in ((0x20, 0x1000), (0x30, 0x2000), (0x10, 0x0000)):
            self.card.host.mem[self.base + offset : self.base + offset + PAGE] = bytes(PAGE)
            await self.card.write(self.regs + ring, self.base + offset)
            await self.card.write(self.regs + ring + 8, 1 << 31 | LOG2)
        await self.card.write(self.regs, RUN)
        self._task = cocotb.start_soon(self._poll())

    def frame(self, page: int) -> int:
        """The card address of a virtual page."""
        return page % CHANS * CHAN + (self.index * PAGES + page) * PAGE

    async def submit(self, *commands: tuple[int, int, int, int, int]) -> list[int]:
        """Commands (op, addr0, addr1, length, flags), with one doorbell."""
        tags = []
        for op, addr0, addr1, size, flags in commands:
            self.tag += 1
            tags.append(self.tag)
            self.open.add(self.tag)
            word = size << 192 | addr1 << 128 | addr0 << 64 | self.tag << 32 | flags << 8 | op
            at = self.base + self.tail % (1 << LOG2) * ENTRY
            self.card.host.mem[at : at + ENTRY] = word.to_bytes(ENTRY, "little")
            self.tail += 1
        await self.card.write(self.bell, self.tail & 0xFFFF)
        return tags

    async def wait(self, tags: list[int], limit: int = 20000) -> list[int]:
        await until(
            self.card.dut, lambda: not self.open & set(tags), limit, f"slot {self.index}: {self.open}"
        )
        return [self.done[t][0] for t in tags]

    def _entry(self, offset: int, index: int) -> list[int] | None:
        at = self.base + offset + index % (1 << LOG2) * ENTRY
        raw = bytes(self.card.host.mem[at : at + ENTRY])
        words = [int.from_bytes(raw[8 * i : 8 * i + 8], "little") for i in range(4)]
        return words if words[3] >> 63 == 1 - (index >> LOG2 & 1) else None

    async def _poll(self) -> None:
        while True:
            await ClockCycles(self.card.dut.clk_i, 20)
            moved = False
            while words := self._entry(0x1000, self.cpl_head):
                self.cpl_head += 1
                moved = True
                tag = words[0] >> 32
                self.open.remove(tag)
                self.done[tag] = words[0] >> 16 & 0xFF, words[1] & 0xFFFFFFFF
            if moved:
                await self.card.write(self.bell + 4, 1 << 31 | self.cpl_head & 0xFFFF)
            while words := self._entry(0x2000, self.evt_head):
                self.evt_head += 1
                cause, va = words[0] & 0xFF, words[1]
                self.events.append((cause, va))
                await self.card.write(self.bell + 8, 1 << 31 | self.evt_head & 0xFFFF)
                if cause == MISS:
                    page = va // PAGE
                    await self.submit((MAP, page * PAGE, self.frame(page) | 7, 0, 0))

    async def job(self) -> None:
        """Data from host memory through card memory and the app's loop back to host memory."""
        r, mem = self.card.r, self.card.host.mem
        src, dst = 0x40000 + self.index * 0x40000, 0x60000 + self.index * 0x40000
        size = r.randrange(PAGE, 4 * PAGE)
        room = -(-size // 64) * 64
        data = r.randbytes(size)
        mem[src : src + size] = data
        mem[dst : dst + size] = bytes(size)
        pages = -(-size // PAGE)
        copies = [(H2C, src + i * PAGE, self.frame(i), min(PAGE, size - i * PAGE), 0) for i in range(pages)]
        assert await self.wait(await self.submit(*copies)) == [OK] * pages
        out = 8 * PAGE
        moves = await self.submit((MOVE_IN, 0, 0, size, EOP), (MOVE_OUT, out, 0, room, 0))
        assert await self.wait(moves) == [OK, OK] and [self.done[t][1] for t in moves] == [size, size]
        # Pages are taken from the app before they are read back.
        unmap = [(UNMAP, (8 + i) * PAGE, 0, 0, 0) for i in range(pages)]
        await self.wait(await self.submit(*unmap))
        back = [(C2H, dst + i * PAGE, self.frame(8 + i), min(PAGE, size - i * PAGE), 0) for i in range(pages)]
        assert await self.wait(await self.submit(*back)) == [OK] * pages
        assert mem[dst : dst + size] == data, f"slot {self.index}: wrong data"


async def card(dut, stall: float = 0.0) -> tuple[Card, list[Slot]]:
    c = Card(dut, stall)
    await c.begin()
    slots = [Slot(c, s) for s in range(SLOTS)]
    for s in slots:
        await s.begin()
    return c, slots


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def both_slots_work_at_once(dut):
    c, slots = await card(dut, 0.1)
    assert await c.read(0) == 0x56494144
    for _ in range(2):
        tasks = [cocotb.start_soon(s.job()) for s in slots]
        for task in tasks:
            await task
    for s in slots:
        assert {cause for cause, _ in s.events} == {MISS}
        await c.write(APP + s.index * STEP + 8, 100)
        assert await c.read(APP + s.index * STEP) == 108
        assert await c.read(s.regs + 0x88) > 0  # RD_MISS
        assert await c.read(s.regs + 4) & 0xF == 0b0011
    assert all(c.irqs), c.irqs
    before = c.stopped
    await ClockCycles(dut.clk_i, 100)
    assert c.stopped - before > 70, "the clock was not stopped while nothing happened"
    assert int(dut.quiet_o.value) == 1 and await c.read(0x28) == 0x30001


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def the_shell_adds_at_most_16_cycles_to_a_read(dut):
    """From the app's port to that of the channel and back, without the memory's own time. Guard, MMU and crossbar are on the way."""
    c, (slot, _) = await card(dut)
    page = 1
    assert await slot.wait(await slot.submit((MAP, page * PAGE, slot.frame(page) | 7, 0, 0))) == [OK]
    app, mem, edge = dut.gen_slot[0].u_app, dut.gen_chan[1].u_mem, RisingEdge(dut.clk_i)

    async def seen(side, name: str) -> int:
        """Cycles until a beat of the channel is accepted."""
        cycles = 0
        while not (
            int(getattr(side, f"axi_{name}valid").value) and int(getattr(side, f"axi_{name}ready").value)
        ):
            await edge
            cycles += 1
        return cycles

    for _ in range(3):
        await ClockCycles(dut.clk_i, 100)
        c.apps[0].read(page * PAGE + 64)
        await seen(app, "ar")
        there, _, back = await seen(mem, "ar"), await seen(mem, "r"), await seen(app, "r")
        assert (there, back) == (8, 7)


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def a_slot_that_breaks_rules_harms_itself_only(dut):
    c, (good, bad) = await card(dut, 0.1)
    for rnd in range(2):
        work = cocotb.start_soon(good.job())
        # The bad one has a move that waits for ever, and breaks a rule in the midst of it.
        moves = await bad.submit((MOVE_OUT, 8 * PAGE, 0, PAGE, 0), (MOVE_IN, 0, 0, 4 * PAGE, 0))
        app = c.apps[bad.index]
        app.write(5 * PAGE, [1] * 64)
        await ClockCycles(dut.clk_i, c.r.randrange(600))
        app.ar.append((1, 0x1004, 0, app.size, 1))
        assert ABORTED in await bad.wait(moves)
        await until(dut, lambda: any(cause == BAD_BURST for cause, _ in bad.events), 2000, "event")
        status = await c.read(bad.regs + 4)
        assert status & 8 and status >> 8 == BAD_BURST, f"round {rnd}: {status:#x}"
        await work
        # Started anew, it works like the other.
        app.clear()
        await c.write(bad.regs, RUN | RESET)
        await ClockCycles(dut.clk_i, 8)
        app.clear()
        await c.write(bad.regs, RUN)
        bad.events.clear()
        tasks = [cocotb.start_soon(s.job()) for s in (good, bad)]
        for task in tasks:
            await task
    assert {cause for cause, _ in good.events} == {MISS}


@cocotb.test(timeout_time=200, timeout_unit="us")
async def functions_answer_and_their_registers_keep_what_is_written(dut):
    c, _ = await card(dut)
    dut.fn_bus_master.value = (1 << FNS) - 1
    for f in (0, FNS + 1, 15):
        assert await c.fn(f, 0) == NONE
        await c.fn(f, 0, 1)
    for f in range(1, FNS + 1):
        regs = FN + f * FN_STEP
        present = await c.read(regs + 0x20) >> 9 & 1
        ident = await c.fn(f, 0, cfg=True)
        assert (ident == NONE) == (not present), f"function {f}: {ident:#x}"
        values = {
            0: 0xABCD_1033,
            4: 0x33221100 + f,
            8: 0x5544,
            0x0C: f << 16 | 100 + f,
            0x10: 0x1000 * f,
            0x14: f,
            0x18: 77 + f,
            0x1C: f,
        }
        for offset, value in values.items():
            await c.write(regs + offset, value)
        for offset, value in values.items():
            assert await c.read(regs + offset) == value
        assert await c.read(regs + 0x70) == NONE
    # The user BAR of XDMA reaches the registers of the slots that the management function has opened to it; the apps here respond with what
    # was written and the address.
    reach = FN + XDMA * FN_STEP + 0x50
    assert await c.fn(XDMA, 0x3000, bar=1) >> 16 == 0x1FC3
    for s in range(SLOTS):
        await c.write(APP + s * STEP, 100)
    assert [await c.fn(XDMA, s * STEP) for s in range(16)] == [NONE] * 16
    await c.write(reach, 0xFFFE)
    await c.fn(XDMA, 8, 1)
    await c.fn(XDMA, STEP + 8, 1)
    assert [await c.fn(XDMA, s * STEP) for s in range(16)] == [NONE, 9] + [NONE] * 14
    assert await c.read(APP) == 100 and await c.read(APP + STEP) == 9
    # A slot that is cut off is closed to everybody.
    await c.write(SLOT + STEP, RUN | ISOLATE)
    assert await c.fn(XDMA, STEP) == await c.read(APP + STEP) == NONE
    await c.write(SLOT + STEP, RUN)
    assert await c.fn(XDMA, STEP) == 9
    await c.write(reach, 0)
    assert await c.fn(XDMA, STEP) == NONE
    for f in range(1, FNS + 1):
        assert await c.read(FN + f * FN_STEP + 0x18) == 77 + f, "functions share a register"
        await c.write(FN + f * FN_STEP, 0)
    assert await c.read(FN) == await c.read(FN + (FNS + 1) * FN_STEP) == NONE
    await until(dut, lambda: int(dut.quiet_o.value), 3000, "quiet")


class Disk:
    """A driver of the block device: one request at a time on a split queue at `base` in host memory."""

    SIZE = 16
    IN, OUT = 0, 1

    def __init__(self, card: Card, base: int) -> None:
        self.card, self.base, self.mem = card, base, card.host.mem
        self.index, self.irqs = 0, 0

    async def begin(self) -> None:
        c = self.card
        self.mem[self.base : self.base + 0x4000] = bytes(0x4000)
        c.dut.fn_bus_master.value = 1 << BLK - 1
        await c.fn(BLK, 0x14, 0, 1)
        for _ in range(200):
            if not await c.fn(BLK, 0x14) & 0xFF:
                break
        for status in (1, 3):
            await c.fn(BLK, 0x14, status, 1)
        await c.fn(BLK, 8, 1)
        await c.fn(BLK, 0xC, 1)  # VIRTIO_F_VERSION_1
        await c.fn(BLK, 0x14, 11, 1)
        assert await c.fn(BLK, 0x14) & 0xFF == 11
        await c.fn(BLK, 0x16, 0, 2)
        await c.fn(BLK, 0x18, self.SIZE, 2)
        await c.fn(BLK, 0x1A, 1, 2)
        for i, offset in enumerate((0, 0x1000, 0x2000)):
            await c.fn(BLK, 0x20 + 8 * i, self.base + offset)
            await c.fn(BLK, 0x24 + 8 * i, 0)
        await c.fn(BLK, 0x1C, 1, 2)
        await c.fn(BLK, 0x14, 15, 1)
        self.index = 0

    async def request(self, kind: int, sector: int, data: bytes, limit: int = 20000) -> tuple[int, bytes]:
        """Status and data; `data` says how much is read, or what is written."""
        c, mem, base = self.card, self.mem, self.base
        head, buffer, status = base + 0x3000, base + 0x3100, base + 0x3010
        mem[head : head + 16] = (sector << 64 | kind).to_bytes(16, "little")
        mem[status] = 0xEE
        mem[buffer : buffer + len(data)] = data if kind == self.OUT else bytes(len(data))
        write = 2 * (kind == self.IN)
        for i, (addr, size, flags) in enumerate(
            ((head, 16, 1), (buffer, len(data), 1 | write), (status, 1, 2))
        ):
            entry = (i + 1) << 112 | flags << 96 | size << 64 | addr
            mem[base + 16 * i : base + 16 * i + 16] = entry.to_bytes(16, "little")
        avail = base + 0x1000
        mem[avail + 4 + self.index % self.SIZE * 2] = 0
        self.index += 1
        mem[avail + 2 : avail + 4] = (self.index & 0xFFFF).to_bytes(2, "little")
        irqs = c.fn_irqs.get((BLK, 1), 0)
        await c.fn(BLK, 0x3000, 0, 2)
        used = base + 0x2002
        await until(
            c.dut, lambda: int.from_bytes(mem[used : used + 2], "little") == self.index, limit, "used"
        )
        await until(c.dut, lambda: c.fn_irqs.get((BLK, 1), 0) > irqs, 2000, "interrupt")
        return mem[status], bytes(mem[buffer : buffer + len(data)])


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def a_disk_lies_in_one_slot_and_its_data_passes_another(dut):
    c, (store, loop) = await card(dut, 0.1)
    regs = FN + BLK * FN_STEP
    await c.write(regs + 0x10, PAGE)
    await c.write(regs + 0x18, 64)
    disk = Disk(c, 0xE0000)
    for kind in (0, 2):  # straight to the store; through the app of the other slot
        await c.write(regs, 1 | kind << 4 | loop.index << 8 | store.index << 12)
        await disk.begin()
        assert await c.read(regs + 0x20) == 0x20F | (kind == 2) << 8
        for i in range(3):
            data = c.r.randbytes(1536)
            assert (await disk.request(disk.OUT, 7 * i, data))[0] == 0
            va = PAGE + 7 * i * 512
            for at in (0, 1024):
                frame = store.frame((va + at) // PAGE)
                channel, offset = frame // CHAN, frame % CHAN + (va + at) % PAGE
                assert c.dram[channel].mem[offset : offset + 512] == data[at : at + 512]
            assert await disk.request(disk.IN, 7 * i, bytes(1536)) == (0, data)
    assert {cause for cause, _ in store.events} == {MISS} and not loop.events
    assert await c.read(regs + 0x40) == await c.read(regs + 0x44) == 6 and await c.read(regs + 0x48) == 0
    # The slot in the way is cut off: an error, no wait; then the one that holds the store. Both come back.
    for slot in (loop, store):
        await c.write(slot.regs, RUN | ISOLATE)
        assert (await disk.request(disk.IN, 0, bytes(512), 2000))[0] == 1
        await c.write(slot.regs, RUN | RESET)
        await c.write(slot.regs, RUN)
        assert (await disk.request(disk.IN, 0, bytes(512)))[0] == 0
    # A move on the stream that the disk has.
    assert await loop.wait(await loop.submit((MOVE_IN, 0, 0, 64, EOP))) == [ABORTED]
    await c.write(regs, 1 | store.index << 12)
    await loop.job()
    await until(dut, lambda: int(dut.quiet_o.value), 2000, "quiet")


DISK = "a_disk_lies_in_one_slot_and_its_data_passes_another"
OTHERS = [
    "both_slots_work_at_once",
    "the_shell_adds_at_most_16_cycles_to_a_read",
    "a_slot_that_breaks_rules_harms_itself_only",
    "functions_answer_and_their_registers_keep_what_is_written",
]


# Only with 512 bits there are virtio functions; one of them is enough here.
@pytest.mark.parametrize(
    ("data_w", "mask", "tests"),
    [(128, 0x7E, OTHERS), pytest.param(512, 1 << BLK, [DISK], marks=pytest.mark.long)],
)
def test_via_shell(data_w, mask, tests):
    run(
        "via_shell_tb",
        __file__,
        defines={
            "VIA_DATA_W": data_w,
            "VIA_NUM_SLOTS": SLOTS,
            "VIA_NUM_CHAN": CHANS,
            "VIA_NUM_STREAMS": 1,
            "VIA_FN_MASK": mask,
        },
        testcase=tests,
        sources=[
            "build/regs/via_regs.vlt",
            *(f"build/regs/via_{x}_regs_pkg.sv" for x in ("card", "slot", "fn", "bell")),
            "rtl/virtio/via_virtio_pkg.sv",
            "rtl/vdev/via_vdev_pkg.sv",
            "rtl/xdma/via_xdma_pkg.sv",
        ],
        cxx_opt="-O0",
    )
