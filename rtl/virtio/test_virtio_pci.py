# SPDX-License-Identifier: Apache-2.0
"""via_virtio_pci: registers against a model under any access, features, resets amid traffic, window, vectors, queue reset."""

from itertools import pairwise

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from via_tb import AxiMem, rng, run, start, until

NUM_Q, Q_SIZE = 4, 128
NO_VECTOR = 0xFFFF
COMMON, ISR, DEVICE, NOTIFY, STAT = 0x0000, 0x1000, 0x2000, 0x3000, 0x4000
ACKNOWLEDGE, DRIVER, DRIVER_OK, FEATURES_OK, NEEDS_RESET, FAILED = 1, 2, 4, 8, 64, 128
BIT = {
    "event_idx": 29,
    "indirect": 28,
    "version_1": 32,
    "access_platform": 33,
    "packed": 34,
    "in_order": 35,
    "order_platform": 36,
    "notification_data": 38,
    "ring_reset": 40,
}
OFFERED = 0x30020 | sum(1 << bit for bit in BIT.values())
VERSION_1, PACKED = 1 << 32, 1 << 34
DEPENDENT, NEEDED = 1 << 17, 1 << 16
NOTIFICATION_DATA, RING_RESET = 1 << 38, 1 << 40
# Common configuration: name -> (offset, bytes)
FIELD = {
    "device_feature_select": (0x00, 4),
    "device_feature": (0x04, 4),
    "driver_feature_select": (0x08, 4),
    "driver_feature": (0x0C, 4),
    "config_msix_vector": (0x10, 2),
    "num_queues": (0x12, 2),
    "device_status": (0x14, 1),
    "config_generation": (0x15, 1),
    "queue_select": (0x16, 2),
    "queue_size": (0x18, 2),
    "queue_msix_vector": (0x1A, 2),
    "queue_enable": (0x1C, 2),
    "queue_notify_off": (0x1E, 2),
    "queue_desc": (0x20, 8),
    "queue_driver": (0x28, 8),
    "queue_device": (0x30, 8),
    "queue_notify_data": (0x38, 2),
    "queue_reset": (0x3A, 2),
    "admin_queue_index": (0x3C, 2),
    "admin_queue_num": (0x3E, 2),
}


class Pci:
    """A function as its driver sees it."""

    def __init__(self, dut, stall: float = 0.0, **kw) -> None:
        self.dut, self.r = dut, rng()
        self.mem = AxiMem(dut.u_m, "axi", stall=stall, size=1 << 13, r=self.r, **kw)
        for name in ("req_valid", "flr", "irq_valid", "error", "config_change", "traffic"):
            getattr(dut, name).value = 0
        dut.bus_master.value = dut.msix_ready.value = 1
        dut.q_quiet.value = (1 << NUM_Q) - 1
        dut.withhold.value = 0
        dut.offer.value = (1 << 64) - 1
        self.msix: list[int] = []
        self.notified: list[tuple[int, int]] = []
        self.core_resets = 0
        self.pause = 0  # most cycles between accesses

    async def begin(self) -> None:
        await start(self.dut)
        self._task = cocotb.start_soon(self._watch())
        await until(self.dut, lambda: not int(self.dut.flr_busy.value))

    def end(self) -> None:
        self._task.cancel()
        self.mem.end()

    async def _watch(self) -> None:
        d = self.dut
        was = 0
        while True:
            await RisingEdge(d.clk_i)
            if d.msix_valid.value == 1 and d.msix_ready.value == 1:
                self.msix.append(int(d.msix_vector.value))
            if d.notify_valid.value == 1:
                self.notified.append((int(d.notify_queue.value), int(d.notify_data.value)))
            now = int(d.core_rst_n.value)
            self.core_resets += was and not now
            was = now

    async def word(self, addr: int, strb: int, wdata: int | None = None, cfg: bool = False) -> int:
        """One access, as the card's bus brings it."""
        d = self.dut
        if self.pause:
            await ClockCycles(d.clk_i, self.r.randrange(1, self.pause + 1))
        d.req_cfg.value, d.req_write.value = cfg, wdata is not None
        d.req_addr.value, d.req_strb.value = addr & ~3, strb
        d.req_wdata.value = self.r.getrandbits(32) if wdata is None else wdata
        d.req_valid.value = 1
        for _ in range(20):
            await RisingEdge(d.clk_i)
            if d.req_rvalid.value == 1:
                break
        else:
            raise AssertionError(f"access to {addr:#x} not answered")
        d.req_valid.value = 0
        return int(d.req_rdata.value)

    async def read(self, addr: int, size: int, cfg: bool = False) -> int:
        if size == 8:
            return await self.read(addr, 4, cfg) | await self.read(addr + 4, 4, cfg) << 32
        lane = addr & 3
        word = await self.word(addr, ((1 << size) - 1) << lane, cfg=cfg)
        return word >> 8 * lane & (1 << 8 * size) - 1

    async def write(self, addr: int, size: int, value: int, cfg: bool = False) -> None:
        if size == 8:
            await self.write(addr, 4, value & 0xFFFFFFFF, cfg)
            await self.write(addr + 4, 4, value >> 32, cfg)
            return
        lane = addr & 3
        # What the strobes leave out is noise.
        noise = self.r.getrandbits(32) & ~(((1 << 8 * size) - 1) << 8 * lane)
        await self.word(addr, ((1 << size) - 1) << lane, noise | value << 8 * lane, cfg)

    async def get(self, name: str) -> int:
        return await self.read(*FIELD[name])

    async def set(self, name: str, value: int) -> None:
        await self.write(*FIELD[name], value)

    async def queue(self, q: int, **fields: int) -> None:
        await self.set("queue_select", q)
        for name, value in fields.items():
            await self.set(f"queue_{name}", value)

    async def offered(self) -> int:
        value = 0
        for i in range(2):
            await self.set("device_feature_select", i)
            value |= await self.get("device_feature") << 32 * i
        return value

    async def accept(self, features: int) -> bool:
        await self.set("device_status", ACKNOWLEDGE)
        await self.set("device_status", ACKNOWLEDGE | DRIVER)
        for i in range(2):
            await self.set("driver_feature_select", i)
            await self.set("driver_feature", features >> 32 * i & 0xFFFFFFFF)
        await self.set("device_status", ACKNOWLEDGE | DRIVER | FEATURES_OK)
        return bool(await self.get("device_status") & FEATURES_OK)

    async def bring_up(self, features: int = VERSION_1 | RING_RESET) -> None:
        """As a driver does it, with vector q + 1 for queue q and 0 for the configuration."""
        assert await self.accept(features)
        await self.set("config_msix_vector", 0)
        for q in range(NUM_Q):
            await self.queue(
                q, size=64, msix_vector=q + 1, desc=0x1000 * q, driver=0x100 * q, device=0x200 * q, enable=1
            )
        await self.set("device_status", ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK)

    async def wait_reset(self, limit: int = 100) -> None:
        for _ in range(limit):
            if await self.get("device_status") == 0:
                return
        raise AssertionError("the reset does not end")

    async def pulse(self, name: str, **levels: int) -> None:
        for key, value in levels.items():
            getattr(self.dut, key).value = value
        getattr(self.dut, name).value = 1
        await RisingEdge(self.dut.clk_i)
        getattr(self.dut, name).value = 0

    async def irq(self, queue: int) -> None:
        await self.pulse("irq_valid", irq_queue=queue)


