# SPDX-License-Identifier: Apache-2.0
"""Builds the Verilated models of block tests, in folders that one run at a time may use.

A model is built again when something it is made of has changed: the sources that Verilator read, the commands, tools and their options, all
compared by content with stamp.json in its folder. Paths in there are relative to the project, so a copied or moved checkout keeps its models.
"""

import fcntl
import functools
import hashlib
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from compilers import cxx

ROOT = Path(__file__).resolve().parents[2]
SHOWN = 40  # lines of a tool's output in an error
VARIABLES = ("CPPFLAGS", "CXXFLAGS", "LDFLAGS")  # that the makefile listens to
SOURCES = (".sv", ".v", ".svh", ".vh", ".vlt")


class BuildError(Exception):
    """A tool failed: which, and what it said."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Waits until no other run uses the folder; it is ours until the end of the block, however that ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        os.set_inheritable(lock.fileno(), True)  # tools that outlive us hold it
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another test in {folder}", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write(path: Path, text: str) -> None:
    """Writes a file, unless it is so already: what is not new is not built again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def tool(name: str) -> Path:
    """A program as it is, not as the link in this checkout that leads to it."""
    found = shutil.which(name)
    if found is None:
        raise BuildError(f"{name} is not installed: run `make setup` and put .venv/bin into PATH")
    return Path(found).resolve()


def short(path: Path) -> str:
    """A path as the tools get it, which run in the project's folder."""
    return os.path.relpath(path, ROOT)


def digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "absent"


@functools.cache
def compiler() -> str:
    """The C++ compiler, and the first line of what it says about itself."""
    command = [*cxx().split(), "--version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as e:
        raise BuildError(f"the C++ compiler {command[0]}: {e.strerror}") from None
    return f"{cxx()}: {(done.stdout.splitlines() or [''])[0]}"


def first(name: str, folders: list[Path]) -> str:
    """Where Verilator finds a module."""
    return next((short(f) for d in folders if (f := d / name).exists()), "")


def sources(folder: Path, prefix: str) -> list[Path]:
    """The files that Verilator read, from the list it made; its own belong to its version."""
    text = (folder / f"{prefix}__ver.d").read_text().replace("\\\n", " ")
    paths = [Path(os.path.normpath(ROOT / p)) for p in text.split(":", 1)[1].split() if p.endswith(SOURCES)]
    own = tool("verilator").parents[1]
    return [p for p in paths if not p.resolve().is_relative_to(own)]


def run_tool(command: list[str], log: Path) -> int:
    """Runs a tool in the project's folder and returns its status. A signal that ends this program ends it, with all that it has started."""
    child: subprocess.Popen[bytes] | None = None
    starting = True
    arrived: int | None = None

    def end(number: int) -> None:
        if child is not None and child.returncode is None:
            os.killpg(child.pid, signal.SIGKILL)
        # Not by an exception: pytest would take that for a failed test and go on with the next.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def end_with_it(number: int, _frame: FrameType | None) -> None:
        nonlocal arrived
        if starting:  # the tool may run already, but its process is not known here yet
            arrived = number
        else:
            end(number)

    # Only the main thread may say what signals do; pytest runs tests there. What is ignored stays so.
    numbers = (signal.SIGTERM, signal.SIGHUP) if threading.current_thread() is threading.main_thread() else ()
    before = {n: signal.signal(n, end_with_it) for n in numbers if signal.getsignal(n) == signal.SIG_DFL}
    try:
        try:
            with log.open("a") as output:
                child = subprocess.Popen(
                    command,
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    process_group=0,
                    close_fds=False,
                )
        finally:
            starting = False
            if arrived is not None:
                end(arrived)
        try:
            return child.wait()
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def execute(command: list[str], what: str, log: Path) -> None:
    """Runs a tool that builds something; raises an error with what it complains of if it fails."""
    __tracebackhide__ = True
    status = run_tool(command, log)
    if not status:
        return
    lines = log.read_text(errors="replace").splitlines()
    # What Verilator and the compiler complain of comes first: the last lines only tell that there was something.
    errors = [
        i for i, line in enumerate(lines) if "rror: " in line or line.startswith(("%Error", "%Warning"))
    ]
    begin = min(errors[0] if errors else len(lines), max(len(lines) - SHOWN, 0))
    said = "\n".join(lines[begin : begin + SHOWN])
    ending = f"ended with status {status}"
    if status < 0:
        ending = f"was ended by signal {-status} ({signal.strsignal(-status)}); memory may be short"
    ended = f"{what} cannot be built: {Path(command[0]).name} {ending}; all it said is in {short(log)}"
    raise BuildError(f"{ended}\n{said}")


def build(out: Path, prefix: str, commands: list[list[str]], folders: list[Path]) -> bool:
    """Makes the program `out` with these commands, in the project's folder; returns whether there was anything to do.

    The first command is Verilator's, with this `prefix` and the folder of `out` to write to; it finds modules by name in `folders`.
    """
    __tracebackhide__ = True  # pytest: the error says it all
    folder, stamp = out.parent, out.parent / "stamp.json"
    request: dict[str, Any] = {
        "commands": commands,
        "compiler": compiler(),
        "variables": {v: os.environ.get(v, "") for v in VARIABLES},
    }
    try:
        last = json.loads(stamp.read_text())
        if (
            last["request"] == request
            and last["out"] == digest(out)
            and all(digest(ROOT / p) == d for p, d in last["sources"].items())
            and all(first(Path(p).name, folders) == p for p in last["found"])
        ):
            return False
    except (OSError, ValueError, KeyError):
        pass
    stamp.unlink(missing_ok=True)
    log = folder / "build.log"
    log.unlink(missing_ok=True)
    for command in commands:
        execute(command, out.name, log)
    read = sources(folder, prefix)
    found = [short(p) for p in read if p.parent in folders and first(p.name, folders) == short(p)]
    result = {
        "request": request,
        "sources": {short(p): digest(p) for p in read},
        "found": found,
        "out": digest(out),
    }
    part = stamp.with_suffix(".part")
    part.write_text(json.dumps(result))
    part.replace(stamp)
    return True
