# SPDX-License-Identifier: Apache-2.0
"""Tests of the card's models without a shell: compiles tests/models_test.cpp once, runs each of its tests."""

import os
import random
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/tb/models"
INCLUDE = [f"-I{ROOT / 'sim'}", f"-I{ROOT / 'sim/include'}"]
# Everything that does not know the Verilated shell.
SOURCES = [
    ROOT / "sim" / name
    for name in ("bar.cpp", "board.cpp", "dram.cpp", "hostmap.cpp", "icap.cpp", "link.cpp", "sysmon.cpp")
]
TESTS = ROOT / "sim/tests"
NAMES = [
    line.split("(")[1].rstrip("),")
    for line in (TESTS / "models_test.cpp").read_text().splitlines()
    if line.startswith("    TEST(")
]


def newest(paths: list[Path]) -> float:
    return max(p.stat().st_mtime for p in paths)


def compile_to(out: Path, inputs: list[Path], command: list[str]) -> None:
    headers = list((ROOT / "sim").rglob("*.h"))
    if out.exists() and out.stat().st_mtime > newest([*inputs, *headers, Path(__file__)]):
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = out.with_suffix(f".{os.getpid()}.tmp")
    subprocess.run([*command, *INCLUDE, *map(str, inputs), "-o", str(fresh)], check=True)
    fresh.replace(out)


@pytest.fixture(scope="session")
def program() -> Path:
    out = BUILD / "models_test"
    sources = [TESTS / "models_test.cpp", *SOURCES]
    compile_to(
        out,
        sources,
        [
            "g++",
            "-std=c++20",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-format-zero-length",
            "-fsanitize=undefined",
        ],
    )
    compile_to(
        BUILD / "images/app/app.so", [TESTS / "toy_app.c"], ["gcc", "-shared", "-fPIC", "-Wall", "-Werror"]
    )
    other = BUILD / "images/other/other.so"
    other.parent.mkdir(parents=True, exist_ok=True)
    other.write_bytes(b"no object")
    return out


@pytest.mark.parametrize("name", NAMES)
def test_model(program: Path, name: str) -> None:
    seed = os.environ.get("VIA_SEED") or str(random.getrandbits(32))
    command = [str(program), str(BUILD / "images"), name, seed]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    print(done.stdout)
    assert done.returncode == 0, f"{name} failed with VIA_SEED={seed}:\n{done.stdout}"
    assert "runtime error" not in done.stdout
