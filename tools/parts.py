#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Splits the simulated card into parts: blocks that are Verilated separately, each type once, and evaluated only while they are active.

    .venv/bin/python tools/parts.py via_slot_port            prints the socket and the tops of a part

A part is a block whose outputs come from registers, so that none depends on an input of the same cycle. In the card it is replaced by a
socket: a module of the same name, parameters and ports, generated from the block's header. At a clock edge it passes the inputs to the part
(sim/parts.h) and stores the outputs in its own registers. The part is a Verilated model that contains the block, so behaviour is cycle-accurate
with and without parts. `inside` names blocks of a part that are parts themselves.

A part is not evaluated at an edge when its state cannot change: its `still_o` (without one: its `idle_o`) has been high for STAY cycles, and
for SETTLE cycles there was no transfer at its ports and no other input except payloads has changed: an input takes some cycles through
registers to `still_o`. STAY is for work that passes from one of its blocks to another whose report takes longer. A transfer is a valid with
its ready; a valid without a ready at all is one in every cycle. One that waits for its ready keeps its payload.
Payloads are inputs `x_i` with an `x_valid_i`, and those that a part lists as `sampled`: they change by themselves, and the block reads them
only upon another event. Those with a valid, outputs too, are passed only while it is high: a reader has an old one otherwise. Inputs that
count in every cycle in which they are high, as a valid does, are listed as `counted`; a valid that stays high while nothing happens as
`standing`: it and its payload count when they change.

VIADUCT_SIM_CHECK=1 evaluates all parts at every edge, and aborts when an output depends on an input of the same cycle, or when an edge that
would have been skipped changes an output, or the state though no input changes.
"""

import argparse
import errno
import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path

SETTLE = 4  # cycles, as in via_tb_gate of the blocks' unit tests
STAY = 4  # cycles, one more than there


def source_of(unit: str) -> Path:
    """Path of a module or package, relative to the project."""
    found = next(Path("rtl").glob(f"*/{unit}.sv"), None)
    if found is None:
        what = "there is no such file; is the checkout complete?"
        raise FileNotFoundError(errno.ENOENT, what, f"rtl/*/{unit}.sv")
    return found


@dataclass(frozen=True)
class Part:
    """A block that is Verilated separately, with parameters that differ from the block's defaults: values, which are part of its name, and
    expressions of the card's geometry, which are not."""

    module: str
    parameters: tuple[tuple[str, int | str], ...] = ()
    sampled: tuple[str, ...] = ("time_i",)
    counted: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()
    inside: tuple["Part", ...] = ()
    still: str = ""  # the output that reports no activity; by default still_o, or idle_o if there is none
    hot: bool = False  # runs most of the time: worth a longer compilation
    serves: tuple[int, ...] = ()  # the functions without which a card does not have it

    @property
    def name(self) -> str:
        return "_".join([self.module, *(f"{n}{v}" for n, v in self.parameters if isinstance(v, int))])

    @property
    def source(self) -> Path:
        """Path of the block, relative to the project."""
        return source_of(self.module)


# Queues of each virtio function, as in via_vdev_pkg; their numbers are those in via_virtio_pkg.
QUEUES = {1: 9, 2: 4, 3: 6, 4: 1, 5: 2}


def virtio(fn: int) -> Part:
    """A virtio function. Network and disk have most of a guest's traffic, so their blocks are parts too."""
    hot = fn in (1, 2)
    queues = ("NumQ", QUEUES[fn])
    inside = (
        Part("via_vq_fetch", (queues,), standing=("head_valid_o",), hot=True, serves=(fn,)),
        Part(
            "via_vq_scatter",
            (queues, ("AtHand", int(fn == 1))),
            standing=("head_valid_i",),
            hot=True,
            serves=(fn,),
        ),
        Part("via_vq_used", (queues,), hot=True, serves=(fn,)),
        Part("via_vdev_select", (("Fn", fn),), hot=True, serves=(fn,)),
    )
    return Part("via_virtio_fn", (("Fn", fn),), inside=inside if hot else (), hot=hot, serves=(fn,))


