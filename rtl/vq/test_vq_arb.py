# SPDX-License-Identifier: Apache-2.0
"""via_vq_arb: one grant whenever somebody requests, and nobody waits while another is granted twice."""

import cocotb
import pytest
from cocotb.triggers import FallingEdge

from via_tb import rng, run, start


@cocotb.test(timeout_time=100, timeout_unit="us")
async def of_two_the_one_granted_longer_ago_goes_first(dut):
    r, n = rng(), len(dut.req_i)
    dut.req_i.value, dut.ack_i.value = 0, 0
    await start(dut)
    order = list(range(n))  # who goes first
    for _ in range(3000):
        await FallingEdge(dut.clk_i)
        req, ack = r.getrandbits(n) if r.random() < 0.7 else (1 << n) - 1, r.random() < 0.7
        dut.req_i.value, dut.ack_i.value = req, ack
        await FallingEdge(dut.clk_i)  # an edge has passed: what was granted then is known from the order
        first = next((i for i in order if req >> i & 1), None)
        if ack and first is not None:
            order.remove(first)
            order.append(first)
        dut.ack_i.value = 0
        dut.req_i.value = req = r.getrandbits(n)
        await FallingEdge(dut.clk_i)
        first = next((i for i in order if req >> i & 1), None)
        assert int(dut.gnt_o.value) == (0 if first is None else 1 << first), (order, req)
        assert dut.valid_o.value == (first is not None)
        assert first is None or int(dut.idx_o.value) == first


@pytest.mark.parametrize("n", [*(pytest.param(n, marks=pytest.mark.long) for n in (1, 2)), 4, 7])
def test_vq_arb(n):
    run("via_vq_arb", __file__, parameters={"N": n})
