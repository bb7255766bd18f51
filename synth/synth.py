#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Synthesises the shell, or apps, for UltraScale+ with yosys: LUT, FF, BRAM and URAM of every block, and its longest paths.

    .venv/bin/python synth/synth.py [--slots 4] [--channels 4] [--width 512] [--streams 1] [--functions] [--whole]
                                    [--app NAME] [--only BLOCK] [--json FILE] [--ceilings FILE [--set]]
                                    [--recorded FILE] [--record FILE]

--functions selects the functions of the card, `via_functions`, instead of the rest of the shell; --whole the whole shell
with its functions, assembled from its blocks (whole.py); --app, which may be repeated, apps. Each block is synthesised once, flattened, with its parameters in
the shell, and multiplied by the number of instances. The sum includes all of them except their wiring. BRAM is in units
of RAMB36 (a RAMB18 counts one half). There is no placement: paths are logic only, see timing.py for the definitions of
levels and delays.

The targets are those of a block with registered outputs in a shell with at most 8 levels and 5 ns between registers:
8 levels and 5 ns from register to register, 7 from an input to a register, 1 from a register to an output (the flag or
the head of a FIFO), and no path from an input to an output. --ceilings names the file with the paths that exceed
them at present, and by how much: a path above both its target and its ceiling is an error. --set rewrites the file.

A block whose elaborated netlist was mapped before, in any geometry, is not mapped again (build/synth/results). --record
writes the results to a file, each with a key of its netlist; --recorded takes them from there while a netlist has that
key.
"""

import argparse
import concurrent.futures
import fcntl
import fnmatch
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import record
import timing
import whole
from record import Results, Worst

ROOT = Path(__file__).resolve().parent.parent

# Cells of the xcup family by the resource they use. Carry chains and muxes are not counted as LUTs.
LUT = {"LUT1": 1, "LUT2": 1, "LUT3": 1, "LUT4": 1, "LUT5": 1, "LUT6": 1, "INV": 1}
LUTRAM = {
    "RAM32M": 4, "RAM32M16": 8, "RAM64M": 4, "RAM64M8": 8, "RAM32X1D": 2, "RAM64X1D": 2, "RAM64X1S": 1,
    "RAM32X1S": 1, "RAM32X16DR8": 8, "RAM64X8SW": 8, "RAM128X1D": 4, "RAM256X1D": 8, "SRL16E": 1,
    "SRLC32E": 1,
}  # fmt: skip
FF = {"FDRE": 1, "FDSE": 1, "FDCE": 1, "FDPE": 1}
BRAM = {"RAMB18E2": 0.5, "RAMB36E2": 1}
URAM = {"URAM288": 1}
DSP = {"DSP48E2": 1}
# Runs its arguments as yosys commands, one after the other.
YOSYS = """
import sys
from pyosys import libyosys as ys
design = ys.Design()
for command in sys.argv[1:]:
    ys.run_pass(command, design)
