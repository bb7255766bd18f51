#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks changed files, in minutes: lint, the closest tests, one app end to end. `make test` checks everything.

    .venv/bin/python tools/check.py [FILE ...]

Without arguments it checks the files that differ from the last commit, or if none does, those of the last commit.

- RTL: format, Verilator and yosys for the changed modules; the tests of the two smallest blocks that contain a changed
 module. The others are named.
- Rust, Python, C: formatters and linters; `cargo test` of the changed crates; changed test files.
- Always: app `pass` on the card against its golden model.

Exit status 1 if anything failed; the remaining checks still run.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import checkers

ROOT = Path(__file__).resolve().parent.parent
NEAREST = 2  # tests of blocks that are run for changed RTL


def git(*args: str) -> list[str]:
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"check: git {' '.join(args)}: {done.stderr.strip()}; name the files that were changed")
    return done.stdout.splitlines()


def changed() -> list[str]:
    """Files that differ from the last commit, including new ones; those of the last commit if there are none."""
    files = [*git("diff", "--name-only", "HEAD"), *git("ls-files", "--others", "--exclude-standard")]
    return files or git("diff", "--name-only", "HEAD~1")


def block_tests(modules: set[str]) -> list[Path]:
    """Tests of blocks that contain one of these modules, the smallest block first."""
    folders = [p for p in sorted((ROOT / "rtl").rglob("*")) if p.is_dir()]
    files = {p.stem: p for folder in folders for p in folder.glob("*.sv")}
    found: list[tuple[int, Path]] = []
    for test in sorted(ROOT.glob("rtl/**/test_*.py")):
        # A test names its testbench, and a testbench instantiates the block.
        words = set(re.findall(r"\bvia_\w+", test.read_text()))
        held = {p.stem for w in words & files.keys() for p in checkers.below(files[w], folders)}
        if held & modules:
            found.append((len(held), test))
    return [test for _, test in sorted(found)]


def steps(files: list[str]) -> list[list[str]]:
    """The commands that check these files."""
    todo: list[list[str]] = []
    there = [f for f in files if (ROOT / f).exists()]
    of = {kind: [f for f in there if f.endswith(kind)] for kind in (".sv", ".rs", ".py", ".c", ".cpp", ".h")}
    modules = {Path(f).stem for f in of[".sv"] if f.startswith("rtl/")}
    if modules:
        todo.append(["tools/lint_rtl.sh", *sorted(modules)])
    if of[".rs"]:
        crates = sorted({Path(f).parts[1] for f in of[".rs"] if f.startswith("host/")})
        chosen = [arg for crate in crates for arg in ("-p", crate)] or ["--workspace"]
        todo.append(["cargo", "fmt", "--check"])
        todo.append(["cargo", "clippy", "--release", "-q", *chosen, "--all-targets", "--", "-D", "warnings"])
        todo.append(["cargo", "test", "--release", "-q", *chosen])
    if of[".py"]:
        todo += [["ruff", "check", "-q", *of[".py"]], ["ruff", "format", "-q", "--check", *of[".py"]]]
        todo.append(["basedpyright", "-p", "pyproject.toml"])
    if c_files := [f for f in of[".c"] + of[".cpp"] + of[".h"] if not f.startswith("kernel/")]:
        todo.append(["clang-format", "--dry-run", "-Werror", *c_files])
    tests = [ROOT / f for f in of[".py"] if Path(f).name.startswith("test_")]
    near = block_tests(modules) if modules else []
    if modules or any(f.endswith(".core") for f in files):
        tests = sorted({*tests, ROOT / "tests/test_cores.py"})
    tests += [t for t in near[:NEAREST] if t not in tests]
    if tests:
        todo.append([sys.executable, "-m", "pytest", "-q", *(str(t.relative_to(ROOT)) for t in tests)])
    if near[NEAREST:]:
        left = " ".join(str(t.relative_to(ROOT)) for t in near[NEAREST:])
        print(f"check: these contain it too, and are left to `make test-rtl`: {left}")
    return [*todo, ["./viaduct", "test", "pass"]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="changed files, relative to the project's folder")
    files = parser.parse_args().files or changed()
    print(f"check: {len(files)} files: {' '.join(files[:8])}{' …' if len(files) > 8 else ''}", flush=True)
    failed: list[str] = []
    env = os.environ | {"PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}"}
    for command in steps(files):
        begun = time.monotonic()
        status = subprocess.run(command, cwd=ROOT, env=env, check=False).returncode
        line = " ".join(command)
        print(
            f"check: {'passed' if status == 0 else 'FAILED'} {time.monotonic() - begun:4.0f} s  {line}",
            flush=True,
        )
        failed += [line] if status else []
    if failed:
        sys.exit("check: failed: " + "; ".join(failed))


if __name__ == "__main__":
    main()
