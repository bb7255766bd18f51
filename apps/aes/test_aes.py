# SPDX-License-Identifier: Apache-2.0
"""App aes against NIST's vectors and OpenSSL."""

from itertools import pairwise

import cocotb
import pytest
from app_tb import Sink, Source, exchange, load_model, rng, run_app, start
from cocotb.triggers import RisingEdge

model = load_model(__file__)

LATENCY = 16
REKEY = 2  # cycles without input between messages under different keys
SCHEDULE = 16

# NIST SP 800-38A, F.5.5
KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
IV = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
PLAIN = bytes.fromhex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
CIPHER = bytes.fromhex(
    "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
    "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
)


async def set_key(dut, key: bytes) -> None:
    """Writes the key register: value and strobe come in one cycle, as from the generated registers."""
    dut.key_i.value = int.from_bytes(key, "little")
    dut.key_we_i.value = 1
    await RisingEdge(dut.clk_i)
    dut.key_we_i.value = 0


def set_iv(dut, iv: bytes) -> None:
    dut.iv_i.value = int.from_bytes(iv, "little")


def expect(data: bytes, key: bytes, iv: bytes) -> bytes:
    registers = {"key": int.from_bytes(key, "little"), "iv": int.from_bytes(iv, "little")}
    return model({"in": data}, registers)["out"]


def preset(dut, key: bytes, iv: bytes, sectors: int = 0) -> None:
    """Key and iv as if written long ago."""
    dut.sectors_i.value = sectors
    dut.key_i.value = int.from_bytes(key, "little")
    dut.key_we_i.value = 0
    set_iv(dut, iv)


@cocotb.test(timeout_time=20, timeout_unit="us")
async def agrees_with_nist_sp800_38a(dut):
    preset(dut, KEY, IV)
    _, _, got = await exchange(dut, [(5, PLAIN), (6, CIPHER), (7, PLAIN[:37])], 0, 0)
    assert [(m.id, m.data) for m in got] == [(5, CIPHER), (6, PLAIN), (7, CIPHER[:37])]


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall_in=[0.0, 0.4], stall_out=[0.0, 0.4])
async def agrees_with_openssl(dut, stall_in, stall_out):
    r = rng()
    key, iv = r.randbytes(32), r.randbytes(16)
    preset(dut, key, iv)
    sizes = (1, 15, 16, 17, 63, 64, 65, 5000)
    messages = [(r.randrange(256), r.randbytes(r.choice(sizes))) for _ in range(30)]
    source, sink, got = await exchange(dut, messages, stall_in, stall_out)
    assert [(m.id, m.data) for m in got] == [(i, expect(d, key, iv)) for i, d in messages]
    if not stall_out:
        assert sink.cycles == [c + LATENCY for c in source.cycles], "an idle output adds no wait"
        if not stall_in:
            assert source.cycles[-1] - source.cycles[0] == len(source.cycles) - 1, "one beat a cycle"


@cocotb.test(timeout_time=20, timeout_unit="us")
@cocotb.parametrize(bits=[8, 32, 64, 128])
async def the_counter_carries(dut, bits):
    iv = (rng().getrandbits(128) | (1 << bits) - 1).to_bytes(16, "big")
    preset(dut, KEY, iv)
    data = rng().randbytes(640)
    _, _, got = await exchange(dut, [(0, data)], 0, 0)
    assert got[0].data == expect(data, KEY, iv)


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(stall=[0.0, 0.3])
async def a_new_key_or_iv_holds_from_the_next_message_on(dut, stall):
    r = rng()
    keys, ivs = [r.randbytes(32) for _ in range(12)], [r.randbytes(16) for _ in range(12)]
    half = 256
    messages = [r.randbytes(half + r.choice((1, 16, 100, 2000))) for _ in keys]
    preset(dut, keys[0], ivs[0])
    source, sink = Source(dut, stall), Sink(dut, stall)
    await start(dut)
    results = []

    async def collect():
        for _ in keys:
            results.append(await sink.receive())

    collector = cocotb.start_soon(collect())
    first, last = [], []
    for i, data in enumerate(messages):
        await source.send(data[:half], i, last=False)
        first.append(source.cycles[-half // source.width])
        # In the middle of message i, with beats of it in the rounds.
        if i + 1 < len(keys):
            cocotb.start_soon(set_key(dut, keys[i + 1]))
            set_iv(dut, ivs[i + 1])
        await source.send(data[half:], i)
        last.append(source.cycles[-1])
    await collector
    assert [m.data for m in results] == [expect(*x) for x in zip(messages, keys, ivs, strict=True)]
    if not stall:
        # A message shorter than the schedule makes the next one wait for its end.
        bubbles = [b - a - 1 for a, b in zip(last[:-1], first[1:], strict=True)]
        beats = [-(-len(m) // source.width) for m in messages[:-1]]
        assert [b for b, n in zip(bubbles, beats, strict=True) if n > SCHEDULE] == [
            REKEY for n in beats if n > SCHEDULE
        ]
        assert max(bubbles) <= SCHEDULE


def header(sector: int, rest: bytes = bytes(56)) -> bytes:
    """What the block device sends ahead of a request; only the sector counts."""
    return sector.to_bytes(8, "little") + rest


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(stall=[0.0, 0.3])
async def a_disk_reads_back_however_it_is_cut(dut, stall):
    r = rng()
    key, iv = r.randbytes(32), r.randbytes(16)
    preset(dut, key, iv, sectors=1)
    disk = r.randbytes(512 * 24)
    base = r.choice((0, 5, 2**32 - 3, 2**40 - 30))
    counter = (int.from_bytes(iv, "big") + 32 * base) % 2**128
    secret = expect(disk, key, counter.to_bytes(16, "big"))
    cuts = [0, *sorted(r.sample(range(1, 24), 7)), 24]
    pieces = list(pairwise(cuts))
    r.shuffle(pieces)
    messages = []
    for a, b in pieces:
        # Bit 63 says which way the data goes; the rest of the header is the sender's.
        mark = r.getrandbits(1) << 63 | r.getrandbits(23) << 40
        messages.append((0, header(base + a | mark, r.randbytes(56)) + disk[512 * a : 512 * b]))
    source, _, got = await exchange(dut, messages, stall, stall)
    assert [m.data[:64] for m in got] == [data[:64] for _, data in messages]
    assert [m.data[64:] for m in got] == [secret[512 * a : 512 * b] for a, b in pieces]
    registers = {k: int.from_bytes(v, "little") for k, v in (("key", key), ("iv", iv))} | {"sectors": 1}
    assert [m.data for m in got] == [model({"in": data}, registers)["out"] for _, data in messages]
    if not stall:
        beats = sum(-(-len(data) // source.width) for _, data in messages)
        assert source.cycles[-1] - source.cycles[0] == beats - 1, "one beat a cycle"


@cocotb.test(timeout_time=50, timeout_unit="us")
async def a_cut_header_passes_as_it_is(dut):
    preset(dut, KEY, IV, sectors=1)
    messages = []
    for n in (64, 1, 17, 63):
        messages += [(0, header(7, rng().randbytes(56))[:n]), (1, header(2) + PLAIN)]
    _, _, got = await exchange(dut, messages, 0, 0)
    later = (int.from_bytes(IV, "big") + 64).to_bytes(16, "big")
    wants = [m if i % 2 == 0 else m[:64] + expect(PLAIN, KEY, later) for i, (_, m) in enumerate(messages)]
    assert [m.data for m in got] == wants


@pytest.mark.parametrize("data_w", [512, pytest.param(128, marks=pytest.mark.long)])
def test_aes(data_w):
    run_app(__file__, data_w)
