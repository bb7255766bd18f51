# SPDX-License-Identifier: Apache-2.0
"""App keccak against FIPS 202's examples and hashlib."""

import cocotb
import pytest
from app_tb import exchange, load_model, run_app
from hash_tb import Hash

from via_tb import rng

model = load_model(__file__)
# Words of 64 bits enter one by one; wider beats faster than the rounds take blocks.
app = Hash(
    lanes=4,
    cycles=lambda width: 17 if width == 8 else 12,
    digest=lambda data: model({"in": data}, {})["out"],
    block=136,
)

# The examples for SHA3-256 that accompany FIPS 202, but for the empty message, which no stream can be: 24 and 448 bits, and 1600 bits 0xa3
EXAMPLES = {
    b"abc": "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532",
    b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq": (
        "41c0dba2a9d6240849100376a8235e2c82e1b9998a999e21db32dd97496d3376"
    ),
    b"\xa3" * 200: "79f38adec5c20307a98ef76e8324afbfd46cfd81b22e3973c65fa1bd9de31787",
}


@cocotb.test(timeout_time=50, timeout_unit="us")
async def agrees_with_fips_202(dut):
    await app.agrees(dut, EXAMPLES)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def hashes_a_long_message(dut):
    await app.long_message(dut, rng().randbytes(136 * 700))


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.5])
async def pads_every_length(dut, stall):
    await app.every_length(dut, stall)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def lanes_take_interleaved_messages(dut):
    await app.interleaved(dut)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def lanes_work_at_once(dut):
    await app.at_once(dut)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def short_messages_of_a_lane_follow_at_the_rate_of_blocks(dut):
    messages = [(1, rng().randbytes(n % 136 or 1)) for n in range(100)]
    _, _, got = await exchange(dut, messages, 0, 0)
    assert [(m.id, m.data) for m in got] == [(i, app.digest(d)) for i, d in messages]
    took = got[-1].last - got[0].last
    # The last block of a message of 64 bits a beat is filled up as fast as it is read.
    assert took <= app.cycles(len(got[0].data) if len(dut.in_i) > 100 else 8) * 99 + 4


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def busy_lasts_until_the_digest_stands_at_the_output(dut):
    await app.busy(dut)


@pytest.mark.parametrize("data_w", [512, *(pytest.param(w, marks=pytest.mark.long) for w in (64, 128))])
def test_keccak(data_w):
    run_app(__file__, data_w)
