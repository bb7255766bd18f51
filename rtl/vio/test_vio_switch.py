# SPDX-License-Identifier: Apache-2.0
"""via_vio_switch: routes and attachments that change at any time, slots cut off, functions reset: messages stay messages."""

import os
from collections import deque

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from via_tb import rng, run, stalls, start, until

USERS, SLOTS, STREAMS, DISK = 5, 2, 2, 2
APPS = [(s, k) for s in range(SLOTS) for k in range(STREAMS)]
NONE, BOARD, SLOT = 0, 1, 2  # attachment of a function
OWN, STREAM, FUNCTION, PORT = 0, 1, 2, 3  # kinds of ends of a route
WIDTH = 8
SHORT = b"\0"  # a response that is made up, and how a message ends that is cut


class End:
    """One end of streams: sends what is in `out`, collects messages in `got`."""

    def __init__(self, scope, r, stall: float) -> None:
        self.s, self.r, self.stall = scope, r, stall
        self.out: deque[tuple[int, bytes]] = deque()  # id, data
        self.got: list[tuple[int, bytes]] = []
        self.new: deque[tuple[int, bytes]] = deque()  # the same, since the last reset
        self.sent = 0  # messages begun
        self.done = 0  # messages of which the last beat was accepted
        self.at, self.up, self.part = 0, False, b""
        self.stall_now = False  # sends nothing
        scope.t_valid.value = scope.r_ready.value = 0

    def reset(self) -> None:
        """Begins anew at the next edge."""
        self.out.clear()
        self.new.clear()
        self.at, self.up, self.part = 0, False, b""
        self.s.t_valid.value = 0

    async def go(self, clk, blocked=lambda: False) -> None:
        edge = RisingEdge(clk)
        pause, refuse = stalls(self.r, self.stall), stalls(self.r, self.stall)
        s = self.s
        while True:
            await edge
            if blocked():
                s.t_valid.value = s.r_ready.value = 0
                self.up = False
                continue
            if s.r_valid.value == 1 and s.r_ready.value == 1:
                keep = int(s.r_keep.value).bit_count()
                self.part += int(s.r_data.value).to_bytes(WIDTH, "little")[:keep]
                if int(s.r_last.value):
                    self.got.append((int(s.r_id.value), self.part))
                    self.new.append(self.got[-1])
                    self.part = b""
            s.r_ready.value = not next(refuse)
            if self.up and s.t_ready.value == 1:
                self.at += WIDTH
                if self.at >= len(self.out[0][1]):
                    self.out.popleft()
                    self.at = 0
                    self.done += 1
                self.up = False
            self.up &= not self.stall_now
            if not self.up and self.out and not self.stall_now and not next(pause):
                ident, data = self.out[0]
                self.sent += self.at == 0
                beat = data[self.at : self.at + WIDTH]
                s.t_data.value = int.from_bytes(beat, "little")
                s.t_keep.value = (1 << len(beat)) - 1
                s.t_last.value = self.at + WIDTH >= len(data)
                s.t_id.value = ident
                self.up = True
            s.t_valid.value = self.up


