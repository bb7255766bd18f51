# SPDX-License-Identifier: Apache-2.0
"""via_guard: legal traffic passes unchanged, every misuse is caught, a killed slot leaves nothing behind."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiMaster, AxiRam

from via_tb import AxiMem, AxiRaw, rng, run, stalls, start, until

CROSS4K, WLAST, BAD_BURST, STUCK, UNSTABLE = 0x10, 0x11, 0x12, 0x13, 0x15
WIDTH = 16
SIZE = 1 << 16


async def begin(dut) -> None:
    dut.quiesce_i.value = 0
    dut.isolate_i.value = 0
    await start(dut)


async def pair(dut, stall: float = 0.0, **kw) -> tuple[AxiRaw, AxiMem]:
    r = rng()
    slot = AxiRaw(dut.u_s, stall=stall, r=r)
    mem = AxiMem(dut.u_m, "axi", stall=stall, size=SIZE, r=r, **kw)
    for i in range(0, SIZE, 4):
        mem.mem[i : i + 4] = (i * 2654435761 % (1 << 32)).to_bytes(4, "little")
    await begin(dut)
    return slot, mem


def word(mem: AxiMem, addr: int) -> int:
    return int.from_bytes(mem.mem[addr : addr + WIDTH], "little")


def legal(r) -> tuple[int, int]:
    """An address and a number of beats within 4 KiB."""
    beats = r.choice((1, 1, 2, 3, 8, 64, 256))
    page = r.randrange(SIZE // 4096) * 4096
    return page + r.randrange(256 - beats + 1) * WIDTH, beats


async def works(dut, slot: AxiRaw, mem: AxiMem) -> None:
    """A write and a read pass as they should."""
    slot.r.clear()
    slot.b.clear()
    slot.write(0x1230, [1 << 100 | 5, 6, 7], ident=41)
    await until(dut, lambda: slot.b, what="B")
    slot.read(0x1230, 3, ident=42)
    await until(dut, lambda: len(slot.r) == 3, what="R")
    assert [b[1:] for b in slot.b] == [(41, 0)]
    assert [r[1:] for r in slot.r] == [(42, 0, 0, 1 << 100 | 5), (42, 0, 0, 6), (42, 0, 1, 7)]


@cocotb.test(timeout_time=500, timeout_unit="us")
async def legal_traffic_passes_unchanged(dut):
    """cocotbext-axi on both sides: a manager with many ids and a memory, with pauses everywhere."""
    r = rng()
    master = AxiMaster(AxiBus.from_prefix(dut.u_s, "axi"), dut.clk_i, dut.rst_ni, reset_active_level=False)
    ram = AxiRam(
        AxiBus.from_prefix(dut.u_m, "axi"), dut.clk_i, dut.rst_ni, reset_active_level=False, size=SIZE
    )
    for side in (master, ram):
        for channel in (
            side.write_if.aw_channel,
            side.write_if.w_channel,
            side.write_if.b_channel,
            side.read_if.ar_channel,
            side.read_if.r_channel,
        ):
            channel.set_pause_generator(stalls(r, 0.25))
    await begin(dut)
    model = bytearray(SIZE)

    async def worker(base: int) -> None:
        """Works in its own part of the memory, so that workers may overlap in time."""
        for _ in range(12):
            at = base + r.randrange(SIZE // 8 // WIDTH // 2) * WIDTH
            count = r.choice((1, 2, 5, 40, 200)) * WIDTH
            if r.random() < 0.5:
                # A partial last beat exercises strobes.
                data = r.randbytes(count - r.randrange(WIDTH))
                model[at : at + len(data)] = data
                assert (await master.write(at, data)).resp == 0
            else:
                assert (await master.read(at, count)).data == bytes(model[at : at + count])

    tasks = [cocotb.start_soon(worker(i * SIZE // 8)) for i in range(8)]
    for task in tasks:
        await task
    assert ram.read(0, SIZE) == bytes(model)
    await ClockCycles(dut.clk_i, 8)
    assert int(dut.quiet_o.value) == 1 and int(dut.violation_o.value) == 0


@cocotb.test(timeout_time=100, timeout_unit="us")
async def one_beat_a_cycle_and_ids_given_back(dut):
    for beats in (1, 4, 64):
        slot, mem = await pair(dut, latency=6)
        count = 600 // beats
        for i in range(count):
            addr = i * beats * WIDTH % SIZE
            slot.read(addr, beats, ident=i * 7 % 64)
            slot.write(addr, [i * beats + k for k in range(beats)], ident=i * 5 % 64)
        await until(dut, lambda: len(slot.b) == count and len(slot.r) == count * beats, 4000)  # noqa: B023
        assert [x[1] for x in slot.b] == [i * 5 % 64 for i in range(count)]
        assert [x[1] for x in slot.r] == [i * 7 % 64 for i in range(count) for _ in range(beats)]
        # The queue of 8 bursts covers the latency of the memory only if a burst is long enough.
        n = count * beats
        if beats > 1:
            assert slot.r[-1][0] - slot.r[0][0] == n - 1, (
                f"{beats}: {slot.r[-1][0] - slot.r[0][0] + 1} cycles, {n} R beats"
            )
            assert mem.w_beats[-1] - mem.w_beats[0] == n - 1, (
                f"{beats}: {mem.w_beats[-1] - mem.w_beats[0] + 1} W"
            )
        slot.end()
        mem.end()
        dut.rst_ni.value = 0
        await ClockCycles(dut.clk_i, 2)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def data_that_comes_behind_its_address_loses_no_cycle(dut):
    """An app that sends each burst's data only some cycles after the address was accepted."""
    slot, mem = await pair(dut, latency=2)
    bursts, lag = 200, 6
    for i in range(bursts):
        slot.aw.append(slot.ax(i * 2 * WIDTH % SIZE, 2, i % 64))

    async def data() -> None:
        sent = 0
        for _ in range(20 * bursts):
            now = len(slot.taken["aw"])
            await ClockCycles(dut.clk_i, 1)
            due.append(now)
            while len(due) > lag and sent < due[-1 - lag]:
                slot.w.extend((2 * sent + k, (1 << WIDTH) - 1, k) for k in range(2))
                sent += 1

    due: list[int] = []
    task = cocotb.start_soon(data())
    await until(dut, lambda: len(slot.b) == bursts, 4000)
    task.cancel()
    assert mem.w_beats[-1] - mem.w_beats[0] == 2 * bursts - 1
    assert all(word(mem, i * WIDTH) == i for i in range(2 * bursts))


