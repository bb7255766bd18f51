# SPDX-License-Identifier: Apache-2.0
"""`viaduct sched`, `route`, `reset`, `graph` and `top --daemon`: a card that others use is looked at and managed, and nobody else notices."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
VIADUCT = str(ROOT / "viaduct")
DAEMON = str(ROOT / "target/release/viaductd")
PATIENCE = 120.0  # longest time for anything, also on a slow machine
NOBODY = 65534
MAGIC = int.from_bytes(b"VIAd", "little")
HELLO, OPEN, WAIT_IRQ, WRITE = 0, 1, 11, 7  # requests in the order of host/viaductd/src/wire.rs


def viaduct(*args: object, code: int = 0, **options) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [VIADUCT, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, **options
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


@contextmanager
def daemon(path: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A daemon with a simulated card, ended afterwards."""
    command = [DAEMON, "--socket", str(path), "--slots", "4", *options]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        assert any("serving" in line for line in process.stderr)
        yield process
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """The socket of a daemon."""
    with daemon(tmp_path / "cards"):
        yield tmp_path / "cards"


def number(value: int) -> bytes:
    """As in the format postcard: seven bits a byte, the least ones first."""
    more = value >> 7
    return bytes([value & 127 | (128 if more else 0)]) + (number(more) if more else b"")


def text(value: str) -> bytes:
    return number(len(value.encode())) + value.encode()


