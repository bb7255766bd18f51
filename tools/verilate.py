#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verilates a top module and compiles it with its C++ side into one shared object.

    .venv/bin/python tools/verilate.py card [--trace] [--coverage] [--assert]
    .venv/bin/python tools/verilate.py slot --out build/apps/aes/aes.so --source wrapper.sv -y apps/aes/rtl [...]

`card` makes build/card/libviaduct_card.so: the shell and the models in sim/. With --trace, --coverage or --assert it makes
build/card-trace/libviaduct_card.so and so on, beside the fast one. `slot` makes the object of one app around its `via_slot`. Both
find modules by name in rtl/*/ and build/regs and read via_pkg first. Nothing is done if no input changed:
sources (those Verilator read the last time), C++ files, options and tool versions are compared by content.
"""

import argparse
import concurrent.futures
import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOP_OF = {"card": "via_shell", "slot": "via_slot"}
PREFIX_OF = {"card": "Vshell", "slot": "Vslot"}
# Files of Verilator's run-time library that an object needs, with waves and coverage.
RUNTIME = ["verilated.cpp", "verilated_threads.cpp"]
JOBS = min(2, os.cpu_count() or 1)


def fail(message: str) -> None:
    sys.exit(f"verilate: error: {message}")


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


@functools.cache
def compiler_version(cxx: str) -> str:
    return subprocess.run([cxx, "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[
        0
    ]


def run(command: list[str], what: str) -> None:
    """Runs a tool; its output is shown only if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
    if done.returncode:
        sys.stderr.write(done.stdout)
        fail(f"{what} failed: {' '.join(command[:1])} ended with {done.returncode}; its messages are above")


def compile_all(units: list[tuple[Path, Path, list[str]]], cxx: str) -> None:
    """Compiles (source, object, flags), the largest first, JOBS at a time."""
    units = sorted(units, key=lambda unit: -unit[0].stat().st_size)
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        tasks = [
            pool.submit(run, [cxx, *flags, "-c", str(source), "-o", str(obj)], f"compiling {source.name}")
            for source, obj, flags in units
        ]
        try:
            for task in concurrent.futures.as_completed(tasks):
                task.result()
        except SystemExit:
            pool.shutdown(cancel_futures=True)
            raise


class Build:
    """One shared object to be made."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.kind: str = args.kind
        self.top = TOP_OF[args.kind]
        self.prefix = PREFIX_OF[args.kind]
        self.args = args
        variant = [name for name in ("trace", "coverage", "assert") if getattr(args, name)]
        default = ROOT / "build" / "-".join(["card", *variant]) / "libviaduct_card.so"
        self.out = Path(args.out).resolve() if args.out else default
        self.work = self.out.parent / f"{self.out.stem}.verilated"
        self.stamp = self.work / "stamp.json"
        self.cxx = os.environ.get("CXX", "g++")
        self.name = args.name or (self.out.stem if self.kind == "slot" else "card")
        if variant:
            self.name += f" ({', '.join(variant)})"

    # ------------------------------------------------------------ what to do
    def sources(self) -> list[Path]:
        """Files read in order before modules are looked up by name."""
        packages = [ROOT / "rtl/common/via_pkg.sv"]
        if self.kind == "card":
            # Those that others use come first.
            packages += [ROOT / "rtl/virtio/via_virtio_pkg.sv"]
            packages += [p for p in sorted((ROOT / "rtl").glob("*/via_*_pkg.sv")) if p not in packages]
            packages += [ROOT / "tools/lint.vlt", *sorted((ROOT / "build/regs").glob("*.vlt"))]
            packages += [*sorted((ROOT / "build/regs").glob("*_pkg.sv")), ROOT / "rtl/shell/via_shell.sv"]
        return packages + [Path(s).resolve() for s in self.args.source]

    def folders(self) -> list[Path]:
        rtl = sorted(p for p in (ROOT / "rtl").iterdir() if p.is_dir())
        return [Path(y).resolve() for y in self.args.y] + [*rtl, ROOT / "build/regs"]

    def cpp(self) -> list[Path]:
        if self.kind == "slot":
            return [ROOT / "sim/shim/slot_shim.cpp"]
        return sorted((ROOT / "sim").glob("*.cpp"))

    def verilator_command(self) -> list[str]:
        a = self.args
        command = [str(verilator_root() / "bin/verilator_bin"), "--cc", "-Wall", "--prefix", self.prefix]
        command += ["--top-module", self.top, "-Mdir", str(self.work), "-O3", "--x-assign", "fast"]
        command += ["--x-initial", "fast", "--noassert" if not getattr(a, "assert") else "--assert"]
        command += ["--output-split", str(a.output_split), "--no-timing", "--MMD", "-DVIA_SIM"]
        # Style findings of a user's app are the linter's business (`make lint`), not a reason not to run.
        command += ["-Wno-fatal", "-Wno-DECLFILENAME"] if self.kind == "slot" else ["-Wno-DECLFILENAME"]
        command += ["--trace-fst"] if a.trace else []
        command += ["--coverage-line", "--coverage-toggle"] if a.coverage else []
        command += [f"-D{d}" for d in a.define]
        for folder in self.folders():
            command += ["-y", str(folder)]
        if self.kind == "slot":
            command += [f"-I{folder.resolve()}" for folder in map(Path, a.y)]
        return command + [str(s) for s in self.sources()]

    def flags(self) -> list[str]:
        a = self.args
        include = verilator_root() / "include"
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
        flags += [f"-I{self.work}", f"-I{ROOT / 'sim'}", f"-I{ROOT / 'sim/include'}"]
        flags += [f"-isystem{include}", f"-isystem{include / 'vltstd'}", "-DVL_TIME_CONTEXT", "-DVERILATOR=1"]
        trace, coverage = int(a.trace), int(a.coverage)
        flags += [f"-DVM_TRACE={trace}", f"-DVM_TRACE_FST={trace}", "-DVM_TRACE_VCD=0", "-DVM_TRACE_SAIF=0"]
        flags += [f"-DVM_COVERAGE={coverage}", "-DVM_SC=0", "-DVM_TIMING=0"]
        # Geometry macros concern the C++ side as well.
        return flags + [f"-D{d}" for d in a.define if d.startswith("VIA_")]

    def inputs(self) -> dict[str, str]:
        """Everything the result depends on, as far as it is known before Verilator has run."""
        options = [*self.verilator_command(), *self.flags(), self.cxx, compiler_version(self.cxx)]
        headers = sorted((ROOT / "sim").rglob("*.h"))
        if self.kind == "slot":
            headers = [ROOT / "sim/verilated_top.h", ROOT / "sim/include/viaduct_slot.h"]
        files = [*self.sources(), *self.cpp(), *headers, Path(__file__)]
        files.append(verilator_root() / "bin/verilator_bin")
        if not self.args.portable and Path("/proc/cpuinfo").exists():
            cpu = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
            options += [line for line in cpu if line.startswith(("flags", "Features"))]
        return {"options": json.dumps(options)} | {str(f): digest(f) for f in files}

    def read_sources(self) -> list[Path]:
        """Files that Verilator read, from the dependency file it wrote."""
        text = (self.work / f"{self.prefix}__ver.d").read_text().replace("\\\n", " ")
        return [
            Path(p) for p in text.split(":", 1)[1].split() if p.endswith((".sv", ".v", ".svh", ".vh", ".vlt"))
        ]

    def is_current(self, inputs: dict[str, str]) -> bool:
        try:
            stamp = json.loads(self.stamp.read_text())
        except (OSError, ValueError):
            return False
        current = stamp["inputs"] == inputs and digest(self.out) == stamp["out"]
        return current and all(digest(Path(p)) == d for p, d in stamp["sources"].items())

    # ------------------------------------------------------------ doing it
    def make(self) -> None:
        self.work.mkdir(parents=True, exist_ok=True)
        with (self.work.parent / f".{self.work.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            inputs = self.inputs()
            if self.is_current(inputs):
                print(f"{self.name}: up to date")
                return
            hint = " (1 to 2 minutes)" if self.kind == "card" else ""
            print(f"{self.name}: Verilating {self.top} and compiling it{hint}", flush=True)
            begun = time.monotonic()
            shutil.rmtree(self.work)
            self.work.mkdir()
            run(self.verilator_command(), "Verilating")
            sources = {str(p): digest(p) for p in self.read_sources()}
            self.compile_and_link()
            self.stamp.write_text(json.dumps({"inputs": inputs, "sources": sources, "out": digest(self.out)}))
            for leftover in (*self.work.glob("*.o"), *self.work.glob("*.gch")):
                leftover.unlink()
            print(f"{self.name}: done in {time.monotonic() - begun:.0f} s")

    def compile_and_link(self) -> None:
        base = self.flags()
        fast = ["-O1", *base]  # -O2 takes three times as long and gains a tenth
        slow = ["-O0", *base]
        header = self.work / f"{self.prefix}__pch.h"
        units: list[tuple[Path, Path, list[str]]] = []
        pch = {}
        for label, flags in (("fast", fast), ("slow", slow)):
            copy = self.work / f"{header.name}.{label}"
            pch[label] = (copy, flags)
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            tasks = [
                pool.submit(
                    run,
                    [self.cxx, *flags, "-x", "c++-header", str(header), "-o", f"{copy}.gch"],
                    "compiling the common header",
                )
                for copy, flags in pch.values()
            ]
            for task in tasks:
                task.result()
        for source in sorted(self.work.glob("*.cpp")):
            slow_file = "__Slow" in source.name or ("__Trace__" in source.name and "__Slow" in source.name)
            copy, flags = pch["slow" if slow_file else "fast"]
            units.append((source, source.with_suffix(".o"), [*flags, "-include", str(copy)]))
        for source in self.cpp():
            units.append((source, self.work / f"sim_{source.stem}.o", fast))
        compile_all(units, self.cxx)
        objects = [str(obj) for _, obj, _ in units] + [str(o) for o in self.runtime()]
        # Written beside and renamed: a running card keeps the object it has open.
        fresh = self.out.with_suffix(f".{os.getpid()}.tmp")
        link = [self.cxx, "-shared", "-o", str(fresh), *objects, "-Wl,-Bsymbolic", "-Wl,--gc-sections"]
        link += ["-Wl,-z,defs", "-Wl,--build-id=none", "-pthread", "-ldl"]
        link += ["-llz4", "-lz"] if self.args.trace else []
        run(link, "linking")
        fresh.replace(self.out)

    def runtime(self) -> list[Path]:
        """Objects of Verilator's own library, compiled once for each set of flags."""
        include = verilator_root() / "include"
        names = list(RUNTIME)
        names += ["verilated_fst_c.cpp"] if self.args.trace else []
        names += ["verilated_cov.cpp"] if self.args.coverage else []
        own = f"-I{ROOT}"
        flags = ["-O2", *(f for f in self.flags() if not f.startswith(("-DVIA_", own)))]
        key = json.dumps([flags, names, self.cxx, compiler_version(self.cxx), str(include)])
        folder = ROOT / "build/verilator-runtime" / hashlib.sha256(key.encode()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "complete").exists():
                units = [(include / n, folder / f"{Path(n).stem}.o", flags) for n in names]
                compile_all(units, self.cxx)
                (folder / "complete").touch()
        return [folder / f"{Path(n).stem}.o" for n in names]


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
    parser.add_argument("--coverage", action="store_true", help="line and toggle coverage")
    parser.add_argument("--assert", action="store_true", help="check the assertions in the RTL")
    parser.add_argument("--portable", action="store_true", help="do not use instructions only this CPU has")
    parser.add_argument("--output-split", type=int, default=20000, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.kind == "slot" and not args.out:
        parser.error("slot needs --out")
    if args.trace and not Path("/usr/include/lz4.h").exists():
        fail("waves need the lz4 headers: install the package liblz4-dev")
    Build(args).make()


if __name__ == "__main__":
    main()