# What each wrong thing is answered with: cause, is_write, address.
MISUSE: dict[str, tuple[int, int, int | None]] = {
    "ar fixed": (BAD_BURST, 0, 0x2000),
    "ar wrap": (BAD_BURST, 0, 0x2000),
    "ar narrow": (BAD_BURST, 0, 0x2000),
    "ar misaligned": (BAD_BURST, 0, 0x2008),
    "ar crosses": (CROSS4K, 0, 0x3000 - WIDTH),
    "ar crosses far": (CROSS4K, 0, 0x2010),
    "ar drops": (UNSTABLE, 0, None),
    "aw fixed": (BAD_BURST, 1, 0x2000),
    "aw narrow": (BAD_BURST, 1, 0x2000),
    "aw misaligned": (BAD_BURST, 1, 0x2001),
    "aw crosses": (CROSS4K, 1, 0x3000 - WIDTH),
    "aw drops": (UNSTABLE, 1, None),
    "w drops": (UNSTABLE, 1, None),
    "w early last": (WLAST, 1, 0x2000),
    "w late last": (WLAST, 1, 0x2000),
    "w never": (STUCK, 1, 0x2000),
    "w stops": (STUCK, 1, 0x2000),
}


def commit(slot: AxiRaw, kind: str) -> None:
    size, full = slot.size, (1 << WIDTH) - 1
    channel, what = kind.split(" ", 1)
    queue = slot.ar if channel == "ar" else slot.aw
    shapes = {
        "fixed": (9, 0x2000, 3, size, 0),
        "wrap": (9, 0x2000, 3, size, 2),
        "narrow": (9, 0x2000, 3, size - 1, 1),
        "misaligned": (9, 0x2008 if channel == "ar" else 0x2001, 3, size, 1),
        "crosses": (9, 0x3000 - WIDTH, 1, size, 1),
        "crosses far": (9, 0x2010, 255, size, 1),
    }
    if what in shapes:
        queue.append(shapes[what])
        if channel == "aw":
            slot.w.extend((i, full, i == 3) for i in range(4))
        return
    if what == "drops":
        slot.drop.add(channel)
        for i in range(200):
            slot.read(i * 64, 4) if channel == "ar" else slot.write(i * 64, [i] * 4)
        return
    slot.aw.append((9, 0x2000, 3, size, 1))
    last = {"early last": 2, "late last": 9, "never": -1, "stops": 9}[what]
    beats = {"early last": 3, "late last": 4, "never": 0, "stops": 2}[what]
    slot.w.extend((i, full, i == last) for i in range(beats))


