#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Binds a checker to every handshake at the ports of every block below a top module: via_axi_checker, via_strm_checker or via_hs_checker.

    .venv/bin/python tools/checkers.py via_shell > bind.sv

The ports are found in the sources, by type and name: `<p>ar_o`, `<p>ar_valid_o`, `<p>ar_ready_i` and so on are an AXI port, a strm_t with
valid and ready a stream, alone or in arrays. Any other valid with a ready of the same name is a handshake by itself, `<p>_valid_o` with
`<p>_ready_i` or flat `<p>valid_o` with `<p>ready_i`. Its payload are the ports of the same direction whose name begins with <p>, but for those
that belong to a handshake with a longer name; PAYLOAD lists those that are named otherwise. New ports of a block are therefore checked
automatically. Exceptions are in EXEMPT, with reasons.
"""

import argparse
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKERS = {"via_axi_checker", "via_strm_checker", "via_hs_checker"}
# These only contain wiring: each of their ports is one of a block inside, or of via_shell, and is checked there.
WIRING = {"via_shell_edge", "via_shell_mgmt", "via_shell_slots"}
TYPES = {"ar": "axi_ax_t", "r": "axi_r_t", "aw": "axi_ax_t", "w": "axi_w_t", "b": "axi_b_t"}

# (module, prefix of the port, or valid of a handshake that is neither AXI nor a stream): why it is not checked
EXEMPT = {
    # A slot may violate every rule: the guard checks it, and cuts it off at any moment.
    ("via_guard", "s_"): "hostile",
    ("via_guard_rd", "s_"): "hostile",
    ("via_guard_wr", "s_"): "hostile",
    ("via_guard_strm", "s_"): "hostile",
    ("via_slot_port", "slot_"): "hostile",
    ("via_slot_port", "slot_m_"): "hostile",
    ("via_slot_port", "slot_s_"): "withdrawn from an app that is cut off",
    **{("via_shell", f"slot_{c}valid_i"): "hostile" for c in ("m_", "ar", "aw", "w")},
    **{("via_shell", f"slot_{c}valid_o"): "withdrawn from an app that is cut off" for c in ("s_", "r", "b")},
    ("via_guard_edge", "s_valid_i"): "hostile",
    # Inside a block these accept the present value when they have space, such as the choice of an arbiter, which may change in the next cycle. A
    # port of a block is checked at the block.
    **{
        (module, "s_valid_i"): "accepts the present value when there is space"
        for module in ("via_slice", "via_skid", "via_fifo", "via_vq_fifo")
    },
    ("via_vdev_net_rx", "rsp_valid_o"): "valid for one cycle, in which via_vdev_responses has space",
    ("via_xdma_mover", "job_valid_i"): "withdrawn when the channel is stopped",
    (
        "via_vq_gather",
        "job_valid_i",
    ): "job_valid_o of via_vq_fetch, which knows whether its queue is under reset",
    # The same stream is checked at the guard, which knows when the app is cut off. The mover's clock may be stopped meanwhile.
    ("via_mover_out", "strm_"): "m_ of via_guard_strm",
    # A waiting message is for the slot's present owner: a new connection withdraws it.
    ("via_slot_port", "vio_out_"): "may be withdrawn",
    ("via_vio_switch", "app_out_"): "may be withdrawn",
    ("via_vio_source", "valid_i"): "a source may withdraw what it offers",
    ("via_vio_edge", "s_valid_i"): "may be withdrawn",
    ("via_vio_edge", "m_valid_o"): "may be withdrawn",
}
# A card has hundreds of these, and most are followed by a checked port of a block: they are checked in unit tests, but not on a card.
MANY = {(module, "m_valid_o") for module in ("via_slice", "via_skid", "via_fifo", "via_vq_fifo")}
# While this is high (a bit for each port of an array) the port is cut off, and its state may be lost: the rules are suspended and restart.
CUT = {
    ("via_guard_strm", "m_"): "isolate_i",
    ("via_guard_edge", "m_valid_o"): "cut_i",
    ("via_fifo", "m_valid_o"): "flush_i",
    # A new image begins, and a waiting word of the previous one is dropped.
    **{(module, "icap_valid_o"): "icap_start_o" for module in ("via_icap", "via_csr", "via_shell")},
    # The bytes of all requests are visible at both ports; they are valid for one while its request is.
    ("via_vdev_net_ctrl", "rd_valid_i"): "!req_valid_i",
    ("via_vdev_net_tx", "rd_valid_i"): "!req_valid_i",
    (
        "via_vdev_responses",
        "s_rsp_valid_i",
    ): "N'(Early) << (N - 1)",  # valid for one cycle, when there is space
    ("via_xdma_fetch", "desc_valid_o"): "stop_i",  # discards data that was read
    # A job is withdrawn when its queue is under reset.
    ("via_vq_store", "job_valid_o"): "job_hidden",
    ("via_vq_fetch", "job_valid_o"): "queue_reset_i[QW'(job_queue_o)]",
    ("via_vio_join", "s_"): "~sel_i",  # the data there is for another receiver
    # A function is reset by its driver, alone and at any time; the gate, the switch and the port of its disk tolerate that.
    ("via_fn_gate", "s_"): "drained_o",
    ("via_fn_mem", "s_"): "!core_rst_ni",
    ("via_functions", "tx_"): "~core_rst_no",
    ("via_functions", "rx_"): "~core_rst_no | gone_i",
    ("via_fn_user", "s_"): "!core_rst_ni || gone_i",
    ("via_fn_user", "m_"): "!core_rst_ni",
    ("via_vio_switch", "tx_"): "~core_rst_ni",
    ("via_vio_switch", "rx_"): "snk_cut[Board-1:Fn]",
    ("via_vio_switch", "app_in_"): "isolated[NumApp-1:0]",
    ("via_vio_sink", "m_"): "cut_i",
    ("via_slot_port", "vio_in_"): "{NV{isolated}}",
    ("via_virtio_fn", "tx_"): "!core_rst_no",
    ("via_virtio_fn", "rx_"): "!core_rst_no",
    ("via_virtio_fn", "m_mem_"): "!core_rst_no",
}
# Payloads without a handshake, which cannot be checked.
BARE = {
    "via_guard_ax": {"ax_i"},  # combinational: checks an address of via_guard_rd or via_guard_wr
    "via_vio_sink": {"s_i"},  # sent by via_vio_source with `go_i`
}
# Payloads of handshakes whose names do not match.
PAYLOAD = {
    ("via_cmdq", "cmd_valid_o"): ["cmd_o"],  # cmd_head_o is the read position in the ring
    ("via_dispatch", "mvi_cmd_valid_o"): ["move_cmd_o"],  # one for all streams
    ("via_dispatch", "mvo_cmd_valid_o"): ["move_cmd_o"],
    ("via_fn_msix", "valid_i"): ["vector_i"],
    ("via_vdev_strip", "m_valid_o"): ["m_o", "head_o"],
    **{
        (module, "req_valid_i"): ["req_i", "none_i"]
        for module in (
            "via_vdev_blk",
            "via_vdev_blk_front",
            "via_vdev_console",
            "via_vdev_input",
            "via_vdev_net_ctrl",
            "via_vdev_net_tx",
            "via_vdev_tell",
        )
    },
}
# Responses of different ids may overtake each other here; everywhere else they come in order.
OVERTAKES = {
    ("via_axi_mux", "m_"),  # an id per source: host memory responds to each independently
    ("via_shell", "host_"),
}
# Host memory orders a function's read after its earlier writes.
BEHIND = {("via_shell", "host_")}

PORT = re.compile(
    r"^  (input|output)\s+(\w+)\s*((?:\[[^]]*\]\s*)*)\b(\w+)\s*((?:\[[^]]*\]\s*)*),?\s*(?://.*)?$",
    re.M,
)
STRUCTS = {*TYPES.values(), "strm_t"}  # types whose ports have a checker of their own


@dataclass
class Port:
    """One port of a module: direction, type, dimensions before and after its name."""

    direction: str
    type: str
    packed: str = ""
    unpacked: str = ""

    @property
    def dim(self) -> str:
        """Array dimension; of a handshake wire its width."""
        return self.packed if self.type == "logic" and not self.unpacked else self.unpacked


@dataclass
class Module:
    """A module's ports, in the order of the source."""

    name: str
    ports: dict[str, Port] = field(default_factory=dict)


