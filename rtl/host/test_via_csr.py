# SPDX-License-Identifier: Apache-2.0
"""via_csr with via_app_regs: registers, doorbells, app windows, configuration port, by cocotbext-axi's AXI4-Lite manager; the apps' registers
from a second source, too."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from via_tb import rng, run, stalls, start, until

NONE = 0xFFFFFFFF
SLOTS, CHANS, STREAMS, DATA_W = 2, 4, 1, 128
SLOT, APP, BELL, STEP = 0x10000, 0x20000, 0x40000, 0x1000
CMD, CPL, EVT = 0x10, 0x20, 0x30


class Bench:
    def __init__(self, dut, pauses: float = 0.0) -> None:
        self.dut, self.r = dut, rng()
        zero = "time_i quiet_i app_open app_rvalid app_err cmd_on cmd_tail_err cmd_bus_err ring_on ring_err"
        zero += " user user_slot user_valid reach route_state"
        for name in (*zero.split(), "loaded", "icap_ready", "icap_done", "icap_status"):
            getattr(dut, name).value = 0
        for s in range(SLOTS):
            for port in (dut.stat, dut.cmd_head, dut.app_rdata):
                port[s].value = 0
            for i in range(8):
                dut.count[s][i].value = 0
            dut.meter[s].value = 0
        for i in range(2 * SLOTS):
            dut.ring_tail[i].value = 0
        self.bus = AxiLiteMaster(
            AxiLiteBus.from_prefix(dut, "axil"), dut.clk_i, dut.rst_ni, reset_active_level=False
        )
        w, rd = self.bus.write_if, self.bus.read_if
        for channel in (w.aw_channel, w.w_channel, w.b_channel, rd.ar_channel, rd.r_channel):
            channel.set_pause_generator(stalls(self.r, pauses))

    async def read(self, addr: int) -> int:
        response = await self.bus.read(addr, 4)
        assert response.resp == 0
        return int.from_bytes(response.data, "little")

    async def write(self, addr: int, value: int, size: int = 4) -> None:
        assert (await self.bus.write(addr, value.to_bytes(size, "little"))).resp == 0

    async def user(self, slot: int, addr: int, value: int | None = None) -> int:
        """An access of the second source."""
        d, edge = self.dut, RisingEdge(self.dut.clk_i)
        d.user.value = addr << 33 | (value is not None) << 32 | (value or 0)
        d.user_slot.value, d.user_valid.value = slot, 1
        for _ in range(1000):
            await edge
            if int(d.user_rvalid.value):
                d.user_valid.value = 0
                await edge
                return int(d.user_rdata.value)
        raise AssertionError(f"no response to an access of {addr:#x} in slot {slot}")


async def bench(dut, pauses: float = 0.0) -> Bench:
    b = Bench(dut, pauses)
    await start(dut)
    return b


@cocotb.test(timeout_time=100, timeout_unit="us")
async def the_card_says_what_it_is(dut):
    b = await bench(dut)
    assert await b.read(0x00) == 0x56494144
    assert await b.read(0x04) == 0x00020004
    assert await b.read(0x08) == (DATA_W // 8).bit_length() - 1 << 24 | STREAMS << 16 | CHANS << 8 | SLOTS
    assert await b.read(0x0C) == 250000 and await b.read(0x18) == 1234
    assert await b.read(0x20) == 10 << 16 | 4 and await b.read(0x24) == 8 << 16 | 4
    dut.loaded.value, dut.quiet_i.value = 0b10, 1
    await ClockCycles(dut.clk_i, 1)
    assert await b.read(0x28) == 0x20001
    # What is read only stays.
    await b.write(0x00, 0)
    assert await b.read(0x00) == 0x56494144
    # Single bytes.
    await b.write(0x1C, 0x11223344)
    await b.write(0x1E, 0xAA, size=1)
    assert await b.read(0x1C) == 0x11AA3344


@cocotb.test(timeout_time=100, timeout_unit="us")
async def both_halves_of_the_time_belong_together(dut):
    b = await bench(dut)
    dut.time_i.value = 5 << 32 | 0xFFFFFFFF
    await ClockCycles(dut.clk_i, 1)
    assert await b.read(0x10) == 0xFFFFFFFF
    dut.time_i.value = 6 << 32
    await ClockCycles(dut.clk_i, 1)
    assert await b.read(0x14) == 5
    assert await b.read(0x10) == 0 and await b.read(0x14) == 6


@cocotb.test(timeout_time=200, timeout_unit="us")
async def places_without_a_register_read_ones(dut):
    b = await bench(dut, 0.2)
    for addr in (
        0x94,
        0x100,
        0xFFC,
        0x1000,
        0xF000,
        SLOT + 0x0C,
        SLOT + 0x54,
        SLOT + 0xB8,
        SLOT + 2 * STEP,
    ):
        await b.write(addr, 0x12345678)
        assert await b.read(addr) == NONE, f"{addr:#x}"
    for addr in (0x1F000, APP + 2 * STEP, 0x30000, BELL + 0xC, BELL + 2 * STEP, 0x4F000, 0x50000, 0xFFFFC):
        await b.write(addr, 0x12345678)
        assert await b.read(addr) == NONE, f"{addr:#x}"
    assert int(dut.ctrl[0].value) == int(dut.ctrl[1].value) == 0
    await ClockCycles(dut.clk_i, 3)
    assert int(dut.idle_o.value) == 1


@cocotb.test(timeout_time=200, timeout_unit="us")
async def page_tables_are_set_for_each_slot_and_kept_from_all(dut):
    b = await bench(dut, 0.1)
    base_w = len(dut.tables[0]) - 34
    for s in range(SLOTS):
        assert int(dut.tables[s].value) == 17 << 1, "no table after power-up"
        await b.write(SLOT + s * STEP + 0x40, 0x2345 + s)
        await b.write(SLOT + s * STEP + 0x44, 1 << 31 | 18 + s)
    await b.write(0x2C, 0x1234 << 16 | 0x0567)
    for s in range(SLOTS):
        want = 0x1234 << 20 + base_w | 0x567 << 6 + base_w | (0x2345 + s) << 6 | 18 + s << 1 | 1
        assert int(dut.tables[s].value) == want
        assert await b.read(SLOT + s * STEP + 0x40) == 0x2345 + s
        assert await b.read(SLOT + s * STEP + 0x44) == 1 << 31 | 18 + s
    assert await b.read(0x2C) == 0x1234 << 16 | 0x0567


@cocotb.test(timeout_time=200, timeout_unit="us")
async def weights_are_set_for_slots_and_engines(dut):
    """They are never 0. Walks of page tables have at least the largest weight of a slot."""
    b = await bench(dut, 0.1)

    def weights() -> list[int]:
        return [int(w.value) for w in dut.weights]

    assert weights() == [1] * (SLOTS + 3)
    await b.write(SLOT + 0x48, 9)
    await b.write(SLOT + STEP + 0x48, 0xFFFFFF00)
    await b.write(0x30, 0x5C)
    await ClockCycles(dut.clk_i, 3)
    assert weights() == [9, 1, 5, 12, 9]
    assert await b.read(SLOT + 0x48) == 9 and await b.read(SLOT + STEP + 0x48) == 0
    assert await b.read(0x30) == 0x5C


@cocotb.test(timeout_time=200, timeout_unit="us")
async def classes_rates_and_caps_are_set_for_each_slot(dut):
    b = await bench(dut, 0.1)
    assert [int(x.value) for x in dut.sched] == [0] * SLOTS
    assert int(dut.window.value) == await b.read(0x58) == 40
    await b.write(0x58, 0xF5)
    assert int(dut.window.value) == await b.read(0x58) == 0xF5
    for s in range(SLOTS):
        at = SLOT + s * STEP
        await b.write(at + 0x4C, 0xA1 + s << 8 | 2 >> s)
        await b.write(at + 0x50, 0x5B + s << 16 | 0x301 + s)
        assert await b.read(at + 0x4C) == 0xA1 + s << 8 | 2 >> s
        assert await b.read(at + 0x50) == 0x5B + s << 16 | 0x301 + s
    for s in range(SLOTS):
        limit, first = (2 >> s) >> 1 & 1, (2 >> s) & 1
        want = first << 27 | limit << 26 | 0xA1 + s << 18 | 0x301 + s << 8 | 0x5B + s
        assert int(dut.sched[s].value) == want


@cocotb.test(timeout_time=200, timeout_unit="us")
async def policy_quanta_and_shares_of_host_memory_are_set(dut):
    """Quanta that are too large count as the largest; a weight of 0 counts as 1."""
    b = await bench(dut, 0.1)
    longest = (min(4096 * 8 // DATA_W, 256)).bit_length() - 1
    await ClockCycles(dut.clk_i, 3)
    assert int(dut.share.value) == 4 << 4 | min(8, longest)
    assert int(dut.host_share.value) == 0x11111111
    await b.write(0x5C, 0xF0305001)
    await b.write(0x60, 0x3 << 16 | 0x2 << 12 | 1 << 8 | 0xA5)
    await ClockCycles(dut.clk_i, 3)
    assert int(dut.share.value) == 1 << 8 | 2 << 4 | 3
    assert int(dut.host_share.value) == 0xA5 << 32 | 0xF1315111
    await b.write(0x60, 0xF << 16 | 0xF << 12)
    await ClockCycles(dut.clk_i, 3)
    assert int(dut.share.value) == 6 << 4 | longest
    assert await b.read(0x5C) == 0xF0305001 and await b.read(0x60) == 0xFF000


@cocotb.test(timeout_time=200, timeout_unit="us")
async def counters_can_be_held_all_at_once(dut):
    """A wait in progress counts as far as it has come."""
    b = await bench(dut, 0.1)
    dut.time_i.value = 5 << 32 | 1000

    def count(base: int) -> None:
        for s in range(SLOTS):
            for i in range(8):
                dut.count[s][i].value = base + 16 * s + i
            beats = sum(
                base + 16 * s + 8 + i << 32 * i for i in range(4)
            )  # reads: card, host; writes: card, host
            waited = (base + 16 * s + 12) | (base + 16 * s + 13) << 32
            dut.meter[s].value = beats << 66 | waited << 2 | 0b01 << s
        for f in range(1, 4):
            for i in range(3):
                dut.fn_count[f][i].value = base + 64 + 4 * f + i

    async def check(base: int, time: int) -> None:
        for s in range(SLOTS):
            got = [await b.read(SLOT + s * STEP + 0x80 + 4 * i) for i in range(14)]
            want = [base + 16 * s + i for i in (*range(8), 8, 10, 9, 11, 12, 13)]
            want[12 + s] += time & 0xFFFFFFFF  # the one that waits
            assert got == want, (s, got, want)
        for f in range(1, 4):
            got = [await b.read(0x30000 + 0x100 * f + 0x40 + 4 * i) for i in range(3)]
            assert got == [base + 64 + 4 * f + i for i in range(3)]
        assert [await b.read(0x50), await b.read(0x54)] == [time & 0xFFFFFFFF, time >> 32]

    count(100)
    await check(100, 5 << 32 | 1000)
    await b.write(0x4C, 1)
    count(1000)
    dut.time_i.value = 6 << 32 | 7
    await check(100, 5 << 32 | 1000)
    assert await b.read(0x4C) == 1
    await b.write(0x4C, 0)
    await check(1000, 6 << 32 | 7)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def codes_of_the_system_monitor_are_read(dut):
    b = await bench(dut, 0.1)
    starts = 0

    async def watch() -> None:
        nonlocal starts
        while True:
            await RisingEdge(dut.clk_i)
            starts += int(dut.sysmon_start.value)

    cocotb.start_soon(watch())
    codes = [0x1000 + 7 * i for i in range(13)]
    for value, code in zip(dut.sysmon_value, codes, strict=True):
        value.value = code
    for state in range(8):
        dut.sysmon.value = state
        busy, valid, failed = state >> 2, state >> 1 & 1, state & 1
        assert await b.read(0x68) == 0xA0 | failed << 2 | valid << 1 | busy  # a model of a SYSMONE4
    assert await b.read(0x6C) == 45678
    for c in range(4):
        last, high, low = codes[3 * c : 3 * c + 3]
        assert [await b.read(0x70 + 8 * c + i) for i in (0, 4)] == [last, high << 16 | low]
    assert await b.read(0x90) == codes[12]
    assert starts == 0
    await b.write(0x64, 0)
    await b.write(0x64, 1)
    await b.write(0x68, 1)
    await ClockCycles(dut.clk_i, 5)
    assert starts == 1 and await b.read(0x64) == 0


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_route_is_set_once_by_the_write_of_its_source(dut):
    b = await bench(dut, 0.1)
    sets: list[int] = []

    async def watch() -> None:
        while True:
            await RisingEdge(dut.clk_i)
            if int(dut.route_set.value):
                sets.append(int(dut.route.value))

    cocotb.start_soon(watch())
    await b.write(0x34, 0x1A5)  # sink: stream 5 of slot 10
    assert not sets
    await b.write(0x38, 0x8000_0372)  # from the board's port of function 2, now
    await b.write(0x38, 0x123)  # from stream 3 of slot 2
    await ClockCycles(dut.clk_i, 3)
    assert sets == [1 << 20 | 0x372 << 10 | 0x1A5, 0x123 << 10 | 0x1A5]
    dut.route_state.value = 1 << 10 | 0x123
    assert await b.read(0x3C) & 0x8000_03FF == 0x8000_0123
    dut.route_state.value = 0x203
    assert await b.read(0x3C) == 0x203 | 1 << 16  # with one stream of each slot


@cocotb.test(timeout_time=200, timeout_unit="us")
async def slot_registers_reach_their_slot(dut):
    b = await bench(dut, 0.1)
    for s in range(SLOTS):
        base = SLOT + s * STEP
        assert int(dut.ctrl[s].value) == 0, "a slot does not run after power-up"
        await b.write(base, 0b1011)
        assert int(dut.ctrl[s].value) == 0b1011 and int(dut.ctrl[1 - s].value) == 0
        assert await b.read(base) == 0b1011
        await b.write(base, 0)
        dut.stat[s].value = 0x13 << 4 | 0b1101
        dut.cmd_head[s].value = 0xABC0 + s
        dut.ring_tail[2 * s].value, dut.ring_tail[2 * s + 1].value = 0x1230 + s, 0x4560 + s
        for i in range(8):
            dut.count[s][i].value = 0x1000 * s + i + 1
        await ClockCycles(dut.clk_i, 1)
        assert await b.read(base + 4) == 0x13 << 8 | 0b1101
        assert await b.read(base + CMD + 12) == 0xABC0 + s
        assert await b.read(base + CPL + 12) == 0x1230 + s and await b.read(base + EVT + 12) == 0x4560 + s
        assert [await b.read(base + 0x80 + 4 * i) for i in range(8)] == [0x1000 * s + i + 1 for i in range(8)]
        for bit, port, index in (
            (0, dut.cmd_on, s),
            (1, dut.ring_on, 2 * s),
            (2, dut.ring_on, 2 * s + 1),
            (8, dut.cmd_tail_err, s),
            (9, dut.cmd_bus_err, s),
            (10, dut.ring_err, 2 * s),
            (11, dut.ring_err, 2 * s + 1),
        ):
            port.value = 1 << index
            await ClockCycles(dut.clk_i, 1)
            assert await b.read(base + 8) == 1 << bit
            port.value = 0


@cocotb.test(timeout_time=200, timeout_unit="us")
async def rings_and_doorbells(dut):
    b = await bench(dut)
    arms: list[int] = []

    async def watch() -> None:
        edge = RisingEdge(dut.clk_i)
        while True:
            await edge
            if int(dut.ring_arm.value):
                arms.append(int(dut.ring_arm.value))

    cocotb.start_soon(watch())
    for s in range(SLOTS):
        base, bell = SLOT + s * STEP, BELL + s * STEP
        for k, (at, cfg, index) in enumerate(
            (
                (CMD, dut.cmd_cfg[s], dut.cmd_tail[s]),
                (CPL, dut.ring_cfg[2 * s], dut.ring_head[2 * s]),
                (EVT, dut.ring_cfg[2 * s + 1], dut.ring_head[2 * s + 1]),
            )
        ):
            # The doorbell of a disabled ring reads 0 and ignores writes.
            await b.write(bell + 4 * k, 0x1234)
            assert int(index.value) == 0 and await b.read(bell + 4 * k) == 0
            await b.write(base + at, 0x89ABCDEF)
            await b.write(base + at + 4, 0x01234567)
            await b.write(base + at + 8, 1 << 31 | 9)
            assert int(cfg.value) == 1 << 68 | 9 << 64 | 0x0123456789ABC000
            assert await b.read(base + at) == 0x89ABC000
            await b.write(bell + 4 * k, 0x4321)
            assert int(index.value) == 0x4321 and await b.read(bell + 4 * k) == 0x4321
            if k:
                arms.clear()
                await b.write(bell + 4 * k, 1 << 31 | 0x4322)
                assert arms == [1 << 2 * s + k - 1] and int(index.value) == 0x4322
                assert await b.read(bell + 4 * k) == 0x4322
            # Small sizes count as 16 entries.
            await b.write(base + at + 8, 1 << 31 | 3)
            assert int(cfg.value) >> 64 == 1 << 4 | 4
            await b.write(base + at + 8, 9)
            await ClockCycles(dut.clk_i, 2)
            assert int(index.value) == 0 and int(cfg.value) >> 68 == 0


class Apps:
    """The register side of the apps: dictionaries that answer after a while."""

    def __init__(self, b: Bench, delay: int = 3) -> None:
        self.dut, self.r, self.delay = b.dut, b.r, delay
        self.regs: list[dict[int, int]] = [{} for _ in range(SLOTS)]
        self.mute, self.fails = False, False
        self.timeouts = [0] * SLOTS
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        d = self.dut
        edge = RisingEdge(d.clk_i)
        wait = -1
        answered = False
        while True:
            await edge
            for s in range(SLOTS):
                self.timeouts[s] += int(d.app_timeout.value) >> s & 1
            d.app_rvalid.value = 0
            valid = int(d.app_valid.value)
            assert valid & valid - 1 == 0
            if not valid or answered:
                wait, answered = -1, False
                continue
            if wait < 0:
                wait = self.r.randint(0, self.delay)
            if wait == 0 and not self.mute:
                s = valid.bit_length() - 1
                app = int(d.app.value)
                addr, write, data = app >> 33, app >> 32 & 1, app & NONE
                if write and not self.fails:
                    self.regs[s][addr] = data
                d.app_rdata[s].value = self.regs[s].get(addr, 0)
                d.app_err.value = self.fails << s
                d.app_rvalid.value = 1 << s
                answered = True
            wait = max(wait - 1, 0)


@cocotb.test(timeout_time=500, timeout_unit="us")
async def app_windows_pass_reads_and_writes(dut):
    b = await bench(dut, 0.1)
    apps = Apps(b)
    dut.app_open.value = 3
    model: dict[tuple[int, int], int] = {}
    for _ in range(150):
        s, addr = b.r.randrange(SLOTS), b.r.randrange(0, 0x1000, 4)
        if model and b.r.random() < 0.5:
            s, addr = b.r.choice(list(model))
        if b.r.random() < 0.5:
            model[s, addr] = b.r.getrandbits(32)
            await b.write(APP + s * STEP + addr, model[s, addr])
        else:
            assert await b.read(APP + s * STEP + addr) == model.get((s, addr), 0)
    # Single bytes are ignored.
    before = [dict(x) for x in apps.regs]
    await b.write(APP + 0x10, 0xAA, size=1)
    await b.write(APP + 0x12, 0xAAAA, size=2)
    assert apps.regs == before
    # An app that refuses.
    apps.fails = True
    assert await b.read(APP) == NONE
    await b.write(APP, 5)
    apps.fails = False
    # Nobody there.
    dut.app_open.value = 1
    assert await b.read(APP + STEP) == NONE
    await b.write(APP + STEP, 5)
    assert apps.timeouts == [0, 0] and [dict(x) for x in apps.regs] == before


@cocotb.test(timeout_time=500, timeout_unit="us")
async def an_app_that_does_not_answer_is_given_up(dut):
    b = await bench(dut)
    apps = Apps(b)
    dut.app_open.value = 3
    apps.mute = True
    other = cocotb.start_soon(b.write(0x1C, 77))
    assert await b.read(APP + STEP) == NONE
    assert apps.timeouts == [0, 1]
    await b.write(APP, 1)
    assert apps.timeouts == [1, 1]
    await other
    apps.mute = False
    assert await b.read(0x1C) == 77 and await b.read(APP + 4) == 0
    # An app that goes away while it is asked.
    apps.mute = True
    task = cocotb.start_soon(b.read(APP))
    await ClockCycles(dut.clk_i, 40)
    dut.app_open.value = 0
    assert await task == NONE and apps.timeouts == [1, 1]


@cocotb.test(timeout_time=500, timeout_unit="us")
async def a_second_source_reaches_the_slots_that_are_open_to_it(dut):
    b = await bench(dut, 0.1)
    apps = Apps(b)
    dut.app_open.value = 3
    # Closed after power-up; slots that are not there stay so whatever the owner says.
    for s in range(16):
        assert await b.user(s, 8, 1) == await b.user(s, 8) == NONE
    dut.reach.value = 0xFFFE
    for s in (0, *range(SLOTS, 16)):
        assert await b.user(s, 8, 1) == await b.user(s, 8) == NONE
    assert apps.regs == [{}, {}]
    # Both sources at once: neither starves, each gets its own responses.
    turns = [0, 0]

    async def host() -> None:
        for i in range(60):
            await b.write(APP + 0x10, i)
            assert await b.read(APP + 0x10) == i
            turns[0] += 1

    async def guest() -> None:
        while not owner.done():
            value = b.r.getrandbits(32)
            await b.user(1, 0x10, value)
            assert await b.user(1, 0x10) == value
            turns[1] += 1

    owner = cocotb.start_soon(host())
    other = cocotb.start_soon(guest())
    await owner
    await other
    assert turns[1] >= turns[0] and apps.timeouts == [0, 0]
    # The app's refusal, its silence and its absence are as for the management function.
    apps.fails = True
    assert await b.user(1, 0x10) == NONE
    apps.fails = False
    apps.mute = True
    assert await b.user(1, 0x10) == NONE and apps.timeouts == [0, 1]
    # One that waits behind it gets its own time.
    slow = cocotb.start_soon(b.user(1, 0x10))
    await ClockCycles(dut.clk_i, 5)
    own = cocotb.start_soon(b.read(APP + 0x10))
    await slow
    apps.mute = False
    assert apps.timeouts == [0, 2] and await own == 59
    dut.app_open.value = 1
    assert await b.user(1, 0x10) == NONE and apps.timeouts == [0, 2]
    # Closed while the app is asked: that access ends as it would have, the next finds it closed.
    dut.app_open.value = 3
    apps.delay = 40
    last = cocotb.start_soon(b.user(1, 0x10, 0x77))
    while not int(dut.app_valid.value):
        await ClockCycles(dut.clk_i, 1)
    dut.reach.value = 0
    await last
    apps.delay = 3
    assert await b.user(1, 0x10) == NONE and await b.read(APP + STEP + 0x10) == 0x77
    await ClockCycles(dut.clk_i, 3)
    assert int(dut.idle_o.value) == 1


@cocotb.test(timeout_time=500, timeout_unit="us")
async def images_pass_through_the_configuration_port(dut):
    b = await bench(dut)
    got: list[object] = []
    pauses = stalls(b.r, 0.5)
    blocked = False

    async def port() -> None:
        edge = RisingEdge(dut.clk_i)
        ready = False
        while True:
            await edge
            if int(dut.icap_start.value):
                got.append(("start", int(dut.icap_slot.value)))
            if ready and int(dut.icap_valid.value):
                got.append(int(dut.icap_data.value))
            if int(dut.icap_end.value):
                got.append("end")
            ready = not blocked and not next(pauses)
            dut.icap_ready.value = ready

    cocotb.start_soon(port())
    for s, code in ((1, 0), (0, 7)):
        got.clear()
        words = [b.r.getrandbits(32) for _ in range(60)]
        await b.write(0x40, s | 1 << 8)
        assert int(dut.load.value) == 1 << s and await b.read(0x48) & 7 == 1
        for w in words:
            await b.write(0x44, w)
        await b.write(0x40, s | 1 << 9)
        await until(dut, lambda: "end" in got)
        assert got == [("start", s), *words, "end"]
        assert int(dut.load.value) == 1 << s
        dut.icap_status.value, dut.icap_done.value = code, 1
        await ClockCycles(dut.clk_i, 1)
        dut.icap_done.value = 0
        await ClockCycles(dut.clk_i, 2)
        assert int(dut.load.value) == 0 and await b.read(0x48) == code << 8 | 2
        await ClockCycles(dut.clk_i, 2)
        assert int(dut.idle_o.value) == 1
    # A port that takes nothing: the bus comes free, and the loss is told until the next start.
    blocked = True
    await b.write(0x40, 1 << 8)
    for w in range(18):
        await b.write(0x44, w)
    assert await b.read(0x48) & 7 == 5
    blocked = False
    await ClockCycles(dut.clk_i, 100)
    blocked = True
    # A start in the middle drops what is left.
    for w in range(10):
        await b.write(0x44, w)
    got.clear()
    await b.write(0x40, 1 | 1 << 8)
    assert await b.read(0x48) & 7 == 1
    blocked = False
    await b.write(0x44, 0xFEED)
    await b.write(0x40, 1 | 1 << 9)
    await until(dut, lambda: "end" in got)
    assert got == [("start", 1), 0xFEED, "end"]


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def reads_and_writes_at_once(dut):
    """Two hosts, one reading and one writing; neither starves, every value is one that was written."""
    b = await bench(dut, 0.3)
    written = [0]

    async def writer() -> None:
        for i in range(150):
            written.append(i)
            await b.write(0x1C, i)

    task = cocotb.start_soon(writer())
    last, reads = 0, 0
    while not task.done():
        value = await b.read(0x1C)
        assert last <= value <= written[-1]
        last, reads = value, reads + 1
    assert reads > 50 and await b.read(0x1C) == 149


@cocotb.test(timeout_time=100, timeout_unit="us")
async def functions_are_told_what_is_written_and_tell_their_state(dut):
    b = await bench(dut)
    for f in range(1, 7):
        at, mac, base, sectors = 0x30000 + 0x100 * f, 0x665544332200 + f, 0xFEDC00000000 + f, 0x9900000000 + f
        store, slot, kind, moderate = f + 1, f, f % 3, 0x1230 + f
        header, limit, failed, count = f >> 1 & 1, 0x8100 + f, f & 1, 0x9200 + f
        rows, cols, reach = 0xA000 + f, 0xB000 + f, 0xC000 + f
        looks, period, offer = 0xC000 + f, 0xD000 + f, 0xE000000F00000000 + f
        low = (f & 3) << 6 | kind << 4 | header << 2 | (f & 1) << 1 | 1
        await b.write(at, moderate << 16 | store << 12 | slot << 8 | low)
        assert await b.read(at + 0x0C) == 25 << 16 | 80
        await b.write(at + 0x0C, rows << 16 | cols)
        await b.write(at + 0x50, reach)
        # Looks every 1024 cycles, without end; packed rings and IN_ORDER are not offered unless asked for.
        assert await b.read(at + 0x38) == 1024
        assert (await b.read(at + 0x58), await b.read(at + 0x5C)) == (NONE, NONE & ~0xC)
        await b.write(at + 0x38, looks << 16 | period)
        await b.write(at + 0x2C, limit)
        await b.write(at + 0x30, failed << 31 | count)
        for offset, value in ((4, mac), (0x10, base), (0x18, sectors), (0x58, offer)):
            await b.write(at + offset, value & NONE)
            await b.write(at + offset + 4, value >> 32)
        want = 0
        widths = (16, 1, 2, 4, 2, 48, 48, 4, 40, 1, 16, 1, 16, 1, 16, 16, 16, 16, 16, 64)  # fn_ctrl_t
        values = (
            reach,
            1,
            kind,
            slot,
            f & 3,
            mac,
            base,
            store,
            sectors,
            f & 1,
            moderate,
            header,
            limit,
            failed,
            count,
        )
        values += rows, cols, looks, period, offer
        for width, value in zip(widths, values, strict=True):
            want = want << width | value
        assert int(dut.fn_ctrl[f].value) == want, f"function {f}"
        dut.fn_status[f].value = 0x40 + f
        dut.fn_flushes[f].value = 0xA300 + f
        # Negotiated, offered, supported
        three = (f << 32 | 0x1000 + f, f + 1 << 32 | 0x2000 + f, f + 2 << 32 | 0x3000 + f)
        dut.fn_features[f].value = sum(x << 64 * i for i, x in enumerate(three))
        for i in range(3):
            dut.fn_count[f][i].value = 100 * f + i
    dut.fn_present.value, dut.fn_attached.value = 0b010110, 0b101010
    await ClockCycles(dut.clk_i, 2)
    for f in range(1, 7):
        at, bit = 0x30000 + 0x100 * f, f - 1
        status = (0b010110 >> bit & 1) << 9 | (0b101010 >> bit & 1) << 8 | 0x40 + f
        wants = {
            0x20: status,
            0x24: 0x1000 + f,
            0x28: f,
            0x60: 0x2000 + f,
            0x64: f + 1,
            0x68: 0x3000 + f,
            0x6C: f + 2,
            0x34: 0xA300 + f,
            0x40: 100 * f,
            0x44: 100 * f + 1,
            0x48: 100 * f + 2,
        }
        for offset, want in wants.items():
            assert await b.read(at + offset) == want, f"function {f}, {offset:#x}"


@pytest.mark.parametrize("slots", [SLOTS])
def test_via_csr(slots):
    run(
        "via_csr_tb",
        __file__,
        defines={
            "VIA_DATA_W": DATA_W,
            "VIA_NUM_SLOTS": slots,
            "VIA_NUM_CHAN": CHANS,
            "VIA_NUM_STREAMS": STREAMS,
        },
        sources=[
            "build/regs/via_regs.vlt",
            *(f"build/regs/via_{x}_regs_pkg.sv" for x in ("card", "slot", "fn", "bell")),
            "rtl/virtio/via_virtio_pkg.sv",
        ],
    )
