# SPDX-License-Identifier: Apache-2.0
"""via_virtio_fn whole: registers, engine and device under a driver that sets up rings in host memory, split and packed.

The rings and the checks of every write are those of vq_model.py; the devices are those of the tests beside this one.
Two functions stand for the others, which `make test-long` runs.
"""

import struct
from collections import deque

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from vdev_model import BOARD, NONE, Ctrl
from vq_model import Chain, Features, Host, Queue

from via_tb import AxiMem, rng, run, stalls, start, until

SIZE, RINGS, ARENA = 1 << 21, 1 << 15, 1 << 20
STAT = 0x4000  # counters of the engine, in the BAR
VERSION_1, PLATFORM = 1 << 32, 1 << 33
FN = {"net": 1, "blk": 2, "console": 3, "entropy": 4, "input": 5}
RINGS_TRIED = [
    Features(),
    Features(event_idx=True, indirect=True, notif_data=True),
    Features(packed=True, indirect=True, event_idx=True),
    Features(packed=True, notif_data=True),
]


class Memory(AxiMem):
    """Hands every write to the host's model, runs of bytes at a time."""

    host: Host

    def _store(self, addr: int, data: int, strb: int) -> None:
        raw = data.to_bytes(self._width, "little")
        at = 0
        while strb >> at:
            end = at
            while strb >> end & 1:
                end += 1
            if end > at:
                self.host.store(addr + at, raw[at:end])
            at = end + 1


