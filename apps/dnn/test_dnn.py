# SPDX-License-Identifier: Apache-2.0
"""App dnn against its model, bit by bit."""

import cocotb
import numpy as np
import pytest
from app_tb import run_app
from mem_tb import Bench, golden

from via_tb import rng, start

model = golden("dnn")


def network(seed: int, fraction: int = 12) -> tuple:
    """Random weights of the size that a trained network has, and a generator for the images."""
    r = np.random.default_rng(seed)

    def layer(outputs: int, *inputs: int):
        size = (1 << fraction) / np.sqrt(np.prod(inputs))
        return r.normal(0, size, (outputs, *inputs)).astype(np.int64), r.integers(-200, 200, outputs)

    parts = [layer(20, 5, 5, 1), layer(50, 5, 5, 20), layer(500, 800), layer(10, 500)]
    return model.Network(*(array for part in parts for array in part)), r


def memory_of(seed: int, images: int) -> bytes:
    net, r = network(seed)
    return model.pack(net, r.integers(0, 2000, (images, 28, 28)))


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def scores_equal_the_model(dut):
    memory = memory_of(rng().getrandbits(20), 2)
    bench = Bench(dut, memory + bytes(100), latency=40)
    await start(dut)
    result = await bench.compare(0, len(memory) + 1, images=2, fraction=12)
    scores, classes = model.unpack(bytes(bench.mem.mem), 2)
    assert len(set(scores.ravel())) > 10 and (classes == scores.argmax(axis=1)).all()
    # Steps, what is between layers, and the weights that are kept; one line a cycle of the first full layer.
    assert result["cycles"] < (1430 + 2 * (2880 + 20000 + 13000 + 160 + 250)) * 1.01 + 200
    assert len(bench.mem.r_beats) == (1430 + 2 * (13000 + 28)) * 64 // bench.width


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def numbers_at_their_limits(dut):
    """Any bytes as weights and images: sums that are limited, lanes that count for nothing."""
    r = rng()
    data = bytearray(r.randbytes(64 * (model.WEIGHTS + 29)))
    bench = Bench(dut, bytes(data), latency=10, stall=0.2)
    await start(dut)
    await bench.compare(0, len(data), images=1, fraction=r.choice((0, 7, 14)))


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def bus_errors_are_counted_and_the_run_ends(dut):
    memory = memory_of(3, 1)
    bench = Bench(dut, memory, latency=9)
    await start(dut)
    kept, full, image = 64 * 700, 64 * (1430 + 5000), 64 * (model.WEIGHTS + 9)
    bad = {kept, full, image, len(memory) - 64}
    bench.mem.fails = lambda addr: addr // 64 * 64 in bad
    result = await bench.go(0, len(memory), images=1, fraction=12)
    assert result["errors"] == 4


@cocotb.test(timeout_time=200, timeout_unit="us")
async def wrong_parameters_end_at_once_with_an_error(dut):
    bench = Bench(dut, bytes(4096), latency=3)
    await start(dut)
    length = 64 * (model.WEIGHTS + 29)
    good = {"base": 0, "length": length, "images": 1, "fraction": 12}
    for wrong in (
        {"length": length - 1},
        {"length": 0},
        {"base": 32},
        {"images": 0},
        {"images": 2},
        {"images": 2**32 - 1},
        {"fraction": 15},
    ):
        result = await bench.go(**{**good, **wrong})
        assert result["errors"] == 1 and result["cycles"] < 8, wrong
    assert not bench.mem.reads and not bench.mem.writes


@pytest.mark.parametrize("data_w", [512, pytest.param(64, marks=pytest.mark.long)])
def test_dnn(data_w):
    run_app(__file__, data_w)


def test_the_model_of_a_known_network():
    """Weights that pass pixels through: the scores are chosen pixels of the image, doubled."""
    net = model.Network(*(np.zeros_like(array) for array in vars(network(1)[0]).values()))
    net.conv1[0, 0, 0, 0] = net.conv2[0, 0, 0, 0] = 256
    for i in range(10):
        net.full1[i, 50 * i] = 256
        net.full2[i, i] = 512
    net.bias4[:] = range(10)
    image = np.arange(784).reshape(28, 28)
    # Pixels of the pooled maps: the largest of 4 x 4 pixels is their last one.
    want = [2 * image[4 * (i // 4) + 3, 4 * (i % 4) + 3] + i for i in range(10)]
    assert model.scores(image, net, 8).tolist() == want


def test_lines_of_weights_and_back():
    net, _ = network(2)
    again = model.from_lines(model.to_lines(net))
    assert all((a == b).all() for a, b in zip(vars(net).values(), vars(again).values(), strict=True))