async def function(dut, stall: float = 0.0, **kw) -> Pci:
    pci = Pci(dut, stall, **kw)
    await pci.begin()
    return pci


# ---------------------------------------------------------------- what a driver finds


@cocotb.test(timeout_time=100, timeout_unit="us")
async def identity_and_capabilities(dut):
    pci = await function(dut)
    assert await pci.read(0, 2, cfg=True) == 0x1AF4
    assert await pci.read(2, 2, cfg=True) == 0x1041
    assert await pci.read(8, 1, cfg=True) >= 1
    assert await pci.read(9, 2, cfg=True) == 0x0000 and await pci.read(11, 1, cfg=True) == 0x02
    assert await pci.read(0x2E, 2, cfg=True) >= 0x40
    assert (await pci.read(0x7E, 2, cfg=True) & 0x7FF) + 1 == NUM_Q + 1
    caps: dict[int, tuple[int, int, int, int]] = {}
    at, seen = 0x90, set()
    while at:
        assert at % 4 == 0 and at >= 0x90 and at not in seen
        length, kind = await pci.read(at + 2, 1, cfg=True), await pci.read(at + 3, 1, cfg=True)
        assert at + length <= 0x100 and not seen & set(range(at, at + length)), "capabilities overlap"
        seen |= set(range(at, at + length))
        assert await pci.read(at, 1, cfg=True) == 9
        assert kind not in caps
        if kind != 5:
            assert await pci.read(at + 4, 1, cfg=True) == (0x09 if kind == 9 else 0)
        caps[kind] = (
            at,
            length,
            await pci.read(at + 8, 4, cfg=True),
            await pci.read(at + 12, 4, cfg=True),
        )
        at = await pci.read(at + 1, 1, cfg=True)
    assert sorted(caps) == [1, 2, 3, 4, 5, 9]
    assert caps[1][1:] == (16, COMMON, 0x40)
    at, length, offset, size = caps[2]
    assert (length, offset) == (20, NOTIFY)
    multiplier = await pci.read(at + 16, 4, cfg=True)
    for q in range(NUM_Q):
        await pci.set("queue_select", q)
        assert await pci.get("queue_notify_off") * multiplier + 4 <= size
    assert caps[3][1] == 16 and caps[3][2] == ISR and caps[3][3] >= 1
    assert caps[4][1] == 16 and caps[4][2] == DEVICE
    assert caps[5][1:] == (20, 0, 0)
    at, length, offset, size = caps[9]
    assert await pci.read(at + 4, 2, cfg=True) == 0x1209 and (offset, size) == (STAT, 0x1000)
    regions = sorted((o, o + s) for kind, (_, _, o, s) in caps.items() if kind != 5)
    assert all(a[1] <= b[0] for a, b in pairwise(regions)), "structures overlap"
    assert regions[-1][1] <= 0x8000
    # Read only, and nothing beside it.
    for at in range(0, 0x100, 4):
        if not 0xD4 <= at < 0xE8:
            old = await pci.read(at, 4, cfg=True)
            await pci.write(at, 4, ~old & 0xFFFFFFFF, cfg=True)
            assert await pci.read(at, 4, cfg=True) == old
    pci.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def values_after_reset(dut):
    pci = await function(dut)
    for again in range(3):
        for name in ("device_status", "config_generation", "queue_select", "queue_enable", "queue_reset"):
            assert await pci.get(name) == 0
        for name in ("device_feature_select", "driver_feature_select", "driver_feature"):
            assert await pci.get(name) == 0
        assert await pci.get("num_queues") == NUM_Q
        assert await pci.get("config_msix_vector") == NO_VECTOR
        assert await pci.get("admin_queue_index") == await pci.get("admin_queue_num") == 0
        for q in (*range(NUM_Q), NUM_Q, 0x100, 0xFFFF):
            await pci.set("queue_select", q)
            there = q < NUM_Q
            assert await pci.get("queue_size") == (Q_SIZE if there else 0)
            assert await pci.get("queue_msix_vector") == NO_VECTOR
            assert await pci.get("queue_notify_off") == (q if there else 0)
            for name in ("queue_enable", "queue_desc", "queue_driver", "queue_device", "queue_reset"):
                assert await pci.get(name) == 0
        assert int(dut.features.value) == 0 and int(dut.q_enable.value) == 0
        assert not int(dut.driver_ok.value)
        if again == 2:
            break
        await pci.bring_up()
        await pci.set("driver_feature_select", 1)
        await pci.set("device_feature_select", 1)
        await pci.pulse("config_change")
        assert await pci.get("config_generation") == 1
        if again:
            await pci.pulse("flr")
            await until(dut, lambda: int(dut.flr_busy.value), 3)
            await until(dut, lambda: not int(dut.flr_busy.value))
        else:
            await pci.set("device_status", 0)
            assert await pci.get("device_status") != 0, "not before the reset is done"
            await pci.wait_reset()
    # Nowhere else is anything.
    for addr in (0x40, 0xFFC, 0x1004, 0x3000, 0x5000, 0x7FFC, 0x8000, 0xFFFC):
        await pci.word(addr, 15, 0xFFFFFFFF)
        assert await pci.word(addr, 15) == 0
    pci.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def pages_of_others_are_passed_on(dut):
    pci = await function(dut)
    writes: list[tuple[int, int, int]] = []

    async def watch() -> None:
        while True:
            await RisingEdge(dut.clk_i)
            if dut.dev_write.value == 1:
                writes.append((int(dut.dev_addr.value), int(dut.dev_strb.value), int(dut.dev_wdata.value)))
            if dut.stat_write.value == 1:
                writes.append((-1, int(dut.stat_addr.value), 0))

    task = cocotb.start_soon(watch())
    for _ in range(40):
        at = pci.r.randrange(16, 0x1000)
        size = pci.r.choice([n for n in (1, 2, 4) if at % n == 0])
        want = (0xC0F16 << 12 | at & ~3) >> 8 * (at & 3) & (1 << 8 * size) - 1
        assert await pci.read(DEVICE + at, size) == want
        assert await pci.read(STAT + (at & ~3), 4) == 0x2C0DE << 10 | at >> 2
    assert not writes
    value = 0
    await pci.write(DEVICE, 4, 0)
    for at, size in ((0, 4), (1, 1), (2, 2), (3, 1)):
        new = pci.r.getrandbits(8 * size)
        await pci.write(DEVICE + at, size, new)
        value = value & ~(((1 << 8 * size) - 1) << 8 * at) | new << 8 * at
        assert await pci.read(DEVICE, 4) == value
    assert len(writes) == 5
    await pci.write(STAT + 0x24, 4, 0)
    assert writes[5:] == [(-1, 9, 0)]
    task.cancel()
    pci.end()


