# SPDX-License-Identifier: Apache-2.0
"""The simulated card in parts (tools/parts.py) against the card as one model: equal cycles and equal results for the same work."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 1800


PLAIN, FUNCTIONS = "libviaduct_card", "libviaduct_card_functions"


def whole(folder: Path, *names: str) -> Path:
    """A project like this one, whose cards are one model each."""
    root = folder / "whole"
    root.mkdir()
    for entry in ROOT.iterdir():
        if entry.name != "build":
            (root / entry.name).symlink_to(entry)
    (root / "build/card").mkdir(parents=True)
    for entry in (ROOT / "build").iterdir():
        if entry.name != "card":
            (root / "build" / entry.name).symlink_to(entry)
    for name in names:
        make = [ROOT / ".venv/bin/python", "tools/verilate.py", "card", "--trace"]
        make += ["--functions"] if name == FUNCTIONS else []
        done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        card = ROOT / f"build/card-trace/{name}.so"
        (root / f"build/card/{name}.so").symlink_to(card)
        # So that it is taken for what this project would build.
        stamp = json.loads((ROOT / f"build/card/{name}.verilated/stamp.json").read_text())
        (root / f"build/card/{name}.verilated").mkdir()
        (root / f"build/card/{name}.verilated/stamp.json").write_text(
            json.dumps(stamp | {"out": hashlib.sha256(card.read_bytes()).hexdigest()})
        )
    return root


def said(root: Path, *command: str | Path, check: bool = False) -> str:
    env = os.environ | {"VIADUCT_ROOT": str(root)} | ({"VIADUCT_SIM_CHECK": "1"} if check else {})
    done = subprocess.run(
        [ROOT / "viaduct", *command],
        cwd=root,
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Verilating" not in done.stdout + done.stderr, "another card was built"
    return done.stdout


def compare(whole: Path, *benches: str) -> None:
    for bench in benches:
        figures = json.loads(said(ROOT, "bench", bench, "--quick", "--json"))
        assert len(figures) > 1
        assert json.loads(said(whole, "bench", bench, "--quick", "--json")) == figures


@pytest.mark.long
def test_figures_are_those_of_the_card_in_one_piece(tmp_path: Path):
    """They count cycles of the card, and every payload is checked. The card in one piece is that of `viaduct wave`."""
    compare(whole(tmp_path, PLAIN), "mem", "apps")


@pytest.mark.long
def test_figures_of_functions_are_those_of_the_card_in_one_piece(tmp_path: Path):
    compare(whole(tmp_path, PLAIN, FUNCTIONS), "dma", "virtio")


def test_parts_are_still_when_they_say_so(tmp_path: Path):
    """Every part at every edge: no output depends on an input of the same cycle, and none changes at an edge that would be skipped."""
    data = tmp_path / "in"
    data.write_bytes(bytes(range(256)) * 40)
    said(ROOT, "run", "pass", "--in", f"file:{data}", "--out", f"file:{tmp_path / 'out'}", check=True)
    assert (tmp_path / "out").read_bytes() == data.read_bytes()
    said(ROOT, "bench", "virtio", "--quick", check=True)
