# SPDX-License-Identifier: Apache-2.0
"""via_vdev_input: events one a buffer, lamps, what the configuration tells."""

import struct

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from vdev_model import Bench, Ctrl

from via_tb import run, until


@cocotb.test(timeout_time=200, timeout_unit="us")
async def an_event_a_buffer(dut):
    for stall in (0.0, 0.3):
        b = Bench(dut, stall)
        await b.begin()
        events = [struct.pack("<HHI", 1, b.r.randrange(1, 128), b.r.randrange(2)) for _ in range(200)]
        buffers = [b.offer(0, b.r.choice((8, 8, 8, 64, 7, 0))) for _ in range(400)]
        at = 0
        while at < len(events):
            n = b.r.choice((1, 2, 8, 9, 30))
            # A part of an event at the end of a message is dropped.
            b.rx(b"".join(events[at : at + n]) + b.r.randbytes(b.r.choice((0, 0, 0, 3, 7))))
            at += n
        await until(dut, lambda: sum(c.response not in (None, b"") for c in buffers) == len(events), 8000)  # noqa: B023
        used = [c for c in buffers if c.response is not None]
        assert [c.response for c in used if c.wlen >= 8] == events
        assert all(c.response == b"" for c in used if c.wlen < 8)
        b.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_message_may_be_longer_than_the_store(dut):
    for stall in (0.0, 0.8):
        b = Bench(dut, stall)
        await b.begin()
        # The store holds 2 KiB; the last event of the longest is incomplete.
        messages = [b.r.randbytes(n) for n in (31 * 64, 32 * 64 - 1, 33 * 64, 100 * 64 + 5)]
        events = [m[at : at + 8] for m in messages for at in range(0, len(m) - 7, 8)]
        buffers = [b.offer(0, 8) for _ in range(64)]
        for m in messages:
            b.rx(m)
        at = 0
        while at < len(events):
            await b.done(buffers[at], limit=4000)
            assert buffers[at].response == events[at], at
            buffers.append(b.offer(0, 8))
            at += 1
        b.end()


@cocotb.test(timeout_time=50, timeout_unit="us")
async def parts_of_events_alone_are_dropped(dut):
    b = Bench(dut)
    await b.begin()
    c = b.offer(0, 8)
    for n in (1, 7, 3):
        b.rx(bytes(n))
    b.rx(b"\1\0\x1e\0\1\0\0\0")
    await b.done(c)
    assert c.response == b"\1\0\x1e\0\1\0\0\0"
    await ClockCycles(dut.clk_i, 20)
    assert int(dut.idle_o.value)


@cocotb.test(timeout_time=50, timeout_unit="us")
async def lamps(dut):
    b = Bench(dut, 0.2)
    await b.begin()
    lamp = struct.pack("<HHI", 0x11, 1, 1)
    await b.done(b.send(1, lamp), b.send(1, b""), b.send(1, lamp * 40))
    await until(dut, lambda: len(b.tx) == 2)
    assert b.tx == [(0, lamp), (0, lamp * 40)]
    b.set(Ctrl(up=0))
    await b.done(b.send(1, lamp))
    await ClockCycles(dut.clk_i, 10)
    assert len(b.tx) == 2


async def ask(b: Bench, select: int, subsel: int) -> bytes:
    for strb, word in ((1, select), (2, subsel << 8)):
        b.dut.dev_addr.value, b.dut.dev_wdata.value, b.dut.dev_strb.value, b.dut.dev_write.value = (
            0,
            word,
            strb,
            1,
        )
        await RisingEdge(b.dut.clk_i)
        b.dut.dev_write.value = 0
    head = await b.config_bytes(0, 4)
    assert head[:2] == bytes((select, subsel))
    text = await b.config_bytes(8, 128)
    assert not any(text[max(head[2], 0) :])
    return text[: head[2]]


@cocotb.test(timeout_time=100, timeout_unit="us")
async def what_it_is(dut):
    b = Bench(dut)
    await b.begin()
    assert await b.config_bytes(0, 3) == bytes(3)
    assert await ask(b, 1, 0) == b"Viaduct keyboard"
    assert struct.unpack("<HHHH", await ask(b, 3, 0)) == (6, 0x1AF4, 1, 1)
    assert await ask(b, 0x11, 1) == b"\xfe" + b"\xff" * 15
    assert await ask(b, 0x11, 0x11) == b"\7"
    assert await ask(b, 0x11, 0x14) == b"\0"
    for select, subsel in (
        (0, 0),
        (1, 1),
        (2, 0),
        (0x10, 0),
        (0x11, 0),
        (0x11, 2),
        (0x12, 0),
        (0x12, 3),
        (255, 255),
    ):
        assert await ask(b, select, subsel) == b"", f"{select:#x} {subsel:#x}"


def test_via_vdev_input():
    run(
        "via_vdev_select_tb",
        __file__,
        parameters={"Fn": 5},
        sources=["rtl/virtio/via_virtio_pkg.sv", "rtl/vdev/via_vdev_pkg.sv"],
    )
