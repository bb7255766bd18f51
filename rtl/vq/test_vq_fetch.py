# SPDX-License-Identifier: Apache-2.0
# Conditions are waited for within the round that makes them.
# ruff: noqa: B023
"""via_vq_fetch: finds exactly the chains a driver made available, in order, on every kind of ring; hostile drivers hurt their queue only.

The driver here is independent of the RTL: it lays out rings as the specification says, with other timing each run, and reads nothing back but
avail_event. Memory answers late, and with what lay there at some moment between request and response.
"""

from collections import deque
from dataclasses import dataclass, field

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from via_tb import cycle, rng, run, stalls, start, until

NEXT, WRITE, INDIRECT, AVAIL, USED = 1, 2, 4, 1 << 7, 1 << 15
STORE = 256
ERR = {
    name: i
    for i, name in enumerate(
        (
            "None",
            "Index",
            "Head",
            "Loop",
            "Indirect",
            "Order",
            "Len",
            "Read",
            "Write",
            "Payload",
            "Request",
            "Align",
        )
    )
}


@dataclass(frozen=True)
class Feat:
    event: bool = False
    indirect: bool = False
    packed: bool = False
    order: bool = False
    notif: bool = False

    @property
    def bits(self) -> int:
        return self.event << 4 | self.indirect << 3 | self.packed << 2 | self.order << 1 | self.notif


class Memory:
    """Pages that are there respond, others fail."""

    def __init__(self) -> None:
        self.pages: dict[int, bytearray] = {}

    def map(self, addr: int, size: int) -> None:
        for page in range(addr >> 12, (addr + size - 1 >> 12) + 1):
            self.pages.setdefault(page, bytearray(4096))

    def write(self, addr: int, data: bytes) -> None:
        for i, byte in enumerate(data):
            self.pages[addr + i >> 12][addr + i & 0xFFF] = byte

    def read(self, addr: int, size: int) -> bytes:
        return bytes(self.pages[addr + i >> 12][addr + i & 0xFFF] for i in range(size))

    def line(self, addr: int) -> bytes | None:
        page = self.pages.get(addr >> 12)
        return None if page is None else bytes(page[addr & 0xFFF : (addr & 0xFFF) + 64])


@dataclass
class Chain:
    """What the driver asked for: buffers (write, len, addr), in the end also where they lie."""

    bufs: list[tuple[int, int, int]]
    table: int  # so many of the last buffers go into an indirect table; 0: none
    ident: int = 0
    slots: int = 0
    index: int = 0  # in the order of the queue

    @property
    def rlen(self) -> int:
        return min(sum(n for w, n, _ in self.bufs if not w), 0xFFFFFFFF)

    @property
    def wlen(self) -> int:
        return min(sum(n for w, n, _ in self.bufs if w), 0xFFFFFFFF)


