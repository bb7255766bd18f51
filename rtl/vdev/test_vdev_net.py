# SPDX-License-Identifier: Apache-2.0
"""via_vdev_net: frames both ways, checksums, mergeable buffers, filter, control queue, rate; and drivers that are wrong."""

import struct

import cocotb
import pytest
from cocotb.triggers import ClockCycles
from vdev_model import NONE, Bench, Ctrl

from via_tb import run, stalls, until

CSUM, GUEST_CSUM, MTU, MAC, MRG, STATUS, CTRL, CTRL_RX, CTRL_RX_EXTRA, MQ, CTRL_MAC = (
    1 << n for n in (0, 1, 3, 5, 15, 16, 17, 18, 20, 22, 23)
)
ALL = CSUM | GUEST_CSUM | MTU | MAC | MRG | STATUS | CTRL | CTRL_RX | CTRL_RX_EXTRA | MQ | CTRL_MAC
OWN = bytes.fromhex("52540012ab34")
OTHER = bytes.fromhex("02aabbccddee")
CTRLQ = 8
MAX = 9216 + 18


def bench(dut, stall: float = 0.0) -> Bench:
    return Bench(dut, stall, width=len(dut.rd) // 9)


def header(flags: int = 0, gso: int = 0, start: int = 0, offset: int = 0) -> bytes:
    return struct.pack("<BBHHHHH", flags, gso, 0, 0, start, offset, 0)


def frame(r, n: int, dst: bytes = OWN) -> bytes:
    return dst + r.randbytes(n - 6)


def tagged(r, n: int, dst: bytes = OWN) -> bytes:
    """With any VLAN."""
    return dst + r.randbytes(6) + b"\x81\0" + r.randbytes(n - 14)


def ones_sum(data: bytes) -> int:
    s = sum(struct.unpack(f">{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return s


def checked(data: bytes, start: int, offset: int) -> bytes:
    """As the driver's own software would do it."""
    value = 0xFFFF ^ ones_sum(data[start:]) or 0xFFFF
    return data[: start + offset] + struct.pack(">H", value) + data[start + offset + 2 :]


@cocotb.test(timeout_time=400, timeout_unit="us")
async def sends_frames_of_every_size(dut):
    for stall in (0.0, 0.3):
        b = bench(dut, stall)
        await b.begin(ALL)
        sizes = [
            14,
            15,
            51,
            52,
            53,
            60,
            64,
            115,
            116,
            117,
            1514,
            MAX,
            *(b.r.randrange(14, 400) for _ in range(60)),
        ]
        frames = [frame(b.r, n, OTHER) for n in sizes]
        # Only bit 0 of the flags means anything to the device, the offsets nothing without it.
        chains = []
        for f in frames:
            flags = b.r.choice((0, 2, 4, 254, b.r.randrange(128) * 2))
            head = header(flags, 0, b.r.getrandbits(16), b.r.choice((0, 2, 6, b.r.getrandbits(16))))
            chains.append(b.send(b.r.choice((1, 3, 5, 7)), head + f))
        await b.done(*chains, limit=20000)
        await until(dut, lambda: len(b.tx) == len(frames))  # noqa: B023
        assert [m for _, m in b.tx] == frames
        assert all(c.response == b"" for c in chains)
        b.end()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def inserts_checksums_where_asked(dut):
    b = bench(dut, 0.1)
    await b.begin(ALL)
    want = []
    for i in range(150):
        n = b.r.choice((60, 64, 65, 128, 129, 1000, b.r.randrange(40, 300), MAX if i % 50 == 0 else 64))
        f = frame(b.r, n)
        if b.r.random() < 0.3:
            b.send(1, header() + f)
        else:
            start = b.r.choice((14, 34, 35, b.r.randrange(0, n - 2)))
            offset = b.r.randrange(0, min(n - 2 - start, 20) + 1)
            b.send(1, header(1 | b.r.randrange(128) * 2, 0, start, offset) + f)
            f = checked(f, start, offset)
        want.append(f)
    # The sum is zero: UDP must not see a zero.
    f = bytearray(60)
    f[34:36] = b"\xff\xff"
    b.send(1, header(1, 0, 34, 6) + bytes(f))
    want.append(checked(bytes(f), 34, 6))
    assert want[-1][40:42] == b"\xff\xff"
    await until(dut, lambda: len(b.tx) == len(want), 20000)
    for i, (x, y) in enumerate(zip(b.tx, want, strict=True)):
        assert x[1] == y, f"frame {i} of {len(y)}"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def no_checksum_unless_negotiated(dut):
    b = bench(dut)
    await b.begin(ALL & ~CSUM)
    f = frame(b.r, 100)
    await b.done(b.send(1, header(1, 0, 34, 6) + f))
    await until(dut, lambda: len(b.tx) == 1)
    assert b.tx[0][1] == f


@cocotb.test(timeout_time=200, timeout_unit="us")
async def wrong_requests_are_completed_and_dropped(dut):
    b = bench(dut, 0.1)
    await b.begin(ALL)
    good = []
    chains = []
    bad = [
        b"",
        b"\0",
        header()[:11],
        header(),
        header() + bytes(13),
        header() + bytes(MAX + 1),
        header() + bytes(MAX + 700),
        header(0, 1) + bytes(100),
        header(1, 1, 34, 16) + bytes(100),
        header(1, 0, 60, 39) + bytes(100),
        header(1, 0, 99, 0) + bytes(100),
        header(1, 0, 100, 0) + bytes(100),
        header(1, 0, 0xFFFF, 0xFFFF) + bytes(100),
        header(1, 0, 0x8000, 0x8000) + bytes(100),
        header(1, 0, 2, 0xFFFF) + bytes(100),
    ]
    for x in bad:
        chains.append(b.send(1, x))
        good.append(frame(b.r, b.r.randrange(14, 200)))
        chains.append(b.send(1, header(1, 0, 0, 2) + good[-1]))
    await b.done(*chains, limit=20000)
    await until(dut, lambda: len(b.tx) == len(good))
    # Also one that no frame is held before.
    await ClockCycles(dut.clk_i, 20)
    await b.done(b.send(1, header(0, 1) + bytes(100)))
    await ClockCycles(dut.clk_i, 20)
    assert [m for _, m in b.tx] == [checked(f, 0, 2) for f in good]
    assert not b.fails
    assert await b.config(0x40) == len(bad) + 1


async def receive(
    b: Bench, frames: list[bytes], queues: list[int], sizes: list[int], merge: bool, lost: int = 0
) -> list:
    """Keeps the receive queues filled until all but `lost` frames have come; returns the chains in their order."""
    for f in frames:
        b.rx(f)
    taken: list = []

    def step() -> bool:
        for q in queues:
            while len(b.ready[q]) < 8 or (merge and sum(c.wlen for c in b.ready[q]) < 12 + MAX):
                b.offer(q, b.r.choice(sizes))
        return len([c for c in b.responses if c.queue in queues]) >= len(frames) - lost

    await until(b.dut, step, 30000, "frames")
    taken = [c for c in b.responses if c.queue in queues]
    return taken


def payload(c) -> bytes:
    assert c.response[:10] == bytes(10)
    assert struct.unpack("<H", c.response[10:12])[0] == 1 + len(c.parts)
    return c.response[12:]


@cocotb.test(timeout_time=600, timeout_unit="us")
async def receives_frames_of_every_size(dut):
    for stall, merge in ((0.0, True), (0.3, True), (0.2, False)):
        b = bench(dut, stall)
        await b.begin(ALL if merge else ALL & ~MRG)
        sizes = [
            14,
            15,
            51,
            52,
            53,
            60,
            64,
            115,
            116,
            117,
            1514,
            MAX,
            *(b.r.randrange(14, 400) for _ in range(60)),
        ]
        frames = [frame(b.r, n) for n in sizes]
        got = await receive(b, frames, [0], [100, 512, 1526, 4096] if merge else [12 + MAX], merge)
        assert [payload(c) for c in got] == frames
        if merge:
            assert any(c.parts for c in got)
        b.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def wrong_frames_are_dropped_and_counted(dut):
    b = bench(dut, 0.1)
    await b.begin(ALL & ~MRG)
    good = [frame(b.r, n) for n in (64, 1000, 500, 60, MAX, 70)]
    bad = [
        frame(b.r, 13),
        frame(b.r, MAX + 1),
        frame(b.r, 2 * MAX),
        frame(b.r, 9),
        frame(b.r, MAX + 100),
        b"\1",
    ]
    mixed = [x for pair in zip(good, bad, strict=True) for x in pair]
    for f in mixed:
        b.rx(f)
    chains = [b.offer(0, 12 + MAX) for _ in good]
    await b.done(*chains, limit=20000)
    assert [payload(c) for c in chains] == good
    # A buffer too short without mergeable buffers: that frame only.
    b.rx(frame(b.r, 600))
    b.rx(good[0])
    c = b.offer(0, 200)
    await b.done(c)
    assert payload(c) == good[0]
    assert await b.config(0x44) == len(bad) + 1


@cocotb.test(timeout_time=100, timeout_unit="us")
async def without_buffers_frames_wait_without_link_they_do_not(dut):
    b = bench(dut)
    await b.begin(ALL)
    frames = [frame(b.r, 1514) for _ in range(60)]
    for f in frames:
        b.rx(f)
    await until(dut, lambda: bool(int(dut.still_o.value)), 4000)
    await ClockCycles(dut.clk_i, 50)
    assert b.rx_beats, "the store has no end"
    chains = [b.offer(0, 2048) for _ in frames]
    await b.done(*chains, limit=8000)
    assert [payload(c) for c in chains] == frames
    for ctrl in (Ctrl(up=0), Ctrl(kind=NONE)):
        b.set(ctrl)
        for f in frames:
            b.rx(f)
        await until(dut, lambda: not b.rx_beats, 4000)
        c = b.send(1, header() + frames[0])
        await b.done(c)
        assert not b.tx
    assert b.changes == 2  # down and up
    b.set(Ctrl())
    c = b.offer(0, 2048)
    b.rx(frames[1])
    await b.done(c)
    assert payload(c) == frames[1]


# ---------------------------------------------------------------- control queue


async def command(b: Bench, cls: int, cmd: int, data: bytes, queue: int = CTRLQ) -> int:
    c = b.send(queue, bytes((cls, cmd)) + data, 1)
    await b.done(c, limit=12000)
    assert c.response in (b"\0", b"\1")
    return c.response[0]


def table(*lists: list[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(x)) + b"".join(x) for x in lists)


@cocotb.test(timeout_time=400, timeout_unit="us")
async def the_filter_does_as_told(dut):
    b = bench(dut)
    await b.begin(ALL)
    multi, many = bytes.fromhex("01005e000001"), bytes.fromhex("333300000001")

    async def passes() -> set[str]:
        kinds = {"own": OWN, "other": OTHER, "multi": multi, "many": many, "broad": b"\xff" * 6}
        for dst in kinds.values():
            b.rx(b.r.choice((frame, tagged))(b.r, 64, dst))
        await until(dut, lambda: not b.rx_beats)
        await ClockCycles(dut.clk_i, 20)
        got = set()
        for _ in kinds:
            c = b.offer(0, 2048)
            await ClockCycles(dut.clk_i, 40)
            if c.response is None:
                b.ready[0].remove(c)
                break
            got |= {k for k, v in kinds.items() if v == payload(c)[:6]}
        await ClockCycles(dut.clk_i, 5)
        return got

    assert await passes() == {"own", "other", "multi", "many", "broad"}, "promiscuous until told otherwise"
    assert await command(b, 0, 0, b"\0") == 0
    assert await passes() == {"own", "broad"}
    assert await command(b, 0, 1, b"\1") == 0
    assert await passes() == {"own", "multi", "many", "broad"}
    assert await command(b, 0, 3, b"\1") == 0
    assert await passes() == {"own", "broad"}
    assert await command(b, 0, 1, b"\0") == 0
    assert await command(b, 0, 3, b"\0") == 0
    assert await command(b, 0, 2, b"\1") == 0
    assert await passes() == {"own", "other", "broad"}
    assert await command(b, 0, 4, b"\1") == 0
    assert await command(b, 0, 5, b"\1") == 0
    assert await passes() == set()
    for c in (2, 4, 5):
        assert await command(b, 0, c, b"\0") == 0
    assert await command(b, 1, 0, table([OTHER], [multi])) == 0
    assert await passes() == {"own", "other", "multi", "broad"}
    assert await command(b, 1, 0, table([], [many, multi])) == 0
    assert await passes() == {"own", "multi", "many", "broad"}
    assert await command(b, 1, 0, table([], [])) == 0
    assert await passes() == {"own", "broad"}
    # More than the table holds: all of that kind.
    lots = [bytes((2, 0, 0, 0, 0, i)) for i in range(20)]
    assert await command(b, 1, 0, table(lots, [])) == 0
    assert await passes() == {"own", "other", "broad"}
    assert await command(b, 1, 0, table([], [bytes((3, 0, 0, 0, i >> 8, i & 255)) for i in range(600)])) == 0
    assert await passes() == {"own", "multi", "many", "broad"}
    assert await command(b, 1, 0, table([OTHER], [])) == 0
    # Another address.
    assert await command(b, 1, 1, bytes.fromhex("0a0b0c0d0e0f")) == 0
    assert await passes() == {"other", "broad"}
    assert await b.config_bytes(0, 6) == bytes.fromhex("0a0b0c0d0e0f")


@cocotb.test(timeout_time=600, timeout_unit="us")
async def wrong_commands_change_nothing(dut):
    b = bench(dut, 0.1)
    await b.begin(ALL)
    await command(b, 0, 0, b"\0")
    await command(b, 1, 0, table([OTHER], []))
    wrong = [
        (0, 0, b""),
        (0, 0, b"\1\0"),
        (0, 0, b"\2"),
        (0, 6, b"\1"),
        (0, 255, b"\1"),
        (2, 0, b"\1"),
        (3, 0, b""),
        (5, 0, bytes(8)),
        (255, 255, b""),
        (1, 0, b""),
        (1, 0, table([])),
        (1, 0, table([], []) + b"\0"),
        (1, 0, table([], [], [])),
        (1, 0, table([OWN], [OTHER]) + bytes(6)),
        (1, 0, table([OWN], [OTHER])[:-1]),
        (1, 0, b"\xff\xff\xff\xff" + OWN * 3),
        (1, 0, table([], []) + bytes(4200)),
        (1, 0, table([], [OTHER] * 690)),
        (1, 1, OWN[:5]),
        (1, 1, OWN + b"\0"),
        (1, 1, b"\1" + OWN[:5]),
        (1, 2, OWN),
        (4, 0, b"\0\0"),
        (4, 0, b"\5\0"),
        (4, 0, b"\1\1"),
        (4, 0, b"\1"),
        (4, 0, b"\2\0\0\0"),
        (4, 1, b"\2\0"),
    ]
    for cls, cmd, data in wrong:
        assert await command(b, cls, cmd, data) == 1, f"{cls} {cmd} {data[:20].hex()}"
    for data in (b"", b"\0"):
        c = b.send(CTRLQ, data, 1)
        await b.done(c)
        assert c.response == b"\1"
    # The filter is as it was, the address too.
    assert await b.config_bytes(0, 6) == OWN
    chains = [b.offer(0, 2048) for _ in range(3)]
    for dst in (OTHER, bytes(6), b"\2" * 6, OWN, b"\xff" * 6):
        b.rx(frame(b.r, 64, dst))
    await b.done(*chains)
    assert [payload(c)[:6] for c in chains] == [OTHER, OWN, b"\xff" * 6]
    # No room for the status: cannot be answered.
    assert not b.fails
    b.send(CTRLQ, bytes((4, 0, 2, 0)), 0)
    await until(dut, lambda: b.fails == [CTRLQ])


@cocotb.test(timeout_time=100, timeout_unit="us")
async def commands_not_negotiated_are_refused(dut):
    b = bench(dut)
    await b.begin(MAC | CTRL)
    assert int(dut.waits.value) == 1
    for cls, cmd, data in (
        (0, 0, b"\0"),
        (0, 2, b"\0"),
        (1, 0, table([], [])),
        (1, 1, OTHER),
        (4, 0, b"\1\0"),
    ):
        assert await command(b, cls, cmd, data, queue=2) == 1  # its place without MQ
    dut.features.value = ALL
    await ClockCycles(dut.clk_i, 2)
    assert int(dut.waits.value) == 0b001010101


def udp(sport: int, dport: int, more: int = 12) -> bytes:
    ip = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 40, 1, 0, 64, 17, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))
    )
    return OWN + OTHER + b"\x08\0" + ip + struct.pack(">HHHH", sport, dport, 20, 0) + bytes(more)


