#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Places and routes every block separately with nextpnr, for an Artix-7 of speed grade 2, and prints its maximum clock.

    .venv/bin/python synth/place.py [--width 64] [--slots 1] [--channels 1] [--goal 125] [--only BLOCK] [--placer heap|static] [--jobs 2] [--json FILE]

A block has more ports than a chip has pins. Therefore every input is driven by a register and every output drives one: the inputs' registers
form one long shift register after a pin, the outputs' are reduced by XOR, six at a time with registers between, to another pin. These are
placed and routed too, so the clock is that of a block between registered neighbours: input to register, register to register, register to
output. One seed, without a search for a better one. LUTs and flip-flops are those of the block and of these registers. Exit status 1 if a
block misses the goal.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from synth import ROOT, Block, add_geometry, blocks, defines_of, functions, read_command, run_yosys

DEVICE = "xc7a200tsbg484-2"
# Any three pins of the package.
PINS = {"clk": "R4", "d": "E22", "q": "T14"}
TOP = "placed"
# nextpnr has two placers: this one places the cells of a large block closer together.
STATIC = {"via_xdma", "via_xbar", "via_mmu", "via_mover_in", "via_slot_port"}
LIMIT = 3600  # seconds for one block


@dataclass
class Placed:
    """Results of a block: MHz, LUTs, flip-flops and block RAMs with its wrapper, and the cells on the slowest path."""

    name: str
    mhz: float
    luts: int
    ffs: int
    rams: float
    cells: int
    seconds: float


def wrapper(module: str, ports: dict[str, dict[str, object]]) -> str:
    """Verilog of the block between registers."""
    lines = [f"module {TOP} (input clk, input d, output q);"]
    inputs, outputs, pins = 0, 0, []
    for name, port in ports.items():
        bits = port["bits"]
        assert isinstance(bits, list)
        width = len(bits)
        if port["direction"] == "input" and name == "clk_i":
            pins.append(f".{name}(clk)")
        elif port["direction"] == "input":
            pins.append(f".\\{name} (in_q[{inputs} +: {width}])")
            inputs += width
        else:
            pins.append(f".\\{name} (out[{outputs} +: {width}])")
            outputs += width
    lines += [f"  wire [{outputs - 1}:0] out;", f"  (* keep *) reg [{inputs - 1}:0] in_q;"]
    lines += [f"  always @(posedge clk) in_q <= {{in_q[{inputs - 2}:0], d}};"]
    lines += [f"  reg [{outputs - 1}:0] fold0;", "  always @(posedge clk) fold0 <= out;"]
    level, width = 0, outputs
    while width > 1:
        narrow = (width + 5) // 6
        lines.append(f"  reg [{narrow - 1}:0] fold{level + 1};")
        for i in range(narrow):
            top = min(6 * i + 6, width) - 1
            lines.append(f"  always @(posedge clk) fold{level + 1}[{i}] <= ^fold{level}[{top}:{6 * i}];")
        level, width = level + 1, narrow
    lines += [
        f"  assign q = fold{level};",
        f"  \\{module} block (",
        "    " + ",\n    ".join(pins),
        "  );",
        "endmodule",
    ]
    return "\n".join(lines) + "\n"


