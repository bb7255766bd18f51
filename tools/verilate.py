#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verilates a top module and compiles it with its C++ side into one shared object.

    .venv/bin/python tools/verilate.py card [--trace] [--coverage] [--assert]
    .venv/bin/python tools/verilate.py slot --out build/apps/aes/aes.so --source wrapper.sv -y apps/aes/rtl [...]

`card` makes build/card/libviaduct_card.so: the shell and the models in sim/. With --trace, --coverage or --assert it makes
build/card-trace/libviaduct_card.so and so on, beside the fast one. `slot` makes the object of one app around its `via_slot`. Both
find modules by name in rtl/*/ and build/regs and read via_pkg first. Relative paths are relative to the project's folder.

Nothing is done if no input changed: sources (those Verilator read the last time), C++ files, arguments and tool versions are compared by
content with stamp.json beside the generated files. It names files relative to the project, so that a copied or moved one is current;
host/viaduct-build/src/stamp.rs reads it too. A build that was ended goes on where it stopped.
"""

import argparse
import concurrent.futures
import fcntl
import functools
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn

import checkers

# Where it is called, not where links lead: a project may borrow these tools. It is the working folder: all paths below are relative to it.
ROOT = Path(__file__).absolute().parent.parent
TOP_OF = {"card": "via_shell", "slot": "via_slot"}
PREFIX_OF = {"card": "Vshell", "slot": "Vslot"}
# Files of Verilator's run-time library that an object needs, with waves and coverage.
RUNTIME = ["verilated.cpp", "verilated_threads.cpp"]
JOBS = min(2, os.cpu_count() or 1)


def fail(message: str) -> NoReturn:
    sys.exit(f"verilate: error: {message}")


def unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Tells in one line of an exception that nobody has caught."""
    if isinstance(error, OSError) and error.filename:
        text = f"{error.filename}: {error.strerror}"
    else:
        line = [frame.lineno for frame in traceback.extract_tb(trace) if frame.filename == __file__][-1]
        text = f"{kind.__name__}: {' '.join(str(error).split())} (line {line} of {__file__})"
    print(f"verilate: error: {text}", file=sys.stderr)


def found(pattern: str) -> list[Path]:
    return sorted(Path().glob(pattern))


def digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "absent"


@functools.cache
def verilator_root() -> Path:
    found = sorted((Path(sys.prefix).resolve() / "lib").glob("python3*/site-packages/verilator"))
    if not found:
        fail("Verilator is not installed here: run `make setup`, then use .venv/bin/python")
    os.environ["VERILATOR_ROOT"] = str(found[0])  # where it looks for its own files
    return found[0]


def verilator_version() -> str:
    verilator_root()
    return version("verilator")


@functools.cache
def compiler_version(cxx: str) -> str:
    try:
        done = subprocess.run([cxx, "--version"], capture_output=True, text=True, check=False)
    except OSError as e:
        fail(f"the C++ compiler {cxx}: {e.strerror}; install g++, or name another one with CXX")
    return (done.stdout.splitlines() or [""])[0]


def processor() -> str:
    """What instructions this machine has, as far as it says."""
    try:
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return ""
    return next((line for line in first if line.startswith(("flags", "Features"))), "")


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Holds the lock; who has to wait is told what for. It is free again when its holder is gone, however that ended."""
    with path.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            print(f"{what}: waiting for process {lock.read().strip()}, which builds it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        lock.truncate()
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


# ---------------------------------------------------------------- tools
def why(tool: str, status: int, output: str) -> str:
    """How a tool ended, and what to do if memory is to blame."""
    ending = f"ended with status {status}"
    if status < 0:
        ending = f"was ended by signal {-status} ({signal.strsignal(-status)})"
    # The compiler proper is a child of g++, which tells of its end and ends with 1.
    killed = status == -signal.SIGKILL or "Killed signal terminated program" in output
    words = ("memory exhausted", "annot allocate memory", "out of memory")
    if killed or any(w in output for w in words):
        return f"{tool} {ending}; memory may be short: end other programs, then run the same command again"
    return f"{tool} {ending}" + ("; its messages are above" if output else "")


class Tools:
    """Runs tools, JOBS at a time. One that fails ends the others, and so does a signal that ends this program."""

    def __init__(self) -> None:
        self.pool = concurrent.futures.ThreadPoolExecutor(JOBS)
        self.mutex = threading.RLock()  # of the two below; a signal may come while the main thread holds it
        self.running: set[subprocess.Popen[str]] = set()
        self.ended = False

    def catch_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self.on_signal)

    def on_signal(self, number: int, _: FrameType | None) -> None:
        self.end()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def end(self) -> None:
        """Ends what runs, with all that it has started; nothing is started any more."""
        with self.mutex:
            self.ended = True
            for child in self.running:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)

    def run(self, command: list[str], what: str) -> None:
        """Runs a tool; its output is shown only if it fails."""
        self.run_all([(command, what, None)])

    def run_all(self, commands: list[tuple[list[str], str, Path | None]]) -> None:
        """Runs (command, what it does, file it makes); the file's name is added to the command, and is there only when it is whole."""
        tasks = [self.pool.submit(self.run_one, *command) for command in commands]
        try:
            for task in concurrent.futures.as_completed(tasks):
                task.result()
        except BaseException:
            self.end()
            self.pool.shutdown(cancel_futures=True)
            raise

    def run_one(self, command: list[str], what: str, made: Path | None) -> None:
        part = made.with_name(f"{made.name}.part") if made else None
        with self.mutex:
            if self.ended:
                return
            try:
                child = subprocess.Popen(
                    command + (["-o", str(part)] if part else []),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    process_group=0,  # a group of its own, with the programs it starts
                )
            except OSError as e:
                fail(f"{what}: {command[0]}: {e.strerror}")
            self.running.add(child)
        output, _ = child.communicate()
        with self.mutex:
            self.running.discard(child)
            if self.ended:
                return
        if child.returncode:
            sys.stderr.write(output)
            fail(f"{what}: {why(command[0], child.returncode, output)}")
        if part and made:
            part.replace(made)


