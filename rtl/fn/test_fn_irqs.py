# SPDX-License-Identifier: Apache-2.0
"""via_fn_irqs: pulses become requests, each told; none is lost, whenever it comes."""

import cocotb
from cocotb.triggers import RisingEdge

from via_tb import rng, run, start


@cocotb.test(timeout_time=200, timeout_unit="us")
async def every_pulse_is_told(dut):
    """Against a function that sees a request once it has been low, as via_xdma_irq does, and takes its time."""
    r = rng()
    slots, users = len(dut.irq_i), len(dut.req_o)
    dut.irq_i.value, dut.ack_i.value = 0, 0
    await start(dut)
    untold = [False] * users
    seen_low = [True] * users
    messages = pulses = ack = last_ack = req = 0
    for cycle in range(20000):
        irq = r.getrandbits(slots) & r.getrandbits(slots) & r.getrandbits(slots) if cycle < 19900 else 0
        dut.irq_i.value, dut.ack_i.value = irq, ack
        before, told = req, ack
        await RisingEdge(dut.clk_i)
        req = int(dut.req_o.value)
        assert not req >> slots, "requests of slots that are not there"
        assert not req & last_ack, "a request stands in the cycle after its message"
        assert not before & ~last_ack & ~req, "a request fell before its message"
        ack = 0
        for u in range(users):
            if told >> u & 1:
                untold[u] = False
                messages += 1
            untold[u] |= bool(irq >> u & 1)
            if not req >> u & 1:
                seen_low[u] = True
            elif seen_low[u] and r.random() < 0.2:
                assert untold[u], "a message without a pulse"
                ack |= 1 << u
                seen_low[u] = False
        pulses += irq.bit_count()
        last_ack = told
    assert not any(untold) and req == 0 and int(dut.still_o.value) == 1
    assert 1000 < messages < pulses


def test_via_fn_irqs():
    run("via_fn_irqs", __file__)