class Bench:
    def __init__(self, dut, stall: float) -> None:
        self.dut, self.r = dut, rng()
        dut.core_rst.value = dut.cut.value = dut.set.value = dut.set_valid.value = 0
        self.core = self.cut = 0
        for f in range(1, USERS + 1):
            self.connect(f, NONE)
        self.fn = {f: End(dut.gen_fn[f].u_fn, self.r, stall) for f in range(1, USERS + 1)}
        self.brd = {f: End(dut.gen_fn[f].u_brd, self.r, stall) for f in range(1, USERS + 1)}
        self.app = {at: End(dut.gen_app[i].u_app, self.r, stall) for i, at in enumerate(APPS)}
        self.serial = 0
        self.known: dict[bytes, tuple[int, bytes]] = {}

    async def begin(self) -> None:
        await start(self.dut)
        clk = self.dut.clk_i
        for f, end in self.fn.items():
            cocotb.start_soon(end.go(clk, lambda f=f: bool(self.core >> f - 1 & 1)))
        for end in self.brd.values():
            cocotb.start_soon(end.go(clk))
        for at, end in self.app.items():
            cocotb.start_soon(end.go(clk, lambda s=at[0]: bool(self.cut >> s & 1)))

    def connect(self, f: int, kind: int, slot: int = 0, stream: int = 0) -> None:
        """Attaches a function."""
        self.dut.kind[f].value, self.dut.slot[f].value, self.dut.strm[f].value = kind, slot, stream

    @staticmethod
    def number(end: tuple[int, ...]) -> int:
        """vio_end_t of (kind, slot or 0, stream or function)."""
        kind, slot, index = end
        return kind << 8 | slot << 4 | index

    async def route(self, sink: tuple[int, ...], source: tuple[int, ...], now: bool = False) -> None:
        """Sets a route, as a write to the registers does."""
        self.dut.set.value = now << 20 | self.number(source) << 10 | self.number(sink)
        self.dut.set_valid.value = 1
        await RisingEdge(self.dut.clk_i)
        self.dut.set_valid.value = 0

    async def settled(self, limit: int = 2000) -> int:
        """Waits until the sink of the last route() takes its source and no other one's messages are held; that source, as a number."""
        await ClockCycles(self.dut.clk_i, 2)
        await until(self.dut, lambda: not int(self.dut.state.value) >> 10, limit, "the route is in effect")
        return int(self.dut.state.value)

    def message(self, size: int | None = None) -> tuple[int, bytes]:
        """A new one; its first four bytes occur nowhere else."""
        self.serial += 1
        head = (self.serial << 8 | 1).to_bytes(4, "little")
        rest = self.r.randbytes(self.r.randrange(1, 60) if size is None else size - 4)
        self.known[head] = self.r.randrange(256), head + rest
        return self.known[head]

    def check(self, got: tuple[int, bytes], what: str) -> bytes:
        """A message or the beginning of one, with a beat that ends it. Its head."""
        ident, data = got
        known = self.known.get(data[:4])
        assert known, f"{what}: {data.hex()} was never sent"
        cut = len(data) % WIDTH == 1 and data[-1:] == SHORT and known[1].startswith(data[:-1])
        assert ident == known[0] and (data == known[1] or cut), f"{what}: {data.hex()} of {known[1].hex()}"
        return data[:4]

    async def cut_slot(self, s: int, cycles: int) -> None:
        """Isolates a slot for a while; its app forgets everything."""
        self.cut |= 1 << s
        self.dut.cut.value = self.cut
        ends = [end for at, end in self.app.items() if at[0] == s]
        for end in ends:
            end.reset()
        await ClockCycles(self.dut.clk_i, cycles)
        for end in ends:
            end.reset()
        self.cut &= ~(1 << s)
        self.dut.cut.value = self.cut

    async def reset_fn(self, f: int, cycles: int) -> None:
        self.core |= 1 << f - 1
        self.dut.core_rst.value = self.core
        self.fn[f].reset()
        await ClockCycles(self.dut.clk_i, cycles)
        self.fn[f].reset()
        self.core &= ~(1 << f - 1)
        self.dut.core_rst.value = self.core


async def bench(dut, stall: float = 0.0) -> Bench:
    b = Bench(dut, stall)
    await b.begin()
    return b


@cocotb.test(timeout_time=200, timeout_unit="us")
async def whole_messages_reach_what_a_function_is_connected_to(dut):
    b = await bench(dut, 0.25)
    # Function 3 requests a slot that is in use already, and is connected to nothing.
    for f, kind, slot in ((1, SLOT, 1), (2, BOARD, 0), (3, SLOT, 1)):
        b.connect(f, kind, slot)
    await ClockCycles(dut.clk_i, 3)
    assert int(dut.attached.value) == 0b00011
    there = {f: [b.message() for _ in range(20)] for f in (1, 2, 3)}
    back = {f: [b.message() for _ in range(20)] for f in (1, 2)}
    lost = [b.message() for _ in range(5)]
    for f in (1, 2, 3):
        b.fn[f].out.extend(there[f])
    b.app[1, 0].out.extend(back[1])
    b.brd[2].out.extend(back[2])
    b.brd[1].out.extend(lost)
    await until(dut, lambda: len(b.app[1, 0].got) == len(b.brd[2].got) == 20, 4000)
    await until(dut, lambda: b.fn[3].done == 20 and len(b.fn[1].got) == len(b.fn[2].got) == 20, 4000)
    await ClockCycles(dut.clk_i, 50)
    assert b.app[1, 0].got == there[1] and b.brd[2].got == there[2]
    assert b.fn[1].got == back[1] and b.fn[2].got == back[2] and not b.fn[3].got
    assert not b.app[0, 0].got and not b.brd[1].got and not b.brd[3].got and b.brd[1].done == 5
    counts = [[int(dut.count[f][i].value) for i in range(3)] for f in (1, 2, 3)]
    assert counts == [[20, 20, 0], [20, 20, 0], [20, 0, 0]], counts
    assert int(dut.idle_o.value) == 1


