# SPDX-License-Identifier: Apache-2.0
"""via_vdev_console: bytes both ways, ports, control protocol, emergency writes; drivers that are wrong."""

import struct

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from vdev_model import NONE, Bench, Ctrl

from via_tb import run, until

SIZE, MULTIPORT, EMERG = 1, 2, 4
READY, ADD, PORT_READY, CONSOLE, RESIZE, OPEN, NAME = 0, 1, 3, 4, 5, 6, 7
RX, TX, CRX, CTX = (0, 4), (1, 5), 2, 3


def bench(dut, stall: float = 0.0) -> Bench:
    return Bench(dut, stall, width=len(dut.rd) // 9)


def ctl(port: int, event: int, value: int = 1) -> bytes:
    return struct.pack("<IHH", port, event, value)


def resize(cols: int, rows: int) -> bytes:
    return ctl(0, RESIZE) + struct.pack("<HH", cols, rows)


async def opened(b: Bench, ctrl: Ctrl | None = None) -> None:
    """The whole conversation, as Linux holds it."""
    await b.begin(SIZE | MULTIPORT, ctrl)
    said = [b.offer(CRX, 4096) for _ in range(9)]
    b.send(CTX, ctl(0xFFFFFFFF, READY))
    await b.done(*said[:2])
    for port in (0, 1):
        b.send(CTX, ctl(port, PORT_READY))
    await b.done(*said[2:8])
    assert [c.response for c in said[:2]] == [ctl(0, ADD), ctl(1, ADD)]
    got = [c.response for c in said[2:8]]
    for port, want in (
        (0, [ctl(0, CONSOLE), resize(b.ctrl.cols, b.ctrl.rows), ctl(0, NAME) + b"viaduct.0", ctl(0, OPEN)]),
        (1, [ctl(1, NAME) + b"viaduct.1", ctl(1, OPEN)]),
    ):
        assert [m for m in got if m[0] == port] == want
    await ClockCycles(b.dut.clk_i, 20)
    assert said[8].response is None, "said too much"
    b.ready[CRX].clear()
    for port in (0, 1):
        await b.done(b.send(CTX, ctl(port, OPEN)))


@cocotb.test(timeout_time=300, timeout_unit="us")
async def bytes_both_ways_on_both_ports(dut):
    for stall in (0.0, 0.3):
        b = bench(dut, stall)
        await opened(b)
        out: list[list[bytes]] = [[], []]
        for _ in range(60):
            port, data = b.r.randrange(2), b.r.randbytes(b.r.choice((0, 1, 5, 63, 64, 65, 300, 4096)))
            b.send(TX[port], data)
            out[port] += [data] if data else []
        await until(dut, lambda: len(b.tx) == sum(map(len, out)) and not b.reqs, 20000)  # noqa: B023
        for port in (0, 1):
            assert [m for i, m in b.tx if i == port] == out[port]
        back = [b"", b""]
        for _ in range(40):
            port, data = b.r.randrange(2), b.r.randbytes(b.r.choice((1, 5, 63, 64, 65, 300, 2000)))
            b.rx(data, port)
            back[port] += data
        got = [[], []]

        def step() -> bool:
            for port in (0, 1):
                if not b.ready[RX[port]]:  # noqa: B023
                    got[port].append(b.offer(RX[port], b.r.choice((1, 10, 64, 100, 4096))))  # noqa: B023
            return all(sum(len(c.response or b"") for c in got[p]) == len(back[p]) for p in (0, 1))  # noqa: B023

        await until(dut, step, 30000, "bytes to the driver")
        for port in (0, 1):
            assert b"".join(c.response or b"" for c in got[port]) == back[port]
        b.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def another_size_is_told(dut):
    for stall in (0.0, 0.3):
        b = bench(dut, stall)
        await opened(b, Ctrl(rows=50, cols=132))
        assert await b.config(0) == 50 << 16 | 132
        before = b.changes
        c = b.offer(CRX, 4096)
        b.set(Ctrl(rows=60, cols=132))
        await b.done(c)
        assert c.response == resize(132, 60)
        assert b.changes == before + 1 and await b.config(0) == 60 << 16 | 132
        # Changes nobody has taken a buffer for are one message, with what holds then; a buffer too small is given back.
        for cols in (100, 101, 102):
            b.set(Ctrl(rows=60, cols=cols))
            await ClockCycles(dut.clk_i, b.r.randrange(1, 30))
        small, c, idle = b.offer(CRX, 11), b.offer(CRX, 12), b.offer(CRX, 12)
        await b.done(small, c)
        assert small.response == b"" and c.response == resize(102, 60)
        await ClockCycles(dut.clk_i, 50)
        assert idle.response is None, "said twice"
        # Whenever it changes, the last message has it.
        b.ready[CRX].clear()
        heard = []
        for rows in range(300, 330):
            b.set(Ctrl(rows=rows, cols=102))
            heard.append(b.offer(CRX, 64))
            await ClockCycles(dut.clk_i, b.r.randrange(1, 12))
        await ClockCycles(dut.clk_i, 100)
        told = [c.response for c in heard if c.response is not None]
        assert told[-1] == resize(102, 329)
        b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_size_is_for_those_who_ask(dut):
    b = bench(dut)
    await b.begin(MULTIPORT)
    said = [b.offer(CRX, 4096) for _ in range(4)]
    await b.done(b.send(CTX, ctl(0, PORT_READY)), *said[:3])
    b.set(Ctrl(rows=3, cols=7))
    await ClockCycles(dut.clk_i, 50)
    assert said[3].response is None and b.changes == 1 and await b.config(0) == 3 << 16 | 7
    b.end()
    # Nor before the driver knows the port.
    b = bench(dut)
    await b.begin(SIZE | MULTIPORT)
    said = [b.offer(CRX, 4096) for _ in range(4)]
    b.set(Ctrl(rows=4, cols=7))
    await b.done(b.send(CTX, ctl(1, PORT_READY)), *said[:2])
    await ClockCycles(dut.clk_i, 50)
    assert said[2].response is None


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_plain_console_without_ports(dut):
    b = bench(dut, 0.1)
    await b.begin(0)
    await b.done(b.send(1, b"login: "))
    c = b.offer(0, 4096)
    b.rx(b"x" * 100, 1)  # no such port
    b.rx(b"root\n")
    await b.done(c)
    assert c.response == b"root\n" and b.tx == [(0, b"login: ")]
    # Queues of ports that are not there: completed, nothing else.
    await b.done(b.send(5, b"lost"), b.send(3, ctl(0, READY)))
    await ClockCycles(dut.clk_i, 20)
    assert b.tx == [(0, b"login: ")]


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_closed_port_drops_an_open_one_waits(dut):
    b = bench(dut)
    await b.begin(MULTIPORT)
    b.rx(b"early" * 100, 0)
    b.rx(b"early" * 100, 1)
    await until(dut, lambda: not b.rx_beats)
    await b.done(b.send(CTX, ctl(1, OPEN)))
    b.rx(b"a" * 8 * b.width, 1)
    await until(dut, lambda: not b.rx_beats)
    await ClockCycles(dut.clk_i, 50)
    c = b.offer(RX[1], 4096)
    await b.done(c)
    assert c.response == b"a" * 8 * b.width
    # Port 0 is stuck with a full store, port 1 too, when it stands behind it; nothing is lost.
    await b.done(b.send(CTX, ctl(0, OPEN)))
    b.rx(b"b" * 80 * b.width, 0)
    b.rx(b"c" * 8, 1)
    c = b.offer(RX[1], 4096)
    await ClockCycles(dut.clk_i, 300)
    assert c.response is None and int(dut.still_o.value)
    more = [b.offer(RX[0], 4096) for _ in range(4)]
    await b.done(c, more[0])
    assert c.response == b"c" * 8
    await until(dut, lambda: b"".join(x.response or b"" for x in more) == b"b" * 80 * b.width)
    await b.done(b.send(CTX, ctl(0, OPEN, 0)))
    b.rx(b"d" * 80 * b.width, 0)
    await until(dut, lambda: not b.rx_beats)
    # Closed while a beat waits: that one is dropped, too, and port 1 is not held up.
    await b.done(b.send(CTX, ctl(0, OPEN)))
    b.rx(b"e" * 80 * b.width, 0)
    b.rx(b"f" * 8, 1)
    await ClockCycles(dut.clk_i, 300)
    assert b.rx_beats
    c = b.offer(RX[1], 4096)
    b.send(CTX, ctl(0, OPEN, 0))
    await b.done(c)
    assert c.response == b"f" * 8


@cocotb.test(timeout_time=100, timeout_unit="us")
async def wrong_control_messages_are_ignored(dut):
    b = bench(dut, 0.1)
    await b.begin(MULTIPORT)
    said = [b.offer(CRX, 64) for _ in range(4)]
    wrong = [
        b"",
        b"\0",
        ctl(0, READY)[:7],
        ctl(0, READY, 0),
        ctl(0, READY, 2),
        ctl(2, PORT_READY),
        ctl(0xFFFFFFFF, PORT_READY),
        ctl(1 << 16, PORT_READY),
        ctl(0, PORT_READY, 0),
        ctl(2, OPEN),
        ctl(3, OPEN),
        ctl(0, 2),
        ctl(0, 5),
        ctl(0, 0xFFFF),
        ctl(0, CONSOLE),
        ctl(0, NAME) + b"mine",
        b"\xff" * 4096,
    ]
    chains = [b.send(CTX, m) for m in wrong]
    await b.done(*chains)
    await ClockCycles(dut.clk_i, 50)
    assert all(c.response is None for c in said)
    b.rx(b"x", 0)
    await until(dut, lambda: not b.rx_beats)  # still closed
    # Longer than needed is no mistake.
    await b.done(b.send(CTX, ctl(0, READY) + bytes(500)), *said[:2])
    assert [c.response for c in said[:2]] == [ctl(0, ADD), ctl(1, ADD)]
    # Buffers too small come back empty, and nothing is lost.
    for c in said[2:]:
        b.ready[CRX].remove(c)
    await RisingEdge(dut.clk_i)
    tiny = [b.offer(CRX, n) for n in (0, 1, 7, 8, 16, 17, 16, 64)]
    b.send(CTX, ctl(0, PORT_READY))
    await b.done(*tiny[:7], limit=3000)
    assert [c.response for c in tiny[:3]] == [b""] * 3
    assert tiny[3].response == ctl(0, CONSOLE) and tiny[4].response == b""
    assert tiny[5].response == ctl(0, NAME) + b"viaduct.0" and tiny[6].response == ctl(0, OPEN)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def emergency_writes_come_between_messages(dut):
    b = bench(dut, 0.1)
    await b.begin(MULTIPORT | EMERG)
    text = b"panic: out of paper"

    async def poke() -> None:
        for ch in text:
            dut.dev_addr.value, dut.dev_wdata.value, dut.dev_strb.value, dut.dev_write.value = 8, ch, 1, 1
            await RisingEdge(dut.clk_i)
            dut.dev_write.value = 0
            await ClockCycles(dut.clk_i, b.r.randrange(5, 40))

    task = cocotb.start_soon(poke())
    messages = [b.r.randbytes(b.r.randrange(20, 600)) for _ in range(30)]
    for m in messages:
        b.send(1, m)
    await task
    await until(dut, lambda: len(b.tx) == len(messages) + len(text))
    assert [m for _, m in b.tx if len(m) > 1] == messages
    assert b"".join(m for i, m in b.tx if len(m) == 1 and i == 0) == text


@cocotb.test(timeout_time=50, timeout_unit="us")
async def configuration_and_nobody_there(dut):
    b = bench(dut)
    await b.begin(MULTIPORT, Ctrl(kind=NONE))
    assert struct.unpack("<HHII", await b.config_bytes(0, 12)) == (80, 25, 2, 0)
    await b.done(*(b.send(1, bytes(300)) for _ in range(10)))
    await ClockCycles(dut.clk_i, 10)
    assert not b.tx and int(dut.idle_o.value)


@pytest.mark.parametrize("data_w", [512, pytest.param(64, marks=pytest.mark.long)])
def test_via_vdev_console(data_w):
    run(
        "via_vdev_select_tb",
        __file__,
        parameters={"Fn": 3},
        defines={"VIA_DATA_W": data_w},
        sources=["rtl/virtio/via_virtio_pkg.sv", "rtl/vdev/via_vdev_pkg.sv"],
    )
