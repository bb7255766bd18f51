# SPDX-License-Identifier: Apache-2.0
"""App matmul against NumPy: products, errors, rate."""

import cocotb
import numpy as np
import pytest
from app_tb import run_app
from mem_tb import Bench, golden

from via_tb import rng, start

model = golden("matmul")

SIZE = 1 << 17


def numbers() -> bytes:
    """A memory full of signed bytes, the extremes often."""
    r = rng()
    return bytes(r.choice((0x80, 0x7F, 0xFF)) if r.random() < 0.2 else r.randrange(256) for _ in range(SIZE))


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.4])
async def products_equal_the_model(dut, stall):
    bench = Bench(dut, numbers(), latency=20, stall=stall)
    await start(dut)
    r = rng()
    for rows, inner, cols in (
        (16, 64, 64),
        (32, 64, 128),
        (16, 192, 64),
        (48, 128, 192),
        (16 * r.randrange(1, 4), 64 * r.randrange(1, 4), 64 * r.randrange(1, 4)),
    ):
        base = 4096 * r.randrange(4)
        end = model.offsets({"rows": rows, "inner": inner, "cols": cols})[2]
        await bench.compare(base, end + r.choice((0, 1, 1000)), rows=rows, inner=inner, cols=cols)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def the_largest_sums_do_not_overflow(dut):
    bench = Bench(dut, bytes([0x80]) * SIZE)
    await start(dut)
    await bench.compare(0, SIZE, rows=16, inner=1024, cols=64)
    assert bench.mem.mem[80 * 1024 : 80 * 1024 + 4] == (1024 << 14).to_bytes(4, "little")


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def every_cycle_has_512_multiplications_but_those_of_a_tiles_end(dut):
    bench = Bench(dut, numbers(), latency=60)
    await start(dut)
    rows, inner, cols = 32, 448, 128
    result = await bench.compare(0, SIZE, rows=rows, inner=inner, cols=cols)
    tiles = rows // 16 * cols // 64
    # With narrow beats the 80 lines of a chunk set the rate; they are read while a tile leaves, too.
    tile = max(2 * inner + 131, 80 * inner // bench.width)
    late = 2 * 60 + 100 * 64 // bench.width
    assert 0 <= result["cycles"] - tiles * tile < late, result


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.3])
async def errors_are_counted_and_the_run_ends(dut, stall):
    bench = Bench(dut, numbers(), latency=10, stall=stall)
    await start(dut)
    sizes = {"rows": 32, "inner": 64, "cols": 128}
    b, at, end = model.offsets(sizes)
    before = bytes(bench.mem.mem)
    # A row of A, which both tiles of its rows read; a line of the product.
    row = 20
    bench.mem.fails = lambda addr: 64 * row <= addr < 64 * (row + 1) or at <= addr < at + 64
    result = await bench.go(0, SIZE, **sizes)
    assert result["errors"] == 2 + 1
    want = model.model({"mem": before}, sizes)["mem"]
    for r in set(range(32)) - {0, row}:
        assert bench.mem.mem[at + 512 * r : at + 512 * (r + 1)] == want[at + 512 * r : at + 512 * (r + 1)]
    assert bench.mem.mem[at : at + 64] == before[at : at + 64]
    assert bench.mem.mem[:at] == before[:at] and bench.mem.mem[end:] == before[end:] and b == 2048
    bench.mem.fails = lambda addr: False
    await bench.compare(0, SIZE, **sizes)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def wrong_parameters_end_at_once_with_an_error(dut):
    bench = Bench(dut, numbers())
    await start(dut)
    good = {"base": 4096, "length": 9216, "rows": 16, "inner": 64, "cols": 64}
    wrongs = [
        {"length": 9215},
        {"length": 0},
        {"base": 2048},
        {"base": 64},
        {"rows": 0},
        {"inner": 0},
        {"cols": 0},
        {"rows": 8},
        {"rows": 24},
        {"inner": 96},
        {"cols": 65},
        {"rows": 65520, "inner": 65472, "cols": 65472},
    ]
    await bench.refuses(good, wrongs, cycles=7)


@pytest.mark.parametrize("data_w", [512, pytest.param(128, marks=pytest.mark.long)])
def test_matmul(data_w):
    run_app(__file__, data_w)


def test_known_product():
    a = np.zeros((16, 64), np.int8)
    b = np.zeros((64, 64), np.int8)
    a[1, 2], b[2, 3] = -128, 127
    memory = a.tobytes() + b.tobytes() + bytes(4096)
    found = model.model({"mem": memory}, {"rows": 16, "inner": 64, "cols": 64})["mem"]
    product = np.frombuffer(found[5120:], "<i4").reshape(16, 64)
    assert product[1, 3] == -128 * 127 and np.count_nonzero(product) == 1
