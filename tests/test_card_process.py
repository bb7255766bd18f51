# SPDX-License-Identifier: Apache-2.0
"""A card in a process of its own: successive clients, killed clients and cards, invalid data on the socket."""

import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import viaduct

ROOT = Path(__file__).resolve().parents[1]
VIADUCT = str(ROOT / "viaduct")
PATIENCE = 60.0  # longest time for anything, also on a slow machine
SOON = 15.0  # longest time until an event is noticed


class Server:
    """`viaduct card`, ready for clients."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "card.sock"
        self.name = f"unix:{self.path}"
        self.errors = folder / "card.err"
        command = [VIADUCT, "card", "--socket", str(self.path)]
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                command, text=True, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT
            )
        assert self.process.stdout
        assert "card on" in self.process.stdout.readline(), self.errors.read_text()

    def is_well(self) -> None:
        assert self.process.poll() is None, self.errors.read_text()
        assert "panicked" not in self.errors.read_text()

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One card for all tests, in the state after the previous one."""
    server = Server(tmp_path_factory.mktemp("card"))
    yield server
    server.is_well()
    assert server.end() == 0
    assert not server.path.exists()


@pytest.fixture
def data(tmp_path: Path, rng: random.Random) -> Path:
    path = tmp_path / "data"
    path.write_bytes(rng.randbytes(50_001))
    return path


def start(server: Server, source: Path, sink: Path, *more: str) -> subprocess.Popen[str]:
    """A client in a process of its own."""
    command = [
        VIADUCT,
        "run",
        "pass",
        "--in",
        f"file:{source}",
        "--out",
        f"file:{sink}",
        "--card",
        server.name,
    ]
    return subprocess.Popen(
        [*command, *more], text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT
    )


def ended(client: subprocess.Popen[str]) -> str:
    """Waits for a client and returns its errors."""
    try:
        return client.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        client.kill()
        pytest.fail("the client hangs: " + client.communicate()[1])


def serves(server: Server, source: Path) -> None:
    """A new client gets its data through."""
    sink = source.with_name("served")
    sink.unlink(missing_ok=True)
    client = start(server, source, sink)
    errors = ended(client)
    assert client.returncode == 0, errors
    assert sink.read_bytes() == source.read_bytes()
    server.is_well()


def test_clients_in_turn(server: Server, data: Path):
    serves(server, data)
    with viaduct.open(server.name) as card, card.load("pass") as slot:
        assert slot.run(data.read_bytes()).tobytes() == data.read_bytes()
        with pytest.raises(viaduct.BusyError):
            card.close()
    serves(server, data)


def until(client: subprocess.Popen[str], words: str) -> str:
    """Reads a client's errors until a line with these words, which is returned."""
    assert client.stderr
    for line in client.stderr:
        if words in line:
            return line
    pytest.fail(f"it ended with {client.wait(PATIENCE)} and did not say {words}")


def test_a_second_client_is_told_who_has_the_card(server: Server, data: Path):
    with viaduct.open(server.name) as card, card.load("pass") as slot:
        for command in ("ls", "info card"):
            second = subprocess.run(
                [VIADUCT, *command.split(), "--card", server.name],
                text=True,
                capture_output=True,
                timeout=PATIENCE,
                cwd=ROOT,
            )
            assert second.returncode == 1
            assert f"in use by process {os.getpid()} (" in second.stderr, second.stderr
            assert second.stderr.rstrip().endswith("--wait") and len(second.stderr.splitlines()) == 1
        with pytest.raises(viaduct.BusyError, match=f"in use by process {os.getpid()} "):
            viaduct.open(server.name)
        with pytest.raises(viaduct.BusyError):
            viaduct.open(server.name, wait=0.1)
        assert slot.run(data.read_bytes()).tobytes() == data.read_bytes()
    serves(server, data)


def test_a_guest_is_told_who_has_the_function(server: Server):
    """QEMU would only say that it is busy."""
    with viaduct.open(server.name):
        done = subprocess.run(
            [VIADUCT, "vm", "--card", server.path.parent, "--function", server.path.stem, "--", "true"],
            text=True,
            capture_output=True,
            timeout=600,
            cwd=ROOT,
        )
    assert done.returncode == 1
    assert re.search(f"^error: .*in use by process {os.getpid()} .*--wait$", done.stderr, re.M), done.stderr


