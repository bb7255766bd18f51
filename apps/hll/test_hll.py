# SPDX-License-Identifier: Apache-2.0
"""App hll against MurmurHash3 of package mmh3, and its estimates against what was counted."""

import importlib.util
from pathlib import Path

import cocotb
import mmh3
import numpy as np
import pytest
from app_tb import Sink, Source, exchange, rng, run_app, start
from cocotb.triggers import ClockCycles

spec = importlib.util.spec_from_file_location("hll_model", Path(__file__).with_name("model.py"))
assert spec and spec.loader
hll = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hll)

BUCKETS = 65536
SIGMA = 1.04 / BUCKETS**0.5


def clear(dut) -> int:
    """Cycles in which the buckets are read or cleared."""
    return BUCKETS // 8


def expect(data: bytes, seed: int) -> dict[str, bytes]:
    return hll.model({"in": data}, {"seed": seed})


def registers(dut) -> dict[str, int]:
    return {name: int(getattr(dut, f"{name}_o").value) for name in ("items", "zeros", "full", "sum")}


def same_registers(dut, want: dict[str, bytes]) -> bool:
    return registers(dut) == {n: int.from_bytes(want[n], "little") for n in ("items", "zeros", "full", "sum")}


def items_of(buckets: int) -> list[list[bytes]]:
    """Items of each of the first buckets."""
    found: list[list[bytes]] = [[] for _ in range(buckets)]
    for key in range(400_000):
        item = key.to_bytes(4, "little")
        bucket = mmh3.hash(item, 0, False) >> 16
        if bucket < buckets:
            found[bucket].append(item)
    return found


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def every_rest_of_a_beat(dut):
    """Messages of every length up to a beat and more; the second of each pair begins with clean buckets."""
    r = rng()
    width = (len(dut.in_i) - 9) // 9
    dut.seed_i.value = seed = r.getrandbits(32)
    sizes = [1, 3, 4, 7, width - 1, width, width + 5]
    messages = [(r.randrange(256), r.randbytes(n)) for n in sizes]
    _, _, got = await exchange(dut, messages, 0, 0)
    want = [expect(data, seed) for _, data in messages]
    assert [m.id for m in got] == [i for i, _ in messages]
    assert [m.data for m in got] == [w["out"] for w in want]
    assert same_registers(dut, want[-1])


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.4])
async def buckets_zeros_and_sum_equal_the_model(dut, stall):
    r = rng()
    seed = r.choice((0, 1, r.getrandbits(32)))
    dut.seed_i.value = seed
    data = r.randbytes(20_000 + r.randrange(4))
    _, _, got = await exchange(dut, [(5, data)], stall, stall)
    want = expect(data, seed)
    assert got[0].data == want["out"]
    assert same_registers(dut, want)
    # Nearly all items are different: the estimate is that of linear counting.
    assert abs(hll.count(np.frombuffer(got[0].data, np.uint8)) / (len(data) // 4) - 1) < 4 * SIGMA


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.5])
async def items_of_one_word_follow_each_other(dut, stall):
    """The buckets of a word get their items one after the other, each once: one that is lost leaves its bucket empty."""
    r = rng()
    lanes = (len(dut.in_i) - 9) // 9 // 4
    found = items_of(8 * lanes)
    dut.seed_i.value = 0
    for _ in range(5):
        columns = [[r.choice(bucket) for bucket in found[8 * lane : 8 * lane + 8]] for lane in range(lanes)]
        for column in columns:
            r.shuffle(column)
        r.shuffle(columns)
        data = b"".join(b"".join(column[i] for column in columns) for i in range(8))
        _, _, got = await exchange(dut, [(0, data)], stall, 0)
        assert got[0].data == expect(data, 0)["out"]
        assert got[0].data.count(0) == BUCKETS - 8 * lanes


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_beat_a_cycle_and_eight_buckets(dut):
    dut.seed_i.value = 7
    source, sink = Source(dut), Sink(dut)
    await start(dut)
    data = rng().randbytes(200 * source.width)
    await source.send(data)
    assert source.cycles[-1] - source.cycles[0] == 199, "one beat a cycle"
    message = await sink.receive()
    assert message.data == expect(data, 7)["out"]
    assert 0 <= message.last - source.cycles[-1] - clear(dut) < 32


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_seed_is_that_of_the_first_beat(dut):
    source, sink = Source(dut), Sink(dut)
    await start(dut)
    data = rng().randbytes(8 * source.width)
    dut.seed_i.value = 99
    await source.send(data[: source.width], last=False)
    dut.seed_i.value = 1
    await source.send(data[source.width :])
    assert (await sink.receive()).data == expect(data, 99)["out"]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def busy_while_it_clears_and_reads_but_not_while_the_output_waits(dut):
    dut.seed_i.value = 0
    source, sink = Source(dut), Sink(dut)
    await start(dut)
    await ClockCycles(dut.clk_i, 2)
    assert dut.busy_o.value and not dut.in_ready_o.value
    await ClockCycles(dut.clk_i, clear(dut))
    assert not dut.busy_o.value and dut.in_ready_o.value
    await source.send(b"abcdefgh", 3)
    await ClockCycles(dut.clk_i, 5)
    assert dut.busy_o.value and not dut.in_ready_o.value
    await ClockCycles(dut.clk_i, 300)
    assert dut.out_valid_o.value and not dut.busy_o.value and not dut.in_ready_o.value
    assert (await sink.receive()).data == expect(b"abcdefgh", 0)["out"]
    await ClockCycles(dut.clk_i, 2)
    assert not dut.busy_o.value and dut.in_ready_o.value


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_reset_within_a_message_leaves_nothing(dut):
    dut.seed_i.value = 0
    source, sink = Source(dut), Sink(dut)
    await start(dut)
    await source.send(rng().randbytes(40 * source.width), last=False)
    dut.rst_ni.value = 0
    await ClockCycles(dut.clk_i, 3)
    dut.rst_ni.value = 1
    await source.send(b"wxyz")
    assert (await sink.receive()).data == expect(b"wxyz", 0)["out"]
    assert registers(dut)["items"] == 1