@cocotb.test(timeout_time=500, timeout_unit="us")
async def every_misuse_is_named_and_stopped(dut):
    slot, mem = await pair(dut, stall=0.1)
    edge = RisingEdge(dut.clk_i)
    for kind, (cause, is_write, va) in MISUSE.items():
        # Some legal traffic before it, which has to come through.
        mem.reads.clear()
        mem.writes.clear()
        slot.r.clear()
        slot.b.clear()
        for i in range(3):
            slot.read(0x100 * i, 4, i)
            slot.write(0x4000 + 0x100 * i, [i] * 4, i)
        await until(dut, lambda: len(slot.r) == 12 and len(slot.b) == 3)
        commit(slot, kind)
        mem.set_stall(0.8 if "drops" in kind else 0.1)
        for _ in range(3000):
            await edge
            if int(dut.violation_o.value):
                break
        else:
            raise AssertionError(f"{kind}: not noticed")
        got = int(dut.cause_o.value), int(dut.is_write_o.value), int(dut.va_o.value)
        assert got[:2] == (cause, is_write), f"{kind}: {got}"
        assert va is None or got[2] == va, f"{kind}: {got[2]:#x}"
        if "drops" not in kind:
            bad = [x for x in (*mem.reads, *mem.writes) if x[1] >> 12 == 2]
            assert not bad, f"{kind}: {bad} got through"
        mem.set_stall(0.1)
        dut.isolate_i.value = 1
        await until(dut, lambda: int(dut.quiet_o.value), 2000, f"{kind}: quiet")
        assert mem.open_reads == mem.open_writes == 0
        slot.drop.clear()
        slot.clear()
        await ClockCycles(dut.clk_i, 4)
        dut.isolate_i.value = 0
        await ClockCycles(dut.clk_i, 2)
        await works(dut, slot, mem)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_payload_changed_while_it_waits_passes_as_it_is_at_ready(dut):
    """It harms the slot's own data only, so it is no violation; nor is one that would break a rule, if ready never sees it."""
    r = rng()
    slot, mem = await pair(dut)
    mem.set_stall(1.0)  # the shell accepts nothing, so the slot soon waits on every channel
    for i in range(100):
        slot.read(i * 64, 4, i % 64)
        slot.write(SIZE // 2 + i * 64, [i] * 4, i % 64)
    await ClockCycles(dut.clk_i, 600)
    queues = {"ar": slot.ar, "aw": slot.aw, "w": slot.w}
    first = {name: queue[0] for name, queue in queues.items()}
    taken = {name: len(slot.taken[name]) for name in queues}

    def any_ax(_) -> tuple[int, ...]:
        return tuple(r.randrange(n) for n in (64, 1 << 20, 256, 8, 4))

    def any_w(_) -> tuple[int, ...]:
        return tuple(r.randrange(n) for n in (1 << 128, 1 << WIDTH, 2))

    slot.change.update(ar=any_ax, aw=any_ax, w=any_w)
    for now in range(200):
        await RisingEdge(dut.clk_i)
        assert not int(dut.violation_o.value)
        assert all(queue[0] != first[name] for name, queue in queues.items() if now > 2)
    # At last something legal, other than what was offered first.
    read, write = 0x4000, 0x5000
    data = (1 << 99, *first["w"][1:])
    last = {"ar": slot.ax(read, 4, 33), "aw": slot.ax(write, 4, 44), "w": data}
    slot.change.update({name: lambda _, name=name: last[name] for name in last})
    await ClockCycles(dut.clk_i, 3)
    slot.change.clear()
    assert {name: len(slot.taken[name]) for name in queues} == taken
    mem.set_stall(0.3)
    await until(dut, lambda: len(slot.b) == 100 and len(slot.r) == 400, 4000)
    reads, writes = ([i * 64 + base for i in range(100)] for base in (0, SIZE // 2))
    reads[taken["ar"]], writes[taken["aw"]] = read, write
    assert [x[1] for x in mem.reads] == reads and [x[1] for x in mem.writes] == writes
    ids = [i % 64 for i in range(100)]
    ids[taken["ar"]] = 33
    assert [x[1] for x in slot.r[::4]] == ids
    beat = taken["w"]
    assert word(mem, writes[beat // 4] + beat % 4 * WIDTH) == data[0]
    assert not int(dut.violation_o.value)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_slow_slot_is_not_stuck(dut):
    """A beat just before the limit is fine, and the limit does not run while the shell is waited for."""
    slot, mem = await pair(dut)
    limit = int(dut.StuckCycles.value)
    full = (1 << WIDTH) - 1
    slot.aw.append(slot.ax(0x2000, 3))
    for i in range(3):
        await ClockCycles(dut.clk_i, limit - 8)
        slot.w.append((i, full, i == 2))
        assert not int(dut.violation_o.value)
    await until(dut, lambda: slot.b)
    mem.set_stall(1.0)  # the shell takes no writes
    for i in range(80):
        slot.write(0x1000, [i] * 16)
    for _ in range(5 * limit):
        await RisingEdge(dut.clk_i)
        assert not int(dut.violation_o.value)
    mem.set_stall(0.0)
    await until(dut, lambda: len(slot.b) == 81, 6000)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def quiesce_stops_between_bursts(dut):
    slot, mem = await pair(dut, stall=0.2)
    for i in range(40):
        slot.read(i * 256, 8, i)
        slot.write(0x8000 + i * 256, [i] * 8, i)
    await ClockCycles(dut.clk_i, 150)
    dut.quiesce_i.value = 1
    await until(dut, lambda: int(dut.quiet_o.value), what="quiet")
    assert mem.open_reads == mem.open_writes == 0
    seen = len(mem.reads), len(mem.writes)
    assert 0 < seen[0] < 40 and 0 < seen[1] < 40
    await ClockCycles(dut.clk_i, 300)
    assert (len(mem.reads), len(mem.writes)) == seen and int(dut.quiet_o.value) == 1
    dut.quiesce_i.value = 0
    await until(dut, lambda: len(slot.b) == 40 and len(slot.r) == 320)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_slot_that_takes_no_answers_holds_up_only_itself(dut):
    """The testbench asserts that R and B are never refused; here the slot gives reason to."""
    slot, mem = await pair(dut)
    slot.stall["r"] = slot.stall["b"] = stalls(rng(), 1.0)
    for i in range(60):
        slot.read(0x1000 * (i % 8), 64, i)
        slot.write(0x1000 * (i % 8), [i] * 64, i)
    await ClockCycles(dut.clk_i, 2500)
    assert mem.open_reads == mem.open_writes == 0, "the shell waits"
    assert len(mem.reads) == 300 // 64 and len(mem.writes) >= 8
    slot.stall["r"] = slot.stall["b"] = stalls(rng(), 0.0)
    await until(dut, lambda: len(slot.b) == 60 and len(slot.r) == 60 * 64, 6000)


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def killed_at_any_cycle_nothing_is_left(dut):
    """Traffic legal and not, cut off at random; the slot goes on. Afterwards the port works as new."""
    r = rng()
    slot, mem = await pair(dut, stall=0.3)
    edge = RisingEdge(dut.clk_i)
    violations = 0
    for rnd in range(50):
        mem.latency = r.choice((1, 5, 40))
        hostile = r.random() < 0.5
        slot.drop = {c for c in ("ar", "aw", "w") if hostile and r.random() < 0.2}
        for _ in range(r.randrange(1, 30)):
            addr, beats = legal(r)
            slot.read(addr, beats, r.randrange(64))
            addr, beats = legal(r)
            slot.write(addr, [r.getrandbits(128) for _ in range(beats)], r.randrange(64))
        if hostile:
            for _ in range(2):
                shape = (
                    r.randrange(64),
                    r.randrange(1 << 20),
                    r.randrange(256),
                    r.randrange(8),
                    r.randrange(4),
                )
                r.choice((slot.ar, slot.aw)).append(shape)
                slot.w.append((r.getrandbits(128), r.getrandbits(16), r.randrange(2)))
        delay = r.randrange(400)
        for _ in range(delay):
            await edge
            if int(dut.violation_o.value):
                violations += 1
                break
        for _ in range(r.randrange(3)):
            await edge
        dut.isolate_i.value = 1
        for waited in range(4000):
            await edge
            # Garbage from the slot.
            if r.random() < 0.1:
                slot.clear()
                slot.read(*legal(r))
                slot.write(*(lambda a: (a[0], [0] * a[1]))(legal(r)))
            if waited > 2:
                for name in ("axi_arready", "axi_awready", "axi_wready", "axi_rvalid", "axi_bvalid"):
                    assert not int(getattr(dut.u_s, name).value), f"round {rnd}: {name} to an isolated slot"
            if waited > 2 and int(dut.quiet_o.value):
                break
        else:
            raise AssertionError(f"round {rnd}: never quiet; repeat with VIA_SEED")
        assert mem.open_reads == mem.open_writes == 0, f"round {rnd}: quiet with open bursts"
        slot.drop.clear()
        slot.clear()
        await ClockCycles(dut.clk_i, r.randrange(1, 6))
        assert int(dut.quiet_o.value), f"round {rnd}: quiet for a moment only"
        slot.clear()
        await ClockCycles(dut.clk_i, 2)
        dut.isolate_i.value = 0
        await ClockCycles(dut.clk_i, 3)
        await works(dut, slot, mem)
    assert violations > 3


@pytest.mark.parametrize("data_w", [128])
def test_via_guard(data_w):
    run("via_guard_tb", __file__, defines={"VIA_DATA_W": data_w})
