# SPDX-License-Identifier: Apache-2.0
"""The shell with its functions as one netlist: every block mapped separately, then all of them assembled.

Mapped as a whole, a card of 512 bits takes hours, and one deep path lets the mapper make all others as deep. Therefore each module that is a
block, and the logic around them, is mapped separately, as in an out-of-context flow; identical modules are mapped once, and kept under a hash of
their inputs. In the assembled netlist, paths are followed across modules. No logic is optimised across borders: with a flow that does so, a path
can only be shorter.
"""

import concurrent.futures
import hashlib
import importlib.metadata
import os
import re
from collections.abc import Callable
from pathlib import Path

MODULE = re.compile(r"(?:^attribute [^\n]*\n)*^module (\S+)\n.*?^end\n", re.M | re.S)
PORT = re.compile(r"^  wire (?:\S+ )*(?:input|output) \d+ .*\n", re.M)
CELL = re.compile(r"^  cell (\S+) ", re.M)
LIBRARY = "read_verilog -lib -specify +/xilinx/cells_sim.v +/xilinx/cells_xtra.v"

Yosys = Callable[[Path, str, list[str]], None]


def _alike(text: str) -> str:
    """The text with its numbered names renumbered from the start."""
    seen: dict[str, str] = {}
    return re.sub(r"\$(\d+)", lambda found: "$" + seen.setdefault(found[1], str(len(seen))), text)


def parts(elaborated: str, names: frozenset[str]) -> dict[str, str]:
    """Splits RTLIL of a design that was elaborated with its hierarchy (a module is called NAME$PATH, the top NAME) at the modules of these
    names: RTLIL of each part, the others in it as black boxes. The top is the last one. A part has the name of its module and a number."""
    modules = {found[1]: found[0] for found in MODULE.finditer(elaborated)}
    top = next(name for name in modules if "$" not in name)
    blocks = [m for m in modules if m.partition("$")[0].lstrip("\\") in names]
    path = {m: m.partition("$")[2] for m in modules}
    # The block that contains each module: from the outside in, so that the innermost remains.
    home = dict.fromkeys(modules, top)
    for block in sorted(blocks, key=lambda m: path[m].count(".")):
        for m in modules:
            if m == block or path[m].startswith(path[block] + "."):
                home[m] = block
    members: dict[str, list[str]] = {}
    for m, block in home.items():
        members.setdefault(block, []).append(m)

    part: dict[str, str] = {}  # block -> name of its part
    number: dict[str, str] = {}
    out: dict[str, str] = {}
    for block in [*sorted(blocks, key=lambda m: -path[m].count(".")), top]:
        inside = {
            m: f"\\{m.partition('$')[0].lstrip(chr(92))}__{i}"
            for i, m in enumerate(members[block])
            if m != block
        }

        def name(cell: str, inside: dict[str, str] = inside) -> str:
            return inside.get(cell) or part.get(cell) or cell

        texts: list[str] = []
        for m in [block, *inside]:
            text = CELL.sub(lambda found: f"  cell {name(found[1])} ", modules[m])
            texts.append(text.replace(f"module {m}\n", f"module {inside.get(m, '@')}\n"))
        text = _alike("".join(texts))
        if (mine := number.get(text)) is None:
            mine = number[text] = f"{block.partition('$')[0]}_{len(out)}"
            boxes = {
                part[found[1]]: found[1]
                for m in members[block]
                for found in CELL.finditer(modules[m])
                if found[1] in part
            }
            stubs = [
                f"attribute \\blackbox 1\nmodule {box}\n{''.join(PORT.findall(modules[of]))}end\n"
                for box, of in sorted(boxes.items())
            ]
            out[mine.lstrip("\\")] = "".join([text.replace("module @\n", f"module {mine}\n"), *stubs])
        part[block] = mine
    return out


def netlist(elaborated: str, names: frozenset[str], synthesis: str, out: Path, run: Yosys) -> list[str]:
    """Maps the parts that are not in build/synth/parts yet with the yosys command `synthesis` (without its top); returns the
    commands that assemble them."""
    known = out.parent / "parts"
    known.mkdir(parents=True, exist_ok=True)

    def mapped(name: str, text: str) -> Path:
        key = hashlib.sha256(
            "\n".join([text, synthesis, importlib.metadata.version("pyosys")]).encode()
        ).hexdigest()[:32]
        file = known / f"{key}.il"
        if not file.exists():
            folder = out / name
            folder.mkdir(exist_ok=True)
            (folder / "part.il").write_text(text)
            commands = [
                f"read_rtlil {folder}/part.il",
                f"hierarchy -check -top {name}",
                f"{synthesis} -top {name}",
            ]
            run(
                folder,
                "yosys.log",
                [*commands, f"select {name}", f"write_rtlil -selected {folder}/mapped.il"],
            )
            (folder / "mapped.il").replace(file)
        return file

    todo = parts(elaborated, names)
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        files = list(pool.map(mapped, todo, todo.values()))
    top = list(todo)[-1]
    return [
        LIBRARY,
        *(f"read_rtlil {file}" for file in files),
        f"hierarchy -top {top}",
        "flatten -noscopeinfo",
        "delete t:$scopeinfo",
        f"rename {top} via_shell",
    ]
