# SPDX-License-Identifier: Apache-2.0
"""The checkers of ports: transfers by the rules pass, each rule fires when it is broken, and every port of every block has its checker."""

import re
import subprocess
from pathlib import Path

import pytest

import checkers
from via_model import build, held, short, tool, write

ROOT = Path(__file__).resolve().parents[2]

FOLDERS = [p for p in sorted((ROOT / "rtl").iterdir()) if p.is_dir()]
RULE = re.compile(r"\ba_(\w+) : ?\n? *assert", re.M)
AXI_RULES = RULE.findall((ROOT / "rtl/common/via_axi_checker.sv").read_text())
STRM_RULES = RULE.findall((ROOT / "rtl/common/via_strm_checker.sv").read_text())
HS_RULES = RULE.findall((ROOT / "rtl/common/via_hs_checker.sv").read_text())


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


@pytest.mark.parametrize("rule", [*AXI_RULES, *STRM_RULES, *HS_RULES])
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
    assert len(AXI_RULES) == 22 and len(STRM_RULES) == 4 and len(HS_RULES) == 2


SHELL = ROOT / "rtl/shell/via_shell.sv"
TOPS = [SHELL, ROOT / "rtl/rivals/via_rival.sv"]
MODULES = [checkers.parse(p) for p in sorted({p for top in TOPS for p in checkers.below(top, FOLDERS)})]
BLOCKS = [m for m in MODULES if m.name not in checkers.CHECKERS | checkers.WIRING]


def test_what_only_wires_holds_no_register():
    """Their ports have no checkers: those of the blocks inside are the same handshakes."""
    assert {m.name for m in MODULES} >= checkers.WIRING
    for name in checkers.WIRING:
        assert not re.search(r"\balways", (SHELL.parent / f"{name}.sv").read_text()), name


def test_every_port_of_every_block_is_watched():
    """Each handshake has a checker, or stands among the exceptions; and no exception is out of date."""
    text = "".join(checkers.binds(top, FOLDERS) for top in TOPS)
    bound = {
        (module, prefix or valid)
        for module, prefix, valid in re.findall(
            r"^bind (\w+) \w+ (?:#\(.*?\) )?u_(?:(\w*)check|hs_(\w+)) ", text, re.M
        )
    }
    everywhere: set[tuple[str, str]] = set()
    for module in BLOCKS:
        everywhere |= {(module.name, port.prefix) for port in checkers.checked(module)}
        everywhere |= {(module.name, port.valid) for port in checkers.handshakes(module)}
        payloads = {n for n, p in module.ports.items() if p.type in checkers.STRUCTS}
        found = {channel[0] for port in checkers.checked(module) for channel in port.channels.values()}
        # A payload without a handshake of its own: combinational helpers, and beats that go with another channel.
        assert payloads - found <= checkers.BARE.get(module.name, set()), module.name
    assert bound | set(checkers.EXEMPT) == everywhere
    assert not bound & set(checkers.EXEMPT)
    assert set(checkers.CUT) <= bound


def test_every_ready_belongs_to_a_handshake():
    """Read from the sources in another way: no port by the name of ready that no checker (or exception) knows of."""
    for module in BLOCKS:
        text = next(p for f in FOLDERS if (p := f / f"{module.name}.sv").exists()).read_text()
        head = re.sub(r"//.*", "", text[: text.index("\n);")])
        ports = re.findall(
            r"^ *(?:input|output)\b[^,\n]*?\b(\w+_n?[io])\b *(?:\[[^]]*\] *)*,? *$", head, re.M
        )
        assert ports == list(module.ports), module.name
        known = {ready for port in checkers.checked(module) for _, _, ready in port.channels.values()} | {
            port.ready for port in checkers.handshakes(module)
        }
        assert {p for p in ports if re.search(r"ready_[io]$", p)} <= known, module.name