@dataclass
class Queue:
    """A queue and its driver."""

    bench: "Bench"
    index: int
    size: int
    base: int  # 1 MiB of addresses
    feat: Feat
    jitter: float = 0.3
    shift: int = 0  # displaces ring and table
    crooked: float = 0.2  # indirect tables not in order
    open: deque[Chain] = field(default_factory=deque)  # made available, not yet answered
    jobs: deque[Chain] = field(default_factory=deque)  # likewise, not yet given out
    found: int = 0
    made: int = 0

    def __post_init__(self) -> None:
        r, s = self.bench.r, self.shift
        self.desc = self.base + 0x100 + 16 * (s % 4)
        self.driver = self.base + 0x2000 + (4 if self.feat.packed else 2) * (s % 61)
        self.device = self.base + 0x3000 + 4 * (s % 31)
        self.tables = self.base + 0x8000
        self.bench.mem.map(self.base, 0x40000)
        self.bench.mem.write(self.base, bytes(0x8000))
        self.free = list(range(self.size))
        if r.random() < 0.7:
            r.shuffle(self.free)
        self.room = self.size
        self.idx = self.told = 0  # available index; the one of the last look at avail_event
        self.pos, self.wrap = 0, 1
        self.serial = 0
        self.table_at = 0
        self.spans: dict[int, list[int]] = {}

    def config(self, enable: bool = True) -> None:
        value = enable << 208 | self.size << 192 | self.desc << 128 | self.driver << 64 | self.device
        self.bench.dut.cfg[self.index].value = value

    # ------------------------------------------------------------ memory
    def put(self, addr: int, value: int, size: int) -> None:
        self.bench.mem.write(addr, value.to_bytes(size, "little"))

    def put_desc(self, at: int, buf: tuple[int, int, int], flags: int, nxt: int) -> None:
        w, n, a = buf
        self.put(at, a | n << 64 | (flags | (WRITE if w else 0)) << 96 | nxt << 112, 16)

    def put_packed(self, at: int, buf: tuple[int, int, int], flags: int, ident: int) -> None:
        w, n, a = buf
        self.put(at, a | n << 64 | ident << 96 | (flags | (WRITE if w else 0)) << 112, 16)

    async def pause(self, p: float | None = None) -> None:
        if self.bench.r.random() < (self.jitter if p is None else p):
            await ClockCycles(self.bench.dut.clk_i, self.bench.r.choice((1, 1, 2, 5, 20, 60)))

    # ------------------------------------------------------------ add
    def slots_of(self, chain: Chain) -> int:
        return len(chain.bufs) - chain.table + (chain.table > 0)

    def fits(self, chain: Chain) -> bool:
        return self.slots_of(chain) <= self.room

    def make_table(self, chain: Chain) -> tuple[int, int, int]:
        """Writes the indirect table and returns the buffer that refers to it."""
        r, bufs = self.bench.r, chain.bufs[len(chain.bufs) - chain.table :]
        room = len(bufs)
        straight = self.feat.packed or r.random() > self.crooked
        if not straight:
            room = min(256, room + r.randrange(4))
        if self.table_at + room * 16 > 0x30000:
            self.table_at = 0
        at = self.tables + self.table_at
        self.table_at += room * 16 + 16 * r.randrange(5)
        if self.feat.packed:
            for i, buf in enumerate(bufs):
                self.put_packed(at + 16 * i, buf, r.choice((0, 0, NEXT, AVAIL, USED)), r.getrandbits(16))
            return r.randrange(2), 16 * room, at
        order = [0, *r.sample(range(1, room), len(bufs) - 1)] if not straight else list(range(len(bufs)))
        for i, buf in enumerate(bufs):
            more = i + 1 < len(bufs)
            self.put_desc(
                at + 16 * order[i], buf, NEXT if more else 0, order[i + 1] if more else r.getrandbits(16)
            )
        # WRITE of the reference means nothing.
        return r.randrange(2), 16 * room, at

    async def add(self, chain: Chain) -> None:
        r = self.bench.r
        direct = chain.bufs[: len(chain.bufs) - chain.table]
        ref = self.make_table(chain) if chain.table else None
        n = len(direct) + (ref is not None)
        bufs = [*direct, *([ref] if ref else [])]
        flags = [NEXT] * (n - 1) + [INDIRECT if ref else 0]
        chain.slots, chain.index = n, self.made
        self.made += 1
        self.room -= n
        if self.feat.packed:
            chain.ident = r.getrandbits(16)
            start, wrap = self.pos, self.wrap
            places = []
            for _ in range(n):
                places.append((self.pos, self.wrap))
                self.pos += 1
                if self.pos == self.size:
                    self.pos, self.wrap = 0, 1 - self.wrap
            order = list(range(1, n))
            r.shuffle(order)
            bits = [flags[i] | (AVAIL if w else USED) for i, (_, w) in enumerate(places)]
            for i in order:
                await self.pause(self.jitter / 2)
                at = self.desc + 16 * places[i][0]
                # The flags may be seen before the rest.
                self.put(at + 14, bits[i] | (WRITE if bufs[i][0] else 0), 2)
                await self.pause(self.jitter / 2)
                self.put_packed(at, bufs[i], bits[i], chain.ident if i == n - 1 else r.getrandbits(16))
            at = self.desc + 16 * start
            w, length, a = bufs[0]
            self.put(at, a | length << 64 | (chain.ident if n == 1 else r.getrandbits(16)) << 96, 14)
            await self.pause()
            self.publish(chain)
            self.put(at + 14, bits[0] | (WRITE if w else 0), 2)
            assert wrap in (0, 1)
            return
        if self.feat.order:
            places = [(self.pos + i) % self.size for i in range(n)]
            self.pos = (self.pos + n) % self.size
        else:
            places = [self.free.pop(0) for _ in range(n)]
        for i, at in enumerate(places):
            nxt = places[i + 1] if i + 1 < n else r.getrandbits(16)
            self.put_desc(self.desc + 16 * at, bufs[i], flags[i], nxt)
        await self.pause()
        chain.ident = places[0]
        self.spans[chain.index] = places
        # In order the ring is not read; what it says does not matter.
        entry = r.getrandbits(16) if self.feat.order else places[0]
        self.put(self.driver + 4 + 2 * (self.idx % self.size), entry, 2)
        await self.pause()
        self.publish(chain)
        self.idx = self.idx + 1 & 0xFFFF

    def publish(self, chain: Chain) -> None:
        self.open.append(chain)
        self.jobs.append(chain)

    def show(self) -> None:
        if not self.feat.packed:
            self.put(self.driver + 2, self.idx, 2)

    def kick(self) -> None:
        if self.feat.event and not self.feat.packed:
            event = int.from_bytes(self.bench.mem.read(self.device + 4 + 8 * self.size, 2), "little")
            new, old = self.idx, self.told
            self.told = new
            if not ((new - event - 1) & 0xFFFF) < ((new - old) & 0xFFFF):
                return
        self.bench.notify(self)

    def release(self, chain: Chain) -> None:
        self.room += chain.slots
        if not self.feat.packed:
            self.free += self.spans.pop(chain.index)

    # ------------------------------------------------------------ traffic
    def some(self, most: int = 6) -> Chain:
        r = self.bench.r
        n = min(r.choice((1, 1, 1, 2, 3, r.randint(1, most))), self.size)
        writes = r.randint(0, n)
        bufs = [
            (int(i >= n - writes), r.choice((1, 16, 64, 4096, r.randint(1, 1 << 20))), r.getrandbits(63))
            for i in range(n)
        ]
        table = 0
        if self.feat.indirect and r.random() < 0.6:
            table = n if self.feat.packed or r.random() < 0.8 else r.randint(1, n)
        return Chain(bufs, table)

    async def drive(self, count: int, most: int = 6, batch: int = 8) -> None:
        r = self.bench.r
        while count:
            added = 0
            for _ in range(r.randint(1, min(batch, count))):
                chain = self.some(most)
                while not self.fits(chain):
                    if added:
                        break
                    await RisingEdge(self.bench.dut.clk_i)
                if not self.fits(chain):
                    break
                await self.add(chain)
                added += 1
                if r.random() < 0.3:
                    self.show()
            self.show()
            await self.pause(0.2)
            self.kick()
            count -= added
            await self.pause()

    def notification(self) -> int:
        data = self.pos | self.wrap << 15 if self.feat.packed else self.idx
        return self.index << 16 | data


