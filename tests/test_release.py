# SPDX-License-Identifier: Apache-2.0
"""The version in the files of a release."""

import datetime
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import release  # noqa: E402


def run(root: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools/release.py", "--root", root, *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that have the version."""
    for file in [file for file, _ in release.places(ROOT)] + [ROOT / release.CHANGELOG]:
        there = tmp_path / file.relative_to(ROOT)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, there)
    return tmp_path


def test_all_files_have_the_same_version():
    done = run(ROOT, "check")
    assert done.returncode == 0, done.stderr


def test_a_version_is_set_everywhere(copy: Path):
    """The change log keeps its text; the locks are what Cargo would write."""
    before = (copy / "CHANGELOG.md").read_text()
    done = run(copy, "set", "7.8.9")
    assert (done.returncode, done.stdout) == (0, "release: 7.8.9 in all files\n"), done.stderr
    heading = f"## Unreleased\n\n## 7.8.9 – {datetime.date.today()}\n"
    assert (copy / "CHANGELOG.md").read_text() == before.replace("## Unreleased\n", heading)
    assert tomllib.loads((copy / "Cargo.toml").read_text())["workspace"]["package"]["version"] == "7.8.9"
    assert tomllib.loads((copy / "python/pyproject.toml").read_text())["project"]["version"] == "7.8.9"
    members = {tomllib.loads(p.read_text())["package"]["name"] for p in ROOT.glob("host/*/Cargo.toml")}
    for lock in ("Cargo.lock", "fuzz/Cargo.lock"):
        packages = tomllib.loads((copy / lock).read_text())["package"]
        before_packages = tomllib.loads((ROOT / lock).read_text())["package"]
        changed = {new["name"] for new, old in zip(packages, before_packages, strict=True) if new != old}
        assert changed == members & {p["name"] for p in packages}


def test_a_file_with_another_version_is_named(copy: Path):
    for file, pattern in release.places(copy):
        name = file.relative_to(copy)
        if name == Path("Cargo.toml"):
            continue
        text = file.read_text()
        file.write_text(pattern.sub(r"\g<1>9.9.9", text, count=1))
        done = run(copy, "check")
        assert done.returncode == 1
        assert re.fullmatch(rf"release: error: {name} has 9\.9\.9, Cargo\.toml \S+\n", done.stderr)
        file.write_text(text)
    for wrong in ("0.0.1", "1.0", "v1.0.0"):
        assert "is not a version after" in run(copy, "set", wrong).stderr
    changelog = copy / "CHANGELOG.md"
    changelog.write_text("## Unreleased\n\n## 0.0.1 – 2026-01-01\n")
    assert "CHANGELOG.md is of 0.0.1" in run(copy, "check").stderr
    assert "nothing under `Unreleased`" in run(copy, "set", "7.8.9").stderr


def test_a_tag_has_the_version(copy: Path):
    git = ["git", "-C", str(copy), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    assert run(copy, "set", "7.8.9").returncode == 0
    for tag, code in (("v7.8.9", 0), ("v7.8.8", 1)):
        subprocess.run([*git, "tag", tag], check=True)
        assert run(copy, "check").returncode == code
