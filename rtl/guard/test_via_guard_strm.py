# SPDX-License-Identifier: Apache-2.0
"""via_guard_strm: legal messages pass unchanged, every breach of the stream contract is named and stopped."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from via_tb import rng, run, stalls, start, until

STREAM, UNSTABLE = 0x14, 0x15
WIDTH = 16
FULL = (1 << WIDTH) - 1


@cocotb.test(timeout_time=200, timeout_unit="us")
async def legal_messages_pass_unchanged(dut):
    r = rng()
    source = AxiStreamSource(
        AxiStreamBus.from_prefix(dut, "s"), dut.clk_i, dut.rst_ni, reset_active_level=False
    )
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m"), dut.clk_i, dut.rst_ni, reset_active_level=False)
    dut.isolate_i.value = 0
    await start(dut)
    for stall in (0.0, 0.3):
        source.set_pause_generator(stalls(r, stall))
        sink.set_pause_generator(stalls(r, stall))
        frames = [AxiStreamFrame(r.randbytes(r.randrange(1, 300)), tid=r.randrange(256)) for _ in range(60)]
        for frame in frames:
            await source.send(frame)
        for frame in frames:
            got = await sink.recv()
            assert got.tdata == frame.tdata and got.tid == frame.tid
        assert not int(dut.violation_o.value)


class Raw:
    """Sends beats (data, keep, id, last) as they are given, takes and keeps what passes."""

    def __init__(self, dut, r, stall: float) -> None:
        self.dut, self.r = dut, r
        self.todo: list[tuple[int, int, int, int]] = []
        self.got: list[tuple[int, int, int, int]] = []
        self.cycles: list[int] = []
        self.cause = 0
        self.drop = 0.0
        self.stall_in, self.stall_out = stalls(r, stall), stalls(r, stall)
        cocotb.start_soon(self.run())

    async def run(self) -> None:
        d = self.dut
        edge = RisingEdge(d.clk_i)
        up = ready = False
        d.s_tvalid.value = d.m_tready.value = 0
        now = 0
        while True:
            await edge
            now += 1
            if up and int(d.s_tready.value):
                self.todo.pop(0)
                up = False
            elif up and self.r.random() < self.drop:
                up = False
                d.s_tvalid.value = 0
                continue
            elif up and self.todo:  # the test may have changed what waits
                d.s_tdata.value, d.s_tkeep.value, d.s_tid.value, d.s_tlast.value = self.todo[0]
            if ready and int(d.m_tvalid.value):
                self.got.append(tuple(int(x.value) for x in (d.m_tdata, d.m_tkeep, d.m_tid, d.m_tlast)))
                self.cycles.append(now)
            if int(d.violation_o.value) and not self.cause:
                self.cause = int(d.cause_o.value)
            if self.todo and not up and not next(self.stall_in):
                d.s_tdata.value, d.s_tkeep.value, d.s_tid.value, d.s_tlast.value = self.todo[0]
                up = True
            up = up and bool(self.todo)
            ready = not next(self.stall_out)
            d.s_tvalid.value, d.m_tready.value = up, ready


def message(r, beats: int, ident: int) -> list[tuple[int, int, int, int]]:
    last = (1 << r.randint(1, WIDTH)) - 1
    return [
        (r.getrandbits(128), FULL if i < beats - 1 else last, ident, int(i == beats - 1))
        for i in range(beats)
    ]


@cocotb.test(timeout_time=50, timeout_unit="us")
async def one_beat_a_cycle(dut):
    r = rng()
    dut.isolate_i.value = 0
    raw = Raw(dut, r, 0)
    await start(dut)
    beats = [b for i in range(40) for b in message(r, r.randint(1, 20), i)]
    raw.todo = list(beats)
    await until(dut, lambda: len(raw.got) == len(beats))
    assert raw.got == beats and raw.cycles[-1] - raw.cycles[0] == len(beats) - 1


@cocotb.test(timeout_time=500, timeout_unit="us")
async def every_breach_is_named_and_stopped(dut):
    r = rng()
    dut.isolate_i.value = 0
    raw = Raw(dut, r, 0.3)
    await start(dut)
    bad = {
        "partial inside": (1, 0x7FFF, 7, 0),
        "empty inside": (1, 0, 7, 0),
        "empty last": (1, 0, 7, 1),
        "hole": (1, 0x0FF7, 7, 1),
        "not from bit 0": (1, 0x00FE, 7, 1),
        "upper half": (1, 0xFF00, 7, 1),
        "id changes": (1, FULL, 8, 0),
        "id changes at the end": (1, 1, 6, 1),
        "valid drops": None,
    }
    for kind, beat in bad.items():
        raw.got.clear()
        raw.cause = 0
        before = message(r, 5, 3) + message(r, 4, 7)[:3]
        after = [(2, FULL, 7, 0)] * 5
        raw.todo = before + ([beat] if beat else []) + after * (1 if beat else 40)
        raw.drop = 0.0 if beat else 0.5
        await until(dut, lambda: raw.cause, what=kind)
        assert raw.cause == (STREAM if beat else UNSTABLE), f"{kind}: {raw.cause:#x}"
        if beat:
            await ClockCycles(dut.clk_i, 40)
            assert raw.got == before, f"{kind}: passed something else"
        dut.isolate_i.value = 1
        await ClockCycles(dut.clk_i, 3)
        for _ in range(20):
            await RisingEdge(dut.clk_i)
            assert not int(dut.s_tready.value) and not int(dut.m_tvalid.value) and int(dut.quiet_o.value)
        raw.todo, raw.drop = [], 0.0
        await ClockCycles(dut.clk_i, 2)
        dut.isolate_i.value = 0
        await ClockCycles(dut.clk_i, 2)
        # As new: the id of the message that was cut does not count.
        raw.got.clear()
        fresh = message(r, 6, 9)
        raw.todo = list(fresh)
        await until(dut, lambda: len(raw.got) == 6, what=f"after {kind}")
        assert raw.got == fresh


@cocotb.test(timeout_time=50, timeout_unit="us")
async def a_payload_changed_while_it_waits_passes_as_it_is_at_ready(dut):
    """It harms the slot's own data only, so it is no violation; nor is one that would break a rule, if ready never sees it."""
    r = rng()
    dut.isolate_i.value = 0
    raw = Raw(dut, r, 0)
    await start(dut)
    raw.stall_out = stalls(r, 1.0)
    beats = message(r, 6, 3)
    raw.todo = list(beats)
    await ClockCycles(dut.clk_i, 10)
    at = len(beats) - len(raw.todo)
    assert 0 < at < 5
    for _ in range(50):
        raw.todo[0] = r.getrandbits(128), r.getrandbits(WIDTH), r.randrange(256), r.randrange(2)
        await RisingEdge(dut.clk_i)
        assert not int(dut.violation_o.value) and len(beats) - len(raw.todo) == at
    beats[at] = raw.todo[0] = r.getrandbits(128), FULL, 3, 0
    await ClockCycles(dut.clk_i, 3)
    raw.stall_out = stalls(r, 0.3)
    await until(dut, lambda: len(raw.got) == len(beats))
    assert raw.got == beats and not raw.cause


@pytest.mark.parametrize("data_w", [128])
def test_via_guard_strm(data_w):
    run("via_guard_strm_tb", __file__, defines={"VIA_DATA_W": data_w})
