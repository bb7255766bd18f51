# SPDX-License-Identifier: Apache-2.0
"""via_vdev_blk: requests of every kind against a model disk, user logic in the path, errors of the store, rate; wrong requests."""

import struct

import cocotb
import pytest
from cocotb.triggers import ClockCycles
from vdev_model import BOARD, NONE, SLOT, Bench, Chain, Ctrl

from via_tb import run, until

IN, OUT, FLUSH, GET_ID, DISCARD, ZEROES = 0, 1, 4, 8, 11, 13
OK, IOERR, UNSUPP = b"\0", b"\1", b"\2"
BASE = 0x20000
SECTORS = 1024
ID = b"viaduct-disk-0".ljust(20, b"\0")


def bench(dut, stall: float = 0.0, **kw) -> Bench:
    return Bench(dut, stall, width=len(dut.rd) // 9, **{"size": 1 << 20, "latency": 20, **kw})


async def begin(b: Bench, kind: int = NONE, **kw) -> bytearray:
    """Starts the device over a random disk; returns a copy of its contents."""
    b.mem.mem[:] = b.r.randbytes(len(b.mem.mem))
    await b.begin(0, Ctrl(kind=kind, base=BASE, **{"sectors": SECTORS, **kw}))
    if kind == SLOT:
        b.app = lambda m: bytes(x ^ 0xA5 for x in m)
    return bytearray(b.mem.mem[BASE : BASE + 512 * SECTORS])


def hdr(kind: int, sector: int = 0) -> bytes:
    return struct.pack("<IIQ", kind, 0, sector)


def seg(sector: int, count: int, flags: int = 0) -> bytes:
    return struct.pack("<QII", sector, count, flags)


def disk(b: Bench) -> bytes:
    return bytes(b.mem.mem[BASE : BASE + 512 * SECTORS])


def turned(data: bytes) -> bytes:
    return bytes(x ^ 0xA5 for x in data)


async def mixed(dut, stall: float, kind: int, count: int) -> None:
    """Requests that do not overlap while under way; the guest sees what it wrote, the store what the user side made of it."""
    b = bench(dut, stall)
    store = await begin(b, kind)
    turn = turned if kind == SLOT else bytes
    outside = bytes(b.mem.mem[:BASE]), bytes(b.mem.mem[BASE + 512 * SECTORS :])
    busy: list[tuple[Chain, range, bytes]] = []
    made = 0
    while made < count or busy:
        while made < count and len(busy) < 24:
            n = b.r.choice((1, 1, 2, 3, 8, 8, 16, 20))
            at = b.r.randrange(SECTORS - n + 1)
            area = range(at, at + n)
            if any(x.start < area.stop and area.start < x.stop for _, x, _ in busy):
                break
            made += 1
            q = b.r.randrange(4)
            here = slice(512 * at, 512 * (at + n))
            op = b.r.choice((IN, IN, IN, OUT, OUT, OUT, FLUSH, GET_ID, DISCARD, ZEROES, 99))
            if op == IN:
                busy.append((b.send(q, hdr(IN, at), 512 * n + 1), area, turn(store[here]) + OK))
            elif op == OUT:
                data = b.r.randbytes(512 * n)
                store[here] = turn(data)
                busy.append((b.send(q, hdr(OUT, at) + data, 1), area, OK))
            elif op == ZEROES:
                store[here] = turn(bytes(512 * n))
                busy.append((b.send(q, hdr(ZEROES) + seg(at, n, b.r.randrange(2)), 1), area, OK))
            elif op == DISCARD:
                busy.append((b.send(q, hdr(DISCARD) + seg(at, n), 1), area, OK))
            elif op == GET_ID:
                busy.append((b.send(q, hdr(GET_ID), 21), range(0), ID + OK))
            elif op == FLUSH:
                busy.append((b.send(q, hdr(FLUSH), 1), range(0), OK))
            else:
                wlen = b.r.choice((1, 2, 64, 65, 200))
                busy.append((b.send(q, hdr(99), wlen), range(0), bytes(wlen - 1) + UNSUPP))
        c, area, want = busy.pop(0)
        await b.done(c, limit=20000)
        assert c.response == want, f"{c.data[:16].hex()} {area}"
    assert disk(b) == store
    assert outside == (bytes(b.mem.mem[:BASE]), bytes(b.mem.mem[BASE + 512 * SECTORS :]))
    await until(dut, lambda: int(dut.idle_o.value) == 1)
    b.end()


@cocotb.test(timeout_time=3000, timeout_unit="us")
async def a_disk_like_any_other(dut):
    count = 100 if len(dut.rd) > 400 else 20
    await mixed(dut, 0.0, NONE, count)
    await mixed(dut, 0.3, BOARD, count)


@cocotb.test(timeout_time=3000, timeout_unit="us")
async def sectors_pass_through_user_logic(dut):
    await mixed(dut, 0.0, SLOT, 70)
    await mixed(dut, 0.3, SLOT, 70)


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def user_logic_is_told_the_sector(dut):
    """The header comes once a request, what comes back in its place is nobody's; a failing store and wrong responses change nothing about that."""
    for stall in (0.0, 0.3):
        bad = range(BASE + 512 * 1000, BASE + 512 * 1001)
        b = bench(dut, stall, fails=lambda a: a in bad)  # noqa: B023
        store = await begin(b, SLOT, header=1)
        wrong = {6: lambda m: m[64:], 5: lambda m: m[:40], 4: lambda m: m[:64], 3: lambda m: m + bytes(64)}

        def app(m: bytes) -> bytes:
            turn = len(b.tx) % 14 - 1  # noqa: B023
            return wrong[turn](m) if turn in wrong else b.r.randbytes(64) + turned(m[64:])  # noqa: B023

        b.app = app
        wants: list[tuple[int, int, int]] = []  # sector, to the store, bytes of data
        chains = []
        for i in range(40):
            at, n = 20 * i, b.r.choice((1, 2, 8, 9))
            op = b.r.choice((IN, OUT, ZEROES))
            if i == 30:
                op, at = IN, 998
            if op == IN:
                chains.append(b.send(i % 4, hdr(IN, at), 512 * n + 1))
            elif op == OUT:
                chains.append(b.send(i % 4, hdr(OUT, at) + b.r.randbytes(512 * n), 1))
            else:
                chains.append(b.send(i % 4, hdr(ZEROES) + seg(at, n), 1))
            wants.append((at, int(op != IN), 512 * n))
            if i % 5 == 0:
                chains.append(b.send(i % 4, hdr(FLUSH), 1))
                chains.append(b.send(i % 4, hdr(IN, SECTORS), 513))
        await b.done(*chains, limit=60000)
        assert len(b.tx) == len(wants)
        data = [c for c in chains if c.data[:16] not in (hdr(FLUSH), hdr(IN, SECTORS))]
        for i, ((_, m), (at, put, n), c) in enumerate(zip(b.tx, wants, data, strict=True)):
            fails = i % 14 in wrong or (at == 998 and n > 1024)
            assert m[:64] == (at | put << 63).to_bytes(64, "little"), i
            assert len(m) == 64 + n
            assert c.response[-1:] == (IOERR if fails else OK), i
            if put and not fails:
                assert disk(b)[512 * at :][:n] == turned(m[64:])
            elif not put and at != 998:
                assert m[64:] == store[512 * at :][:n]
                assert fails or c.response[:-1] == turned(m[64:])
            if i % 14 in (4, 5):
                assert put or c.response[:-1] == bytes(n)
                assert not put or disk(b)[512 * at :][:n] == store[512 * at :][:n]
        b.end()


@cocotb.test(timeout_time=500, timeout_unit="us")
async def a_flush_waits_for_the_host(dut):
    for stall in (0.0, 0.2):
        b = bench(dut, stall)
        await begin(b)
        b.dut.features.value = 1 << 9
        dut.flush_done.value = dut.flush_failed.value = 0
        b.set(Ctrl(kind=NONE, base=BASE, sectors=SECTORS, flush_limit=1))
        for failed in (0, 1, 0):
            data = b.r.randbytes(1024)
            before = b.send(0, hdr(OUT, 3) + data, 1)
            flush = b.send(1, hdr(FLUSH), 1)
            behind = [b.send(2, hdr(OUT, 9) + data, 1), b.send(3, hdr(IN, 9), 1025)]
            await until(dut, lambda: int(dut.flush.value) == 1, 2000)
            assert disk(b)[512 * 3 :][:1024] == data, "asked too early"
            await b.done(before, limit=20)  # its response is on its way
            assert before.response == OK
            await until(dut, lambda: disk(b)[512 * 9 :][:1024] == data, 2000)  # noqa: B023
            await ClockCycles(dut.clk_i, 50)
            assert int(dut.flush.value) == 1 and flush.response is None and int(dut.idle_o.value) == 0
            (dut.flush_failed if failed else dut.flush_done).value = 1
            await ClockCycles(dut.clk_i, 1)
            dut.flush_done.value = dut.flush_failed.value = 0
            await ClockCycles(dut.clk_i, 1)
            assert int(dut.flush.value) == 0
            await b.done(flush, *behind)
            assert flush.response == (IOERR if failed else OK)
            assert [c.response for c in behind] == [OK, data + OK]
        # What is wrong is answered at once, and so is everything when nothing lies behind the store.
        await b.done(b.send(0, hdr(FLUSH)[:15], 1))
        b.set(Ctrl(kind=NONE, base=BASE, sectors=SECTORS))
        flush = b.send(0, hdr(FLUSH), 1)
        await b.done(flush)
        assert flush.response == OK
        b.end()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_write_waits_for_the_host_if_the_driver_cannot_flush(dut):
    b = bench(dut)
    await begin(b)
    dut.flush_done.value = dut.flush_failed.value = 0
    b.set(Ctrl(kind=NONE, base=BASE, sectors=SECTORS, flush_limit=1))
    for request, response in (
        (hdr(OUT, 3) + b"y" * 512, OK),
        (hdr(ZEROES) + seg(3, 1), OK),
        (hdr(OUT, 3) + b"z" * 512, IOERR),
    ):
        read = b.send(1, hdr(IN, 77), 513)
        c = b.send(0, request, 1)
        await b.done(read)
        await until(dut, lambda: int(dut.flush.value) == 1, 500)
        await ClockCycles(dut.clk_i, 20)
        assert c.response is None
        (dut.flush_done if response == OK else dut.flush_failed).value = 1
        await ClockCycles(dut.clk_i, 1)
        dut.flush_done.value = dut.flush_failed.value = 0
        await b.done(c)
        assert c.response == response


@cocotb.test(timeout_time=500, timeout_unit="us")
async def wrong_requests_harm_nobody(dut):
    b = bench(dut, 0.1)
    store = await begin(b)
    last = SECTORS - 1
    wrong = [
        (b"", 1, IOERR),
        (b"\0", 1, IOERR),
        (hdr(IN)[:15], 513, IOERR),
        (hdr(IN), 1, IOERR),
        (hdr(IN), 2, IOERR),
        (hdr(IN), 512, IOERR),
        (hdr(IN), 514, IOERR),
        (hdr(IN) + b"x", 513, IOERR),
        (hdr(IN, SECTORS), 513, IOERR),
        (hdr(IN, last), 1025, IOERR),
        (hdr(IN, 1 << 63), 513, IOERR),
        (hdr(IN, (1 << 64) - 1), 513, IOERR),
        (hdr(IN, 1 << 40), 513, IOERR),
        (hdr(IN, (1 << 40) - 1), 513, IOERR),
        (hdr(OUT), 1, IOERR),
        (hdr(OUT) + bytes(511), 1, IOERR),
        (hdr(OUT) + bytes(513), 1, IOERR),
        (hdr(OUT, SECTORS) + bytes(512), 1, IOERR),
        (hdr(OUT, last) + bytes(1024), 1, IOERR),
        (hdr(OUT, (1 << 64) - 1) + bytes(1024), 1, IOERR),
        (hdr(GET_ID), 20, IOERR),
        (hdr(GET_ID), 1, IOERR),
        (hdr(DISCARD), 1, IOERR),
        (hdr(DISCARD) + seg(0, 1)[:15], 1, IOERR),
        (hdr(DISCARD) + seg(0, 1) * 2, 1, IOERR),
        (hdr(DISCARD) + seg(last, 2), 1, IOERR),
        (hdr(DISCARD) + seg(0, 0xFFFFFFFF), 1, IOERR),
        (hdr(DISCARD) + seg(0, 1, 1), 1, UNSUPP),
        (hdr(DISCARD) + seg(0, 1, 1 << 31), 1, UNSUPP),
        (hdr(ZEROES), 1, IOERR),
        (hdr(ZEROES) + seg(0, 1)[:1], 1, IOERR),
        (hdr(ZEROES) + seg(last, 2), 1, IOERR),
        (hdr(ZEROES) + seg((1 << 64) - 1, 2), 1, IOERR),
        (hdr(ZEROES) + seg(0, 8193), 1, IOERR),
        (hdr(ZEROES) + seg(0, 1, 2), 1, UNSUPP),
        (hdr(2), 1, UNSUPP),
        (hdr(0xFFFFFFFF) + bytes(3000), 200, UNSUPP),
        (hdr(ZEROES) + seg(5, 0), 1, OK),
    ]
    chains = []
    for data, wlen, status in wrong:
        chains.append((b.send(1, data, wlen), bytes(wlen - 1) + status))
        at = b.r.randrange(SECTORS)
        chains.append((b.send(1, hdr(IN, at), 513), bytes(store[512 * at :][:512]) + OK))
    # The status byte is the last one wherever that is.
    for n in (2, 64, 65, 100, 513):
        chains.append((b.send(2, hdr(FLUSH), n), bytes(n - 1) + OK))
        at = b.r.randrange(SECTORS)
        store[512 * at : 512 * at + 512] = b"y" * 512
        chains.append((b.send(2, hdr(OUT, at) + b"y" * 512, n), bytes(n - 1) + OK))
        chains.append((b.send(2, hdr(GET_ID), n + 21), ID + bytes(n) + OK))
    await b.done(*(c for c, _ in chains), limit=20000)
    for c, want in chains:
        assert c.response == want, f"{c.data[:32].hex()} {c.wlen}"
    assert disk(b) == store
    # These have no place for a status; whatever comes behind them is answered.
    assert not b.fails
    for i, (data, wlen) in enumerate(
        ((hdr(IN), 0), (b"", 0), (hdr(OUT) + bytes(1024), 0), (hdr(IN), 2**32 - 1))
    ):
        b.open[3].remove(b.send(3, data, wlen))
        await b.done(b.send(1, hdr(FLUSH), 1))
        assert b.fails == [3] * (i + 1)
    assert disk(b) == store


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_read_only_disk(dut):
    b = bench(dut)
    store = await begin(b, read_only=1)
    assert int(dut.withhold.value) == 0
    chains = [
        b.send(0, hdr(OUT) + bytes(512), 1),
        b.send(0, hdr(ZEROES) + seg(0, 1), 1),
        b.send(0, hdr(DISCARD) + seg(0, 1), 1),
        b.send(0, hdr(IN, 3), 513),
    ]
    await b.done(*chains)
    assert [c.response for c in chains] == [IOERR, IOERR, IOERR, bytes(store[1536:2048]) + OK]
    assert disk(b) == store
    b.set(Ctrl(kind=NONE, base=BASE, sectors=SECTORS))
    await ClockCycles(dut.clk_i, 2)
    assert int(dut.withhold.value) == 1 << 5


@cocotb.test(timeout_time=200, timeout_unit="us")
async def the_configuration_follows_the_disk(dut):
    b = bench(dut)
    await begin(b)
    raw = await b.config_bytes(0, 64)
    assert struct.unpack_from("<QII", raw) == (SECTORS, 0, 254)
    assert struct.unpack_from("<IBBHI", raw, 20) == (512, 3, 0, 8, 0)
    assert struct.unpack_from("<HIIIIIB", raw, 34) == (4, 1 << 22, 1, 1, 8192, 1, 0)
    assert raw[33:34] + raw[57:] == bytes(8), "padding, and fields of features not offered"
    assert b.changes == 0
    b.set(Ctrl(kind=NONE, base=BASE, sectors=1 << 33))
    await ClockCycles(dut.clk_i, 5)
    assert b.changes == 1
    assert await b.config_bytes(0, 8) == (1 << 33).to_bytes(8, "little")
    b.set(Ctrl(kind=NONE, base=BASE, sectors=0))
    c = b.send(0, hdr(IN), 513)
    await b.done(c)
    assert c.response == bytes(512) + IOERR


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def an_error_of_the_store_ends_its_request_only(dut):
    for kind in (NONE, SLOT):
        for stall in (0.0, 0.3):
            bad = range(BASE + 512 * 100, BASE + 512 * 101)
            b = bench(dut, stall, fails=lambda a: a in bad)  # noqa: B023
            store = await begin(b, kind)
            turn = turned if kind == SLOT else bytes
            chains = []
            for i in range(30):
                # Reads and writes that touch the bad sector at their beginning, middle and end; others between them.
                at = b.r.choice((100, 99, 93, 90, 100))
                n = b.r.choice((1, 2, 8, 12))
                hit = at <= 100 < at + n
                if i % 3 == 0:
                    chains.append((b.send(0, hdr(IN, at), 512 * n + 1), hit, None))
                elif i % 3 == 1:
                    chains.append((b.send(0, hdr(OUT, 100) + bytes(512 * n), 1), True, None))
                else:
                    at = 200 + 8 * i
                    want = turn(store[512 * at : 512 * (at + 3)])
                    chains.append((b.send(0, hdr(IN, at), 512 * 3 + 1), False, want))
                    data = b.r.randbytes(1024)
                    chains.append((b.send(0, hdr(OUT, at + 4) + data, 1), False, b""))
                    store[512 * (at + 4) : 512 * (at + 6)] = turn(data)
            await b.done(*(c for c, *_ in chains), limit=20000)
            for c, hit, want in chains:
                assert c.response[-1:] == (IOERR if hit else OK), f"{c.data[:16].hex()} {c.wlen}"
                assert len(c.response) == c.wlen
                assert want is None or c.response[:-1] == want
            assert disk(b)[512 * 200 :] == store[512 * 200 :]
            b.end()


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def user_logic_that_answers_wrong(dut):
    for stall in (0.0, 0.2):
        b = bench(dut, stall)
        store = await begin(b, SLOT)
        # What comes back for each message, by turns: right, one byte, a beat short, a byte short, a beat too long, far too long.
        odd = [
            lambda m: m,
            lambda m: m[:1],
            lambda m: m[:-64],
            lambda m: m[:-1],
            lambda m: m + bytes(64),
            lambda m: m + bytes(5000),
        ]
        turns = [0, 1, 0, 2, 3, 0, 4, 5, 5, 1, 0, 0]
        order: list[int] = []

        def app(m: bytes) -> bytes:
            order.append(turns[len(order) % len(turns)])  # noqa: B023
            return odd[order[-1]](m)  # noqa: B023

        b.app = app
        chains = []
        for i in range(48):
            at = 16 * i
            if b.r.random() < 0.5:
                chains.append((b.send(0, hdr(IN, at), 4097), at))
            else:
                chains.append((b.send(0, hdr(OUT, at) + b.r.randbytes(4096), 1), at))
        await b.done(*(c for c, _ in chains), limit=30000)
        for (c, at), turn in zip(chains, order, strict=True):
            assert c.response[-1:] == (IOERR if turn else OK), f"turn {turn}"
            old, now = store[512 * at :][:8192], disk(b)[512 * at :][:8192]
            if c.wlen > 1:
                assert now == old
                keep = {0: 4096, 1: 1, 2: 4032, 3: 4095}.get(turn, 4096)
                assert c.response[:-1] == bytes(old[:keep]).ljust(4096, b"\0")
            else:
                assert now[4096:] == old[4096:], "written beyond the request"
                if turn == 1:
                    assert now == old
                if turn == 0:
                    assert now[:4096] == c.data[16:]
        b.end()


@cocotb.test(timeout_time=500, timeout_unit="us")
async def requests_overlap(dut):
    """Large and small requests in a row over a slow store: a beat a cycle; the app in the path changes nothing.

    A request of 8 sectors is 64 beats. Beside them the engine reads four of its own: the header, a line of descriptors, the available
    index and, right behind the used index, the driver's wish for an interrupt.
    """
    for kind, header in ((NONE, 0), (SLOT, 0), (SLOT, 1)):
        for n, limit in ((32, 1.02), (8, 68 / 64), (1, 1.5)):
            b = bench(dut, 0.0, latency=100)
            await begin(b, kind, header=header)
            b.app = (lambda m: m) if kind == SLOT else None
            for op in (IN, OUT):
                b.wr_beats.clear()
                count = 10 if n > 8 else 20
                data = bytes(512 * n)
                chains = [
                    b.send(i % 4, hdr(op, i * n) + (data if op else b""), 1 if op else 512 * n + 1)
                    for i in range(count)
                ]
                await b.done(*chains, limit=20000)
                assert all(c.response[-1:] == OK for c in chains)
                beats = 8 * n * (count - 4)
                cycles = chains[-1].done - chains[3].done
                dut._log.info(
                    "%s of %d bytes, user side %d, header %d: %.3f cycles a beat",
                    "write" if op else "read",
                    512 * n,
                    kind,
                    header,
                    cycles / beats,
                )
                assert cycles <= limit * beats + header * (count - 4), (
                    f"op {op}, {n} sectors: {cycles} cycles for {beats} beats"
                )
            b.end()


@pytest.mark.parametrize("data_w", [512, pytest.param(64, marks=pytest.mark.long)])
def test_via_vdev_blk(data_w):
    run(
        "via_vdev_select_tb",
        __file__,
        parameters={"Fn": 2},
        defines={"VIA_DATA_W": data_w},
        sources=["rtl/virtio/via_virtio_pkg.sv", "rtl/vdev/via_vdev_pkg.sv"],
        testcase=None
        if data_w == 512
        else [
            "a_disk_like_any_other",
            "user_logic_is_told_the_sector",
            "wrong_requests_harm_nobody",
        ],
    )