FUNCTIONS = (
    *(virtio(fn) for fn in QUEUES),
    Part("via_xdma", serves=(6,)),
    Part("via_fn_mem", serves=tuple(range(1, 6))),
)
# Blocks that a card without functions has in another form.
WITHOUT_FUNCTIONS = {
    "via_functions": Part("via_functions", (("FnMask", 0),)),
    "via_vio_switch": Part("via_vio_switch", (("FnMask", 0),), counted=("route_set_i",)),
}
SLOT = (
    Part("via_dispatch"),
    Part("via_mmu", counted=("rd_done_i", "wr_done_i"), hot=True),
    Part("via_guard", still="quiet_o"),
    Part("via_slot_events"),
)
XBAR = tuple(
    Part(f"via_xbar_{way}_{side}", ((kind, n),), hot=True)
    for way in ("rd", "wr")
    for side, kind in (("mgr", "ToHost"), ("tgt", "Far"))
    for n in (0, 1)
)
# The host port, of rings, DMA, crossbar and functions (via_shell_edge), and the walks of the slots' page tables (via_shell_slots).
HOST = (
    ("Ordered", 1),
    ("Shared", 1),
    *((n, "via_virtio_pkg::NumFn + 3") for n in ("NumRd", "NumWr")),
    ("NumFirst", 1),
)
WALKS = (("Ordered", 0), ("Shared", 0), ("NumRd", "NumSlots"), ("NumWr", "NumSlots"), ("NumFirst", 0))
CARD = (
    Part("via_axi_mux", HOST, hot=True),
    Part("via_axi_mux", WALKS),
    Part("via_slot_port", inside=SLOT, hot=True),
    Part("via_functions", inside=FUNCTIONS, hot=True),
    Part("via_vio_switch", counted=("route_set_i",)),
    Part("via_xbar", inside=XBAR, hot=True),
    Part("via_dma"),
    Part("via_cmdq", counted=("cpl_done_i",)),
    Part("via_ringw"),
    Part(
        "via_csr",
        # Inputs shown in its registers, sampled when one is read.
        sampled=(
            *("time_i", "stat_i", "count_i", "meter_i", "cmd_head_i", "ring_tail_i"),
            *("fn_status_i", "fn_features_i", "fn_count_i", "fn_flushes_i"),
        ),
    ),
)


def flat(parts: tuple[Part, ...]) -> list[Part]:
    """The parts and the parts inside them, each with a name of its own."""
    found = [p for part in parts for p in (part, *flat(part.inside))]
    if len({p.name for p in found}) < len(found):
        raise SystemExit("parts: error: two parts have the same name")
    return found


# ---------------------------------------------------------------- reading a block
PORT = re.compile(
    r"^\s*(?P<way>input|output)\s+(?P<type>[a-z]\w*)\s*(?P<packed>(?:\[[^]]*\]\s*)*)"
    r"(?P<name>\w+)\s*(?P<dims>(?:\[[^]]*\]\s*)*),?\s*(?://.*)?$"
)


@dataclass
class Port:
    """One port of a module, as in its source."""

    way: str
    type: str  # with packed dimensions
    name: str
    dims: list[str]  # unpacked: "N" or "high:low"

    def declaration(self) -> str:
        return f"{self.type} {self.name} {''.join(f'[{d}]' for d in self.dims)}".rstrip()

    @staticmethod
    def ends(dim: str) -> tuple[str, str]:
        """Highest and lowest index of a dimension."""
        high, colon, low = dim.partition(":")
        return (f"({high.strip()})", f"({low.strip()})") if colon else (f"({dim} - 1)", "0")

    def sizes(self) -> list[str]:
        return ["({} - {} + 1)".format(*self.ends(d)) for d in self.dims]

    def stride(self) -> str:
        """Bits of an element in a vector: whole words, which are cheap to copy."""
        return f"(($bits({self.type}) + 31) / 32 * 32)"

    def width(self) -> str:
        return " * ".join([self.stride(), *self.sizes()])

    def elements(self, known: dict[str, int]) -> list[tuple[str, str, str]]:
        """All elements: a head, the indices after the name, the number of the element. With all sizes known, by dimension, each element has no head
        and a constant index; otherwise there is one, whose head is a loop."""
        if all(dim in known for dim in self.dims):
            all_indices = itertools.product(*(range(known[dim]) for dim in self.dims))
            indices = [
                "".join(f"[{i} + {self.ends(d)[1]}]" for i, d in zip(at, self.dims, strict=True))
                for at in all_indices
            ]
            return [("", text, str(number)) for number, text in enumerate(indices)]
        heads, indices, number = "", "", "0"
        for i, (dim, size) in enumerate(zip(self.dims, self.sizes(), strict=True)):
            heads += f"for (int i{i} = 0; i{i} < {size}; i{i}++) "
            indices += f"[i{i} + {self.ends(dim)[1]}]"
            number = f"({number} * {size} + i{i})"
        return [(heads, indices, number)]