# ---------------------------------------------------------------- features and status


@cocotb.test(timeout_time=200, timeout_unit="us")
async def features_are_a_subset_with_version_1_or_refused(dut):
    pci = await function(dut)
    assert await pci.offered() == OFFERED
    await pci.set("device_feature_select", 2)
    assert await pci.get("device_feature") == 0
    await pci.set("device_feature_select", 1 << 31)
    assert await pci.get("device_feature") == 0
    # Not offered now: refused, until it is again.
    dut.withhold.value = 1 << 5
    assert await pci.offered() == OFFERED & ~(1 << 5)
    assert not await pci.accept(VERSION_1 | 1 << 5)
    dut.withhold.value = 0
    assert await pci.accept(VERSION_1 | 1 << 5)
    dut.withhold.value = 1 << 5
    assert int(dut.features.value) == VERSION_1 | 1 << 5, "negotiated is negotiated"
    dut.withhold.value = 0
    await pci.set("device_status", 0)
    await pci.wait_reset()
    good = [VERSION_1, VERSION_1 | NEEDED, VERSION_1 | NEEDED | DEPENDENT, OFFERED, OFFERED & ~PACKED]
    good += [pci.r.getrandbits(64) & OFFERED & ~DEPENDENT | VERSION_1 for _ in range(6)]
    bad = [0, OFFERED & ~VERSION_1, VERSION_1 | 1, VERSION_1 | 1 << 63, VERSION_1 | 1 << 37, (1 << 64) - 1]
    bad += [VERSION_1 | DEPENDENT, OFFERED & ~NEEDED]
    bad += [VERSION_1 | 1 << pci.r.choice([b for b in range(64) if not OFFERED >> b & 1]) for _ in range(6)]
    for features in pci.r.sample(good + bad, len(good + bad)):
        assert await pci.accept(features) == (features in good), hex(features)
        want = features if features in good else 0
        assert int(dut.features.value) == want
        names = ("event_idx", "indirect", "packed", "in_order", "notification_data")
        assert int(dut.feat.value) == sum((want >> BIT[name] & 1) << 4 - i for i, name in enumerate(names))
        if not want:
            # Neither the queue nor the device starts without.
            await pci.queue(0, enable=1)
            assert await pci.get("queue_enable") == 0
            await pci.set("device_status", 15)
            assert not await pci.get("device_status") & (DRIVER_OK | FEATURES_OK)
            # The driver may think again.
            assert await pci.accept(VERSION_1)
        else:
            # Too late now.
            for i in range(2):
                await pci.set("driver_feature_select", i)
                await pci.set("driver_feature", 0)
            assert int(dut.features.value) == want
        await pci.set("device_status", 0)
        await pci.wait_reset()
        assert int(dut.features.value) == 0
    pci.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def the_owner_withholds_features_from_the_next_reset_on(dut):
    pci = await function(dut)
    every = (1 << 64) - 1
    # A mask without anything leaves VERSION_1; one without NEEDED also what needs it.
    for mask, want in (
        (every & ~PACKED, OFFERED & ~PACKED),
        (0, VERSION_1),
        (every & ~NEEDED, OFFERED & ~NEEDED & ~DEPENDENT),
        (every & ~DEPENDENT, OFFERED & ~DEPENDENT),
        (every, OFFERED),
    ):
        dut.offer.value = mask
        await pci.set("device_status", 0)
        await pci.wait_reset()
        assert await pci.offered() == want, hex(mask)
        assert int(dut.offered.value) == want
        gone = OFFERED & ~want
        if gone:
            assert not await pci.accept(VERSION_1 | gone & -gone)
            await pci.set("device_status", 0)
            await pci.wait_reset()
    # A driver that has begun sees one offer, whatever the owner does meanwhile, and may have all of it.
    await pci.set("device_status", ACKNOWLEDGE)
    dut.offer.value = 0
    assert await pci.offered() == OFFERED
    assert await pci.accept(OFFERED)
    dut.offer.value = every & ~PACKED
    assert int(dut.features.value) == OFFERED and await pci.offered() == OFFERED
    dut.flr.value = 1
    await RisingEdge(dut.clk_i)
    dut.flr.value = 0
    await pci.wait_reset()
    assert await pci.offered() == OFFERED & ~PACKED
    pci.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def status_bits_stay_until_reset(dut):
    pci = await function(dut)
    await pci.bring_up()
    assert await pci.get("device_status") == 15 and int(dut.driver_ok.value)
    for value in (1, 8, NEEDS_RESET, 0x30, 2):
        await pci.set("device_status", value)
        assert await pci.get("device_status") == 15
    await pci.set("device_status", FAILED)
    assert await pci.get("device_status") == 15 | FAILED
    # Status written with its neighbours: a wide access of 0 resets too, one beside it does not.
    await pci.write(0x16, 2, 0)
    assert await pci.get("device_status") == 15 | FAILED
    await pci.write(0x14, 4, 3 << 16)
    await pci.wait_reset()
    assert pci.core_resets == 1
    # Reset again out of nothing.
    await pci.set("device_status", 0)
    await pci.wait_reset()
    assert pci.core_resets == 2
    pci.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def an_error_asks_for_a_reset(dut):
    pci = await function(dut)
    await pci.accept(VERSION_1)
    await pci.pulse("error")
    assert await pci.get("device_status") == NEEDS_RESET | 11
    await ClockCycles(dut.clk_i, 10)
    assert not pci.msix and not await pci.read(ISR, 1), "no interrupt before DRIVER_OK"
    await pci.set("device_status", 0)
    await pci.wait_reset()
    await pci.bring_up()
    await pci.pulse("error")
    await until(dut, lambda: pci.msix == [0], 20)
    assert await pci.get("device_status") == NEEDS_RESET | 15
    assert await pci.read(ISR, 1) == 2
    await pci.set("device_status", 0)
    await pci.wait_reset()
    pci.end()


