# SPDX-License-Identifier: Apache-2.0
"""The clock of a block in its unit test against the reasons to run it, edge by edge: those of a part of the simulated card (tools/parts.py)."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, Timer

from via_tb import rng, run, start

LINGER = 7


@cocotb.test(timeout_time=200, timeout_unit="us")
async def runs_while_something_moves_and_seven_cycles_longer(dut):
    r = rng()
    dut.still_i.value, dut.inputs_i.value = 0, 0
    await start(dut)
    left, seen, ran = LINGER, 0, {False: 0, True: 0}
    for _ in range(4000):
        # What changes behind the rising edge makes no edge of its own; what holds at the end of the low phase counts.
        await Timer(1, "ns")
        dut.still_i.value = r.randrange(2)
        shown = int(dut.clk_o.value)
        await Timer(500, "ps")
        assert int(dut.clk_o.value) == shown
        await FallingEdge(dut.clk_i)
        await Timer(1, "ns")
        assert int(dut.clk_o.value) == 0
        still = r.random() < 0.9
        inputs = r.randrange(4) if r.random() < 0.05 else seen
        dut.still_i.value, dut.inputs_i.value = still, inputs
        await RisingEdge(dut.clk_i)
        moves = not still or inputs != seen
        await Timer(500, "ps")
        assert int(dut.clk_o.value) == (moves or left > 0)
        ran[bool(dut.clk_o.value)] += 1
        left, seen = (LINGER if moves else max(left - 1, 0)), inputs
    assert min(ran.values()) > 100


def test_via_tb_gate():
    run("via_tb_gate", __file__, parameters={"W": 2})
