# SPDX-License-Identifier: Apache-2.0
"""The programs in examples/, which the documents show, against OpenSSL and models."""

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
RELEASE = ROOT / "target/release"
KEY = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
IV = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"


def run(command: list[object], **kwargs) -> str:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=600, cwd=ROOT, **kwargs
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def example(language: str, name: str = "encrypt") -> Path:
    """The example in that language; the page shows it as it is."""
    path = ROOT / "examples" / f"{name}.{ {'rust': 'rs', 'c': 'c', 'python': 'py'}[language] }"
    pages = [(ROOT / "docs" / page).read_text() for page in ("host-api.md", "daemon.md")]
    blocks = [
        text for page in pages for text in re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)
    ]
    assert path.read_text().split("\n", 1)[1] in blocks, f"{path} is not what the documents show"
    assert len(blocks) == len(list(path.parent.glob(f"*{path.suffix}")))
    return path


def rust(folder: Path, name: str = "encrypt") -> list[object]:
    run(["make", "host"])
    names = ["viaduct", "viaduct_build", "viaduct_sim", "viaductd"]
    externs = [arg for name in names for arg in ("--extern", f"{name}={RELEASE}/lib{name}.rlib")]
    deps = f"dependency={RELEASE}/deps"
    run(["rustc", "--edition", "2024", "-L", deps, *externs, "-o", folder / "rust", example("rust", name)])
    return [folder / "rust"]


def c(folder: Path, name: str = "encrypt", standard: str = "c99") -> list[object]:
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "host/viaduct-capi/include"]
    link = ["-L", RELEASE, f"-Wl,-rpath,{RELEASE}", "-lviaduct"]
    run(["cc", *flags, example("c", name), *link, "-o", folder / "c"])
    return [folder / "c"]


def python(folder: Path, name: str = "encrypt") -> list[object]:
    return [sys.executable, example("python", name)]


@pytest.mark.parametrize("build", [rust, c, python])
def test_example_encrypts_as_openssl_does(build, tmp_path: Path):
    source, target, expected = tmp_path / "source", tmp_path / "target", tmp_path / "expected"
    source.write_bytes(hashlib.shake_256(b"source").digest(100_003))
    run(["openssl", "enc", "-aes-256-ctr", "-K", KEY, "-iv", IV, "-in", source, "-out", expected])
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    said = run([*build(tmp_path), KEY, IV, source, target], env=env)
    assert target.read_bytes() == expected.read_bytes()
    assert re.fullmatch(r"100003 bytes, [1-9]\d+ cycles\n", said)


def a_table(path: Path, updates: int) -> bytes:
    """Writes a table for app gups to this file; the same after so many updates of RandomAccess."""
    path.write_bytes(hashlib.shake_256(b"table").digest(64 << 10))
    words, x = np.frombuffer(path.read_bytes(), np.uint64).copy(), 1
    for _ in range(updates):
        x = (x << 1 ^ (7 if x >> 63 else 0)) & 2**64 - 1
        words[x % len(words)] ^= np.uint64(x)
    return words.tobytes()


@pytest.mark.parametrize("build", [c, python])
def test_example_updates_a_file_through_a_mapping(build, tmp_path: Path):
    table, updates = tmp_path / "table", 3000
    expected = a_table(table, updates)
    before = table.read_bytes()
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    said = run([*build(tmp_path, "updates"), table, updates], env=env)
    assert table.read_bytes() == expected
    if build is c:
        assert re.fullmatch(r"[1-9]\d+ cycles, 16 pages loaded, 16 written\n", said)
    else:
        changed = np.count_nonzero(np.frombuffer(expected, np.uint64) != np.frombuffer(before, np.uint64))
        assert re.fullmatch(rf"[1-9]\d+ cycles, {changed} words changed\n32 pages loaded, 16 written\n", said)


def test_example_shares_a_card_with_others(tmp_path: Path):
    table, socket = tmp_path / "table", tmp_path / "cards"
    expected = a_table(table, 3000)
    tenant = rust(tmp_path, "tenant")
    with subprocess.Popen(
        [RELEASE / "viaductd", "--socket", socket], stderr=subprocess.DEVNULL, cwd=ROOT
    ) as daemon:
        try:
            end = time.monotonic() + 60
            while not socket.exists():
                assert daemon.poll() is None and time.monotonic() < end
                time.sleep(0.05)
            assert run([*tenant, socket, table, 3000]) == "0 errors\n"
        finally:
            daemon.terminate()
        assert daemon.wait(60) == 0
    assert table.read_bytes() == expected


@pytest.mark.parametrize("words", [1, 1000, 100_000])
def test_listing_2_of_the_driver_paper_increments_on_the_card(tmp_path: Path, words: int):
    assert run([*c(tmp_path, "increment", "c11"), words]) == f"{words} words, 0 wrong\n"
