# SPDX-License-Identifier: Apache-2.0
"""`--trace` and VIADUCT_TRACE: the events agree with the run's own figures, viewers can read them, and a trace harms no run."""

import collections
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import vm_guest

ROOT = Path(__file__).resolve().parents[1]
VIADUCT = str(ROOT / "viaduct")
PATIENCE = 120.0  # longest time for anything, also on a slow machine
BEAT = 64

Event = dict[str, Any]


def run(*args: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [VIADUCT, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT
    )
    assert done.returncode == code, done.stderr
    return done


class Trace:
    """A trace file, by the names of its groups and lanes."""

    def __init__(self, path: Path) -> None:
        self.events: list[Event] = json.loads(path.read_text())
        named = [e for e in self.events if e["ph"] == "M"]
        self.groups = {e["pid"]: e["args"]["name"] for e in named if e["name"] == "process_name"}
        self.lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in named if e["name"] == "thread_name"}

    def lane(self, group: str, name: str) -> list[Event]:
        """The intervals and moments of a lane, in order of time."""
        found = [
            e
            for e in self.events
            if e["ph"] in "Xi" and self.groups[e["pid"]] == group and self.lanes[e["pid"], e["tid"]] == name
        ]
        return sorted(found, key=lambda e: e["ts"])

    def commands(self, group: str, name: str) -> list[Event]:
        return [
            e for e in self.events if e["ph"] == "b" and self.groups[e["pid"]] == group and e["name"] == name
        ]

    def bytes(self, group: str, name: str) -> int:
        return sum(e["args"]["bytes"] for e in self.lane(group, name))

    def check(self) -> None:
        """What a viewer relies on: every lane has a name, intervals do not overlap, what begins ends."""
        lanes: dict[tuple[int, int], list[Event]] = collections.defaultdict(list)
        for event in self.events:
            assert event["pid"] in self.groups
            if event["ph"] in "XiBE":
                assert (event["pid"], event["tid"]) in self.lanes
                lanes[event["pid"], event["tid"]].append(event)
        for lane, events in lanes.items():
            spans = sorted((e["args"]["cycle"], e["args"]["cycles"]) for e in events if e["ph"] == "X")
            for (begin, cycles), (following, _) in itertools.pairwise(spans):
                assert begin + cycles <= following, (
                    f"{self.lanes[lane]}: intervals overlap at cycle {following}"
                )
            depth = 0
            for event in events:
                depth += {"B": 1, "E": -1}.get(event["ph"], 0)
                assert depth >= 0, self.lanes[lane]
            assert depth == 0, self.lanes[lane]
        ids: dict[tuple[int, str, int], list[tuple[float, str]]] = collections.defaultdict(list)
        for event in self.events:
            if event["ph"] in "be":
                ids[event["pid"], event["name"], event["id"]].append((event["ts"], event["ph"]))
        for key, ends in ids.items():
            assert "".join(ph for _, ph in ends) == "be" * (len(ends) // 2), key
            assert ends == sorted(ends, key=lambda end: end[0]), key


@pytest.fixture
def data(tmp_path: Path, rng: random.Random) -> Path:
    path = tmp_path / "data"
    path.write_bytes(rng.randbytes(rng.randrange(50_000, 300_000)))
    return path


def test_a_trace_of_streams_agrees_with_the_run_and_changes_no_cycle(tmp_path: Path, data: Path):
    trace, out = tmp_path / "t.json", tmp_path / "out"
    args = ("run", "pass", "--in", f"file:{data}", "--out", f"file:{out}", "--json")
    plain = json.loads(run(*args).stdout)
    traced = run(*args, "--trace", trace)
    assert out.read_bytes() == data.read_bytes()
    report = json.loads(traced.stdout)
    assert {**report, "host_seconds": 0} == {**plain, "host_seconds": 0}
    assert f"trace: {trace}, " in traced.stderr
    seen = Trace(trace)
    seen.check()
    assert len(seen.events) == int(traced.stderr.split(f"{trace}, ")[1].split()[0])
    size = data.stat().st_size
    beats = -(-size // BEAT)
    for lane in ("input 0", "output 0"):
        assert seen.bytes("slot 0", lane) == size
        # As many as there are beats, and with cycles in which one side waits.
        assert sum(e["args"]["cycles"] - e["args"]["waited"] for e in seen.lane("slot 0", lane)) >= beats
        moves = seen.commands("slot 0", f"mover of {lane}")
        assert sum(e["args"]["bytes"] for e in moves) == size
        assert all(e["args"]["status"] == "done" for e in moves)
    # The file crosses the link once each way, beside rings and images.
    for lane in ("host reads", "host writes"):
        assert size <= seen.bytes("function 0: mgmt", lane) <= 1.1 * size + 65536
    assert [e["name"] for e in seen.lane("slot 0", "app")] == ["loaded"]
    calls = [e["name"] for e in seen.events if e["ph"] == "B"]
    assert calls[0] == "load the app" and "stream job" in calls
    assert max(e["args"]["busy"] for e in seen.events if e["ph"] == "C") > 50


def test_faults_are_served_by_the_commands_in_the_trace(tmp_path: Path, rng: random.Random):
    image, out, trace = tmp_path / "image", tmp_path / "out", tmp_path / "t.json"
    image.write_bytes(rng.randbytes(4 << 20))
    args = ("run", "rng", "--out", f"mem=file:{out}", "--in", f"mem=file:{image}", "--trace", trace)
    report = json.loads(run(*args, "--json").stdout)
    seen = Trace(trace)
    seen.check()
    faults = seen.commands("slot 0", "faults")
    assert report["misses"] > 0 and 0 < len(faults) <= report["misses"]
    assert all(e["args"]["status"] == "mapped" for e in faults)
    copied = sum(e["args"]["bytes"] for e in seen.commands("slot 0", "DMA to the card"))
    written = sum(seen.bytes("card memory", f"channel {c} writes") for c in range(4))
    # Pages that were copied are written to DRAM, and the app's own writes.
    assert copied > 0 and written == copied + seen.bytes("slot 0", "memory writes")
    mapped = {e["args"]["command"] for e in seen.commands("slot 0", "pages mapped")}
    assert mapped and all(command.startswith("mapping the page at 0x") for command in mapped)


def test_a_card_in_another_process_has_the_commands_here_and_the_data_there(tmp_path: Path, data: Path):
    socket, here, there, out = (tmp_path / name for name in ("card.sock", "here.json", "there.json", "out"))
    card = subprocess.Popen(
        [VIADUCT, "card", "--socket", str(socket), "--trace", str(there)],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert card.stdout and "card on" in card.stdout.readline()
        run(
            "run",
            "pass",
            "--in",
            f"file:{data}",
            "--out",
            f"file:{out}",
            "--card",
            f"unix:{socket}",
            "--trace",
            here,
        )
    finally:
        card.send_signal(signal.SIGTERM)
        errors = card.communicate(timeout=PATIENCE)[1]
    assert card.returncode == 0 and f"trace: {there}, " in errors
    assert out.read_bytes() == data.read_bytes()
    mine, its = Trace(here), Trace(there)
    mine.check()
    its.check()
    size = data.stat().st_size
    moves = mine.commands("slot 0", "mover of input 0")
    assert sum(e["args"]["bytes"] for e in moves) == size
    # The card's own time: what its clock shows at the end is not exceeded, and moves take time.
    end = max(e["args"]["cycle"] for e in its.events if "cycle" in e.get("args", {}))
    assert all(e["args"]["cycles"] > 0 and e["args"]["cycle"] < end for e in moves)
    assert not mine.lane("slot 0", "input 0")
    assert its.bytes("slot 0", "input 0") == its.bytes("slot 0", "output 0") == size
    assert not its.commands("slot 0", "mover of input 0")


@pytest.mark.timeout(vm_guest.PATIENCE)
def test_a_guest_s_disk_is_in_the_trace(tmp_path: Path):
    trace, count = tmp_path / "t.json", 64
    read = ("dd", "if=/dev/vda", "of=/dev/null", "bs=4096", f"count={count}", "iflag=direct")
    done = vm_guest.vm("--disk", "1M", "--trace", trace, "--", *read, functions="blk")
    assert done.returncode == 0 and f"trace: {trace}, " in done.stderr, done.stderr
    seen = Trace(trace)
    seen.check()
    disk = "function 2: blk"
    # What was read is written to the guest's memory, beside the rings.
    assert 4096 * count <= seen.bytes(disk, "host writes") <= 2 * 4096 * count + 65536
    assert len(seen.lane(disk, "interrupts")) >= count
    assert any(e["name"].startswith("read configuration space") for e in seen.lane(disk, "register reads"))


def test_a_full_disk_ends_the_trace_and_not_the_run(tmp_path: Path, data: Path):
    out = tmp_path / "out"
    done = run("run", "pass", "--in", f"file:{data}", "--out", f"file:{out}", "--trace", "/dev/full", code=1)
    assert out.read_bytes() == data.read_bytes()
    assert "pass: " in done.stderr and "bytes per cycle" in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: /dev/full: No space left on device") and "the run is not affected" in last


def test_a_trace_overwrites_no_file_of_the_run_and_says_where_it_cannot_be(tmp_path: Path, data: Path):
    before, out, link = data.read_bytes(), tmp_path / "out", tmp_path / "link"
    link.symlink_to(data)
    hard, folder, fifo = tmp_path / "hard", tmp_path / "folder", tmp_path / "fifo"
    hard.hardlink_to(data)
    folder.symlink_to(tmp_path)
    os.mkfifo(fifo)
    routes = ("run", "pass", "--in", f"file:{data}", "--out", f"file:{out}")
    for path, code, words in [
        (data, 2, "is in use by what is traced"),
        (link, 2, "is in use by what is traced"),
        (hard, 2, "is in use by what is traced"),
        (out, 2, "is in use by what is traced"),
        (folder / "out", 2, "is in use by what is traced"),
        (fifo, 1, "is not a file"),
        (tmp_path, 1, "Is a directory"),
        (tmp_path / "no/t.json", 1, "No such file or directory"),
    ]:
        done = run(*routes, "--trace", path, code=code)
        assert words in done.stderr.splitlines()[-1]
        assert data.read_bytes() == before and not out.exists()


def test_a_trace_of_a_served_card_leaves_its_disk_alone(tmp_path: Path):
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(1 << 20))
    done = run("card", "--functions", tmp_path / "card", "--disk", f"file:{disk}", "--trace", disk, code=2)
    assert "is in use by what is traced" in done.stderr and disk.read_bytes() == bytes(1 << 20)


def test_what_a_killed_run_leaves_can_be_read(tmp_path: Path):
    trace, fifo = tmp_path / "t.json", tmp_path / "fifo"
    os.mkfifo(fifo)
    args = ["run", "pass", "--in", f"file:{fifo}", "--out", "host:1M", "--trace", str(trace)]
    process = subprocess.Popen([VIADUCT, *args], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        with fifo.open("wb") as to:
            to.write(bytes(100_000))
            to.flush()
            end = time.monotonic() + PATIENCE
            while "mover of input 0" not in (trace.read_text() if trace.exists() else ""):
                assert process.poll() is None and time.monotonic() < end
                time.sleep(0.2)
            process.kill()
    finally:
        process.kill()
        process.wait(PATIENCE)
    # Viewers accept an array without its end.
    lines = trace.read_text().removesuffix("\n").removesuffix(",").removeprefix("[\n")
    whole = lines if lines.endswith("}") else lines[: lines.rindex(",\n")]
    assert any(e["name"] == "load the app" for e in json.loads(f"[{whole}]"))


def test_programs_are_traced_by_a_variable(tmp_path: Path):
    program = """
import viaduct
for number in range(2):
    with viaduct.open("sim") as card, card.load("pass") as slot:
        assert slot.run(bytes(1000 + number)).tobytes() == bytes(1000 + number)
"""
    trace = tmp_path / "t.json"
    env = os.environ | {"VIADUCT_TRACE": str(trace), "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    for number, path in enumerate([trace, tmp_path / "t.2.json"]):
        seen = Trace(path)
        seen.check()
        assert seen.bytes("slot 0", "input 0") == seen.bytes("slot 0", "output 0") == 1000 + number
    env["VIADUCT_TRACE"] = str(tmp_path / "no/t.json")
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert "VIADUCT_TRACE" in done.stderr and "No such file or directory" in done.stderr
