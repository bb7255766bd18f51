#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verilates a top module and compiles it with its C++ side into one shared object, or program.

    .venv/bin/python tools/verilate.py card [--trace] [--coverage] [--assert]
    .venv/bin/python tools/verilate.py slot --out build/apps/aes/aes.so --source wrapper.sv -y apps/aes/rtl [...]
    .venv/bin/python tools/verilate.py rival
    .venv/bin/python tools/verilate.py vio|sched

`card` makes build/card/libviaduct_card.so: the shell and the models in sim/, without functions, as with VIA_FN_MASK=0. With --functions it
makes build/card/libviaduct_card_functions.so, the card with all its functions, from the same models where they are the same. With --trace
it makes build/card-trace/libviaduct_card.so, with and without --functions likewise; with --coverage build/card-coverage/…, which has all
functions; with --assert build/card-assert/…, which has those of `--define VIA_FN_MASK=…`, by default network and entropy. `slot` makes the
object of one app around its `via_slot`, `rival` the program build/rivals/rival with the other systems of `viaduct bench fsrf`, `vio` and
`sched` those of `viaduct bench vio`: ports and schedulers. All find modules by name in rtl/*/ and build/regs and read via_pkg first. Relative paths
are relative to the project's folder.

Nothing is done if no input changed: sources (those Verilator read the last time), C++ files, arguments and tool versions are compared by
content with stamp.json next to the generated files. Its paths are relative to the project, so that it remains valid in a copied or moved one;
host/viaduct-build/src/stamp.rs reads it too. An interrupted build continues where it stopped.
"""

import argparse
import concurrent.futures
import fcntl
import functools
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn

import checkers
import compilers
import parts

# Links are not resolved: a project may use these tools through one. It is the working folder: all paths below are relative to it.
ROOT = Path(__file__).absolute().parent.parent
# Files of Verilator's run-time library that an object needs, with waveforms and coverage.
RUNTIME = ["verilated.cpp", "verilated_threads.cpp"]
PER_JOB = 1 << 20  # KiB of memory that a compiler takes at most
LOOK = 0.2  # seconds between two looks for signals
HOOKS = "sim/verilated_hooks.h"  # in front of Verilator's library
UNLIKELY = Path("sim/unlikely.h")  # in front of generated code
DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError)  # of a stamp with other contents
SMALL = 100_000  # files below this number of bytes are compiled together
# Bit f is function f. The network function represents the others in tests of a card with checkers, beside one that has to go on undisturbed:
# with all of them the card takes three times as long to compile.
CHECKED_FUNCTIONS = 1 << 1 | 1 << 4


def fail(message: str) -> NoReturn:
    sys.exit(f"verilate: error: {message}")


def unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Reports an uncaught exception in one line."""
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
    os.environ["VERILATOR_ROOT"] = str(found[0])  # location of its own files
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
    if done.returncode or not done.stdout:
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
        fail(f"the C++ compiler {cxx} does not run ({how}): memory may be short, or limited (ulimit -v)")
    return done.stdout.splitlines()[0]


def processor() -> str:
    """The instruction set extensions of this machine, if known."""
    try:
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return ""
    return next((line for line in first if line.startswith(("flags", "Features"))), "")


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Holds the lock, with a message if it has to wait. It is released when its holder and all tools that this has started have ended, in any way."""
    with path.open("a+") as lock:
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = ""
            for _ in range(20):  # it may have only just got the lock
                lock.seek(0)
                holder = lock.read().strip()
                if holder:
                    break
                time.sleep(0.01)
            by = f"process {holder}" if holder else "another process"
            print(f"{what}: waiting for {by}, which builds it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        lock.truncate()
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


# ---------------------------------------------------------------- tools
def why(tool: str, status: int, output: str) -> str:
    """How a tool ended, and what to do if memory was short."""
    ending = f"ended with status {status}"
    if status < 0:
        ending = f"was ended by signal {-status} ({signal.strsignal(-status)})"
    # The compiler proper and the linker are children of g++ and clang++, which report their end and exit with 1.
    reports = (
        "Killed signal terminated program",
        "terminated with signal 9",
        "unable to execute command: Killed",  # Clang
    )
    killed = status == -signal.SIGKILL or any(report in output for report in reports)
    words = ("memory exhausted", "annot allocate memory", "out of memory")
    if killed or any(w in output for w in words):
        return f"{tool} {ending}; memory may be short: end other programs, then run the same command again"
    return f"{tool} {ending}" + ("; its messages are above" if output else "")


def jobs() -> int:
    """How many tools run at a time: one for each processor that this process may use, if there is memory for as many."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        free = 2 * PER_JOB
    return max(1, min(len(os.sched_getaffinity(0)), free // PER_JOB))


class Tools:
    """Runs tools, several at a time. A failure ends the others, and so does a signal that ends this program."""

    def __init__(self) -> None:
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs())
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
        """Ends running tools with all their children, and starts no more."""
        with self.mutex:
            self.ended = True
            for child in self.running:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)

    def run(self, command: list[str], what: str) -> None:
        """Runs a tool; its output is shown only if it fails."""
        self.run_all([(command, what, None)])

    def run_all(self, commands: list[tuple[list[str], str, Path | None]]) -> None:
        """Runs (command, what it does, output file); the file's name is added to the command, and the file appears only when it is complete."""
        tasks = [self.pool.submit(self.run_one, *command) for command in commands]
        try:
            left = set(tasks)
            while left:
                # With a limit: handlers of signals run in this thread only, and one that another thread receives does not wake it.
                done, left = concurrent.futures.wait(left, LOOK, concurrent.futures.FIRST_COMPLETED)
                for task in done:
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
                    process_group=0,  # a group of its own, with its children
                    close_fds=False,  # it inherits the lock: killed with SIGKILL, this program leaves it behind, writing files
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
    """Compiles (source, object, flags), the largest first; objects of an earlier build are kept."""
    units = sorted((u for u in units if not u[1].exists()), key=lambda unit: -unit[0].stat().st_size)
    TOOLS.run_all(
        [([cxx, *flags, "-c", str(source)], f"compiling {source.name}", obj) for source, obj, flags in units]
    )


@dataclass
class Model:
    """One run of Verilator: a top module, and its C++."""

    name: str
    prefix: str
    top: str
    work: Path
    sources: list[Path]
    folders: list[Path]
    hot: bool = False  # evaluated at nearly every edge
    sockets: bool = False  # calls parts
    generated: dict[str, str] = field(default_factory=dict)  # files written next to it beforehand

    def stamp(self) -> Path:
        return self.work / "verilated.json"

    def read_sources(self) -> list[Path]:
        """Files that Verilator read, from the dependency file it wrote; except Verilator's own, which belong to its version, and generated ones."""
        text = (self.work / f"{self.prefix}__ver.d").read_text().replace("\\\n", " ")
        own = str(verilator_root())
        kinds = (".sv", ".v", ".svh", ".vh", ".vlt")
        read = [Path(p) for p in text.split(":", 1)[1].split() if p.endswith(kinds) and not p.startswith(own)]
        return [p for p in read if "build" not in p.parts or p.is_relative_to("build/regs")]

    def is_current(self, key: str) -> bool:
        try:
            stamp = json.loads(self.stamp().read_text())
            return stamp["key"] == key and all(digest(Path(p)) == d for p, d in stamp["sources"].items())
        except DAMAGED:
            return False

    def begin(self, key: str) -> bool:
        """Whether Verilator has to run. Objects of an earlier build from the same inputs are kept."""
        if self.is_current(key):
            return False
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        for name, text in self.generated.items():
            path = self.work / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return True

    def end(self, key: str) -> None:
        sources = {str(p): digest(p) for p in self.read_sources()}
        part = self.stamp().with_suffix(".part")
        part.write_text(json.dumps({"key": key, "sources": sources}))
        part.replace(self.stamp())


# Programs with other systems than the card, which benches compare it with: top module, C++ files.
PROGRAMS = {
    "rival": ("via_rival", ("rivals/rival", "broken_rule", "dram", "link", "hostmap")),
    "vio": ("via_rival_vio", ("rivals/vio", "broken_rule")),
    "sched": ("via_rival_sched", ("rivals/sched", "broken_rule")),
}


class Build:
    """One shared object to build."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.kind: str = args.kind
        self.args = args
        variant = [name for name in ("trace", "coverage", "assert", "whole") if getattr(args, name)]
        if args.channels:
            variant.insert(0, f"{args.channels}ch")
            args.define.append(f"VIA_NUM_CHAN={args.channels}")
        folder = f"build/{'-'.join(['card', *variant])}"
        made = f"{folder}/libviaduct_card{'_functions' * args.functions}.so"
        self.out = Path(args.out or (f"build/rivals/{self.kind}" if self.kind in PROGRAMS else made))
        self.work = self.out.parent / f"{self.out.stem}.verilated"
        self.stamp = self.work / "stamp.json"
        self.cxx = compilers.cxx()
        self.name = args.name or ("card" if self.kind == "card" else self.out.stem)
        if variant:
            self.name += f" ({', '.join(variant)})"
        if args.functions:
            self.name += " with functions"
        # Waves show the card in one piece.
        self.parts = () if self.kind != "card" or args.trace or args.whole else parts.CARD
        # Models that the card without functions has too.
        self.shared = self.work
        if args.functions and self.parts:
            self.shared = Path(f"{folder}/libviaduct_card.verilated")
        self.kinds = {part.name: part for part in parts.flat(self.parts)}
        if getattr(args, "assert") and not any(define.startswith("VIA_FN_MASK=") for define in args.define):
            args.define.append(f"VIA_FN_MASK={CHECKED_FUNCTIONS}")
        if self.kind == "card" and not self.checked() and not args.functions:
            if self.parts:
                for part in parts.flat(parts.FUNCTIONS):
                    del self.kinds[part.name]
                self.kinds |= parts.WITHOUT_FUNCTIONS
            else:
                args.define.append("VIA_FN_MASK=0")
        for define in args.define:
            name, _, mask = define.partition("=")
            if name == "VIA_FN_MASK" and self.parts:
                for part in parts.flat(parts.FUNCTIONS):
                    if not any(int(mask, 0) >> f & 1 for f in part.serves):
                        self.kinds.pop(part.name, None)

    # ------------------------------------------------------------ what to do
    def packages(self) -> list[Path]:
        """Files read in order before modules are looked up by name."""
        packages = [Path("rtl/common/via_pkg.sv")]
        packages += [Path("rtl/virtio/via_virtio_pkg.sv")] if self.kind == "vio" else []
        if self.kind == "card":
            # Those used by others come first.
            packages += [Path("rtl/virtio/via_virtio_pkg.sv")]
            packages += [p for p in found("rtl/*/via_*_pkg.sv") if p not in packages]
            packages += [Path("tools/lint.vlt"), *found("build/regs/*.vlt"), *found("build/regs/*_pkg.sv")]
            packages += [Path("rtl/common/tb/via_tb_assert.sv")] if self.checked() else []
            packages += [Path("sim/split.vlt")] if self.parts and not self.checked() else []
        return packages

    def folders(self) -> list[Path]:
        # No card contains the other systems of the bench, so a change there does not make one anew.
        rtl = [p for p in found("rtl/*") if p.is_dir() and (p.name != "rivals" or self.kind in PROGRAMS)]
        return [Path(y) for y in self.args.y] + [*rtl, Path("build/regs")]

    def models(self) -> list[Model]:
        if self.kind == "slot":
            sources = [*self.packages(), *(Path(s) for s in self.args.source)]
            return [Model("slot", "Vslot", "via_slot", self.work / "slot", sources, self.folders())]
        if self.kind in PROGRAMS:
            top, _ = PROGRAMS[self.kind]
            sources = [*self.packages(), Path("tools/lint.vlt"), Path(f"rtl/rivals/{top}.sv")]
            return [Model(self.kind, f"V{self.kind}", top, self.work / self.kind, sources, self.folders())]
        return [self.shell(), *(self.part(part) for part in self.kinds.values())]

    def shell(self) -> Model:
        top, work = Path("rtl/shell/via_shell.sv"), self.shared / "shell"
        model = Model("shell", "Vshell", top.stem, work, [*self.packages(), top], self.folders())
        model.hot = bool(self.parts)
        return self.with_sockets(self.with_checkers(model, top, self.parts), self.parts)

    def part(self, part: parts.Part) -> Model:
        own = part in parts.flat(parts.FUNCTIONS) or part.module in parts.WITHOUT_FUNCTIONS
        work = (self.work if own else self.shared) / part.name
        top = f"{part.name}_part"
        sources = [*self.packages(), work / f"{top}.sv"]
        model = Model(part.name, f"V{part.name}", top, work, sources, self.folders())
        model.hot = part.hot
        model.generated[f"{top}.sv"] = parts.top(parts.header(part.source), part)
        return self.with_sockets(self.with_checkers(model, part.source, part.inside), part.inside)

    def with_checkers(self, model: Model, top: Path, inside: tuple[parts.Part, ...]) -> Model:
        """The model, with checkers at the ports of all its blocks if requested; its parts have their own."""
        if self.checked():
            without = {part.module for part in inside}
            text = checkers.binds(top, self.folders(), many=False, without=without)
            model.generated["checkers.sv"] = text
            model.sources.append(model.work / "checkers.sv")
        return model

    def with_sockets(self, model: Model, inside: tuple[parts.Part, ...]) -> Model:
        """The model, with sockets for its parts, which are found before the blocks of the same names."""
        if not inside:
            return model
        geometry = parts.geometry(self.args.define)
        for source in sorted({part.source for part in inside}):  # in the same order every time
            kinds = [part for part in inside if part.source == source]
            model.generated[f"sockets/{source.name}"] = parts.socket(parts.header(source), kinds, geometry)
        model.folders = [model.work / "sockets", *model.folders]
        model.sockets = True
        return model

    def checked(self) -> bool:
        """Whether assertions are enabled, and checkers bound to the ports of all blocks. A coverage build includes both."""
        return self.kind == "card" and (getattr(self.args, "assert") or self.args.coverage)

    def cpp(self) -> list[Path]:
        if self.kind in PROGRAMS:
            return [Path(f"sim/{name}.cpp") for name in PROGRAMS[self.kind][1]]
        return [Path("sim/shim/slot_shim.cpp")] if self.kind == "slot" else found("sim/*.cpp")

    def headers(self) -> list[Path]:
        if self.kind == "slot":
            return [
                Path("sim/verilated_top.h"),
                Path("sim/parts.h"),
                Path(HOOKS),
                Path("sim/include/viaduct_slot.h"),
                UNLIKELY,
            ]
        return found("sim/**/*.h")

    def patterns(self) -> list[str]:
        """Folders in which a new file is a new input."""
        if self.kind != "card":
            return []
        return ["rtl/*/via_*_pkg.sv", "build/regs/*.vlt", "build/regs/*_pkg.sv", "sim/*.cpp", "sim/**/*.h"]

    def verilator_command(self, model: Model) -> list[str]:
        a = self.args
        command = [str(verilator_root() / "bin/verilator_bin"), "--cc", "-Wall", "--prefix", model.prefix]
        command += ["--top-module", model.top, "-Mdir", str(model.work), "-O3", "--x-assign", "fast"]
        command += ["--x-initial", "fast", "--assert" if self.checked() else "--noassert"]
        command += ["--output-split", str(a.output_split), "--no-timing", "--MMD", "-DVIA_SIM"]
        # Style warnings in a user's app are left to the linter (`make lint`) and do not prevent a run.
        command += ["-Wno-fatal", "-Wno-DECLFILENAME"] if self.kind == "slot" else ["-Wno-DECLFILENAME"]
        command += ["--trace-fst"] if a.trace else []
        command += ["--coverage-line", "--coverage-toggle"] if a.coverage else []
        command += [f"-D{d}" for d in a.define]
        for folder in model.folders:
            command += ["-y", str(folder)]
        if self.kind == "slot":
            command += [f"-I{folder}" for folder in a.y]
        if model.sockets:
            command += ["--compiler-include", "parts.h"]
        return command + [str(s) for s in model.sources]

    def flags(self) -> list[str]:
        a = self.args
        flags = [
            "-std=c++20",
            "-fPIC",
            "-fvisibility=hidden",
            "-fno-plt",
            "-pthread",
            "-w",
        ]
        flags += ["-fno-semantic-interposition", "-fcf-protection=none", "-faligned-new"]
        # Otherwise an object once opened could not be closed. Clang has no such symbols.
        flags += [] if "clang" in compiler_version(self.cxx) else ["-fno-gnu-unique"]
        flags += [] if a.portable else ["-march=native"]
        # Clang takes them for faster than loads one by one.
        x86 = platform.machine() == "x86_64" and "clang" in compiler_version(self.cxx)
        flags += ["-mno-gather", "-mno-scatter"] if x86 else []
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

    def own_flags(self, model: Model) -> list[str]:
        """Arguments that do not affect Verilator's own library: geometry, folders of the project."""
        geometry = [f"-D{d}" for d in self.args.define if d.startswith("VIA_")]
        return [*geometry, f"-I{model.work}", "-Isim", "-Isim/include"]

    def around(self, models: list[Model]) -> list[tuple[Path, Path, list[str]]]:
        """(source, object, flags) of the models of what is around the shell, which change by themselves, and of what makes the parts."""
        flags = ["-O1", *self.common(), *self.own_flags(models[0]), "-include", str(self.prelude("-O1"))]
        files = [*self.cpp(), *self.headers(), models[0].stamp()]
        key = hashlib.sha256(json.dumps([flags, [digest(f) for f in files]]).encode()).hexdigest()[:16]
        folder = self.shared / f"sim-{key}"
        if not folder.exists():
            for old in self.shared.glob("sim-*"):
                shutil.rmtree(old)
            folder.mkdir()
        units = [(source, folder / f"{source.stem}.o", flags) for source in self.cpp()]
        if self.kind == "card":
            factory = self.work / "make_part.cpp"
            factory.write_text(parts.factory(self.kinds))
            factory.with_suffix(".o").unlink(missing_ok=True)
            level = self.fast(models[0])  # it moves what passes between parts at each edge
            flags = [level, *self.common(), *self.own_flags(models[0]), "-include", str(self.prelude(level))]
            units.append((factory, factory.with_suffix(".o"), [*flags, f"-I{self.shared}", f"-I{self.work}"]))
        return units

    def inputs(self) -> dict[str, Any]:
        """All inputs of the result that are known before Verilator has run."""
        own = [Path("tools/verilate.py"), Path("tools/checkers.py"), Path("tools/parts.py")]
        fixed = [*self.packages(), *(Path(s) for s in self.args.source)]
        files = [*fixed, *self.cpp(), *self.headers(), *own]
        return {
            "request": sys.argv[1:],
            "compiler": [self.cxx, compiler_version(self.cxx)],
            "verilator": verilator_version(),
            "processor": "" if self.args.portable else processor(),
            "patterns": {pattern: [str(p) for p in found(pattern)] for pattern in self.patterns()},
            "files": {str(f): digest(f) for f in files},
        }

    def read_stamp(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The result that was built from these inputs; empty if there is none."""
        try:
            stamp = json.loads(self.stamp.read_text())
            same = stamp["inputs"] == inputs and all(
                digest(Path(p)) == d for p, d in stamp["sources"].items()
            )
        except DAMAGED:
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
        # The first check is without the lock: the folder may not be writable.
        if self.is_current(self.read_stamp(self.inputs())):
            return
        self.work.mkdir(parents=True, exist_ok=True)
        self.shared.mkdir(exist_ok=True)
        with locked(self.shared.parent / f".{self.shared.name}.lock", self.name):
            inputs = self.inputs()
            if self.is_current(self.read_stamp(inputs)):
                return
            hint = ""
            if self.kind == "card":
                hint = " (two to four minutes)" if self.args.functions else " (one to two minutes)"
            tops = {"card": "via_shell", "slot": "via_slot"} | {
                kind: top for kind, (top, _) in PROGRAMS.items()
            }
            what = tops[self.kind]
            print(f"{self.name}: Verilating {what} and compiling it{hint}", flush=True)
            begun = time.monotonic()
            models = self.models()
            self.verilate(models)
            sources = {str(p): digest(p) for model in models for p in model.read_sources()}
            self.write_stamp({"inputs": inputs, "sources": sources, "out": ""})
            self.compile_and_link(models)
            self.write_stamp({"inputs": inputs, "sources": sources, "out": digest(self.out)})
            print(f"{self.name}: done in {time.monotonic() - begun:.0f} s")

    def key(self, model: Model) -> str:
        """All other inputs of a model's C++ and objects."""
        what = [self.verilator_command(model), model.generated, self.flags(), self.own_flags(model), self.cxx]
        what += [self.fast(model), SMALL, compiler_version(self.cxx), verilator_version(), processor()]
        what += [digest(UNLIKELY)]
        what += [digest(Path("sim/parts.h"))] if model.sockets else []
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()

    def verilate(self, models: list[Model]) -> None:
        """Runs Verilator for the models whose sources have changed."""
        keys = {model.name: self.key(model) for model in models}
        stale = [model for model in models if model.begin(keys[model.name])]
        TOOLS.run_all([(self.verilator_command(m), f"Verilating {m.top}", None) for m in stale])
        for model in stale:
            model.end(keys[model.name])

    def fast(self, model: Model) -> str:
        """Optimisation of what is evaluated at an edge: -O3 takes three times as long to compile and is 20 % faster."""
        if self.args.trace:
            return "-O0"  # a run for waves is short
        return "-O3" if model.hot and not self.checked() else "-O1"

    def units(self, model: Model) -> list[tuple[Path, Path, list[str]]]:
        """(source, object, flags) of a model. Its many small files are compiled as one of each kind."""
        levels = {"fast": self.fast(model), "slow": "-O0"}
        units: list[tuple[Path, Path, list[str]]] = []
        for kind, level in levels.items():
            flags = [level, *self.common(), *self.own_flags(model), "-include", str(self.prelude(level))]
            flags += ["-include", str(UNLIKELY)] if kind == "fast" else []
            sources = [
                p
                for p in sorted(model.work.glob(f"{model.prefix}*.cpp"))
                if ("__Slow" in p.name) == (kind == "slow")
            ]
            small = [p for p in sources if p.stat().st_size < SMALL]
            together = model.work / f"{kind}.cpp"
            text = "".join(f'#include "{p.name}"\n' for p in small)
            if not together.exists() or together.read_text() != text:
                together.write_text(text)
            sources = [together, *(p for p in sources if p not in small)]
            units += [(p, p.with_suffix(".o"), flags) for p in sources]
        return units

    def common(self) -> list[str]:
        """Flags of everything that is compiled."""
        include = verilator_root() / "include"
        return [*self.flags(), f"-isystem{include}", f"-isystem{include / 'vltstd'}"]

    def compile_and_link(self, models: list[Model]) -> None:
        runtime = self.runtime({"-O0", "-O1", *(self.fast(model) for model in models)})
        units = [unit for model in models for unit in self.units(model)] + self.around(models)
        compile_all(units, self.cxx)
        objects = [str(obj) for _, obj, _ in units] + [str(o) for o in runtime]
        shared = [] if self.kind in PROGRAMS else ["-shared"]
        link = [self.cxx, *shared, *objects, "-Wl,-Bsymbolic", "-Wl,--gc-sections"]
        link += ["-Wl,-z,defs", "-Wl,--build-id=none", "-pthread", "-ldl"]
        link += ["-llz4", "-lz"] if self.args.trace else []
        # Written to another name and renamed: a running card keeps the object it has open.
        TOOLS.run_all([(link, "linking", self.out)])

    def prelude(self, level: str) -> Path:
        """The header that all files of a model include first, precompiled once for each level of optimisation.

        Compiled by Clang it names its files by absolute paths: it is another one in a checkout that was moved or copied.
        """
        here = hashlib.sha256(os.fsencode(ROOT.resolve())).hexdigest()[:8]
        return self.runtime_folder() / here / level.removeprefix("-") / "prelude.h"

    def runtime_names(self) -> list[str]:
        names = list(RUNTIME)
        names += ["verilated_fst_c.cpp"] if self.args.trace else []
        names += ["verilated_cov.cpp"] if self.args.coverage else []
        return names

    def runtime_flags(self) -> list[str]:
        return ["-O2", *self.common(), "-include", HOOKS]

    def runtime_folder(self) -> Path:
        """Folder of Verilator's own library, compiled once for each set of flags."""
        key = json.dumps(
            [
                [*self.flags(), *self.runtime_flags()[:1]],
                self.runtime_names(),
                digest(Path(HOOKS)),
                self.cxx,
                compiler_version(self.cxx),
                verilator_version(),
                processor(),
            ]
        )
        return Path("build/verilator-runtime") / hashlib.sha256(key.encode()).hexdigest()[:16]

    def runtime(self, levels: set[str]) -> list[Path]:
        """Objects of Verilator's own library; its header is precompiled too."""
        folder = self.runtime_folder()
        made = {n: folder / f"{Path(n).stem}.o" for n in self.runtime_names()}
        heads = {level: self.prelude(level) for level in sorted(levels)}
        compiled = {level: head.with_name(f"{head.name}.gch") for level, head in heads.items()}
        included = {level: head.with_suffix(".d") for level, head in heads.items()}
        stand = {level: compilers.stands(compiled[level], included[level]) for level in heads}
        if not all(stand.values()) or not all(path.exists() for path in made.values()):
            folder.mkdir(parents=True, exist_ok=True)
            with locked(folder / ".lock", "Verilator's library"):
                for other in folder.iterdir():
                    if other.is_dir() and other not in {head.parents[1] for head in heads.values()}:
                        shutil.rmtree(other)  # from where the checkout was before
                for level, head in heads.items():
                    if compilers.stands(compiled[level], included[level]):
                        continue  # another process may have made it; written again, its source would be younger
                    compiled[level].unlink(missing_ok=True)
                    head.parent.mkdir(parents=True, exist_ok=True)
                    head.write_text('#include "verilated.h"\n#include "verilated_dpi.h"\n')
                header = [self.cxx, *self.common(), "-MD", "-x", "c++-header"]
                commands = [
                    (
                        [*header, level, "-MF", str(included[level]), str(head)],
                        "compiling Verilator's header",
                        compiled[level],
                    )
                    for level, head in heads.items()
                ]
                include = verilator_root() / "include"
                commands += [
                    ([self.cxx, *self.runtime_flags(), "-c", str(include / n)], f"compiling {n}", obj)
                    for n, obj in made.items()
                ]
                TOOLS.run_all([c for c in commands if not c[2].exists()])
        return list(made.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=["card", "slot", *PROGRAMS])
    parser.add_argument("--out", help="shared object to build; needed for slot")
    parser.add_argument("--name", help="name for messages")
    parser.add_argument(
        "--source", action="append", default=[], help="file to read before modules are looked up"
    )
    parser.add_argument(
        "-y", action="append", default=[], metavar="DIR", help="folder with one module a file"
    )
    parser.add_argument("--define", "-D", action="append", default=[], metavar="NAME=VALUE", help="macro")
    parser.add_argument(
        "--functions",
        action="store_true",
        help="the card with its functions, which coverage and assert have anyway",
    )
    parser.add_argument("--channels", type=int, help="DRAM channels of the card, if not those of via_pkg")
    parser.add_argument("--trace", action="store_true", help="FST waves")
    parser.add_argument(
        "--whole", action="store_true", help="the card as one model, as in the other variants"
    )
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
    if args.functions and (args.kind != "card" or args.coverage or getattr(args, "assert")):
        parser.error("--functions is an option of the card, and of its variants --trace and --whole")
    if args.trace and not Path("/usr/include/lz4.h").exists():
        fail("waveforms need the lz4 headers: install the package liblz4-dev")
    Build(args).make()


if __name__ == "__main__":
    main()