class Driver:
    """A driver of any of the devices, and the user side behind it."""

    def __init__(self, dut, stall: float = 0.1) -> None:
        self.dut, self.r = dut, rng()
        self.mem = Memory(dut.u_host, "axi", latency=30, stall=stall, size=SIZE, r=self.r)
        self.disk = AxiMem(dut.u_mem, "axi", latency=30, stall=stall, size=1 << 18, r=self.r)
        self.disk.mem[:] = self.r.randbytes(1 << 18)
        self.host = Host(self.mem.mem, self.r)
        self.mem.host = self.host
        self.host.arena(ARENA, SIZE)
        self.queues: dict[int, Queue] = {}
        self.vectors: list[int] = []
        self.tx: list[tuple[int, bytes]] = []
        self.rx_beats: deque[int] = deque()
        self.echo = False
        self.passes = False
        self._stall = [stalls(self.r, stall) for _ in range(2)]
        for s in (
            "req_valid",
            "flr",
            "tx_ready",
            "rx_valid",
            "ctrl",
            "req_write",
            "req_addr",
            "req_strb",
            "req_wdata",
            "rx",
        ):
            getattr(dut, s).value = 0
        dut.bus_master.value, dut.msix_ready.value = 1, 1

    async def begin(self, ctrl: Ctrl) -> None:
        ctrl.drive(self.dut.ctrl)
        await start(self.dut)
        self._tasks = [cocotb.start_soon(self._user()), cocotb.start_soon(self._interrupts())]

    def end(self) -> None:
        for x in (self.mem, self.disk):
            x.end()
        for task in self._tasks:
            task.cancel()

    # ------------------------------------------------------------ registers
    async def _access(self, write: int, addr: int, size: int, value: int) -> int:
        d, lane = self.dut, addr & 3
        d.req_write.value, d.req_addr.value = write, addr & ~3
        d.req_strb.value = ((1 << size) - 1) << lane
        d.req_wdata.value = value << 8 * lane
        d.req_valid.value = 1
        edge = RisingEdge(d.clk_i)
        await edge
        for _ in range(200):
            await edge
            if d.req_rvalid.value == 1:
                break
        else:
            raise AssertionError(f"access to {addr:#x} is not answered")
        d.req_valid.value = 0
        got = int(d.req_rdata.value) >> 8 * lane & (1 << 8 * size) - 1
        await edge
        return got

    async def read(self, addr: int, size: int = 4) -> int:
        return await self._access(0, addr, size, 0)

    async def write(self, addr: int, value: int, size: int = 4) -> None:
        await self._access(1, addr, size, value)

    async def reset(self) -> None:
        await self.write(0x14, 0, 1)
        for _ in range(500):
            if await self.read(0x14, 1) == 0:
                break
        else:
            raise AssertionError("reset does not end")
        for q in list(self.queues.values()):
            q.drop()
        self.queues.clear()

    async def setup(self, wanted: int, rings: Features, sizes: dict[int, int]) -> None:
        """As 3.1.1 of the specification has it."""
        await self.reset()
        await self.write(0x14, 1, 1)
        await self.write(0x14, 3, 1)
        offered = 0
        for half in (0, 1):
            await self.write(0x00, half)
            offered |= (await self.read(0x04)) << 32 * half
        wanted |= VERSION_1 | PLATFORM
        for on, bit in (
            (rings.indirect, 28),
            (rings.event_idx, 29),
            (rings.packed, 34),
            (rings.notif_data, 38),
        ):
            wanted |= on << bit
        assert wanted & ~offered == 0, f"not offered: {wanted & ~offered:#x}"
        for half in (0, 1):
            await self.write(0x08, half)
            await self.write(0x0C, wanted >> 32 * half & 0xFFFFFFFF)
        await self.write(0x14, 11, 1)
        assert await self.read(0x14, 1) == 11, "features refused"
        await self.write(0x10, 0, 2)
        for i, (q, size) in enumerate(sizes.items()):
            queue = Queue(self.host, q, RINGS * (i + 1), size, rings, self._verify)
            self.queues[q] = queue
            await self.write(0x16, q, 2)
            await self.write(0x18, size, 2)
            await self.write(0x1A, q + 1, 2)
            for at, addr in ((0x20, queue.desc), (0x28, queue.driver), (0x30, queue.device)):
                await self.write(at, addr)
                await self.write(at + 4, 0)
            await self.write(0x1C, 1, 2)
        self.rings = rings
        await self.write(0x14, 15, 1)

    @staticmethod
    def _verify(_queue: Queue, chain: Chain, length: int) -> None:
        assert length <= chain.wlen

    # ------------------------------------------------------------ chains
    def pieces(self, n: int, most: int) -> list[int]:
        cuts = sorted(self.r.sample(range(1, n), min(n - 1, self.r.randrange(most)))) if n > 1 else []
        return [b - a for a, b in zip([0, *cuts], [*cuts, n], strict=True)]

    async def add(self, q: int, data: bytes = b"", *writable: int, tell: bool = True) -> Chain:
        parts, at = [], 0
        for n in self.pieces(len(data), 3) if data else []:
            addr = self.host.alloc(n)
            self.mem.mem[addr : addr + n] = data[at : at + n]
            parts.append((False, addr, n))
            at += n
        parts += [(True, self.host.alloc(n), n) for n in writable]
        queue = self.queues[q]
        chain = Chain(parts)
        queue.add(chain, self.rings.indirect and len(parts) > 1)
        queue.publish()
        if tell:
            await self.tell(q)
        return chain

    async def tell(self, q: int) -> None:
        note = self.queues[q].notification()
        if note is not None:
            if self.rings.notif_data:
                await self.write(0x3000 + 4 * q, (note & 0xFFFF) << 16 | q)
            else:
                await self.write(0x3000 + 4 * q, q, 2)

    async def used(self, *chains: Chain, limit: int = 8000) -> list[bytes]:
        await until(self.dut, lambda: all(c.used is not None for c in chains), limit, "used buffers")
        out = [self.host.gather(c, True)[: c.used] for c in chains]
        for q in self.queues.values():
            while q.reap():
                pass
        return out

    # ------------------------------------------------------------ the user side
    def rx(self, data: bytes, ident: int = 0) -> None:
        for at in range(0, len(data), 64):
            part = data[at : at + 64]
            head = (ident << 1 | (at + 64 >= len(data))) << 64 | (1 << len(part)) - 1
            self.rx_beats.append(head << 512 | int.from_bytes(part, "little"))

    async def _user(self) -> None:
        d, edge = self.dut, RisingEdge(self.dut.clk_i)
        tx_up = rx_up = False
        now = bytearray()
        while True:
            await edge
            if tx_up and d.tx_valid.value == 1:
                v = int(d.tx.value)
                if self.passes:
                    self.rx_beats.append(v)
                now += (v & (1 << 512) - 1).to_bytes(64, "little")[: (v >> 512 & (1 << 64) - 1).bit_count()]
                if v >> 576 & 1:
                    self.tx.append((v >> 577, bytes(now)))
                    if self.echo:
                        self.rx(bytes(now), v >> 577)
                    now.clear()
            tx_up = not next(self._stall[0])
            d.tx_ready.value = tx_up
            if rx_up and d.rx_ready.value == 1:
                self.rx_beats.popleft()
                rx_up = False
            if not rx_up and self.rx_beats and not next(self._stall[1]):
                d.rx.value = self.rx_beats[0]
                rx_up = True
            d.rx_valid.value = rx_up
            if d.core_rst_n.value == 0:
                now.clear()

    async def _interrupts(self) -> None:
        while True:
            await RisingEdge(self.dut.clk_i)
            if self.dut.msix_valid.value == 1:
                self.vectors.append(int(self.dut.msix_vector.value))


