# SPDX-License-Identifier: Apache-2.0
"""via_fn_flush: flushes that the host answers, refuses, answers too late or not at all, and a function that is reset meanwhile."""

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from via_tb import rng, run, start, until

UNIT = 16  # cycles, for 2^18


async def bench(dut, limit: int = 100) -> None:
    dut.ask_i.value = 0
    ctrl(dut, limit)
    await start(dut)
    assert int(dut.still_o.value) == 1


def ctrl(dut, limit: int, count: int = 0, failed: int = 0) -> None:
    """flush_ctrl_t."""
    dut.ctrl_i.value = limit << 17 | failed << 16 | count


async def ask(dut) -> int:
    """A flush begins to wait; returns its number, of which the host hears once."""
    dut.ask_i.value = 1
    told = 0
    for _ in range(4):
        await RisingEdge(dut.clk_i)
        told += int(dut.evt_o.value)
    assert told == 1 and int(dut.still_o.value) == 0
    return int(dut.asked_o.value)


def state(dut) -> tuple[int, int]:
    return int(dut.done_o.value), int(dut.failed_o.value)


async def end(dut) -> None:
    dut.ask_i.value = 0
    await ClockCycles(dut.clk_i, 3)
    assert state(dut) == (0, 0) and int(dut.still_o.value) == 1


@cocotb.test(timeout_time=100, timeout_unit="us")
async def the_host_says_how_it_went(dut):
    await bench(dut)
    r = rng()
    for number in range(1, 30):
        assert await ask(dut) == number
        # Responses to others.
        for other in (number - 1, number + 1, number + 0x8000, 0):
            for failed in (0, 1):
                ctrl(dut, 100, other & 0xFFFF, failed)
                await ClockCycles(dut.clk_i, 3)
                assert state(dut) == (0, 0)
        failed = r.randrange(2)
        ctrl(dut, 100, number, failed)
        await ClockCycles(dut.clk_i, 2)
        assert state(dut) == (1 - failed, failed)
        await end(dut)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def nobody_responses_in_time(dut):
    for limit in (1, 3, 7):
        await bench(dut, limit)
        number = await ask(dut)
        waited = 4
        while state(dut) == (0, 0):
            await RisingEdge(dut.clk_i)
            waited += 1
        assert state(dut) == (0, 1) and 0 <= waited - UNIT * limit <= 4
        # Too late.
        ctrl(dut, limit, number)
        await ClockCycles(dut.clk_i, 2)
        assert state(dut) == (0, 1)
        await end(dut)
        # The next one has its whole time.
        await ask(dut)
        assert state(dut) == (0, 0)
        # The host goes.
        ctrl(dut, 0)
        await ClockCycles(dut.clk_i, 2)
        assert state(dut) == (0, 1)
        await end(dut)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_response_from_before_a_reset_answers_nothing(dut):
    await bench(dut)
    old = await ask(dut)
    await end(dut)
    new = await ask(dut)
    assert new != old
    ctrl(dut, 100, old)
    await ClockCycles(dut.clk_i, 5)
    assert state(dut) == (0, 0)
    ctrl(dut, 100, new)
    await until(dut, lambda: state(dut) == (1, 0), 5)


def test_via_fn_flush():
    run("via_fn_flush", __file__, parameters={"UnitLog2": 4}, sources=["rtl/virtio/via_virtio_pkg.sv"])
