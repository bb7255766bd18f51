# SPDX-License-Identifier: Apache-2.0
"""via_xbar: every byte to its place from every manager, errors, full rate, order, overtaking, shares in bytes."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiMaster, AxiRam

from via_tb import AxiMem, AxiRaw, rng, run, stalls, start, until

SIZE = 1 << 16
BURSTS = 80  # of a manager in each direction: more than may be in flight
CHAN = 1 << 34
HOST, ERR = 1 << 63, 1 << 62
OKAY, SLVERR = 0, 2


class Ports:
    """Managers and memories at all ports. Targets: the channels, the host, the error responder."""

    def __init__(self, dut, stall: float = 0.0, **kw) -> None:
        self.dut, self.r = dut, rng()
        self.mgr = [AxiRaw(g.u_bus, stall=stall, r=self.r) for g in scopes(dut, "gen_mgr")]
        self.mem = [
            AxiMem(g.u_bus, "axi", stall=stall, size=SIZE, r=self.r, **kw) for g in scopes(dut, "gen_sub")
        ]
        self.width = self.mgr[0].width
        self.to_host = int(dut.to_host_o.value)
        self.set_weights([1] * len(self.mgr))
        dut.first_i.value = 0
        share_by_bytes(dut)

    def base(self, target: int) -> int:
        return [*(CHAN * i for i in range(len(self.mem) - 1)), HOST, ERR][target]

    def set_weights(self, weights: list[int]) -> None:
        """Weights of the managers."""
        self.dut.weights_i.value = sum(weight << 4 * m for m, weight in enumerate(weights))

    def reaches(self, mgr: int, target: int) -> bool:
        """Whether there is a way; otherwise the manager gets errors."""
        host = len(self.mem) - 1
        return bool(self.to_host >> mgr & 1) if target == host else target < host


def share_by_bytes(dut) -> None:
    """The policy that a card begins with."""
    dut.plain_i.value, dut.quantum_i.value = 0, 4


def scopes(dut, name: str) -> list:
    found = []
    while True:
        try:
            found.append(getattr(dut, name)[len(found)])
        except (IndexError, AttributeError):
            return found


async def ports(dut, stall: float = 0.0, **kw) -> Ports:
    p = Ports(dut, stall, **kw)
    await start(dut)
    return p


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def every_manager_reaches_every_memory(dut):
    """cocotbext-axi at every port, with pauses. Each manager works in its own part of every memory."""
    r = rng()
    args = (dut.clk_i, dut.rst_ni)
    masters = [AxiMaster(AxiBus.from_prefix(g.u_bus, "axi"), *args, False) for g in scopes(dut, "gen_mgr")]
    rams = [
        AxiRam(AxiBus.from_prefix(g.u_bus, "axi"), *args, False, size=SIZE) for g in scopes(dut, "gen_sub")
    ]
    for side in (*masters, *rams):
        channels = side.write_if.aw_channel, side.write_if.w_channel, side.write_if.b_channel
        for channel in (*channels, side.read_if.ar_channel, side.read_if.r_channel):
            channel.set_pause_generator(stalls(r, r.choice((0.0, 0.2, 0.4))))
    share_by_bytes(dut)
    await start(dut)
    bases = [*(CHAN * i for i in range(len(rams) - 1)), HOST]
    models = [bytearray(SIZE) for _ in rams]
    part = SIZE // len(masters) & -4096
    width = len(dut.gen_mgr[0].u_bus.axi_wdata) // 8

    async def worker(m: int) -> None:
        for _ in range(60):
            t = r.randrange(len(rams))
            at = m * part + r.randrange(part // 2 // width) * width
            count = r.choice((1, 3, 17)) * width
            if r.random() < 0.5:
                data = r.randbytes(count - r.randrange(width))
                models[t][at : at + len(data)] = data
                assert (await masters[m].write(bases[t] + at, data)).resp == OKAY
            else:
                got = await masters[m].read(bases[t] + at, count)
                assert got.data == bytes(models[t][at : at + count]), f"manager {m}, memory {t}, {at:#x}"

    for task in [cocotb.start_soon(worker(m)) for m in range(len(masters))]:
        await task
    for ram, model in zip(rams, models, strict=True):
        assert ram.read(0, SIZE) == bytes(model)
    await ClockCycles(dut.clk_i, 6)
    assert int(dut.idle_o.value) == 1


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def many_bursts_in_flight_stay_in_order(dut):
    """Each manager mixes targets and errors; answers come in order with the right id, data, status."""
    for stall, latency in ((0.0, 1), (0.3, 7)):
        p = await ports(dut, stall, latency=latency)
        r, width = p.r, p.width
        for t, mem in enumerate(p.mem):
            for at in range(0, SIZE, width):
                mem.mem[at : at + width] = (t << 32 | at | 1 << 60).to_bytes(width, "little")
        reads: list[list[tuple[int, ...]]] = [[] for _ in p.mgr]
        responses: list[list[tuple[int, int]]] = [[] for _ in p.mgr]
        stored: list[dict[int, int]] = [{} for _ in p.mem]
        half = SIZE // 2
        block = min(4096, 1 << (half // len(p.mgr)).bit_length() - 1)  # no burst leaves one
        part = half // len(p.mgr) // block * block
        for m, mgr in enumerate(p.mgr):
            for _ in range(BURSTS):
                beats, ident = r.choice((1, 2, 4, 16)), r.randrange(64)
                t = r.randrange(len(p.mem) + 1)
                at = r.randrange((half - beats * width) // width) * width
                if at // 4096 != (at + beats * width - 1) // 4096:
                    at = at // 4096 * 4096
                mgr.read(p.base(t) + at, beats, ident)
                bad = not p.reaches(m, t)
                for k in range(beats):
                    value = 0 if bad else t << 32 | at + k * width | 1 << 60
                    reads[m].append((ident, SLVERR if bad else OKAY, int(k == beats - 1), value))
                # Writes go to the upper half, each manager to its own part of it.
                t, ident = r.randrange(len(p.mem) + 1), r.randrange(64)
                at = (
                    half
                    + m * part
                    + r.randrange(part // block) * block
                    + r.randrange(block // width - beats + 1) * width
                )
                data = [r.getrandbits(48) << 16 | m for _ in range(beats)]
                mgr.write(p.base(t) + at, data, ident)
                if p.reaches(m, t):
                    stored[t].update((at + k * width, d) for k, d in enumerate(data))
                responses[m].append((ident, OKAY if p.reaches(m, t) else SLVERR))
        await until(
            dut,
            lambda p=p, reads=reads: all(
                len(x.b) == BURSTS and len(x.r) == len(want) for x, want in zip(p.mgr, reads, strict=True)
            ),
            30000,
        )
        for m, mgr in enumerate(p.mgr):
            assert [x[1:] for x in mgr.r] == reads[m], f"reads of manager {m}"
            assert [x[1:] for x in mgr.b] == responses[m], f"writes of manager {m}"
        for t, mem in enumerate(p.mem):
            for at, d in stored[t].items():
                assert int.from_bytes(mem.mem[at : at + width], "little") == d
            assert not mem.open_reads and not mem.open_writes
        await ClockCycles(dut.clk_i, 4)
        assert int(dut.idle_o.value) == 1
        close(p)


def close(p: Ports) -> None:
    for x in (*p.mgr, *p.mem):
        x.end()


def span(cycles: list[int]) -> int:
    return cycles[-1] - cycles[0] + 1


async def stream(p: Ports, pairs: list[tuple[int, int]], beats: int, count: int) -> None:
    """Each (manager, target) reads and writes `count` bursts at once; all have to go at full rate."""
    for m, _ in pairs:
        p.mgr[m].r.clear()
    for mem in p.mem:
        mem.w_beats.clear()
    size = beats * p.width
    for m, t in pairs:
        for i in range(count):
            at = i * size % SIZE
            p.mgr[m].read(p.base(t) + at, beats)
            p.mgr[m].write(p.base(t) + at, [i] * beats)

    def done() -> bool:
        return all(len(p.mgr[m].r) == beats * count and p.mgr[m].idle for m, _ in pairs) and not any(
            x.open_writes for x in p.mem
        )

    await until(p.dut, done, 20 * beats * count)
    for m, t in pairs:
        what = f"manager {m} to {t}, bursts of {beats}"
        assert span([x[0] for x in p.mgr[m].r]) == beats * count, (
            f"{what}: R {span([x[0] for x in p.mgr[m].r])}"
        )
        assert span(p.mem[t].w_beats) == beats * count, f"{what}: W {span(p.mem[t].w_beats)}"


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def one_beat_a_cycle_for_every_pair(dut):
    p = await ports(dut, latency=3)
    n, k = len(p.mgr), len(p.mem)
    pairs = [(m, t) for m in range(n) for t in range(k)]
    if len(pairs) > 12:  # of a large one every manager and every memory
        pairs = [(i % n, i % k) for i in range(max(n, k))]
    for m, t in pairs:
        for beats in (1, 4):
            await stream(p, [(m, t)], beats, 120 // beats)


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def a_long_burst_moves_while_no_valid_and_no_ready_changes(dut):
    """The clock stops (via_tb_gate) if a block reports to be still that passes beats on."""
    p = await ports(dut, latency=3)
    beats = min(4096 // p.width, 256)
    for m, mgr in enumerate(p.mgr):
        at = p.base(m % (len(p.mem) - 1))
        mgr.write(at, list(range(beats)))
        await until(dut, lambda: len(mgr.b) == 1, 20 * beats)  # noqa: B023
        mgr.read(at, beats)
        await until(dut, lambda: len(mgr.r) == beats, 20 * beats)  # noqa: B023
        assert [x[-1] for x in mgr.r] == list(range(beats))


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def different_memories_at_full_rate_at_once(dut):
    p = await ports(dut, latency=3)
    n = min(len(p.mgr), len(p.mem))
    for shift in range(n) if n < 5 else (0, 1, n - 1):
        for beats in (1, 8):
            await stream(p, [(m, (m + shift) % n) for m in range(n)], beats, 160 // beats)


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def a_shared_memory_is_never_idle_and_fairly_shared(dut):
    p = await ports(dut, latency=3)
    beats, count = 4, 40
    for mgr in p.mgr:
        for i in range(count):
            mgr.read(i * beats * p.width, beats)
            mgr.write(i * beats * p.width, [i] * beats)
    total = beats * count * len(p.mgr)
    await until(dut, lambda: len(p.mem[0].r_beats) == total and len(p.mem[0].w_beats) == total, 4 * total)
    # A way may wait for the other one: a DRAM has one bus for both.
    assert max(span(p.mem[0].r_beats), span(p.mem[0].w_beats)) < 1.25 * total
    await until(dut, lambda: all(len(x.b) == count for x in p.mgr))
    # Where one is half way, so are the others.
    half = [x.b[count // 2][0] for x in p.mgr]
    assert max(half) - min(half) < 24 * beats * len(p.mgr), half


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def a_shared_memory_is_shared_by_bytes(dut):
    """Bursts of one beat beside the longest ones, and lengths at random: after any time all have moved the same."""
    p = await ports(dut, latency=20)
    longest = min(4096 // p.width, 256)
    quanta, n = 6, len(p.mgr)
    total = (quanta + 4) * longest
    lengths = [lambda: 1, lambda: longest, *[lambda: p.r.choice((1, 2, longest // 2, longest))] * (n - 2)]
    for mgr, length in zip(p.mgr, lengths, strict=True):
        for queue in (lambda at, k, mgr=mgr: mgr.read(at, k), lambda at, k, mgr=mgr: mgr.write(at, [0] * k)):
            left = total
            while left > 0:
                beats = min(length(), left)
                queue(p.r.randrange(SIZE // 4096) * 4096, beats)
                left -= beats
    # Bursts offered before there were others are whole: up to three of a manager.
    await until(dut, lambda: min(len(x.r) for x in p.mgr) >= longest, 40000)
    first = [len(x.r) for x in p.mgr]
    assert max(first) - min(first) <= 3 * longest + 160, f"reads: {first}"
    for k in range(2, quanta + 1):
        await until(dut, lambda k=k: min(len(x.r) for x in p.mgr) >= k * longest, 40000)
        beats = [len(x.r) - y for x, y in zip(p.mgr, first, strict=True)]
        # Two quanta, and what is under way to the managers.
        assert max(beats) - min(beats) <= 256, f"reads: {beats}"
    await until(dut, lambda: min(len(x.taken["w"]) for x in p.mgr) >= quanta * longest, 40000)
    half = min(x.taken["w"][quanta * longest // 2] for x in p.mgr)
    moved = [sum(1 for at in x.taken["w"] if at <= half) for x in p.mgr]
    assert max(moved) - min(moved) <= 3 * longest, f"writes: {moved}"


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def a_shared_memory_is_shared_by_weight(dut):
    """Bursts of any length: what is read is in proportion to the weights, and so is what is written."""
    p = await ports(dut, latency=20)
    longest, n = min(4096 // p.width, 256), len(p.mgr)
    weights = [1, 3, 5, *(p.r.randrange(1, 4) for _ in range(n - 3))][:n]
    p.r.shuffle(weights)
    p.set_weights(weights)
    # Each way: what is buffered on the way of one with the least weight at first, then what is counted, then as much again.
    buffered, counted = 2 * 512, 640
    for way in ("r", "w"):
        for mgr, weight in zip(p.mgr, weights, strict=True):
            left = (buffered + 2 * counted) * weight
            while left > 0:
                beats = min(p.r.choice((1, 2, longest // 2, longest)), left)
                at = p.r.randrange(SIZE // 4096) * 4096
                mgr.read(at, beats) if way == "r" else mgr.write(at, [0] * beats)
                left -= beats

        def moved(way: str = way) -> list[int]:
            return [len(mgr.r) if way == "r" else len(mgr.taken["w"]) for mgr in p.mgr]

        at_start = moved()
        slow = weights.index(min(weights))
        since = lambda old: [new - was for new, was in zip(moved(), old, strict=True)]  # noqa: E731
        await until(dut, lambda: since(at_start)[slow] >= buffered, 60000)  # noqa: B023
        first = moved()
        await until(dut, lambda: since(first)[slow] >= counted, 60000)  # noqa: B023
        shares = [beats / weight for beats, weight in zip(since(first), weights, strict=True)]
        # The quanta of a weight, a burst, and what is under way.
        assert max(shares) - min(shares) <= 0.2 * counted, (way, weights, shares)
        await until(dut, lambda: all(mgr.idle for mgr in p.mgr), 100000)


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def a_round_robin_by_bursts_and_any_quantum_can_be_chosen(dut):
    """Reads of a channel: two beats of one manager, long bursts of another. With a greater quantum a manager has more at a time."""
    p = await ports(dut, latency=20)
    long = min(4096 // p.width, 256) // 2
    for plain, quantum in ((1, 4), (0, 2), (0, 4), (0, 6)):
        dut.plain_i.value, dut.quantum_i.value = plain, quantum
        old = [len(x.r) for x in p.mgr[:2]]
        for i in range(2000 if not plain else 400):
            p.mgr[0].read(i % 32 * 4096, 2)
        for i in range(64):
            p.mgr[1].read(i % 32 * 4096, long)
        moved = lambda old=old: [len(x.r) - was for x, was in zip(p.mgr, old, strict=False)]  # noqa: E731
        await until(dut, lambda: moved()[1] >= 8 * long, 60000)  # noqa: B023
        early = moved()
        await until(dut, lambda: moved()[1] >= 40 * long, 60000)  # noqa: B023
        gain = [x - y for x, y in zip(moved(), early, strict=True)]
        share = gain[0] / gain[1]
        # Long bursts are cut into pieces of 16 beats.
        assert abs(share - (2 / 16 if plain else 1)) < (0.03 if plain else 0.25), (plain, quantum, gain)
        await until(dut, lambda: all(mgr.idle for mgr in p.mgr), 100000)


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def who_goes_first_leaves_the_others_what_it_does_not_use(dut):
    """Two managers go first, by weight among themselves. The others spend what they have, and go on when those two have no more."""
    p = await ports(dut, latency=20)
    n, longest = len(p.mgr), min(4096 // p.width, 256)
    weights = [1, 3, *[1] * (n - 2)]
    p.set_weights(weights)
    count = 4096
    for way in ("r", "w"):

        def moved(way: str = way) -> list[int]:
            return [len(mgr.r) if way == "r" else len(mgr.taken["w"]) for mgr in p.mgr]

        old = moved()
        dut.first_i.value = 0b11
        for m, mgr in enumerate(p.mgr):
            left = 3 * count if m == 1 else count
            while left > 0:
                beats = min(p.r.choice((2, longest // 2, longest)), left)
                at = p.r.randrange(SIZE // 4096) * 4096
                mgr.read(at, beats) if way == "r" else mgr.write(at, [0] * beats)
                left -= beats
        since = lambda old=old: [new - was for new, was in zip(moved(), old, strict=True)]  # noqa: E731
        # What managers buffer moves at once.
        await until(dut, lambda: since()[0] >= 1024, 60000)  # noqa: B023
        early = since()
        await until(dut, lambda: since()[0] >= 2048, 60000)  # noqa: B023
        late = since()
        gain = [x - y for x, y in zip(late, early, strict=True)]
        assert abs(gain[1] / 3 - gain[0]) <= 128 + longest, (way, gain)
        # Writers wait for their data, and leave gaps.
        assert sum(gain[2:]) <= (0 if way == "r" else sum(gain) // 8), (way, gain)
        # At first there is no other request yet.
        assert all(x <= 2 * longest + (1024 if way == "w" else 0) for x in late[2:]), (way, late)
        await until(dut, lambda: since() == [count, 3 * count, *[count] * (n - 2)], 100000)  # noqa: B023


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def reads_and_writes_share_a_memory(dut):
    """One manager reads single beats, the others write the longest bursts: each moves as much, though this memory could be read meanwhile."""
    p = await ports(dut, latency=20)
    longest = min(4096 // p.width, 256)
    reader, *writers = p.mgr
    count = 8
    for i in range(count * longest):
        reader.read(i * p.width % SIZE)
    for _ in range(count):
        for mgr in writers:
            mgr.write(p.r.randrange(SIZE // 4096) * 4096, [0] * longest)
    bound = 6 * 64 + 64  # quanta, and what is held on the way
    ahead = 0.0
    for k in range(1, count - 1):
        await until(dut, lambda k=k: len(reader.r) >= k * longest, 40000)
        difference = len(p.mem[0].w_beats) / len(writers) - len(reader.r)
        if k == 1:
            # Bursts offered before there were others are whole.
            ahead = difference
            assert abs(ahead) <= bound + 3 * longest, ahead
        assert abs(difference - ahead) <= bound, (k, difference, ahead)


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def reads_of_other_memories_overtake(dut):
    """What waits for a slow memory holds up nothing behind it, until its turn comes to be delivered."""
    p = await ports(dut, latency=3)
    p.mem[0].set_stall(1.0)
    mgr, other = p.mgr[0], len(p.mem) - 1
    mgr.read(p.base(0), 2)
    for i in range(8):
        mgr.read(p.base(other) + i * p.width)
    await until(dut, lambda: len(p.mem[other].r_beats) == 8, 100)
    await ClockCycles(dut.clk_i, 10)
    assert not mgr.r and not p.mem[0].reads
    p.mem[0].set_stall(0.0)
    await until(dut, lambda: len(mgr.r) == 10, 100)
    assert [x[4] for x in mgr.r][:2] == [0, 0] and span([x[0] for x in mgr.r]) == 10


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def a_manager_that_takes_no_data_harms_only_itself(dut):
    """Its reads fill its own buffers; others read the same memory at the full rate."""
    p = await ports(dut, latency=3)
    longest = min(4096 // p.width, 256)
    p.mgr[0].stall["r"] = stalls(p.r, 1.0)
    for i in range(40):
        p.mgr[0].read(i % 16 * 4096, longest)
    await until(dut, lambda: len(p.mem[0].r_beats) >= 2 * longest, 10000)
    await ClockCycles(dut.clk_i, 600)
    await stream(p, [(1, 0)], 4, 40)
    p.mgr[0].stall["r"] = stalls(p.r, 0.0)
    await until(dut, lambda: len(p.mgr[0].r) == 40 * longest, 20000)


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def random_reads_of_everybody_use_every_memory(dut):
    """Bursts to memories at random: the memories deliver in nearly every cycle, as far as managers can take it."""
    p = await ports(dut, latency=20)
    beats, total = 16, 6400
    targets = len(p.mem) - 1  # those that all managers reach
    for mgr in p.mgr:
        for _ in range(total // beats):
            mgr.read(p.base(p.r.randrange(targets)) + p.r.randrange(SIZE // 4096) * 4096, beats)
    await until(dut, lambda: min(len(x.r) for x in p.mgr) > total // 8, 10000)
    start_at = [len(x.r) for x in p.mgr]
    await ClockCycles(dut.clk_i, total // 2)
    rate = sum(len(x.r) - y for x, y in zip(p.mgr, start_at, strict=True)) / (total // 2)
    assert rate >= 0.88 * min(targets, len(p.mgr)), f"{rate:.2f} beats a cycle of {targets} memories"


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def a_slow_memory_does_not_slow_the_others(dut):
    p = await ports(dut, latency=3)
    p.mem[0].set_stall(1.0)
    p.mgr[0].read(p.base(0), 4)
    p.mgr[0].write(p.base(0), [1] * 4)
    await ClockCycles(dut.clk_i, 20)
    await stream_other(p)
    assert not p.mgr[0].r and not p.mgr[0].b
    p.mem[0].set_stall(0.0)
    await until(dut, lambda: len(p.mgr[0].r) == 4 and len(p.mgr[0].b) == 1)


async def stream_other(p: Ports) -> None:
    beats, count = 4, 30
    p.mgr[1].r.clear()
    for i in range(count):
        p.mgr[1].read(p.base(1) + i * beats * p.width, beats)
        p.mgr[1].write(p.base(1) + i * beats * p.width, [i] * beats)
    await until(p.dut, lambda: len(p.mgr[1].r) == beats * count and len(p.mgr[1].b) == count)
    assert span([x[0] for x in p.mgr[1].r]) == beats * count and span(p.mem[1].w_beats) == beats * count


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def no_mix_of_stalls_wedges_it(dut):
    """Everybody at everything with heavy, changing stalls; ends with all responses."""
    p = await ports(dut, 0.2, latency=10, outstanding=3)
    r = p.r
    counts = [0] * len(p.mgr)
    for m, mgr in enumerate(p.mgr):
        for _ in range(50):
            beats = r.choice((1, 2, 16))
            at = r.randrange(SIZE // 4096) * 4096
            mgr.read(p.base(r.randrange(len(p.mem) + 1)) + at, beats)
            counts[m] += beats
            mgr.write(p.base(r.randrange(len(p.mem) + 1)) + at, [0] * beats)
    edge = RisingEdge(dut.clk_i)
    for now in range(40000):
        await edge
        if now % 100 == 0:
            for mem in p.mem:
                mem.set_stall(r.choice((0.0, 0.5, 0.9)))
        if all(len(x.r) == n and len(x.b) == 50 for x, n in zip(p.mgr, counts, strict=True)):
            return
    raise AssertionError([(len(x.r), n, len(x.b)) for x, n in zip(p.mgr, counts, strict=True)])


# Beside the usual one: the smallest card, nine managers and nine memories, eight managers 512 bits wide.
@pytest.mark.parametrize(
    "slots, chans, data_w",
    [
        (2, 2, 128),
        (7, 2, 64),
        pytest.param(7, 2, 512, marks=pytest.mark.long),
        pytest.param(1, 1, 64, marks=pytest.mark.long),
        pytest.param(8, 8, 64, marks=pytest.mark.long),
    ],
)
def test_via_xbar(slots, chans, data_w):
    geometry = {"VIA_DATA_W": data_w, "VIA_NUM_SLOTS": slots, "VIA_NUM_CHAN": chans}
    # Its wide version takes longer to compile than to run.
    run("via_xbar_tb", __file__, defines=geometry, cxx_opt="-O0" if data_w == 512 else "-O1")


def test_managers_without_a_way_to_host_memory():
    """As DMA engines and walks, which have another port to it or need none."""
    geometry = {"VIA_DATA_W": 64, "VIA_NUM_SLOTS": 2, "VIA_NUM_CHAN": 1}
    only = "many_bursts_in_flight_stay_in_order"
    run("via_xbar_tb", __file__, defines=geometry, parameters={"ToHost": 0b001}, testcase=only)
