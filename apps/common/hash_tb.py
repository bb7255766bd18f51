# SPDX-License-Identifier: Apache-2.0
"""What the tests of apps share that hash many messages at once, one in each lane: what they must do but for the function.

An app's test gives each method a cocotb test of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

import cocotb
from app_tb import Message, Sink, Source, exchange
from cocotb.triggers import RisingEdge

from via_tb import rng, start

CHUNK = 8192


@dataclass
class Hash:
    """An app with this many lanes. `cycles`: what a lane takes for a block of `block` bytes, by the bytes of a beat."""

    lanes: int
    cycles: Callable[[int], int]
    digest: Callable[[bytes], bytes]
    block: int = 64

    def by_lane(self, messages: list[tuple[int, bytes]]) -> list[list[tuple[int, bytes]]]:
        """What each lane has to put out, in order."""
        return [
            [(i, self.digest(d)) for i, d in messages if i % self.lanes == lane] for lane in range(self.lanes)
        ]

    def got_by_lane(self, got: list[Message]) -> list[list[tuple[int, bytes]]]:
        """What each lane has put out, in order."""
        return [[(m.id, m.data) for m in got if m.id % self.lanes == lane] for lane in range(self.lanes)]

    async def agrees(self, dut, examples: dict[bytes, str]) -> None:
        """Published digests."""
        _, _, got = await exchange(dut, [(3, d) for d in examples], 0, 0)
        assert [m.data.hex() for m in got] == list(examples.values())

    async def long_message(self, dut, data: bytes) -> None:
        """A message of whole blocks: its mark and length take one of their own."""
        source, _, got = await exchange(dut, [(0, data)], 0, 0)
        assert got[0].data == self.digest(data)
        took = got[0].last - source.cycles[0]
        most = (len(data) // self.block + 1) * self.cycles(source.width) + 24
        assert took < most, "every block takes its cycles and no more"

    async def every_length(self, dut, stall: float) -> None:
        """Every way to pad."""
        r = rng()
        block = self.block
        sizes = (*range(1, 2 * block + 3), *(3 * block + n for n in (-9, -8, -1, 0, 1)), 1000)
        messages = [(r.randrange(256), r.randbytes(n)) for n in sizes]
        r.shuffle(messages)
        _, _, got = await exchange(dut, messages, stall, stall)
        assert self.got_by_lane(got) == self.by_lane(messages)

    async def interleaved(self, dut) -> None:
        """Two messages for each lane; the second starts when the first has ended."""
        r = rng()
        source, sink = Source(dut, 0.1), Sink(dut, 0.3)
        await start(dut)
        todo = {
            lane: [(lane + self.lanes * k, r.randbytes(r.randrange(1, 3000))) for k in range(2)]
            for lane in range(self.lanes)
        }
        messages = [m for lane in todo.values() for m in lane]
        at = dict.fromkeys(todo, 0)

        async def send_all() -> None:
            while todo:
                lane = r.choice(list(todo))
                ident, data = todo[lane][0]
                size = source.width * r.randrange(1, 8)
                chunk, end = data[at[lane] : at[lane] + size], at[lane] + size >= len(data)
                await source.send(chunk, ident, last=end)
                at[lane] = 0 if end else at[lane] + size
                if end:
                    todo[lane].pop(0)
                if not todo[lane]:
                    del todo[lane]

        sender = cocotb.start_soon(send_all())
        got = [await sink.receive() for _ in messages]
        await sender
        assert self.got_by_lane(got) == self.by_lane(messages)

    async def at_once(self, dut) -> None:
        """All lanes take little longer than one."""
        messages = [(lane, rng().randbytes(CHUNK)) for lane in range(self.lanes)]
        source, _, got = await exchange(dut, messages, 0, 0)
        assert self.got_by_lane(got) == self.by_lane(messages)
        took = max(m.last for m in got) - source.cycles[0]
        alone = (CHUNK // self.block + 1) * self.cycles(source.width)
        assert took < alone + len(source.cycles) + 20

    async def busy(self, dut) -> None:
        """`busy` lasts until the digest stands at the output."""
        source, sink = Source(dut), Sink(dut)
        await start(dut)
        assert not dut.busy_o.value
        await source.send(b"x" * 1000)
        assert dut.busy_o.value
        message = await sink.receive()
        assert message.data == self.digest(b"x" * 1000)
        await RisingEdge(dut.clk_i)
        assert not dut.busy_o.value
