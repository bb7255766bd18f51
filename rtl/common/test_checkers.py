# SPDX-License-Identifier: Apache-2.0
"""The checkers of ports: transfers by the rules pass, each rule fires when it is broken, and every port of every block has its checker."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from via_model import build, held, short, tool

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import checkers  # noqa: E402

FOLDERS = [p for p in sorted((ROOT / "rtl").iterdir()) if p.is_dir()]
RULE = re.compile(r"\ba_(\w+) : ?\n? *assert", re.M)
AXI_RULES = RULE.findall((ROOT / "rtl/common/via_axi_checker.sv").read_text())
STRM_RULES = RULE.findall((ROOT / "rtl/common/via_strm_checker.sv").read_text())


@pytest.fixture(scope="module")
def bench() -> Path:
    """The testbench, built once."""
    top = "via_checkers_tb"
    out = ROOT / "build/tb" / top / f"V{top}"
    flags = "--binary --assert -Wall -O1 --output-split 0 -CFLAGS -O0 -y rtl/common tools/lint.vlt"
    command = [str(tool("verilator")), *flags.split(), "-Mdir", short(out.parent), "--top-module", top]
    command += ["rtl/common/via_pkg.sv", f"rtl/common/tb/{top}.sv"]
    with held(out.parent):
        build(out, f"V{top}", [command], [ROOT / "rtl/common"])
    return out


def play(bench: Path, fault: str) -> str:
    done = subprocess.run([str(bench), f"+fault={fault}"], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def test_transfers_by_the_rules_pass(bench):
    said = play(bench, "")
    assert "by the rules" in said and "Error" not in said


@pytest.mark.parametrize("rule", [*AXI_RULES, *STRM_RULES])
def test_each_rule_fires(bench, rule):
    said = play(bench, rule)
    first = next((line for line in said.splitlines() if "Assertion failed" in line), said)
    assert re.search(rf"\.a_{rule}\b", first) and "by the rules" not in said


def test_data_ahead_of_its_address_is_compared_with_it(bench):
    said = play(bench, "w_early")
    assert re.search(r"a_w_last", said) and "by the rules" not in said


def test_ids_may_overtake_each_other_only_where_allowed(bench):
    said = play(bench, "overtakes")
    assert re.search(r"gen_order\[0\]\.u_axi\.\S*a_r_id", said) and "gen_order[1]" not in said


def test_every_rule_of_the_document_is_one():
    assert len(AXI_RULES) == 22 and len(STRM_RULES) == 4


def test_every_port_of_every_block_is_watched():
    """Each port of these types has a checker, or stands among the exceptions; and no exception is out of date."""
    text = checkers.binds(ROOT / "rtl/shell/via_shell.sv", FOLDERS)
    bound = set(re.findall(r"^bind (\w+) \w+ (?:#\(.*?\) )?u_(\w*)check ", text, re.M))
    everywhere: set[tuple[str, str]] = set()
    for path in checkers.below(ROOT / "rtl/shell/via_shell.sv", FOLDERS):
        module = checkers.parse(path)
        if module.name in checkers.CHECKERS:
            continue
        everywhere |= {(module.name, port.prefix) for port in checkers.checked(module)}
        payloads = {n for n, p in module.ports.items() if p.type != "logic"}
        found = {channel[0] for port in checkers.checked(module) for channel in port.channels.values()}
        # A payload without a handshake of its own: combinational helpers, and beats that go with another channel.
        assert payloads - found <= checkers.BARE.get(module.name, set()), module.name
    assert bound | set(checkers.EXEMPT) == everywhere
    assert not bound & set(checkers.EXEMPT)