# ---------------------------------------------------------------- blk


def hdr(kind: int, sector: int) -> bytes:
    return struct.pack("<IIQ", kind, 0, sector)


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def blk_reads_and_writes(dut):
    for rings in RINGS_TRIED:
        b = Driver(dut)
        await b.begin(Ctrl(kind=NONE, sectors=256, base=0x10000))
        await b.setup(1 << 9 | 1 << 12, rings, dict.fromkeys(range(4), 32))
        model = bytearray(b.disk.mem[0x10000 : 0x10000 + 256 * 512])
        for _ in range(12):
            work = []
            for place in b.r.sample(range(16), 5):
                q, n = b.r.randrange(4), b.r.randrange(1, 9)
                here = slice(place * 8192, place * 8192 + 512 * n)
                if b.r.random() < 0.5:
                    data = b.r.randbytes(512 * n)
                    model[here] = data
                    work.append((await b.add(q, hdr(1, place * 16) + data, 1), b"\0"))
                else:
                    work.append(
                        (
                            await b.add(q, hdr(0, place * 16), *b.pieces(512 * n, 3), 1),
                            bytes(model[here]) + b"\0",
                        )
                    )
            got = await b.used(*(c for c, _ in work))
            assert got == [w for _, w in work]
        # The guest's mistakes: an error each, or the queue's end.
        got = await b.used(
            await b.add(0, hdr(0, 256), 512, 1), await b.add(1, b"xx", 1), await b.add(2, hdr(77, 0), 3)
        )
        assert got == [bytes(512) + b"\1", b"\1", b"\0\0\2"]
        assert await b.read(0x14, 1) == 15
        b.vectors.clear()
        await b.add(3, hdr(0, 0))
        await until(dut, lambda: int(dut.status.value) & 0x40, 3000, "DEVICE_NEEDS_RESET")
        await until(dut, lambda: 0 in b.vectors, 100, "configuration interrupt")  # noqa: B023
        # Reset under way, and all is well again.
        for _ in range(4):
            await b.setup(1 << 9, rings, {0: 16})
            chains = [await b.add(0, hdr(0, 8 * i), 4096, 1) for i in range(3)]
            await ClockCycles(dut.clk_i, b.r.randrange(150))
        await b.setup(1 << 9, rings, {0: 16})
        chains = [await b.add(0, hdr(0, 8 * i), 4096, 1) for i in range(3)]
        assert await b.used(*chains) == [bytes(model[4096 * i :][:4096]) + b"\0" for i in range(3)]
        b.end()