def parse(path: Path) -> Module:
    """The ports of the one module in a file."""
    module = Module(path.stem)
    text = path.read_text()
    head = re.search(rf"^module {path.stem}\b(.*?)\n\);", text, re.M | re.S)
    if head:
        for direction, kind, packed, name, unpacked in PORT.findall(head[1]):
            module.ports[name] = Port(direction, kind, packed.replace(" ", ""), unpacked.replace(" ", ""))
    return module


def below(top: Path, folders: list[Path], without: Collection[str] = ()) -> list[Path]:
    """The files of `top` and of all modules it instantiates, found by name in `folders`; not those of `without` or only instantiated there."""
    files = {
        p.stem: p for folder in reversed(folders) for p in folder.glob("*.sv") if not p.stem.endswith("_pkg")
    }
    todo, seen = [top], {top.stem: top}
    while todo:
        text = re.sub(r"//.*", "", todo.pop().read_text())
        for name in set(re.findall(r"^\s*(\w+)\s+(?:#\s*\(|\w+\s*\()", text, re.M)):
            if name in files and name not in seen and name not in without:
                seen[name] = files[name]
                todo.append(files[name])
    return [seen[name] for name in sorted(seen)]


def handshake(module: Module, base: str, direction: str) -> tuple[str, str] | None:
    """Names of valid and ready of the channel whose payload is `base` + _i or _o."""
    ends = ("_o", "_i") if direction == "output" else ("_i", "_o")
    valid, ready = base + "_valid" + ends[0], base + "_ready" + ends[1]
    if valid not in module.ports:
        return None
    return valid, ready if ready in module.ports else "'1"  # always accepted