# ---------------------------------------------------------------- any access, against a model


class Model:
    """The common configuration as the specification tells it, byte by byte of each write."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.dev_sel = self.drv_sel = self.wanted = self.status = self.select = 0
        self.vector = NO_VECTOR
        self.queues = [self.fresh() for _ in range(NUM_Q)]

    @staticmethod
    def fresh() -> dict[str, int]:
        zero = dict.fromkeys(("enable", "desc", "driver", "device"), 0)
        return {"size": Q_SIZE, "vector": NO_VECTOR, **zero}

    @property
    def features(self) -> int:
        return self.wanted if self.status & FEATURES_OK else 0

    def read(self, at: int) -> int:
        """The word at `at`."""
        q = self.queues[self.select] if self.select < NUM_Q else None
        if at == 0x04:
            return OFFERED >> 32 * self.dev_sel & 0xFFFFFFFF if self.dev_sel < 2 else 0
        if at == 0x0C:
            return self.wanted >> 32 * self.drv_sel & 0xFFFFFFFF if self.drv_sel < 2 else 0
        plain = {
            0x00: self.dev_sel,
            0x08: self.drv_sel,
            0x10: NUM_Q << 16 | self.vector,
            0x14: self.select << 16 | self.status,
        }
        if at in plain:
            return plain[at]
        if q is None:
            return NO_VECTOR << 16 if at == 0x18 else 0
        if at in (0x18, 0x1C, 0x38):
            low = {0x18: q["size"], 0x1C: q["enable"], 0x38: self.select}[at]
            return low | {0x18: q["vector"], 0x1C: self.select, 0x38: 0}[at] << 16
        if 0x20 <= at < 0x38:
            return q[("desc", "driver", "device")[at - 0x20 >> 3]] >> 8 * (at & 4) & 0xFFFFFFFF
        return 0

    def write(self, at: int, strb: int, data: int) -> bool:
        """True: the driver has asked for a reset."""
        mask = sum(0xFF << 8 * i for i in range(4) if strb >> i & 1)
        low, high = strb & 3 == 3, strb >> 2 == 3

        def mix(old: int, shift: int = 0) -> int:
            return old & ~(mask << shift) | (data & mask) << shift

        if at == 0x00:
            self.dev_sel = mix(self.dev_sel)
        elif at == 0x08:
            self.drv_sel = mix(self.drv_sel)
        elif at == 0x0C and self.drv_sel < 2 and not self.status & FEATURES_OK:
            self.wanted = mix(self.wanted, 32 * self.drv_sel)
        elif at == 0x10 and low:
            self.vector = data & 0xFFFF if data & 0xFFFF <= NUM_Q else NO_VECTOR
        elif at == 0x14:
            if strb & 1 and not data & 0xFF:
                return True
            if strb & 1:
                add = data & (ACKNOWLEDGE | DRIVER | DRIVER_OK | FEATURES_OK | FAILED)
                if not self.status & FEATURES_OK:
                    add &= ~DRIVER_OK
                missing = self.wanted & DEPENDENT and not self.wanted & NEEDED
                if self.wanted & ~OFFERED or not self.wanted & VERSION_1 or missing:
                    add &= ~FEATURES_OK
                self.status |= add
            if high:
                self.select = data >> 16
        elif at >= 0x18 and self.select < NUM_Q:
            self.write_queue(self.queues[self.select], at, strb, data, mix)
        return False

    def write_queue(self, q: dict[str, int], at: int, strb: int, data: int, mix) -> None:
        if at == 0x18 and strb >> 2 == 3:
            q["vector"] = data >> 16 if data >> 16 <= NUM_Q else NO_VECTOR
        if at == 0x38 and strb & 4 and data >> 16 & 1 and self.features & RING_RESET:
            q.update(self.fresh())  # quiet at once in this test
        if q["enable"]:
            return
        size = data & 0xFFFF
        fits = 1 <= size <= Q_SIZE and (self.features & PACKED or size.bit_count() == 1)
        if at == 0x18 and strb & 3 == 3 and fits:
            q["size"] = size
        if at == 0x1C and strb & 1 and data & 1 and self.status & FEATURES_OK:
            q["enable"] = 1
        if 0x20 <= at < 0x38:
            name = ("desc", "driver", "device")[at - 0x20 >> 3]
            q[name] = mix(q[name], 8 * (at & 4))


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def any_access_at_any_time_matches_the_model(dut):
    """Writes of every width to every field, in random order; enabled queues and negotiated features stand still."""
    pci = await function(dut)
    model = Model()
    r = pci.r
    enabled = resets = queue_resets = 0
    likely = [0x00, 0x08, 0x0C, 0x10, 0x14, 0x14, 0x18, 0x18, 0x1C, 0x38]
    for step in range(20000):
        if step >= 5000 and enabled > 20 and resets > 5 and queue_resets > 0:
            break
        at = r.choice(likely) if r.random() < 0.7 else r.randrange(16) * 4
        strb = r.choice((15, 15, 15, 3, 3, 12, 12, 1, 2, 4, 8, r.randrange(1, 16)))
        kind = r.random()
        data = r.getrandbits(32)
        if kind < 0.3 and at != 0x14:
            data = r.choice((0, 1, 2, 3, 4, 8, 64, Q_SIZE, 2 * Q_SIZE, 0xFFFF)) * 0x10001
        elif at == 0x0C and kind < 0.95:
            part = OFFERED >> 32 * (model.drv_sel & 1) & 0xFFFFFFFF
            data, strb = (data | 0x101) & part, 15
        elif at in (0x00, 0x08) and kind < 0.9:
            data = r.randrange(2)
        elif at == 0x14:
            # Rarely a reset, mostly a sensible select.
            status = 0 if r.random() < 0.06 else r.choice((1, 3, 11, 15, 0x8F, 255))
            data = r.randrange(NUM_Q + 1) << 16 | r.getrandbits(8) << 8 | status
        elif at == 0x18 and kind < 0.8:
            data = r.randrange(NUM_Q + 3) << 16 | r.choice((1, 2, 16, 64, Q_SIZE, 3, 100, Q_SIZE + 1))
        elif at == 0x1C and kind < 0.5:
            data = 1
        elif at == 0x38 and r.random() < 0.5:
            continue
        if r.random() < 0.7:
            before = sum(q["enable"] for q in model.queues)
            await pci.word(COMMON + at, strb, data)
            if model.write(at, strb, data):
                resets += 1
                await pci.wait_reset()
                model.reset()
                wanted = OFFERED & (r.getrandbits(64) | VERSION_1 | RING_RESET)
                if r.random() < 0.7:  # negotiate, so that the rest is worth it
                    for part in range(2):
                        word = wanted >> 32 * part & 0xFFFFFFFF
                        for reg, value in ((0x08, part), (0x0C, word), (0x14, 11)):
                            await pci.word(COMMON + reg, 15, value)
                            model.write(reg, 15, value)
            after = sum(q["enable"] for q in model.queues)
            enabled += after > before
            if at == 0x38:
                queue_resets += after < before
                await ClockCycles(dut.clk_i, 6)
        got, want = await pci.word(COMMON + at, r.choice((15, strb))), model.read(at)
        assert got == want, f"step {step}: {at:#x} reads {got:#x}, not {want:#x}"
        for i, q in enumerate(model.queues):
            assert int(dut.q_enable.value) >> i & 1 == q["enable"]
            for name in ("size", "desc", "driver", "device"):
                assert int(getattr(dut, f"q_{name}")[i].value) == q[name], f"step {step}: queue {i} {name}"
        assert int(dut.features.value) == model.features
        assert int(dut.driver_ok.value) == (model.status >> 2 & 1)
    assert enabled > 20 and resets > 5 and queue_resets > 0, (enabled, resets, queue_resets)
    pci.end()


# ---------------------------------------------------------------- notifications


@cocotb.test(timeout_time=100, timeout_unit="us")
async def notifications_are_checked(dut):
    for data in (False, True):
        pci = await function(dut)
        features = VERSION_1 | RING_RESET | (NOTIFICATION_DATA if data else 0)
        await pci.write(NOTIFY, 2, 0)
        await pci.bring_up(features)
        await pci.queue(3, reset=1)
        await until(dut, lambda: not int(dut.q_reset.value))
        assert not pci.notified
        for q in range(3):
            offset = pci.r.getrandbits(16)
            await pci.write(NOTIFY + 4 * q, 4, offset << 16 | q)
            await pci.write(NOTIFY + 4 * q, 2, q)
            if data:
                assert pci.notified == [(q, offset)], "16 bits are no notification then"
            else:
                assert [n for n, _ in pci.notified] == [q, q]
            pci.notified.clear()
        # None of these is one: no such queue, queue is off, half an index, no place of a queue.
        for addr, size, value in (
            (NOTIFY, 4, NUM_Q),
            (NOTIFY, 4, 0xFFFF),
            (NOTIFY, 4, 16),
            (NOTIFY + 12, 4, 3),
            (NOTIFY, 1, 0),
            (NOTIFY + 2, 2, 0),
            (NOTIFY + 4 * NUM_Q, 4, 0),
            (NOTIFY + 0xFFC, 4, 0),
        ):
            await pci.write(addr, size, value)
        assert await pci.read(NOTIFY, 4) == 0
        assert not pci.notified
        pci.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_notification_takes_one_cycle(dut):
    pci = await function(dut)
    await pci.bring_up()
    for q in range(NUM_Q):
        access = cocotb.start_soon(pci.write(NOTIFY + 4 * q, 2, q))
        await until(dut, lambda: dut.req_valid.value == 1)
        cycles = -1  # the edge that ends the cycle of the request does not count
        while dut.notify_valid.value != 1:
            await RisingEdge(dut.clk_i)
            cycles += 1
        assert cycles <= 1, f"{cycles} cycles from the access to the engine"
        await access
        await ClockCycles(dut.clk_i, q)
    pci.end()


# ---------------------------------------------------------------- interrupts


@cocotb.test(timeout_time=200, timeout_unit="us")
async def interrupts_take_the_mapped_vector(dut):
    pci = await function(dut)
    await pci.bring_up()
    for q in range(NUM_Q):
        await pci.irq(q)
        await ClockCycles(dut.clk_i, 8)
    await pci.pulse("config_change")
    await ClockCycles(dut.clk_i, 8)
    assert pci.msix == [1, 2, 3, 4, 0]
    assert await pci.read(ISR, 1) == 3 and await pci.read(ISR, 1) == 0
    # All on one vector, all at once: nobody is left out, nothing is sent for nothing.
    pci.msix.clear()
    for q in range(NUM_Q):
        await pci.queue(q, msix_vector=2)
    dut.msix_ready.value = 0
    for q in (0, 1, 2, 3, 0, 1, 2, 3):
        await pci.irq(q)
    await ClockCycles(dut.clk_i, 10)
    dut.msix_ready.value = 1
    await ClockCycles(dut.clk_i, 30)
    assert set(pci.msix) == {2} and NUM_Q <= len(pci.msix) <= NUM_Q + 1
    # None.
    pci.msix.clear()
    await pci.queue(1, msix_vector=NO_VECTOR)
    await pci.set("config_msix_vector", NUM_Q + 1)
    assert await pci.get("config_msix_vector") == NO_VECTOR
    await pci.read(ISR, 1)
    await pci.irq(1)
    await ClockCycles(dut.clk_i, 8)
    # Other bytes of the word clear nothing.
    assert await pci.read(ISR + 1, 1) == 0 and await pci.read(ISR + 2, 2) == 0
    await pci.write(ISR, 4, 0)
    assert await pci.read(ISR, 4) == 1 and await pci.read(ISR, 4) == 0
    await pci.pulse("config_change")
    await ClockCycles(dut.clk_i, 8)
    assert await pci.read(ISR, 2) == 2
    assert not pci.msix
    await ClockCycles(dut.clk_i, 2)
    assert int(dut.idle_o.value)
    pci.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def interrupts_that_coincide_are_all_sent(dut):
    """Each request is followed by an interrupt with its vector, and none comes without, in whatever cycles they meet."""
    pci = await function(dut)
    await pci.bring_up()
    # Two at once would show as another vector.
    for q in range(NUM_Q):
        await pci.queue(q, msix_vector=q)
    await pci.set("config_msix_vector", NUM_Q)
    r, offered = pci.r, False
    asked, sent = (
        [-1] * (NUM_Q + 1),
        [0] * (NUM_Q + 1),
    )  # by vector: cycle of the last request, and of the last interrupt
    length, pause = 8, 40
    for cycle in range(1, 200 * (length + pause)):
        # A few cycles with requests, then none until all must have been sent: a later one would hide that an earlier one was lost.
        phase = cycle % (length + pause)
        asking = phase < length
        queue, config = r.randrange(NUM_Q), asking and r.random() < 0.2
        used = asking and r.random() < 0.4
        dut.irq_valid.value, dut.irq_queue.value, dut.config_change.value = used, queue, config
        dut.msix_ready.value = not asking or r.random() < 0.7
        await RisingEdge(dut.clk_i)
        valid, vector = int(dut.msix_valid.value), int(dut.msix_vector.value)
        if valid and not offered:
            # One that comes in the cycle in which another is chosen has an interrupt of its own.
            assert asked[vector] >= sent[vector] - 1, (
                f"an interrupt with vector {vector} that nothing requested"
            )
            sent[vector] = cycle
        offered = bool(valid) and not int(dut.msix_ready.value)
        if used:
            asked[queue] = cycle
        if config:
            asked[NUM_Q] = cycle
        if phase == length + pause - 1:
            assert all(a < s for a, s in zip(asked, sent, strict=True)), f"lost interrupts: {asked}, {sent}"
    pci.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def interrupts_wait_for_bus_master_and_end_with_a_reset(dut):
    pci = await function(dut)
    await pci.bring_up()
    dut.bus_master.value = 0
    for q in (0, 2, 2):
        await pci.irq(q)
    await ClockCycles(dut.clk_i, 30)
    assert not pci.msix and not int(dut.idle_o.value)
    dut.bus_master.value = 1
    await until(dut, lambda: len(pci.msix) == 2, 20)
    assert sorted(pci.msix) == [1, 3]
    # What waits at a reset is forgotten; one on offer is finished first.
    dut.msix_ready.value = 0
    for q in range(NUM_Q):
        await pci.irq(q)
    pci.msix.clear()
    await pci.set("device_status", 0)
    for _ in range(20):
        assert await pci.get("device_status") != 0, "done with an interrupt on offer"
    dut.msix_ready.value = 1
    await pci.wait_reset()
    sent = len(pci.msix)
    assert sent == 1
    await ClockCycles(dut.clk_i, 30)
    assert len(pci.msix) == sent and await pci.read(ISR, 1) == 0
    # Nor does one that waited reach the next driver, or outlive its queue.
    dut.bus_master.value = 0
    await pci.bring_up()
    await pci.irq(1)
    await pci.set("device_status", 0)
    await pci.wait_reset()
    await pci.bring_up()
    await pci.irq(2)
    await pci.queue(2, reset=1)
    await until(dut, lambda: not int(dut.q_reset.value), 20)
    await pci.queue(2, msix_vector=3)
    pci.msix.clear()
    dut.bus_master.value = 1
    await ClockCycles(dut.clk_i, 30)
    assert not pci.msix
    pci.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def the_generation_shows_every_change_a_reader_can_see(dut):
    pci = await function(dut)
    for n in range(1, 6):
        # Any number of them between two reads, 256 too, is one.
        for _ in range(pci.r.choice((1, 2, 256))):
            await pci.pulse("config_change")
        assert await pci.get("config_generation") == n
        await pci.read(DEVICE + pci.r.randrange(16), 1)
        assert await pci.get("config_generation") == n
    # A change while a driver reads field by field, in any cycle of it.
    for delay in range(12):
        await pci.pulse("config_change")
        before = await pci.get("config_generation")
        task = cocotb.start_soon(pci.read(DEVICE, 8))
        await ClockCycles(dut.clk_i, delay + 1)
        late = task.done()
        await pci.pulse("config_change")
        await task
        seen = await pci.get("config_generation")
        # Before the first word is read both are seen, after that only a reader who looks again.
        if delay >= 4:
            assert seen != before, f"change after {delay} cycles, {late}"
    pci.end()


# ---------------------------------------------------------------- the window of PCI_CFG

WINDOW = 0xD4


async def window(pci: Pci, bar: int, offset: int, length: int) -> None:
    await pci.write(WINDOW + 4, 1, bar, cfg=True)
    await pci.write(WINDOW + 8, 4, offset, cfg=True)
    await pci.write(WINDOW + 12, 4, length, cfg=True)


@cocotb.test(timeout_time=400, timeout_unit="us")
async def the_window_reaches_what_the_bar_reaches(dut):
    pci = await function(dut)
    await pci.accept(OFFERED)
    for name, (at, size) in FIELD.items():
        want = await pci.get(name)
        got = 0
        for part in range(0, size, 4):
            await window(pci, 0, COMMON + at + part, min(size, 4))
            got |= await pci.read(WINDOW + 16, min(size, 4), cfg=True) << 8 * part
        assert got == want, name
    await window(pci, 0, FIELD["queue_select"][0], 2)
    await pci.write(WINDOW + 16, 2, 3, cfg=True)
    assert await pci.get("queue_select") == 3
    assert await pci.get("device_status") == 11, "only the bytes meant"
    await window(pci, 0, DEVICE, 4)
    await pci.write(WINDOW + 16, 4, 0, cfg=True)
    for offset, length, value in ((1, 1, 0xAB), (2, 2, 0x1234)):
        await window(pci, 0, DEVICE + offset, length)
        await pci.write(WINDOW + 16, 4, 0x55550000 | value, cfg=True)
        assert await pci.read(WINDOW + 16, 4, cfg=True) == value
    assert await pci.read(DEVICE, 4) == 0x1234AB00
    await window(pci, 0, STAT + 0x40, 2)
    assert await pci.read(WINDOW + 16, 4, cfg=True) == (0x2C0DE << 10 | 0x10) & 0xFFFF
    # Side effects are the same: a notification, ISR cleared by its byte only, a reset.
    await pci.bring_up(VERSION_1) if not await pci.get("device_status") else None
    await pci.queue(1, enable=1)
    await window(pci, 0, NOTIFY + 4, 4)
    await pci.write(WINDOW + 16, 4, 0x8765_0001, cfg=True)
    assert pci.notified == [(1, 0x8765)]
    await pci.irq(1)
    await window(pci, 0, ISR + 1, 1)
    assert await pci.read(WINDOW + 16, 1, cfg=True) == 0
    await window(pci, 0, ISR, 1)
    assert await pci.read(WINDOW + 16, 1, cfg=True) == 1
    assert await pci.read(WINDOW + 16, 1, cfg=True) == 0
    await window(pci, 0, FIELD["device_status"][0], 1)
    await pci.write(WINDOW + 16, 1, 0, cfg=True)
    await pci.wait_reset()
    # The window is a matter of the function: a device reset leaves it, a function reset closes it.
    assert await pci.read(WINDOW + 12, 4, cfg=True) == 1
    await pci.pulse("flr")
    await ClockCycles(dut.clk_i, 2)
    await until(dut, lambda: not int(dut.flr_busy.value))
    assert await pci.read(WINDOW + 12, 4, cfg=True) == 0 and await pci.read(WINDOW + 8, 4, cfg=True) == 0
    pci.end()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def a_wrong_window_reaches_nothing(dut):
    pci = await function(dut)
    await pci.write(DEVICE, 4, 0x11223344)
    bad = [(0, DEVICE, n) for n in (0, 3, 5, 8, 0x104, 1 << 31, 0xFFFFFFFF)]
    bad += [(bar, DEVICE, 4) for bar in (1, 2, 4, 5, 255)]
    bad += [(0, DEVICE + 1, 2), (0, DEVICE + 3, 2), (0, DEVICE + 1, 4), (0, DEVICE + 2, 4)]
    bad += [(0, DEVICE | 1 << b, 4) for b in range(15, 32)]
    for bar, offset, length in bad:
        await window(pci, bar, offset, length)
        assert await pci.read(WINDOW + 16, 4, cfg=True) == 0, (bar, hex(offset), length)
        await pci.write(WINDOW + 16, 4, 0xFFFFFFFF, cfg=True)
        assert await pci.read(DEVICE, 4) == 0x11223344, (bar, hex(offset), length)
    # Reading the space from end to end, as lspci does, disturbs nothing.
    await window(pci, 0, 0, 0)
    for at in range(0, 0x100, 4):
        await pci.read(at, 4, cfg=True)
    pci.end()


# ---------------------------------------------------------------- resets amid traffic


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def a_reset_at_any_moment_leaves_nothing_in_flight(dut):
    """By status, by function-level reset, both; with bus master off or on. The testbench watches the core's reset."""
    pci = await function(dut, 0.3, latency=12)
    r = pci.r
    dut.traffic.value = 1
    for rnd in range(60):
        await pci.bring_up()
        await ClockCycles(dut.clk_i, r.randrange(1, 80))
        moved = len(pci.mem.reads) + len(pci.mem.writes)
        kind = r.randrange(5)
        if r.random() < 0.3:
            dut.bus_master.value = 0
            await ClockCycles(dut.clk_i, r.randrange(40))
        if r.random() < 0.3:
            await pci.pulse("error")
        if r.random() < 0.5:
            await pci.irq(r.randrange(NUM_Q))
        resets = pci.core_resets
        if kind < 3:
            await pci.set("device_status", 0)
            if kind == 2:
                await ClockCycles(dut.clk_i, r.randrange(30))
        if kind > 1:
            await pci.pulse("flr")
            await ClockCycles(dut.clk_i, 2)
            await until(dut, lambda: not int(dut.flr_busy.value), 600, f"round {rnd}: reset")
        else:
            # Whatever the driver does meanwhile is without effect, and answered.
            for _ in range(r.randrange(6)):
                await pci.word(COMMON + r.choice((0, 8, 12, 16, 24, 28, 32, 56)), 15, r.getrandbits(32))
                await pci.word(NOTIFY, 15, r.randrange(NUM_Q))
        await pci.wait_reset(400) if kind < 2 else None
        assert await pci.get("device_status") == 0
        assert pci.core_resets > resets
        assert pci.mem.open_reads + pci.mem.open_writes == 0
        assert int(dut.q_enable.value) == 0 and int(dut.features.value) == 0
        still = len(pci.mem.reads) + len(pci.mem.writes)
        assert still >= moved
        dut.bus_master.value = 1
        pci.msix.clear()
        await ClockCycles(dut.clk_i, 30)
        assert len(pci.mem.reads) + len(pci.mem.writes) == still and not pci.msix, "it moves before DRIVER_OK"
        # Registers are as new unless the driver wrote them after the end: do it once more to be sure.
        await pci.set("device_status", 0)
        await pci.wait_reset()
    assert len(pci.mem.reads) > 100 and len(pci.mem.writes) > 100
    pci.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_reset_waits_for_host_memory_and_takes_no_write_meanwhile(dut):
    pci = await function(dut, latency=5)
    dut.traffic.value = 1
    await pci.bring_up()
    await until(dut, lambda: pci.mem.open_reads and pci.mem.open_writes)
    pci.mem.set_stall(1.0)
    await pci.set("device_status", 0)
    generation = await pci.get("config_generation")
    for status in (15, 0, 255):
        await pci.set("device_status", status)
        assert await pci.get("device_status") == 15
    await pci.queue(0, desc=0x1234, msix_vector=3)
    await pci.irq(0)
    await pci.pulse("config_change")
    await pci.write(NOTIFY, 2, 0)
    await pci.write(DEVICE, 4, 0)
    assert await pci.get("config_generation") == generation and not int(dut.driver_ok.value)
    assert int(dut.q_enable.value) == 15 and int(dut.core_rst_n.value) and pci.core_resets == 0
    pci.mem.set_stall(0.0)
    await pci.wait_reset()
    assert not pci.msix and not pci.notified and pci.core_resets == 1
    assert await pci.get("queue_desc") == 0 and await pci.get("queue_size") == Q_SIZE
    pci.end()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def bus_master_off_only_holds(dut):
    pci = await function(dut, 0.2, latency=8)
    dut.traffic.value = 1
    await pci.bring_up()
    for _ in range(10):
        await ClockCycles(dut.clk_i, pci.r.randrange(40, 80))
        dut.bus_master.value = 0
        await until(dut, lambda: pci.mem.open_reads + pci.mem.open_writes == 0, 300)
        await ClockCycles(dut.clk_i, 20)
        count = len(pci.mem.reads), len(pci.mem.writes)
        await ClockCycles(dut.clk_i, 40)
        assert (len(pci.mem.reads), len(pci.mem.writes)) == count
        dut.bus_master.value = 1
        await ClockCycles(dut.clk_i, 60)
        assert (len(pci.mem.reads), len(pci.mem.writes)) > count
    assert pci.core_resets == 0 and await pci.get("device_status") == 15
    pci.end()