TOOLS = Tools()


def compile_all(units: list[tuple[Path, Path, list[str]]], cxx: str) -> None:
    """Compiles (source, object, flags), the largest first; objects that an earlier build has made are kept."""
    units = sorted((u for u in units if not u[1].exists()), key=lambda unit: -unit[0].stat().st_size)
    TOOLS.run_all(
        [([cxx, *flags, "-c", str(source)], f"compiling {source.name}", obj) for source, obj, flags in units]
    )


class Build:
    """One shared object to be made."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.kind: str = args.kind
        self.top = TOP_OF[args.kind]
        self.prefix = PREFIX_OF[args.kind]
        self.args = args
        variant = [name for name in ("trace", "coverage", "assert") if getattr(args, name)]
        default = f"build/{'-'.join(['card', *variant])}/libviaduct_card.so"
        self.out = Path(args.out or default)
        self.work = self.out.parent / f"{self.out.stem}.verilated"
        self.stamp = self.work / "stamp.json"
        self.cxx = os.environ.get("CXX", "g++")
        self.name = args.name or (self.out.stem if self.kind == "slot" else "card")
        if variant:
            self.name += f" ({', '.join(variant)})"

    # ------------------------------------------------------------ what to do
    def sources(self) -> list[Path]:
        """Files read in order before modules are looked up by name."""
        packages = [Path("rtl/common/via_pkg.sv")]
        if self.kind == "card":
            # Those that others use come first.
            packages += [Path("rtl/virtio/via_virtio_pkg.sv")]
            packages += [p for p in found("rtl/*/via_*_pkg.sv") if p not in packages]
            packages += [Path("tools/lint.vlt"), *found("build/regs/*.vlt"), *found("build/regs/*_pkg.sv")]
            packages += [Path("rtl/shell/via_shell.sv")]
        if self.checked():
            packages += [Path("rtl/common/tb/via_tb_assert.sv"), self.work / "checkers.sv"]
        return packages + [Path(s) for s in self.args.source]

    def checked(self) -> bool:
        """Whether assertions count, and the checkers are bound to the ports of all blocks. A card that counts coverage checks too: one build does for both."""
        return self.kind == "card" and (getattr(self.args, "assert") or self.args.coverage)

    def folders(self) -> list[Path]:
        rtl = [p for p in found("rtl/*") if p.is_dir()]
        return [Path(y) for y in self.args.y] + [*rtl, Path("build/regs")]

    def cpp(self) -> list[Path]:
        return [Path("sim/shim/slot_shim.cpp")] if self.kind == "slot" else found("sim/*.cpp")

    def headers(self) -> list[Path]:
        if self.kind == "slot":
            return [Path("sim/verilated_top.h"), Path("sim/include/viaduct_slot.h")]
        return found("sim/**/*.h")

    def patterns(self) -> list[str]:
        """Where a new file is one more input."""
        if self.kind == "slot":
            return []
        return ["rtl/*/via_*_pkg.sv", "build/regs/*.vlt", "build/regs/*_pkg.sv", "sim/*.cpp", "sim/**/*.h"]

    def verilator_command(self) -> list[str]:
        a = self.args
        command = [str(verilator_root() / "bin/verilator_bin"), "--cc", "-Wall", "--prefix", self.prefix]
        command += ["--top-module", self.top, "-Mdir", str(self.work), "-O3", "--x-assign", "fast"]
        command += ["--x-initial", "fast", "--assert" if self.checked() else "--noassert"]
        command += ["--output-split", str(a.output_split), "--no-timing", "--MMD", "-DVIA_SIM"]
        # Style findings of a user's app are the linter's business (`make lint`), not a reason not to run.
        command += ["-Wno-fatal", "-Wno-DECLFILENAME"] if self.kind == "slot" else ["-Wno-DECLFILENAME"]
        command += ["--trace-fst"] if a.trace else []
        command += ["--coverage-line", "--coverage-toggle"] if a.coverage else []
        command += [f"-D{d}" for d in a.define]
        for folder in self.folders():
            command += ["-y", str(folder)]
        if self.kind == "slot":
            command += [f"-I{folder}" for folder in a.y]
        return command + [str(s) for s in self.sources()]

    def flags(self) -> list[str]:
        a = self.args
        flags = [
            "-std=c++20",
            "-fPIC",
            "-fvisibility=hidden",
            "-fno-gnu-unique",
            "-fno-plt",
            "-pthread",
            "-w",
        ]
        flags += ["-fno-semantic-interposition", "-fcf-protection=none", "-faligned-new"]
        flags += [] if a.portable else ["-march=native"]
        flags += ["-DVL_TIME_CONTEXT", "-DVERILATOR=1"]
        trace, coverage = int(a.trace), int(a.coverage)
        flags += [f"-DVM_TRACE={trace}", f"-DVM_TRACE_FST={trace}", "-DVM_TRACE_VCD=0", "-DVM_TRACE_SAIF=0"]
        flags += [
            f"-DVM_COVERAGE={coverage}",
            "-DVM_SC=0",
            "-DVM_TIMING=0",
            f"-DVIA_ASSERT={int(self.checked())}",
        ]
        return flags

    def own_flags(self) -> list[str]:
        """Those that do not concern Verilator's own library: geometry, folders of ours."""
        geometry = [f"-D{d}" for d in self.args.define if d.startswith("VIA_")]
        return [*geometry, f"-I{self.work}", "-Isim", "-Isim/include"]

    def inputs(self) -> dict[str, Any]:
        """Everything the result depends on, as far as it is known before Verilator has run."""
        sources = [p for p in self.sources() if p.name != "checkers.sv"]  # which is made of the others
        files = [*sources, *self.cpp(), *self.headers(), Path("tools/verilate.py"), Path("tools/checkers.py")]
        return {
            "request": sys.argv[1:],
            "compiler": [self.cxx, compiler_version(self.cxx)],
            "verilator": verilator_version(),
            "processor": "" if self.args.portable else processor(),
            "patterns": {pattern: [str(p) for p in found(pattern)] for pattern in self.patterns()},
            "files": {str(f): digest(f) for f in files},
        }

    def read_sources(self) -> list[Path]:
        """Files that Verilator read, from the dependency file it wrote; its own belong to its version."""
        text = (self.work / f"{self.prefix}__ver.d").read_text().replace("\\\n", " ")
        own = str(verilator_root())
        kinds = (".sv", ".v", ".svh", ".vh", ".vlt")
        return [Path(p) for p in text.split(":", 1)[1].split() if p.endswith(kinds) and not p.startswith(own)]

    def read_stamp(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """What was built, or begun, from these inputs; empty if nothing was."""
        try:
            stamp = json.loads(self.stamp.read_text())
            same = stamp["inputs"] == inputs and all(
                digest(Path(p)) == d for p, d in stamp["sources"].items()
            )
        except (OSError, ValueError, KeyError):
            return {}
        return stamp if same else {}

    def is_current(self, stamp: dict[str, Any]) -> bool:
        current = stamp.get("out") == digest(self.out)
        if current:
            print(f"{self.name}: up to date")
        return current

    def write_stamp(self, stamp: dict[str, Any]) -> None:
        part = self.stamp.with_suffix(".part")
        part.write_text(json.dumps(stamp))
        part.replace(self.stamp)

    # ------------------------------------------------------------ doing it
    def make(self) -> None:
        # The first look is without the lock: the folder may be one that we cannot write to.
        if self.is_current(self.read_stamp(self.inputs())):
            return
        self.work.mkdir(parents=True, exist_ok=True)
        with locked(self.work.parent / f".{self.work.name}.lock", self.name):
            inputs = self.inputs()
            stamp = self.read_stamp(inputs)
            if self.is_current(stamp):
                return
            hint = " (1 to 2 minutes)" if self.kind == "card" else ""
            print(f"{self.name}: Verilating {self.top} and compiling it{hint}", flush=True)
            begun = time.monotonic()
            # An earlier build that was ended in between has left what it had.
            if not stamp or stamp["out"]:
                shutil.rmtree(self.work)
                self.work.mkdir()
                if self.checked():
                    text = checkers.binds(Path("rtl/shell/via_shell.sv"), self.folders(), many=False)
                    (self.work / "checkers.sv").write_text(text)
                TOOLS.run(self.verilator_command(), "Verilating")
                sources = {str(p): digest(p) for p in self.read_sources()}
                stamp = {"inputs": inputs, "sources": sources, "out": ""}
                self.write_stamp(stamp)
            self.compile_and_link()
            self.write_stamp(stamp | {"out": digest(self.out)})
            for leftover in (p for ending in ("o", "gch", "part") for p in self.work.glob(f"*.{ending}")):
                leftover.unlink()
            print(f"{self.name}: done in {time.monotonic() - begun:.0f} s")

    def compile_and_link(self) -> None:
        include = verilator_root() / "include"
        base = [*self.flags(), *self.own_flags(), f"-isystem{include}", f"-isystem{include / 'vltstd'}"]
        fast = ["-O1", *base]  # -O2 takes three times as long and gains a tenth
        slow = ["-O0", *base]
        header = self.work / f"{self.prefix}__pch.h"
        units: list[tuple[Path, Path, list[str]]] = []
        pch = {}
        for label, flags in (("fast", fast), ("slow", slow)):
            pch[label] = (self.work / f"{header.name}.{label}", flags)
        headers = [(Path(f"{copy}.gch"), flags) for copy, flags in pch.values()]
        TOOLS.run_all(
            [
                ([self.cxx, *flags, "-x", "c++-header", str(header)], "compiling the common header", made)
                for made, flags in headers
                if not made.exists()
            ]
        )
        for source in sorted(self.work.glob("*.cpp")):
            copy, flags = pch["slow" if "__Slow" in source.name else "fast"]
            units.append((source, source.with_suffix(".o"), [*flags, "-include", str(copy)]))
        for source in self.cpp():
            units.append((source, self.work / f"sim_{source.stem}.o", fast))
        compile_all(units, self.cxx)
        objects = [str(obj) for _, obj, _ in units] + [str(o) for o in self.runtime()]
        link = [self.cxx, "-shared", *objects, "-Wl,-Bsymbolic", "-Wl,--gc-sections"]
        link += ["-Wl,-z,defs", "-Wl,--build-id=none", "-pthread", "-ldl"]
        link += ["-llz4", "-lz"] if self.args.trace else []
        # Written beside and renamed: a running card keeps the object it has open.
        TOOLS.run_all([(link, "linking", self.out)])

    def runtime(self) -> list[Path]:
        """Objects of Verilator's own library, compiled once for each set of flags."""
        include = verilator_root() / "include"
        names = list(RUNTIME)
        names += ["verilated_fst_c.cpp"] if self.args.trace else []
        names += ["verilated_cov.cpp"] if self.args.coverage else []
        flags = ["-O2", *self.flags()]
        hooks = Path("sim/broken_rule.h")
        flags += ["-include", str(hooks)] if self.checked() else []
        key = json.dumps(
            [
                flags,
                names,
                digest(hooks),
                self.cxx,
                compiler_version(self.cxx),
                verilator_version(),
                processor(),
            ]
        )
        folder = Path("build/verilator-runtime") / hashlib.sha256(key.encode()).hexdigest()[:16]
        made = {n: folder / f"{Path(n).stem}.o" for n in names}
        if not all(obj.exists() for obj in made.values()):
            flags += [f"-isystem{include}", f"-isystem{include / 'vltstd'}"]
            folder.mkdir(parents=True, exist_ok=True)
            with locked(folder / ".lock", "Verilator's library"):
                compile_all([(include / n, obj, flags) for n, obj in made.items()], self.cxx)
        return list(made.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=["card", "slot"])
    parser.add_argument("--out", help="shared object to make; needed for slot")
    parser.add_argument("--name", help="what to call it in messages")
    parser.add_argument(
        "--source", action="append", default=[], help="file to read before modules are looked up"
    )
    parser.add_argument(
        "-y", action="append", default=[], metavar="DIR", help="folder with one module a file"
    )
    parser.add_argument("--define", "-D", action="append", default=[], metavar="NAME=VALUE", help="macro")
    parser.add_argument("--trace", action="store_true", help="FST waves")
    parser.add_argument(
        "--coverage", action="store_true", help="line and toggle coverage; a card checks as with --assert"
    )
    parser.add_argument(
        "--assert", action="store_true", help="check the assertions in the card's RTL, and every port"
    )
    parser.add_argument("--portable", action="store_true", help="do not use instructions only this CPU has")
    parser.add_argument("--output-split", type=int, default=20000, help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.chdir(ROOT)
    sys.excepthook = unexpected
    TOOLS.catch_signals()
    if args.kind == "slot" and not args.out:
        parser.error("slot needs --out")
    if args.trace and not Path("/usr/include/lz4.h").exists():
        fail("waves need the lz4 headers: install the package liblz4-dev")
    Build(args).make()


if __name__ == "__main__":
    main()
