# SPDX-License-Identifier: Apache-2.0
"""App sha256 against FIPS 180-4's examples and hashlib."""

import cocotb
import pytest
from app_tb import Message, Sink, Source, exchange, load_model, rng, run_app, start

model = load_model(__file__)

LANES = 8
CHUNK = 8192

# FIPS 180-4, the examples for SHA-256
EXAMPLES = {
    b"abc": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq": (
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
}
MILLION_A = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"


def digest(data: bytes) -> bytes:
    return model({"in": data}, {})["out"]


def block_cycles(width: int) -> int:
    return 33 + 64 // width


def by_lane(messages: list[tuple[int, bytes]]) -> list[list[tuple[int, bytes]]]:
    """What each lane has to put out, in order."""
    return [[(i, digest(d)) for i, d in messages if i % LANES == lane] for lane in range(LANES)]


def got_by_lane(got: list[Message]) -> list[list[tuple[int, bytes]]]:
    return [[(m.id, m.data) for m in got if m.id % LANES == lane] for lane in range(LANES)]


@cocotb.test(timeout_time=50, timeout_unit="us")
async def agrees_with_fips_180_4(dut):
    _, _, got = await exchange(dut, [(3, d) for d in EXAMPLES], 0, 0)
    assert [m.data.hex() for m in got] == list(EXAMPLES.values())


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def hashes_a_million_a(dut):
    source, _, got = await exchange(dut, [(0, b"a" * 1_000_000)], 0, 0)
    assert got[0].data.hex() == MILLION_A
    # The length takes a block of its own.
    blocks = 1_000_000 // 64 + 1
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
def test_sha256(data_w):
    run_app(__file__, data_w)
