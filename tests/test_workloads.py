# SPDX-License-Identifier: Apache-2.0
"""The workloads of the FSRF paper (its Table 1) that are apps, on the card through the command line, each checked."""

import hashlib
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def write(path: Path, size: int) -> Path:
    path.write_bytes(hashlib.shake_256(path.name.encode()).digest(size))
    return path


def run(app: str, *args: object) -> dict:
    """The report of a run whose results equal the golden model's."""
    command = [str(ROOT / "viaduct"), "run", app, *map(str, args), "--check", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["check"]["ok"], report
    report["registers"] = {name: int(value, 16) for name, value in report["registers"].items()}
    return report


def test_gups_updates_a_table(tmp_path: Path):
    table = write(tmp_path / "table", 40_000)
    before = table.read_bytes()
    report = run("gups", "--out", f"mem=file:{table}", "--set", "updates=5000")
    assert table.read_bytes() != before and table.read_bytes()[32_768:] == before[32_768:]
    assert report["registers"]["errors"] == 0 and report["registers"]["done"] == 1


def test_gups_without_a_seed_says_so_in_its_registers(tmp_path: Path):
    table = write(tmp_path / "table", 4096)
    before = table.read_bytes()
    report = run("gups", "--out", f"mem=file:{table}", "--set", "seed=0")
    assert table.read_bytes() == before and report["registers"]["errors"] == 1
