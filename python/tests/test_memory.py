# SPDX-License-Identifier: Apache-2.0
"""Card memory from Python: blocks of arrays against NumPy's own indexing, words, bounds, double-buffered runs, the system monitor."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import viaduct


@pytest.fixture(scope="module")
def card():
    with viaduct.open("sim") as card:
        yield card


@pytest.fixture
def slot(card):
    with card.claim() as slot:
        yield slot


def noise(*shape: int) -> np.ndarray:
    return np.frombuffer(os.urandom(int(np.prod(shape))), np.uint8).reshape(shape)


@pytest.mark.parametrize(
    ("rows", "columns", "offset", "step"),
    [(100, 256, 0, 4096), (77, 64, 128, 192), (300, 5, 3, 17), (40, 1000, 64, 1001), (3, 70_000, 0, 131_072)],
)
def test_a_block_is_where_numpy_would_have_it(card, slot, rows, columns, offset, step):
    size = offset + rows * step
    expected = noise(size).copy()
    block, host = noise(rows, columns), noise(rows, columns + 9)
    with card.allocate(size) as memory:
        slot.copy_in(memory, expected)
        view = np.lib.stride_tricks.as_strided(expected[offset:], (rows, columns), (step, 1))
        for source in (block, host[:, 4 : 4 + columns]):  # contiguous, and a part of a wider array
            view[:] = source
            slot.copy_in(memory, source, offset, step)
            back = np.zeros(size, np.uint8)
            slot.copy_out(memory, back)
            assert np.array_equal(back, expected)
            wide = np.full((rows, columns + 30), 0xEE, np.uint8)
            slot.copy_out(memory, wide[:, 10 : 10 + columns], offset, step)
            assert np.array_equal(wide[:, 10 : 10 + columns], source)
            assert (wide[:, :10] == 0xEE).all() and (wide[:, 10 + columns :] == 0xEE).all()


def test_a_tile_of_a_matrix_goes_through_an_app(card):
    matrix = np.arange(256 * 256, dtype=np.uint32).reshape(256, 256)
    with card.load("inc") as slot, card.allocate(matrix.nbytes) as memory, card.allocate(16 * 64) as tile:
        slot.copy_in(memory, matrix)
        part = np.empty((16, 16), np.uint32)
        slot.copy_out(memory, part, offset=4 * (32 * 256 + 48), step=4 * 256)
        assert np.array_equal(part, matrix[32:48, 48:64])
        slot.copy_in(tile, part)
        out = np.empty_like(part)
        slot.transfer({"in": str(tile)}, {"out": out})
        slot.copy_in(memory, out, offset=4 * (32 * 256 + 48), step=4 * 256)
        matrix[32:48, 48:64] += 1
        back = np.empty_like(matrix)
        slot.copy_out(memory, back)
        assert np.array_equal(back, matrix)


def test_words_and_bounds(card, slot):
    with card.allocate(4096) as memory:
        slot.copy_in(memory, np.zeros(4096, np.uint8))
        slot.write_word(memory, 100, 0x12345678)
        assert slot.read_word(memory, 100) == 0x12345678 and slot.read_word(memory, 104) == 0
        for offset, array, step in [
            (1, np.zeros(4096, np.uint8), None),
            (-1, np.zeros(1, np.uint8), None),
            (0, np.zeros((2, 8), np.uint8), 4090),
            (0, np.zeros((2, 8), np.uint8), 7),
            (0, np.zeros((8, 8), np.uint8).T[::2], None),
            (0, np.zeros(8, object), None),
        ]:
            with pytest.raises(viaduct.ArgumentError):
                slot.copy_in(memory, array, offset, step)
        with pytest.raises(viaduct.ArgumentError, match="multiple of 4"):
            slot.read_word(memory, 2)
        frozen = np.zeros(8, np.uint8)
        frozen.flags.writeable = False
        with pytest.raises(viaduct.ArgumentError, match="writable"):
            slot.copy_out(memory, frozen)
    with pytest.raises(viaduct.ClosedError):
        slot.read_word(memory, 0)
    with pytest.raises(viaduct.OutOfMemoryError):
        card.allocate(1 << 60)


def test_a_double_buffered_run_is_a_run(card):
    data = np.arange(300_000, dtype=np.uint32)
    with card.load("inc") as slot:
        out = np.zeros_like(data)
        report = slot.run_buffered(data, out, buffer=64 << 10)
        assert np.array_equal(out, data + 1) and report.bytes_in == report.bytes_out == data.nbytes
        slot.set(amount=7)
        with pytest.raises(viaduct.Error, match="output 0"):
            slot.run_buffered(data, out[:-1])
        slot.run_buffered(data, out)
        assert np.array_equal(out, data + 7), "registers are set again after a failure"
        with pytest.raises(viaduct.ArgumentError, match="multiple of 4096"):
            slot.run_buffered(data, out, buffer=100)
        slot.reset()
        assert slot.get("amount") == 1


def test_the_system_monitor_is_a_model_and_within_what_it_can_be(card):
    values = card.system_monitor()
    assert (
        values.model and 29 < values.temperature.min <= values.temperature.last <= values.temperature.max < 60
    )
    assert 0.8 < values.vccint.last < 0.85 and values.power == pytest.approx(
        values.current * values.vccint.last
    )