@cocotb.test(timeout_time=100, timeout_unit="us")
async def without_stalls_a_beat_passes_every_cycle(dut):
    b = await bench(dut)
    b.connect(1, SLOT, 0)
    await ClockCycles(dut.clk_i, 3)
    b.fn[1].out.append(b.message(100 * WIDTH))
    b.app[0, 0].out.append(b.message(100 * WIDTH))
    await until(dut, lambda: b.app[0, 0].got and b.fn[1].got, 110, "more than a cycle a beat")


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def connections_change_in_the_midst_of_messages(dut):
    """Nothing hangs, nobody gets a piece of a message without its beginning, and what is cut says so."""
    b = await bench(dut, 0.2)
    r = b.r
    ends = {f"function {f}": e for f, e in b.fn.items()} | {f"board {f}": e for f, e in b.brd.items()}
    ends |= {f"app {at}": e for at, e in b.app.items()}
    del ends[f"function {DISK}"]
    whole = 0
    for _ in range(120):
        for name, e in ends.items():
            if len(e.out) < 3 and name != f"board {DISK}":
                e.out.extend([b.message(), b.message(), b.message()])
        await ClockCycles(dut.clk_i, r.choice((1, 2, 3, 10, 40)))
        what = r.random()
        if what < 0.2:
            await b.cut_slot(r.randrange(SLOTS), r.randrange(6, 12))
        elif what < 0.4:
            await b.reset_fn(r.choice((1, 3)), r.choice((1, 2, 9)))
        else:
            b.connect(r.choice((1, 3)), r.choice((NONE, BOARD, SLOT, SLOT)), r.randrange(SLOTS + 1))
    for f in (1, 3):
        b.connect(f, BOARD)
    # What an app sends without a connection waits for its mover.
    others = [e for name, e in ends.items() if not name.startswith("app")]
    await until(dut, lambda: not any(e.out for e in others), 4000, "everything is taken")
    await ClockCycles(dut.clk_i, 30)
    heads = []
    for name, e in ends.items():
        assert not e.part, f"{name}: a message without end"
        for got in e.got:
            heads.append(b.check(got, name))
            whole += got[1] == b.known[heads[-1]][1]
    assert len(heads) == len(set(heads)), "a message came twice"
    assert 100 < whole < len(heads), f"{whole} of {len(heads)} messages whole"
    assert int(dut.idle_o.value) == 1


@cocotb.test(timeout_time=3000, timeout_unit="us")
async def the_disk_gets_one_response_to_each_message_and_never_that_to_another(dut):
    b = await bench(dut, 0.15)
    r, disk = b.r, b.fn[DISK]
    open_: deque[bytes] = deque()  # messages sent or in the queue, oldest first
    full = made_up = 0
    seen = 0

    async def apps() -> None:
        """Apps and board answer each message with itself, some time later."""
        while True:
            await ClockCycles(dut.clk_i, r.randrange(1, 20))
            for e in (*b.app.values(), b.brd[DISK]):
                while e.new:
                    e.out.append(e.new.popleft())

    cocotb.start_soon(apps())

    def responses() -> None:
        nonlocal seen, full, made_up
        while seen < len(disk.got):
            ident, data = disk.got[seen]
            seen += 1
            assert open_, f"a response to nothing: {data.hex()}"
            want = b.known[open_.popleft()]
            if data == SHORT:
                made_up += 1
            else:
                assert b.check((ident, data), "disk") == want[1][:4], (
                    f"response {data.hex()} to {want[1].hex()}"
                )
                full += data == want[1]

    async def feed(cycles: int) -> None:
        for _ in range(cycles):
            await RisingEdge(dut.clk_i)
            responses()
            if len(open_) < 4 and r.random() < 0.3:
                message = b.message()
                disk.out.append(message)
                open_.append(message[1][:4])

    where = 0
    b.connect(DISK, SLOT, where)
    for _ in range(100):
        await feed(r.choice((3, 20, 60, 150)))
        what = r.random()
        if what < 0.35:
            await b.reset_fn(DISK, r.choice((1, 2, 3, 12)))
            seen = len(disk.got)
            open_.clear()
        elif what < 0.7:
            task = cocotb.start_soon(b.cut_slot(where, r.randrange(6, 30)))
            await feed(12)
            await task
        else:
            # Away from the slot, whose app is then started anew, and to another place.
            b.connect(DISK, NONE)
            await feed(r.randrange(1, 6))
            await b.cut_slot(where, 8)
            where = r.randrange(SLOTS)
            b.connect(DISK, SLOT, where)
    for _ in range(40):
        await feed(20)
        if not open_:
            break
    stop = 0
    while open_ and stop < 3000:
        await RisingEdge(dut.clk_i)
        responses()
        stop += 1
    assert not open_, f"{len(open_)} messages without response"
    assert full > 100 and made_up > 20, f"{full} answered, {made_up} made up"
    # On the board's port it works the same way.
    b.connect(DISK, BOARD)
    before = full
    await feed(600)
    assert full > before + 10


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_response_too_many_does_not_outlive_a_reset_of_the_disk(dut):
    """An app sends what was not requested; the disk is reset meanwhile and then works on."""
    b = await bench(dut)
    disk, app = b.fn[DISK], b.app[0, 0]
    b.connect(DISK, SLOT, 0)
    await ClockCycles(dut.clk_i, 10)
    app.out.append(b.message(20))
    await ClockCycles(dut.clk_i, 20)
    await b.reset_fn(DISK, 12)
    await ClockCycles(dut.clk_i, 20)
    assert not disk.got
    for _ in range(10):
        asked = b.message(40)
        disk.out.append(asked)
        await until(dut, lambda: app.new, 200, "a message of the disk")
        app.out.append(app.new.popleft())
        await until(dut, lambda: disk.new, 200, "its response")
        assert disk.new.popleft() == asked


