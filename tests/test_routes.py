# SPDX-License-Identifier: Apache-2.0
"""`--then`: apps in sequence on the card give what the same programs give one after the other on the host."""

import hashlib
import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
VIADUCT = str(ROOT / "viaduct")
PATIENCE = 300.0  # longest time for anything, also on a slow machine
KEY = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
IV = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
AES = ["aes", "--set", f"key={KEY}", "--set", f"iv={IV}"]


def run(*args: object, code: int = 0, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [VIADUCT, "run", *map(str, args)], capture_output=True, input=stdin, timeout=PATIENCE, cwd=ROOT
    )
    assert done.returncode == code, done.stderr.decode()
    return done


def encrypted(data: bytes) -> bytes:
    """What openssl makes of it."""
    command = ["openssl", "enc", "-aes-256-ctr", "-K", KEY, "-iv", IV]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize("size", [1, 64, 4096, 100_003])
def test_a_file_is_encrypted_and_hashed_without_leaving_the_card(
    tmp_path: Path, rng: random.Random, size: int
):
    data = rng.randbytes(size)
    (tmp_path / "a").write_bytes(data)
    done = run(*AES, "--in", f"file:{tmp_path / 'a'}", "--then", "sha256", "--check")
    digest = hashlib.sha256(encrypted(data)).hexdigest()
    assert done.stdout.decode() == f"{digest}  {tmp_path / 'a'}\n"
    assert b"check: all 32 bytes equal the golden model's" in done.stderr


def test_two_encryptions_cancel_each_other_with_the_same_cycles_in_every_run(
    tmp_path: Path, rng: random.Random
):
    data = rng.randbytes(300_000)
    (tmp_path / "a").write_bytes(data)
    args = [*AES, "--in", f"file:{tmp_path / 'a'}", "--out", f"file:{tmp_path / 'b'}", "--json"]
    args += ["--then", "pass", "--then", f"aes key={KEY} iv={IV}"]
    results = []
    for _ in range(2):
        results.append(json.loads(run(*args).stdout))
        assert (tmp_path / "b").read_bytes() == data
    assert results[0]["app"] == "aes | pass | aes" and results[0]["cycles"] == results[1]["cycles"]
    assert (results[0]["bytes_in"], results[0]["bytes_out"]) == (300_000, 300_000)


def test_a_pipeline_runs_through_apps_at_its_own_speed(rng: random.Random):
    data = rng.randbytes(70_000)
    done = run(*AES, "--in", "-", "--out", "-", "--then", "pass", stdin=data)
    assert done.stdout == encrypted(data)


def test_an_output_of_another_length_is_the_next_apps_input(
    tmp_path: Path, rng: random.Random, golden: Callable[[str], ModuleType]
):
    data = rng.randbytes(50_000)
    (tmp_path / "a").write_bytes(data)
    args = ["sha256", "--in", f"file:{tmp_path / 'a'}", "--then", "pass", "--then", "md5", "--check"]
    done = run(*args)
    assert done.stdout.split()[0].decode() == hashlib.md5(hashlib.sha256(data).digest()).hexdigest()


@pytest.mark.parametrize(
    ("args", "code", "why"),
    [
        (["pass", "--in", "host:64", "--out", "host:64", "--then", "nosuch"], 2, "nosuch"),
        (["pass", "--in", "host:64", "--out", "host:64", "--then", ""], 2, "write the name of an app"),
        (["pass", "--in", "host:64", "--out", "host:64", "--then", "aes key"], 2, "write REGISTER=VALUE"),
        (
            ["pass", "--in", "host:64", "--out", "host:64", "--then", "aes sky=1"],
            2,
            "there are key, iv, sectors",
        ),
        (["pass", "--in", "host:64", "--out", "host:64", "--then", "gups"], 2, "cannot follow"),
        (["gups", "--in", "mem=host:64", "--then", "pass", "--out", "host:64"], 2, "memory port"),
        (["pass", "--in", "host:64", "--then", "pass"], 2, "output out has no route"),
        (["pass", "--in", "host:0", "--out", "host:64", "--then", "pass"], 1, "host:0"),
        (["pass", "--in", "host:64", "--out", "host:64", *["--then", "pass"] * 4], 1, "in use"),
        (["udp_echo", "--in", "virtio:net", "--out", "virtio:net", "--then", "pass"], 2, "leave --then out"),
    ],
)
def test_what_cannot_work_is_refused_with_the_cause(args: list[str], code: int, why: str):
    done = run(*args, code=code)
    assert why in done.stderr.decode(), done.stderr.decode()
