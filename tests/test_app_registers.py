# SPDX-License-Identifier: Apache-2.0
"""The register file generated for an app with every type of register, at its ports."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "rtl/common"), str(ROOT / "tools")]
from via_tb import rng, run, start  # noqa: E402

MANIFEST = """
[app]
name = "all_kinds"
version = "0.1.0"
summary = "Registers of every kind"
top = "all_kinds_app"
[[register]]
name = "wide"
width = 100
access = "rw"
reset = "0x123456789abcdef0fedcba987"
[[register]]
name = "told"
width = 40
access = "rw"
strobe = true
[[register]]
name = "small"
width = 5
access = "rw"
reset = 9
[[register]]
name = "seen"
width = 64
access = "ro"
[[register]]
name = "bit"
width = 1
access = "ro"
[[register]]
name = "kick"
width = 3
access = "pulse"
"""
WIDE, TOLD, SMALL, SEEN, BIT, KICK, END = 0x00, 0x10, 0x18, 0x1C, 0x24, 0x28, 0x2C


async def access(dut, addr: int, data: int | None = None) -> tuple[int, bool, list[tuple[int, int]]]:
    """One access in the shell's protocol. Returns data, error, and the values of (kick, told_we) meanwhile."""
    dut.reg_valid_i.value, dut.reg_addr_i.value = 1, addr
    dut.reg_write_i.value, dut.reg_wdata_i.value = int(data is not None), data or 0
    responses, pulses = [], []
    hold = rng().randrange(1, 5)
    while hold:
        await FallingEdge(dut.clk_i)
        pulses.append((int(dut.kick_o.value), int(dut.told_we_o.value)))
        if dut.reg_rvalid_o.value:
            responses.append((int(dut.reg_rdata_o.value), bool(dut.reg_err_o.value)))
        # The shell takes some cycles to see the response and to deassert the request.
        hold -= bool(responses)
    dut.reg_valid_i.value = 0
    for _ in range(3):
        await FallingEdge(dut.clk_i)
        pulses.append((int(dut.kick_o.value), int(dut.told_we_o.value)))
        assert not dut.reg_rvalid_o.value
    assert len(responses) == 1, "one response to one request"
    return *responses[0], pulses


async def begin(dut) -> None:
    for name in ("reg_valid_i", "reg_write_i", "reg_addr_i", "reg_wdata_i", "seen_i", "bit_i"):
        getattr(dut, name).value = 0
    await start(dut)
    await FallingEdge(dut.clk_i)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_values(dut):
    await begin(dut)
    assert int(dut.wide_o.value) == 0x123456789ABCDEF0FEDCBA987
    assert (int(dut.told_o.value), int(dut.small_o.value), int(dut.kick_o.value)) == (0, 9, 0)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def random_accesses_match_a_model(dut):
    await begin(dut)
    r = random.Random(rng().random())
    value = {WIDE: 0x123456789ABCDEF0FEDCBA987, TOLD: 0, SMALL: 9}
    width = {WIDE: 100, TOLD: 40, SMALL: 5, SEEN: 64, BIT: 1}
    for _ in range(300):
        base = r.choice(list(width))
        words = (width[base] + 31) // 32
        if base in value and r.random() < 0.5:
            new = r.getrandbits(width[base])
            for k in range(words):
                assert (
                    int(getattr(dut, {WIDE: "wide_o", TOLD: "told_o", SMALL: "small_o"}[base]).value)
                    == value[base]
                )
                _, err, pulses = await access(dut, base + 4 * k, new >> 32 * k & 0xFFFFFFFF)
                told = [p[1] for p in pulses]
                assert (
                    not err
                    and sum(told) == (base == TOLD and k == words - 1)
                    and not any(p[0] for p in pulses)
                )
            value[base] = new
        else:
            if base in (SEEN, BIT):
                value_now = r.getrandbits(width[base])
                getattr(dut, {SEEN: "seen_i", BIT: "bit_i"}[base]).value = value_now
            else:
                value_now = value[base]
            got = 0
            for k in range(words):
                data, err, _ = await access(dut, base + 4 * k)
                assert not err
                got |= data << 32 * k
                if base == SEEN:
                    # The following words belong to the value whose lowest word was read.
                    dut.seen_i.value = r.getrandbits(64)
            assert got == value_now, hex(base)
        for base, name in ((WIDE, "wide_o"), (TOLD, "told_o"), (SMALL, "small_o")):
            assert int(getattr(dut, name).value) == value[base]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_pulse_lasts_one_cycle(dut):
    await begin(dut)
    for data in (5, 1, 0):
        _, err, pulses = await access(dut, KICK, data)
        assert not err and [p[0] for p in pulses if p[0]] == [data][: bool(data)]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def wrong_accesses_are_answered_with_an_error(dut):
    await begin(dut)
    for addr, data in [
        (END, None),
        (END, 1),
        (0xFFC, None),
        (0xFFC, 0),
        (SEEN, 1),
        (SEEN + 4, 1),
        (BIT, 0),
        (WIDE + 1, None),
    ]:
        got, err, _ = await access(dut, addr, data)
        assert err and got == 0, hex(addr)
    assert int(dut.wide_o.value) == 0x123456789ABCDEF0FEDCBA987
    got, err, _ = await access(dut, SMALL)
    assert (got, err) == (9, False)
    await RisingEdge(dut.clk_i)


def test_registers():
    project = ROOT / "build/test-registers"
    app = project / "apps/all_kinds"
    (app / "rtl").mkdir(parents=True, exist_ok=True)
    (app / "app.toml").write_text(MANIFEST)
    (app / "rtl/all_kinds_app.sv").write_text("")
    for shared in ("tools", ".venv"):
        if not (project / shared).is_symlink():
            (project / shared).symlink_to(ROOT / shared)
    command = [ROOT / "viaduct", "build", "--generate", "all_kinds"]
    subprocess.run(
        command, check=True, env=os.environ | {"VIADUCT_ROOT": str(project)}, stdout=subprocess.DEVNULL
    )
    # via_tb looks for modules in rtl/ next to the test, and for the test by its module name.
    shutil.copy(project / "build/apps/all_kinds/gen/via_app_regs.sv", app / "rtl")
    run("via_app_regs", str(app / Path(__file__).name))