@pytest.mark.parametrize("data_w", [512, pytest.param(64, marks=pytest.mark.long)])
def test_hll(data_w):
    run_app(__file__, data_w)


@pytest.mark.parametrize("count", [0, 1, 100, 30_000, 164_000, 250_000, 600_000])
def test_estimates_are_within_the_standard_error(count):
    items = np.random.default_rng(count).permutation(3 * count)[:count].astype("<u4") * np.uint32(2654435761)
    data = items.tobytes() + items[: count // 3].tobytes() * 2
    got = hll.count(hll.buckets(data))
    assert abs(got - count) <= 3.5 * SIGMA * count


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.9])
def test_estimates_up_to_all_items(share):
    """Sketches of that share of all 2^32 items, made from the distribution of the smallest hash in a bucket."""
    first = np.random.default_rng(int(100 * share)).geometric(share, BUCKETS) - 1
    sketch = np.where(first < 65536, 17 - np.frexp(first.astype(np.float64))[1], 0).astype(np.uint8)
    assert abs(hll.count(sketch) / (share * 2**32) - 1) < 4 * SIGMA


def test_sketches_are_merged_by_their_larger_bytes():
    items = np.arange(100_000, dtype="<u4")
    whole = hll.buckets(items.tobytes())
    parts = [hll.buckets(part.tobytes()) for part in np.array_split(items, 3)]
    assert (np.maximum.reduce(parts) == whole).all()


def test_hash_known_answers():
    """Of Wikipedia's page on MurmurHash, for keys of four bytes."""
    assert mmh3.hash(b"test", 0, False) == 0xBA6BD213
    assert mmh3.hash(b"test", 0x9747B28C, False) == 0x704B81DC
