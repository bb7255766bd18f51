# SPDX-License-Identifier: Apache-2.0
"""via_dispatch: every command to its engine, in order; maps wait for DMA, fences for maps, nothing else."""

from collections import deque

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from via_tb import rng, run, stalls, start, until

NOP, H2C, C2H, FILL, MAP, UNMAP, DENY, SCAN, MOVE_IN, MOVE_OUT = (
    0,
    2,
    3,
    4,
    0x10,
    0x11,
    0x12,
    0x13,
    0x20,
    0x21,
)
FENCE = 1
OK, BAD_OP = 0, 1
DMA, MMU = 0, 1


class Command:
    def __init__(self, op: int, tag: int, flags: int = 0, port: int = 0, rsvd: int = 0) -> None:
        self.op, self.tag, self.flags, self.port, self.rsvd = op, tag, flags, port, rsvd
        self.engine = -1
        self.begun = self.done = self.taken = self.ended = (
            0  # cycles; done is when the engine's completion is accepted
        )
        self.status = -1

    @property
    def word(self) -> int:
        return self.rsvd << 224 | self.tag << 32 | self.port << 16 | self.flags << 8 | self.op


class Bench:
    """The source of commands and all engines. Engines complete in order, each after a random time."""

    def __init__(self, dut, stall: float = 0.0, latency: int = 1) -> None:
        self.dut, self.r, self.latency = dut, rng(), latency
        self.streams = (len(dut.eng_cmd_valid) - 2) // 2
        engines = 2 + 2 * self.streams
        self.all: list[Command] = []
        self.todo: deque[Command] = deque()
        self.by_tag: dict[int, Command] = {}
        self.inside: list[deque[tuple[int, Command]]] = [deque() for _ in range(engines)]
        self.order: list[list[Command]] = [[] for _ in range(engines)]
        self.held = [False] * engines  # completes nothing
        self.blocked = [False] * engines  # takes nothing
        self.stall = [stalls(self.r, stall) for _ in range(2 * engines + 2)]
        self.now = 0
        for port in (dut.cmd_valid, dut.cpl_ready, dut.eng_cmd_ready, dut.eng_cpl_valid):
            port.value = 0

    def add(self, op: int, flags: int = 0, port: int = 0, rsvd: int = 0) -> Command:
        c = Command(op, 0x8000_0000 | len(self.all), flags, port, rsvd)
        self.all.append(c)
        self.todo.append(c)
        self.by_tag[c.tag] = c
        return c

    async def begin(self) -> None:
        await start(self.dut)
        self._task = cocotb.start_soon(self._run())

    def end(self) -> None:
        self._task.cancel()

    async def settle(self, limit: int = 4000) -> None:
        await until(self.dut, lambda: all(c.ended for c in self.all), limit, "all complete")
        await ClockCycles(self.dut.clk_i, 2)
        assert int(self.dut.idle_o.value) == 1

    async def _run(self) -> None:
        d = self.dut
        edge = RisingEdge(d.clk_i)
        count = len(self.inside)
        up = cpl_up = False
        ready, valid = [False] * count, [False] * count
        before = None
        while True:
            await edge
            self.now += 1
            cmd_valid, cpl_ready = int(d.eng_cmd_valid.value), int(d.eng_cpl_ready.value)
            if up and int(d.cmd_ready.value):
                self.todo.popleft().taken = self.now
                up = False
            for e in range(count):
                if cmd_valid >> e & 1 and ready[e]:
                    word = int(d.eng_cmd[min(e, 2)].value)
                    c = self.by_tag[word >> 32 & 0xFFFFFFFF]
                    assert word == c.word and c.engine < 0
                    c.engine, c.begun = e, self.now
                    self.check(c)
                    self.order[e].append(c)
                    self.inside[e].append((self.now + self.r.randint(1, self.latency), c))
                if valid[e] and cpl_ready >> e & 1:
                    self.inside[e].popleft()[1].done = self.now
                    valid[e] = False
            cpl = int(d.cpl.value) if int(d.cpl_valid.value) else None
            assert before is None or cpl == before, "completion dropped or changed"
            before = cpl
            if cpl is not None and cpl_up:
                before = None
                c = self.by_tag[cpl >> 24 & 0xFFFFFFFF]
                assert not c.ended and cpl >> 8 & 0xFF == c.op
                c.ended, c.status = self.now, cpl >> 16 & 0xFF
                if c.engine >= 0:
                    assert c.done and cpl >> 88 == c.tag ^ 0x55 and cpl >> 56 & 0xFFFFFFFF == c.engine
            # The next cycle.
            if not up and self.todo and not next(self.stall[0]):
                d.cmd.value = self.todo[0].word
                up = True
            cpl_up = not next(self.stall[1])
            for e in range(count):
                ready[e] = not self.blocked[e] and not next(self.stall[2 + e])
                first = self.inside[e][0] if self.inside[e] else None
                if (
                    first
                    and not valid[e]
                    and not self.held[e]
                    and first[0] <= self.now
                    and not next(self.stall[2 + count + e])
                ):
                    c = first[1]
                    d.eng_cpl[e].value = (c.tag ^ 0x55) << 88 | e << 56 | c.tag << 24 | c.op << 8
                    valid[e] = True
            d.cmd_valid.value, d.cpl_ready.value = up, cpl_up
            d.eng_cmd_ready.value = sum(x << e for e, x in enumerate(ready))
            d.eng_cpl_valid.value = sum(x << e for e, x in enumerate(valid))

    def check(self, c: Command) -> None:
        """May this command begin now?"""
        if c.op in (MAP, UNMAP):
            rivals = (H2C, C2H, FILL)
        elif c.op in (H2C, C2H, FILL) and c.flags & FENCE:
            rivals = (MAP, UNMAP, DENY, SCAN)
        else:
            return
        for x in self.all[: c.tag & 0x7FFF_FFFF]:
            if x.op in rivals and not x.rsvd:
                assert x.done, f"{c.op:#x} begun before the earlier {x.op:#x} was complete"


