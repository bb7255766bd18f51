# SPDX-License-Identifier: Apache-2.0
"""`viaduct card --metrics` and `viaduct top`: the counters are those of the work done, and collectors harm nobody."""

import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VIADUCT = str(ROOT / "viaduct")
PATIENCE = 120.0  # longest time for anything, also on a slow machine


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A card in a process of its own: its name, and the address of its counters."""
    path = tmp_path_factory.mktemp("card") / "card.sock"
    process = subprocess.Popen(
        [VIADUCT, "card", "--socket", str(path), "--metrics", "127.0.0.1:0"],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    assert "card on" in process.stdout.readline()
    told = re.search(r"http://(127\.0\.0\.1:\d+)/metrics", process.stdout.readline())
    assert told
    yield f"unix:{path}", told[1]
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0


def metrics(address: str) -> dict[str, float]:
    """Name with labels → value."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE) as response:
        assert response.headers["Content-Type"].startswith("application/openmetrics-text")
        text = response.read().decode()
    assert text.endswith("# EOF\n")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def viaduct(*args: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [VIADUCT, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT
    )
    assert done.returncode == code, done.stderr
    return done


def test_counters_are_those_of_a_run(card: tuple[str, str], tmp_path: Path):
    name, address = card
    data, out, size = tmp_path / "data", tmp_path / "out", 123_457
    data.write_bytes(os.urandom(size))
    before = metrics(address)
    viaduct("run", "pass", "--in", f"file:{data}", "--out", f"file:{out}", "--card", name)
    assert out.read_bytes() == data.read_bytes()
    after = metrics(address)

    def grown(key: str) -> float:
        return after[f"viaduct_{key}"] - before[f"viaduct_{key}"]

    for port in ("stream_in", "stream_out"):
        assert grown(f'slot_bytes_total{{port="{port}",slot="0"}}') == size
        assert grown(f'slot_bytes_total{{port="{port}",slot="1"}}') == 0
    for op in ("read", "write"):
        assert size <= grown(f'host_memory_bytes_total{{function="mgmt",op="{op}"}}') <= 1.2 * size + 65536
    assert after['viaduct_slot_loaded{slot="0"}'] == 1 and after['viaduct_slot_loaded{slot="1"}'] == 0
    cycles = grown('cycles_total{board="gen3x16"}')
    seconds = cycles / after['viaduct_clock_hertz{board="gen3x16"}']
    for direction in ("from_card", "to_card"):
        assert 0 < grown(f'link_busy_seconds_total{{direction="{direction}"}}') <= seconds


def test_memory_of_the_card_is_counted(card: tuple[str, str], tmp_path: Path):
    name, address = card
    before = metrics(address)
    viaduct("run", "rng", "--in", "mem=file:Makefile", "--card", name)
    after = metrics(address)
    grown = {key: value - before[key] for key, value in after.items()}
    read = grown['viaduct_slot_bytes_total{port="memory_read",slot="0"}']
    of_channels = sum(grown[f'viaduct_dram_bytes_total{{channel="{c}",op="read"}}'] for c in range(4))
    assert 0 < read <= of_channels


def test_top_shows_a_card_as_text_and_on_a_terminal(card: tuple[str, str]):
    _, address = card
    text = viaduct("top", address, "--count", 2).stdout
    assert text.count("gen3x16, 250 MHz") == 2 and text.count("slot 3") == 2
    master, slave = pty.openpty()
    process = subprocess.Popen([VIADUCT, "top", address], stdin=slave, stdout=slave, stderr=slave, cwd=ROOT)
    os.close(slave)
    seen, end = b"", time.monotonic() + PATIENCE
    try:
        while b"functions" not in seen:
            assert time.monotonic() < end and process.poll() is None
            if select.select([master], [], [], 0.2)[0]:
                seen += os.read(master, 65536)
            # A new size is a reason to draw.
            fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 150, 0, 0))
        os.write(master, b"q")
        # Until the program has closed its end.
        while select.select([master], [], [], PATIENCE)[0]:
            try:
                seen += os.read(master, 65536)
            except OSError:
                break
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        os.close(master)
    # It has left the other screen that it was on.
    assert b"\x1b[?1049h" in seen and b"\x1b[?1049l" in seen


def test_top_ends_with_its_terminal_and_beside_a_card_that_hangs():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        counters = b'{"board":"b","clock_khz":1,"cycles":1,"link":{"from_card_seconds":0,"to_card_seconds":0},"channels":[],"slots":[],"functions":[]}'
        for way in ("q", "SIGTERM", "close"):
            master, slave = pty.openpty()
            fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 150, 0, 0))
            process = subprocess.Popen(
                [VIADUCT, "top", address], stdin=slave, stdout=slave, stderr=slave, cwd=ROOT
            )
            os.close(slave)
            # The first look succeeds, the next ones get no answer.
            connection = server.accept()[0]
            connection.recv(4096)
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(counters)}\r\n\r\n"
            connection.sendall(head.encode() + counters)
            held = server.accept()[0]
            if way == "q":
                os.write(master, b"q")
            elif way == "SIGTERM":
                process.send_signal(signal.SIGTERM)
            else:
                os.close(master)
            try:
                assert process.wait(PATIENCE) in (0, 1), way
            finally:
                process.kill()
                held.close()
                if way != "close":
                    os.close(master)


def test_a_collector_that_hangs_holds_up_neither_the_card_nor_others(card: tuple[str, str]):
    name, address = card
    host, port = address.split(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(10)]
    for connection in silent:
        connection.sendall(b"GET /metrics HTT")
    assert metrics(address)
    viaduct("run", "pass", "--in", "file:Makefile", "--out", "host:1M", "--card", name)
    for connection in silent:
        connection.close()
    assert metrics(address)


def test_errors_name_the_address_and_what_to_do(card: tuple[str, str], tmp_path: Path):
    _, address = card
    socket_path = tmp_path / "card.sock"
    for at, words in [
        (address, "Address already in use"),
        ("9464", "write HOST:PORT"),
        ("localhost:port", "write HOST:PORT"),
    ]:
        done = viaduct("card", "--socket", socket_path, "--metrics", at, code=1)
        assert done.stderr.splitlines()[-1].startswith(f"error: {at}: ") and words in done.stderr
        assert not socket_path.exists()
    assert "Connection refused" in viaduct("top", "127.0.0.1:1", code=1).stderr
    assert "write HOST:PORT" in viaduct("top", "card", code=1).stderr
