# SPDX-License-Identifier: Apache-2.0
"""App test_28147: known answers for its golden model; its RTL against the model, with random pauses on both sides."""

import cocotb
from app_tb import exchange, load_model, rng, run_app

model = load_model(__file__)


def test_known_answers() -> None:
    assert model({"in": b"\x00\x01\xff"}, {"mask": 0x0F}) == {"out": b"\x0f\x0e\xf0"}
    assert model({"in": b"as it is"}, {"mask": 0}) == {"out": b"as it is"}


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.4])
async def matches_the_model(dut, stall):
    r = rng()
    dut.mask_i.value = mask = r.randrange(256)
    messages = [(r.randrange(256), r.randbytes(r.choice((1, 7, 8, 9, 200)))) for _ in range(40)]
    _, _, got = await exchange(dut, messages, stall, stall)
    expected = [(i, model({"in": d}, {"mask": mask})["out"]) for i, d in messages]
    assert [(m.id, m.data) for m in got] == expected


def test_rtl() -> None:
    run_app(__file__, data_w=64)
