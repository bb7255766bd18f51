# SPDX-License-Identifier: Apache-2.0
"""App square against its model."""

import cocotb
import pytest
from app_tb import Sink, Source, exchange, load_model, rng, run_app, start
from cocotb.triggers import RisingEdge

model = load_model(__file__)

LATENCY = 3


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall_in=[0.0, 0.4], stall_out=[0.0, 0.4])
async def squares_every_word(dut, stall_in, stall_out):
    r = rng()
    messages = [(r.randrange(256), r.randbytes(r.choice((1, 3, 4, 63, 64, 65, 1000)))) for _ in range(20)]
    messages.append((1, b"\xff\xff\x00\x00" * 40 + b"\x00\x00\xff\xff" * 40))
    source, sink, got = await exchange(dut, messages, stall_in, stall_out)
    assert [(m.id, m.data) for m in got] == [(i, model({"in": d}, {})["out"]) for i, d in messages]
    if not stall_out:
        assert sink.cycles == [c + LATENCY for c in source.cycles], "an idle output adds no wait"
    if not stall_in and not stall_out:
        assert source.cycles[-1] - source.cycles[0] == len(source.cycles) - 1, "one beat a cycle"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def bubbles_close_while_the_output_waits(dut):
    source = Source(dut)
    sink = Sink(dut)
    await start(dut)
    for _ in range(LATENCY):
        await source.send(b"\x02\0\0\0")
        await RisingEdge(dut.clk_i)
    assert not dut.in_ready_o.value
    for _ in range(LATENCY):
        assert (await sink.receive()).data == b"\x04\0\0\0"


@pytest.mark.parametrize("data_w", [128])
def test_square(data_w):
    run_app(__file__, data_w)