@dataclass
class Checked:
    """A checked port: its channels as (payload, valid, ready), by name of the checker's port."""

    prefix: str
    channels: dict[str, tuple[str, str, str]]
    dim: str


# Ports whose wires are flat, by the structs inside that they are made of.
FLAT = {
    "via_shell": {
        "host_": Checked(
            "host_",
            {
                c: (f"u_edge.host_{c}", f"host_{c}valid_{ends[0]}", f"host_{c}ready_{ends[1]}")
                for c, ends in {"ar": "oi", "r": "io", "aw": "oi", "w": "oi", "b": "io"}.items()
            },
            "",
        )
    }
}


def checked(module: Module) -> list[Checked]:
    """Ports of a module with their channels; channels of one prefix belong together."""
    found: dict[str, Checked] = dict(FLAT.get(module.name, {}))
    for name, port in module.ports.items():
        base = name[:-2]
        pair = handshake(module, base, port.direction)
        if pair is None or port.type not in STRUCTS:
            continue
        if port.type == "strm_t":
            prefix, channel = base + "_" if base[-1:] != "_" else base, "s"
        else:
            channel = next(
                (
                    c
                    for c, t in TYPES.items()
                    if base.endswith(c) and t == port.type and (base[: -len(c)] or "_")[-1] == "_"
                ),
                "",
            )
            # An address channel by itself: `s_i`, `s_ax_i`.
            prefix, channel = (base[: -len(channel)], channel) if channel else (base + "_", "ar")
        # One payload may be shared, with a valid for each.
        group = found.setdefault(prefix, Checked(prefix, {}, module.ports[pair[0]].dim))
        group.channels[channel] = (name, *pair)
    return list(found.values())


@dataclass
class Handshake:
    """Any other handshake: valid, ready and the payload, by name. It is identified by its valid."""

    valid: str
    ready: str
    payload: list[str]


def handshakes(module: Module) -> list[Handshake]:
    """Handshakes of a module that are not part of an AXI port or a stream."""
    taken = {wire for port in checked(module) for channel in port.channels.values() for wire in channel}
    found: dict[str, tuple[str, str]] = {}  # of each valid: prefix and ready
    for valid in module.ports:
        match = re.fullmatch(r"(|\w+?_?)valid_([io])", valid)
        if match and valid not in taken:
            ready = f"{match[1]}ready_{'o' if match[2] == 'i' else 'i'}"
            if ready in module.ports:
                found[valid] = match[1], ready
    prefixes = [prefix for prefix, _ in found.values()]
    taken |= {*found, *(ready for _, ready in found.values())}
    result: list[Handshake] = []
    for valid, (prefix, ready) in found.items():
        payload = [
            name
            for name, port in module.ports.items()
            if prefix
            and prefix == max((p for p in prefixes if name.startswith(p)), key=len, default="")
            and port.direction == module.ports[valid].direction
            and name not in taken
        ]
        result.append(Handshake(valid, ready, PAYLOAD.get((module.name, valid), payload)))
    return result