# ---------------------------------------------------------------- net


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def net_echo_and_control(dut):
    for rings in RINGS_TRIED:
        for features in (1 << 15 | 1 << 17 | 1 << 18 | 1 << 22 | 1 << 40 | 1, 1 << 17 | 1 << 18):
            b = Driver(dut)
            await b.begin(Ctrl(kind=BOARD))
            mq, mrg = features >> 22 & 1, features >> 15 & 1
            control = 8 if mq else 2
            await b.setup(features, rings, {0: 64, 1: 64, control: 16})
            b.echo = True
            assert await b.used(await b.add(control, b"\0\0\0", 1)) == [b"\0"]
            assert await b.used(await b.add(control, b"\4\0\1\0", 1)) == [b"\0" if mq else b"\1"]
            own = bytes.fromhex("52540012ab34")
            assert await b.used(await b.add(control, b"\0\0", 1)) == [b"\1"]
            for rnd in range(4):
                frames = [own + b.r.randbytes(b.r.choice((8, 54, 58, 300, 1500))) for _ in range(8)]
                buffers = [await b.add(0, b"", 700, 1100) for _ in range(8 + 2 * mrg)]
                sent = [await b.add(1, bytes(12) + f, tell=i % 2 == 1) for i, f in enumerate(frames)]
                await b.tell(1)
                await b.used(*sent)
                await until(dut, lambda: sum(c.used is not None for c in buffers) >= 8, 8000, "frames")  # noqa: B023
                got = [b.host.gather(c, True)[: c.used] for c in buffers if c.used is not None]
                assert [x[12:] for x in got] == frames, f"round {rnd}"
                assert all(x[:12] == bytes(10) + b"\1\0" for x in got)
                for q in b.queues.values():
                    while q.reap():
                        pass
                if mrg:  # what is left over
                    await b.setup(features, rings, {0: 64, 1: 64, control: 16})
                    assert await b.used(await b.add(control, b"\0\0\0", 1)) == [b"\0"]
            if mrg:
                # One frame over several buffers.
                buffers = [await b.add(0, b"", 400) for _ in range(5)]
                await b.add(1, bytes(12) + own + bytes(range(256)) * 5)
                await until(dut, lambda: sum(c.used is not None for c in buffers) == 4, 8000, "frames")  # noqa: B023
                whole = b"".join(b.host.gather(c, True)[: c.used] for c in buffers[:4])
                assert whole == bytes(10) + b"\4\0" + own + bytes(range(256)) * 5
                # The receive queue is reset: frames are dropped, nothing waits for it.
                await b.write(0x16, 0, 2)
                await b.write(0x3A, 1, 2)
                while await b.read(0x3A, 2):
                    pass
                b.queues.pop(0).drop()
                before = await b.read(0x2044)
                await b.used(*[await b.add(1, bytes(12) + own + bytes(54)) for _ in range(20)])
                await until(dut, lambda: len(b.rx_beats) == 0, 4000)  # noqa: B023
                await ClockCycles(dut.clk_i, 50)
                assert await b.read(0x2044) == before + 20
            b.end()


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def time_of_the_user_side(dut):
    """What passes each beat on takes its delay, however long the message is."""
    own = bytes.fromhex("52540012ab34")
    b = Driver(dut, stall=0)
    await b.begin(Ctrl(kind=BOARD))
    await b.setup(1 << 15, RINGS_TRIED[0], {0: 16, 1: 16})
    b.passes = True
    took = []
    for n in (30, 54, 150, 600, 1400):
        buffer = await b.add(0, b"", 1600)
        await ClockCycles(dut.clk_i, 400)  # the engine is idle then
        await b.write(STAT, 0)
        await b.used(await b.add(1, bytes(12) + own + b.r.randbytes(n)), buffer)
        await ClockCycles(dut.clk_i, 400)
        assert await b.read(STAT + 4 * 88) == 1
        took.append(await b.read(STAT + 4 * 89))
    assert took[0] > 0 and len(set(took)) == 1, took
    b.end()


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def the_answer_is_timed_and_not_the_sent_buffer(dut):
    """A trace of a message that was sent ends with the interrupt for the response, though there was one for the sent buffer."""
    b = Driver(dut, stall=0)
    await b.begin(Ctrl(kind=BOARD))
    await b.setup(1 << 15, RINGS_TRIED[0], {0: 16, 1: 16})
    buffer = await b.add(0, b"", 1600)
    await ClockCycles(dut.clk_i, 400)
    await b.write(STAT, 0)
    await b.used(await b.add(1, bytes(12) + bytes.fromhex("52540012ab34") + b.r.randbytes(54)))
    await ClockCycles(dut.clk_i, 300)
    assert len(b.vectors) == 1 and len(b.tx) == 1
    b.rx(b.tx[0][1])
    await b.used(buffer)
    await ClockCycles(dut.clk_i, 400)
    assert len(b.vectors) == 2 and await b.read(STAT + 4 * 44) == 0x1F
    spans = []
    for stage in range(5):
        count, least = [await b.read(STAT + 4 * (48 + 8 * stage + i)) for i in (0, 1)]
        assert count == 1, (stage, count)
        spans.append(least)
    assert spans[2] > 300 and spans[3] + spans[4] < 200, spans
    b.end()