class Bench:
    def __init__(
        self,
        dut,
        feat: Feat,
        size: int = 16,
        latency: tuple[int, int] = (4, 30),
        stall: float = 0.2,
        read: float = 0.7,
    ) -> None:
        self.dut, self.r, self.feat = dut, rng(), feat
        self.mem = Memory()
        self.nq, self.nrd = len(dut.cfg), len(dut.ar_addr)
        self.latency, self.stall = latency, stall
        self.read = read  # how often descriptors are looked at
        self.response = 0.3  # how eager chains are answered
        self.queues = [
            Queue(
                self, q, size, (q + 1) << 20 | self.r.getrandbits(20) << 32, feat, shift=self.r.randrange(61)
            )
            for q in range(self.nq)
        ]
        self.errors: list[tuple[int, int]] = []
        self.heads: list[int] = []  # cycles
        self.near = 0  # jobs that came with their descriptor
        self.rung = 0
        self.reads = [0] * self.nrd
        self.counts = dict.fromkeys(("idx", "ring", "desc", "table", "event"), 0)
        self._bell: deque[int] = deque()
        self.hold: set[int] = set()  # queues that are not answered
        self.garbage: set[int] = set()  # whose jobs are not looked at

    def notify(self, queue: Queue) -> None:
        self._bell.append(queue.notification())

    async def begin(self, ok: bool = True) -> None:
        d = self.dut
        for name in (
            "notify_valid",
            "notify",
            "job_ready",
            "head_pop",
            "a_re",
            "b_re",
            "ar_ready",
            "r_valid",
            "ev_ready",
            "queue_reset",
            "stop",
        ):
            getattr(d, name).value = 0
        d.feat.value, d.driver_ok.value = self.feat.bits, ok
        for i in range(self.nq):
            d.cfg[i].value = 0
        await start(d)
        for queue in self.queues:
            queue.config()
        self.tasks = [cocotb.start_soon(self._memory()), cocotb.start_soon(self._edge())]
        self.tasks += [cocotb.start_soon(self._look("a")), cocotb.start_soon(self._look("b"))]
        self.looks: dict[str, deque] = {"a": deque(), "b": deque()}
        await ClockCycles(d.clk_i, 2)

    def end(self) -> None:
        for task in self.tasks:
            task.cancel()

    # ------------------------------------------------------------ memory model
    async def _memory(self) -> None:
        d, r = self.dut, self.r
        edge = RisingEdge(d.clk_i)
        queues: list[deque] = [deque() for _ in range(self.nrd)]
        ready = valid = 0
        holds = [stalls(r, self.stall) for _ in range(2 * self.nrd)]
        now = 0
        while True:
            await edge
            now += 1
            asked = int(d.ar_valid.value) & ready
            done = valid
            valid = 0
            ready = 0
            for i, queue in enumerate(queues):
                if asked >> i & 1:
                    addr, beats = int(d.ar_addr[i].value), int(d.ar_len[i].value) + 1
                    assert addr % 64 == 0 and beats <= 8
                    assert addr >> 12 == addr + 64 * beats - 1 >> 12, f"{addr:#x}+{beats} crosses 4 KiB"
                    self.reads[i] += 1
                    due = now + r.randint(*self.latency)
                    early = r.random() < 0.5
                    for k in range(beats):
                        at = addr + 64 * k
                        queue.append([due, at, self.mem.line(at) if early else None, early, k == beats - 1])
                if done >> i & 1:
                    queue.popleft()
                if queue and queue[0][0] <= now + 1 and not (self.stall and next(holds[i])):
                    _, at, data, early, last = queue[0]
                    data = data if early else self.mem.line(at)
                    d.r_data[i].value = int.from_bytes(data or b"", "little")
                    mask = 1 << i
                    self._r_err = getattr(self, "_r_err", 0) & ~mask | (mask if data is None else 0)
                    self._r_last = getattr(self, "_r_last", 0) & ~mask | (mask if last else 0)
                    valid |= mask
                if not (self.stall and next(holds[self.nrd + i])):
                    ready |= 1 << i
            d.r_valid.value, d.ar_ready.value = valid, ready
            d.r_err.value, d.r_last.value = getattr(self, "_r_err", 0), getattr(self, "_r_last", 0)

    # ------------------------------------------------------------ the other half of the engine
    def check(self, queue: Queue, raw: int, chain: Chain) -> int:
        """Compares and returns the index of the first descriptor."""
        wlen, raw = raw & 0xFFFFFFFF, raw >> 32
        rlen, raw = raw & 0xFFFFFFFF, raw >> 32
        nwrite, raw = raw & 0x1FF, raw >> 9
        nread, raw = raw & 0x1FF, raw >> 9
        first, raw = raw & 0xFF, raw >> 8
        slots, ident = raw & 0xFFFF, raw >> 16
        writes = sum(w for w, _, _ in chain.bufs)
        got = (ident, slots, nread, nwrite, rlen, wlen)
        want = (
            chain.ident,
            chain.slots if self.feat.packed else 1,
            len(chain.bufs) - writes,
            writes,
            chain.rlen,
            chain.wlen,
        )
        assert got == want, f"queue {queue.index} chain {chain.index}: found {got}, not {want}"
        return first

    async def _look(self, port: str) -> None:
        """Reads descriptors and compares."""
        d = self.dut
        re, queue_i, index_i, desc = (getattr(d, f"{port}_{n}") for n in ("re", "queue", "index", "desc"))
        edge = RisingEdge(d.clk_i)
        expect = None
        late = None
        while True:
            await edge
            if late is not None:
                assert int(desc.value) == late[0], (
                    f"descriptor {late[1]}: {int(desc.value):#x}, not {late[0]:#x}"
                )
            late, expect = expect, None
            looks = self.looks[port]
            if looks:
                q, index, want, after = looks.popleft()
                queue_i.value, index_i.value = q, index
                expect = (want, (q, index))
                if after:
                    after()
            re.value = expect is not None

    def look(self, port: str, queue: Queue, first: int, chain: Chain, after=None) -> None:
        n = len(chain.bufs)
        for i, (w, length, addr) in enumerate(chain.bufs):
            want = w << 97 | (i == n - 1) << 96 | length << 64 | addr
            self.looks[port].append((queue.index, first + i & 0xFF, want, after if i == n - 1 else None))

    async def _edge(self) -> None:
        d, r = self.dut, self.r
        edge = RisingEdge(d.clk_i)
        job_ready = ev_ready = pop = 0
        busy: set[int] = set()
        given = [0] * self.nq
        while True:
            await edge
            for name in self.counts:
                self.counts[name] += int(getattr(d, f"cnt_{name}").value)
            if int(d.err_valid.value):
                self.errors.append((int(d.err_queue.value), int(d.err.value)))
            if job_ready and int(d.job_valid.value):
                queue = self.queues[int(d.job_queue.value)]
                assert queue.index != 0
                if queue.index not in self.garbage:
                    assert queue.jobs, f"job of queue {queue.index} from nowhere"
                    chain = queue.jobs.popleft()
                    first = self.check(queue, int(d.job.value), chain)
                    self.heads.append(cycle())
                    if int(d.job_near.value):
                        self.near += 1
                        [(writable, length, addr)] = chain.bufs
                        assert not writable and int(d.job_desc.value) == 1 << 96 | length << 64 | addr
                    if r.random() < self.read:
                        self.look("a", queue, first, chain)
            if ev_ready and int(d.ev_valid.value):
                queue = next(q for q in self.queues if q.device + 4 + 8 * q.size == int(d.ev_addr.value))
                queue.put(int(d.ev_addr.value), int(d.ev_data.value), 2)
            there = int(d.head_valid.value) & ~pop
            pop = 0
            for q, queue in enumerate(self.queues):
                if not there >> q & 1 or q in self.hold or r.random() > self.response:
                    continue
                if q in busy:
                    continue
                assert queue.open, f"chain of queue {q} from nowhere"
                chain = queue.open[0]
                if (q and queue.jobs and queue.jobs[0] is chain) or self.looks["a"]:
                    continue
                first = self.check(queue, int(d.head[q].value), chain)
                if r.random() < self.read:
                    busy.add(q)
                    self.look("b", queue, first, chain, lambda q=q: given.__setitem__(q, 1))
                else:
                    given[q] = 1
                    busy.add(q)
            for q, queue in enumerate(self.queues):
                if given[q] and q in busy:
                    busy.discard(q)
                    given[q] = 0
                    if queue.open:
                        chain = queue.open.popleft()
                        queue.release(chain)
                        queue.found += 1
                        pop |= 1 << q
            d.head_pop.value = pop
            job_ready = int(not self.stall or r.random() > self.stall)
            ev_ready = int(not self.stall or r.random() > self.stall)
            d.job_ready.value, d.ev_ready.value = job_ready, ev_ready
            if self._bell and not (self.stall and r.random() < self.stall):
                d.notify.value = self._bell.popleft()
                d.notify_valid.value = 1
                self.rung = self.rung or cycle()
            else:
                d.notify_valid.value = 0


