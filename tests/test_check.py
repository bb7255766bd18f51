# SPDX-License-Identifier: Apache-2.0
"""tools/check.py chooses commands for every kind of file."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check  # noqa: E402


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("rtl/mem/via_xbar_queue.sv", "tools/lint_rtl.sh via_xbar_queue"),
        ("rtl/mem/via_xbar_queue.sv", "rtl/mem/test_via_xbar.py"),
        ("rtl/regs/viaduct.rdl", "rtl/host"),
        ("apps/aes/app.toml", "./viaduct test aes"),
        ("apps/common/hash_tb.py", "apps -k sha256"),
        ("host/viaduct/src/lib.rs", "cargo test --release -q -p viaduct"),
        ("host/viaduct/src/lib.rs", "tools/module_circles.py"),
        ("host/viaduct/Cargo.toml", "cargo clippy"),
        ("fuzz/Cargo.toml", "tools/fuzz.py --short"),
        ("python/viaduct/_slots.py", "pytest -q python"),
        ("sim/link.cpp", "pytest -q sim"),
        ("sim/link.cpp", "clang-format"),
        ("formal/share.sv", "formal/run.py share"),
        ("docs/design.md", "tests/test_docs.py"),
        ("kernel/xdma/Makefile", "tools/lint_kernel.sh"),
        ("tools/guest.sh", "bash -n tools/guest.sh"),
        ("tests/test_check.py", "pytest -q tests/test_check.py"),
        ("rtl/mem/mem.core", "tests/test_cores.py"),
    ],
)
def test_a_file_has_its_checks(file: str, words: str):
    assert (ROOT / file).exists()
    assert any(words in " ".join(command) for command in check.steps([file])), check.steps([file])


def test_what_nothing_checks_is_named(capsys: pytest.CaptureFixture[str]):
    check.steps(["LICENSE"])
    assert "nothing here checks LICENSE" in capsys.readouterr().out


def test_every_file_of_a_kind_that_is_tested_has_a_check(capsys: pytest.CaptureFixture[str]):
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for folder in ("rtl", "sim", "python", "host", "fuzz", "examples", "formal", "synth", "docs", "kernel"):
        for file in done.stdout.splitlines():
            if file.startswith(f"{folder}/"):
                check.steps([file]) if folder != "rtl" or not file.endswith(".sv") else None
    assert "nothing here checks" not in capsys.readouterr().out


def test_the_commands_name_what_is_there():
    for _, commands in check.NEAR:
        for word in " ".join(commands).split():
            if "/" in word and "{" not in word and not word.startswith("/"):
                assert (ROOT / word).exists(), word
