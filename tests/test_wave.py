# SPDX-License-Identifier: Apache-2.0
"""`viaduct wave`: the files contain the requested cycles, and the run is correct."""

import struct
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PERIOD_PS = 4000  # gen3x16: 250 MHz


def fst_times(path: Path) -> tuple[int, int]:
    """First and last time in an FST file, in its unit: after the block's type and length."""
    head = path.read_bytes()[:25]
    kind, length, start, end = struct.unpack(">BQQQ", head)
    assert kind == 0 and length == 329, f"{path.name} does not begin with an FST header"
    return start, end


@pytest.mark.long  # the card for waves is one model, which takes minutes to compile
def test_wave_of_chosen_cycles(tmp_path: Path):
    data = tmp_path / "in"
    data.write_bytes(bytes(range(256)) * 40)
    waves = tmp_path / "out.fst"
    command = [ROOT / "viaduct", "wave", "inc", "--in", f"file:{data}", "--out", f"file:{tmp_path / 'out'}"]
    command += ["--check", "--start", "10000", "--cycles", "300", "-o", waves]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    for file in (waves, tmp_path / "out.slot0.fst"):
        start, end = fst_times(file)
        assert start == 10000 * PERIOD_PS
        # The last edge is a falling one.
        assert end - start == 300 * PERIOD_PS - PERIOD_PS // 2
