# SPDX-License-Identifier: Apache-2.0
"""App gups against its model: table, conflicts, errors, rate."""

import cocotb
import pytest
from app_tb import run_app
from cocotb.triggers import RisingEdge
from mem_tb import Bench, golden

from via_tb import rng, start

model = golden("gups")

SIZE = 1 << 16
OUTSTANDING = 128


def sequence(seed: int, updates: int) -> list[int]:
    """The values of x, by another way than the model: multiplication by x modulo x^64 + x^2 + x + 1."""
    values = []
    for _ in range(updates):
        seed *= 2
        seed ^= (seed >> 64) * 0x1_0000_0000_0000_0007
        values.append(seed)
    return values


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.4])
async def the_table_is_that_of_one_update_after_the_other(dut, stall):
    bench = Bench(dut, rng().randbytes(SIZE), latency=20, stall=stall)
    await start(dut)
    r = rng()
    # Tables of one word and of few, in which nearly every update meets one in flight, and of many.
    for words in (1, 2, 3, 8, 64, 512, 4096):
        length = min(8 * words + r.randrange(8), SIZE // 2)
        base = 64 * r.randrange(SIZE // 2 // 64)
        updates = r.randrange(1, 100 if words < 8 else 400)
        result = await bench.compare(base, length, updates=updates, seed=r.getrandbits(64) | 1)
        # One word: all but the first wait.
        assert words > 1 or result["held"] == updates - 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def four_updates_for_each_word_from_one_unless_told_otherwise(dut):
    bench = Bench(dut, rng().randbytes(SIZE), latency=10)
    await start(dut)
    await bench.compare(0, 1024, updates=0, seed=1)
    beat = bench.width
    assert [at for _, at, _ in bench.mem.reads] == [x % 128 * 8 // beat * beat for x in sequence(1, 512)]
    assert len(bench.mem.writes) == 512


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(latency=[5, 200])
async def many_updates_are_in_flight(dut, latency):
    bench = Bench(dut, rng().randbytes(SIZE), latency=latency)
    await start(dut)
    updates = 1500
    # All but words that are met again within the updates in flight, which the seed's sequence has few of.
    result = await bench.compare(0, SIZE, updates=updates, seed=rng().getrandbits(64) | 1)
    # From AR to B and on to retirement.
    through = 2 * latency + 12
    rate = min(1, OUTSTANDING / through)
    assert result["cycles"] < updates / rate + (result["held"] + 1) * through
    assert result["cycles"] >= updates / min(1, OUTSTANDING / (2 * latency))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def an_update_of_a_word_in_flight_waits(dut):
    bench = Bench(dut, rng().randbytes(SIZE), latency=50)
    await start(dut)
    updates, seed = 200, rng().getrandbits(64) | 1
    result = await bench.compare(0, 8 * 32, updates=updates, seed=seed)
    words = [x % 32 for x in sequence(seed, updates)]
    reads = [cycle for cycle, _, _ in bench.mem.reads]
    writes = bench.mem.w_beats
    # The last write of the same word was answered before the read was sent.
    late = [
        (i, j)
        for i in range(updates)
        for j in range(max(0, i - 40), i)
        if words[i] == words[j] and reads[i] < writes[j] + 50
    ]
    assert late == []
    assert 0 < result["held"] < updates


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.3])
async def a_word_that_fails_is_counted_and_left_as_it_is(dut, stall):
    def fails(addr: int) -> bool:
        return addr // 64 % 5 == 2

    bench = Bench(dut, rng().randbytes(SIZE), latency=8, stall=stall, fails=fails)
    await start(dut)
    updates, seed, words = 600, rng().getrandbits(64) | 1, SIZE // 8
    before = bytes(bench.mem.mem)
    result = await bench.go(0, SIZE, updates=updates, seed=seed)
    want = model.model({"mem": before}, {"updates": updates, "seed": seed})["mem"]
    want = b"".join((before if fails(at) else want)[at : at + 64] for at in range(0, SIZE, 64))
    assert bench.mem.mem == want
    bad = sum(fails(x % words * 8) for x in sequence(seed, updates))
    assert result["errors"] == bad > 0
    assert len(bench.mem.writes) == updates - bad, "what could not be read is not written"
    # The next run starts clean.
    await bench.compare(64 * 5 * 7, 128, updates=50, seed=seed)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_write_that_fails_is_counted(dut):
    bench = Bench(dut, rng().randbytes(SIZE), latency=8, stall=0.2)
    await start(dut)
    before = bytes(bench.mem.mem)
    reads = bench.mem.reads
    # Every address fails once it was read: only writes of words that are not read again meanwhile.
    bench.mem.fails = lambda addr: addr == 64 and len(reads) > 0 and bench.mem.open_reads == 0
    result = await bench.go(64, 8, updates=1, seed=1)
    assert (result["errors"], bench.mem.mem) == (1, before)
    bench.mem.fails = lambda addr: False
    await bench.compare(64, 8, updates=3, seed=1)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def wrong_parameters_end_at_once_with_an_error(dut):
    bench = Bench(dut, rng().randbytes(SIZE))
    await start(dut)
    good = {"base": 64, "length": 8192, "updates": 3, "seed": 1}
    wrongs = [{"length": 0}, {"length": 7}, {"base": 32}, {"base": 8}, {"seed": 0}]
    await bench.refuses(good, wrongs, cycles=4)


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(length=[1 << 47, (1 << 48) + 5, (1 << 63) + 8])
async def takes_the_largest_memory(dut, length):
    bench = Bench(dut, rng().randbytes(SIZE), latency=2)
    await start(dut)
    seed = (1 << 63) - 12345
    result = await bench.go(0, length, updates=40, seed=seed)
    assert result["errors"] == 0
    beat = bench.width
    words = min(length, 1 << 48) // 8
    want = [x % words * 8 // beat * beat for x in sequence(seed, 40)]
    assert [at for _, at, _ in bench.mem.reads] == want
    assert [at for _, at, _ in bench.mem.writes] == want


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_start_within_a_run_is_ignored(dut):
    bench = Bench(dut, rng().randbytes(SIZE), latency=30)
    await start(dut)

    async def again():
        for _ in range(5):
            for _ in range(11):
                await RisingEdge(dut.clk_i)
            dut.start_i.value = 1
            await RisingEdge(dut.clk_i)
            dut.start_i.value = 0

    cocotb.start_soon(again())
    await bench.compare(0, 4096, updates=300, seed=5)
    assert len(bench.mem.reads) == 300


@pytest.mark.parametrize("data_w", [512, pytest.param(64, marks=pytest.mark.long)])
def test_gups(data_w):
    run_app(__file__, data_w)
