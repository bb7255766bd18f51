# SPDX-License-Identifier: Apache-2.0
"""via_fn_switch: connections that change at any time, slots that are cut off, functions that are reset: messages stay messages."""

from collections import deque

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from via_tb import rng, run, stalls, start, until

USERS, SLOTS, DISK = 3, 2, 2
NONE, BOARD, SLOT = 0, 1, 2
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
            if not self.up and self.out and not next(pause):
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
        dut.core_rst.value = dut.cut.value = 0
        self.kind, self.slot, self.core, self.cut = [0] * (USERS + 1), [0] * (USERS + 1), 0, 0
        for f in range(1, USERS + 1):
            self.connect(f, NONE)
        self.fn = {f: End(dut.gen_fn[f].u_fn, self.r, stall) for f in range(1, USERS + 1)}
        self.brd = {f: End(dut.gen_fn[f].u_brd, self.r, stall) for f in range(1, USERS + 1)}
        self.app = [End(dut.gen_slot[s].u_app, self.r, stall) for s in range(SLOTS)]
        self.serial = 0
        self.known: dict[bytes, tuple[int, bytes]] = {}

    async def begin(self) -> None:
        await start(self.dut)
        clk = self.dut.clk_i
        for f, end in self.fn.items():
            cocotb.start_soon(end.go(clk, lambda f=f: bool(self.core >> f - 1 & 1)))
        for end in self.brd.values():
            cocotb.start_soon(end.go(clk))
        for s, end in enumerate(self.app):
            cocotb.start_soon(end.go(clk, lambda s=s: bool(self.cut >> s & 1)))

    def connect(self, f: int, kind: int, slot: int = 0) -> None:
        self.kind[f], self.slot[f] = kind, slot
        self.dut.kind[f].value, self.dut.slot[f].value = kind, slot

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
        self.app[s].reset()
        await ClockCycles(self.dut.clk_i, cycles)
        self.app[s].reset()
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
    assert int(dut.attached.value) == 0b011
    there = {f: [b.message() for _ in range(20)] for f in (1, 2, 3)}
    back = {f: [b.message() for _ in range(20)] for f in (1, 2)}
    lost = [b.message() for _ in range(5)]
    for f in (1, 2, 3):
        b.fn[f].out.extend(there[f])
    b.app[1].out.extend(back[1])
    b.brd[2].out.extend(back[2])
    b.brd[1].out.extend(lost)
    await until(dut, lambda: len(b.app[1].got) == len(b.brd[2].got) == 20, 4000)
    await until(dut, lambda: b.fn[3].done == 20 and len(b.fn[1].got) == len(b.fn[2].got) == 20, 4000)
    await ClockCycles(dut.clk_i, 50)
    assert b.app[1].got == there[1] and b.brd[2].got == there[2]
    assert b.fn[1].got == back[1] and b.fn[2].got == back[2] and not b.fn[3].got
    assert not b.app[0].got and not b.brd[1].got and not b.brd[3].got and b.brd[1].done == 5
    counts = [[int(dut.count[f][i].value) for i in range(3)] for f in (1, 2, 3)]
    assert counts == [[20, 20, 0], [20, 20, 0], [20, 0, 0]], counts
    assert int(dut.idle_o.value) == 1


@cocotb.test(timeout_time=100, timeout_unit="us")
async def without_stalls_a_beat_passes_every_cycle(dut):
    b = await bench(dut)
    b.connect(1, SLOT, 0)
    await ClockCycles(dut.clk_i, 3)
    b.fn[1].out.append(b.message(100 * WIDTH))
    b.app[0].out.append(b.message(100 * WIDTH))
    await until(dut, lambda: b.app[0].got and b.fn[1].got, 110, "more than a cycle a beat")


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def connections_change_in_the_midst_of_messages(dut):
    """Nothing hangs, nobody gets a piece of a message without its beginning, and what is cut says so."""
    b = await bench(dut, 0.2)
    r = b.r
    ends = {f"function {f}": e for f, e in b.fn.items()} | {f"board {f}": e for f, e in b.brd.items()}
    ends |= {f"slot {s}": e for s, e in enumerate(b.app)}
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
    await until(dut, lambda: not any(e.out for e in ends.values()), 4000, "everything is taken")
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
            for e in (*b.app, b.brd[DISK]):
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
    disk, app = b.fn[DISK], b.app[0]
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


@pytest.mark.parametrize("data_w", [64])
def test_via_fn_switch(data_w):
    run(
        "via_fn_switch_tb",
        __file__,
        defines={"VIA_DATA_W": data_w, "VIA_NUM_SLOTS": SLOTS, "VIA_NUM_STREAMS": 1},
        sources=["rtl/virtio/via_virtio_pkg.sv"],
    )
