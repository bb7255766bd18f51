#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the fuzz targets of fuzz/ and runs them, see fuzz/README.md.

    tools/fuzz.py --seconds 300              # each target for this time, from the kept corpus and inputs of earlier runs
    tools/fuzz.py --short                    # the kept corpus, then a fixed number of new inputs
    tools/fuzz.py vfio_user --input FILE     # one input again
    tools/fuzz.py vfio_user --keep           # add inputs of earlier runs that reach new code to the kept corpus

As many targets run in parallel as there are cores. New inputs are stored in build/fuzz/corpus, the output of each target in
build/fuzz/TARGET.log, an input at which one fails next to it. Exit status 1 if a target failed.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"
KEPT = ROOT / "fuzz" / "corpus"
# An input that exceeds this time or size of the process is a fault.
SECONDS_AN_INPUT, MEGABYTES = 60, 1024
LAST_LINES = 40

# Instruments the code for libFuzzer as `cargo fuzz` does, but without its sanitizer, which needs an unstable compiler.
FLAGS = (
    "--cfg fuzzing -Cpasses=sancov-module"
    " -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
    " -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
)


@dataclass(frozen=True)
class Target:
    """A target: its longest input, and the number of inputs of a short run, about ten seconds."""

    longest: int
    runs: int


TARGETS = {
    "capture": Target(512, 20_000),
    "card": Target(1024, 20_000),
    "config": Target(512, 20_000),
    "daemon": Target(512, 200_000),
    "image": Target(96, 500_000),
    "manifest": Target(2048, 20_000),
    "qmp": Target(1024, 20_000),
    "vfio_user": Target(2048, 20_000),
    "vfio_user_client": Target(1024, 20_000),
    "virtio": Target(1024, 20_000),
}


def build() -> Path:
    """Returns the folder with the programs."""
    version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^host: (\S+)$", version, re.MULTILINE)
    assert found, version
    # With --target, programs that run during the build are not instrumented.
    out = ROOT / "target" / "fuzz"
    command = ["cargo", "build", "--release", "--quiet", "--locked", "--target", found[1]]
    where = ["--manifest-path", str(ROOT / "fuzz" / "Cargo.toml"), "--target-dir", str(out)]
    built = subprocess.run([*command, *where], env=os.environ | {"RUSTFLAGS": FLAGS}, check=False)
    if built.returncode:
        sys.exit("fuzz: the targets could not be built")
    return out / found[1] / "release"


def options(name: str) -> list[str]:
    limits = [
        f"-timeout={SECONDS_AN_INPUT}",
        f"-rss_limit_mb={MEGABYTES}",
        f"-max_len={TARGETS[name].longest}",
    ]
    return [*limits, f"-seed={os.environ.get('VIA_SEED') or 0}"]


def fuzz(program: Path, limit: str) -> str | None:
    """Runs a target. Returns the end of its output if it failed."""
    name = program.name
    log, crash = BUILD / f"{name}.log", BUILD / f"{name}-"
    with tempfile.TemporaryDirectory() as fresh, log.open("w") as output:
        # New inputs are written to the first folder.
        found = fresh if limit.startswith("-runs") else str(BUILD / "corpus" / name)
        Path(found).mkdir(parents=True, exist_ok=True)
        command = [str(program), *options(name), limit, "-print_final_stats=1", f"-artifact_prefix={crash}"]
        begun = time.monotonic()
        done = subprocess.run(
            [*command, found, str(KEPT / name)], stdout=output, stderr=subprocess.STDOUT, check=False
        )
        took = time.monotonic() - begun
    text = log.read_text(errors="replace")
    runs = re.findall(r"number_of_executed_units: (\d+)", text)
    edges = re.findall(r"cov: (\d+)", text)
    result = "FAILED" if done.returncode else "passed"
    told = f"{int(runs[-1]):,} inputs" if runs else "ended early"
    reached = f", {int(edges[-1]):,} edges of code" if edges else ""
    print(f"fuzz: {name:<16} {took:4.0f} s  {told}{reached}  {result}", flush=True)
    return "\n".join(text.splitlines()[-LAST_LINES:]) if done.returncode else None


def keep(program: Path) -> None:
    """Adds inputs of earlier runs that reach new code to the kept corpus."""
    name = program.name
    kept, found = KEPT / name, BUILD / "corpus" / name
    before = set(kept.iterdir())
    command = [str(program), *options(name), "-merge=1", str(kept), str(found)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    new = set(kept.iterdir()) - before
    print(f"fuzz: {name}: {len(new)} new, {sum(f.stat().st_size for f in new)} bytes; {len(before)} before")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all if none is named"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--seconds", type=int, default=300, help="how long each target runs (300)")
    how.add_argument(
        "--short", action="store_true", help="a fixed number of inputs instead, about 10 seconds"
    )
    how.add_argument("--input", help="run one input again")
    how.add_argument("--keep", action="store_true", help="add new inputs to the kept corpus")
    args = parser.parse_args()
    if unknown := [name for name in args.targets if name not in TARGETS]:
        parser.error(f"no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    names: list[str] = args.targets or list(TARGETS)
    BUILD.mkdir(parents=True, exist_ok=True)
    folder = build()
    programs = [folder / name for name in names]
    if args.input:
        sys.exit(max(subprocess.run([program, args.input], check=False).returncode for program in programs))
    if args.keep:
        for program in programs:
            keep(program)
        return

    def run(program: Path) -> str | None:
        return fuzz(
            program,
            f"-runs={TARGETS[program.name].runs}" if args.short else f"-max_total_time={args.seconds}",
        )

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ends = dict(zip(names, pool.map(run, programs), strict=True))
    failed = {name: end for name, end in ends.items() if end is not None}
    for name, end in failed.items():
        print(f"fuzz: the end of {BUILD / name}.log:\n{end}")
        print(f"fuzz: run it again with tools/fuzz.py {name} --input FILE")
    if failed:
        sys.exit(f"fuzz: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
