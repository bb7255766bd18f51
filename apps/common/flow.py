# SPDX-License-Identifier: Apache-2.0
"""What generated apps share: the command line of their `design.py`, their ports, and the way from each generator to Verilog.

    app = flow.App(__file__)     # the manifest beside the design, and the width of a beat from the command line
    app.write(flow.from_…(app, …))

The build runs a design with this folder on Python's path. A generator is imported only where it is used.
"""

import argparse
import io
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The linter's style is for what people write.
RULES = (
    "UNUSEDSIGNAL",
    "WIDTHEXPAND",
    "WIDTHTRUNC",
    "PROCASSINIT",
    "CASEOVERLAP",
    "DECLFILENAME",
    "VARHIDDEN",
)


@dataclass(frozen=True)
class Port:
    """A port of an app's top module; `type` is that of SystemVerilog, the width is the same."""

    name: str
    width: int
    out: bool = False
    type: str = "logic"


def ports(manifest: dict[str, Any], data_width: int) -> list[Port]:
    """The ports of an app, in the order of docs/apps.md."""
    beat = data_width + data_width // 8 + 9
    found = [Port("clk_i", 1), Port("rst_ni", 1)]

    def channel(name: str, width: int, type_: str, out: bool) -> None:
        way, back = ("o", "i") if out else ("i", "o")
        found.append(Port(f"{name}_{way}", width, out, type_))
        found.append(Port(f"{name}_valid_{way}", 1, out))
        found.append(Port(f"{name}_ready_{back}", 1, not out))

    for stream in manifest.get("stream_in", []):
        channel(stream["name"], beat, "strm_t", out=False)
    for stream in manifest.get("stream_out", []):
        channel(stream["name"], beat, "strm_t", out=True)
    for memory in manifest.get("memory", []):
        name, id_width = memory["name"], 6
        channel(f"{name}_ar", id_width + 77, "axi_ax_t", out=True)
        channel(f"{name}_r", id_width + data_width + 3, "axi_r_t", out=False)
        channel(f"{name}_aw", id_width + 77, "axi_ax_t", out=True)
        channel(f"{name}_w", data_width + data_width // 8 + 1, "axi_w_t", out=True)
        channel(f"{name}_b", id_width + 2, "axi_b_t", out=False)
    for register in manifest.get("register", []):
        name, width, out = register["name"], register["width"], register["access"] == "ro"
        found.append(Port(f"{name}_o" if out else f"{name}_i", width, out, f"logic [{width - 1}:0]"))
        if register.get("strobe"):
            found.append(Port(f"{name}_we_i", 1))
    found += [Port(f"{name}_o", 1, out=True) for name in ("busy", "irq") if manifest["app"].get(name)]
    return found


class App:
    """A generated app: its top module and its ports, and where its Verilog goes."""

    def __init__(self, design: str) -> None:
        parser = argparse.ArgumentParser(description="Makes the top module of an app.")
        parser.add_argument("--data-width", type=int, choices=[64, 128, 256, 512], required=True)
        parser.add_argument("--out", type=Path, required=True)
        args = parser.parse_args()
        manifest = tomllib.loads(Path(design).with_name("app.toml").read_text())
        self.top: str = manifest["app"]["top"]
        self.width: int = args.data_width
        self.ports = ports(manifest, args.data_width)
        self._out: Path = args.out

    def write(self, verilog: str) -> None:
        """Writes the app's Verilog, where the build wants it."""
        self._out.write_text("".join(f"/* verilator lint_off {rule} */\n" for rule in RULES) + verilog)


def _wrapped(app: App, core: str, wires: dict[str, str]) -> str:
    """A module with the app's ports around `core`, whose own ports are `wires`: what each is connected to."""
    heads = [
        f"  {'output' if p.out else 'input'} {f'[{p.width - 1}:0] ' if p.width > 1 else ''}{p.name}"
        for p in app.ports
    ]
    pins = [f"    .{pin}({wire})" for pin, wire in wires.items()]
    return "module {}(\n{}\n);\n  {} u_core (\n{}\n  );\nendmodule\n".format(
        app.top, ",\n".join(heads), core, ",\n".join(pins)
    )


def from_amaranth(app: App, design: Any, signals: list[Any]) -> str:
    """Verilog of a design in Amaranth, whose `signals` have the names of the app's ports; Yosys writes it."""
    from amaranth.back import rtlil
    from pyosys import libyosys as ys  # pyright: ignore[reportAttributeAccessIssue]

    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "design.il", Path(folder) / "design.v"
        source.write_text(rtlil.convert(design, name=app.top, ports=signals, emit_src=False))
        result = ys.Design()
        commands = [f"read_rtlil {source}", "proc", "flatten", "opt -full", "opt_clean -purge"]
        for command in [*commands, f"write_verilog -noattr {made}"]:
            ys.run_pass(command, result)
        return made.read_text()


def from_pyrtl(app: App) -> str:
    """Verilog of PyRTL's working block, whose inputs and outputs have the names of the app's ports.

    PyRTL's clock is always `clk`, and a port that the design does not use is not there.
    """
    import pyrtl

    text = io.StringIO()
    core = f"{app.top}_core"
    pyrtl.output_to_verilog(text, add_reset=False, module_name=core)
    design = pyrtl.working_block().wirevector_set
    used = {wire.name for wire in design if isinstance(wire, pyrtl.Input | pyrtl.Output)}
    wires = {p.name: p.name for p in app.ports if p.name in used}
    if any(isinstance(wire, pyrtl.Register) for wire in design):
        wires = {"clk": "clk_i", **wires}
    return text.getvalue() + _wrapped(app, core, wires)


def from_xls(app: App, source: str, proc: str, channels: dict[str, str], stages: int) -> str:
    """Verilog of a proc in DSLX, as a pipeline of so many stages.

    `channels` says of each channel of the proc what its data is connected to: an output stream by its name; for an input
    `in_i`, or more, such as `{amount_i, in_i}` for a pair of a register and a beat.
    """
    import xls

    ir_name = f"__{proc}__{proc}_0_next"
    package = xls.parse_ir_package(
        xls.optimize_ir(xls.convert_dslx_to_ir(source, f"{proc}.x", proc), ir_name)
    )
    made = package.schedule_and_codegen(
        generator="pipeline",
        top=ir_name,
        module_name=f"{app.top}_core",
        reset="rst_ni",
        reset_active_low=True,
        use_system_verilog=False,
        pipeline_stages=stages,
        with_delay_model=True,
        delay_model="unit",
        flop_inputs=False,
        flop_outputs=True,
        streaming_channel_data_suffix="",
        streaming_channel_valid_suffix="_valid",
        streaming_channel_ready_suffix="_ready",
    )
    wires = {"clk": "clk_i", "rst_ni": "rst_ni"}
    for channel, data in channels.items():
        pin = f"{proc}__{channel}"
        stream = data.strip("{} ").split(",")[-1].strip()[:-2]
        way, back = ("o", "i") if data.endswith("_o") else ("i", "o")
        wires |= {
            pin: data,
            f"{pin}_valid": f"{stream}_valid_{way}",
            f"{pin}_ready": f"{stream}_ready_{back}",
        }
    return made.get_verilog_text() + _wrapped(app, f"{app.top}_core", wires)
