# SPDX-License-Identifier: Apache-2.0
"""What a user does with ./viaduct: the ordinary things, and what wrong input is answered with."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
KEY = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
IV = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"


def viaduct(*args: object, timeout: float = 300, **kwargs) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "viaduct"), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=ROOT, **kwargs)


def ok(*args: object, **kwargs) -> str:
    done = viaduct(*args, **kwargs)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fails(code: int, words: str, *args: object, **kwargs) -> None:
    """The command ends with this exit code and one line that holds these words."""
    done = viaduct(*args, **kwargs)
    assert done.returncode == code, (done.returncode, done.stderr)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and words in errors[0], done.stderr
    assert "panicked" not in done.stderr


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(hashlib.shake_256(b"data").digest(10_000))
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of its own, with the real tools and no apps."""
    root = tmp_path / "project"
    (root / "apps").mkdir(parents=True)
    for shared in ("tools", "rtl", "sim", ".venv"):
        (root / shared).symlink_to(ROOT / shared)
    return root


def env(root: Path) -> dict[str, str]:
    return os.environ | {"VIADUCT_ROOT": str(root)}


# ---------------------------------------------------------------- looking around


def test_ls_names_every_app():
    apps = {app["name"]: app for app in json.loads(ok("ls", "--json"))["apps"]}
    assert set(apps) == {p.parent.name for p in (ROOT / "apps").glob("*/app.toml")}
    text = ok("ls")
    assert all(name in text and apps[name]["summary"] in text for name in apps)


def test_info_tells_ports_and_registers():
    aes = json.loads(ok("info", "aes", "--json"))
    assert [s["name"] for s in aes["stream_in"]] == ["in"]
    assert {r["name"]: (r["width"], r["required"]) for r in aes["registers"]} == {
        "key": (256, True),
        "iv": (128, True),
    }
    assert "must be given" in ok("info", "aes")


def test_ls_survives_a_broken_app(project: Path):
    ok("new", "good", env=env(project))
    ok("new", "bad", env=env(project))
    (project / "apps/bad/app.toml").write_text('[app]\nname = "bad"\nnonsense\n')
    text = ok("ls", env=env(project))
    assert "Passes bytes on" in text and "apps/bad/app.toml:3:" in text
    fails(2, "app.toml:3:", "info", "bad", env=env(project))


def test_works_in_any_folder_of_a_project(project: Path):
    ok("new", "here", env=env(project))
    command = [str(ROOT / "viaduct"), "ls"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=project / "apps/here", check=True)
    assert done.stdout.startswith("here ")


# ---------------------------------------------------------------- wrong input: one line, the right exit code


def test_usage_errors(data: Path, tmp_path: Path):
    out = f"file:{tmp_path / 'out'}"
    source = f"file:{data}"
    for words, args in [
        ("did you mean sha256?", ["run", "sha265", "--in", source]),
        ('no app named "zzz"; there are', ["run", "zzz"]),
        ("no app named", ["info", "nope"]),
        ("no app named", ["build", "nope"]),
        ("no app named", ["test", "nope"]),
        ("input in gets nothing; add --in file:", ["run", "pass", "--out", out]),
        ("output out goes nowhere; add --out file:", ["run", "pass", "--in", source]),
        ('has no port "im"; did you mean in?', ["run", "pass", "--in", f"im={source}", "--out", out]),
        ("two routes to port in", ["run", "pass", "--in", source, "--in", source, "--out", out]),
        ("two routes to port out", ["run", "pass", "--in", source, "--out", out, "--out", f"out={out}2"]),
        (
            "no such register; did you mean amount?",
            ["run", "inc", "--in", source, "--out", out, "--set", "amuont=1"],
        ),
        ('"many" is not a number', ["run", "inc", "--in", source, "--out", out, "--set", "amount=many"]),
        ("does not fit 32 bits", ["run", "inc", "--in", source, "--out", out, "--set", "amount=0x100000000"]),
        (
            "given twice",
            ["run", "inc", "--in", source, "--out", out, "--set", "amount=1", "--set", "amount=2"],
        ),
        ("REGISTER=VALUE", ["run", "inc", "--in", source, "--out", out, "--set", "amount"]),
        ("register key: must be given; add --set key=", ["run", "aes", "--in", source, "--out", out]),
        (
            "31 bytes given, it holds 32",
            ["run", "aes", "--in", source, "--out", out, "--set", f"key={KEY[2:]}"],
        ),
        ("is a directory", ["run", "pass", "--in", f"file:{tmp_path}", "--out", out]),
        ("write [PORT=]file:PATH", ["run", "pass", "--in", str(data), "--out", out]),
        ("disk:a", ["run", "pass", "--in", "disk:a", "--out", out]),
        ("write sim or unix:PATH", ["run", "pass", "--in", source, "--out", out, "--card", "pci"]),
        ("invalid value '0'", ["run", "pass", "--in", source, "--out", out, "--timeout", "0"]),
        ("invalid value '-1'", ["run", "pass", "--in", source, "--out", out, "--slot=-1"]),
        ("unexpected argument", ["run", "pass", "--nonsense"]),
        ("unrecognized subcommand", ["rnu"]),
        ("cannot be the name of an app", ["new", "Not-A-Name"]),
        ("cannot be the name of an app", ["new", "../escape"]),
        ("apps/pass exists", ["new", "pass"]),
    ]:
        fails(2, words, *args)
    assert not (tmp_path / "out").exists(), "nothing is written before all is understood"


def test_missing_and_unreadable_files(data: Path, tmp_path: Path):
    out = f"file:{tmp_path / 'out'}"
    fails(1, "No such file or directory", "run", "pass", "--in", f"file:{tmp_path / 'absent'}", "--out", out)
    fails(
        1,
        "card --socket",
        "run",
        "pass",
        "--in",
        f"file:{data}",
        "--out",
        out,
        "--card",
        f"unix:{tmp_path / 's'}",
    )


def test_outside_of_any_project(tmp_path: Path):
    fails(1, "is not in a Viaduct checkout", "ls", env=env(tmp_path))


def test_doctor_says_what_is_wrong(project: Path):
    ok("new", "unbuilt", env=env(project))
    done = viaduct("doctor", "--json", env=env(project))
    assert done.returncode == 1
    findings = {f["what"]: f for f in json.loads(done.stdout)["findings"]}
    assert findings["verilator"]["ok"] and findings["g++"]["ok"]
    assert findings["app unbuilt"]["remedy"] == "run `viaduct build unbuilt`"
    assert findings["simulated card"]["remedy"] == "run `make card`"
    (project / ".venv").unlink()
    text = viaduct("doctor", env=env(project)).stdout
    assert "WRONG verilator" in text and "run `make setup`" in text


# ---------------------------------------------------------------- building


def test_errors_in_the_rtl_are_shown(project: Path):
    ok("new", "broken", env=env(project))
    source = project / "apps/broken/rtl/broken_app.sv"
    source.write_text(source.read_text().replace("in_i.data ^", "in_i.dta ^"))
    done = viaduct("build", "broken", env=env(project))
    assert done.returncode == 1 and "broken_app.sv:" in done.stderr and "dta" in done.stderr
    assert not (project / "build/apps/broken/broken.via").exists()