"""
# The virtio functions, from function 1 on (via_virtio_pkg), and the modules that make up their devices besides the device itself.
PERSONALITIES = {
    "net": ("via_vdev_net_rx", "via_vdev_net_tx", "via_vdev_net_ctrl"),
    "blk": ("via_vdev_blk_front", "via_vdev_blk_data"),
    "console": ("via_vdev_chop", "via_vdev_console_ctrl"),
    "entropy": (),
    "input": (),
}
# Queues of each (via_vdev_pkg): the queue engine differs for each number.
QUEUES = {"net": 9, "blk": 4, "console": 6, "entropy": 1, "input": 2}
# Modules of the queue engine.
ENGINE = [
    "via_vq_ring", "via_vq_fetch_burst", "via_vq_fetch_walk", "via_vq_fetch_table", "via_vq_store", "via_vq_gather",
    "via_vq_scatter", "via_vq_used",
]  # fmt: skip
# What passes its ports on without a register; in the whole shell these are mapped with the logic around them, except the shallow ones: of
# their two levels the mapper would make as many as the deepest path of that logic has.
PASSES: dict[str, dict[str, int]] = {
    "via_vq_rdmux": {"N": 6},
    "via_vq_avail": {"NumQ": 9},
    "via_vq_wrmux": {},
    "via_fn_gate": {},
}
SHALLOW = {"via_vq_rdmux", "via_vq_avail"}
# Small blocks of via_functions: in the whole shell they are mapped with the logic around them, too.
SMALL = ("via_fn_flush", "via_fn_irqs")
# Delay of a wire that the mapper assumes, ps. With yosys's default, 300, ten fast LUTs in a row are as good as five slow ones,
# which is wrong after routing: there is a wire in front of each.
WIRE = 1000
# Target of each kind of path: levels, ps.
TARGETS = {"reg": (8, 5000), "in": (7, 5000), "out": (1, 5000), "through": (0, 0)}
WHOLE = "via_shell"
# Instances in the whole shell that only contain wiring.
WIRING = ("edge", "mgmt", "slots")
SYNTHESIS = (
    f"scratchpad -set synth_xilinx.abc9.W {WIRE}; synth_xilinx -family xcup -flatten -noiopad -noclkbuf"
)
COLUMNS = {"LUT": LUT, "LUTRAM": LUTRAM, "FF": FF, "BRAM": BRAM, "URAM": URAM, "DSP": DSP}


def sources() -> list[Path]:
    """Package first, then every module of the shell, then the generated registers."""
    package = ROOT / "rtl/common/via_pkg.sv"
    rtl = sorted(p for p in (ROOT / "rtl").glob("*/*.sv") if p != package)
    generated = sorted((ROOT / "build/regs").glob("*.sv"), key=lambda p: (not p.stem.endswith("_pkg"), p))
    if not generated:
        sys.exit("synth: build/regs is empty: run `make regs` first")
    return [package, *generated, *rtl]


@dataclass
class Block:
    """A module as the shell instantiates it. Parts of another block are listed, not added."""

    module: str
    count: int = 1
    parameters: dict[str, int] = field(default_factory=dict)
    part: bool = False
    label: str = ""
    borders: frozenset[str] = frozenset()  # modules in it that are mapped separately, see whole.py
    sources: tuple[Path, ...] = ()  # instead of the shell's

    @property
    def name(self) -> str:
        """Name that distinguishes it from others of the same module."""
        return f"{self.module}.{self.label}" if self.label else self.module


# Sides of the crossbar, which are not blocks of their own in the table: one for each manager, and one for each target. Mapped together, the
# deepest path of one direction would make those of the other as deep.
SIDES = {f"via_xbar_{way}_{side}" for way in ("rd", "wr") for side in ("mgr", "tgt")}


def functions(width: int) -> list[Block]:
    """All blocks that via_functions instantiates, and the blocks of a virtio function: its registers, the queue engine, the
    device and their parts; those of the engine as in the network function.
    Virtio functions are in cards of 512 bits only."""

    def engine_of(label: str, part: str) -> dict[str, int]:
        # Of the devices only the network function's has its responses ready.
        at_hand = {"AtHand": 1} if label == "net" and part in ("via_vq", "via_vq_scatter") else {}
        return {"NumQ": QUEUES[label], **at_hand}

    engine = [Block(part, parameters=engine_of("net", part), part=True) for part in ENGINE]
    # With the device's number of queues, and all features.
    registers = Block("via_virtio_pci", parameters={"NumQ": max(QUEUES.values()), "Features": -1}, part=True)
    passes = [Block(module, parameters=parameters, part=True) for module, parameters in PASSES.items()]
    virtio: list[Block] = [registers, *engine, *passes] if width == 512 else []
    for n, (label, parts) in enumerate(PERSONALITIES.items() if width == 512 else [], 1):
        virtio += [
            Block("via_virtio_fn", parameters={"Fn": n}, label=label),
            Block("via_vq", parameters=engine_of(label, "via_vq"), part=True, label=label),
            Block("via_vdev_select", parameters={"Fn": n}, part=True, label=label),
            *(Block(module, part=True) for module in parts),
        ]
    small = [Block(module) for module in SMALL]
    return [*virtio, Block("via_xdma"), Block("via_fn_mem"), Block("via_fn_msix"), *small]


def blocks(slots: int, channels: int, streams: int) -> list[Block]:
    """All other blocks that via_shell instantiates, and the blocks of a slot's port."""
    managers = 3 + len(PERSONALITIES) + 1
    return [
        Block("via_csr"),
        Block("via_app_regs"),
        Block("via_cmdq"),
        Block("via_ringw"),
        Block("via_msix", parameters={"NumVec": 2 * slots}),
        Block(
            "via_axi_mux",
            parameters={"NumRd": managers, "NumWr": managers, "NumFirst": 1, "Ordered": 1, "Shared": 1},
        ),
        Block("via_axi_mux", parameters={"NumRd": slots, "NumWr": slots, "NumFirst": 0}, label="walks"),
        Block("via_dma"),
        Block("via_xbar"),
        Block("via_vio_switch"),
        Block("via_slot_port", slots),
        Block("via_dispatch", slots, part=True),
        Block("via_mmu", slots, part=True),
        Block("via_guard", slots, part=True),
        Block("via_guard_strm", slots * streams, part=True),
        Block("via_mover_in", slots * streams, part=True),
        Block("via_mover_out", slots * streams, part=True),
    ]


