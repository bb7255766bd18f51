#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Synthesises the shell for UltraScale+ with yosys and prints LUT, FF, BRAM and URAM of every block.

    .venv/bin/python synth/synth.py [--slots 4] [--channels 4] [--width 512] [--streams 1] [--functions] [--json FILE]

--functions takes the functions of the card, `via_functions`, instead of the rest of the shell. Each block is
synthesised once, flattened, with the parameters it has in the shell; what the shell has several of is multiplied.
The sum is all of them but for their wiring. BRAM is in units of RAMB36 (a RAMB18 counts one half). There is no
placement and no timing here.
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

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
# Runs its arguments as yosys commands, one after the other.
YOSYS = """
import sys
from pyosys import libyosys as ys
design = ys.Design()
for command in sys.argv[1:]:
    ys.run_pass(command, design)
"""
# The virtio functions, from function 1 on (via_virtio_pkg).
PERSONALITIES = ["net", "blk", "console", "entropy", "input"]
COLUMNS = {"LUT": LUT, "LUTRAM": LUTRAM, "FF": FF, "BRAM": BRAM, "URAM": URAM}


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

    @property
    def name(self) -> str:
        """What tells it from others of the same module."""
        return f"{self.module}.{self.label}" if self.label else self.module


def functions() -> list[Block]:
    """Everything via_functions instantiates."""
    virtio = [
        Block("via_virtio_fn", parameters={"Fn": n}, label=label) for n, label in enumerate(PERSONALITIES, 1)
    ]
    switch = Block("via_fn_switch", parameters={"NumUser": len(PERSONALITIES)})
    return [*virtio, Block("via_xdma"), switch, Block("via_fn_mem"), Block("via_fn_msix")]


def blocks(slots: int, channels: int, streams: int) -> list[Block]:
    """Everything else via_shell instantiates, and what a slot's port is made of."""
    managers = 3 + len(PERSONALITIES) + 1
    return [
        Block("via_csr"),
        Block("via_cmdq"),
        Block("via_ringw"),
        Block("via_msix", parameters={"NumVec": 2 * slots}),
        Block("via_axi_mux", parameters={"NumRd": managers, "NumWr": managers, "NumFirst": 1}),
        Block("via_dma"),
        Block("via_xbar"),
        Block("via_mem_port", channels),
        Block("via_slot_port", slots),
        Block("via_dispatch", slots, part=True),
        Block("via_mmu", slots, part=True),
        Block("via_guard", slots, part=True),
        Block("via_guard_strm", slots * streams, part=True),
        Block("via_mover_in", slots * streams, part=True),
        Block("via_mover_out", slots * streams, part=True),
    ]


def synthesise(block: Block, defines: list[str]) -> dict[str, float]:
    """Resources of one block, by a yosys of its own."""
    out = ROOT / "build/synth" / block.name
    out.mkdir(parents=True, exist_ok=True)
    stat = out / "stat.json"
    flags = " ".join([*(f"-D {d}" for d in defines), *(f"-G {k}={v}" for k, v in block.parameters.items())])
    files = " ".join(str(p) for p in sources())
    script = [
        f"read_slang {flags} --top {block.module} {files}",
        f"synth_xilinx -family xcup -flatten -top {block.module} -noiopad -noclkbuf",
        f"tee -q -o {stat} stat -json -tech xilinx",
    ]
    with (out / "yosys.log").open("w") as log:
        done = subprocess.run([sys.executable, "-c", YOSYS, *script], stdout=log, stderr=log, cwd=ROOT)
    if done.returncode:
        sys.exit(f"synth: {block.name} failed, see {out / 'yosys.log'}")
    cells: dict[str, int] = {}
    for module in json.loads(stat.read_text())["modules"].values():
        cells |= module["num_cells_by_type"]
    return {name: sum(cells.get(c, 0) * w for c, w in weights.items()) for name, weights in COLUMNS.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Area of the shell on UltraScale+.")
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--channels", type=int, default=4)
    parser.add_argument("--width", type=int, default=512, help="bits of every data path")
    parser.add_argument("--streams", type=int, default=1, help="streams of a slot in each direction")
    parser.add_argument(
        "--functions", action="store_true", help="the card's functions, not the rest of the shell"
    )
    parser.add_argument("--json", type=Path, help="also write the table here")
    args = parser.parse_args()
    defines = [f"VIA_NUM_SLOTS={args.slots}", f"VIA_NUM_CHAN={args.channels}"]
    defines += [f"VIA_DATA_W={args.width}", f"VIA_NUM_STREAMS={args.streams}"]

    todo = functions() if args.functions else blocks(args.slots, args.channels, args.streams)
    whole = "functions" if args.functions else "shell"
    begun = time.monotonic()
    print(
        f"synth: {len(todo)} blocks for UltraScale+ (about {15 if args.functions else 4} minutes)", flush=True
    )
    # The largest first, so that no core is left alone with it at the end.
    heavy = ("via_slot_port", "via_xbar", "via_dma", "via_mmu", "via_virtio_fn", "via_xdma")
    order = sorted(todo, key=lambda b: heavy.index(b.module) if b.module in heavy else len(heavy))
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        area = dict(
            zip([b.name for b in order], pool.map(lambda b: synthesise(b, defines), order), strict=True)
        )

    total = dict.fromkeys(COLUMNS, 0.0)
    print(f"{'block':<22}{'count':>6}" + "".join(f"{c:>10}" for c in COLUMNS))
    for block in todo:
        row = area[block.name]
        name = ("  " if block.part else "") + block.name
        print(f"{name:<22}{block.count:>6}" + "".join(f"{row[c]:>10g}" for c in COLUMNS))
        if not block.part:
            total = {c: total[c] + block.count * row[c] for c in COLUMNS}
    print(f"{whole:<28}" + "".join(f"{total[c]:>10g}" for c in COLUMNS))
    print(
        f"({args.slots} slots, {args.channels} channels, {args.width} bits; {time.monotonic() - begun:.0f} s)"
    )
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(
            json.dumps({"defines": defines, "blocks": area, whole: total}, indent=1, sort_keys=True)
        )


if __name__ == "__main__":
    main()
