# SPDX-License-Identifier: Apache-2.0
"""via_msix: every request is followed by an interrupt, none comes unasked, all vectors take turns."""

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from via_tb import rng, run, stalls, start


async def drive(dut, r, cycles: int, p_set: float, stall: float) -> None:
    """Random requests for `cycles` cycles, then none until it is quiet again."""
    edge = RisingEdge(dut.clk_i)
    pauses = stalls(r, stall)
    count = len(dut.set_i)
    dut.set_i.value = dut.msix_ready_i.value = 0
    await start(dut)
    asked = [-1] * count  # cycle of the last request
    sent = [-1] * count  # cycle of the last interrupt
    requests, interrupts = [0] * count, [0] * count
    ready, before, now, sets = False, None, 0, 0
    while now < cycles or not int(dut.idle_o.value):
        await edge
        now += 1
        assert now < cycles + 500, "does not come to rest"
        vector = int(dut.msix_vector_o.value) if int(dut.msix_valid_o.value) else None
        assert before is None or vector == before, "vector dropped or changed"
        before = vector
        if vector is not None and ready:
            before = None
            interrupts[vector] += 1
            assert interrupts[vector] <= requests[vector]
            sent[vector] = now
        for v in range(count):
            if sets >> v & 1:
                asked[v] = now
                requests[v] += 1
        sets = sum((now < cycles and r.random() < p_set) << v for v in range(count))
        ready = not next(pauses)
        dut.set_i.value, dut.msix_ready_i.value = sets, ready
    assert all(s > a for s, a in zip(sent, asked, strict=True) if a >= 0), "a request without an interrupt"
    assert min(interrupts) > 0


@cocotb.test(timeout_time=200, timeout_unit="us")
async def every_request_is_responded(dut):
    r = rng()
    for p_set, stall in ((0.02, 0.0), (0.05, 0.5), (0.5, 0.3), (1.0, 0.0)):
        await drive(dut, r, 800, p_set, stall)


@cocotb.test(timeout_time=50, timeout_unit="us")
async def all_vectors_take_turns_one_a_cycle(dut):
    count = len(dut.set_i)
    dut.set_i.value = 0
    await start(dut)
    dut.set_i.value = (1 << count) - 1
    dut.msix_ready_i.value = 1
    got = []
    for _ in range(4 + 4 * count):
        await RisingEdge(dut.clk_i)
        if int(dut.msix_valid_o.value):
            got.append(int(dut.msix_vector_o.value))
    assert len(got) >= 4 * count and got[: 4 * count] == list(range(count)) * 4


@pytest.mark.parametrize("vectors", [8])
def test_via_msix(vectors):
    run("via_msix", __file__, parameters={"NumVec": vectors})
