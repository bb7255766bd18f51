# SPDX-License-Identifier: Apache-2.0
"""`viaduct wave`: the files contain the requested cycles with all changes of all signals, and the run is correct."""

import ctypes
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pylibfst
import pytest

ROOT = Path(__file__).resolve().parent.parent
PERIOD_PS = 4000  # gen3x16: 250 MHz


def fst_times(path: Path) -> tuple[int, int]:
    """First and last time in an FST file, in its unit: after the block's type and length."""
    head = path.read_bytes()[:25]
    kind, length, start, end = struct.unpack(">BQQQ", head)
    assert kind == 0 and length == 329, f"{path.name} does not begin with an FST header"
    return start, end


def changes(path: Path, name: str) -> list[tuple[int, str]]:
    """Times and values of a signal in an FST file."""
    found: list[tuple[int, str]] = []
    fst: Any = pylibfst.lib.fstReaderOpen(str(path).encode())
    _, signals = pylibfst.get_scopes_signals2(fst)
    pylibfst.lib.fstReaderClrFacProcessMaskAll(fst)
    pylibfst.lib.fstReaderSetFacProcessMask(fst, signals.by_name[name].handle)
    pylibfst.fstReaderIterBlocks(
        fst, lambda _data, time, _handle, value: found.append((time, pylibfst.string(value)))
    )
    pylibfst.lib.fstReaderClose(fst)
    return found


class Api(ctypes.Structure):
    """struct viaduct_slot_api of sim/include/viaduct_slot.h."""

    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("abi", "geometry", "in_size", "out_size", "flags", "rsvd")),
        ("state_bytes", ctypes.c_uint64),
        ("create", ctypes.CFUNCTYPE(ctypes.c_void_p)),
        ("destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("edge", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)),
        ("edge_settled", ctypes.c_void_p),
        (
            "trace_open",
            ctypes.CFUNCTYPE(
                ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint32
            ),
        ),
        ("trace_close", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


def test_registers_change_in_waves_at_the_rising_edge(tmp_path: Path):
    """A beat through the two slices of `pass`: the second one's valid is high for one cycle."""
    made = tmp_path / "pass.so"
    own = ROOT / "build/apps/pass/gen"
    command = [sys.executable, ROOT / "tools/verilate.py", "slot", "--trace", "--out", made]
    command += ["--source", own / "via_app_regs.sv", "--source", own / "via_slot.sv", "-y", "apps/pass/rtl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(made))
    library.viaduct_slot_api.restype = ctypes.POINTER(Api)
    api = library.viaduct_slot_api().contents
    slot, waves = api.create(), tmp_path / "pass.fst"
    given, out = bytearray(api.in_size), ctypes.create_string_buffer(api.out_size)
    assert api.trace_open(slot, str(waves).encode(), 0, PERIOD_PS) == 0
    for cycle in range(10):
        # rst_n, s_valid and m_ready.
        given[0], given[8], given[10] = cycle >= 3, cycle == 6, 1
        api.edge(slot, bytes(given), out)
    api.trace_close(slot)
    api.destroy(slot)
    valid = changes(waves, "via_slot.u_out_out.main_valid_q")
    assert valid[-2:] == [(7 * PERIOD_PS, "1"), (8 * PERIOD_PS, "0")]


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


@pytest.mark.long
def test_a_run_that_a_signal_ends_leaves_what_it_has_recorded(tmp_path: Path):
    """Or nothing, but no file without content."""
    memory = tmp_path / "memory"
    memory.write_bytes(bytes(4096))
    for start, left in ((0, ["long.fst", "long.slot0.fst"]), (1 << 62, [])):
        command = ["wave", "rng", "--out", f"file:{memory}", "--set", "count=1000000000", "--set", "size=64"]
        where = ["--start", str(start), "-o", str(tmp_path / "long.fst")]
        with subprocess.Popen(
            [ROOT / "viaduct", *command, *where], stderr=subprocess.PIPE, text=True, cwd=ROOT
        ) as process:
            # Created when the card is there.
            while not (tmp_path / "long.fst").exists():
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            assert process.stderr
            said = process.stderr.read()
        assert process.returncode == 1 and "ended by a signal" in said, said
        files = sorted(path.name for path in tmp_path.glob("*.fst"))
        assert files == left, start
        if left:
            first, last = fst_times(tmp_path / "long.fst")
            assert first < last
        for name in files:
            (tmp_path / name).unlink()
