# SPDX-License-Identifier: Apache-2.0
"""App rng against its model: offsets, data, checksum, errors, rate."""

from itertools import pairwise

import cocotb
import pytest
from app_tb import run_app
from mem_tb import Bench, golden

from via_tb import rng, start

model = golden("rng")

SIZE = 1 << 18


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.4])
async def reads_and_writes_as_the_model(dut, stall):
    bench = Bench(dut, rng().randbytes(SIZE), latency=20, stall=stall)
    await start(dut)
    r = rng()
    for i in range(24):
        size = 1 << r.choice((6, 7, 9, 11, 12, 13, 15))
        length = size * r.randrange(1, min(100, SIZE // 2 // size)) + r.randrange(size)
        base = 64 * r.randrange(SIZE // 2 // 64)
        count = r.randrange(1, max(3, 512 * bench.width // size))
        registers = {"size": size, "count": count, "seed": r.getrandbits(64) | 1, "write": i % 2}
        registers["permute"] = i // 2 % 2
        before = bytes(bench.mem.mem)
        memory = before[base : base + length]
        result = await bench.go(base, length, **registers)
        assert result["errors"] == 0
        if i % 2:
            want = model.model({"mem": memory}, registers)["mem"]
            assert bench.mem.mem == before[:base] + want + before[base + length :]
        else:
            assert bench.mem.mem == before
            assert result["checksum"] == model.checksum(memory, registers)


@cocotb.test(timeout_time=500, timeout_unit="us")
async def a_permutation_has_every_place_once(dut):
    bench = Bench(dut, rng().randbytes(SIZE), latency=5)
    await start(dut)
    # 700 offsets: 512 of them.
    registers = {"size": 64, "count": 1024, "seed": rng().getrandbits(64) | 1, "write": 0, "permute": 1}
    result = await bench.go(0, 64 * 700, **registers)
    assert result["errors"] == 0
    at = [addr for _, addr, _ in bench.mem.reads]
    assert sorted(at[:512]) == list(range(0, 64 * 512, 64)) and at[512:] == at[:512]
    assert at[:512] == list(model.offsets(64, 512, registers["seed"], 64 * 700, 1))
    # No order that a prefetcher would find.
    steps = {b - a for a, b in pairwise(at[:512])}
    assert len(steps) > 100


@cocotb.test(timeout_time=500, timeout_unit="us")
@cocotb.parametrize(size=[64, 4096], write=[0, 1])
async def one_beat_a_cycle_with_many_bursts_in_flight(dut, size, write):
    bench = Bench(dut, rng().randbytes(SIZE), latency=40)
    await start(dut)
    count = max(40, 16384 // size) if size < 4096 else 4
    result = await bench.go(0, SIZE, size=size, count=count, seed=1, write=write)
    beats = bench.mem.w_beats if write else bench.mem.r_beats
    assert len(beats) == count * size // bench.width
    assert beats[-1] - beats[0] == len(beats) - 1, "no gap in the data"
    assert 0 <= result["cycles"] - (len(beats) + 40) < 20


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(write=[0, 1])
async def counts_errors_and_goes_on(dut, write):
    # Errors in the middle of bursts, in a third of all pages.
    def fails(addr: int) -> bool:
        return addr // 4096 % 3 == 1 and addr % 2048 // 64 == 5

    bench = Bench(dut, rng().randbytes(SIZE), latency=5, stall=0.2, fails=fails)
    await start(dut)
    registers = {"size": 8192, "count": 20, "seed": 7, "write": write, "permute": 0}
    before = bytes(bench.mem.mem)
    result = await bench.go(4096, 100000, **registers)
    bursts = bench.mem.writes if write else bench.mem.reads
    bad = sum(any(map(fails, range(at, at + beats * bench.width, bench.width))) for _, at, beats in bursts)
    assert result["errors"] == bad > 0
    if not write:
        good = b"".join(bytes(64) if fails(at) else before[at : at + 64] for at in range(0, SIZE, 64))
        assert result["checksum"] == model.checksum(good[4096:104096], registers)
    # The next run starts clean.
    result = await bench.go(0, 64, size=64, count=3, seed=7, write=0)
    assert (result["errors"], result["checksum"]) == (
        0,
        3 * model.checksum(before[:64], {**registers, "size": 64, "count": 1}) % 2**64,
    )


@cocotb.test(timeout_time=200, timeout_unit="us")
async def wrong_parameters_end_at_once_with_an_error(dut):
    bench = Bench(dut, rng().randbytes(SIZE))
    await start(dut)
    good = {"base": 0, "length": 8192, "size": 4096, "count": 3, "seed": 1, "write": 0}
    for wrong in (
        {"length": 4095},
        {"length": 0},
        {"size": 0},
        {"size": 32},
        {"size": 96},
        {"size": 1 << 22},
        {"size": 1 << 31},
        {"base": 32},
        {"seed": 0},
    ):
        for write in (0, 1):
            result = await bench.go(**{**good, **wrong, "write": write})
            assert result["errors"] == 1 and result["cycles"] < 4
    assert not bench.mem.reads and not bench.mem.writes
    result = await bench.go(**{**good, "count": 0})
    assert result == {"checksum": 0, "errors": 0, "cycles": result["cycles"]} and result["cycles"] < 5
    result = await bench.go(**good)
    assert result["errors"] == 0 and len(bench.mem.r_beats) * bench.width == 3 * 4096


@cocotb.test(timeout_time=200, timeout_unit="us")
async def takes_the_largest_size_and_memory(dut):
    bench = Bench(dut, rng().randbytes(SIZE), latency=2)
    await start(dut)
    # The upper half of a slot's address space; the memory of the test repeats in it.
    size, half = (1 << 21 if bench.width == 64 else 1 << 14), 1 << 47
    result = await bench.go(half, half, size=size, count=1, seed=99, write=0)
    at = half + next(model.offsets(size, 1, 99, half))
    assert bench.mem.reads[0][1] == at > half + (1 << 44)
    block = (bytes(bench.mem.mem) * (size // SIZE + 2))[at % SIZE :][:size]
    registers = {"size": size, "count": 1, "seed": 99}
    assert result["checksum"] == model.checksum(block, registers)


@pytest.mark.parametrize("data_w", [512, pytest.param(64, marks=pytest.mark.long)])
def test_rng(data_w):
    run_app(__file__, data_w)
