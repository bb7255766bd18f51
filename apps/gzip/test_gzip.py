# SPDX-License-Identifier: Apache-2.0
"""App gzip against its model, and what it makes against zlib."""

import gzip
import random
from pathlib import Path

import cocotb
import pytest
from app_tb import Sink, Source, exchange, load_model, run_app
from cocotb.triggers import RisingEdge

from via_tb import rng, start

model = load_model(__file__)

PLACES = 8192  # emptied after a reset
TEXT = Path(__file__).with_name("model.py").read_bytes()


def packed(data: bytes) -> bytes:
    return model({"in": data}, {})["out"]


def mixed(r: random.Random, size: int) -> bytes:
    """Bytes with runs, with repeats from near and far, with text and with noise."""
    data = bytearray()
    while len(data) < size:
        kind, n = r.randrange(5), r.choice((1, 3, 4, 5, 30, 257, 258, 259, 300))
        if kind == 0:
            data += r.randbytes(n)
        elif kind == 1:
            data += bytes([r.randrange(256)]) * n
        elif kind == 2:
            at = r.randrange(len(TEXT))
            data += TEXT[at : at + n]
        else:
            at = max(0, len(data) - (r.randrange(1, 9) if kind == 3 else r.randrange(1, 50_000)))
            data += data[at : at + n]
    return bytes(data[:size])


async def gives_back(dut, messages: list[tuple[int, bytes]], stall: float = 0.0, same: bool = True):
    """Sends messages; the files must give them back, and be the model's unless `same` is false."""
    source, sink, got = await exchange(dut, messages, stall, stall)
    assert [m.id for m in got] == [ident for ident, _ in messages]
    for message, (_, data) in zip(got, messages, strict=True):
        assert gzip.decompress(message.data) == data
        assert not same or message.data == packed(data)
    return source, sink, got


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.5])
async def short_messages_of_every_kind(dut, stall):
    r = rng()
    sizes = [*range(1, 70), 127, 128, 129, 1000]
    data = [
        *(mixed(r, n) for n in sizes),
        *(b"a" * n for n in (4, 5, 6, 257, 258, 259, 260, 600)),
        bytes(range(256)),
    ]
    r.shuffle(data)
    await gives_back(dut, [(r.randrange(256), d) for d in data], stall)


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.3])
async def repeats_from_as_far_as_they_may_be(dut, stall):
    r = rng()
    far = r.randbytes(40_000)
    messages = [mixed(r, 50_000)]
    # The same eight bytes again at distances around the limit.
    for distance in (32749, 32750, 32751, 32752, 32753, 32768):
        messages.append(far[: distance + 3] + far[3:11] + b"end")
    await gives_back(dut, [(7, d) for d in messages], stall)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_byte_a_cycle_whatever_they_are(dut):
    r = rng()
    for data in (
        r.randbytes(20_000),
        bytes(20_000),
        mixed(r, 20_000),
        b"\xffabcd\xff" * 3000,
        b"\xf0\xf1\xf2\xf3" * 5000,
    ):
        source, _, got = await gives_back(dut, [(1, data)])
        # After a reset places are emptied; then a byte a cycle, and what is behind the last one.
        assert got[0].last - source.cycles[0] < PLACES + len(data) + 60, data[:8]


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def messages_follow_each_other_in_nine_cycles_more(dut):
    data = [rng().randbytes(n % 7 + 20) for n in range(60)]
    _, _, got = await gives_back(dut, [(3, d) for d in data])
    assert got[-1].last - got[0].last <= sum(len(d) + 9 for d in data[1:]) + 20


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def messages_know_nothing_of_each_other(dut):
    data = rng().randbytes(500)
    _, _, got = await gives_back(dut, [(1, data), (2, data), (1, data)])
    assert got[0].data == got[1].data == got[2].data


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_last_beat_without_bytes_ends_the_message(dut):
    """No shell sends one."""
    source, sink = Source(dut), Sink(dut)
    await start(dut)
    for data in (b"", b"x" * source.width):
        if data:
            await source.send(data, 5, last=False)
        dut.in_i.value = 5 << 9 * source.width + 1 | 1 << 9 * source.width
        dut.in_valid_i.value = 1
        await RisingEdge(dut.clk_i)
        while not dut.in_ready_o.value:
            await RisingEdge(dut.clk_i)
        dut.in_valid_i.value = 0
        message = await sink.receive()
        assert message.id == 5 and gzip.decompress(message.data) == data
    sender = cocotb.start_soon(source.send(TEXT, 6))
    assert (await sink.receive()).data == packed(TEXT)
    await sender


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def busy_lasts_until_the_file_stands_at_the_output(dut):
    source, sink = Source(dut), Sink(dut)
    await start(dut)
    sender = cocotb.start_soon(source.send(TEXT[:100]))
    for cycles in (100, PLACES - 50):  # places are emptied; bytes pass without traffic at the ports
        for _ in range(cycles):
            await RisingEdge(dut.clk_i)
        assert dut.busy_o.value
    assert (await sink.receive()).data == packed(TEXT[:100])
    await sender
    for _ in range(3):
        await RisingEdge(dut.clk_i)
    assert not dut.busy_o.value


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def positions_that_return_meet_no_old_entries(dut):
    """With four laps of 32 KiB, and the same text in each of them and in each message."""
    if int(dut.LapLog2.value) != 2:
        return
    r = rng()
    base = mixed(r, 9000)
    messages = [base * 2, base * 20, base + r.randbytes(40_000) + base * 4, *[base] * 12]
    await gives_back(dut, [(n, d) for n, d in enumerate(messages)], same=False)


@pytest.mark.parametrize("data_w", [512, pytest.param(64, marks=pytest.mark.long)])
def test_gzip(data_w):
    run_app(__file__, data_w)


def test_positions_return():
    run_app(
        __file__,
        512,
        parameters={"LapLog2": 2},
        testcase="positions_that_return_meet_no_old_entries",
    )


@pytest.mark.parametrize("data", [b"", b"a", b"ab" * 5, bytes(70_000), TEXT * 9], ids=len)
def test_the_model_makes_files_that_gzip_reads(data: bytes):
    assert gzip.decompress(packed(data)) == data


def test_the_model_on_random_data():
    r = random.Random(11)
    for n in (10, 300, 40_000, 100_000):
        data = mixed(r, n)
        assert gzip.decompress(packed(data)) == data
