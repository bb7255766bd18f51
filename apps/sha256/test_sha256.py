# SPDX-License-Identifier: Apache-2.0
"""App sha256 against FIPS 180-4's examples and hashlib."""

import cocotb
import pytest
from app_tb import load_model, run_app
from hash_tb import Hash

model = load_model(__file__)
app = Hash(
    lanes=16, cycles=lambda width: 65 + 64 // width, digest=lambda data: model({"in": data}, {})["out"]
)

# FIPS 180-4, the examples for SHA-256
EXAMPLES = {
    b"abc": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq": (
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
}
MILLION_A = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"


@cocotb.test(timeout_time=50, timeout_unit="us")
async def agrees_with_fips_180_4(dut):
    await app.agrees(dut, EXAMPLES)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def hashes_a_million_a(dut):
    data = b"a" * 1_000_000
    assert app.digest(data).hex() == MILLION_A
    await app.long_message(dut, data)


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
async def busy_lasts_until_the_digest_stands_at_the_output(dut):
    await app.busy(dut)


@pytest.mark.parametrize("data_w", [512, pytest.param(64, marks=pytest.mark.long)])
def test_sha256(data_w):
    run_app(__file__, data_w)