# ---------------------------------------------------------------- console, entropy, input


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def console_talks(dut):
    for rings in RINGS_TRIED:
        b = Driver(dut)
        await b.begin(Ctrl(kind=BOARD))
        # An emergency: no driver yet.
        await b.reset()
        await b.write(0x2008, ord("!"), 1)
        await until(dut, lambda: b.tx == [(0, b"!")], 100, "the emergency write")  # noqa: B023
        await b.setup(0b10, rings, dict.fromkeys(range(6), 16))
        heard = [await b.add(2, b"", 64) for _ in range(8)]
        await b.used(await b.add(3, struct.pack("<IHH", 0, 0, 1)), *heard[:2])
        await b.used(await b.add(3, struct.pack("<IHH", 0, 3, 1)), *heard[2:5])
        assert [b.host.gather(c, True)[: c.used][4] for c in heard[:5]] == [1, 1, 4, 7, 6]
        await b.used(await b.add(3, struct.pack("<IHH", 0, 6, 1)))
        b.echo = True
        for text in (b"x", b.r.randbytes(300)):
            # What has come is answered at once: each beat may take a buffer of its own.
            back = [await b.add(0, b"", 200) for _ in range(-(-len(text) // 64))]
            await b.used(await b.add(1, text), back[0])
            await until(dut, lambda: sum(c.used or 0 for c in back) == len(text), 3000)  # noqa: B023
            assert b"".join(b.host.gather(c, True)[: c.used] for c in back if c.used) == text
            await b.setup(0b00, rings, {0: 16, 1: 16})
        b.end()


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def buffers_wait_for_bytes(dut):
    for rings in RINGS_TRIED:
        b = Driver(dut)
        await b.begin(Ctrl(kind=BOARD))
        await b.setup(0, rings, {0: 16})
        chains = [await b.add(0, b"", 8) for _ in range(8)]
        await until(dut, lambda: dut.still_o.value == 1, 1000, "rest")
        assert all(c.used is None for c in chains)
        data = b.r.randbytes(64)
        b.rx(data)
        assert b"".join(await b.used(*chains)) == data
        await until(dut, lambda: 1 in b.vectors, 1000, "interrupt")  # noqa: B023
        b.end()


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def buffers_put_back_without_a_notification(dut):
    """As boot loaders do: the first ones are told, those put back are not."""
    net = int(dut.Fn.value) == FN["net"]
    own = bytes.fromhex("52540012ab34")
    for rings in RINGS_TRIED:
        # With mergeable buffers, and without.
        for features in (1 << 15, 0) if net else (0,):
            b = Driver(dut)
            await b.begin(Ctrl(kind=BOARD, look_period=100, look_count=10))
            await b.setup(features, rings, {0: 16, 1: 16} if net else dict.fromkeys(range(2), 16))
            size = 1600 if net else 40

            def message(n: int) -> bytes:
                return own + b.r.randbytes(n - 6) if net else b.r.randbytes(n)  # noqa: B023

            chains = [await b.add(0, b"", size, tell=False) for _ in range(4)]
            await b.tell(0)
            await until(dut, lambda: dut.still_o.value == 1, 1000, "rest")
            for _ in range(4):
                # More than there are buffers for: the rest waits, and nothing is lost.
                sent = [message(b.r.randrange(20, 40)) for _ in range(7)]
                for x in sent:
                    b.rx(x)
                got = []
                while len(got) < len(sent):
                    now = chains[: len(sent) - len(got)]
                    await b.used(*now, limit=4000)
                    got += [b.host.gather(c, True)[: c.used] for c in now]
                    chains = chains[len(now) :]
                    chains += [await b.add(0, b"", size, tell=False) for _ in now]
                assert [x[12 if net else 0 :] for x in got] == sent
            b.end()


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def a_driver_finds_its_data_however_late_it_comes(dut):
    """More has come than the device holds, nothing comes any more, and the driver puts buffers back long afterwards and silently."""
    net = int(dut.Fn.value) == FN["net"]
    own = bytes.fromhex("52540012ab34")
    for rings in RINGS_TRIED:
        for n in (3, 40):
            b = Driver(dut)
            await b.begin(Ctrl(kind=BOARD, look_period=100, look_count=0))
            await b.setup(0, rings, {0: 16, 1: 16} if net else dict.fromkeys(range(2), 16))
            chains = [await b.add(0, b"", 1600 if net else 40) for _ in range(2)]
            sent = [(own if net else b"") + b.r.randbytes(30) for _ in range(n)]
            for x in sent:
                b.rx(x)
            await b.used(*chains)
            await ClockCycles(dut.clk_i, 6000 if n > 3 else 12000)
            late = [await b.add(0, b"", 1600 if net else 40, tell=False) for _ in range(4 if n > 3 else 1)]
            got = await b.used(*chains, *late)
            assert [x[12 if net else 0 :] for x in got] == sent[: len(got)]
            b.end()


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def nothing_is_looked_for_while_there_are_buffers(dut):
    """The same reads of host memory whether the device may look or not."""
    own = bytes.fromhex("52540012ab34")
    for rings in RINGS_TRIED:
        counts = []
        for period in (0, 10):
            b = Driver(dut, stall=0)
            await b.begin(Ctrl(kind=BOARD, look_period=period, look_count=0))
            await b.setup(0, rings, {0: 16, 1: 16})
            chains = [await b.add(0, b"", 1600) for _ in range(12)]
            await until(dut, lambda: dut.still_o.value == 1, 1000, "rest")
            before = len(b.mem.reads)
            for chain in chains[:8]:
                b.rx(own + bytes(40))
                await b.used(chain)
            await ClockCycles(dut.clk_i, 500)
            counts.append(len(b.mem.reads) - before)
            b.end()
        assert counts[0] == counts[1], counts


# The others are driven by a guest's drivers in the short form, too (tests/test_vm_functions.py).
SHORT = ("net",)


@pytest.mark.parametrize(
    "name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in FN]
)
def test_via_virtio_fn(name):
    run(
        "via_virtio_fn_tb",
        __file__,
        parameters={"Fn": FN[name]},
        sources=["rtl/virtio/via_virtio_pkg.sv", "rtl/vdev/via_vdev_pkg.sv"],
        cxx_opt="-O0",
        testcase={
            "net": [
                "net_echo_and_control",
                "time_of_the_user_side",
                "buffers_put_back_without_a_notification",
                "a_driver_finds_its_data_however_late_it_comes",
                "nothing_is_looked_for_while_there_are_buffers",
            ],
            "blk": ["blk_reads_and_writes"],
            "console": [
                "console_talks",
                "buffers_put_back_without_a_notification",
                "a_driver_finds_its_data_however_late_it_comes",
            ],
            "entropy": ["buffers_wait_for_bytes"],
            "input": ["buffers_wait_for_bytes"],
        }[name],
    )