def app(s: int, k: int = 0) -> tuple[int, int, int]:
    return STREAM, s, k


@cocotb.test(timeout_time=100, timeout_unit="us")
async def all_routes_at_once_have_a_beat_a_cycle(dut):
    """A chain over all streams that ends where it began, beside functions at both ports of the board: no route slows another."""
    b = await bench(dut)
    for sink, source in zip(APPS, [*APPS[1:], APPS[0]], strict=True):
        await b.route((STREAM, *sink), (STREAM, *source))
    for f in (1, 3):
        b.connect(f, BOARD)
    await ClockCycles(dut.clk_i, 16)
    ends = [*b.app.values(), b.fn[1], b.fn[3], b.brd[1], b.brd[3]]
    sent = [[b.message(50 * WIDTH) for _ in range(4)] for _ in ends]
    for end, messages in zip(ends, sent, strict=True):
        end.out.extend(messages)
    await until(dut, lambda: all(len(end.got) == 4 for end in ends), 4 * 50 + 12, "less than a beat a cycle")
    for at, source in zip(APPS, [*APPS[1:], APPS[0]], strict=True):
        assert b.app[at].got == sent[APPS.index(source)]
    assert b.brd[1].got == sent[len(APPS)] and b.fn[1].got == sent[len(APPS) + 2]


