# SPDX-License-Identifier: Apache-2.0
"""Longest paths of a netlist that yosys mapped for Xilinx cells: logic levels and logic delay, wires at zero.

Delays are those of the 7-series cells as the `specify` blocks of yosys's own cells_sim.v state them (from the Artix-7 timing database
of Project X-Ray, slowest corner): LUT6 127 to 642 ps by pin, flip-flop 303 ps clock to output, block RAM without output register 2,454 ps.
Memories that 7-series does not have (RAMB*E2, URAM288, RAM64M8 and the like) get the figures of their 7-series relatives.

Levels: a LUT is one, a read of a distributed memory is one, a carry chain is one per started 16 bits (four CARRY4); MUXF7 and MUXF8
belong to the LUTs in front of them and add delay only. A path starts at a register (or a memory's clock) or at an input of the
block and ends at a register (data, enable, reset, address) or at an output. `still_o`, `moving_o` and `idle_o`, which report activity in
a block, are the only signals that are combined over several blocks before a register: they are not counted among a block's outputs, but
at their end in the whole shell.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Wire = int | str

# Delays for memories without figures of their own (ps): block RAM of 7-series, distributed memory as its RAM64M.
RAM_OUT, RAM_SETUP = 2454, {"ADDR": 566, "A": 566, "WE": 532, "D": 737, "": 443}
LUTRAM_OUT, LUTRAM_READ, LUTRAM_SETUP = (
    1188,
    642,
    {"ADDR": 245, "A": 245, "DI": 461, "D": 461, "WE": 654, "": 0},
)
BLOCK_RAM = re.compile(r"RAMB\d+|URAM")
LUT_RAM = re.compile(r"RAM\d+[XM]|SRL")
GATHERED = ("still_o", "moving_o", "idle_o")
# Carries of 16 bits make one level.
CARRIES = 4
# A multiplier of a DSP without its registers, as DSP48E1's (cells_sim.v, A to P): ps, and the levels that stand for it.
MULTIPLIER, MULTIPLIER_LEVELS = 2823, 3


@dataclass(frozen=True)
class Cell:
    """Timing of a cell type: combinational arcs, clock to output and setup, ps; pins as name[index]."""

    arcs: dict[tuple[str, str], int]
    launch: dict[str, int]
    setup: dict[str, int]


def _pin(name: str) -> str:
    return name.replace(" ", "")


@cache
def library(share: Path) -> dict[str, Cell]:
    """The cell types of yosys's cells_sim.v with timing."""
    cells: dict[str, Cell] = {}
    for found in re.finditer(
        r"^module (\S+?)\s*\((.*?)^endmodule", (share / "xilinx/cells_sim.v").read_text(), re.S | re.M
    ):
        text = "\n".join(line.split("//")[0] for line in found[2].splitlines())
        text = re.sub(r"/\*.*?\*/", "", text)
        specify = "".join(re.findall(r"\bspecify\b(.*?)\bendspecify\b", text, re.S))
        arcs: dict[tuple[str, str], int] = {}
        launch: dict[str, int] = {}
        setup: dict[str, int] = {}
        for pin, ps in re.findall(r"\$setup\s*\(\s*([\w\[\]]+)\s*,[^;]*?,\s*(-?\d+)\s*\)", specify):
            setup[pin] = max(setup.get(pin, 0), int(ps))
        for pin, ps in re.findall(r"edge \w+\s*=>\s*\(\s*([\w\[\]]+)\s*:[^=;]*\)\s*\)\s*=\s*(\d+)", specify):
            launch[pin] = max(launch.get(pin, 0), int(ps))
        for source, target, ps in re.findall(
            r"\(\s*([\w\[\] ]+?)\s*[=*]>\s*([\w\[\]]+)\s*\)\s*=\s*(\d+)\s*;", specify
        ):
            arcs[_pin(source), _pin(target)] = int(ps)
        if arcs or launch or setup:
            cells[found[1]] = Cell(arcs, launch, setup)
    return cells


@dataclass(frozen=True)
class LongPath:
    """A longest path. `kind` is reg (register to register), in (input to register), out (register to output) or through."""

    kind: str
    levels: int
    ps: int
    start: str
    end: str

    def __str__(self) -> str:
        return f"{self.levels:>3} levels {self.ps / 1000:6.2f} ns  {self.start} -> {self.end}"


