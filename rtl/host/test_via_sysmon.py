# SPDX-License-Identifier: Apache-2.0
"""via_sysmon against a model of a dynamic reconfiguration port: which addresses are read, where the answers go, and what if none comes."""

import cocotb
from cocotb.triggers import RisingEdge

from via_tb import rng, run, start

# Xilinx UG480, UG580: last, highest, lowest of temperature, VCCINT, VCCAUX and VCCBRAM, then auxiliary input 0.
ADDRESSES = [0x00, 0x20, 0x24, 0x01, 0x21, 0x25, 0x02, 0x22, 0x26, 0x06, 0x23, 0x27, 0x10]
BUSY, VALID, FAILED = 4, 2, 1
TIMEOUT = 40


class Monitor:
    """Answers each read after `wait()` cycles with what `memory` has; never if that is None."""

    def __init__(self, dut, memory, wait):
        self.dut, self.memory, self.wait = dut, memory, wait
        self.asked: list[int] = []
        cocotb.start_soon(self._serve())

    async def _serve(self) -> None:
        while True:
            await RisingEdge(self.dut.clk_i)
            if not int(self.dut.drp_en_o.value):
                continue
            address = int(self.dut.drp_addr_o.value)
            self.asked.append(address)
            pause = self.wait()
            if pause is None:
                continue
            for _ in range(pause):
                await RisingEdge(self.dut.clk_i)
                assert not int(self.dut.drp_en_o.value), "a request before the answer to the last one"
                assert int(self.dut.drp_addr_o.value) == address
            self.dut.drp_rdy_i.value, self.dut.drp_data_i.value = 1, self.memory[address]
            await RisingEdge(self.dut.clk_i)
            self.dut.drp_rdy_i.value, self.dut.drp_data_i.value = 0, 0xDEAD


async def bench(dut, memory, wait) -> Monitor:
    dut.start_i.value = dut.drp_rdy_i.value = 0
    await start(dut)
    return Monitor(dut, memory, wait)


async def read(dut, again: int = 0) -> int:
    """Asks for a reading, and once more for so many cycles while it lasts; waits for its end: the state then."""
    dut.start_i.value = 1
    for _ in range(1 + again):
        await RisingEdge(dut.clk_i)
    dut.start_i.value = 0
    await RisingEdge(dut.clk_i)
    for _ in range(2000):
        await RisingEdge(dut.clk_i)
        state = int(dut.state_o.value)
        if not state & BUSY:
            return state
    raise AssertionError("the reading has no end")


@cocotb.test(timeout_time=100, timeout_unit="us")
async def all_values_are_read_once_and_kept_apart(dut):
    r = rng()
    memory = {address: r.randrange(1 << 16) for address in ADDRESSES}
    monitor = await bench(dut, memory, lambda: r.randrange(12))
    for turn in range(5):
        assert (await read(dut, again=9 * (turn % 2))) == VALID
        assert monitor.asked == ADDRESSES
        assert [int(v.value) for v in dut.value_o] == [memory[a] for a in ADDRESSES]
        monitor.asked.clear()
        memory.update({address: r.randrange(1 << 16) for address in ADDRESSES})
        # Nothing is read that nobody has asked for.
        for _ in range(30):
            await RisingEdge(dut.clk_i)
        assert not monitor.asked and int(dut.idle_o.value)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_monitor_that_does_not_answer_ends_the_reading(dut):
    memory = {address: address * 257 for address in ADDRESSES}
    silent = [False]
    monitor = await bench(dut, memory, lambda: None if silent[0] and len(monitor.asked) > 3 else 2)
    silent[0] = True
    assert (await read(dut)) == FAILED
    assert monitor.asked == ADDRESSES[:4]
    # A late answer is not taken for one of the next reading.
    dut.drp_rdy_i.value, dut.drp_data_i.value = 1, 0xBEEF
    await RisingEdge(dut.clk_i)
    dut.drp_rdy_i.value = 0
    silent[0] = False
    monitor.asked.clear()
    assert (await read(dut)) == VALID
    assert [int(v.value) for v in dut.value_o] == [memory[a] for a in ADDRESSES]
    silent[0] = True
    monitor.asked.clear()
    assert (await read(dut)) == VALID | FAILED


@cocotb.test(timeout_time=100, timeout_unit="us")
async def the_slowest_answer_in_time_is_taken(dut):
    memory = {address: 0xFFFF - address for address in ADDRESSES}
    await bench(dut, memory, lambda: TIMEOUT - 4)
    assert (await read(dut)) == VALID


def test_via_sysmon():
    run("via_sysmon", __file__, parameters={"Timeout": TIMEOUT})
