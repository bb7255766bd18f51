# SPDX-License-Identifier: Apache-2.0
"""The clock of a block in its unit test against the reasons to run it, edge by edge: those of a part of the simulated card (tools/parts.py),
one cycle less after the end of its report."""

import cocotb
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer

from via_tb import rng, run, start

SETTLE = 4  # cycles after a change of an input
STAY = 3  # cycles after the block has reported to be still


@cocotb.test(timeout_time=200, timeout_unit="us")
async def runs_while_something_moves_and_some_cycles_longer(dut):
    r = rng()
    dut.still_i.value, dut.inputs_i.value = 0, 0
    await start(dut)
    await ClockCycles(dut.clk_i, SETTLE)  # the reset counts as a change
    left, seen, ran = STAY, 0, {False: 0, True: 0}
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
        await Timer(500, "ps")
        assert int(dut.clk_o.value) == (not still or inputs != seen or left > 0)
        ran[bool(dut.clk_o.value)] += 1
        left = SETTLE if inputs != seen else max(left - 1, 0 if still else STAY)
        seen = inputs
    assert min(ran.values()) > 100


def test_via_tb_gate():
    run("via_tb_gate", __file__, parameters={"W": 2})