@cocotb.test(timeout_time=300, timeout_unit="us")
async def flows_keep_to_their_pair(dut):
    b = bench(dut)
    await b.begin(ALL)
    for pairs in (1, 2, 3, 4):
        assert await command(b, 4, 0, struct.pack("<H", pairs)) == 0
        b.responses.clear()
        # Also such of several beats: what tells the flow is in the first ones.
        frames = [udp(1000 + i % 16, 53, (12, 100, 300)[i // 16]) for i in range(48)]
        for chains in b.ready:
            chains.clear()
        got = await receive(b, frames, [0, 2, 4, 6], [2048], True)
        seen: dict[bytes, set[int]] = {}
        for c in got:
            seen.setdefault(payload(c)[34:36], set()).add(c.queue)
        assert all(len(s) == 1 for s in seen.values()), "a flow went to several pairs"
        for size in (54, 142, 342):
            assert {c.queue for c in got if len(payload(c)) == size} == set(range(0, 2 * pairs, 2))
        assert sorted(payload(c) for c in got) == sorted(frames)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def frames_of_a_queue_in_reset_are_dropped(dut):
    """5.1.6.5.6.2. They hold up neither the other pairs nor who sends them; later ones come through."""
    for stall in (0.0, 0.3):
        b = bench(dut, stall)
        await b.begin(ALL)
        assert await command(b, 4, 0, struct.pack("<H", 2)) == 0
        frames = [udp(1000 + i, 53) for i in range(32)]
        got = await receive(b, frames, [0, 2], [2048], True)
        pair = {payload(c)[34:36]: c.queue for c in got}
        for chains in b.ready:
            chains.clear()
        b.responses.clear()
        # Those that already wait for a buffer too, and those behind them.
        b.rx(next(f for f in frames if pair[f[34:36]] == 2))
        await ClockCycles(dut.clk_i, 60)
        dropped = await b.config(0x44)
        dut.in_use.value = ~(1 << 2) & (1 << b.queues) - 1
        kept = [f for f in frames if pair[f[34:36]] == 0]
        got = await receive(b, frames, [0], [2048], True, lost=len(frames) - len(kept))
        assert [payload(c) for c in got] == kept
        await until(dut, lambda: not b.rx_beats and int(dut.idle_o.value))  # noqa: B023
        dropped += len(frames) - len(kept) + 1
        assert await b.config(0x44) == dropped
        # All of them.
        dut.in_use.value = 0
        for f in frames * 4:
            b.rx(f)
        await until(dut, lambda: not b.rx_beats and int(dut.idle_o.value))  # noqa: B023
        assert await b.config(0x44) == dropped + 4 * len(frames)
        dut.in_use.value = (1 << b.queues) - 1
        for chains in b.ready:
            chains.clear()
        b.responses.clear()
        got = await receive(b, frames, [0, 2], [2048], True)
        assert sorted(payload(c) for c in got) == sorted(frames)
        b.end()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def the_configuration_reads_right(dut):
    b = bench(dut)
    await b.begin(ALL)
    raw = await b.config_bytes(0, 24)
    mtu = MAX - 18  # the longest frame has a header with a VLAN tag
    assert struct.unpack("<6sHHHIB", raw[:17]) == (OWN, 1, 4, mtu, 100000, 1)
    assert await b.config(0x800) == 0


# ---------------------------------------------------------------- rate


@cocotb.test(timeout_time=200, timeout_unit="us")
async def small_and_large_frames_at_rate(dut):
    """An echo behind the device: 64 bytes at 8 cycles a frame or better both ways, large ones a beat a cycle."""
    for size, limit in ((64, 8.0), (1514, 24 * 1.2 + 4), (MAX, 145 * 1.06)):
        b = bench(dut)
        await b.begin(ALL)
        b.app = lambda m: OWN + m[6:]
        n = 60 if size < 9000 else 20
        frames = [frame(b.r, size, OTHER) for _ in range(n)]
        chains = [b.offer(0, 12 + MAX) for _ in range(n)]
        sent = [b.send(1, header() + f) for f in frames]
        await b.done(*chains, *sent, limit=8000)
        assert [payload(c)[6:] for c in chains] == [f[6:] for f in frames]
        out = (b.tx_at[-1] - b.tx_at[0]) / (n - 1)
        back = (chains[-1].done - chains[0].done) / (n - 1)
        dut._log.info("echo of %d bytes: %.1f cycles a frame out, %.1f back", size, out, back)
        assert out <= limit and back <= limit, f"{size}: {out} out, {back} back"
        b.end()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def short_frames_keep_their_order_while_the_user_logic_stalls(dut):
    """Frames of a beat or two that find the FIFO empty, or not any more."""
    for stall in (0.3, 0.6):
        b = bench(dut)
        b._stall["tx"] = stalls(b.r, stall)
        await b.begin(ALL)
        sent = []
        for _ in range(120):
            some = [
                frame(b.r, b.r.choice((14, 40, 52, 60, 116, 180)), OTHER) for _ in range(b.r.randrange(2, 6))
            ]
            sent += some
            await b.done(*[b.send(1, header() + f) for f in some], limit=20000)
            await ClockCycles(dut.clk_i, b.r.randrange(8, 24))
        await until(dut, lambda: len(b.tx) == len(sent))  # noqa: B023
        assert [m for _, m in b.tx] == sent
        b.end()


@cocotb.test(timeout_time=50, timeout_unit="us")
async def few_cycles_each_way(dut):
    b = bench(dut)
    await b.begin(ALL)
    chains = [b.offer(0, 2048)]
    first = b.send(1, header() + frame(b.r, 64))
    await b.done(first)
    await until(dut, lambda: len(b.tx) == 1)
    out = b.tx_at[0] - first.done
    b.rx(frame(b.r, 64))
    await b.done(*chains)
    back = chains[0].done - b.rx_at[-1]
    dut._log.info("latency: sent %d cycles after its buffer was answered, received in %d", out, back)
    assert out <= 0 and back <= 8


NARROW = [
    "sends_frames_of_every_size",
    "receives_frames_of_every_size",
    "wrong_requests_are_completed_and_dropped",
    "flows_keep_to_their_pair",
]


@pytest.mark.parametrize("data_w", [512, pytest.param(64, marks=pytest.mark.long)])
def test_via_vdev_net(data_w):
    run(
        "via_vdev_select_tb",
        __file__,
        parameters={"Fn": 1},
        defines={"VIA_DATA_W": data_w},
        sources=["rtl/virtio/via_virtio_pkg.sv", "rtl/vdev/via_vdev_pkg.sv"],
        testcase=None if data_w == 512 else NARROW,
    )