class Tenant:
    """A client of a daemon, by the protocol alone; its slots are open until it is left."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(path))
        self.last = 0
        assert self.call(HELLO, number(MAGIC) + number(2))[1] == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, request: int, arguments: bytes) -> None:
        self.last += 1
        self.socket.send(number(self.last) + number(request) + arguments)

    def call(self, request: int, arguments: bytes) -> bytes:
        self.send(request, arguments)
        return self.socket.recv(1 << 16)

    def open(self, app: str) -> int:
        """The number of the slot on the card."""
        response = self.call(OPEN, number(0) + text(app))
        assert response[1] == 0, response
        return response[-1]


def slots(shared: Path) -> list[dict]:
    return json.loads(viaduct("sched", "--daemon", shared, "--json").stdout)["slots"]


def test_slots_are_listed_with_who_uses_them_and_how(shared: Path):
    with Tenant(shared) as tenant:
        first, second = tenant.open("rng"), tenant.open("pass")
        table = viaduct("sched", "--daemon", shared).stdout.splitlines()
        assert len(table) == 5
        heads = "slot app user state weight class rate in"
        assert table[0].split()[:8] == heads.split()
        rows = [line.split() for line in table[1:]]
        assert rows[first][1] == "rng" and rows[second][1] == "pass" and rows[3][1] == "-"
        assert rows[first][3:6] == ["loaded", "1", "shared"]
        viaduct(
            "sched", "--daemon", shared, f"{first}=weight=4,first,rate=2000000000,limit", "--pause", second
        )
        listed = slots(shared)
        assert listed[first]["user"]["schedule"] == "weight=4,first,rate=2000000000,burst=65536,limit"
        assert listed[first]["user"]["pid"] == os.getpid() and listed[first]["user"]["uid"] == os.geteuid()
        assert listed[second]["user"]["paused"] and not listed[first]["user"]["paused"]
        assert "≤1.9 GiB/s" in viaduct("sched", "--daemon", shared).stdout
        viaduct("sched", "--daemon", shared, "--resume", second)
        assert not slots(shared)[second]["user"]["paused"]
        for wrong, code, why in [
            (["0=weight=16"], 2, "1 to 15"),
            (["0=wight=1"], 2, "is not one of"),
            (["first"], 2, "as in 0=weight=3,first"),
            (["9=weight=1"], 2, "the card has slots 0 to 3"),
            (["3=weight=1"], 2, "no client uses it"),
            (["--pause", "0", "--resume", "0"], 2, "at once"),
            (["0=rate=99999999999999"], 2, "more than the slot's"),
        ]:
            assert why in viaduct("sched", "--daemon", shared, *wrong, code=code).stderr
    # What was set ends with the slot.
    deadline = time.monotonic() + PATIENCE
    while slots(shared)[first]["user"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    with Tenant(shared) as tenant:
        tenant.open("rng")
        assert slots(shared)[first]["user"]["schedule"] == "weight=1"


def routes(shared: Path) -> list[tuple[str, str]]:
    listed = json.loads(viaduct("route", "--daemon", shared, "--json").stdout)
    return [(route["source"], route["sink"]) for route in listed]


def test_routes_are_made_listed_and_cut(shared: Path):
    assert viaduct("route", "--daemon", shared).stdout == "no routes\n"
    with Tenant(shared) as tenant:
        for app in ("aes", "pass", "sha256"):
            tenant.open(app)
        viaduct("route", "slot:0", "slot:1", "--daemon", shared)
        viaduct("route", "slot:1:0", "slot:2:0", "--daemon", shared)
        listed = viaduct("route", "--daemon", shared).stdout
        assert listed.splitlines() == [
            "slot:0:0 (aes) -> slot:1:0 (pass): in effect",
            "slot:1:0 (pass) -> slot:2:0 (sha256): in effect",
        ]
        viaduct("route", "slot:0", "slot:2", "--daemon", shared)
        assert routes(shared) == [("slot:0:0", "slot:1:0"), ("slot:0:0", "slot:2:0")]
        viaduct("route", "--cut", "slot:1", "--cut", "slot:2", "--daemon", shared)
        assert routes(shared) == []
        for wrong, why in [
            (["--cut", "slot:1"], "no route leads there"),
            (["slot:0", "slot:3"], "slot 3: no client uses it"),
            (["slot:0", "slot:1:15"], "streams 0 to"),
            (["slot:0", "board:net"], "without function net"),
            (["slot:0", "virtio:net"], "routes go to slots"),
            (["slot:0", "eth0"], "no end of a route"),
            (["slot:0"], "SINK"),
            (["slot:0", "slot:1", "--cut", "slot:1"], "cannot be used with"),
        ]:
            assert why in viaduct("route", *wrong, "--daemon", shared, code=2).stderr
        # With the app at one end the route ends.
        viaduct("route", "slot:0", "slot:1", "--daemon", shared)
        viaduct("reset", 0, "--daemon", shared)
        assert routes(shared) == []


def pictured(shared: Path, to: Path) -> tuple[ElementTree.Element, str]:
    viaduct("graph", "--daemon", shared, "-o", to)
    picture = ElementTree.parse(to).getroot()
    told = picture.find("{http://www.w3.org/2000/svg}desc")
    assert told is not None and told.text
    return picture, told.text


def test_a_picture_shows_slots_and_routes(shared: Path, tmp_path: Path):
    to = tmp_path / "card.svg"
    picture, told = pictured(shared, to)
    assert "0 routes" in told and "From" not in told and "Slot 3: empty" in told
    with Tenant(shared) as tenant:
        for app in ("aes", "pass", "sha256", "pass"):
            tenant.open(app)
        # As many as this card can have without functions: one into each slot.
        ends = [("0", "1"), ("1", "2"), ("1", "3"), ("3", "0")]
        for count, (source, sink) in enumerate(ends, 1):
            viaduct("route", f"slot:{source}", f"slot:{sink}", "--daemon", shared)
            picture, told = pictured(shared, to)
            assert f"{count} routes" in told and told.count("\nFrom ") == count
        shown = [
            element.text and element.text.strip()
            for element in picture.iter("{http://www.w3.org/2000/svg}text")
        ]
        assert {"Slot 0: aes, loaded", "Slot 2: sha256, loaded", "Host", "Card memory", "in 0"} <= set(shown)
    # On standard output, and where it cannot be written.
    assert viaduct("graph", "--card", "sim").stdout.startswith("<svg")
    full = Path("/dev/full")
    assert "No space left on device" in viaduct("graph", "--daemon", shared, "-o", full, code=1).stderr
    assert full.is_char_device()
    assert (
        str(tmp_path / "no") in viaduct("graph", "--card", "sim", "-o", tmp_path / "no/a.svg", code=1).stderr
    )
    assert viaduct("graph", "--card", "sim", "-o", tmp_path, code=1).stderr.startswith(f"error: {tmp_path}: ")


@pytest.mark.parametrize(
    "command", [["sched"], ["sched", "--json"], ["route"], ["graph"], ["top", "--count", "1"]]
)
def test_a_full_disk_is_told(shared: Path, command: list[str]):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [VIADUCT, *command, "--daemon", str(shared)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            cwd=ROOT,
        )
    assert done.returncode == 1 and done.stderr == "error: standard output: No space left on device\n"


def test_a_reset_ends_one_program_with_an_error_and_no_other(shared: Path, tmp_path: Path):
    def tenant(name: str, updates: int) -> subprocess.Popen[str]:
        (tmp_path / name).write_bytes(os.urandom(1 << 16))
        command = [ROOT / "target/release/examples/tenant", shared, tmp_path / name, str(updates)]
        return subprocess.Popen(
            list(map(str, command)), cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def opened(pid: int) -> int:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for at, slot in enumerate(slots(shared)):
                if slot["user"] and slot["user"]["pid"] == pid and slot["moved"]["memory_written"]:
                    return at
            time.sleep(0.05)
        raise AssertionError("the program has opened no slot")

    endless = tenant("endless", 1 << 40)
    at = opened(endless.pid)
    other = tenant("other", 200_000)
    table = (tmp_path / "endless").read_bytes()
    viaduct("reset", at, "--daemon", shared)
    _, error = endless.communicate(timeout=PATIENCE)
    assert endless.returncode == 1 and f"slot {at} was ended by user {os.geteuid()}" in error
    assert slots(shared)[at]["user"] is None
    # What it had changed is in its file.
    assert (tmp_path / "endless").read_bytes() != table and (tmp_path / "endless").stat().st_size == 1 << 16
    assert other.communicate(timeout=PATIENCE)[0] == "0 errors\n" and other.returncode == 0
    assert "no client uses it" in viaduct("reset", at, "--daemon", shared, code=2).stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_users_slot_is_neither_shown_nor_touched(tmp_path: Path):
    setpriv = shutil.which("setpriv")
    assert setpriv
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    path = tmp_path / "cards"
    with daemon(path, "--allow-uid", "0", "--allow-uid", str(NOBODY)), Tenant(path) as tenant:
        path.chmod(0o777)
        at = tenant.open("pass")

        def nobody(*args: object) -> subprocess.CompletedProcess[str]:
            who = [
                setpriv,
                f"--reuid={NOBODY}",
                f"--regid={NOBODY}",
                "--clear-groups",
                VIADUCT,
                *map(str, args),
            ]
            return subprocess.run(
                [*who, "--daemon", str(path)], capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT
            )

        seen = nobody("sched")
        assert seen.returncode == 0 and seen.stdout.splitlines()[1 + at].split()[1:4] == [
            "-",
            "-",
            "another's",
        ]
        for refused in [
            ["reset", at],
            ["sched", f"{at}=weight=1"],
            ["sched", "--pause", at],
            ["route", f"slot:{at}", f"slot:{at}"],
            ["route", "--cut", f"slot:{at}"],
        ]:
            done = nobody(*refused)
            assert done.returncode == 1, done
            assert done.stderr.startswith(
                f"error: slot {at} is another user's; its user may do that, and root"
            )
        assert slots(path)[at]["user"]["app"] == "pass"
    # And one who may not use the card at all.
    with daemon(path):
        path.chmod(0o777)
        done = nobody("sched")
        assert done.returncode == 1 and f"user {NOBODY}, group {NOBODY} may not use this card" in done.stderr


def test_top_shows_a_shared_card_and_waits_for_a_daemon_that_was_killed(tmp_path: Path):
    path = tmp_path / "cards"
    with daemon(path) as first, Tenant(path) as tenant:
        tenant.open("rng")
        tenant.open("pass")
        tenant.open("pass")
        viaduct("route", "slot:1", "slot:2", "--daemon", path)
        shown = viaduct("top", "--daemon", path, "--count", 1).stdout
        for words in ("read waits", "misses", "in flight", "rng", "slot:1:0", "in effect", "shared"):
            assert words in shown, shown
        watching = subprocess.Popen(
            [VIADUCT, "top", "--daemon", str(path)],
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            assert watching.stdout and watching.stderr
            assert "since power-up" in watching.stdout.readline()
            first.kill()
            first.wait()
            assert re.search("has ended|is viaductd running there", watching.stderr.readline())
            assert "viaductd" in viaduct("sched", "--daemon", path, code=1).stderr
            with daemon(path):
                for line in watching.stdout:
                    if "started anew" in line:
                        break
                watching.send_signal(signal.SIGTERM)
                assert watching.wait(PATIENCE) == 0
        finally:
            watching.kill()
            watching.communicate()


def test_a_daemon_that_does_not_answer_holds_nobody_up_for_ever(tmp_path: Path):
    """`top` ends at a signal, whatever the daemon does."""
    path = tmp_path / "cards"
    with daemon(path) as process:
        watching = subprocess.Popen(
            [VIADUCT, "top", "--daemon", str(path)], cwd=ROOT, text=True, stdout=subprocess.PIPE
        )
        try:
            assert watching.stdout and "since power-up" in watching.stdout.readline()
            process.send_signal(signal.SIGSTOP)
            time.sleep(1.5)
            watching.send_signal(signal.SIGTERM)
            assert watching.wait(PATIENCE) == 0
        finally:
            process.send_signal(signal.SIGCONT)
            watching.kill()
            watching.communicate()


def test_what_is_no_daemon_is_told(tmp_path: Path):
    for command in (["sched"], ["route"], ["graph"], ["reset", "0"], ["top"]):
        missing = viaduct(*command, "--daemon", tmp_path / "none", code=1).stderr
        assert missing.startswith(f"error: {tmp_path}/none: ") and "is viaductd running there" in missing
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as card:
        card.bind(str(tmp_path / "card"))
        card.listen()
        assert "socket of a card" in viaduct("sched", "--daemon", tmp_path / "card", code=1).stderr
    # A server that sends what is no response.
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(str(tmp_path / "odd"))
        server.listen()
        asking = subprocess.Popen(
            [VIADUCT, "sched", "--daemon", str(tmp_path / "odd")], cwd=ROOT, text=True, stderr=subprocess.PIPE
        )
        connection, _ = server.accept()
        connection.recv(1 << 16)
        connection.send(b"\xff" * 1000)
        _, error = asking.communicate(timeout=PATIENCE)
        assert asking.returncode == 1 and "not understood" in error
        connection.close()
    assert "required" in viaduct("sched", code=2).stderr
    assert "--wait is for --card" in viaduct("sched", "--daemon", tmp_path / "none", "--wait", code=2).stderr


def test_malformed_requests_end_their_connection_only(shared: Path):
    with Tenant(shared) as tenant:
        tenant.open("pass")
        for junk in (
            b"",
            b"\0",
            b"\xff" * 64,
            number(1) + number(17),
            number(1) + number(17) + number(MAGIC),
            b"x" * 9000,
        ):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
                other.settimeout(PATIENCE)
                other.connect(str(shared))
                other.send(number(1) + number(17) + number(MAGIC) + number(2))
                assert other.recv(1 << 16)[1] == 0
                other.send(junk)
                # Words of farewell, or the end: an empty packet is one, too.
                while other.recv(1 << 16):
                    pass
        assert slots(shared)[0]["user"]["app"] == "pass"


def test_a_card_that_nobody_uses_is_cleared(tmp_path: Path):
    """A program that was killed in the middle of a run leaves apps; its routes end with it, as the card is reset."""
    path = tmp_path / "card.sock"
    card = subprocess.Popen(
        [VIADUCT, "card", "--socket", str(path)], cwd=ROOT, text=True, stdout=subprocess.PIPE
    )
    try:
        assert card.stdout and "card on" in card.stdout.readline()
        name = f"unix:{path}"
        command = ["run", "pass", "--in", "-", "--out", "-", "--then", "pass", "--card", name]
        running = subprocess.Popen(
            [VIADUCT, *command],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert running.stdin
        # Part of a message: the run waits for the rest.
        running.stdin.write(os.urandom(1 << 14))
        running.stdin.flush()
        deadline = time.monotonic() + PATIENCE
        # A card has one user at a time.
        command = [VIADUCT, "route", "--card", name]
        while True:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
            if done.returncode == 1:
                break
            assert time.monotonic() < deadline
        assert str(running.pid) in done.stderr
        time.sleep(1)
        running.kill()
        running.communicate()
        wait = ["--card", name, "--wait=60"]
        loaded = [slot["loaded"] for slot in json.loads(viaduct("sched", "--json", *wait).stdout)["slots"]]
        assert loaded == [True, True, False, False]
        assert viaduct("route", *wait).stdout == "no routes\n"
        for slot in range(4):
            viaduct("reset", slot, *wait)
        assert "no route leads there" in viaduct("route", "--cut", "slot:1", *wait, code=1).stderr
        assert "the card has slots 0 to 3" in viaduct("reset", 4, *wait, code=2).stderr
        states = {slot["isolated"] for slot in json.loads(viaduct("sched", "--json", *wait).stdout)["slots"]}
        assert states == {True}
        for change in (["sched", "0=first"], ["sched", "--pause", "0"], ["route", "slot:0", "slot:1"]):
            done = viaduct(*change, *wait, code=2)
            assert "nobody uses this card; name the socket of its viaductd with --daemon" in done.stderr
        # It works on.
        viaduct("run", "pass", "--in", "file:Makefile", "--out", f"file:{tmp_path / 'out'}", "--card", name)
        assert (tmp_path / "out").read_bytes() == (ROOT / "Makefile").read_bytes()
    finally:
        card.send_signal(signal.SIGTERM)
        card.communicate(timeout=PATIENCE)