@dataclass
class Header:
    """A module's header."""

    name: str
    macros: str  # directives before it
    imports: str
    parameters: str
    defaults: dict[str, str]  # of parameters that can be set
    ports: list[Port] = field(default_factory=list)

    @property
    def inputs(self) -> list[Port]:
        return [p for p in self.ports if p.way == "input" and p.name != "clk_i"]

    @property
    def outputs(self) -> list[Port]:
        return [p for p in self.ports if p.way == "output"]


def header(path: Path) -> Header:
    """Reads a module's header, which must be formatted as in this project."""
    text = path.read_text()
    found = re.search(
        rf"^module {path.stem}\b(?P<imports>[^#(]*)(?:#\((?P<parameters>.*?)\n\)\s*)?\((?P<ports>.*?)\n\);",
        text,
        re.M | re.S,
    )
    if not found:
        raise SystemExit(f"parts: error: {path}: no header of module {path.stem} found")
    parameters = re.sub(r"\s*//.*", "", found["parameters"] or "").rstrip()
    defaults = dict(re.findall(r"^\s*parameter\s[^=]*?(\w+)\s*=\s*([^,]*?),?$", parameters, re.M))
    macros = "".join(re.findall(r"^`.*\n", text[: found.start()], re.M))
    head = Header(path.stem, macros, found["imports"].rstrip(), parameters, defaults)
    for line in found["ports"].splitlines():
        if not re.sub(r"//.*|/\*.*?\*/", "", line).strip():
            continue
        port = PORT.match(line)
        if not port:
            raise SystemExit(f"parts: error: {path}: not understood: {line.strip()}")
        dims = [d.strip() for d in re.findall(r"\[([^]]*)\]", port["dims"])]
        head.ports.append(Port(port["way"], f"{port['type']} {port['packed']}".strip(), port["name"], dims))
    names = {p.name for p in head.ports}
    for needed in ("clk_i", "rst_ni"):
        if needed not in names:
            raise SystemExit(f"parts: error: {path}: a part needs a port {needed}")
    return head


def ready_of(port: Port, ports: list[Port]) -> str:
    """The ready of a valid, in the other direction; empty if there is none."""
    stem, _, way = port.name.rpartition("valid_")
    name = f"{stem}ready_{'o' if way == 'i' else 'i'}"
    return name if any(p.name == name and (p.type, p.dims) == (port.type, port.dims) for p in ports) else ""


def levels(head: Header, part: Part) -> list[Port]:
    """Inputs whose change activates the block. Payloads of a valid do not: a transfer does."""
    names = {p.name for p in head.ports} - set(part.standing)
    return [
        p
        for p in head.inputs
        if p.name not in (*part.sampled, "rst_ni")
        and (not p.name.endswith("valid_i") or p.name in part.standing or ready_of(p, head.ports))
        and f"{p.name.removesuffix('_i')}_valid_i" not in names
    ]


def evaluated(text: str, names: dict[str, int]) -> int | None:
    """The value of an expression of sums and products; none if it is another one or has names that are not known."""
    if not re.fullmatch(r"[\w\s+*()-]+", text):
        return None
    try:
        return int(eval(text, {"__builtins__": {}}, names))
    except (NameError, SyntaxError, TypeError):
        return None


