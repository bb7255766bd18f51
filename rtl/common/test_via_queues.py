# SPDX-License-Identifier: Apache-2.0
"""via_slice, via_skid and via_fifo: order, rate, latency, registered ready, count, flush."""

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from via_tb import rng, run, stalls, start

# name: lane, latency, places
LANES = {
    "slice": (0, 1, 2),
    "fifo": (1, 1, 11),
    "fifo_ram": (2, 2, 11),
    "fifo4": (3, 1, 4),
    "fifo2_ram": (4, 2, 2),
    "skid": (5, 0, 1),
    "slice_ram": (6, 1, 2),
}


class Lane:
    """Drives one lane with counted words and records what comes out and when."""

    def __init__(self, dut, lane: int, r, stall_in: float, stall_out: float) -> None:
        self.dut, self.lane = dut, lane
        self.stall_in, self.stall_out = stalls(r, stall_in), stalls(r, stall_out)
        self.sent: list[tuple[int, int]] = []  # word, cycle taken
        self.got: list[tuple[int, int]] = []
        self.valid = self.ready = False
        self.word = 0
        self.offer = self.accept = True


async def drive(dut, lanes: list[Lane], cycles: int, r) -> None:
    """Runs all lanes for some cycles and checks stability of every output."""
    edge = RisingEdge(dut.clk_i)
    stalled, words = 0, [0] * 7
    for now in range(cycles):
        await edge
        s_ready, m_valid = int(dut.s_ready.value), int(dut.m_valid.value)
        before, words = words, [int(dut.m_data[i].value) for i in range(7)]
        valid = ready = taken = mine = 0
        for x in lanes:
            bit = 1 << x.lane
            mine |= bit
            if stalled & bit:
                assert m_valid & bit and words[x.lane] == before[x.lane], f"lane {x.lane} dropped a word"
            if x.valid and s_ready & bit:
                x.sent.append((x.word, now))
                x.valid = False
            if x.ready and m_valid & bit:
                x.got.append((words[x.lane], now))
                taken |= bit
            if not x.valid and x.offer and not next(x.stall_in):
                x.word = r.getrandbits(40)
                dut.s_data[x.lane].value = x.word
                x.valid = True
            x.ready = x.accept and not next(x.stall_out)
            valid |= bit * x.valid
            ready |= bit * x.ready
        stalled = m_valid & mine & ~taken
        dut.s_valid.value, dut.m_ready.value = valid, ready


async def lanes_of(dut, stall_in: float, stall_out: float) -> tuple[list[Lane], object]:
    r = rng()
    for port in (dut.s_valid, dut.m_ready, dut.flush_i):
        port.value = 0
    await start(dut)
    return [Lane(dut, lane, r, stall_in, stall_out) for lane in range(7)], r


@cocotb.test(timeout_time=100, timeout_unit="us")
async def nothing_is_lost_or_reordered_under_stalls(dut):
    for stall_in, stall_out in ((0.3, 0.3), (0.1, 0.6), (0.6, 0.1)):
        lanes, r = await lanes_of(dut, stall_in, stall_out)
        await drive(dut, lanes, 1500, r)
        for x in lanes:
            assert len(x.got) > 300
            assert [w for w, _ in x.got] == [w for w, _ in x.sent][: len(x.got)]


@cocotb.test(timeout_time=100, timeout_unit="us")
async def one_beat_a_cycle_with_the_stated_latency(dut):
    lanes, r = await lanes_of(dut, 0, 0)
    await drive(dut, lanes, 200, r)
    for lane, latency, _ in LANES.values():
        x = lanes[lane]
        out = dict(x.got)
        # A FIFO of two words cannot hide a latency of two cycles and its own occupancy.
        if lane != 4:
            assert all(out[w] - t == latency for w, t in x.sent[:150]), f"lane {lane}: latency"
            assert x.got[150][1] - x.got[0][1] == 150, f"lane {lane}: rate"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def holds_its_depth_and_counts(dut):
    lanes, r = await lanes_of(dut, 0, 0)
    for x in lanes:
        x.accept = False
    await drive(dut, lanes, 40, r)
    for lane, _, depth in LANES.values():
        assert len(lanes[lane].sent) == depth, f"lane {lane} took {len(lanes[lane].sent)}"
        assert lane in (0, 5, 6) or int(dut.count[lane].value) == depth
    # Flush empties the FIFOs at once; slices and the skid have none.
    dut.s_valid.value = 0
    dut.flush_i.value = 1
    await RisingEdge(dut.clk_i)
    dut.flush_i.value = 0
    await RisingEdge(dut.clk_i)
    assert int(dut.m_valid.value) == 0b1100001
    assert all(int(dut.count[lane].value) == 0 for lane in range(1, 5))
    fresh = [Lane(dut, lane, r, 0.2, 0.2) for lane in range(1, 5)]
    await drive(dut, fresh, 100, r)
    for x in fresh:
        assert len(x.got) > 20 and [w for w, _ in x.got] == [w for w, _ in x.sent][: len(x.got)]


@pytest.mark.parametrize("width", [40])
def test_via_queues(width):
    run("via_queues_tb", __file__, parameters={"W": width})
