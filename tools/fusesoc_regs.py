#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FuseSoC generator of the register blocks: runs gen_regs.py, and passes the result to FuseSoC as a core.

FuseSoC runs it in an empty folder, with the name of a YAML file that contains the name of the core to generate.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
NEEDS = {"peakrdl_regblock": "peakrdl-regblock", "yaml": "pyyaml"}  # modules, and their packages


def pinned(package: str) -> str:
    """The package in the version that this project is tested with."""
    lines = (TOOLS / "requirements.txt").read_text().splitlines()
    return next((line for line in lines if line.startswith(f"{package}==")), package)


def main() -> None:
    missing = [pinned(package) for module, package in NEEDS.items() if not importlib.util.find_spec(module)]
    if missing:
        sys.exit(f"fusesoc_regs: error: missing for {sys.executable}: pip install {' '.join(missing)}")
    import yaml

    name = yaml.safe_load(Path(sys.argv[1]).read_text())["vlnv"]
    made = subprocess.run([sys.executable, TOOLS / "gen_regs.py", "--rtl", "--out", "."], check=False)
    if made.returncode:
        sys.exit(made.returncode)
    # Packages first: the modules use them.
    rtl = sorted((p.name for p in Path().glob("*.sv")), key=lambda file: (not file.endswith("_pkg.sv"), file))
    core = {
        "name": name,
        "description": "register blocks generated from rtl/regs/viaduct.rdl",
        "filesets": {
            "rtl": {"files": rtl, "file_type": "systemVerilogSource"},
            "waivers": {"files": ["via_regs.vlt"], "file_type": "vlt"},
        },
        "targets": {"default": {"filesets": ["rtl", "waivers"]}},
    }
    Path("via_regs.core").write_text("CAPI=2:\n" + yaml.safe_dump(core, sort_keys=False))


if __name__ == "__main__":
    main()