ALL = {
    "split": Feat(),
    "split event": Feat(event=True),
    "split notif": Feat(notif=True),
    "split event notif": Feat(event=True, notif=True),
    "split indirect": Feat(indirect=True, event=True),
    "order": Feat(order=True),
    "order event": Feat(order=True, event=True, indirect=True),
    "order notif": Feat(order=True, notif=True, indirect=True),
    "packed": Feat(packed=True),
    "packed indirect": Feat(packed=True, indirect=True, event=True),
    "packed notif": Feat(packed=True, notif=True),
    "packed order": Feat(packed=True, order=True, indirect=True, notif=True),
}


async def traffic(dut, feat: Feat, count: int = 120, **kw) -> Bench:
    b = Bench(dut, feat, **kw)
    await b.begin()
    tasks = [cocotb.start_soon(queue.drive(count)) for queue in b.queues]
    for task in tasks:
        await task
    await until(
        dut, lambda: all(q.found == count for q in b.queues), 6000, f"{feat}: {[q.found for q in b.queues]}"
    )
    assert not b.errors, b.errors
    await until(dut, lambda: int(dut.idle_o.value) == 1, 600, "idle")
    await ClockCycles(dut.clk_i, 4)
    assert all(int(room.value) == 0 for room in dut.room)
    return b


@cocotb.test(timeout_time=200, timeout_unit="us")
async def chains_are_found_as_built_split(dut):
    for size in (16, 4):
        (await traffic(dut, ALL["split"], size=size)).end()


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def chains_are_found_as_built_everywhere(dut):
    r = rng()
    near = 0
    for name, feat in ALL.items():
        size = r.choice((4, 16, 32)) if not feat.packed else r.choice((3, 7, 16, 21))
        latency = r.choice(((1, 3), (4, 30), (60, 160)))
        dut._log.info(f"{name}, size {size}, latency {latency}")
        b = await traffic(dut, feat, 60, size=size, latency=latency)
        b.end()
        near += b.near
    assert near, "no job came with its descriptor"


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def reading_ahead_ends_after_one_round(dut):
    """Packed: the flags of two rounds ago look like those of this one."""
    (await traffic(dut, ALL["packed"], 200, size=3)).end()


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def what_was_read_too_early_is_read_again(dut):
    """Packed: long reads, a driver that writes chains of several descriptors while lines behind them are read."""
    for size in (64, 24):
        b = Bench(dut, Feat(packed=True), size=size, latency=(100, 140), stall=0.0, read=1.0)
        b.response = 1.0
        await b.begin()
        for queue in b.queues:
            queue.jitter = 0.1
        tasks = [cocotb.start_soon(queue.drive(150, 7, 2)) for queue in b.queues]
        for task in tasks:
            await task
        await until(dut, lambda: all(q.found == 150 for q in b.queues), 6000, "all chains")
        assert not b.errors
        b.end()


