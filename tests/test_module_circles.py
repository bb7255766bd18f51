# SPDX-License-Identifier: Apache-2.0
"""tools/module_circles.py: finds a circle among modules, and only a real one."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# `a` needs `low`, which it gets by way of a re-export; tests and comments need whatever they like.
GOOD = {
    "lib.rs": "mod a;\nmod part;\npub use part::low::Low;\n",
    "a.rs": "use crate::Low; // crate::b\npub struct A(Low);\n",
    "part/mod.rs": "pub mod low;\n",
    "part/low.rs": 'pub struct Low;\nconst S: &str = "crate::a";\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n',
}


def check(folder: Path, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    for name, text in files.items():
        path = folder / "thing/src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [sys.executable, ROOT / "tools/module_circles.py", folder]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_no_circle(tmp_path: Path):
    done = check(tmp_path, GOOD)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "use",
    [
        "use crate::a::A;\n",
        "use crate::{a::{A}, part};\n",
        "use super::super::a::A;\n",
        "fn f(_: &crate::a::A) {}\n",
    ],
)
def test_a_circle_is_found(tmp_path: Path, use: str):
    done = check(tmp_path, GOOD | {"part/low.rs": f"{use}pub struct Low;\n"})
    assert done.returncode == 1
    assert "thing: modules that need each other:" in done.stderr
    assert (
        "part/low.rs:1: part::low needs a\n" in done.stderr and "a.rs:1: a needs part::low\n" in done.stderr
    )


def test_a_circle_of_folders_is_found(tmp_path: Path):
    """Its modules do not need each other."""
    files = GOOD | {"part/high.rs": "use crate::a::A;\npub struct High(A);\n"}
    files["part/mod.rs"] += "mod high;\n"
    done = check(tmp_path, files)
    assert done.returncode == 1
    assert "part/high.rs:1: part needs a\n" in done.stderr and "a.rs:1: a needs part\n" in done.stderr


def test_no_crate_is_an_error(tmp_path: Path):
    command = [sys.executable, ROOT / "tools/module_circles.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "no crate in" in done.stderr


def test_a_circle_by_way_of_methods_is_found(tmp_path: Path):
    """Methods of one type in two modules that call each other's."""
    files = GOOD | {
        "lib.rs": GOOD["lib.rs"] + "mod one;\nmod two;\n",
        "one.rs": "use crate::Low;\nimpl Low {\n    pub fn first(&self) {\n        self.second();\n    }\n}\n",
        "two.rs": "use crate::Low;\nimpl Low {\n    pub fn second(&self) {}\n}\n",
    }
    assert check(tmp_path, files).returncode == 0
    files["two.rs"] = files["two.rs"].replace("{}\n", "{\n        self\n            .first();\n    }\n")
    done = check(tmp_path, files)
    assert done.returncode == 1
    assert "one.rs:4: one needs two\n" in done.stderr and "two.rs:4: two needs one\n" in done.stderr
