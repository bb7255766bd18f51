# SPDX-License-Identifier: Apache-2.0
"""App flow against NumPy, and the model against pictures that move."""

import importlib.util
from itertools import pairwise
from pathlib import Path

import cocotb
import numpy as np
import pytest
from app_tb import Sink, Source, exchange, rng, run_app, start
from cocotb.triggers import ClockCycles

spec = importlib.util.spec_from_file_location("flow_model", Path(__file__).with_name("model.py"))
assert spec and spec.loader
flow = importlib.util.module_from_spec(spec)
spec.loader.exec_module(flow)


def moving(lines: int, width: int, dx: float, dy: float, seed: int = 1) -> np.ndarray:
    """Five frames [row, column, frame] of a smooth picture that moves by (dx, dy) each."""
    r = np.random.default_rng(seed)
    waves = [(*r.uniform(-0.5, 0.5, 2), r.uniform(0, 6)) for _ in range(12)]
    y, x, t = np.meshgrid(np.arange(lines), np.arange(width), np.arange(-2, 3), indexing="ij")
    picture = sum(np.sin(a * (x - dx * t) + b * (y - dy * t) + c) for a, b, c in waves)
    return np.clip(128 + 20 * picture, 0, 255).astype(np.uint8)


def message(frames: np.ndarray) -> bytes:
    """Frames as a message; the bytes of a pixel that count for nothing are random."""
    lines, width, _ = frames.shape
    rest = np.frombuffer(rng().randbytes(lines * width * 3), np.uint8).reshape(lines, width, 3)
    return np.concatenate([frames, rest], axis=2).tobytes()


def expect(data: bytes, width: int) -> bytes:
    return flow.model({"in": data}, {"width": width})["out"]


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.3])
async def images_equal_the_model(dut, stall):
    r = rng()
    source, sink = Source(dut, stall), Sink(dut, stall)
    await start(dut)
    widths = [r.choice((16, 24, 32, 64, 104)) for _ in range(10)]
    images = [
        message(moving(r.randrange(1, 14), w, 0.7, -0.4, i))[: r.choice((None, -1, -8, -67, 3, 64, 200))]
        if i % 2
        else r.randbytes(8 * w * r.randrange(1, 9))
        for i, w in enumerate(widths)
    ]
    got = []

    async def collect():
        for _ in images:
            got.append(await sink.receive())

    collector = cocotb.start_soon(collect())
    for i, (image, width) in enumerate(zip(images, widths, strict=True)):
        dut.width_i.value = width
        first = image[: source.width]
        await source.send(first, i, last=len(image) <= source.width)
        if len(image) > source.width:
            await ClockCycles(dut.clk_i, 300)  # until the pipeline has taken it: the width is sampled then
            dut.width_i.value = r.getrandbits(32)
            await source.send(image[source.width :], i)
    await collector
    assert [m.id for m in got] == list(range(len(images)))
    for n, (m, image, width) in enumerate(zip(got, images, widths, strict=True)):
        assert m.data == expect(image, width), (n, width, len(image))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def four_pixels_a_cycle_and_six_lines_between_images(dut):
    width, lines = 64, 20
    dut.width_i.value = width
    images = [(0, message(moving(lines, width, 0.5, 0.5, i))) for i in range(3)]
    source, sink, got = await exchange(dut, images, 0, 0)
    assert [m.data for m in got] == [expect(d, width) for _, d in images]
    row = width // 4
    beats = len(images[0][1]) // source.width
    # From the second beat on: the first one of an image waits in the app.
    seconds, ends = source.cycles[1::beats], source.cycles[beats - 1 :: beats]
    for second, end in zip(seconds, ends, strict=True):
        assert abs((end - second) - (lines * row - 2 * source.width // 32)) <= 2
    for second, after in pairwise(seconds):
        assert 0 <= after - second - (lines + 6) * row <= 3
    assert sink.cycles[0] - source.cycles[0] < 6 * row + 70


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.3])
async def a_wrong_width_gives_zeros_and_an_error(dut, stall):
    source, sink = Source(dut, stall), Sink(dut, stall)
    await start(dut)
    data = rng().randbytes(1500)
    for n, width in enumerate([0, 8, 12, 20, 8200, 1 << 14, 1 << 31, 2**32 - 8], 1):
        dut.width_i.value = width
        cocotb.start_soon(source.send(data[: 150 * n], n))
        got = await sink.receive()
        assert (got.id, got.data) == (n, bytes(150 * n)) and int(dut.errors_o.value) == n
    dut.width_i.value = 32
    cocotb.start_soon(source.send(data, 0))
    assert (await sink.receive()).data == expect(data, 32)
    assert int(dut.errors_o.value) == 8


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_reset_within_an_image_leaves_nothing(dut):
    dut.width_i.value = 32
    source, sink = Source(dut), Sink(dut)
    await start(dut)
    dut.out_ready_i.value = 1
    await source.send(b"\xff" * 60 * source.width, last=False)
    dut.rst_ni.value = 0
    dut.out_ready_i.value = 0
    await ClockCycles(dut.clk_i, 3)
    dut.rst_ni.value = 1
    data = rng().randbytes(8 * 32 * 9)
    cocotb.start_soon(source.send(data))
    assert (await sink.receive()).data == expect(data, 32)
    await ClockCycles(dut.clk_i, 3)
    assert not dut.busy_o.value


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def lines_as_long_as_they_can_be(dut):
    dut.width_i.value = flow.MAX_WIDTH
    data = message(moving(2, flow.MAX_WIDTH, 1, 0))[:-100]
    _, _, got = await exchange(dut, [(5, data)], 0, 0)
    assert got[0].data == expect(data, flow.MAX_WIDTH)


@pytest.mark.parametrize("data_w", [512, pytest.param(256, marks=pytest.mark.long)])
def test_flow(data_w):
    run_app(__file__, data_w)


@pytest.mark.parametrize("move", [(0.5, 0.0), (0.0, -0.75), (1.0, 0.5), (-0.3, 0.9)])
def test_a_picture_that_moves(move):
    """Away from the edges the movement is found to a tenth of a pixel, for most pixels."""
    frames = np.moveaxis(moving(60, 80, *move).astype(np.int64), 2, 0)
    found = flow.movement(frames, np.ones((60, 80), bool))
    for component, want in zip(found, move, strict=True):
        inner = component[8:-8, 8:-8] / 256
        assert abs(np.median(inner) - want) < 0.05
        assert (abs(inner - want) < 0.1).mean() > 0.8
