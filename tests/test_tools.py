# SPDX-License-Identifier: Apache-2.0
"""Tools for the tests."""

import argparse
import os
import pwd
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import verilate  # noqa: E402

import compilers  # noqa: E402


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
    bare = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    command = [ROOT / "tools/guest.sh", "--check"]
    homes = ({}, {"HOME": pwd.getpwuid(os.getuid()).pw_dir})
    without, at_home = (
        subprocess.run(command, capture_output=True, text=True, env=bare | home, check=False)
        for home in homes
    )
    # Whether or not everything is there.
    assert (without.returncode, without.stdout, without.stderr) == (
        at_home.returncode,
        at_home.stdout,
        at_home.stderr,
    )
    assert "dir=" in without.stdout or "not there yet" in without.stderr


def test_a_header_is_not_written_again_once_it_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Clang refuses one that is younger than its precompiled form: a card needs other levels than an app that was built before it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["verilate.py", "rival"])
    made: list[Path] = []

    def compile_all(commands: list[tuple[list[str], str, Path]]) -> None:
        for command, _, out in commands:
            if "-MF" in command:
                Path(command[command.index("-MF") + 1]).write_text(f"header: {command[-1]}\n")
            out.touch()
            made.append(out)

    monkeypatch.setattr(verilate.TOOLS, "run_all", compile_all)
    names = ("trace", "coverage", "assert", "whole", "functions", "portable")
    fixed = dict.fromkeys(names, False) | {"out": None, "name": None, "channels": None, "define": []}
    build = verilate.Build(argparse.Namespace(kind="rival", **fixed))
    build.runtime({"-O0", "-O1"})
    first = {path: path.stat().st_mtime_ns for path in Path().glob("build/**/prelude.h")}
    build.runtime({"-O0", "-O1", "-O3"})
    assert len(first) == 2 and all(path.stat().st_mtime_ns == time for path, time in first.items())
    assert sorted(path.parent.name for path in made if path.suffix == ".gch") == ["O0", "O1", "O3"]


def test_headers_of_the_system_that_have_changed_are_noticed(tmp_path: Path):
    """Not by their dates: an update brings those of its package, not that of today."""
    system, included, compiled = (tmp_path / name for name in ("system.h", "prelude.d", "prelude.h.gch"))
    system.write_text("#pragma once\n")
    included.write_text(f"prelude.h.gch: \\\n {system}\n")
    assert not compilers.stands(compiled, included)
    compiled.touch()
    assert compilers.stands(compiled, included)
    time.sleep(0.02)
    os.utime(system, (1000, 1000))
    assert not compilers.stands(compiled, included)
