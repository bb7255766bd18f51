# SPDX-License-Identifier: Apache-2.0
"""via_vdev_entropy: each byte once and in order, buffers of any size, a source that stops."""

import cocotb
from cocotb.triggers import ClockCycles
from vdev_model import Bench

from via_tb import run, until


async def gathers(dut, stall: float, sizes: list[int], messages: list[bytes], last: bool) -> None:
    b = Bench(dut, stall)
    await b.begin()
    for m in messages:
        b.rx(m, last=last)
    want = b"".join(messages)
    got: list = []
    while sum(len(c.response or b"") for c in got) < len(want):
        got.append(b.offer(0, b.r.choice(sizes)))
        await until(dut, lambda: got[-1].response is not None or not b.rx_beats, 4000)
        await b.done(got[-1])
        assert got[-1].response or got[-1].wlen == 0
    assert b"".join(c.response for c in got) == want
    b.end()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def every_byte_once(dut):
    r = Bench(dut).r
    for stall in (0.0, 0.3):
        messages = [r.randbytes(r.choice((1, 7, 63, 64, 65, 128, 300, 5000))) for _ in range(30)]
        await gathers(dut, stall, [0, 1, 5, 63, 64, 65, 100, 128, 4096], messages, True)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_source_without_last(dut):
    r = Bench(dut).r
    await gathers(dut, 0.2, [10, 64, 4096], [r.randbytes(64) for _ in range(60)], False)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def large_buffers_take_what_is_there_at_a_beat_a_cycle(dut):
    b = Bench(dut)
    await b.begin()
    data = b.r.randbytes(1 << 16)
    b.rx(data, last=False)
    await ClockCycles(dut.clk_i, 60)
    chains = [b.offer(0, 4096) for _ in range(64)]
    await until(dut, lambda: sum(len(c.response or b"") for c in chains) == len(data))
    cycles = b.wr_beats[-1] - b.wr_beats[0] + 1
    assert cycles <= 1024 * 1.3, f"{cycles} cycles for 1024 beats"
    assert b"".join(c.response for c in chains if c.response) == data


@cocotb.test(timeout_time=50, timeout_unit="us")
async def nothing_given_nothing_answered(dut):
    b = Bench(dut)
    await b.begin()
    c = b.offer(0, 64)
    await ClockCycles(dut.clk_i, 300)
    assert c.response is None and int(dut.still_o.value)
    b.rx(b"\x55" * 64)
    await b.done(c)
    assert c.response == b"\x55" * 64
    # More than is held: the source waits, nothing is lost.
    b.rx(b.r.randbytes(8192))
    await ClockCycles(dut.clk_i, 300)
    assert b.rx_beats and int(dut.still_o.value)


def test_via_vdev_entropy():
    run(
        "via_vdev_select_tb",
        __file__,
        parameters={"Fn": 4},
        sources=["rtl/virtio/via_virtio_pkg.sv", "rtl/vdev/via_vdev_pkg.sv"],
    )