def app(name: str, width: int) -> Block:
    """An app, with the modules of rtl/common that apps may use."""
    folder = ROOT / "apps" / name
    manifest = tomllib.loads((folder / "app.toml").read_text())["app"]
    shared = [p for p in sorted((ROOT / "rtl/common").glob("via_*.sv")) if not p.stem.endswith("_checker")]
    files = [ROOT / "rtl/common/via_pkg.sv", *shared]
    files += [(folder / source).resolve() for source in manifest.get("sources", [])]
    files += sorted((folder / "rtl").glob("*.sv"))
    if "generator" in manifest:
        made = ROOT / "build/synth" / f"{manifest['top']}.v"
        made.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, folder / manifest["generator"], f"--data-width={width}", f"--out={made}"]
        env = {**os.environ, "PYTHONPATH": str(ROOT / "apps/common")}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
        files.append(made)
    return Block(manifest["top"], sources=tuple(dict.fromkeys(files)))


def add_geometry(parser: argparse.ArgumentParser, slots: int, channels: int, width: int) -> None:
    """The options that select the shell's geometry."""
    parser.add_argument("--slots", type=int, default=slots)
    parser.add_argument("--channels", type=int, default=channels)
    parser.add_argument("--width", type=int, default=width, help="bits of every data path")
    parser.add_argument("--streams", type=int, default=1, help="streams of a slot in each direction")


def defines_of(args: argparse.Namespace) -> list[str]:
    """The macros of that shell."""
    return [
        f"VIA_NUM_SLOTS={args.slots}",
        f"VIA_NUM_CHAN={args.channels}",
        f"VIA_DATA_W={args.width}",
        f"VIA_NUM_STREAMS={args.streams}",
    ]


def read_command(block: Block, defines: list[str]) -> str:
    """The yosys command that reads a block with its parameters."""
    flags = " ".join([*(f"-D {d}" for d in defines), *(f"-G {k}={v}" for k, v in block.parameters.items())])
    if block.module == WHOLE:
        flags += " --keep-hierarchy"
    return f"read_slang {flags} --top {block.module} {' '.join(str(p) for p in block.sources or sources())}"


