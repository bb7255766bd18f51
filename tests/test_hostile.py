# SPDX-License-Identifier: Apache-2.0
"""Errors of users and apps: each leads to one clear message, in time, and other slots continue.

Wrong use of the command line (no such app, port or register, two routes to one port, ...) is in test_cli.py. The apps in tests/apps
violate one rule each; they are built in a project of their own, build/hostile.
"""

import contextlib
import errno
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

import viaduct

ROOT = Path(__file__).resolve().parents[1]
BAD_APPS = ("misbehave", "mute", "unstable", "talking")
GOOD_APPS = ("pass", "rng", "sha256")
E = TypeVar("E", bound=Exception)
STALL = 5.0  # seconds after which an inactive app counts as hung
PATIENCE = 60.0  # longest time for anything, also on a slow machine


@pytest.fixture(scope="module")
def project() -> Path:
    """The real project with the bad apps added; common files are built in the real one."""
    root = ROOT / "build/hostile"
    for folder in ("apps", "build/apps"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    shared = ["tools", "rtl", "sim", ".venv", "build/regs", "build/card", "build/verilator-runtime"]
    links = {name: ROOT / name for name in shared}
    links |= {f"apps/{app}": ROOT / "apps" / app for app in GOOD_APPS}
    links |= {f"build/apps/{app}": ROOT / "build/apps" / app for app in GOOD_APPS}
    links |= {f"apps/{app}": ROOT / "tests/apps" / app for app in BAD_APPS}
    for name, target in links.items():
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to(target)
    run("build", *BAD_APPS, root=root, code=0, timeout=500)
    return root


@pytest.fixture(autouse=True)
def in_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIADUCT_ROOT", str(project))


def run(
    *args: object, root: Path | None = None, code: int, words: str = "", timeout: float = PATIENCE
) -> str:
    """The command ends with this exit code and, if that is not 0, with one error line of these words."""
    env = os.environ | ({"VIADUCT_ROOT": str(root)} if root else {})
    command = [str(ROOT / "viaduct"), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=ROOT, env=env)
    assert done.returncode == code, (command, done.returncode, done.stderr)
    assert "panicked" not in done.stderr
    if code:
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1 and re.search(words, errors[0]), done.stderr
        return errors[0]
    return done.stdout


def app(name: str) -> str:
    """For Card.load: the image as it is built."""
    folder = ROOT / "build" if name in GOOD_APPS else ROOT / "build/hostile/build"
    return str(folder / f"apps/{name}/{name}.via")


class Neighbour:
    """A slot of the same card that passes data meanwhile; its data must be complete and correct."""

    def __init__(self, card: viaduct.Card) -> None:
        self.card, self.rounds = card, 0
        self.failure: BaseException | None = None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)

    def _work(self) -> None:
        try:
            data = np.random.default_rng(1).integers(0, 256, 20_001, np.uint8)
            with self.card.load(app("pass")) as slot:
                while not self.stop.is_set():
                    assert np.array_equal(slot.run(data, chunk=4096), data)
                    self.rounds += 1
        except BaseException as failure:  # told by the test's own thread
            self.failure = failure

    def wait_rounds(self, count: int) -> None:
        """Waits until this number of further runs has ended."""
        until, limit = self.rounds + count, time.monotonic() + PATIENCE
        while self.rounds < until and not self.failure:
            assert time.monotonic() < limit, "the other slot has stopped"
            time.sleep(0.01)
        assert not self.failure, self.failure


@pytest.fixture(scope="module")
def card(project: Path) -> Iterator[viaduct.Card]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIADUCT_ROOT", str(project))
        with viaduct.open("sim", stall=STALL, busy=STALL) as card:
            yield card


@pytest.fixture
def neighbour(card: viaduct.Card) -> Iterator[Neighbour]:
    """Runs before, during and after the test."""
    neighbour = Neighbour(card)
    neighbour.thread.start()
    neighbour.wait_rounds(1)
    yield neighbour
    neighbour.wait_rounds(2)
    neighbour.stop.set()
    neighbour.thread.join(PATIENCE)
    assert not neighbour.thread.is_alive() and not neighbour.failure