def test_a_second_client_waits(server: Server, data: Path):
    sink = data.with_name("second")
    with viaduct.open(server.name) as card, card.load("pass") as slot:
        waiting = start(server, data, sink, "--wait")
        assert f"process {os.getpid()} (" in until(waiting, "waiting: ")
        impatient = start(server, data, data.with_name("none"), "--wait=1")
        assert re.search("^error: .*wait for it for more than 1 s$", ended(impatient), re.M)
        assert impatient.returncode == 1
        for command in (
            ["run", "pass", "--in", f"file:{data}", "--out", f"file:{sink}.none"],
            ["run", "udp_echo", "--in", "virtio:net", "--out", "virtio:net"],
        ):
            interrupted = subprocess.Popen(
                [VIADUCT, *command, "--card", server.name, "--wait"],
                text=True,
                stderr=subprocess.PIPE,
                cwd=ROOT,
            )
            until(interrupted, "waiting: ")
            interrupted.send_signal(signal.SIGINT)
            ended(interrupted)
            assert interrupted.returncode != 0
        assert slot.run(data.read_bytes()).tobytes() == data.read_bytes()
    errors = ended(waiting)
    assert waiting.returncode == 0, errors
    assert sink.read_bytes() == data.read_bytes()
    with subprocess.Popen(
        [VIADUCT, "run", "udp_echo", "--in", "virtio:net", "--out", "virtio:net", "--card", server.name],
        text=True,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as other:
        until(other, "is behind net")
        threading.Timer(0.5, other.terminate).start()
        with viaduct.open(server.name, wait=PATIENCE) as card:
            assert card.info.slots > 0
    serves(server, data)


def test_a_child_does_not_keep_its_parents_card(server: Server, data: Path):
    """It has copies of the parent's descriptors, and may live longer."""
    with viaduct.open(server.name):
        child = os.fork()
        if child == 0:
            time.sleep(PATIENCE)
            os._exit(0)
    try:
        with viaduct.open(server.name, wait=5) as card:
            assert card.info.slots > 0
        serves(server, data)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_child_does_not_keep_the_card_of_a_killed_parent(server: Server, data: Path):
    program = f"""
import os, sys, time, viaduct
with viaduct.open({server.name!r}):
    if child := os.fork():
        print(child, flush=True)
    time.sleep({PATIENCE})
"""
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    parent = subprocess.Popen([sys.executable, "-c", program], text=True, stdout=subprocess.PIPE, env=env)
    assert parent.stdout
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait(timeout=PATIENCE)
    try:
        os.kill(child, 0)
        with viaduct.open(server.name, wait=5) as card:
            assert card.info.slots > 0
        serves(server, data)
    finally:
        os.kill(child, signal.SIGKILL)
        parent.stdout.close()


def test_many_clients_in_turn(server: Server, data: Path):
    for _ in range(30):
        with viaduct.open(server.name) as card:
            assert card.info.slots > 0
    for _ in range(30):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(server.path))
    serves(server, data)


def test_a_client_is_killed(server: Server, data: Path, rng: random.Random, tmp_path: Path):
    big = tmp_path / "big"
    big.write_bytes(rng.randbytes(4 << 20))
    for _ in range(6):
        client = start(server, big, tmp_path / "cut")
        time.sleep(rng.random() * 0.8)
        client.kill()
        client.communicate(timeout=PATIENCE)
        serves(server, data)


def test_a_client_with_a_mapping_is_killed(server: Server, data: Path, rng: random.Random, tmp_path: Path):
    """Its app continues to read and write without a client to serve its page faults."""
    program = f"""
import viaduct
with viaduct.open({server.name!r}) as card, card.load("rng") as slot, slot.map(length=1 << 20, write=True) as mapping:
    slot.set(size=64, count=10_000_000, seed=3, write=1)
    print("begins", flush=True)
    slot.start_and_wait(mapping)
"""
    for _ in range(3):
        env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
        client = subprocess.Popen([sys.executable, "-c", program], text=True, stdout=subprocess.PIPE, env=env)
        assert client.stdout and client.stdout.readline() == "begins\n"
        time.sleep(rng.random() * 0.5)
        client.kill()
        client.communicate(timeout=PATIENCE)
        serves(server, data)


def test_the_card_is_killed(data: Path, rng: random.Random, tmp_path: Path):
    big = tmp_path / "big"
    big.write_bytes(rng.randbytes(16 << 20))
    for delay in (0.0, 0.3, 1.0):
        server = Server(tmp_path)
        client = start(server, big, tmp_path / "cut")
        time.sleep(delay)
        assert client.poll() is None
        server.end(signal.SIGKILL)
        begun = time.monotonic()
        errors = ended(client)
        assert time.monotonic() - begun < SOON
        assert client.returncode == 1, errors
        assert len(re.findall("^error: ", errors, re.M)) == 1 and "panicked" not in errors, errors
        assert re.search("card", errors), errors
    # Its socket still exists: the next client gets an error, the next card replaces it.
    server.path.touch()
    client = start(server, data, tmp_path / "out")
    errors = ended(client)
    assert client.returncode == 1 and "card --socket" in errors
    again = Server(tmp_path)
    serves(again, data)
    assert again.end(signal.SIGINT) == 0