def geometry(defines: list[str]) -> dict[str, int]:
    """The constants of via_pkg that count what a card has, with these macros (NAME=VALUE)."""
    text = source_of("via_pkg").read_text()
    values = dict(re.findall(r"^`define (VIA_NUM_\w+) (\d+)$", text, re.M))
    for define in defines:
        name, _, value = define.partition("=")
        values[name] = value
    constants = re.findall(r"parameter int unsigned (\w+) = `(VIA_NUM_\w+);", text)
    return {name: int(values[macro]) for name, macro in constants if values[macro].isdecimal()}


def sizes(head: Header, parts: list[Part], geometry: dict[str, int]) -> dict[str, int]:
    """Sizes of the dimensions of the ports, those that are known and the same in all parts. `geometry` has the constants of via_pkg."""
    found: list[dict[str, int | None]] = []
    for part in parts:
        names, given = dict(geometry), dict(part.parameters)
        for name, text in re.findall(r"(\w+)\s*=\s*([^,]*?)\s*(?:,|$)", head.parameters, re.M):
            value = evaluated(str(given.get(name, text)), names)
            names.pop(name, None)
            if value is not None:
                names[name] = value
        dims = {dim: size for p in head.ports for dim, size in zip(p.dims, p.sizes(), strict=True)}
        found.append({dim: evaluated(size, names) for dim, size in dims.items()})
    return {
        dim: size for dim, size in found[0].items() if size and all(other[dim] == size for other in found)
    }


# ---------------------------------------------------------------- SystemVerilog
QUIET = "\n".join(
    [
        "// Generated by tools/parts.py.",
        "/* verilator coverage_off */",
        *(
            f"/* verilator lint_off {name} */"
            for name in (
                *("BLKSEQ", "UNUSEDSIGNAL", "UNUSEDPARAM", "DECLFILENAME"),
                *("MULTIDRIVEN", "UNDRIVEN", "LATCH", "NOLATCH", "WIDTHCONCAT", "GENUNNAMED", "ENUMVALUE"),
            )
        ),
        "",
    ]
)


def offsets(ports: list[Port], width: str) -> list[str]:
    """Localparams with the position of each port in the vector of all ports, and the vector's width."""
    lines, last = [], "0"
    for port in ports:
        lines.append(f"localparam int unsigned At_{port.name} = {last}")
        last = f"At_{port.name} + {port.width()}"
    return [*lines, f"localparam int unsigned {width} = {last}"]


def each(port: Port, vector: str, statement: str, known: dict[str, int], valid: str = "") -> str:
    """A statement for every element of a port: {element} is the element, {piece} its bits in the vector, {words} all bits of its words there,
    {wide} the element extended to them. With `valid`, a condition, only while that holds."""
    statements = []
    for head, indices, number in port.elements(known):
        place = f"{vector}[At_{port.name} + {number} * {port.stride()} +: "
        element = f"{port.name}{indices}"
        guard = f"if ({valid.format(number=number)}) " if valid else ""
        made = statement.format(
            element=element,
            piece=f"{place}$bits({port.type})]",
            words=f"{place}{port.stride()}]",
            wide=f"{port.stride()}'({element})",
        )
        statements.append(head + guard + made)
    return " ".join(statements)


def lines_of(ports: list[Port], vector: str, statement: str, known: dict[str, int]) -> str:
    return "".join(f"      {each(port, vector, statement, known)}\n" for port in ports)


def port_list(head: Header) -> str:
    return ",\n".join(f"  {p.way} {p.declaration()}" for p in [*head.inputs, *head.outputs])


def valid_of(port: Port, ports: list[Port]) -> str:
    """The valid whose payload the port is: one bit for each of its elements; empty if there is none."""
    name = f"{port.name[:-2]}_valid{port.name[-2:]}"
    valid = next((p for p in ports if p.name == name), None)
    if not valid or valid.dims or len(port.dims) > 1 or ("[" in valid.type) != bool(port.dims):
        return ""
    return name


