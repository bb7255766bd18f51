# SPDX-License-Identifier: Apache-2.0
"""`viaduct vm` for tests: the guest's files, runs in it, and the other ends of the card's cables."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VIADUCT = str(ROOT / "viaduct")
SCRIPTS = ROOT / "guest" / "tests"
# In a network namespace of its own: a TAP device, and while the command in the arguments runs, an iperf3 server and one that sends UDP
# datagrams to port 7 back. This is process 1: all others end with it. The first argument is the folder of the guest's tools; without it
# there are no servers.
TAP_HOST = f"""
ip link set lo up
ip tuntap add t0 mode tap
ip address add 10.0.0.2/24 dev t0
ip link set t0 up
root=$1; shift
if [ -n "$root" ]; then
  "$root/usr/lib64/ld-linux-x86-64.so.2" --library-path "$root/usr/lib/x86_64-linux-gnu" "$root/usr/bin/iperf3" -s --rcv-timeout 3600000 >&2 &
  {sys.executable} {ROOT}/tests/udp_echo.py 10.0.0.2 7 &
fi
"$@"
exit $?
"""
PATIENCE = 3600.0  # longest time for anything, also on a busy machine


@cache
def prepare(kernel: str) -> tuple[dict[str, str], str]:
    """The files of a guest, or the reason why there are none."""
    made = subprocess.run(
        [ROOT / "tools" / "guest.sh", "--kernel", kernel],
        text=True,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    if made.returncode != 0:
        return {}, made.stderr.strip().splitlines()[-1]
    return dict(line.split("=", 1) for line in made.stdout.splitlines()), ""


def guest(kernel: str = "6.12") -> dict[str, str]:
    """The files of a guest; without them the test is skipped, with the reason."""
    files, why = prepare(kernel)
    if not files:
        pytest.skip(f"no guest to boot here: {why}")
    return files


def vm(*args: str | Path, functions: str = "none", **more) -> subprocess.CompletedProcess[str]:
    """A run of `viaduct vm`."""
    guest()
    limit = [] if "--timeout" in args else ["--timeout", str(int(PATIENCE))]
    command = [VIADUCT, "vm", "--function", functions, *limit, *map(str, args)]
    return subprocess.run(
        command, text=True, capture_output=True, cwd=ROOT, timeout=PATIENCE, check=False, **more
    )


def reason(done: subprocess.CompletedProcess[str]) -> str:
    """Why a run in a guest failed: first the script's message, so that a summary of one line contains it, then all output."""
    said = [line.strip() for line in done.stderr.splitlines() if "FAIL: " in line]
    return "\n".join([" / ".join(said) or f"exit status {done.returncode}", done.stdout, done.stderr])


def script(name: str, functions: str, *args: str, options: tuple[str | Path, ...] = ()) -> str:
    """Runs a script of guest/tests, which must succeed; returns what it prints."""
    done = vm(*options, "--script", SCRIPTS / f"{name}.sh", "--", *args, functions=functions)
    print(done.stdout)
    assert done.returncode == 0, reason(done)
    return done.stdout


@contextmanager
def functions_in(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A card in a process of its own, with its functions' sockets in the folder."""
    command = [VIADUCT, "card", "--functions", str(folder), *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as card:
        try:
            assert card.stdout and card.stdout.readline()
            yield card
        finally:
            card.terminate()


def beside_tap(
    root: str, *command: str | Path, timeout: float = PATIENCE
) -> subprocess.CompletedProcess[str]:
    """A command in a network namespace of its own, see TAP_HOST."""
    own = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child"]
    words = [*own, "sh", "-ec", TAP_HOST, "sh", root, *map(str, command)]
    return subprocess.run(words, text=True, capture_output=True, cwd=ROOT, timeout=timeout, check=False)


def log_in(path: Path, limit: float = 600.0) -> None:
    """Logs in on the console whose other end is this socket, as guest/tests/console.sh expects it."""
    end = time.monotonic() + limit
    while True:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(2)
        try:
            connection.connect(str(path))
            break
        except OSError:
            connection.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
    heard = b""

    def until(text: bytes, *, send: bytes = b"") -> None:
        nonlocal heard
        while text not in heard:
            assert time.monotonic() < end, f"no {text!r} on the console: {heard!r}"
            try:
                heard += connection.recv(4096)
            except TimeoutError:
                connection.sendall(send)
        heard = b""

    with connection:
        until(b"login: ", send=b"\n")
        connection.sendall(b"root\n")
        until(b"# ")
        connection.sendall(b"tty; touch /run/console-done\n")
        until(b"/dev/hvc0")


def alive(marker: str) -> list[int]:
    """Processes with this in their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (folder / "cmdline").read_bytes() and int(folder.name) != os.getpid():
                found.append(int(folder.name))
        except OSError:
            continue
    return found