@cocotb.test(timeout_time=100, timeout_unit="us")
async def an_idle_route_changes_within_10_cycles_and_adds_one(dut):
    b = await bench(dut)
    at = b.app[1, 0]
    for source in ((0, 1), (0, 0), (1, 1), (1, 0)):
        b.app[source].out.append(b.message(5))
        await ClockCycles(dut.clk_i, 20)
        assert not at.got, "an app without a route waits"
        await b.route(app(1), (STREAM, *source))
        await until(dut, lambda: at.got, 11, "the first beat by the new route, and a cycle to see it")
        assert await b.settled() == b.number((STREAM, *source))
        b.app[source].out.append(b.message(5))
        await until(
            dut,
            lambda: len(at.got) == 2,
            4,
            "a beat has one more cycle than the three from end to end by a wire",
        )
        at.got.clear()
        await b.route(app(1), (OWN, 0, 0))
        assert await b.settled() == 0
    assert int(dut.in_on.value) == int(dut.out_on.value) == 0


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_tee_sends_everything_to_all_sinks_at_the_speed_of_the_slowest(dut):
    b = await bench(dut, 0.3)
    for sink in (app(0, 1), app(1, 0), app(0, 0), (PORT, 0, 1)):  # the third is a loop
        await b.route(sink, app(0, 0))
    await ClockCycles(dut.clk_i, 8)
    sent = [b.message() for _ in range(60)]
    b.app[0, 0].out.extend(sent)
    ends = [b.app[0, 1], b.app[1, 0], b.app[0, 0], b.brd[1]]
    await until(dut, lambda: all(len(end.got) == 60 for end in ends), 8000)
    assert all(end.got == sent for end in ends)
    # One of them leaves in the midst: the others go on without a gap.
    b.app[0, 0].out.extend(sent)
    await ClockCycles(dut.clk_i, 40)
    await b.route(app(1, 0), (OWN, 0, 0))
    await until(dut, lambda: all(len(end.got) == 120 for end in (b.app[0, 1], b.app[0, 0], b.brd[1])), 8000)
    some = b.app[1, 0].got[60:]
    assert 0 < len(some) < 60 and some == sent[: len(some)]
    # A sink that does not accept stops the source, until it is taken away.
    b.app[0, 1].stall = 1.0
    b.app[0, 0].out.extend(sent)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def routes_change_under_load_and_nothing_is_lost_doubled_or_misrouted(dut):
    """Sources send numbered messages all the time; sinks change, at the end of a message, in random order."""
    b = await bench(dut, 0.2)
    r = b.r
    sent: dict[tuple[int, int], list[bytes]] = {at: [] for at in APPS}
    taken: list[tuple[tuple[int, int], int]] = []
    owner: dict[tuple[int, int], tuple[int, int] | None] = dict.fromkeys(APPS)

    async def feed() -> None:
        while True:
            await RisingEdge(dut.clk_i)
            for at in APPS:
                if len(b.app[at].out) < 3:
                    ident, data = b.message()
                    b.app[at].out.append((ident, data))
                    sent[at].append(data[:4])

    cocotb.start_soon(feed())
    changes = int(os.environ.get("VIA_ROUTES", "600"))
    for _ in range(changes):
        sink = r.choice(APPS)
        source = r.choice([None, *APPS])
        # Each source has at most one sink here, so that every message has one place to go to.
        if source is not None and source in owner.values():
            continue
        await b.route((STREAM, *sink), (OWN, 0, 0) if source is None else (STREAM, *source))
        owner[sink] = source
        state = await b.settled()
        assert state == (0 if source is None else b.number((STREAM, *source))), hex(state)
        taken.append((sink, source is not None))
        await ClockCycles(dut.clk_i, r.choice((1, 2, 5, 20, 60)))
    for sink in APPS:
        await b.route((STREAM, *sink), (OWN, 0, 0))
        await b.settled()
    await ClockCycles(dut.clk_i, 60)
    heads: dict[bytes, int] = {}
    for at, end in b.app.items():
        assert not end.part, f"app {at}: a message without end"
        for got in end.got:
            assert got == b.known[got[1][:4]], f"app {at}: {got} was changed"
            heads[got[1][:4]] = heads.get(got[1][:4], 0) + 1
    assert all(n == 1 for n in heads.values()), "a message came twice"
    for at in APPS:
        gone = len(sent[at]) - len(b.app[at].out)
        assert b.app[at].at == 0 and all(head in heads for head in sent[at][:gone]), f"app {at}: one was lost"
    dut._log.info("%d changes, %d messages", len(taken), len(heads))
    assert len(heads) > len(taken) / 2


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_change_waits_for_the_message_unless_it_is_to_be_now(dut):
    b = await bench(dut)
    at = b.app[1, 0]
    await b.route(app(1), app(0, 0))
    await ClockCycles(dut.clk_i, 10)
    # An app that never ends its message: all beats but the last.
    first, long, other = b.message(10), b.message(40 * WIDTH), b.message(20)
    b.app[0, 0].out.append(first)
    b.app[0, 0].out.append(long)
    b.app[0, 1].out.append(other)
    await until(dut, lambda: b.app[0, 0].at >= 10 * WIDTH)
    b.app[0, 0].stall_now = True
    await b.route(app(1), app(0, 1))
    await ClockCycles(dut.clk_i, 60)
    assert int(dut.state.value) >> 10, "the change waits for the end of the message"
    assert at.got == [first] and b.app[0, 1].out
    await b.route(app(1), app(0, 1), now=True)
    assert await b.settled(40) == b.number(app(0, 1))
    await until(dut, lambda: len(at.got) == 3, 40)
    cut = at.got[1][1]
    assert cut[-1:] == SHORT and long[1].startswith(cut[:-1]) and len(cut) >= 10 * WIDTH
    assert at.got[2] == other
    # Nobody takes the rest of the message; the next one is taken from its beginning.
    b.app[0, 0].stall_now = False
    await b.route(app(0, 1), app(0, 0))
    last = b.message(30)
    b.app[0, 0].out.append(last)
    await until(dut, lambda: b.app[0, 1].got == [last], 200)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_route_to_the_board_ends_between_two_messages(dut):
    b = await bench(dut)
    net = (PORT, 0, 1)
    b.connect(1, BOARD)
    await b.route(net, app(0))
    await b.settled()
    frame, later = b.message(20 * WIDTH), b.message(20)
    b.app[0, 0].out.append(frame)
    await until(dut, lambda: b.app[0, 0].at >= 5 * WIDTH)
    b.app[0, 0].stall_now = True
    b.fn[1].out.append(later)
    await b.route(net, (OWN, 0, 0))
    await ClockCycles(dut.clk_i, 40)
    assert int(dut.state.value) >> 10 and not b.brd[1].got, "the frame has not ended"
    b.app[0, 0].stall_now = False
    await until(dut, lambda: len(b.brd[1].got) >= 1, 100)
    assert b.brd[1].got[0] == frame
    # From then on the port is its function's again.
    assert await b.settled() == b.number((FUNCTION, 0, 1))
    b.fn[1].out.append(later)
    await until(dut, lambda: len(b.brd[1].got) >= 2, 100)
    assert b.brd[1].got[1] == later


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_function_that_is_attached_ends_the_route_for_good(dut):
    b = await bench(dut)
    await b.route(app(1), app(0))
    await b.settled()
    b.connect(1, SLOT, 1)
    await ClockCycles(dut.clk_i, 16)
    assert int(dut.state.value) == b.number((FUNCTION, 0, 1))
    await b.route(app(1), app(0))
    await ClockCycles(dut.clk_i, 16)
    b.connect(1, NONE)
    await ClockCycles(dut.clk_i, 16)
    b.app[0, 0].out.append(b.message(20))
    await ClockCycles(dut.clk_i, 30)
    assert int(dut.state.value) == 0 and not b.app[1, 0].got and int(dut.out_on.value) == 0


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_route_ends_with_the_app_at_either_end(dut):
    b = await bench(dut)
    for gone in (0, 1):
        await b.route(app(1), app(0))
        await b.settled()
        await b.cut_slot(gone, 8)
        await b.route(app(1, 1), (PORT, 0, 3))  # another sink
        await b.route((OWN, 0, 0), (OWN, 0, 0))  # no sink: changes nothing
        await ClockCycles(dut.clk_i, 8)
        assert int(dut.out_on.value) == 0 and int(dut.in_on.value) == 1 << APPS.index((1, 1))
        b.app[0, 0].out.append(b.message(20))
        await ClockCycles(dut.clk_i, 30)
        assert not b.app[1, 0].got, "a route outlived its app"
        await b.cut_slot(0, 8)
        await b.cut_slot(1, 8)
    # Ends that do not exist.
    for sink, source in (
        ((STREAM, 5, 0), app(0)),
        ((PORT, 0, 2), app(0)),
        (app(1), (STREAM, 0, 9)),
        (app(1), (PORT, 0, 7)),
    ):
        await b.route(sink, source)
    await ClockCycles(dut.clk_i, 10)
    assert int(dut.out_on.value) == int(dut.in_on.value) == 0