def dims(dim: str) -> tuple[str, str, str]:
    """Of an array dimension: the size as written in the module, the checker's dimension, the packed one."""
    if not dim:
        return "1", "", ""
    high, _, low = dim[1:-1].partition(":")
    if low == "1":
        return high, "[N:1]", "[N:1]"
    if low:
        high = high.removesuffix("-1") if high.endswith("-1") else f"{high}+1"
    return high, "[N]", "[N-1:0]"


def wrapper(module: Module, port: Checked) -> str:
    """A module with the port's channels as inputs and the checkers inside, and its bind statement."""
    size, unpacked, packed = dims(port.dim)
    payloads = {
        c: module.ports.get(channel[0], Port("", TYPES.get(c, ""))) for c, channel in port.channels.items()
    }
    at = {c: "[g]" if payloads[c].dim else "" for c in port.channels}
    name = f"{module.name}_{port.prefix}check"
    lines = [
        f"module {name} import via_pkg::*; {'#(parameter int unsigned N = 1) ' if port.dim else ''}(",
        "  input logic clk_i,",
        "  input logic rst_ni,",
    ]
    lines.append(f"  input logic {packed} off")
    wires = []
    for channel, (payload, valid, ready) in port.channels.items():
        kind = payloads[channel].type
        lines[-1] += ","
        lines += [
            f"  input {kind} {channel} {unpacked if at[channel] else ''},",
            f"  input logic {packed} {channel}_valid,",
            f"  input logic {packed} {channel}_ready",
        ]
        wires += [f".{channel}({payload})", f".{channel}_valid({valid})", f".{channel}_ready({ready})"]
    lines.append(");")
    wire_at = "[g]" if port.dim else ""
    first = "1" if packed == "[N:1]" else "0"
    last = "g <= N" if packed == "[N:1]" else "g < N"
    lines.append(
        f"  for (genvar g = {first}; {last}; g++) begin : gen_port" if port.dim else "  begin : gen_port"
    )
    if "s" in port.channels:
        lines.append(
            f"    via_strm_checker u (.clk_i, .rst_ni(rst_ni && !off{wire_at}), .s_i(s{at['s']}), .valid_i(s_valid{wire_at}), .ready_i(s_ready{wire_at}));"
        )
    else:
        options = []
        if not {"r", "b"} & set(port.channels):
            options.append(".Responses(1'b0)")
        if (module.name, port.prefix) in OVERTAKES:
            options.append(".InOrder(1'b0), .Outstanding(511)")
        if (module.name, port.prefix) in BEHIND:
            options.append(".Behind(1'b1)")
        pins = [
            f".{c}_i({c}{at[c]}), .{c}_valid_i({c}_valid{wire_at}), .{c}_ready_i({c}_ready{wire_at})"
            if c in port.channels
            else f".{c}_i('0), .{c}_valid_i(1'b0), .{c}_ready_i(1'b0)"
            for c in TYPES
        ]
        lines.append(
            f"    via_axi_checker #({', '.join(options)}) u (.clk_i, .rst_ni(rst_ni && !off{wire_at}), {', '.join(pins)});"
        )
    lines += ["  end", "endmodule"]
    parameters = f"#(.N({size})) " if port.dim else ""
    off = CUT.get((module.name, port.prefix), "'0")
    bind = f"bind {module.name} {name} {parameters}u_{port.prefix}check (.clk_i, .rst_ni, .off({off}), {', '.join(wires)});"
    return "\n".join([*lines, bind, ""])


def instance(width: str, name: str, reset: str, payload: str, valid: str, ready: str) -> str:
    """An instance of via_hs_checker, in one of a few widths: in the simulation each width is a class with files of its own."""
    width = f"64 << $clog2(({width} + 63) / 64)"
    pins = f".clk_i, .rst_ni({reset}), .s_i(({width})'({payload})), .valid_i({valid}), .ready_i({ready})"
    return f"via_hs_checker #(.Width({width})) {name} ({pins});"