def run_yosys(out: Path, log: str, script: list[str]) -> None:
    """Runs commands in a separate yosys process. `out` is build/PROGRAM/BLOCK, for its output."""
    with (out / log).open("w") as file:
        done = subprocess.run([sys.executable, "-c", YOSYS, *script], stdout=file, stderr=file, cwd=ROOT)
    if done.returncode:
        sys.exit(f"{out.parent.name}: {out.name} failed, see {out / log}")


def elaborate(out: Path, read: str) -> Path:
    """The elaborated block, without line numbers."""
    elaborated = out / "elaborated.il"
    run_yosys(
        out,
        "read.log",
        [read, "setattr -mod -unset src *", "setattr -unset src */*", f"write_rtlil {elaborated}"],
    )
    return elaborated


def key_of(elaborated: Path, script: list[str]) -> str:
    """A hash of the elaborated netlist and of everything else that affects a block's results."""
    key = hashlib.sha256(elaborated.read_bytes())
    for program in (Path(timing.__file__), Path(whole.__file__)):
        key.update(program.read_bytes())
    key.update("\n".join([*script, str(COLUMNS), importlib.metadata.version("pyosys")]).encode())
    return key.hexdigest()[:32]


@dataclass(frozen=True)
class Setting:
    """What a run has for all blocks: the shell's macros, the folder of yosys's cell models, and the results that are kept."""

    geometry: str
    defines: list[str]
    share: Path
    recorded: Path | None
    record: Path | None


