# SPDX-License-Identifier: Apache-2.0
"""App conv against its model, and against figures computed by hand."""

import cocotb
import pytest
from app_tb import Sink, Source, exchange, load_model, rng, run_app, start
from cocotb.triggers import ClockCycles, RisingEdge

model = load_model(__file__)

MAX = 131072


def expect(data: bytes, width: int) -> bytes:
    return model({"in": data}, {"width": width})["out"]


def pixels(size: int) -> bytes:
    """Random ones, dark and bright."""
    r = rng()
    return r.choice((r.randbytes(size), bytes(r.choices((0, 255), k=size)), b"\xff" * size))


@cocotb.test(timeout_time=3, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.4])
async def images_equal_the_model(dut, stall):
    r = rng()
    for width in (64, 128, 192, 64 * r.randrange(4, 12)):
        dut.width_i.value = width
        sizes = [width * r.randrange(1, 9) for _ in range(4)]
        # Images that end within a line, within the first one, within a beat.
        sizes += [width * r.randrange(9) + r.randrange(1, width) for _ in range(6)]
        sizes += [1, 63, 64, 65, width - 1, width + 1]
        messages = [(r.randrange(256), pixels(n)) for n in sizes]
        r.shuffle(messages)
        _, _, got = await exchange(dut, messages, stall, stall)
        assert [(m.id, m.data) for m in got] == [(i, expect(d, width)) for i, d in messages]
    assert int(dut.errors_o.value) == 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def lines_of_one_beat_wait_for_the_line_above(dut):
    """A line is read behind the write of the one above, whatever gaps and stalls come between."""
    r = rng()
    dut.width_i.value = 64
    messages = [(i, r.randbytes(64 * 40)) for i in range(20)]
    _, _, got = await exchange(dut, messages, 0.5, 0.5)
    assert [m.data for m in got] == [expect(d, 64) for _, d in messages]


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.3])
async def the_width_may_change_between_images(dut, stall):
    r = rng()
    source, sink = Source(dut, stall), Sink(dut, stall)
    await start(dut)
    widths = [64 * r.randrange(1, 6) for _ in range(12)]
    images = [pixels(w * r.randrange(1, 5) + r.choice((0, 1, 64, 100))) for w in widths]
    got = []

    async def collect():
        for _ in images:
            got.append((await sink.receive()).data)

    collector = cocotb.start_soon(collect())
    for image, width in zip(images, widths, strict=True):
        dut.width_i.value = width
        await source.send(image[: source.width], last=len(image) <= source.width)
        dut.width_i.value = r.getrandbits(32)  # changes within an image have no effect
        if len(image) > source.width:
            await source.send(image[source.width :])
    await collector
    assert got == [expect(*x) for x in zip(images, widths, strict=True)]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def one_beat_a_cycle_and_a_line_between_images(dut):
    width, lines = 512, 8
    dut.width_i.value = width
    images = [(0, pixels(width * lines)) for _ in range(3)]
    source, sink, got = await exchange(dut, images, 0, 0)
    assert [m.data for m in got] == [expect(d, width) for _, d in images]
    row = width // source.width
    beats = lines * row
    for cycles in (source.cycles, sink.cycles):
        starts = cycles[::beats]
        ends = cycles[beats - 1 :: beats]
        assert [b - a for a, b in zip(starts, ends, strict=True)] == [beats - 1] * 3, "no gap in an image"
        assert [b - a - 1 for a, b in zip(ends, starts[1:], strict=False)] == [row + 1] * 2
    assert sink.cycles[0] - source.cycles[0] == row + 4


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def lines_as_long_as_they_can_be(dut):
    dut.width_i.value = MAX
    source = Source(dut)
    data = pixels(MAX + 5 * source.width + 3) if source.width == 64 else pixels(500)
    _, _, got = await exchange(dut, [(1, data)], 0, 0)
    assert got[0].data == expect(data, MAX)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def one_bright_pixel_becomes_the_kernel(dut):
    dut.width_i.value = 128
    images, wants = [], []
    # In the middle, between two beats, in a corner, at the edge to the right.
    for x, y in ((20, 2), (63, 2), (64, 1), (0, 0), (127, 4)):
        image, want = bytearray(5 * 128), bytearray(5 * 128)
        image[128 * y + x] = 255
        for dy, row in ((-1, (16, 32, 16)), (0, (32, 64, 32)), (1, (16, 32, 16))):
            for dx, value in zip((-1, 0, 1), row, strict=True):
                if 0 <= x + dx < 128 and 0 <= y + dy < 5:
                    want[128 * (y + dy) + x + dx] = value  # 255 * weight / 16: 15.94, 31.88, 63.75
        images.append((0, bytes(image)))
        wants.append(bytes(want))
    images.append((0, b"\x01" * 5 * 128))  # 16/16 inside, 12/16 at an edge, 9/16 in a corner: all are 1
    wants.append(b"\x01" * 5 * 128)
    _, _, got = await exchange(dut, images, 0, 0)
    assert [m.data for m in got] == wants


@cocotb.test(timeout_time=500, timeout_unit="us")
@cocotb.parametrize(stall=[0.0, 0.3])
async def a_wrong_width_gives_zeros_and_an_error(dut, stall):
    source, sink = Source(dut, stall), Sink(dut, stall)
    await start(dut)
    good, wrong = pixels(1000), [0, 1, 32, 63, 65, 96, MAX + 64, 2 * MAX, 1 << 31]
    for n, width in enumerate(wrong, 1):
        dut.width_i.value = width
        cocotb.start_soon(source.send(good[: 100 * n], n))
        message = await sink.receive()
        assert (message.id, message.data) == (n, bytes(len(good[: 100 * n])))
        assert int(dut.errors_o.value) == n
        dut.width_i.value = 128
        cocotb.start_soon(source.send(good, 0))
        assert (await sink.receive()).data == expect(good, 128)
        assert int(dut.errors_o.value) == n


@cocotb.test(timeout_time=500, timeout_unit="us")
async def busy_while_it_goes_on_without_beats(dut):
    dut.width_i.value = 64 * 100
    source, sink = Source(dut), Sink(dut)
    await start(dut)
    await source.send(b"\xc8" * 130)
    await ClockCycles(dut.clk_i, 3)
    assert dut.busy_o.value, "the rest of the only line is computed"
    for _ in range(4000):
        if dut.out_valid_o.value:
            break
        await RisingEdge(dut.clk_i)
    await ClockCycles(dut.clk_i, 3)
    assert not dut.busy_o.value, "the output waits"
    assert (await sink.receive()).data == expect(b"\xc8" * 130, 6400)
    await ClockCycles(dut.clk_i, 3)
    assert not dut.busy_o.value


@cocotb.test(timeout_time=500, timeout_unit="us")
async def a_reset_within_an_image_leaves_nothing(dut):
    dut.width_i.value = 256
    source, sink = Source(dut), Sink(dut)
    await start(dut)
    dut.out_ready_i.value = 1
    await source.send(b"\xff" * 12 * source.width, last=False)
    dut.rst_ni.value = 0
    dut.out_ready_i.value = 0
    await ClockCycles(dut.clk_i, 3)
    dut.rst_ni.value = 1
    data = pixels(900)
    cocotb.start_soon(source.send(data))
    assert (await sink.receive()).data == expect(data, 256)


@pytest.mark.parametrize("data_w", [512, pytest.param(64, marks=pytest.mark.long)])
def test_conv(data_w):
    run_app(__file__, data_w)
