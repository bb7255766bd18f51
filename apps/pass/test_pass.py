# SPDX-License-Identifier: Apache-2.0
"""App pass against its model."""

import cocotb
import pytest
from app_tb import exchange, load_model, rng, run_app

model = load_model(__file__)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.4])
async def hands_every_message_on(dut, stall):
    r = rng()
    messages = [(r.randrange(256), r.randbytes(r.choice((1, 63, 64, 65, 1000)))) for _ in range(40)]
    source, sink, got = await exchange(dut, messages, stall, stall)
    assert [(m.id, m.data) for m in got] == [(i, model({"in": d}, {})["out"]) for i, d in messages]
    assert source.cycles == sink.cycles


@pytest.mark.parametrize("data_w", [64])
def test_pass(data_w):
    run_app(__file__, data_w)