def place(block: Block, defines: list[str], goal: float, placer: str) -> Placed:
    """Synthesises, places and routes one block."""
    begun = time.monotonic()
    out = ROOT / "build/place" / block.name
    out.mkdir(parents=True, exist_ok=True)
    run_yosys(
        out,
        "read.log",
        [
            read_command(block, defines),
            f"write_rtlil {out}/block.il",
            f"select {block.module}",
            f"write_json -selected {out}/ports.json",
        ],
    )
    modules = json.loads((out / "ports.json").read_text())["modules"]
    (out / "wrapper.v").write_text(wrapper(block.module, modules[block.module]["ports"]))
    run_yosys(
        out,
        "synth.log",
        [
            f"read_rtlil {out}/block.il",
            f"read_verilog {out}/wrapper.v",
            f"synth_xilinx -family xc7 -flatten -top {TOP}",
            f"write_json {out}/netlist.json",
        ],
    )
    (out / "pins.xdc").write_text(
        "".join(
            f"set_property PACKAGE_PIN {pin} [get_ports {port}]\nset_property IOSTANDARD LVCMOS33 [get_ports {port}]\n"
            for port, pin in PINS.items()
        )
    )
    command = [
        *(ROOT / "tools/nextpnr.sh", "--device", DEVICE, "--json", out / "netlist.json"),
        *("-o", f"xdc={out / 'pins.xdc'}", "--freq", str(goal), "--timing-allow-fail"),
        *("--report", out / "report.json", "--log", out / "nextpnr.log", "--quiet", "--seed", "1"),
        *("--placer", placer),
    ]
    with (out / "nextpnr.out").open("w") as file:
        try:
            status = subprocess.run(command, stdout=file, stderr=file, timeout=LIMIT).returncode
        except subprocess.TimeoutExpired:
            sys.exit(f"place: {block.name} was not routed within {LIMIT} s, see {out / 'nextpnr.log'}")
    if status:
        sys.exit(f"place: {block.name} was not routed, see {out / 'nextpnr.out'} and {out / 'nextpnr.log'}")
    report = json.loads((out / "report.json").read_text())
    (out / "block.il").unlink()
    (out / "netlist.json").unlink()
    used = {name: entry["used"] for name, entry in report["utilization"].items()}
    mhz = min(clock["achieved"] for clock in report["fmax"].values())
    clocked = [path["path"] for path in report["critical_paths"] if path["from"].startswith("posedge")]
    cells = max(sum(step["type"] == "routing" for step in path) - 1 for path in clocked)
    return Placed(
        block.name,
        mhz,
        sum(n for name, n in used.items() if name.startswith("SLICE_LUT")),
        sum(n for name, n in used.items() if name == "SLICE_FFX"),
        sum(n * (1 if "36" in name else 0.5) for name, n in used.items() if name.startswith("RAMB")),
        cells,
        time.monotonic() - begun,
    )


def placer_of(block: Block) -> str:
    return "static" if block.module in STATIC else "heap"


def main() -> None:
    parser = argparse.ArgumentParser(description="Places and routes every block separately.")
    add_geometry(parser, slots=1, channels=1, width=64)
    parser.add_argument("--goal", type=float, default=125.0, help="MHz")
    parser.add_argument("--only", action="append", help="this block alone; may be repeated")
    parser.add_argument(
        "--placer", choices=("heap", "static"), help="nextpnr's; unless given, static for large blocks"
    )
    parser.add_argument("--jobs", type=int, default=2, help="blocks at a time; each takes up to 3 GB")
    parser.add_argument("--json", type=Path, help="also write the table here")
    args = parser.parse_args()
    if importlib.util.find_spec("pyosys") is None:
        sys.exit("place: pyosys is missing: run `make setup` first")
    defines = defines_of(args)
    todo = [*blocks(args.slots, args.channels, args.streams), *functions(args.width)]
    # A block that consists of other blocks is placed as those.
    todo = (
        [b for b in todo if b.module != "via_slot_port"]
        if not args.only
        else [b for b in todo if b.name in args.only]
    )
    if not todo:
        parser.error(f"no such block: {', '.join(args.only)}")
    print(f"place: {len(todo)} blocks for {DEVICE} (minutes each)", flush=True)
    subprocess.run([ROOT / "tools/nextpnr.sh", "--device", DEVICE, "--version"], check=True)
    print(f"{'block':<24}{'MHz':>7}{'LUT':>8}{'FF':>8}{'BRAM':>7}  slowest path", flush=True)
    os.nice(5)
    done: list[Placed] = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for placed in pool.map(lambda b: place(b, defines, args.goal, args.placer or placer_of(b)), todo):
            done.append(placed)
            print(
                f"{placed.name:<24}{placed.mhz:>7.1f}{placed.luts:>8}{placed.ffs:>8}{placed.rams:>7g}  {placed.cells} cells ({placed.seconds:.0f} s)",
                flush=True,
            )
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps([p.__dict__ for p in done], indent=1))
    missed = [p.name for p in done if p.mhz < args.goal]
    if missed:
        sys.exit(f"place: below {args.goal:g} MHz: {', '.join(missed)}")


if __name__ == "__main__":
    main()