async def bench(dut, stall: float = 0.0, latency: int = 1) -> Bench:
    b = Bench(dut, stall, latency)
    await b.begin()
    return b


@cocotb.test(timeout_time=100, timeout_unit="us")
async def every_operation_goes_where_it_belongs(dut):
    b = await bench(dut)
    s = b.streams
    want = [(b.add(op), DMA) for op in (H2C, C2H, FILL)]
    want += [(b.add(op), MMU) for op in (MAP, UNMAP, DENY, SCAN)]
    want += [(b.add(MOVE_IN, flags=2, port=k), 2 + k) for k in range(s)]
    want += [(b.add(MOVE_OUT, port=k), 2 + s + k) for k in range(s)]
    nop = b.add(NOP)
    bad = [b.add(op) for op in (1, 5, 0x0F, 0x14, 0x1F, 0x22, 0x80, 0xFF)]
    bad += [b.add(MOVE_IN, port=s), b.add(MOVE_OUT, port=255), b.add(H2C, flags=0x10), b.add(MAP, flags=0x80)]
    bad += [b.add(NOP, flags=0x10), b.add(NOP, rsvd=1), b.add(H2C, rsvd=1 << 31), b.add(MOVE_IN, rsvd=2)]
    await b.settle()
    assert [c.engine for c, _ in want] == [e for _, e in want]
    assert all(c.status == OK for c, _ in want) and nop.status == OK
    assert all(c.status == BAD_OP and c.engine < 0 for c in bad)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def maps_wait_for_earlier_dma_and_hold_nothing_later(dut):
    for op in (MAP, UNMAP):
        b = await bench(dut)
        b.held[DMA] = True
        first = b.add(H2C)
        waits = b.add(op)
        after = [b.add(C2H) for _ in range(4)]
        moves = [b.add(MOVE_IN), b.add(MOVE_OUT)]
        await ClockCycles(dut.clk_i, 40)
        assert first.begun and all(c.begun for c in after), "later DMA is held"
        assert all(c.ended for c in moves) and not waits.begun
        b.held[DMA] = False
        await b.settle()
        assert waits.begun > first.done
        b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def deny_and_scan_do_not_wait_for_dma(dut):
    b = await bench(dut)
    b.held[DMA] = True
    b.add(H2C)
    quick = [b.add(DENY), b.add(SCAN)]
    await until(dut, lambda: all(c.ended for c in quick), 40)
    b.held[DMA] = False
    await b.settle()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_fence_waits_for_earlier_maps_only(dut):
    b = await bench(dut)
    b.held[MMU] = True
    plain = b.add(H2C)
    b.add(MAP)
    free = b.add(H2C)
    fenced = b.add(C2H, flags=FENCE)
    behind = b.add(C2H)
    await ClockCycles(dut.clk_i, 40)
    assert plain.ended and free.ended and not fenced.begun and not behind.begun
    b.held[MMU] = False
    later = b.add(MAP)
    await b.settle()
    assert fenced.begun and later.begun > behind.done