def by_valid(ports: list[Port]) -> list[tuple[Port, str]]:
    """Ports and their valids, those without one first. A payload changes only with its valid, so it is passed only with it: most are wide and
    seldom valid."""
    return sorted(((p, valid_of(p, ports)) for p in ports), key=lambda pair: bool(pair[1]))


def passed(ports: list[Port], vector: str, statement: str, known: dict[str, int]) -> str:
    """Passes the ports on."""
    lines = []
    for port, valid in by_valid(ports):
        # From the vector: an output's register has the valid of the last edge still.
        guard = f"{vector}[At_{valid} + {{number}}]" if valid else ""
        lines.append(f"      {each(port, vector, statement, known, guard)}\n")
    return "".join(lines)


def socket(head: Header, parts: list[Part], geometry: dict[str, int]) -> str:
    """The module that replaces the block in the card. `parts` are the existing variants of the block, alike but for their parameters. Elements of
    ports are passed one by one if `geometry` says how many there are: in a loop Verilator copies each of them once more."""
    known = sizes(head, parts, geometry)
    for rule in ("sampled", "counted", "standing", "still"):
        if len({getattr(part, rule) for part in parts}) > 1:
            raise SystemExit(f"parts: error: {head.name}: its parts differ in `{rule}`")
    names = {p.name for p in head.outputs}
    still = next((n for n in (parts[0].still, "still_o", "idle_o") if n in names), "")
    if not still:
        raise SystemExit(f"parts: error: {head.name}: a part needs an output still_o or idle_o")
    counted, standing = parts[0].counted, parts[0].standing
    offered = " || ".join(
        f"|({p.name} & {ready})" if (ready := ready_of(p, head.ports)) else f"|{p.name}"
        for p in head.ports
        if p.name in counted or (re.search(r"valid_[io]$", p.name) and p.name not in standing)
    )
    kinds = "".join(
        f'{" && ".join([*(f"{n} == ({v})" for n, v in part.parameters), "1"])} ? "{part.name}" : '
        for part in parts
    )
    fixed = "".join(
        f'  if ({n} != {v}) $error("{head.name} {n}: the part is built for {v} (tools/parts.py)");\n'
        for n, v in head.defaults.items()
        if n not in dict(parts[0].parameters)
    )
    fixed += "".join(
        f'  if ({size} != {known[dim]}) $error("{head.name}: tools/parts.py takes [{dim}] for {known[dim]}");\n'
        for dim, size in {d: s for p in head.ports for d, s in zip(p.dims, p.sizes(), strict=True)}.items()
        if dim in known
    )
    ports = port_list(head)
    constants = "".join(
        f"  {line};\n" for line in [*offsets(head.inputs, "InW"), *offsets(head.outputs, "OutW")]
    )
    told = "".join(f'    via_part_output(part, "{p.name}", At_{p.name});\n' for p in head.outputs)
    return f"""{QUIET}{head.macros}module {head.name}{head.imports}
{f"#({head.parameters}{chr(10)})" if head.parameters else ""} (
  input logic clk_i,
{ports}
);
{constants}
  import "DPI-C" function chandle via_part_create(input string kind, input string place);
  import "DPI-C" function void via_part_output(input chandle part, input string name, input int unsigned at);
  import "DPI-C" function bit via_part_checks(input chandle part);
  import "DPI-C" function void via_part_destroy(input chandle part);

{fixed}
  chandle part;
  bit checks;
  initial begin
    part = via_part_create({kinds}"", $sformatf("%m"));
    checks = via_part_checks(part);
{told}  end
  final via_part_destroy(part);

  // The part reads one vector, with its inputs at the last edge that was not skipped, and writes the other.
  bit [InW-1:0] in /* verilator public_flat_rw */;
  bit [OutW-1:0] out /* verilator public_flat_rw */;
  bit [2:0] left;
  bit moves, done;
  // All in one process, so that nothing else is evaluated for a part that is skipped.
  always_ff @(posedge clk_i) begin
    moves = !rst_ni{f" || {offered}" if offered else ""};
    if (!moves) begin
{lines_of(levels(head, parts[0]), "in", "if ({wide} != {words}) moves = 1'b1;", known)}    end
    if (moves || !{still} || left != 0 || checks) begin
{passed(head.inputs, "in", "{words} = {wide};", known)}      // The outputs depend on its result; Verilator does not see that it writes them.
      done = $c1("reinterpret_cast<via::Part*>(", part, ")->edge(", !moves && {still} && left == 0, ", (", in, ").data(), (", out, ").data())");
      if (done) begin
{passed(head.outputs, "out", "{element} <= {piece};", known)}      end
    end
    left = moves ? 3'd{SETTLE} : left - 3'(left != 0);
    if (!{still} && left < 3'd{STAY}) left = 3'd{STAY};
  end
endmodule
"""