@cocotb.test(timeout_time=100, timeout_unit="us")
async def the_board_and_functions_reach_every_stream(dut):
    b = await bench(dut, 0.2)
    # Ethernet through an app to the network function and back through another: an app in the path each way.
    await b.route(app(0, 1), (PORT, 0, 1))
    await b.route((PORT, 0, 1), app(1, 0))
    b.connect(1, SLOT, 1, 1)
    await ClockCycles(dut.clk_i, 8)
    frames = [b.message() for _ in range(20)]
    b.brd[1].out.extend(frames)
    b.fn[1].out.extend(frames)
    b.app[1, 1].out.extend(frames)
    b.app[1, 0].out.extend(frames)
    ends = [b.app[0, 1], b.app[1, 1], b.fn[1], b.brd[1]]
    await until(dut, lambda: all(len(end.got) == 20 for end in ends), 4000)
    assert all(end.got == frames for end in ends)


@pytest.mark.parametrize("data_w", [64])
def test_via_vio_switch(data_w):
    run(
        "via_vio_switch_tb",
        __file__,
        defines={"VIA_DATA_W": data_w, "VIA_NUM_SLOTS": SLOTS, "VIA_NUM_STREAMS": STREAMS},
        sources=["rtl/virtio/via_virtio_pkg.sv"],
    )
