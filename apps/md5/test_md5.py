# SPDX-License-Identifier: Apache-2.0
"""App md5 against RFC 1321's examples and hashlib."""

import cocotb
import pytest
from app_tb import Message, Sink, Source, exchange, load_model, rng, run_app, start

model = load_model(__file__)

LANES = 16
CHUNK = 8192

# RFC 1321, A.5, but for the empty message, which no stream can be
EXAMPLES = {
    b"a": "0cc175b9c0f1b6a831c399e269772661",
    b"abc": "900150983cd24fb0d6963f7d28e17f72",
    b"message digest": "f96b697d7cb7938d525a2f31aaf161d0",
    b"abcdefghijklmnopqrstuvwxyz": "c3fcd3d76192e4007dfb496cca67e13b",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789": "d174ab98d277d9f5a5611c2c9f419d9f",
    b"1234567890" * 8: "57edf4a22be3c955ac49da2e2107b67a",
}


def digest(data: bytes) -> bytes:
    return model({"in": data}, {})["out"]


def block_cycles(width: int) -> int:
    return 65 + 64 // width


def by_lane(messages: list[tuple[int, bytes]]) -> list[list[tuple[int, bytes]]]:
    """What each lane has to put out, in order."""
    return [[(i, digest(d)) for i, d in messages if i % LANES == lane] for lane in range(LANES)]


def got_by_lane(got: list[Message]) -> list[list[tuple[int, bytes]]]:
    return [[(m.id, m.data) for m in got if m.id % LANES == lane] for lane in range(LANES)]


@cocotb.test(timeout_time=50, timeout_unit="us")
async def agrees_with_rfc_1321(dut):
    _, _, got = await exchange(dut, [(3, d) for d in EXAMPLES], 0, 0)
    assert [m.data.hex() for m in got] == list(EXAMPLES.values())


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def hashes_a_long_message(dut):
    data = rng().randbytes(200_000)
    source, _, got = await exchange(dut, [(0, data)], 0, 0)
    assert got[0].data == digest(data)
    # Mark and length need a block of their own after full ones.
    blocks = len(data) // 64 + 1
    took = got[0].last - source.cycles[0]
    assert took < blocks * block_cycles(source.width) + 10, "every block takes its cycles and no more"


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.5])
async def pads_every_length(dut, stall):
    r = rng()
    messages = [(r.randrange(256), r.randbytes(n)) for n in (*range(1, 131), 183, 184, 191, 192, 193, 1000)]
    r.shuffle(messages)
    _, _, got = await exchange(dut, messages, stall, stall)
    assert got_by_lane(got) == by_lane(messages)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def lanes_take_interleaved_messages(dut):
    r = rng()
    source, sink = Source(dut, 0.1), Sink(dut, 0.3)
    await start(dut)
    # Two messages for each lane; the second starts when the first has ended.
    todo = {
        lane: [(lane + LANES * k, r.randbytes(r.randrange(1, 3000))) for k in range(2)]
        for lane in range(LANES)
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
    assert got_by_lane(got) == by_lane(messages)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def lanes_work_at_once(dut):
    messages = [(lane, rng().randbytes(CHUNK)) for lane in range(LANES)]
    source, _, got = await exchange(dut, messages, 0, 0)
    assert got_by_lane(got) == by_lane(messages)
    took = max(m.last for m in got) - source.cycles[0]
    alone = (CHUNK // 64 + 1) * block_cycles(source.width)
    assert took < alone + len(source.cycles) + 20


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def busy_lasts_until_the_digest_stands_at_the_output(dut):
    source, sink = Source(dut), Sink(dut)
    await start(dut)
    assert not dut.busy_o.value
    await source.send(b"x" * 1000)
    assert dut.busy_o.value
    message = await sink.receive()
    assert message.data == digest(b"x" * 1000)
    assert not dut.busy_o.value


@pytest.mark.parametrize("data_w", [512, pytest.param(64, marks=pytest.mark.long)])
def test_md5(data_w):
    run_app(__file__, data_w)
