# SPDX-License-Identifier: Apache-2.0
"""App md5 against RFC 1321's examples and hashlib."""

import cocotb
import pytest
from app_tb import load_model, run_app
from hash_tb import Hash

from via_tb import rng

model = load_model(__file__)
app = Hash(
    lanes=16, cycles=lambda width: 65 + 64 // width, digest=lambda data: model({"in": data}, {})["out"]
)

# RFC 1321, A.5, but for the empty message, which no stream can be
EXAMPLES = {
    b"a": "0cc175b9c0f1b6a831c399e269772661",
    b"abc": "900150983cd24fb0d6963f7d28e17f72",
    b"message digest": "f96b697d7cb7938d525a2f31aaf161d0",
    b"abcdefghijklmnopqrstuvwxyz": "c3fcd3d76192e4007dfb496cca67e13b",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789": "d174ab98d277d9f5a5611c2c9f419d9f",
    b"1234567890" * 8: "57edf4a22be3c955ac49da2e2107b67a",
}


@cocotb.test(timeout_time=50, timeout_unit="us")
async def agrees_with_rfc_1321(dut):
    await app.agrees(dut, EXAMPLES)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def hashes_a_long_message(dut):
    await app.long_message(dut, rng().randbytes(200_000))


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
def test_md5(data_w):
    run_app(__file__, data_w)
