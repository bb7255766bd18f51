# SPDX-License-Identifier: Apache-2.0
"""via_axi_mux: several managers on one port; answers that overtake, ids, full rate, who goes first, reads behind writes."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiBus, AxiMaster, AxiRam

from via_tb import AxiMem, AxiRaw, rng, run, stalls, start, until

SIZE = 1 << 16


def scopes(dut) -> list:
    return [dut.gen_mgr[i].u_bus for i in range(int(dut.N.value))]


@cocotb.test(timeout_time=500, timeout_unit="us")
async def every_byte_from_every_source(dut):
    """cocotbext-axi at every port, with pauses."""
    r = rng()
    args = (dut.clk_i, dut.rst_ni)
    masters = [AxiMaster(AxiBus.from_prefix(s, "axi"), *args, False) for s in scopes(dut)]
    ram = AxiRam(AxiBus.from_prefix(dut.u_m, "axi"), *args, False, size=SIZE)
    for side in (*masters, ram):
        channels = side.write_if.aw_channel, side.write_if.w_channel, side.write_if.b_channel
        for channel in (*channels, side.read_if.ar_channel, side.read_if.r_channel):
            channel.set_pause_generator(stalls(r, 0.25))
    await start(dut)
    model = bytearray(SIZE)
    part = SIZE // len(masters) & -4096
    width = len(dut.u_m.axi_wdata) // 8

    async def worker(m: int) -> None:
        for _ in range(60):
            at = m * part + r.randrange(part // 2 // width) * width
            count = r.choice((1, 3, 17)) * width
            if r.random() < 0.5:
                data = r.randbytes(count - r.randrange(width))
                model[at : at + len(data)] = data
                assert (await masters[m].write(at, data)).resp == 0
            else:
                assert (await masters[m].read(at, count)).data == bytes(model[at : at + count])

    for task in [cocotb.start_soon(worker(m)) for m in range(len(masters))]:
        await task
    assert ram.read(0, SIZE) == bytes(model)
    await ClockCycles(dut.clk_i, 6)
    assert int(dut.idle_o.value) == 1


async def ports(dut, stall: float = 0.0, **kw) -> tuple[list[AxiRaw], AxiMem]:
    r = rng()
    mgr = [AxiRaw(s, stall=stall, r=r) for s in scopes(dut)]
    mem = AxiMem(dut.u_m, "axi", stall=stall, size=SIZE, r=r, **kw)
    dut.weights_i.value = dut.first_i.value = dut.plain_i.value = 0
    dut.window_i.value = 255
    await start(dut)
    return mgr, mem


@cocotb.test(timeout_time=200, timeout_unit="us")
async def answers_may_overtake_and_find_their_source(dut):
    mgr, mem = await ports(dut, 0.3, latency=4, fails=lambda a: a >= SIZE // 2, overtake=True)
    r = rng()
    mem.mem[:] = r.randbytes(SIZE)
    reads, responses = [[] for _ in mgr], [[] for _ in mgr]
    for m, x in enumerate(mgr):
        for _ in range(60):
            beats, ident, at = r.choice((1, 2, 16)), r.randrange(64), r.randrange(SIZE // 4096) * 4096
            resp = 2 if at >= SIZE // 2 else 0
            x.read(at, beats, ident)
            for i in range(beats):
                data = int.from_bytes(mem.mem[at + i * x.width : at + (i + 1) * x.width], "little")
                reads[m].append((ident, resp, int(i == beats - 1), data))
            x.write(at + 2048, [m] * beats, ident)
            responses[m].append((ident, resp))
    await until(dut, lambda: all(len(x.b) == 60 and x.idle for x in mgr) and not mem.open_reads, 20000)
    await ClockCycles(dut.clk_i, 20)
    for m, x in enumerate(mgr):
        assert [y[1:] for y in x.r] == reads[m] and [y[1:] for y in x.b] == responses[m]
    assert int(dut.idle_o.value) == 1


@cocotb.test(timeout_time=200, timeout_unit="us")
async def one_beat_a_cycle_alone_and_together(dut):
    mgr, mem = await ports(dut, latency=4)
    for who in (*([m] for m in mgr), mgr):
        for beats in (1, 8):
            mem.r_beats.clear()
            mem.w_beats.clear()
            count = 160 // beats
            for x in who:
                for i in range(count):
                    x.read(i * beats * x.width, beats)
                    x.write(i * beats * x.width, [i] * beats)
            total = count * beats * len(who)
            await until(dut, lambda: len(mem.r_beats) == len(mem.w_beats) == total, 4000)  # noqa: B023
            # From idle, the second burst of single beats comes with the last beat of the first one: a cycle without W.
            for cycles, spare in ((mem.r_beats, 0), (mem.w_beats, int(beats == 1))):
                assert cycles[-1] - cycles[0] <= total - 1 + spare, f"{len(who)} sources, bursts of {beats}"
            await until(dut, lambda: not mem.open_reads and not mem.open_writes)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_long_burst_moves_while_no_valid_and_no_ready_changes(dut):
    """The clock stops (via_tb_gate) if the block reports to be still while it passes beats on."""
    mgr, _ = await ports(dut, latency=4)
    for x in mgr:
        beats = min(4096 // x.width, 256)
        x.write(0, list(range(beats)))
        await until(dut, lambda: len(x.b) == 1, 4 * beats)  # noqa: B023
        x.read(0, beats)
        await until(dut, lambda: len(x.r) == beats, 4 * beats)  # noqa: B023
        assert [y[-1] for y in x.r] == list(range(beats))


@cocotb.test(timeout_time=200, timeout_unit="us")
async def the_first_goes_first_and_the_others_share(dut):
    mgr, mem = await ports(dut, latency=4)
    count, beats = 30, 8
    for x in mgr[1:]:
        for i in range(count):
            x.read(i * 256, beats)
            x.write(i * 256, [i] * beats)
    await ClockCycles(dut.clk_i, 100)
    for i in range(4):
        mgr[0].read(i * 256, 1)
        mgr[0].write(i * 256, [i])
    await until(dut, lambda: all(len(x.b) == count for x in mgr[1:]) and not mem.open_reads, 6000)
    # A ring entry waits for what is ahead of it in the memory, not for the queues of the others.
    assert max(mgr[0].b[i][0] - mgr[0].taken["w"][i] for i in range(4)) < 60
    last = [x.b[-1][0] for x in mgr[1:]]
    assert max(last) - min(last) <= (len(mgr) - 1) * beats


@cocotb.test(timeout_time=500, timeout_unit="us")
async def a_read_leaves_behind_the_writes_taken_before_it(dut):
    """Ordered: whatever the port refuses, an address of R follows every write whose beat was taken in an earlier cycle."""
    mgr, mem = await ports(dut, latency=2)
    mem.set_stall(0.6)
    r = rng()
    width = mgr[0].width
    places = r.sample(range(SIZE // width), 100 * len(mgr))
    for x in mgr:
        for _ in range(100):
            x.write(r.randrange(SIZE // width) * width, [r.getrandbits(32)])
            x.read(places.pop() * width)
    wanted = {ar[1]: (m, i) for m, x in enumerate(mgr) for i, ar in enumerate(x.ar)}
    await until(dut, lambda: all(x.idle and len(x.b) == 100 for x in mgr) and not mem.open_reads, 20000)
    taken = sorted(t for x in mgr for t in x.taken["w"])
    held = 0
    for at, addr, _ in mem.reads:
        m, i = wanted[addr]
        begun = mgr[m].taken["ar"][i]
        before = sum(t < begun for t in taken)
        assert sum(t < at for t in mem.w_beats) >= before, f"a read of {addr:#x} passes W"
        assert sum(t < at for t, _, _ in mem.writes) >= before, f"a read of {addr:#x} passes AW"
        held += sum(t < begun for t in mem.w_beats) < before
    assert held > 20, "hardly a read had anything to be behind"


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def sources_share_by_weight_whatever_their_bursts(dut):
    """Shared: any of them at a time, with bursts of one length each, reads and writes: bytes are even, and by weight. With `plain_i` bursts are."""
    if not int(dut.Shared.value):
        return
    mgr, mem = await ports(dut, latency=8)
    r = rng()
    longest = min(4096 // mgr[0].width, 256)
    # Less than a long burst under way, so that short ones need few of those that a source may have.
    dut.window_i.value = 2
    for plain, weighted in ((0, False), (0, True), (1, True)):
        dut.plain_i.value = plain
        who = r.sample(range(1, len(mgr)), r.randrange(2, 5))
        weights = [r.randrange(1, 4) if weighted else 1 for _ in who]
        dut.weights_i.value = sum(weight << 4 * m for m, weight in zip(who, weights, strict=True))
        lengths = [longest, 8, *(r.choice((8, 24, longest // 2)) for _ in who)][: len(who)]
        units = lengths if plain else weights
        counted = 100 if plain else 10 * longest
        for m, unit, beats in zip(who, units, lengths, strict=True):
            for _ in range(2 * counted * unit // beats):
                mgr[m].read(r.randrange(SIZE // 4096) * 4096, beats)
                mgr[m].write(r.randrange(SIZE // 4096) * 4096, [m] * beats)

        def moved(kind: str, who: list = who, units: list = units) -> list[float]:
            counts = [len(mgr[m].taken["w"] if kind == "w" else mgr[m].r) for m in who]
            return [count / unit for count, unit in zip(counts, units, strict=True)]

        old = {kind: moved(kind) for kind in "rw"}
        gain = lambda kind, old=old, moved=moved: [x - y for x, y in zip(moved(kind), old[kind], strict=True)]  # noqa: E731
        shares: dict[str, list[float]] = {}

        def done(gain=gain, shares=shares, counted=counted) -> bool:
            for kind in "rw":
                if kind not in shares and min(gain(kind)) >= counted:
                    shares[kind] = gain(kind)
            return len(shares) == 2

        await until(dut, done, 200000)
        for kind, share in shares.items():
            jain = sum(share) ** 2 / len(share) / sum(x * x for x in share)
            assert jain >= 0.99, (kind, plain, weights, lengths, share)
        await until(dut, lambda: all(x.idle for x in mgr) and not mem.open_reads, 400000)


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def what_is_under_way_is_bounded_except_for_those_who_go_first(dut):
    """Shared: beyond the window two bursts may be under way. One that goes first waits for what is ahead of it in the memory only."""
    if not int(dut.Shared.value):
        return
    mgr, mem = await ports(dut, latency=200)
    longest = min(4096 // mgr[0].width, 256)
    dut.window_i.value = window = 20
    for x in mgr[1:4]:
        for i in range(12):
            x.read(i % 16 * 4096, longest)
            x.write(i % 16 * 4096, [i] * longest)
    most = {"r": 0, "w": 0}
    for _ in range(4000):
        await ClockCycles(dut.clk_i, 1)
        most["r"] = max(most["r"], sum(n for *_, n in mem.reads) - len(mem.r_beats))
        most["w"] = max(most["w"], sum(n for *_, n in mem.writes) - longest * sum(len(x.b) for x in mgr[1:4]))
    for kind, beats in most.items():
        assert 16 * window - longest < beats <= 16 * window + 2 * longest, (kind, beats)
    dut.first_i.value = 1 << 5
    begun = len(mgr[1].r) + len(mgr[2].r) + len(mgr[3].r)
    mgr[5].read(0, longest)
    mgr[5].write(0, [9] * longest)
    await until(dut, lambda: len(mgr[5].r) == longest and len(mgr[5].b) == 1, 3000)
    assert len(mgr[1].r) + len(mgr[2].r) + len(mgr[3].r) - begun <= 16 * window + 3 * longest
    await until(dut, lambda: all(x.idle for x in mgr) and not mem.open_reads, 40000)


@pytest.mark.parametrize(("sources", "shared"), [(3, 0), (8, 1)])
def test_via_axi_mux(sources, shared):
    run("via_axi_mux_tb", __file__, defines={"VIA_DATA_W": 128}, parameters={"N": sources, "Shared": shared})
