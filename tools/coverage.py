#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints line and toggle coverage of the shell's RTL and of the apps', per module.

    .venv/bin/python tools/coverage.py [DAT ...]

Without arguments it builds the card with coverage, runs the random-traffic test on it (which uses this card, and apps built
likewise, since VIADUCT_COVERAGE is set), the library's tests of the disk and of a hostile driver of the network function
(VIADUCT_BUILD), and reads their results in build/coverage. With arguments it reads those files. This card also has a checker
at every port of every block (tools/checkers.py), and a violated rule ends the run; tests/test_broken_rule.py tests that. A
point counts once, however many instances hit it. Toggles count every bit of every signal in both directions: high bits of
addresses and lengths that a small test does not need, and constant bits, are never covered.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build/coverage"
POINT = re.compile(r"^C '(.*)' (\d+)$", re.S)


def points(path: Path):
    """Yields (file, line, kind, comment, count) of every point of one Verilator coverage file."""
    for raw in path.read_text(errors="replace").splitlines():
        match = POINT.match(raw)
        if not match:
            continue
        keys = dict(field.split("\x02", 1) for field in match[1].split("\x01") if "\x02" in field)
        kind = keys.get("page", "").split("/")[0].removeprefix("v_")
        yield keys.get("f", ""), int(keys.get("l", 0)), kind, keys.get("o", ""), int(match[2])


def group_of(file: str) -> str:
    """The group of a source file; empty if it is generated."""
    parts = Path(file).parts
    if "rtl" not in parts:
        return ""
    return "apps" if "apps" in parts[: parts.index("rtl")] else "shell"


def collect() -> list[Path]:
    """Builds the instrumented card and runs random traffic and the tests of the functions on it."""
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob("*.dat"):
        old.unlink()
    env = os.environ | {"VIADUCT_COVERAGE": str(OUT), "VIADUCT_BUILD": str(OUT / "build")}

    def run(*command: str | Path) -> None:
        subprocess.run(command, check=True, cwd=ROOT, env=env)

    run(sys.executable, ROOT / "tools/verilate.py", "card", "--coverage")
    run(sys.executable, "-m", "pytest", "-q", "tests/test_random_traffic.py", "tests/test_broken_rule.py")
    # A build folder with the instrumented card and apps.
    run(ROOT / "viaduct", "build", "--coverage", "pass")
    shutil.rmtree(OUT / "build", ignore_errors=True)
    (OUT / "build/card").mkdir(parents=True)
    (OUT / "build/apps").symlink_to(ROOT / "build/apps-coverage")
    # This one has functions, whatever it is opened for.
    for name in ("libviaduct_card.so", "libviaduct_card_functions.so"):
        (OUT / "build/card" / name).symlink_to(ROOT / "build/card-coverage/libviaduct_card.so")
    tests = ["cargo", "test", "--release", "--quiet", "-p", "viaduct"]
    run(*tests, "--test", "disk")
    # One type of function represents the others: on this card each takes minutes. `make test-checked` tests all.
    run(*tests, "--test", "hostile", "--", "::net")
    return sorted(OUT.glob("*.dat"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Line and toggle coverage of the shell's RTL.")
    parser.add_argument("dat", nargs="*", type=Path)
    files = parser.parse_args().dat or collect()
    if not files:
        sys.exit("coverage: the run left no coverage file")

    hits: dict[tuple, int] = defaultdict(int)
    for path in files:
        for file, line, kind, comment, count in points(path):
            if group_of(file) and kind in ("line", "branch", "toggle"):
                hits[(file, line, "toggle" if kind == "toggle" else "line", comment)] += count

    # Rows by group and module; the sum of a group has the empty name and comes last.
    table: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(
        lambda: {"line": [0, 0], "toggle": [0, 0]}
    )
    for (file, _, kind, _), count in hits.items():
        for module in (Path(file).stem, ""):
            cell = table[group_of(file), module][kind]
            cell[0] += count > 0
            cell[1] += 1

    print(f"{'module':<24}{'lines':>16}{'toggles':>20}")
    for row in sorted(table, key=lambda r: (r[0], r[1] == "", r[1])):
        cells = []
        for kind in ("line", "toggle"):
            hit, total = table[row][kind]
            cells.append(f"{hit}/{total} {100 * hit / total:5.1f} %" if total else "-")
        print(f"{row[1] or f'all {row[0]}':<24}{cells[0]:>16}{cells[1]:>20}")


if __name__ == "__main__":
    main()