def test_the_payload_is_what_is_named_like_the_handshake():
    """The rule, at ports that say it: siblings, another direction, a longer name, flat names, one for all of an array."""
    payload = {(m.name, h.valid): h.payload for m in BLOCKS for h in checkers.handshakes(m)}
    assert payload["via_dma", "cpl_valid_o"] == ["cpl_o", "cpl_slot_o"]
    assert payload["via_dma_copy", "job_valid_i"] == ["job_src_i", "job_dst_i", "job_len_i", "job_fill_i"]
    assert payload["via_move_queue", "cmd_valid_i"] == ["cmd_i"]
    assert payload["via_move_queue", "cmd_valid_o"] == ["cmd_o"]
    assert payload["via_shell", "msix_valid_o"] == ["msix_vector_o"]
    assert payload["via_shell", "fn_msix_valid_o"] == ["fn_msix_fn_o", "fn_msix_vector_o"]
    assert payload["via_csr", "axil_wvalid_i"] == ["axil_wdata_i", "axil_wstrb_i"]
    assert payload["via_dispatch", "mvi_cmd_valid_o"] == ["move_cmd_o"]
    assert payload["via_vio_edge", "m_valid_o"] == []


# What is changed at via_hs_ports, and the checker that says so.
CHANGES = {
    "one": r"u_hs_one_valid_i\.a_same",
    "one_side": r"u_hs_one_valid_i\.a_same",
    "one_valid": r"u_hs_one_valid_i\.a_stays",
    "vec": r"u_hs_vec_valid_i\.gen_port\[2\]\.u\.a_same",
    "vec_bit": r"u_hs_vec_valid_i\.gen_port\[1\]\.u\.a_same",
    "vec_all": r"u_hs_vec_valid_i\.gen_port\[\d\]\.u\.a_same",
    "vec_valid": r"u_hs_vec_valid_i\.gen_port\[2\]\.u\.a_stays",
    "from1": r"u_hs_from1_valid_i\.gen_port\[3\]\.u\.a_same",
    "from1_bit": r"u_hs_from1_valid_i\.gen_port\[2\]\.u\.a_same",
    "flat": r"u_hs_flat_valid_i\.gen_port\[1\]\.u\.a_same",
    "flat_valid": r"u_hs_flat_valid_i\.gen_port\[2\]\.u\.a_stays",
    "bare_valid": r"u_hs_bare_valid_i\.a_stays",
}


@pytest.fixture(scope="module")
def ports() -> Path:
    """A port of every kind with what tools/checkers.py binds to it."""
    top = "via_hs_ports_tb"
    out = ROOT / "build/tb" / top / f"V{top}"
    module = checkers.parse(ROOT / "rtl/common/tb/via_hs_ports.sv")
    text = "".join(checkers.handshake_wrapper(module, port) for port in checkers.handshakes(module))
    out.parent.mkdir(parents=True, exist_ok=True)
    bind = out.parent / "bind.sv"
    flags = "--binary --assert -Wall -Wno-DECLFILENAME -O1 --output-split 0 -CFLAGS -O0 -y rtl/common -y rtl/common/tb tools/lint.vlt"
    command = [str(tool("verilator")), *flags.split(), "-Mdir", short(out.parent), "--top-module", top]
    command += ["rtl/common/via_pkg.sv", f"rtl/common/tb/{top}.sv", short(bind)]
    with held(out.parent):
        write(bind, "/* verilator lint_off UNUSEDSIGNAL */\n" + text)
        build(out, f"V{top}", [command], [ROOT / "rtl/common", bind])
    return out


def test_what_may_change_may_change(ports):
    said = play(ports, "")
    assert "by the rules" in said and "Error" not in said


@pytest.mark.parametrize("change", CHANGES)
def test_the_checker_of_a_handshake_looks_at_all_of_it(ports, change):
    said = play(ports, change)
    assert "by the rules" not in said
    first = next((line for line in said.splitlines() if "Assertion failed" in line), said)
    assert re.search(CHANGES[change], first)
