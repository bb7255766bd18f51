# SPDX-License-Identifier: Apache-2.0
"""A card with checkers stops when a rule of a port is violated, and names it. Runs where such a card is built: `make checked`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(
    not (os.environ.get("VIADUCT_CHECKED") or os.environ.get("VIADUCT_COVERAGE")),
    reason="needs a card with checkers: `make checked`",
)

PROGRAM = """
import viaduct
with viaduct.open("sim") as card, card.load("pass") as slot:
    assert bytes(slot.run(b"x" * 100000)) == b"x" * 100000
print("nothing was wrong")
"""


def test_a_broken_rule_ends_the_program_and_names_rule_and_port(tmp_path: Path):
    """The model responds to a write that was not requested, in the middle of a run."""
    folder = tmp_path / "dat"
    folder.mkdir()
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    if os.environ.get("VIADUCT_COVERAGE"):
        env["VIADUCT_COVERAGE"] = str(folder)
    for fault in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=ROOT,
            env=env | {"VIADUCT_SIM_FAULT": fault},
            capture_output=True,
            text=True,
            timeout=120,
        )
        if fault == "0":
            assert done.returncode == 0 and done.stdout == "nothing was wrong\n", done.stderr
            continue
        assert done.returncode == 1 and done.stdout == ""
        lines = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith("error: the card broke a rule of its RTL and was stopped: ")
        # The port, a description of the rule, and the location in the sources.
        assert ".u_host_check." in lines[0] and ".a_b_whole: " in lines[0]
        assert "B without a write all of which was taken (rtl/common/via_axi_checker.sv:" in lines[0]