async def rate(dut, feat: Feat, make, chains: int, desc: float = 1.0, falling: bool = False) -> float:
    """Cycles a chain with 250 cycles of read latency: as fast as they are found where many are available, with at most `desc` reads of
    descriptors a chain."""
    b = Bench(dut, feat, size=256, latency=(250, 250), stall=0.0, read=0.0)
    b.response = 1.0
    await b.begin()
    queue = b.queues[1]
    queue.jitter = queue.crooked = 0.0
    queue.free = list(range(256))[:: -1 if falling else 1]
    made = 0

    async def feed() -> None:
        nonlocal made
        while made < chains:
            added = 0
            while made < chains and added < 16 and queue.fits(chain := make(made)):
                await queue.add(chain)
                added += 1
                made += 1
            queue.show()
            if added:
                queue.kick()
            await ClockCycles(dut.clk_i, 8)

    task = cocotb.start_soon(feed())
    await until(
        dut, lambda: len(b.heads) == chains or bool(b.errors), 30 * chains + 3000, f"{feat}: too slow"
    )
    await task
    assert not b.errors
    b.end()
    lo, hi = 8, min(chains, 256 // len(make(0).bufs) if not make(0).table else 256) - 8
    result = (b.heads[hi] - b.heads[lo]) / (hi - lo)
    sustained = (b.heads[-1] - b.heads[chains // 3]) / (chains - chains // 3 - 1)
    dut._log.info(
        f"{feat}: {result:.2f} cycles a chain, {sustained:.2f} with a full ring, first after {b.heads[0] - b.rung}, reads {b.counts}"
    )
    assert b.counts["desc"] <= desc * chains, (feat, b.counts)
    return result


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def small_chains_stream_whatever_the_latency(dut):
    def one(i: int) -> Chain:
        return Chain([(0, 64, 0x1000 * (i + 1))], 0)

    def two(i: int) -> Chain:
        return Chain([(0, 12, 0x1000 * (i + 1)), (0, 64, 0x2000)], 0)

    def disk(i: int) -> Chain:
        return Chain([(0, 16, 0x1000 * (i + 1)), (1, 4096, 0x2000), (1, 1, 0x3000)], 3)

    for feat in (
        Feat(),
        Feat(event=True),
        Feat(notif=True),
        Feat(order=True),
        Feat(packed=True),
        Feat(packed=True, notif=True),
    ):
        assert await rate(dut, feat, one, 1000) <= 4.0
    # 256 heads of a split ring that follow each other are 64 lines: with few reads, in either direction.
    for falling in (False, True):
        assert await rate(dut, Feat(), one, 256, desc=24 / 256, falling=falling) <= 4.0
    for feat in (Feat(notif=True), Feat(order=True), Feat(packed=True, notif=True)):
        assert await rate(dut, feat, two, 500) <= 8.0
    for feat in (Feat(indirect=True), Feat(indirect=True, packed=True)):
        assert await rate(dut, feat, disk, 500) <= 8.0


@cocotb.test(timeout_time=1500, timeout_unit="us")
async def a_queue_without_room_waits_alone(dut):
    """Indirect chains may hold more descriptors than the store."""
    for feat in (ALL["split indirect"], ALL["packed order"], ALL["order notif"], ALL["packed indirect"]):
        b = Bench(dut, feat, size=64, latency=(5, 60), read=0.3)
        await b.begin()
        r = b.r
        b.hold = {0, 1}
        for q in (0, 1):
            queue = b.queues[q]
            queue.jitter = 0.02
            for i in range(24):
                n = r.choice((3, 40, 90, 256 if i % 8 == 0 else 17))
                w = r.randint(1, n)
                bufs = [
                    (int(k >= n - w), r.choice((16, 1 << 20, 2**32 // n)), r.getrandbits(62))
                    for k in range(n)
                ]
                chain = Chain(bufs, n)
                await queue.add(chain)
            queue.show()
            queue.kick()
        task = cocotb.start_soon(b.queues[2].drive(60))
        await task
        await until(dut, lambda: b.queues[2].found == 60, 6000, "third queue")
        assert not b.queues[0].found and not b.errors
        assert int(dut.head_valid.value) & 3 == 3
        # As much as fits stands there: the room told is that of a run of whole chains.
        sums, total = [0], 0
        for chain in b.queues[0].open:
            total += min(chain.wlen, 0xFFFFFF)
            sums.append(total)
        assert int(dut.room[0].value) in sums[1:], (int(dut.room[0].value), sums)
        b.hold = set()
        # Tables are read again when both queues lack room: the worst order takes 60,000 cycles.
        await until(dut, lambda: b.queues[0].found == b.queues[1].found == 24, 120000, f"{feat}")
        assert not b.errors
        b.end()


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def a_queue_may_be_reset_at_any_moment(dut):
    for feat in (ALL["split indirect"], ALL["order notif"], ALL["packed indirect"], ALL["packed notif"]):
        b = Bench(dut, feat, size=32, latency=(5, 80))
        await b.begin()
        r = b.r
        others = [cocotb.start_soon(b.queues[2].drive(80))]
        for _ in range(6):
            tasks = [cocotb.start_soon(b.queues[q].drive(1000)) for q in (0, 1)]
            await ClockCycles(dut.clk_i, r.randrange(1, 600))
            for q in (0, 1):
                tasks[q].cancel()
                b.hold.add(q)
            await until(dut, lambda: not b.looks["a"] and not b.looks["b"], 3000, "looks")
            await ClockCycles(dut.clk_i, 3)
            b._bell = deque(n for n in b._bell if n >> 16 == 2)
            await RisingEdge(dut.clk_i)
            dut.queue_reset.value = 3
            await RisingEdge(dut.clk_i)
            await until(dut, lambda: int(dut.quiet.value) & 3 == 3, 3000, "quiet")
            for q in (0, 1):
                old = b.queues[q]
                dut.cfg[q].value = 0
                b.queues[q] = Queue(b, q, r.choice((8, 32)), old.base, feat, shift=r.randrange(61))
            await RisingEdge(dut.clk_i)
            dut.queue_reset.value = 0
            await ClockCycles(dut.clk_i, r.randint(1, 4))
            assert int(dut.head_valid.value) & 3 == 0 and int(dut.room[0].value) == 0
            for q in (0, 1):
                b.queues[q].config()
            await RisingEdge(dut.clk_i)
            b.hold = set()
        for q in (0, 1):
            await b.queues[q].drive(20)
        await others[0]
        want = [20, 20, 80]
        await until(
            dut, lambda: [q.found for q in b.queues] == want, 8000, f"{feat}: {[q.found for q in b.queues]}"
        )
        assert not b.errors
        b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_notification_before_driver_ok_is_kept(dut):
    for feat in (Feat(), Feat(packed=True), Feat(order=True, notif=True), Feat(packed=True, notif=True)):
        b = Bench(dut, feat)
        await b.begin(ok=False)
        q = b.queues[1]
        await q.add(q.some(2))
        q.show()
        q.kick()
        await ClockCycles(dut.clk_i, 100)
        assert b.reads == [0] * b.nrd and not int(dut.head_valid.value)
        dut.driver_ok.value = 1
        await until(dut, lambda: q.found == 1, 500, f"{feat}")
        b.end()


# ---------------------------------------------------------------- hostile drivers


def raw_split(queue: Queue, at: int, addr: int, length: int, flags: int, nxt: int) -> None:
    queue.put(queue.desc + 16 * at, addr | length << 64 | flags << 96 | nxt << 112, 16)


def raw_packed(queue: Queue, at: int, addr: int, length: int, flags: int) -> None:
    queue.put(queue.desc + 16 * at, addr | length << 64 | (flags | AVAIL) << 112, 16)


def offer(queue: Queue, *heads: int) -> None:
    """Makes heads available in an empty split ring, or tells of a packed one."""
    for i, head in enumerate(heads):
        queue.put(queue.driver + 4 + 2 * i, head, 2)
    queue.put(queue.driver + 2, len(heads), 2)
    queue.idx = len(heads)
    queue.pos = min(len(heads), queue.size - 1)


SPLIT, ORDER, TABLES = Feat(), Feat(order=True), Feat(indirect=True)
PACKED, PTABLES = Feat(packed=True), Feat(packed=True, indirect=True)
HOLE = 1 << 50
T = 0x20000  # a table, from the queue's base on


def table(q: Queue, *entries: tuple[int, int, int, int]) -> None:
    """Entries (address, length, flags, next) of a split table, referred to by descriptor 0."""
    for i, (addr, length, flags, nxt) in enumerate(entries):
        q.put(q.base + T + 16 * i, addr | length << 64 | flags << 96 | nxt << 112, 16)
    raw_split(q, 0, q.base + T, 16 * len(entries), INDIRECT, 0)
    offer(q, 0)


def refer(q: Queue, addr: int, length: int, flags: int = INDIRECT) -> None:
    raw_split(q, 0, addr, length, flags, 1)
    offer(q, 0)


def loop(q: Queue) -> None:
    for i in range(q.size):
        raw_split(q, i, 0x1000, 8, NEXT, (i + 1) % q.size)
    offer(q, 3)


def chain_of(q: Queue, *parts: tuple[int, int, int]) -> None:
    """A direct chain of (address, length, flags), on either kind of ring."""
    for i, (addr, length, flags) in enumerate(parts):
        more = NEXT if i + 1 < len(parts) else 0
        if q.feat.packed:
            raw_packed(q, i, addr, length, flags | more)
        else:
            raw_split(q, i, addr, length, flags | more, i + 1)
    offer(q, 0)


def jump(q: Queue, by: int) -> None:
    for i in range(q.size):
        raw_split(q, i, 0x1000, 8, 0, 0)
    q.put(q.driver + 2, by & 0xFFFF, 2)
    q.idx = by & 0xFFFF


def displace(q: Queue, **by: int) -> None:
    chain_of(q, (0x1000, 8, 0))
    for name, n in by.items():
        setattr(q, name, getattr(q, name) + n)
    q.config()


def away(q: Queue, name: str) -> None:
    """Takes the memory below a part of the queue away."""
    at = getattr(q, name)
    setattr(q, name, HOLE + (at & 0xFFF))
    q.config()


def torn(q: Queue) -> None:
    """A table whose second half is not there."""
    at = q.base + 0x40000 - 32
    for i in range(2):
        q.put(at + 16 * i, 0x1000 | 8 << 64 | NEXT << 96 | i + 1 << 112, 16)
    refer(q, at, 64)


HOSTILE = {
    "index ahead by size + 1": (SPLIT, "Index", lambda q: jump(q, q.size + 1)),
    "index behind by more than size": (SPLIT, "Index", lambda q: jump(q, -q.size - 1)),
    "index told ahead by size + 1": (Feat(notif=True), "Index", lambda q: jump(q, q.size + 1)),
    "in order: index ahead": (ORDER, "Index", lambda q: jump(q, 0x4000)),
    "packed: offset told outside": (
        Feat(packed=True, notif=True),
        "Index",
        lambda q: setattr(q, "pos", q.size),
    ),
    "head outside": (SPLIT, "Head", lambda q: offer(q, q.size)),
    "head far outside": (SPLIT, "Head", lambda q: offer(q, 0xFFFF)),
    "next outside": (SPLIT, "Head", lambda q: (raw_split(q, 0, 64, 8, NEXT, q.size), offer(q, 0))),
    "in order: next elsewhere": (ORDER, "Head", lambda q: (raw_split(q, 0, 64, 8, NEXT, 5), offer(q, 0))),
    "loop": (SPLIT, "Loop", loop),
    "loop to itself": (SPLIT, "Loop", lambda q: (raw_split(q, 0, 64, 8, NEXT, 0), offer(q, 0))),
    "in order: once around": (ORDER, "Loop", loop),
    "packed: once around": (PACKED, "Loop", lambda q: [raw_packed(q, i, 64, 8, NEXT) for i in range(q.size)]),
    "table not negotiated": (SPLIT, "Indirect", lambda q: refer(q, q.base + T, 16)),
    "table with next": (TABLES, "Indirect", lambda q: refer(q, q.base + T, 16, INDIRECT | NEXT)),
    "table empty": (TABLES, "Indirect", lambda q: refer(q, q.base + T, 0)),
    "table of 24 bytes": (TABLES, "Indirect", lambda q: refer(q, q.base + T, 24)),
    "table too long": (TABLES, "Indirect", lambda q: refer(q, q.base + T, 16 * 257)),
    "table of 4 GiB": (TABLES, "Indirect", lambda q: refer(q, q.base + T, 0xFFFFFFF0)),
    "table misaligned": (TABLES, "Indirect", lambda q: refer(q, q.base + T + 8, 16)),
    "table around the end": (TABLES, "Indirect", lambda q: refer(q, 2**64 - 16, 32)),
    "table nested": (TABLES, "Indirect", lambda q: table(q, (0x1000, 16, INDIRECT, 0))),
    "table: next outside": (TABLES, "Head", lambda q: table(q, (0x1000, 16, NEXT, 2), (0x2000, 8, 0, 0))),
    "table: loop": (TABLES, "Loop", lambda q: table(q, (0x1000, 16, NEXT, 1), (0x2000, 8, NEXT, 0))),
    "table: loop to itself": (TABLES, "Loop", lambda q: table(q, (0x1000, 16, NEXT, 0), (0x2000, 8, 0, 0))),
    "table: zero length": (TABLES, "Len", lambda q: table(q, (0x1000, 0, 0, 0))),
    "table: readable after writable": (
        TABLES,
        "Order",
        lambda q: table(q, (0, 1, NEXT | WRITE, 1), (0, 1, 0, 0)),
    ),
    "table unmapped": (TABLES, "Read", lambda q: refer(q, HOLE, 64)),
    "table: entry unmapped": (TABLES, "Read", torn),
    "packed: table with next": (
        PTABLES,
        "Indirect",
        lambda q: chain_of(q, (q.base + T, 16, INDIRECT), (64, 8, 0)),
    ),
    "packed: table of 17 bytes": (PTABLES, "Indirect", lambda q: chain_of(q, (q.base + T, 17, INDIRECT))),
    "packed: table of nothing": (PTABLES, "Len", lambda q: chain_of(q, (q.base + T, 16, INDIRECT))),
    "readable after writable": (SPLIT, "Order", lambda q: chain_of(q, (64, 8, WRITE), (64, 8, 0))),
    "packed: readable after writable": (PACKED, "Order", lambda q: chain_of(q, (64, 8, WRITE), (64, 8, 0))),
    "zero length": (SPLIT, "Len", lambda q: chain_of(q, (64, 0, 0))),
    "buffer around the end": (SPLIT, "Len", lambda q: chain_of(q, (2**64 - 64, 65, WRITE))),
    "packed: buffer around the end": (PACKED, "Len", lambda q: chain_of(q, (1, 8, 0), (2**64 - 1, 2, WRITE))),
    "more than 4 GiB": (
        SPLIT,
        "Len",
        lambda q: chain_of(q, (64, 2, 0), (64, 2**32 - 1, WRITE)),
    ),
    "packed: more than 4 GiB": (
        PACKED,
        "Len",
        lambda q: chain_of(q, (64, 2**31, WRITE), (64, 2**31, WRITE), (64, 1, WRITE)),
    ),
    "table: more than 4 GiB": (
        TABLES,
        "Len",
        lambda q: table(q, (64, 2**32 - 1, NEXT, 1), (64, 2**32 - 1, WRITE, 0)),
    ),
    "table of descriptors misaligned": (SPLIT, "Align", lambda q: displace(q, desc=8)),
    "available ring misaligned": (SPLIT, "Align", lambda q: displace(q, driver=1)),
    "used ring misaligned": (SPLIT, "Align", lambda q: displace(q, device=2)),
    "packed: driver area misaligned": (PACKED, "Align", lambda q: displace(q, driver=2)),
    "size is no power of two": (SPLIT, "Align", lambda q: displace(q, size=1)),
    "size too large": (SPLIT, "Align", lambda q: displace(q, size=512 - q.size)),
    "descriptors unmapped": (SPLIT, "Read", lambda q: (chain_of(q, (64, 8, 0)), away(q, "desc"))),
    "available ring unmapped": (SPLIT, "Read", lambda q: (chain_of(q, (64, 8, 0)), away(q, "driver"))),
    "packed ring unmapped": (PACKED, "Read", lambda q: (chain_of(q, (64, 8, 0)), away(q, "desc"))),
}


@cocotb.test(timeout_time=3000, timeout_unit="us")
async def a_hostile_driver_stops_its_queue_only(dut):
    """Each error is told once, with its cause; the queue finds nothing more, the others all of theirs; a reset brings it back."""
    for name, (feat, cause, spoil) in HOSTILE.items():
        b = Bench(dut, feat, size=16, latency=(3, 20), read=0.3)
        b.response = 0.9
        await b.begin()
        bad = b.queues[b.r.randrange(2)]
        spoil(bad)
        task = cocotb.start_soon(b.queues[2].drive(12))
        b.notify(bad)
        await until(dut, lambda: b.errors, 3000, name)
        b.notify(bad)
        await task
        await until(dut, lambda: b.queues[2].found == 12, 3000, f"{name}: the other queue")
        await until(dut, lambda: int(dut.idle_o.value) == 1, 1000, f"{name}: idle")
        assert b.errors == [(bad.index, ERR[cause])], f"{name}: {b.errors}, not {cause}"
        assert not int(dut.head_valid.value) >> bad.index & 1
        # Back again.
        dut.queue_reset.value = 1 << bad.index
        await until(dut, lambda: int(dut.quiet.value) >> bad.index & 1, 1000, f"{name}: quiet")
        dut.cfg[bad.index].value = 0
        await RisingEdge(dut.clk_i)
        dut.queue_reset.value = 0
        b._bell.clear()
        good = b.queues[bad.index] = Queue(b, bad.index, 16, bad.base, feat)
        await RisingEdge(dut.clk_i)
        good.config()
        await RisingEdge(dut.clk_i)
        await good.drive(8)
        await until(dut, lambda: good.found == 8, 3000, f"{name}: after the reset")
        assert len(b.errors) == 1
        b.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def chains_before_the_error_are_found(dut):
    """And an error that others found stops the queue as well."""
    for feat in (SPLIT, PACKED):
        b = Bench(dut, feat, size=16)
        await b.begin()
        q = b.queues[1]
        # As large as a chain may be.
        await q.add(Chain([(0, 2**32 - 1, 64), (1, 1, 64)], 0))
        # Up to the end of the address space, and over 4 GiB.
        await q.add(Chain([(0, 64, 2**64 - 64), (0, 65, 2**32 - 64), (1, 1, 2**64 - 1)], 0))
        for _ in range(2):
            chain = q.some(2)
            await q.add(chain)
        await q.add(Chain([(1, 8, 64), (0, 8, 64)], 0))
        await q.add(q.some(1))
        q.show()
        q.kick()
        q.open.pop(), q.open.pop(), q.jobs.pop(), q.jobs.pop()
        await until(dut, lambda: q.found == 4 and b.errors, 2000, "four chains")
        await ClockCycles(dut.clk_i, 300)
        assert b.errors == [(1, ERR["Order"])] and not int(dut.head_valid.value)
        dut.stop.value = 4
        await RisingEdge(dut.clk_i)
        dut.stop.value = 0
        await b.queues[2].drive(3)
        await ClockCycles(dut.clk_i, 300)
        assert b.errors == [(1, ERR["Order"])] and b.queues[2].found == 0
        b.end()


def spoil(q: Queue) -> None:
    r = q.bench.r
    near = r.choice(
        (q.base + T, q.base + T + 16 * r.randrange(40), q.base + 0x40000 - 64, HOLE, r.getrandbits(64))
    )
    length = r.choice((16, 32, 64, 160, 4096, r.getrandbits(5), 0))
    flags = r.choice((0, NEXT, WRITE, NEXT | WRITE, INDIRECT, r.getrandbits(3))) | r.choice(
        (AVAIL, USED, AVAIL, USED, 0)
    )
    nxt = r.choice((r.randrange(q.size), r.randrange(q.size), r.getrandbits(16) if r.random() < 0.1 else 1))
    if q.feat.packed:
        nxt, flags = flags, nxt
    at = r.choice((q.desc + 16 * r.randrange(q.size), q.base + T + 16 * r.randrange(60)))
    q.put(at, near | length << 64 | flags << 96 | nxt << 112, 16)
    if r.random() < 0.3:
        q.put(q.driver + 4 + 2 * r.randrange(q.size), r.randrange(q.size), 2)
    if r.random() < 0.2:
        q.idx = q.idx + r.randrange(4) & 0xFFFF
        q.pos = r.randrange(q.size)
        q.wrap = r.randrange(2)
        q.put(q.driver + 2, q.idx, 2)


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def garbage_hangs_nothing(dut):
    """Rings and tables of random contents that look almost right, changing while they are read."""
    for name in (
        "split indirect",
        "split event notif",
        "order event",
        "order notif",
        "packed indirect",
        "packed notif",
    ):
        feat = ALL[name]
        b = Bench(dut, feat, size=16, latency=(3, 40), read=0.0)
        b.response = 0.9
        await b.begin()
        r = b.r
        task = cocotb.start_soon(b.queues[2].drive(40))

        b.hold = b.garbage = {0, 1}
        for _ in range(8):
            for q in (0, 1):
                for _ in range(120):
                    spoil(b.queues[q])
            for _ in range(r.randrange(60)):
                for q in (0, 1):
                    spoil(b.queues[q])
                    if r.random() < 0.3:
                        b.notify(b.queues[q])
                await ClockCycles(dut.clk_i, r.randrange(8))
            dut.queue_reset.value = 3
            await RisingEdge(dut.clk_i)
            await until(dut, lambda: int(dut.quiet.value) & 3 == 3, 60000, f"{name}: quiet")
            for q in (0, 1):
                dut.cfg[q].value = 0
            await RisingEdge(dut.clk_i)
            dut.queue_reset.value = 0
            b._bell = deque(n for n in b._bell if n >> 16 == 2)
            for q in (0, 1):
                old = b.queues[q]
                b.queues[q] = Queue(b, q, 16, old.base, feat, shift=r.randrange(61))
                b.queues[q].config()
            await RisingEdge(dut.clk_i)
        await task
        await until(dut, lambda: b.queues[2].found == 40, 60000, f"{name}: the other queue")
        assert all(q != 2 for q, _ in b.errors), b.errors
        dut._log.info(f"{name}: {len(b.errors)} errors in 16")
        b.end()


@pytest.mark.parametrize("seed", [0])
def test_vq_fetch(seed):
    run("via_vq_fetch_tb", __file__, sources=["rtl/virtio/via_virtio_pkg.sv"])