def handshake_wrapper(module: Module, port: Handshake) -> str:
    """The bind statement of via_hs_checker at a handshake; for an array, with a wrapper module that has a checker for each element."""
    name = f"{module.name}_{port.valid}_check"
    valid = module.ports[port.valid]
    off = CUT.get((module.name, port.valid), "'0")
    if not valid.dim:
        payload = f"{{{', '.join(port.payload)}}}" if port.payload else "1'b0"
        width = " + ".join(f"$bits({p})" for p in port.payload) or "1"
        reset = f"rst_ni && !({off})" if off != "'0" else "rst_ni"
        checker = instance(width, f"u_hs_{port.valid}", reset, payload, port.valid, port.ready)
        return f"bind {module.name} {checker}\n"
    size, unpacked, packed = dims(valid.dim)
    one_based = packed == "[N:1]"
    first, last = ("1", "g <= N") if one_based else ("0", "g < N")
    before, after = ("", unpacked) if valid.unpacked else (packed, "")
    parameters = [f".N({size})"]
    widths, inputs, wires, parts, one = [], [], [], [], []
    for i, payload in enumerate(port.payload):
        p = module.ports[payload]
        wires.append(f".p{i}({payload})")
        each = bool(p.unpacked)
        assert not each or dims(p.unpacked)[0] == size, (module.name, payload)
        if not each and p.type == "logic" and p.packed == valid.packed:  # a bit for each
            inputs.append(f"input logic {packed} p{i}")
            parts.append(f"p{i}[g]")
            one.append("1")
            continue
        inputs.append(f"input logic [W{i}-1:0] p{i} {unpacked if each else ''}")
        parts.append(f"p{i}[g]" if each else f"p{i}")  # one for each, or a shared one
        one.append(f"W{i}")
        widths.append(f", parameter int unsigned W{i} = 1")
        parameters.append(f".W{i}($bits({payload}{f'[{first}]' if each else ''}))")
    payload = f"{{{', '.join(parts)}}}" if parts else "1'b0"
    width = " + ".join(one) or "1"
    inputs = [
        "input logic clk_i",
        "input logic rst_ni",
        f"input logic {packed} off",
        f"input logic {before} valid {after}",
        f"input logic {before} ready {after}",
        *inputs,
    ]
    lines = [
        f"module {name} #(parameter int unsigned N = 1{''.join(widths)}) ({', '.join(inputs)});",
        f"  for (genvar g = {first}; {last}; g++) begin : gen_port",
        f"    {instance(width, 'u', 'rst_ni && !off[g]', payload, 'valid[g]', 'ready[g]')}",
        "  end",
        "endmodule",
        f"bind {module.name} {name} #({', '.join(parameters)}) u_hs_{port.valid} "
        f"(.clk_i, .rst_ni, .off({off}), {', '.join([f'.valid({port.valid})', f'.ready({port.ready})', *wires])});",
        "",
    ]
    return "\n".join(lines)


def binds(top: Path, folders: list[Path], *, many: bool = True, without: Collection[str] = ()) -> str:
    """The text of a file that binds the checkers to all blocks below (and including) `top`; without `many` not to those of MANY. Modules of
    `without`, and modules only instantiated there, are left out."""
    text = "// Generated by tools/checkers.py.\n/* verilator lint_off DECLFILENAME */\n/* verilator lint_off UNUSEDSIGNAL */\n"
    text += "/* verilator coverage_off */\n"
    text += f"bind {top.stem} via_tb_assert u_via_tb_assert (.clk_i, .rst_ni);\n"
    for path in below(top, folders, without):
        if (
            path.stem in CHECKERS | WIRING
            or not path.resolve().is_relative_to(ROOT / "rtl")
            or path.parent.name == "tb"
        ):
            continue
        module = parse(path)
        if "clk_i" not in module.ports and "clk_i" not in path.read_text():
            continue
        for port in checked(module):
            if (module.name, port.prefix) not in EXEMPT:
                text += wrapper(module, port)
        for port in handshakes(module):
            known = (module.name, port.valid)
            if known not in EXEMPT and (many or known not in MANY):
                text += handshake_wrapper(module, port)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("top", help="top module")
    args = parser.parse_args()
    folders = sorted(p for p in (ROOT / "rtl").iterdir() if p.is_dir())
    top = next(p for folder in folders if (p := folder / f"{args.top}.sv").exists())
    print(binds(top, folders), end="")


if __name__ == "__main__":
    main()