@contextlib.contextmanager
def fails(kind: type[E], words: str) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expects an error of this type, in time, whose text matches."""
    begun = time.monotonic()
    with pytest.raises(kind, match=words) as told:
        yield told
    assert time.monotonic() - begun < PATIENCE


# ---------------------------------------------------------------- apps

# Values of register mode, see tests/apps/misbehave.
GOOD, DEAF, FOREVER, LAZY, BUSY = 0, 8, 9, 10, 11
MEMORY_RULES = {
    1: "not INCR, not full-width, or misaligned",
    2: "not INCR, not full-width, or misaligned",
    3: "not INCR, not full-width, or misaligned",
    4: "crosses 4 KiB",
    5: "WLAST does not match its AWLEN",
    6: "WLAST does not match its AWLEN",
    7: "began a write burst and did not finish it",
}
STREAM_RULES = {
    16: f"input 0 took 5000 of 5000 bytes, output 0 gave 0 bytes: nothing happened for {STALL:g}s",
    17: "broke the stream contract",
    18: "did not end output 0 .* after 5000 bytes.*manifest",
    19: f"input 0 took 0 of 5000 bytes.*: nothing happened for {STALL:g}s",
    20: "ended output 0 after 64 bytes.*promises 5000",
    21: "broke the stream contract",
    22: "broke the stream contract",
}


@pytest.fixture
def bad(card: viaduct.Card) -> Iterator[viaduct.Slot]:
    with card.load(app("misbehave")) as slot:
        yield slot


def is_well(slot: viaduct.Slot) -> None:
    """The app works in the same slot, both ways."""
    slot.set(mode=GOOD, offset=0)
    data = np.arange(5000, dtype=np.uint8)
    assert np.array_equal(slot.run(data), data)
    with slot.map(length=5000) as mapping:
        before = slot.get("errors"), slot.get("starts")
        report = slot.start_and_wait(mapping)
        assert (report.denied, report.memory_read_beats) == (0, 1)
        assert (slot.get("errors"), slot.get("starts")) == (before[0], before[1] + 1)


@pytest.mark.parametrize("mode", MEMORY_RULES)
def test_an_app_breaks_a_rule_of_the_memory_port(mode: int, neighbour: Neighbour, bad: viaduct.Slot):
    with bad.map(length=8192, write=True) as mapping:
        bad.set(mode=mode)
        with fails(
            viaduct.AppError, f"slot {bad.index} was isolated: .*{MEMORY_RULES[mode]}; correct the app"
        ):
            bad.start_and_wait(mapping)
    is_well(bad)


@pytest.mark.parametrize("mode", STREAM_RULES)
def test_an_app_breaks_a_rule_of_streams(mode: int, neighbour: Neighbour, bad: viaduct.Slot):
    bad.set(mode=mode)
    with fails(viaduct.AppError, STREAM_RULES[mode]):
        bad.run(np.arange(5000, dtype=np.uint8))
    is_well(bad)


# What a run through several apps says of such an app: what comes of it goes to the next one.
IN_SEQUENCE = {
    16: f"gave 0 bytes: nothing happened for {STALL:g}s",
    17: "was isolated: .*broke the stream contract",
    18: "promises no more|nothing happened",
    19: f"gave 0 bytes: nothing happened for {STALL:g}s",
    20: "ended output 0 after 64 bytes.*promises 5000",
    21: "was isolated: .*broke the stream contract",
    22: "was isolated: .*broke the stream contract",
}


@pytest.mark.parametrize("mode", IN_SEQUENCE)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_app_breaks_a_rule_in_a_sequence_of_apps(
    mode: int, place: int, neighbour: Neighbour, card: viaduct.Card, bad: viaduct.Slot
):
    data = np.arange(5000, dtype=np.uint8)
    with card.load(app("pass")) as one, card.load(app("pass")) as other:
        line = [one, other]
        line.insert(place, bad)
        bad.set(mode=mode)
        with fails(viaduct.AppError, IN_SEQUENCE[mode]):
            line[0].run(data, then=line[1:])
        # All of them work again, alone and together.
        assert np.array_equal(other.run(data), data)
        bad.set(mode=GOOD)
        assert np.array_equal(line[0].run(data, then=line[1:]), data)
    is_well(bad)


def test_an_app_lets_valid_fall(neighbour: Neighbour, card: viaduct.Card):
    what = fails(viaduct.AppError, "dropped valid.*correct the app")
    with card.load(app("unstable")) as slot, slot.map(length=1 << 17) as mapping, what:
        slot.start_and_wait(mapping)


def test_an_app_does_not_answer_its_registers(neighbour: Neighbour, card: viaduct.Card):
    with card.load(app("mute")) as slot:
        with fails(viaduct.AppError, "did not respond to a register access; correct the app"):
            slot.set(amount=1)
            slot.get("amount")
        with fails(viaduct.AppError, "did not respond to a register access"):
            slot.run(np.arange(5000, dtype=np.uint8))


@pytest.mark.parametrize("offset", [1 << 20, 1 << 40, (1 << 64) - (1 << 32), (1 << 47)])
def test_an_app_reads_outside_of_its_mapping(offset: int, neighbour: Neighbour, bad: viaduct.Slot):
    with bad.map(length=8192) as mapping:
        bad.set(mode=GOOD, offset=offset)
        report = bad.start_and_wait(mapping)
        assert bad.get("errors") == 1 and report.denied <= 1
    is_well(bad)


@pytest.mark.parametrize("mode", [DEAF, LAZY, BUSY])
def test_an_app_never_finishes(mode: int, neighbour: Neighbour, bad: viaduct.Slot):
    with bad.map(length=8192) as mapping:
        bad.set(mode=mode)
        with fails(viaduct.AppError, f"waiting for the app to finish: nothing happened for {STALL:g}s"):
            bad.start_and_wait(mapping)
    is_well(bad)


@pytest.mark.parametrize("offset", [0, 1 << 20])
def test_an_app_reads_for_ever(offset: int, neighbour: Neighbour, bad: viaduct.Slot):
    """It shows activity, so only a limit ends it; outside of the mapping each read is a fault that is denied."""
    with bad.map(length=8192) as mapping:
        bad.set(mode=FOREVER, offset=offset)
        with fails(viaduct.AppError, "has not finished within 1s, the limit"):
            bad.start_and_wait(mapping, limit=1)
    is_well(bad)


def test_bad_apps_from_the_command_line(tmp_path: Path):
    (tmp_path / "in").write_bytes(bytes(1 << 17))
    routes = [
        "--in",
        f"in=file:{tmp_path}/in",
        "--in",
        f"mem=file:{tmp_path}/in",
        "--out",
        f"file:{tmp_path}/out",
    ]
    for name, args, words in [
        ("misbehave", [*routes, "--set", "mode=4"], "crosses 4 KiB"),
        ("misbehave", [*routes, "--set", "mode=10", "--timeout", "1"], "nothing happened for 1s"),
        ("misbehave", [*routes, "--set", "mode=19", "--timeout", "1"], "nothing happened for 1s"),
        ("misbehave", [*routes, "--set", "offset=0x100000"], "1 accesses of the app were outside the file"),
        ("unstable", ["--in", f"mem=file:{tmp_path}/in"], "dropped valid"),
        (
            "mute",
            [routes[0], routes[1], *routes[4:], "--set", "amount=1"],
            "did not respond to a register access",
        ),
    ]:
        run("run", name, *args, code=1, words=words)


def test_what_an_app_says_is_not_its_data(tmp_path: Path):
    (tmp_path / "in").write_bytes(bytes(1000))
    command = [ROOT / "viaduct", "run", "talking", "--in", f"file:{tmp_path}/in", "--out", "-"]
    done = subprocess.run([*command, "--set", "mode=1"], capture_output=True, timeout=PATIENCE, check=True)
    assert done.stdout == bytes(1000) and done.stderr.count(b"a beat\n") == 16


def test_an_app_that_ends_its_simulation_harms_only_itself(card: viaduct.Card, capfd: pytest.CaptureFixture):
    with card.load(app("talking")) as bad, card.load(app("pass")) as good:
        for mode, said in ((2, "a beat is wrong"), (3, ""), (4, "a beat is very wrong"), (5, "")):
            bad.set(mode=mode)
            with fails(viaduct.AppError, "keep"):
                bad.run(bytes(1000))
            told = capfd.readouterr().err
            assert said in told
            assert re.search(
                r"simulated app: \$error, .* at \S*talking_app.sv:\d+; its slot is isolated", told
            )
            assert bytes(good.run(b"fine" * 1000)) == b"fine" * 1000
            # Reset, as after any violation, it works again.
            bad.set(mode=0)
            assert bytes(bad.run(b"fine" * 1000)) == b"fine" * 1000


@pytest.mark.long
def test_an_app_that_takes_no_time_ends_the_process(tmp_path: Path):
    (tmp_path / "in").write_bytes(bytes(1000))
    routes = ["--in", f"file:{tmp_path}/in", "--out", f"file:{tmp_path}/out"]
    words = "app in slot 0 has a loop that takes no time"
    run("run", "talking", *routes, "--set", "mode=6", code=1, words=words, timeout=4 * PATIENCE)


# ---------------------------------------------------------------- what there is not


def test_there_is_no_such_thing(card: viaduct.Card, neighbour: Neighbour, tmp_path: Path):
    with fails(viaduct.NotFoundError, 'no app named "sha265"; did you mean sha256'):
        card.load("sha265")
    with fails(viaduct.NotFoundError, "there is no slot 4: the card has slots 0 to 3"):
        card.load(app("pass"), slot=4)
    with fails(viaduct.FileError, "absent.via: No such file"):
        card.load(str(tmp_path / "absent.via"))
    (tmp_path / "not.via").write_bytes(b"not an image")
    with fails(viaduct.ArgumentError, "not.via"):
        card.load(str(tmp_path / "not.via"))
    with card.load(app("misbehave")) as slot:
        with fails(viaduct.NotFoundError, 'no register "mod"; did you mean mode'):
            slot.set(mod=1)
        with fails(viaduct.ArgumentError, "errors is driven by the app"):
            slot.set(errors=b"\0\0\0\0")
        with fails(viaduct.NotFoundError, 'no input "im"; did you mean in'):
            slot.transfer({"im": b"x"}, {"out": tmp_path / "out"})
        with fails(viaduct.ArgumentError, "output out has no route"):
            slot.transfer({"in": b"x"}, {})
        with fails(viaduct.FileError, "absent: .*No such file"):
            slot.run(tmp_path / "absent")
        with fails(viaduct.FileError, "nowhere/out: .*no such folder; create it first"):
            slot.transfer({"in": b"x"}, {"out": tmp_path / "nowhere/out"})
        with fails(viaduct.FileError, "absent: .*No such file"):
            slot.map(tmp_path / "absent")
        is_well(slot)


def test_all_slots_are_taken(card: viaduct.Card, tmp_path: Path):
    with contextlib.ExitStack() as stack:
        for _ in range(card.info.slots):
            stack.enter_context(card.load(app("pass")))
        with fails(viaduct.BusyError, "slot"):
            card.load(app("pass"))
        with fails(viaduct.BusyError, "slot 0 is in use"):
            card.load(app("pass"), slot=0)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("length", [1, 63, 65, 4095, 4097, 12289])
def test_lengths_that_fit_nothing(length: int, tmp_path: Path):
    (tmp_path / "in").write_bytes(os.urandom(length))
    run("run", "pass", "--in", f"file:{tmp_path}/in", "--out", f"file:{tmp_path}/out", "--check", code=0)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "in").read_bytes()


def test_an_empty_file(tmp_path: Path):
    (tmp_path / "in").touch()
    (tmp_path / "out").write_bytes(b"older")
    run("run", "pass", "--in", f"file:{tmp_path}/in", "--out", f"file:{tmp_path}/out", code=0)
    assert (tmp_path / "out").read_bytes() == b""
    run("run", "sha256", "--in", f"file:{tmp_path}/in", code=1, words="empty.*give at least one byte")
    run("run", "rng", "--in", f"mem=file:{tmp_path}/in", code=2, words="0 bytes cannot be mapped")


def test_things_that_are_no_files(card: viaduct.Card, neighbour: Neighbour, tmp_path: Path):
    """Streams are not memory, and some files cannot be read or written."""
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener, card.load(app("pass")) as slot:
        listener.bind(str(tmp_path / "socket"))
        for path, what in [
            (tmp_path, "directory"),
            (tmp_path / "fifo", "pipe"),
            (tmp_path / "socket", "socket|No such device"),
            (Path("/dev/zero"), "device"),
        ]:
            kind = viaduct.ArgumentError if path.is_fifo() else viaduct.FileError
            with fails(kind, what):
                slot.map(path)
            if path.is_char_device():
                slot.transfer({"in": b"x"}, {"out": path})  # it accepts any data
                continue
            if path.is_fifo():
                with fails(viaduct.FileError, "it needs a reader first"):
                    slot.map(path, read=False, write=True, length=1)
                continue
            with fails(viaduct.FileError, what):
                slot.run(path)
            with fails(viaduct.FileError, what):
                slot.transfer({"in": b"x"}, {"out": path})
        with fails(
            viaduct.FileError, "/dev/full: cannot write: No space left on device.*; 0 bytes are written"
        ):
            slot.transfer({"in": b"x"}, {"out": Path("/dev/full")})


def test_input_and_output_are_one_file(card: viaduct.Card, tmp_path: Path):
    path = tmp_path / "both"
    path.write_bytes(b"precious")
    os.link(path, tmp_path / "other")
    with card.load(app("pass")) as slot:
        for other in (path, tmp_path / "other"):
            with fails(
                viaduct.ArgumentError, "is both read and written; ?|is both read and written in this run"
            ):
                slot.transfer({"in": path}, {"out": other})
    assert path.read_bytes() == b"precious"


def test_input_shrinks_and_output_goes_during_a_run(card: viaduct.Card, neighbour: Neighbour, tmp_path: Path):
    source, sink = tmp_path / "in", tmp_path / "out"
    with card.load(app("pass")) as slot:
        source.write_bytes(bytes(1 << 20))
        with fails(viaduct.FileError, "in: the file shrank while it was read: it ends at byte 100"):
            slot.transfer(
                {"in": source}, {"out": sink}, chunk=4096, progress=lambda _: os.truncate(source, 100)
            )
        source.write_bytes(bytes(1 << 18))
        with fails(viaduct.FileError, "out: the file was removed while it was written.*run again"):
            slot.transfer(
                {"in": source},
                {"out": sink},
                chunk=4096,
                progress=lambda _: sink.unlink(missing_ok=True),
            )
        slot.transfer({"in": source}, {"out": sink})
        assert sink.read_bytes() == bytes(1 << 18)


def write_all(slot: viaduct.Slot, mapping: viaduct.Mapping, count: int) -> viaduct.Report:
    slot.set(write=1, size=4096, count=count, seed=7)
    return slot.start_and_wait(mapping)


def test_a_mapped_file_is_truncated(card: viaduct.Card, neighbour: Neighbour, tmp_path: Path):
    path = tmp_path / "mapped"
    path.write_bytes(bytes(40_960))
    with card.load(app("rng")) as slot:
        mapping = slot.map(path, write=True, huge=False)
        write_all(slot, mapping, 40)
        os.truncate(path, 10_000)
        with fails(
            viaduct.FileError, r"mapped: bytes \d+ to \d+ of the mapping are lost: .*truncated to 10000 bytes"
        ):
            mapping.sync()
        assert path.stat().st_size == 10_000
        mapping.close()
        # Pages that were not loaded before: the app gets errors, the report says so.
        path.write_bytes(bytes(40_960))
        mapping = slot.map(path, huge=False)
        os.truncate(path, 0)
        slot.set(write=0, count=20)
        assert slot.start_and_wait(mapping).denied > 0
        assert slot.get("errors") > 0
        with fails(viaduct.FileError, "mapped: the file shrank while it was read: .* 40960 were expected"):
            mapping.close()


def test_a_mapped_file_is_removed(card: viaduct.Card, neighbour: Neighbour, tmp_path: Path):
    path = tmp_path / "mapped"
    path.write_bytes(bytes(40_960))
    with card.load(app("rng")) as slot, path.open("rb") as file:
        mapping = slot.map(path, write=True)
        path.unlink()
        write_all(slot, mapping, 40)
        # It is an open file like any other: whoever has it sees what the app wrote.
        mapping.close()
        assert not path.exists() and any(file.read()) and any(mapping.array)
        with slot.map(length=4096, write=True) as mapping:
            assert write_all(slot, mapping, 1).denied == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a file system")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def test_the_disk_is_full(disk: Path, card: viaduct.Card, neighbour: Neighbour):
    with card.load(app("pass")) as slot:
        with fails(
            viaduct.FileError, "out: cannot write: No space left on device.*; 65536 bytes are written"
        ):
            slot.transfer({"in": bytes(200_000)}, {"out": disk / "out"}, chunk=4096)
        (disk / "out").unlink()
        slot.transfer({"in": bytes(60_000)}, {"out": disk / "out"})
        (disk / "out").unlink()
    with (
        card.load(app("rng")) as slot,
        slot.map(disk / "mapped", length=200_000, create=True, write=True) as mapping,
    ):
        (disk / "filler").write_bytes(bytes(50_000))
        write_all(slot, mapping, 16)
        with fails(viaduct.FileError, "are lost: No space left on device") as full:
            mapping.sync()
        assert full.value.errno == errno.ENOSPC
        # Nothing is lost as long as it is mapped.
        (disk / "filler").unlink()
        mapping.sync()
        content = np.fromfile(disk / "mapped", np.uint64)
        assert set(content[content != 0]) <= set(np.arange(0, 200_000, 8).astype(np.uint64) ^ np.uint64(7))
        assert np.count_nonzero(content) > 0


def test_a_read_only_file_is_not_written(disk: Path, card: viaduct.Card, neighbour: Neighbour):
    path = disk / "file"
    path.write_bytes(b"x" * 5000)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with card.load(app("rng")) as slot:
        with fails(viaduct.FileError, "file: cannot open it for writing: Read-only"):
            slot.map(path, write=True)
        # The app may read it; its writes are denied.
        with slot.map(path) as mapping:
            assert write_all(slot, mapping, 1).denied == 1
            assert slot.get("errors") > 0
    with card.load(app("pass")) as slot, fails(viaduct.FileError, "file: cannot .*Read-only"):
        slot.transfer({"in": b"y"}, {"out": path})
    run(
        "run",
        "pass",
        "--in",
        f"file:{ROOT}/LICENSE",
        "--out",
        f"file:{path}",
        code=1,
        words="file: .*Read-only",
    )
    assert path.read_bytes() == b"x" * 5000


# ---------------------------------------------------------------- more than fits


def test_a_file_larger_than_card_memory(neighbour: Neighbour, card: viaduct.Card, tmp_path: Path):
    path = tmp_path / "sparse"
    size = 8 << 40
    memory = card.info.channels * card.info.channel_mib << 20
    assert size > memory
    with path.open("wb") as file:
        file.truncate(size)
        for at in (0, size // 2, size - 4096):
            file.seek(at)
            file.write(b"\1" + bytes(4095))
    with card.load(app("rng")) as slot, slot.map(path, huge=False) as mapping:
        assert len(mapping) == size
        slot.set(write=0, size=64, count=64, seed=5)
        report = slot.start_and_wait(mapping)
        assert (slot.get("errors"), report.denied) == (0, 0) and report.misses > 0
    with card.load(app("misbehave")) as slot, slot.map(path, huge=False) as mapping:
        slot.set(offset=size - 64)
        assert slot.start_and_wait(mapping).denied == 0
        slot.set(offset=size)
        assert slot.start_and_wait(mapping).denied == 1


def test_card_memory_is_full(project: Path, golden, tmp_path: Path):
    """All but 2 MiB is used by the user: a mapping of more pages than that is paged in and out; nothing is lost."""
    model = golden("rng")
    with viaduct.open("sim:gen2x4", stall=10) as card:
        # Page tables are at the end of each channel, in a 64th of it.
        channel = (card.info.channel_mib << 20) // 64 * 63
        with card.load(app("pass")) as slot:
            for c in range(card.info.channels):
                start = (c << 34) + (2 << 20 if c == 0 else 0)
                slot.transfer(
                    {"in": b"x"}, {"out": f"card:{start:#x}+{(c + 1 << 34) - start - (1 << 34) + channel:#x}"}
                )
        with card.load(app("rng")) as slot:
            length = 3 << 20
            array = np.zeros(length, np.uint8)
            registers = {"size": 4096, "count": 800, "seed": 11, "write": 1}
            with slot.map(array, write=True, huge=False) as mapping:
                slot.set(**registers)
                report = slot.start_and_wait(mapping)
                assert (slot.get("errors"), report.denied) == (0, 0)
            want = model.model({"mem": bytes(length)}, registers)["mem"]
            assert array.tobytes() == want
        with card.load(app("pass")) as slot:
            slot.transfer({"in": b"x"}, {"out": "card:0x0+0x200000"})
        with card.load(app("rng")) as slot, slot.map(length=8192) as mapping:
            slot.set(write=0, count=4)
            assert slot.start_and_wait(mapping).denied > 0