def test_the_card_is_killed_under_a_program(tmp_path: Path, rng: random.Random):
    server = Server(tmp_path)
    card = viaduct.open(server.name)
    slot = card.load("pass")
    server.end(signal.SIGKILL)
    begun = time.monotonic()
    for use in (lambda: slot.run(bytes(100_000)), card.time, lambda: slot.read32(0)):
        with pytest.raises(viaduct.CardError, match="card"):
            use()
    for thing in (slot, card):
        try:
            thing.close()
        except viaduct.Error as error:
            assert "card" in str(error)
    assert time.monotonic() - begun < SOON


def test_a_card_ends_in_order_with_its_terminal(tmp_path: Path):
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        server = Server(tmp_path)
        assert server.end(signal.SIGHUP) == 0
        assert not server.path.exists()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
        server = Server(tmp_path)
    finally:
        signal.signal(signal.SIGHUP, before)
    server.process.send_signal(signal.SIGHUP)
    with viaduct.open(server.name) as card:
        assert card.info.slots > 0
    assert server.end() == 0


def test_two_cards_on_one_socket(server: Server, data: Path):
    second = subprocess.run(
        [VIADUCT, "card", "--socket", server.path], text=True, capture_output=True, timeout=PATIENCE, cwd=ROOT
    )
    assert second.returncode == 1, second.stderr
    assert len(re.findall("^error: .*in use", second.stderr, re.M)) == 1, second.stderr
    serves(server, data)


def test_files_in_the_way_stay(tmp_path: Path):
    """Only a dead socket is replaced, whichever option names the path; the error says what exists there."""
    precious = tmp_path / "precious"
    precious.write_text("data")
    (tmp_path / "link").symlink_to("precious")
    os.mkfifo(tmp_path / "fifo")
    functions = tmp_path / "functions"
    functions.mkdir()
    (functions / "mgmt.sock").symlink_to(precious)
    places: list[tuple[list[str], str]] = [
        (["--socket", str(precious)], "regular file"),
        (["--socket", str(tmp_path / "link")], "symbolic link"),
        (["--socket", str(tmp_path / "fifo")], "FIFO"),
        (["--functions", str(functions), "--unconnected"], "symbolic link"),
    ]
    before = sorted(path.name for path in tmp_path.rglob("*"))
    for options, what in places:
        card = subprocess.run(
            [VIADUCT, "card", *options], text=True, capture_output=True, timeout=PATIENCE, cwd=ROOT
        )
        assert card.returncode == 1, card.stderr
        assert len(re.findall(f"^error: .*{what}.*remove it", card.stderr, re.M)) == 1, card.stderr
    assert precious.read_text() == "data"
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_a_card_that_does_not_start_leaves_no_folder(tmp_path: Path):
    """Folders that it created for its sockets are removed, existing ones are kept."""
    (tmp_path / "there").mkdir()
    for place in ("new", "there", "there/new", "a/b"):
        options = ["--functions", str(tmp_path / place), "--disk", f"file:{tmp_path / 'missing'}"]
        card = subprocess.run(
            [VIADUCT, "card", *options], text=True, capture_output=True, timeout=PATIENCE, cwd=ROOT
        )
        assert card.returncode == 1 and "missing: cannot open it" in card.stderr, card.stderr
        assert [path.name for path in tmp_path.rglob("*")] == ["there"], place


def test_what_a_disk_leaves_out_of_its_file_is_said(tmp_path: Path):
    (tmp_path / "odd").write_bytes(bytes(1000))
    (tmp_path / "even").write_bytes(bytes(1024))
    for name, words in (("odd", "odd: its last 488 bytes are not on the disk"), ("even", "")):
        command = [
            VIADUCT,
            "card",
            "--functions",
            str(tmp_path / "card"),
            "--disk",
            f"file:{tmp_path / name}",
        ]
        with subprocess.Popen(
            command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
        ) as card:
            assert card.stdout and "functions in" in card.stdout.readline()
            card.terminate()
            errors = card.communicate(timeout=PATIENCE)[1]
        assert card.returncode == 0
        assert words in errors and bool(errors) == bool(words), errors


