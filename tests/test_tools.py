# SPDX-License-Identifier: Apache-2.0
"""Tools for the tests."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_what_was_not_tested_is_told_at_the_end(tmp_path: Path):
    """The reason of a skipped test is shown where a reader looks first, after the output of all targets."""
    make = tmp_path / "make"
    make.write_text(
        "#!/bin/sh\necho 'SKIPPED [3] test_vm.py:7: no guest to boot here: no mirror'; echo end of $1\n"
    )
    make.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [sys.executable, ROOT / "tools/lanes.py", "one two"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    *_, first, reason, _, _ = done.stdout.splitlines()
    assert first == "not tested in one:"
    assert reason == "  SKIPPED [3] test_vm.py:7: no guest to boot here: no mirror"


def test_a_guest_needs_no_home():
    """Nor does what it is made by: without HOME the cache is in that of the user."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")
    }
    command = [ROOT / "tools/guest.sh", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert "unbound" not in done.stderr, done.stderr
