# SPDX-License-Identifier: Apache-2.0
"""Which C++ compiler makes the models, those of the card and those of block tests, and what it finds on this machine."""

import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

CLANG = "clang++-19"  # as in host/viaduct-build/src/stamp.rs and tools/setup.sh
PRELUDE = '#include "verilated.h"\n#include "verilated_dpi.h"\n'  # what every file of a model includes


def cxx() -> str:
    """The environment's, with its arguments, or Clang, whose models are a sixth faster and take three quarters of the time to compile, or GCC."""
    return os.environ.get("CXX") or (CLANG if shutil.which(CLANG) else "g++")


@functools.cache
def headers(verilator: Path) -> str:
    """Digest of names, sizes and dates of all that Verilator's headers, in this folder, include: Clang refuses a precompiled header once the
    system has other ones."""
    command = [
        *cxx().split(),
        "-std=c++20",
        "-M",
        "-isystem",
        str(verilator),
        "-isystem",
        str(verilator / "vltstd"),
    ]
    done = subprocess.run(
        [*command, "-xc++", "-"], input=PRELUDE, capture_output=True, text=True, check=False
    )
    paths = [Path(name) for name in done.stdout.replace("\\\n", " ").split()[1:]]
    found = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths if path.exists()]
    return hashlib.sha256(repr(found).encode()).hexdigest()