def synthesise(block: Block, setting: Setting) -> Results:
    """Resources and longest paths of one block, by a separate yosys process. The paths of the shell are sorted by the
    instance in which they end, those of a block have its name."""
    out = ROOT / "build/synth" / block.name
    out.mkdir(parents=True, exist_ok=True)
    # Another run may map the same block, at another geometry.
    with (out / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        read = read_command(block, setting.defines)
        elaborated = elaborate(out, read)
        key = key_of(elaborated, [block.name, SYNTHESIS, *sorted(block.borders)])
        results = kept(block, setting, key, out)
        if not results:
            results = mapped(block, setting, read, elaborated, out)
            keep(results, key, out)
        elaborated.unlink()
    if setting.record:
        record.put(setting.record, setting.geometry, block.name, key, results)
    return results


def kept(block: Block, setting: Setting, key: str, out: Path) -> Results | None:
    """Results of the same netlist."""
    if setting.recorded:
        if results := record.find(setting.recorded, setting.geometry, block.name, key):
            return results
        print(
            f"synth: {block.name} has changed since {setting.recorded} was written and is mapped now; `make synth` renews it"
        )
    known = out.parent / "results" / f"{key}.json"
    if not known.exists():
        return None
    area, found = json.loads(known.read_text())
    return area, record.as_found(found)


def keep(results: Results, key: str, out: Path) -> None:
    """For the next run; atomically, since another one may read it."""
    known = out.parent / "results" / f"{key}.json"
    known.parent.mkdir(exist_ok=True)
    fresh = out / known.name
    fresh.write_text(json.dumps([results[0], record.plain(results[1])]))
    fresh.replace(known)


def mapped(block: Block, setting: Setting, read: str, elaborated: Path, out: Path) -> Results:
    """The results by yosys, with the folder locked."""
    stat = out / "stat.json"
    netlist = out / "netlist.json"
    if block.module == WHOLE:
        script = whole.netlist(elaborated.read_text(), block.borders, SYNTHESIS, out, run_yosys)
    else:
        script = [read, f"{SYNTHESIS} -top {block.module}"]
    run_yosys(
        out,
        "yosys.log",
        [
            *script,
            f"tee -q -o {stat} stat -json -tech xilinx",
            f"select {block.module}",
            f"write_json -selected {netlist}",
        ],
    )
    cells: dict[str, int] = {}
    for module in json.loads(stat.read_text())["modules"].values():
        cells |= module["num_cells_by_type"]
    area = {
        name: sum(cells.get(c, 0) * float(w) for c, w in weights.items()) for name, weights in COLUMNS.items()
    }
    paths = timing.Netlist(netlist, block.module, setting.share).paths()
    found = {block.name: timing.worst(paths)}
    if block.module == WHOLE:
        found |= worst_parts(paths)
    netlist.unlink()
    return area, found


def worst_parts(paths: list[timing.LongPath]) -> dict[str, Worst]:
    """The longest paths of the shell by the instance in which they end: a block, or a part of one."""
    instance = r"(?:gen_\w+(?:\[\d+\])?\.)*u_\w+"
    wired = rf"(?:u_(?:{'|'.join(WIRING)})\.)?"
    parts: dict[str, list[timing.LongPath]] = {}
    for path in paths:
        found = re.match(rf"{wired}{instance}(?:\.{instance})?", path.end)
        parts.setdefault(f"{WHOLE}: {found[0] if found else 'the rest'}", []).append(path)
    return {name: timing.worst(part) for name, part in sorted(parts.items())}


def over(kind: str, levels: int, ps: int, ceiling: dict[str, int]) -> bool:
    """A path is longer than its target and its ceiling."""
    want = TARGETS[kind]
    return levels > max(want[0], ceiling.get("levels", 0)) or ps > max(want[1], ceiling.get("ps", 0))


def print_paths(paths: dict[str, Worst]) -> None:
    """The deepest and the slowest path of each kind, with their ends."""
    width = max(len(name) for name in paths)
    print()
    print(
        f"{'block':<{width}}{'path':>9}{'levels':>8}{'ns':>7}  {'target':<9}deepest path (slowest, if different)"
    )
    for block, kinds in paths.items():
        name = block
        for kind, (deep, slow) in kinds.items():
            good = deep.levels <= TARGETS[kind][0] and slow.ps <= TARGETS[kind][1]
            where = f"{deep.start} -> {deep.end}"
            if (slow.start, slow.end) != (deep.start, deep.end):
                where += f" ({slow.start} -> {slow.end})"
            verdict = "met" if good else "missed"
            print(f"{name:<{width}}{kind:>9}{deep.levels:>8}{slow.ps / 1000:>7.2f}  {verdict:<9}{where}")
            name = ""


def check(file: Path, geometry: str, paths: dict[str, Worst], renew: bool) -> list[str]:
    """Compares with the ceilings of this geometry, or writes them; returns the paths that exceed them."""
    ceilings = json.loads(file.read_text()) if file.exists() else {}
    mine = ceilings.setdefault(geometry, {})
    worse: list[str] = []
    for name, kinds in paths.items():
        if renew:
            mine.pop(name, None)
            beyond = {
                kind: {"levels": deep.levels, "ps": slow.ps}
                for kind, (deep, slow) in kinds.items()
                if over(kind, deep.levels, slow.ps, {})
            }
            mine |= {name: beyond} if beyond else {}
            continue
        for kind, (deep, slow) in kinds.items():
            ceiling = mine.get(name, {}).get(kind, {})
            if over(kind, deep.levels, slow.ps, ceiling):
                allowed = [
                    max(a, ceiling.get(k, 0)) for a, k in zip(TARGETS[kind], ("levels", "ps"), strict=True)
                ]
                worse.append(
                    f"{name} ({kind}): {deep.levels} levels, {slow.ps} ps, where {allowed[0]} and {allowed[1]} are allowed: {deep}"
                )
    if renew:
        file.write_text(json.dumps(ceilings, indent=1, sort_keys=True) + "\n")
    return worse


def main() -> None:
    parser = argparse.ArgumentParser(description="Area of the shell on UltraScale+.")
    add_geometry(parser, slots=4, channels=4, width=512)
    parser.add_argument(
        "--functions", action="store_true", help="the card's functions, not the rest of the shell"
    )
    parser.add_argument("--whole", action="store_true", help="the whole shell with its functions")
    parser.add_argument("--app", action="append", metavar="NAME", help="this app; may be repeated")
    parser.add_argument(
        "--only", action="append", help="only these blocks, * matches anything; may be repeated"
    )
    parser.add_argument("--json", type=Path, help="also write the table here")
    parser.add_argument(
        "--ceilings", type=Path, help="fail if a path is above its target and its ceiling in this file"
    )
    parser.add_argument(
        "--set", action="store_true", help="write the present paths to the file of --ceilings"
    )
    parser.add_argument(
        "--recorded",
        type=Path,
        metavar="FILE",
        help="take results from this file while the netlist is that of the file",
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the results to this file")
    args = parser.parse_args()
    geometry = f"{args.width}/{args.slots}/{args.channels}"

    todo = functions(args.width) if args.functions else blocks(args.slots, args.channels, args.streams)
    if args.app:
        todo = [app(name, args.width) for name in args.app]
    if args.whole:
        inner = (
            {module for parts in PERSONALITIES.values() for module in parts}
            | set(PASSES) - SHALLOW
            | set(SMALL)
        )
        made_of = [*blocks(args.slots, args.channels, args.streams), *functions(args.width)]
        todo = [Block(WHOLE, borders=frozenset(b.module for b in made_of) - inner | SIDES)]
    if args.only:
        todo = [b for b in todo if any(fnmatch.fnmatch(b.name, only) for only in args.only)]
        if not todo:
            parser.error(f"no such block: {', '.join(args.only)}")
    what = "apps" if args.app else "functions" if args.functions else "shell"
    # Folder of yosys's cell models.
    package = importlib.util.find_spec("pyosys")
    if package is None or package.origin is None:
        sys.exit("synth: pyosys is missing: run `make setup` first")
    share = Path(package.origin).parent / "share"
    setting = Setting(geometry, defines_of(args), share, args.recorded, args.record)
    begun = time.monotonic()
    wide = args.width == 512 and (args.functions or args.whole)
    minutes = 15 if wide else 1 if args.functions or args.app else 4
    time_needed = f"about {minutes} minutes" + (", if the netlist has changed" if args.recorded else "")
    print(f"synth: {len(todo)} blocks for UltraScale+ ({time_needed})", flush=True)
    # The largest first, so that it does not run alone at the end.
    heavy = ("via_slot_port", "via_xbar", "via_dma", "via_mmu", "via_virtio_fn", "via_xdma")
    order = sorted(todo, key=lambda b: heavy.index(b.module) if b.module in heavy else len(heavy))
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        done = list(pool.map(lambda b: synthesise(b, setting), order))
    area = {b.name: a for b, (a, _) in zip(order, done, strict=True)}
    found = {name: worst for _, part in done for name, worst in part.items()}
    # In the order of the table of areas; then the parts of the shell.
    paths = {b.name: found.pop(b.name) for b in todo if b.name in found} | found

    total = dict.fromkeys(COLUMNS, 0.0)
    print(f"{'block':<22}{'count':>6}" + "".join(f"{c:>10}" for c in COLUMNS))
    for block in todo:
        row = area[block.name]
        name = ("  " if block.part else "") + block.name
        print(f"{name:<22}{block.count:>6}" + "".join(f"{row[c]:>10g}" for c in COLUMNS))
        if not block.part:
            total = {c: total[c] + block.count * row[c] for c in COLUMNS}
    print(f"{what:<28}" + "".join(f"{total[c]:>10g}" for c in COLUMNS))
    print_paths(paths)
    print(
        f"({args.slots} slots, {args.channels} channels, {args.width} bits; {time.monotonic() - begun:.0f} s)"
    )
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(
            json.dumps({"defines": setting.defines, "blocks": area, what: total}, indent=1, sort_keys=True)
        )
    if args.ceilings:
        for line in (worse := check(args.ceilings, geometry, paths, args.set)):
            print(f"synth: a path grew: {line}", file=sys.stderr)
        if worse:
            sys.exit(1)


if __name__ == "__main__":
    main()
