# SPDX-License-Identifier: Apache-2.0
"""What the tests of both movers share: the command and completion ports."""

from collections import deque
from dataclasses import dataclass

import cocotb
from cocotb.triggers import RisingEdge

from via_tb import cycle, stalls

OK, BAD_ARG, FULL, ABORTED, FAULT = 0, 4, 5, 6, 7
EOP = 1 << 1
LAST = 1 << 0


@dataclass
class Move:
    addr: int
    length: int
    flags: int = 0
    ident: int = 0
    tag: int = 0
    status: int = -1
    bytes: int = 0
    cpl_flags: int = 0
    info: int = 0
    ended: int = 0


class Commands:
    """Sends moves and matches the completions: those that run end in order, refusals may come in between."""

    def __init__(self, dut, r, op: int, stall: float = 0.0) -> None:
        self.dut, self.op = dut, op
        self.todo: deque[Move] = deque()
        self.open: dict[int, Move] = {}
        self.ended: list[Move] = []
        self.tag = r.getrandbits(16)
        self._stall = stalls(r, stall), stalls(r, stall)
        self.hold_cpl = False
        dut.cmd_valid.value = dut.cpl_ready.value = dut.abort_i.value = 0
        self._task = cocotb.start_soon(self._run())

    def move(self, addr: int, length: int, flags: int = 0, ident: int = 0) -> Move:
        self.tag += 1
        m = Move(addr, length, flags, ident, self.tag)
        self.todo.append(m)
        return m

    def end(self) -> None:
        self._task.cancel()

    @property
    def idle(self) -> bool:
        return not self.todo and not self.open

    async def _run(self) -> None:
        d = self.dut
        edge = RisingEdge(d.clk_i)
        cmd_up = cpl_up = False
        before = None
        while True:
            await edge
            if not int(d.rst_ni.value):
                continue
            if cmd_up and int(d.cmd_ready.value):
                m = self.todo.popleft()
                self.open[m.tag] = m
                cmd_up = False
            valid = int(d.cpl_valid.value)
            cpl = int(d.cpl.value) if valid else None
            assert before is None or cpl == before, "completion dropped or changed"
            before = cpl
            if valid and cpl_up:
                before = None
                m = self.open.pop(cpl >> 24 & 0xFFFFFFFF)
                m.info = cpl >> 88  # the stream id, of what moves out
                assert cpl >> 8 & 0xFF == self.op and (m.info == 0 or self.op == 0x21)
                m.status, m.bytes, m.cpl_flags, m.ended = (
                    cpl >> 16 & 0xFF,
                    cpl >> 56 & 0xFFFFFFFF,
                    cpl & 0xFF,
                    cycle(),
                )
                if m.status != FULL:
                    assert not any(x.tag < m.tag for x in self.open.values()), "completed out of order"
                self.ended.append(m)
            if not cmd_up and self.todo and not next(self._stall[0]):
                m = self.todo[0]
                d.cmd.value = m.length << 112 | m.addr << 48 | m.tag << 16 | m.ident << 8 | m.flags
                cmd_up = True
            cpl_up = not self.hold_cpl and not next(self._stall[1])
            d.cmd_valid.value, d.cpl_ready.value = cmd_up, cpl_up
