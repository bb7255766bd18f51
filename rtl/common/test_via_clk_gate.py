# SPDX-License-Identifier: Apache-2.0
"""The clock of a block against the three reasons to run it, edge by edge."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, Timer

from via_tb import rng, run, start

LINGER = 7


@cocotb.test(timeout_time=200, timeout_unit="us")
async def runs_while_something_moves_and_seven_cycles_longer(dut):
    r = rng()
    dut.still_i.value, dut.wake_i.value, dut.watch_i.value = 0, 0, 0
    await start(dut)
    left, seen, ran = LINGER, 0, {False: 0, True: 0}
    for _ in range(4000):
        # What changes behind the rising edge makes no edge of its own; what holds at the end of the low phase counts.
        await Timer(1, "ns")
        dut.still_i.value, dut.wake_i.value = r.randrange(2), r.randrange(2)
        shown = int(dut.clk_o.value)
        await Timer(500, "ps")
        assert int(dut.clk_o.value) == shown
        await FallingEdge(dut.clk_i)
        await Timer(1, "ns")
        assert int(dut.clk_o.value) == 0
        still, wake = r.random() < 0.9, r.random() < 0.05
        watch = r.randrange(4) if r.random() < 0.05 else seen
        dut.still_i.value, dut.wake_i.value, dut.watch_i.value = still, wake, watch
        await RisingEdge(dut.clk_i)
        moves = not still or wake or watch != seen
        await Timer(500, "ps")
        assert int(dut.clk_o.value) == (moves or left > 0)
        ran[bool(dut.clk_o.value)] += 1
        left, seen = (LINGER if moves else max(left - 1, 0)), watch
    assert min(ran.values()) > 100


def test_via_clk_gate():
    run("via_clk_gate", __file__, parameters={"Width": 2})
