#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Synthesises the shell for UltraScale+ with yosys and prints LUT, FF, BRAM and URAM of every block.

    .venv/bin/python synth/synth.py [--top via_shell] [--define VIA_NUM_SLOTS=4] [--json build/synth/area.json]

The hierarchy is kept, so each distinct module is synthesised once; a block's row counts everything below it. BRAM
is in units of RAMB36 (a RAMB18 counts one half). There is no placement and no timing here.
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Cells of the xcup family by the resource they use. Carry chains and muxes are not counted as LUTs.
LUT = {"LUT1": 1, "LUT2": 1, "LUT3": 1, "LUT4": 1, "LUT5": 1, "LUT6": 1, "INV": 1}
LUTRAM = {
    "RAM32M": 4, "RAM32M16": 8, "RAM64M": 4, "RAM64M8": 8, "RAM32X1D": 2, "RAM64X1D": 2, "RAM64X1S": 1,
    "RAM32X1S": 1, "RAM32X16DR8": 8, "RAM64X8SW": 8, "RAM128X1D": 4, "RAM256X1D": 8, "SRL16E": 1, "SRLC32E": 1,
}  # fmt: skip
FF = {"FDRE": 1, "FDSE": 1, "FDCE": 1, "FDPE": 1}
BRAM = {"RAMB18E2": 0.5, "RAMB36E2": 1}
URAM = {"URAM288": 1}
COLUMNS = {"LUT": LUT, "LUTRAM": LUTRAM, "FF": FF, "BRAM": BRAM, "URAM": URAM}


def sources() -> list[Path]:
    """Package first, then every module of the shell, then the generated registers."""
    package = ROOT / "rtl/common/via_pkg.sv"
    rtl = sorted(p for p in (ROOT / "rtl").glob("*/*.sv") if p != package)
    generated = sorted((ROOT / "build/regs").glob("*.sv"), key=lambda p: (not p.stem.endswith("_pkg"), p))
    if not generated:
        sys.exit("synth: build/regs is empty: run `make regs` first")
    return [package, *generated, *rtl]


def synthesise(top: str, defines: list[str]) -> dict:
    """Runs yosys and returns its statistics (the `stat -json` object)."""
    from pyosys import libyosys as ys

    out = ROOT / "build/synth"
    out.mkdir(parents=True, exist_ok=True)
    stat = out / "stat.json"
    design = ys.Design()
    flags = " ".join(f"-D {d}" for d in defines)
    files = " ".join(str(p) for p in sources())
    for command in [
        f"read_slang --keep-hierarchy {flags} --top {top} {files}",
        f"synth_xilinx -family xcup -top {top} -noiopad -noclkbuf",
        f"tee -q -o {stat} stat -json -tech xilinx",
    ]:
        ys.run_pass(command, design)
    return json.loads(stat.read_text())


def area(stat: dict, top: str) -> dict[str, dict[str, float]]:
    """Resources of every module, including everything it instantiates."""
    modules = {name.lstrip("\\"): m["num_cells_by_type"] for name, m in stat["modules"].items()}
    done: dict[str, dict[str, float]] = {}

    def total(name: str) -> dict[str, float]:
        if name not in done:
            row = dict.fromkeys(COLUMNS, 0.0)
            for cell, count in modules[name].items():
                cell = cell.lstrip("\\")
                below = total(cell) if cell in modules else None
                for column, weights in COLUMNS.items():
                    row[column] += count * (below[column] if below else weights.get(cell, 0))
            done[name] = row
        return done[name]

    total(top)
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--top", default="via_shell")
    parser.add_argument("--define", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", type=Path, help="also write the table here")
    args = parser.parse_args()

    rows = area(synthesise(args.top, args.define), args.top)
    print(f"\n{'block':<44}" + "".join(f"{c:>10}" for c in COLUMNS))
    for name, row in sorted(rows.items(), key=lambda r: -r[1]["LUT"]):
        short = name.replace("$paramod", "").lstrip("\\")[:43]
        print(f"{short:<44}" + "".join(f"{row[c]:>10g}" for c in COLUMNS))
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(rows, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
