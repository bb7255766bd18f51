#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes everything that depends on the register map from rtl/regs/viaduct.rdl.

    .venv/bin/python tools/gen_regs.py --out build/regs [--slots 4] [--rtl] [--check]

Into --out: the RTL register blocks with their Verilator waivers, viaduct_regs.h, viaduct_regs.rs and
html/index.html. The Rust constants are also kept in the source tree (host/viaduct/src/regs.rs), so that cargo
needs no Python; --check only says whether that copy is current. --rtl makes the RTL and its waivers only, for other
projects (tools/fusesoc_regs.py): nothing in the source tree is written. A file whose contents would not change keeps
its time stamp, and nothing is made if no source changed.
"""

import argparse
import fcntl
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RDL = ROOT / "rtl/regs/viaduct.rdl"
RUST_COPY = ROOT / "host/viaduct/src/regs.rs"
BLOCKS = ["via_card_regs", "via_slot_regs", "via_fn_regs", "via_bell_regs"]
BAR2 = 0x40000  # where BAR2 begins in the card's register address space
TOOLS = ["peakrdl-regblock", "peakrdl-html", "systemrdl-compiler"]
NOTICE = "Made by tools/gen_regs.py from rtl/regs/viaduct.rdl: do not edit."
WAIVERS = f"""// {NOTICE}
`verilator_config
lint_off -rule MULTIDRIVEN -file "*/via_*_regs.sv"
lint_off -rule CMPCONST -file "*/via_*_regs.sv"
lint_off -rule UNSIGNED -file "*/via_*_regs.sv"
lint_off -rule UNUSEDSIGNAL -file "*/via_*_regs.sv"
lint_off -rule UNUSEDPARAM -file "*/via_*_regs_pkg.sv"
lint_off -rule WIDTHEXPAND -file "*/via_*_regs.sv"
lint_off -rule WIDTHTRUNC -file "*/via_*_regs.sv"
"""


def elaborate(top: str, **parameters: int):
    """The elaborated register model below one address map of the source."""
    from peakrdl_regblock.udps import ALL_UDPS
    from systemrdl.compiler import RDLCompiler

    compiler = RDLCompiler()
    for udp in ALL_UDPS:
        compiler.register_udp(udp)
    compiler.compile_file(str(RDL))
    return compiler.elaborate(top, parameters=dict(parameters))


def constants(root) -> Iterator[tuple[str, int, str, str]]:
    """(name, value, kind, comment) of every constant software needs; kind is "offset", "count" or "mask"."""
    from systemrdl.node import AddressableNode, MemNode, RegNode

    for block in root.top.children(unroll=False):
        assert isinstance(block, AddressableNode)
        name = f"VIA_{block.inst_name}"
        title = block.get_property("name")
        address = block.raw_absolute_address if not block.is_array else block.raw_address_offset
        bar, base = (2, address - BAR2) if address >= BAR2 else (0, address)
        yield f"{name}_BAR", bar, "count", f"{title}: BAR."
        one, first = ("function", " 1") if block.inst_name == "FN" else ("slot", " of slot 0")
        whose = first if block.is_array else ""
        yield f"{name}_BASE", base, "offset", f"{title}{whose}: offset in its BAR."
        if block.is_array:
            assert block.array_stride is not None
            yield f"{name}_STRIDE", block.array_stride, "offset", f"{title}: from one {one} to the next."
        if isinstance(block, MemNode):
            yield f"{name}_SIZE", block.size, "offset", f"{title}: bytes."
            continue
        for reg in block.children():
            assert isinstance(reg, RegNode)
            yield f"{name}_{reg.inst_name}", reg.address_offset, "offset", f"{reg.get_property('name')}."
            for field in reg.fields():
                stem = f"{name}_{reg.inst_name}_{field.inst_name}"
                if field.width == 32:
                    reset = field.get_property("reset")
                    if isinstance(reset, int) and reset and not field.is_hw_writable:
                        yield f"{stem}_RESET", reset, "mask", f"Value of `{reg.inst_name}`."
                    continue
                desc = " ".join((field.get_property("desc") or "").split())
                yield f"{stem}_LSB", field.low, "count", f"{desc} Lowest bit."
                yield f"{stem}_MASK", ((1 << field.width) - 1) << field.low, "mask", f"{desc} Mask in place."


def c_header(root) -> str:
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        f"/* Registers of a Viaduct card. {NOTICE} */",
        "#ifndef VIADUCT_REGS_H",
        "#define VIADUCT_REGS_H",
        "",
    ]
    for name, value, kind, comment in constants(root):
        number = f"{value}u" if kind == "count" else f"0x{value:02x}u"
        lines.append(f"#define {name} {number} /* {comment} */")
    return "\n".join([*lines, "", "#endif", ""])


def rust_constants(root) -> str:
    types = {"offset": "u64", "count": "u32", "mask": "u32"}
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        f"//! Registers of a card. {NOTICE}",
        "//!",
        "//! Offsets of registers are relative to their block; that of slot `s` lies at `BASE + s * STRIDE` in its `BAR`,",
        "//! that of function `f`, 1 to 6, at `BASE + (f - 1) * STRIDE`.",
        "",
    ]
    for name, value, kind, comment in constants(root):
        number = f"{value}" if kind == "count" else f"{value:#04x}" if value < 0x10000 else f"{value:#010x}"
        if len(number) == 10:
            number = f"{number[:6]}_{number[6:]}"
        lines += [f"/// {comment}", f"pub const {name}: {types[kind]} = {number};"]
    return "\n".join([*lines, ""])


def put(path: Path, text: str) -> None:
    """Writes a file unless it already holds the text. Who reads it meanwhile sees the old text or the new."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        part.write_text(text)
        part.replace(path)


def generate(out: Path, slots: int) -> None:
    """Makes all files."""
    from peakrdl_html import HTMLExporter

    root = elaborate("viaduct", NumSlots=slots)
    put(out / "viaduct_regs.h", c_header(root))
    rust = rust_constants(root)
    put(out / "viaduct_regs.rs", rust)
    put(RUST_COPY, rust)
    HTMLExporter().export(root, str(out / "html"))
    generate_rtl(out)


def generate_rtl(out: Path) -> None:
    """Makes the register blocks and their waivers."""
    from peakrdl_regblock import RegblockExporter
    from peakrdl_regblock.cpuif.passthrough import PassthroughCpuif

    put(out / "via_regs.vlt", WAIVERS)
    with tempfile.TemporaryDirectory() as scratch:
        for block in BLOCKS:
            RegblockExporter().export(
                elaborate(block).top,
                scratch,
                cpuif_cls=PassthroughCpuif,
                address_width=12,
                default_reset_activelow=True,
                err_if_bad_addr=True,
            )
        for made in Path(scratch).glob("*.sv"):
            put(out / made.name, f"// {NOTICE}\n{made.read_text()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build/regs", help="output folder")
    parser.add_argument("--slots", type=int, default=4, help="slots on the reference page (1 to 16)")
    parser.add_argument("--rtl", action="store_true", help="make the RTL and its waivers only")
    parser.add_argument("--check", action="store_true", help="only check that the Rust copy is current")
    args = parser.parse_args()
    if not 1 <= args.slots <= 16:
        parser.error("--slots: a card has 1 to 16 slots")

    if args.check:
        rust = rust_constants(elaborate("viaduct"))
        if not RUST_COPY.exists() or RUST_COPY.read_text() != rust:
            sys.exit(f"{RUST_COPY.relative_to(ROOT)} is stale: run tools/gen_regs.py")
        return

    if args.rtl:
        generate_rtl(args.out)
        return

    # What the result depends on: the sources, the tools, and the option.
    key = hashlib.sha256(RDL.read_bytes() + Path(__file__).read_bytes())
    key.update(repr([args.slots, *(version(tool) for tool in TOOLS)]).encode())
    stamp = args.out / ".stamp"

    def is_current() -> bool:
        return RUST_COPY.exists() and stamp.exists() and stamp.read_text() == key.hexdigest()

    if is_current():
        return
    args.out.mkdir(parents=True, exist_ok=True)
    with (args.out / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("registers: waiting for another process that makes them", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_current():
            generate(args.out, args.slots)
            put(stamp, key.hexdigest())


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # whatever it is, one line tells it
        sys.exit(f"gen_regs: error: {type(error).__name__}: {' '.join(str(error).split())}")
