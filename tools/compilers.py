# SPDX-License-Identifier: Apache-2.0
"""Which C++ compiler makes the models, those of the card and those of block tests, and whether headers that it has compiled can be used."""

import os
import shutil
from pathlib import Path

CLANG = "clang++-19"  # as in host/viaduct-build/src/stamp.rs and tools/setup.sh


def cxx() -> str:
    """The environment's, with its arguments, or Clang, whose models are a sixth faster and take three quarters of the time to compile, or GCC."""
    return os.environ.get("CXX") or (CLANG if shutil.which(CLANG) else "g++")


def stands(compiled: Path, included: Path, folder: Path = Path()) -> bool:
    """Whether a precompiled header is there, and none of the files has changed since that it includes; the compiler has listed them in
    `included`, relative to the folder. Clang refuses it otherwise, for example after an update of the system."""
    try:
        made = compiled.stat().st_mtime_ns
        files = included.read_text().replace("\\\n", " ").split(":", 1)[1].split()
        return all((folder / name).stat().st_ctime_ns <= made for name in files)
    except (OSError, IndexError):
        return False
