# SPDX-License-Identifier: Apache-2.0
"""App nw against its model: scores, errors, rate."""

import cocotb
import pytest
from app_tb import run_app
from mem_tb import Bench, golden

from via_tb import rng, start

model = golden("nw")

SIZE = 1 << 17


def packed(text: str) -> bytes:
    """A block of 64 letters A, C, G, T."""
    codes = ["ACGT".index(c) for c in text]
    return bytes(sum(codes[i + k] << 2 * k for k in range(4)) for i in range(0, 64, 4))


def related(blocks: int) -> bytes:
    """Blocks of random bases, some of them copies with a few changes: scores of all sizes."""
    r = rng()
    seed = "".join(r.choices("ACGT", k=200))
    found = b""
    for _ in range(blocks):
        at = r.randrange(100)
        text = list(seed[at : at + 90]) if r.random() < 0.5 else r.choices("ACGT", k=90)
        for _ in range(r.choice((0, 1, 5, 20))):
            if r.random() < 0.5:
                text[r.randrange(len(text))] = r.choice("ACGT")
            elif len(text) > 66:
                del text[r.randrange(len(text))]
        found += packed("".join(text[:64]))
    return found


def strings() -> bytes:
    """A memory full of them."""
    text = related(512)
    return text * (SIZE // len(text))


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.4])
async def scores_equal_the_model(dut, stall):
    bench = Bench(dut, strings(), latency=20, stall=stall)
    await start(dut)
    r = rng()
    for rows, cols in ((1, 64), (5, 64), (3, 192), (r.randrange(1, 12), 64 * r.randrange(1, 4)), (66, 64)):
        base = 4096 * r.randrange(4)
        end = model.offsets({"rows": rows, "cols": cols})[2]
        await bench.compare(base, end + r.choice((0, 1, 1000)), rows=rows, cols=cols)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_pair_a_cycle_with_many_reads_in_flight(dut):
    bench = Bench(dut, strings(), latency=100)
    await start(dut)
    rows, cols = 3, 512
    result = await bench.compare(0, SIZE, rows=rows, cols=cols)
    # A cycle more for each row; latency of memory, twice, and of the grid once.
    assert 0 <= result["cycles"] - rows * (cols + 1) - 2 * 100 - 128 < 40


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.3])
async def errors_are_counted_and_the_run_ends(dut, stall):
    bench = Bench(dut, strings(), latency=10, stall=stall)
    await start(dut)
    rows, cols = 6, 128
    b, at, _ = model.offsets({"rows": rows, "cols": cols})
    before = bytes(bench.mem.mem)
    # A tile of string b that every row reads, and the scores of two rows.
    bench.mem.fails = lambda addr: b + 1024 <= addr < b + 1100 or at + 128 <= addr < at + 384
    result = await bench.go(0, SIZE, rows=rows, cols=cols)
    assert result["errors"] == rows + 4
    found = model.scores(before[: 16 * rows], before[b:at])
    for row in (0, 3, 4, 5):
        assert bench.mem.mem[at + 128 * row : at + 128 * row + 64] == found[row, :64].tobytes()
    assert bench.mem.mem[at + 128 : at + 384] == before[at + 128 : at + 384]
    bench.mem.fails = lambda addr: False
    await bench.compare(0, SIZE, rows=rows, cols=cols)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def wrong_parameters_end_at_once_with_an_error(dut):
    bench = Bench(dut, strings())
    await start(dut)
    good = {"base": 4096, "length": 2304, "rows": 4, "cols": 64}
    wrongs = [
        {"length": 2303},
        {"length": 0},
        {"base": 2048},
        {"base": 64},
        {"rows": 0},
        {"cols": 0},
        {"cols": 63},
        {"cols": 96},
        {"rows": 2**32 - 1, "cols": 2**32 - 64},
    ]
    await bench.refuses(good, wrongs)


@pytest.mark.parametrize("data_w", [512, pytest.param(128, marks=pytest.mark.long)])
def test_nw(data_w):
    run_app(__file__, data_w)


def naive(a: str, b: str) -> int:
    """The score by recursion over prefixes."""
    line = list(range(0, -len(b) - 1, -1))
    for i, x in enumerate(a, 1):
        corner, line[0] = line[0], -i
        for j, y in enumerate(b, 1):
            corner, line[j] = line[j], max(corner + (1 if x == y else -1), line[j] - 1, line[j - 1] - 1)
    return line[-1]


def test_known_scores():
    text = "ACGTTGCA" * 8
    for a, b, score in (
        (text, text, 64),
        ("A" * 64, "C" * 64, -64),
        # One base less at the start, one more at the end: 63 matches, two gaps.
        (text, text[1:] + "G", 61),
        ("A" * 32 + "C" * 32, "C" * 32 + "A" * 32, -32),
    ):
        assert model.scores(packed(a), packed(b)).item() == naive(a, b) == score
