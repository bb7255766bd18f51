# SPDX-License-Identifier: Apache-2.0
"""`viaduct vm` itself: what it passes on, how it ends, and that it leaves nothing behind. No card is attached."""

import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from vm_guest import PATIENCE, ROOT, VIADUCT, alive, guest, vm


@pytest.mark.parametrize("kernel", ["6.12", "6.1", "new"])
def test_kernels(kernel: str):
    files = guest(kernel)
    done = vm("--kernel", kernel, "--", "uname", "-r")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == files["release"]


def test_a_snapshot_saves_the_boot():
    vm("--", "true")
    begun = time.monotonic()
    done = vm("--", "cat", "/proc/uptime")
    took = time.monotonic() - begun
    assert done.returncode == 0, done.stderr
    print(f"{took:.2f} s")
    assert "booting" not in done.stderr
    assert took < 20, "about a second on a machine that does nothing else"


def test_streams_arguments_and_exit_code(tmp_path: Path):
    data = tmp_path / "data"
    data.write_bytes(os.urandom(100_000))
    script = tmp_path / "script"
    script.write_text('#!/bin/sh\necho "<$1>" >&2\nsha256sum <data\nprintf "no newline"\nexit 42\n')
    done = vm("--copy", data, "--script", script, "--", "it's  $HOME")
    digest = subprocess.run(["sha256sum"], input=data.read_bytes(), capture_output=True, check=True).stdout
    assert done.returncode == 42, done.stderr
    assert done.stdout == digest.decode() + "no newline"
    assert done.stderr.splitlines()[-1] == "<it's  $HOME>"


def test_much_output_comes_whole():
    done = vm("--", "seq", "50000")
    assert done.stdout.split() == [str(n) for n in range(1, 50001)]


def test_the_clock_is_right():
    before = time.time()
    seconds = int(vm("--", "date", "+%s").stdout)
    assert before - 2 <= seconds <= time.time() + 2


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["--timeout", "3", "--", "sleep", "600"], "not done within 3 s"),
        (["--", "sh", "-c", "echo c >/proc/sysrq-trigger"], "Kernel panic.*sysrq"),
        (["--", "poweroff", "-f"], "ended before its job"),
    ],
)
def test_a_guest_that_fails(command: list[str], words: str):
    done = vm(*command)
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and re.search(words, done.stderr, re.S), done.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_ending_it_leaves_nothing(how: signal.Signals, tmp_path: Path):
    guest()
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [VIADUCT, "vm", "--function", "none", "--", "sh", "-c", "echo begins; sleep 600"],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment,
    )
    assert process.stdout and process.stdout.readline() == "begins\n"
    assert alive(str(tmp_path))
    process.send_signal(how)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == (-how if how == signal.SIGKILL else 1), errors
    end = time.monotonic() + 20
    while alive(str(tmp_path)):
        assert time.monotonic() < end, "QEMU lives on"
        time.sleep(0.1)
    if how != signal.SIGKILL:
        assert not list(tmp_path.iterdir())


def test_a_shell_on_a_terminal():
    guest()
    vm("--", "true")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.execv(VIADUCT, [VIADUCT, "vm", "--function", "none"])
    heard = b""

    def until(text: bytes) -> None:
        nonlocal heard
        end = time.monotonic() + 120
        while text not in heard:
            assert time.monotonic() < end, heard
            if select.select([terminal], [], [], 1)[0]:
                heard += os.read(terminal, 4096)
        heard = b""

    until(b"# ")
    os.write(terminal, b"sleep 600; echo interrupted\n")
    time.sleep(1)
    os.write(terminal, b"\x03")
    until(b"# ")
    os.write(terminal, b"echo $((6 * 7)); exit 5\n")
    until(b"42")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5


def test_a_shell_reads_a_pipe():
    done = vm(input="echo $((6 * 7)); exit 3\n")
    assert done.returncode == 3, done.stderr
    assert "42" in done.stdout.splitlines()


def test_wrong_use(tmp_path: Path):
    for args, words in (
        (["--function", "net", "--card", str(tmp_path)], "is there a card"),
        (["--script", str(tmp_path / "none")], "none"),
        (["--kernel", "2.4"], "6.12"),
    ):
        done = subprocess.run(
            [VIADUCT, "vm", *args, "--", "true"], text=True, capture_output=True, cwd=ROOT, timeout=PATIENCE
        )
        assert done.returncode in (1, 2) and words in done.stderr, done.stderr