def top(head: Header, part: Part) -> str:
    """The top module of a part: the block, with the part's parameters."""
    parameters = head.parameters
    for n, v in part.parameters:
        parameters = re.sub(rf"(\bparameter\s[^=]*\b{n}\s*=)[^,]*", rf"\1 {v}", parameters)
    settings = f"#({', '.join(f'.{n}({n})' for n in head.defaults)}) " if head.defaults else ""
    return f"""{QUIET}{head.macros}module {part.name}_part{head.imports}
{f"#({parameters}{chr(10)})" if parameters else ""} (
  input logic clk_i,
{port_list(head)}
);
  {head.name} {settings}u (.*);
endmodule
"""


# ---------------------------------------------------------------- C++
def moved(ports: list[Port], function: str) -> str:
    """Statements that move the ports between a model and the vector of its socket, `v`."""
    places, last = "", "v"
    for port in ports:
        places += f"    const auto at_{port.name} = {last};\n"
        last = f"at_{port.name} + words(r.{port.name})"
    return places + "".join(
        f"    {function}(r.{port.name}, at_{port.name}{f', r.{valid}' if valid else ''});\n"
        for port, valid in by_valid(ports)
    )


def ports_of(head: Header) -> str:
    """C++ that moves the ports of a block's models."""
    return f"""struct {head.name}_ports {{
  template <class R>
  static void take(R& r, const uint32_t* v) {{
{moved(head.inputs, "take_port")}  }}
  template <class R>
  static void give(const R& r, uint32_t* v) {{
{moved(head.outputs, "give_port")}  }}
  // Words that are given.
  template <class R>
  static size_t size(const R& r) {{
    return {" + ".join(f"words(r.{p.name})" for p in head.outputs)};
  }}
}};
"""


def factory(kinds: dict[str, Part]) -> str:
    """C++ that makes a part by its kind. The folders of the parts' models are in the path of included files."""
    models = {part.name: part for part in kinds.values()}
    included = "".join(
        f'#include "{model}/V{model}{what}.h"\n' for model in models for what in ("", "__Syms", "___024root")
    )
    named = "".join(f"VIA_VERILATED(V{model})\n" for model in sorted(models))
    ports = "".join(
        ports_of(header(source))
        for _, source in sorted({part.module: part.source for part in models.values()}.items())
    )
    chosen = "".join(
        f'  if (kind == "{kind}")\n'
        f"    return std::make_unique<VerilatedPart<V{part.name}Model, {part.module}_ports>>(context, place, checks);\n"
        for kind, part in kinds.items()
    )
    return f"""// Made by tools/parts.py.
{included}#include "part.h"

{named}
namespace via {{
namespace {{
{ports}}}  // namespace

std::unique_ptr<Part> make_part(const std::string& kind, VerilatedContext* context, const char* place, bool checks) {{
{chosen}  return nullptr;
}}
}}  // namespace via
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("module", choices=sorted({part.module for part in flat(CARD)}))
    module = parser.parse_args().module
    kinds = [part for part in flat(CARD) if part.module == module]
    head = header(kinds[0].source)
    print(socket(head, kinds, geometry([])))
    for kind in kinds:
        print(top(head, kind))


if __name__ == "__main__":
    main()
