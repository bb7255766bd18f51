# SPDX-License-Identifier: Apache-2.0
"""via_vq_ram: what was written to a word of a queue is read from it, whichever bank it lies in."""

import cocotb
import pytest
from cocotb.triggers import FallingEdge

from via_tb import rng, run, start


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_word_is_read_as_it_was_written_last(dut):
    r, words = rng(), 1 << len(dut.windex_i)
    dut.we_i.value, dut.re_i.value = 0, 0
    await start(dut)
    queues = int(dut.num_q.value)
    await FallingEdge(dut.clk_i)
    mem = {}
    for queue in range(queues):
        for index in range(words):
            mem[queue, index] = r.getrandbits(len(dut.wdata_i))
            dut.we_i.value, dut.wqueue_i.value, dut.windex_i.value = 1, queue, index
            dut.wdata_i.value = mem[queue, index]
            await FallingEdge(dut.clk_i)
    shown = None
    for _ in range(4000):
        write, read, same = r.random() < 0.5, r.random() < 0.7, r.random() < 0.3
        queue, index, data = r.randrange(queues), r.randrange(words), r.getrandbits(len(dut.wdata_i))
        at = (queue, index) if same else (r.randrange(queues), r.randrange(words))
        dut.we_i.value, dut.wqueue_i.value, dut.windex_i.value, dut.wdata_i.value = write, queue, index, data
        dut.re_i.value, dut.rqueue_i.value, dut.rindex_i.value = read, *at
        if read:
            shown = mem[at]
        if write:
            mem[queue, index] = data
        await FallingEdge(dut.clk_i)
        assert shown is None or int(dut.rdata_o.value) == shown, at


@pytest.mark.parametrize("num_q", [*(pytest.param(n, marks=pytest.mark.long) for n in (1, 9)), 6, 11])
def test_vq_ram(num_q):
    run(
        "via_vq_ram_tb",
        __file__,
        parameters={"NumQ": num_q, "Width": 20},
        sources=["rtl/virtio/via_virtio_pkg.sv"],
    )