# ---------------------------------------------------------------- queue reset


@cocotb.test(timeout_time=400, timeout_unit="us")
async def a_queue_reset_ends_when_the_queue_is_quiet(dut):
    pci = await function(dut)
    pci.pause = 8
    await pci.bring_up()
    r = pci.r
    for _ in range(12):
        q = r.randrange(NUM_Q)
        others = ((1 << NUM_Q) - 1) & ~(1 << q)
        dut.q_quiet.value = 0
        await pci.queue(q, reset=1)
        await ClockCycles(dut.clk_i, 3)
        assert int(dut.q_reset.value) == 1 << q and int(dut.q_enable.value) == others | 1 << q
        # It cannot be set up, notified or enabled before.
        await pci.queue(q, desc=1 << 40, size=4, enable=1, reset=0)
        await pci.write(NOTIFY + 4 * q, 2, q)
        assert not pci.notified
        assert await pci.get("queue_desc") == 0x1000 * q and await pci.get("queue_reset") == 1
        dut.q_quiet.value = others
        await ClockCycles(dut.clk_i, r.randrange(1, 40))
        assert await pci.get("queue_reset") == 1
        # It gets no more interrupts.
        pci.msix.clear()
        await pci.irq(q)
        await ClockCycles(dut.clk_i, 4)
        assert not pci.msix
        # One was on offer before.
        dut.msix_ready.value = 0
        await pci.irq((q + 1) % NUM_Q)
        await ClockCycles(dut.clk_i, 4)
        dut.q_quiet.value = others | 1 << q
        await ClockCycles(dut.clk_i, 10)
        assert await pci.get("queue_reset") == 1
        dut.msix_ready.value = 1
        await until(dut, lambda: int(dut.q_reset.value) == 0, 20)
        assert int(dut.q_enable.value) == others
        assert await pci.get("queue_reset") == 0 and await pci.get("queue_enable") == 0
        assert await pci.get("queue_size") == Q_SIZE and await pci.get("queue_desc") == 0
        assert await pci.get("queue_msix_vector") == NO_VECTOR
        assert await pci.get("device_status") == 15
        await pci.queue(
            q, size=32, msix_vector=q + 1, desc=0x1000 * q, driver=0x100 * q, device=0x200 * q, enable=1
        )
        assert await pci.get("queue_enable") == 1 and await pci.get("queue_reset") == 0
        await pci.write(NOTIFY + 4 * q, 2, q)
        assert [n for n, _ in pci.notified] == [q]
        pci.notified.clear()
        # Disabling by 0 is not possible.
        await pci.set("queue_enable", 0)
        assert await pci.get("queue_enable") == 1
    # Quiet at once: a notification just given still reaches the queue before it counts.
    pci.pause = 0
    up: list[int] = []

    async def watch() -> None:
        while True:
            await RisingEdge(dut.clk_i)
            up.append(int(dut.q_reset.value))

    task = cocotb.start_soon(watch())
    await pci.queue(3, reset=1)
    await until(dut, lambda: up[-1] == 0 and any(up), 20)
    assert sum(u == 8 for u in up) > 2
    task.cancel()
    # A device reset ends a queue reset that never would.
    dut.q_quiet.value = 0
    await pci.queue(2, reset=1)
    await pci.set("device_status", 0)
    await pci.wait_reset()
    assert int(dut.q_reset.value) == 0
    # Not negotiated: not there.
    await pci.bring_up(VERSION_1)
    await pci.queue(1, reset=1)
    assert await pci.get("queue_reset") == 0 and await pci.get("queue_enable") == 1
    pci.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def sizes_depend_on_the_ring_format(dut):
    pci = await function(dut)
    for features in (VERSION_1, VERSION_1 | PACKED):
        assert await pci.accept(features)
        await pci.set("queue_select", 0)
        good = [1, 2, 64, Q_SIZE] + ([3, 100, Q_SIZE - 1] if features & PACKED else [])
        for size in (*good, 0, 3, 100, Q_SIZE - 1, Q_SIZE + 1, 2 * Q_SIZE, 0x8000, 0xFFFF):
            before = await pci.get("queue_size")
            await pci.set("queue_size", size)
            assert await pci.get("queue_size") == (size if size in good else before)
        await pci.set("device_status", 0)
        await pci.wait_reset()
    pci.end()


def test_via_virtio_pci() -> None:
    run(
        "via_virtio_pci_tb",
        __file__,
        sources=["rtl/virtio/via_virtio_pkg.sv"],
        defines={"VIA_DATA_W": 64},
        parameters={"NumQ": NUM_Q, "QSize": Q_SIZE},
    )
