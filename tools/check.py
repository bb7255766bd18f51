#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks changed files, in minutes: lint, the closest tests, one app end to end. `make test` checks everything.

    .venv/bin/python tools/check.py [FILE ...]

Without arguments it checks the files that differ from the last commit, or if none does, those of the last commit.

- RTL: format, Verilator and yosys for the changed modules; the tests of the two smallest blocks that contain a changed
 module. The others are named.
- Rust, Python, C: formatters and linters; `cargo test` of the changed crates.
- Everything else, and the closest tests of each folder: the table NEAR. What no command here checks is named.
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


# Files by their path, and the commands that check them; {file}, {name} (its stem) and {part} (the second folder of its path) are filled in, and
# a command that several files need runs once. Formatters, linters and tests of the RTL and of crates are added by `steps`.
NEAR: list[tuple[str, list[str]]] = [
    (r"apps/common/", [f"{sys.executable} -m pytest -q apps -k sha256"]),
    (r"apps/(?!common/)\w+/", ["./viaduct test {part}", f"{sys.executable} -m pytest -q apps/{{part}}"]),
    (r"rtl/common/\w+\.py$", [f"{sys.executable} -m pytest -q rtl/common"]),
    (r"rtl/regs/", ["make -s regs", f"{sys.executable} -m pytest -q rtl/host"]),
    (r"sim/", [f"{sys.executable} -m pytest -q sim"]),
    (r"python/", [f"{sys.executable} -m pytest -q python"]),
    (r"host/viaduct-capi/", [f"{sys.executable} -m pytest -q tests/test_c_api.py"]),
    (r"examples/", [f"{sys.executable} -m pytest -q tests/test_host_api.py"]),
    (r"formal/\w+\.(sv|sby)$", [f"{sys.executable} formal/run.py {{name}}"]),
    (
        r"fuzz/",
        ["cargo fmt --check --manifest-path fuzz/Cargo.toml", f"{sys.executable} tools/fuzz.py --short"],
    ),
    (r"synth/", [f"{sys.executable} -m pytest -q tests/test_timing.py"]),
    (r".*\.md$|docs/", [f"{sys.executable} -m pytest -q tests/test_docs.py"]),
    (r".*\.core$", [f"{sys.executable} -m pytest -q tests/test_cores.py"]),
    (r"tools/install\.sh$", [f"{sys.executable} -m pytest -q tests/test_install.py"]),
    (r".*\.sh$", ["bash -n {file}"]),
    (r"kernel/", ["tools/lint_kernel.sh"]),
    (r"(tests|rtl|apps)/.*test_\w+\.py$", [f"{sys.executable} -m pytest -q {{file}}"]),
]


def near(file: str) -> list[str]:
    """The commands of NEAR for a file."""
    path = Path(file)
    part = path.parts[1] if len(path.parts) > 2 else ""
    return [
        command.format(file=file, name=path.stem, part=part)
        for pattern, commands in NEAR
        if re.match(pattern, file)
        for command in commands
    ]


def steps(files: list[str]) -> list[list[str]]:
    """The commands that check these files."""
    todo: list[list[str]] = []
    there = [f for f in files if (ROOT / f).exists()]
    of = {kind: [f for f in there if f.endswith(kind)] for kind in (".sv", ".rs", ".py", ".c", ".cpp", ".h")}
    crates = sorted({Path(f).parts[1] for f in there if f.startswith("host/")})
    modules = {Path(f).stem for f in of[".sv"] if f.startswith("rtl/")}
    if of[".sv"]:
        todo += [
            ["verible-verilog-format", "--flagfile=tools/verible.flags", "--verify", f] for f in of[".sv"]
        ]
    if modules:
        todo.append(["tools/lint_rtl.sh", *sorted(modules)])
    if crates or any(Path(f).name in ("Cargo.toml", "Cargo.lock") for f in there):
        todo.append(["cargo", "fmt", "--check"])
        todo.append([sys.executable, "tools/module_circles.py"])
        todo.append(
            ["cargo", "clippy", "--release", "-q", "--workspace", "--all-targets", "--", "-D", "warnings"]
        )
        todo += [["cargo", "test", "--release", "-q", "-p", crate] for crate in crates]
    if of[".py"]:
        todo += [["ruff", "check", "-q", *of[".py"]], ["ruff", "format", "-q", "--check", *of[".py"]]]
        todo.append(["basedpyright", "-p", "pyproject.toml"])
    if c_files := [f for f in of[".c"] + of[".cpp"] + of[".h"] if not f.startswith("kernel/")]:
        todo.append(["clang-format", "--dry-run", "-Werror", *c_files])
    for file in there:
        todo += [c for command in near(file) if (c := command.split()) not in todo]
    tests = block_tests(modules) if modules else []
    if tests:
        chosen = [str(t.relative_to(ROOT)) for t in tests]
        todo.append([sys.executable, "-m", "pytest", "-q", *chosen[:NEAREST]])
        if chosen[NEAREST:]:
            print(f"check: left to `make test-rtl`, these contain it too: {' '.join(chosen[NEAREST:])}")
    if crates:
        print("check: left to `make test-host` and `make test-e2e`: crates that use these, and what users do")
    for file in there:
        if (
            not near(file)
            and not file.endswith((".sv", ".rs", ".py", ".c", ".cpp", ".h"))
            and not file.startswith("host/")
        ):
            print(f"check: nothing here checks {file}: `make test` does")
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
