# SPDX-License-Identifier: Apache-2.0
"""App inc against its model."""

import cocotb
import pytest
from app_tb import exchange, load_model, rng, run_app

model = load_model(__file__)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.4], amount=[1, 0xDEADBEEF])
async def adds_the_amount_to_every_word(dut, stall, amount):
    r = rng()
    messages = [(r.randrange(256), r.randbytes(r.choice((1, 3, 4, 63, 64, 65, 1000)))) for _ in range(20)]
    messages.append((1, b"\xff" * 130))  # carries out of every byte, and out of the word
    dut.amount_i.value = amount
    source, sink, got = await exchange(dut, messages, stall, stall)
    assert [(m.id, m.data) for m in got] == [
        (i, model({"in": d}, {"amount": amount})["out"]) for i, d in messages
    ]
    assert source.cycles == sink.cycles


@pytest.mark.parametrize("data_w", [512])
def test_inc(data_w):
    run_app(__file__, data_w)