def header(command: int, size: int, message: int = 1, flags: int = 0) -> bytes:
    return struct.pack("<HHIII", message, command, size, flags, 0)


def test_garbage_on_the_socket(server: Server, data: Path, rng: random.Random):
    version = b'\0\0\1\0{"capabilities":{}}\0'
    hello = header(1, 16 + len(version)) + version
    garbage = [
        b"",
        b"GET / HTTP/1.0\r\n\r\n",
        header(1, 0),
        header(1, 16),
        header(1, 0xFFFFFFFF),
        header(1, 15),
        header(0xFFFF, 16),
        hello,
        hello[:-5],
        header(1, 20) + b"\xff\xff\xff\xff",
        hello + header(9, 16),
        hello + header(9, 32) + struct.pack("<QII", 0, 99, 4),
        hello + header(9, 32) + struct.pack("<QII", 2**64 - 1, 0, 4),
        hello + header(9, 32) + struct.pack("<QII", 0, 0, 0xFFFFFFFF),
        hello + header(10, 32) + struct.pack("<QII", 0, 0, 4096),
        hello + header(2, 48) + struct.pack("<IIQQQ", 32, 3, 0, 0x1000, 2**64 - 0x1000),
        hello + header(8, 36) + struct.pack("<IIIII", 20, 0x24, 2, 2**32 - 1, 2**32 - 1),
        *(rng.randbytes(rng.randrange(1, 300)) for _ in range(20)),
        *(
            hello + header(rng.randrange(16), 16 + (n := rng.randrange(64))) + rng.randbytes(n)
            for _ in range(40)
        ),
    ]
    for text in garbage:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(server.path))
            try:
                connection.sendall(text)
                if rng.random() < 0.5:
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(4096):
                        pass
            except (BrokenPipeError, ConnectionResetError):
                pass  # it may disconnect immediately
        server.is_well()
    serves(server, data)


def test_the_log_of_a_hostile_client_is_short(tmp_path: Path, data: Path):
    """A few lines per cause, with the number of suppressed ones, and no colours: output is to a file."""
    server = Server(tmp_path)
    version = b"\0\0\1\0"
    refused = header(2, 48) + struct.pack("<IIQQQ", 32, 3, 0, 0x1000, 0x1000)
    with data.open("rb") as file, socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(str(server.path))
        connection.sendall(header(1, 16 + len(version)) + version)
        connection.recv(4096)
        for _ in range(500):
            socket.send_fds(connection, [refused], [file.fileno()])
            assert len(connection.recv(16, socket.MSG_WAITALL)) == 16
    for _ in range(100):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(server.path))
            connection.sendall(header(9, 16, flags=1))
            assert connection.recv(4096) == b""
    serves(server, data)
    assert server.end() == 0
    lines = server.errors.read_text().splitlines()
    # However slow it is, one more of each cause every five seconds.
    assert 10 < len(lines) < 40, lines
    assert "\x1b" not in "".join(lines)
    for cause, sent in (("a client's memory is refused", 500), ("a reply without a request", 100)):
        shown = sum(cause in line and "were not shown" not in line for line in lines)
        assert any(f"process {os.getpid()} (" in line for line in lines if cause in line)
        left_out = [int(n) for n in re.findall(rf': (\d+) more like "{cause}', "\n".join(lines))]
        assert shown >= 5 and shown + sum(left_out) == sent, lines


def test_nobody_reads_the_log(tmp_path: Path, data: Path):
    """Messages that cannot be written are dropped, and the card continues."""
    path = tmp_path / "card.sock"
    command = [VIADUCT, "-v", "card", "--socket", str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as card:
        assert card.stdout and card.stderr
        assert "card on" in card.stdout.readline()
        card.stderr.close()
        for _ in range(3):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(PATIENCE)
                connection.connect(str(path))
                connection.sendall(header(9, 16, flags=1))
                assert connection.recv(4096) == b""
        sink = tmp_path / "out"
        routes = ["--in", f"file:{data}", "--out", f"file:{sink}", "--card", f"unix:{path}"]
        subprocess.run([VIADUCT, "run", "pass", *routes], timeout=PATIENCE, cwd=ROOT, check=True)
        assert sink.read_bytes() == data.read_bytes()
        card.terminate()
        assert card.wait(PATIENCE) == 0


def test_a_client_that_says_nothing(server: Server, data: Path):
    """It holds the card for any time, but disconnecting is enough for the next client."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(server.path))
        connection.sendall(header(1, 1000)[:7])
        time.sleep(0.5)
        server.is_well()
    serves(server, data)