KINDS = ("reg", "in", "out", "through")


class Netlist:
    """One flattened module as a graph of bits, longest paths from registers and from inputs."""

    def __init__(self, netlist: Path, top: str, share: Path) -> None:
        self.cells = library(share)
        module = json.loads(netlist.read_text())["modules"][top]
        self.names = self._names(module)
        # For each bit: (ps, levels, carries in the last level, the bit the path starts at), from registers and from inputs.
        self.fanin: dict[Wire, list[tuple[Wire, int, int]]] = {}
        self.starts: list[dict[Wire, int]] = [{}, {}]
        self.ends: list[tuple[Wire, int, str]] = []
        self.outputs: list[tuple[Wire, str]] = []
        for port, about in module["ports"].items():
            bits = about["bits"]
            for i, bit in enumerate(bits):
                name = f"{port}[{i}]" if len(bits) > 1 else port
                if port in GATHERED:
                    continue
                if about["direction"] == "input":
                    self.starts[1][bit] = 0
                    self.names[bit] = name
                else:
                    self.outputs.append((bit, name))
        for name, cell in module["cells"].items():
            self._cell(name, cell)
        self.arrival = [self._arrival(s) for s in self.starts]

    @staticmethod
    def _names(module: dict) -> dict[Wire, str]:
        names: dict[Wire, str] = {}
        for name, about in module["netnames"].items():
            hidden = about["hide_name"] or "$" in name
            for i, bit in enumerate(about["bits"]):
                label = f"{name}[{i}]" if len(about["bits"]) > 1 else name
                old = names.get(bit)
                if (
                    old is None
                    or ("$" in old and not hidden)
                    or (not hidden and "$" not in old and old.endswith(("_o", "_i")) and "_q" in label)
                ):
                    names[bit] = label
        return names

    def _cell(self, name: str, cell: dict) -> None:
        kind = cell["type"]
        pins: dict[str, list[tuple[str, Wire]]] = {"input": [], "output": []}
        clocks = {"C", "CLK", "WCLK"}
        for port, bits in cell["connections"].items():
            if port in clocks or port.startswith("CLK"):
                continue
            direction = pins[cell["port_directions"][port]]
            for i, bit in enumerate(bits):
                if bit not in ("0", "1", "x", "z"):
                    direction.append((f"{port}[{i}]" if len(bits) > 1 else port, bit))
        block, lutram = bool(BLOCK_RAM.match(kind)), bool(LUT_RAM.match(kind))
        timing = self.cells.get(kind, Cell({}, {}, {}))
        if kind in ("MUXF9",):
            timing = self.cells["MUXF8"]
        if kind == "INV":
            timing = self.cells["LUT1"]
            timing = Cell({("I", "O"): timing.arcs["I0", "O"]}, {}, {})
        registered = kind.startswith("FD") or block or lutram
        weight = 0 if kind.startswith("MUXF") else -1 if kind == "CARRY4" else 1
        if kind == "DSP48E2":
            timing = Cell({(i, o): MULTIPLIER for i, _ in pins["input"] for o, _ in pins["output"]}, {}, {})
            weight = MULTIPLIER_LEVELS
        if not registered and not timing.arcs:
            raise ValueError(f"{name}: no timing for cell type {kind}")
        for pin, bit in pins["output"]:
            base = pin.split("[")[0]
            if registered:
                ps = timing.launch.get(
                    pin, timing.launch.get(base, RAM_OUT if block else LUTRAM_OUT if lutram else 0)
                )
                if not ps:
                    raise ValueError(f"{name}: no clock to output of {kind}.{pin}")
                if block and self._registered(cell, base):
                    ps = 882
                self.starts[0][bit] = ps
            for other, source in pins["input"]:
                ps = timing.arcs.get((other, pin), timing.arcs.get((other, base), 0))
                if not ps and lutram and not timing.arcs and self._reads(other, base):
                    ps = LUTRAM_READ
                if ps:
                    self.fanin.setdefault(bit, []).append((source, ps, weight))
        if registered:
            defaults = RAM_SETUP if block else LUTRAM_SETUP if lutram else {"": 0}
            for pin, bit in pins["input"]:
                base = pin.split("[")[0]
                ps = timing.setup.get(pin, timing.setup.get(base))
                if ps is None:
                    ps = next(v for k, v in defaults.items() if base.startswith(k))
                q = pins["output"][0][1] if pins["output"] else ""
                label = self.names.get(q, name) if kind.startswith("FD") else f"{name}.{pin}"
                self.ends.append(
                    (bit, ps, f"{label}.{pin}" if kind.startswith("FD") and pin != "D" else label)
                )

    @staticmethod
    def _registered(cell: dict, port: str) -> bool:
        """The output register of a block RAM is used."""
        side = "DOA_REG" if "A" in port[2:] else "DOB_REG"
        return int(cell["parameters"].get(side, "0"), 2) != 0

    @staticmethod
    def _reads(address: str, output: str) -> bool:
        """An address pin of a distributed memory reads this output: ADDRA is for DOA, DPRA for DPO."""
        if address.startswith("ADDR"):
            return address[4] == output[2:3] or not output.startswith("DO")
        return (address.startswith("DPRA") and output == "DPO") or (address[0] == "A" and output != "DPO")

    def _arrival(self, starts: dict[Wire, int]) -> dict[Wire, tuple[tuple, tuple]]:
        """For each bit the slowest and the deepest path: (ps, levels, carries, start), (levels, carries, ps, start)."""
        order: list[Wire] = []
        state: dict[Wire, int] = {}
        for root in self.fanin:
            if root in state:
                continue
            state[root] = 1
            stack = [(root, iter(self.fanin[root]))]
            while stack:
                bit, sources = stack[-1]
                for source, _, _ in sources:
                    if source in self.fanin and source not in state:
                        state[source] = 1
                        stack.append((source, iter(self.fanin[source])))
                        break
                    if state.get(source) == 1:
                        raise ValueError(f"combinational loop through {self.names.get(source, source)}")
                else:
                    state[bit] = 2
                    order.append(bit)
                    stack.pop()
        arrival: dict[Wire, tuple[tuple, tuple]] = {
            b: ((ps, 0, 0, b), (0, 0, ps, b)) for b, ps in starts.items()
        }
        for bit in order:
            slow, deep = arrival.get(bit, (None, None))
            for source, ps, weight in self.fanin[bit]:
                if source not in arrival:
                    continue
                (d, lv, ca, st), (lv2, ca2, d2, st2) = arrival[source]
                one = (d + ps, *_deeper(lv, ca, weight), st)
                more = _deeper(lv2, ca2, weight)
                two = (more[0], more[1], d2 + ps, st2)
                if slow is None or one[:3] > slow[:3]:
                    slow = one
                if deep is None or two[:3] > deep[:3]:
                    deep = two
            if slow is not None and deep is not None:
                arrival[bit] = (slow, deep)
        return arrival

    def paths(self) -> list[LongPath]:
        """The slowest and the deepest path to every end, from registers and from inputs."""
        out: list[LongPath] = []
        ends = [(bit, ps, name, 0) for bit, ps, name in self.ends] + [
            (bit, 0, name, 2) for bit, name in self.outputs
        ]
        for origin, arrival in enumerate(self.arrival):
            for bit, setup, name, kind in ends:
                if bit not in arrival:
                    continue
                slow, deep = arrival[bit]
                which = KINDS[origin + kind]
                out.append(
                    LongPath(which, slow[1], slow[0] + setup, self.names.get(slow[3], str(slow[3])), name)
                )
                if deep[0] > slow[1]:
                    out.append(
                        LongPath(which, deep[0], deep[2] + setup, self.names.get(deep[3], str(deep[3])), name)
                    )
        return out


def _deeper(levels: int, carries: int, weight: int) -> tuple[int, int]:
    """Levels, and carries since the last level began, after one more cell (weight -1: a carry)."""
    if weight >= 0:
        return (levels + weight, 0) if weight else (levels, carries)
    return (levels + 1, 1) if carries in (0, CARRIES) else (levels, carries + 1)


def worst(paths: list[LongPath]) -> dict[str, tuple[LongPath, LongPath]]:
    """The deepest and the slowest path of each kind."""
    out: dict[str, tuple[LongPath, LongPath]] = {}
    for kind in KINDS:
        some = [p for p in paths if p.kind == kind]
        if some:
            out[kind] = (max(some, key=lambda p: (p.levels, p.ps)), max(some, key=lambda p: (p.ps, p.levels)))
    return out