@cocotb.test(timeout_time=100, timeout_unit="us")
async def one_command_and_one_completion_a_cycle(dut):
    for ops in ((H2C,), (SCAN,), (MOVE_IN, MOVE_OUT), (NOP,), (H2C, SCAN, MOVE_IN, NOP)):
        b = await bench(dut)
        cmds = [b.add(ops[i % len(ops)]) for i in range(100)]
        await b.settle()
        assert cmds[-1].taken - cmds[0].taken == 99, f"{ops}: {cmds[-1].taken - cmds[0].taken + 1} cycles"
        # The turn may have to be handed on once, when the second completion comes.
        assert max(c.ended for c in cmds) - min(c.ended for c in cmds) <= (99 if len(ops) == 1 else 100)
        b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_fence_stands_however_far_the_others_go_on(dut):
    """Counts are modulo 256: neither a fence that is open nor one that is closed may be taken for the other."""
    b = await bench(dut)
    b.blocked[DMA] = True
    b.add(MAP)
    fenced = [b.add(H2C, flags=FENCE) for _ in range(4)]
    scans = [b.add(SCAN) for _ in range(700)]
    await until(dut, lambda: all(c.ended for c in scans), 2000, "commands behind a fence")
    assert not any(c.begun for c in fenced)
    b.blocked[DMA] = False
    await b.settle()
    b.held[DMA] = True
    b.add(C2H)
    waits = b.add(MAP)
    scans = [b.add(SCAN) for _ in range(12)]
    moves = [b.add(MOVE_IN) for _ in range(600)]
    await until(dut, lambda: all(c.ended for c in moves), 2000, "moves beside a map")
    assert not waits.begun and not any(c.begun for c in scans)
    b.held[DMA] = False
    await b.settle()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def no_more_are_in_flight_than_can_be_counted(dut):
    b = await bench(dut)
    b.held[DMA] = True
    dma = [b.add(H2C) for _ in range(200)]
    waits = b.add(MAP)
    await ClockCycles(dut.clk_i, 400)
    assert sum(1 for c in dma if c.begun) == 127 and not waits.begun
    b.held[DMA] = False
    await b.settle()
    assert waits.begun > dma[-1].done


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def random_commands_all_complete_in_order(dut):
    b = await bench(dut, 0.3, 30)
    r = b.r
    ops = [H2C, C2H, FILL, MAP, UNMAP, DENY, SCAN, MOVE_IN, MOVE_OUT, NOP, 0x77]
    for i in range(1500):
        op = r.choice(ops)
        flags = FENCE if op in (H2C, C2H, FILL) and r.random() < 0.3 else 0
        b.add(op, flags, r.randrange(b.streams + 1) if op in (MOVE_IN, MOVE_OUT) else 0)
        if i % 100 == 99:
            # Now and then an engine stands still for a while.
            e = r.randrange(len(b.held))
            b.held[e] = True
            await ClockCycles(dut.clk_i, 150)
            b.held[e] = False
    await b.settle(60000)
    for order in b.order:
        assert order == sorted(order, key=lambda c: c.tag)
        assert [c.done for c in order] == sorted(c.done for c in order)


@pytest.mark.parametrize("streams", [2])
def test_via_dispatch(streams):
    run("via_dispatch_tb", __file__, defines={"VIA_DATA_W": 64, "VIA_NUM_STREAMS": streams})
