# SPDX-License-Identifier: Apache-2.0
"""tools/parts.py: what it reads of a block, and what it makes of it."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
from pyslang.ast import Compilation  # pyright: ignore[reportMissingModuleSource]
from pyslang.syntax import SyntaxTree  # pyright: ignore[reportMissingModuleSource]

import parts

ROOT = Path(__file__).resolve().parents[2]


def test_numbers_of_queues_are_those_of_the_devices():
    """tools/parts.py and synth/synth.py build the blocks of each function for the queues that via_vdev_pkg gives its device."""
    packages = ("common/via_pkg", "virtio/via_virtio_pkg", "vdev/via_vdev_pkg")
    sources = [(ROOT / f"rtl/{p}.sv").read_text() for p in packages]
    numbers = "".join(
        f"localparam vdev_t D{n} = vdev({n}); localparam int Q{n} = int'(D{n}.queues);\n"
        for n in parts.QUEUES
    )
    compilation = Compilation()
    compilation.addSyntaxTree(
        SyntaxTree.fromText("\n".join([*sources, f"module top import via_vdev_pkg::*;\n{numbers}endmodule"]))
    )
    body = compilation.getRoot().topInstances[0].body
    queues = {n: int(body.find(f"Q{n}").value.value) for n in parts.QUEUES}
    assert queues == parts.QUEUES
    synth = re.search(r"^QUEUES = (.*)$", (ROOT / "synth/synth.py").read_text(), re.M)
    assert synth and list(ast.literal_eval(synth[1]).values()) == list(queues.values())


BLOCK = """// A block.
`define WIDE 3
module via_thing
  import via_pkg::*;
#(
  parameter int unsigned Depth = 4,  // places
  parameter bit          Fast  = 1'b0,
  localparam int unsigned W    = Depth
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  // commands
  input  cmd_t          cmd_i,
  input  logic          cmd_valid_i,
  output logic          cmd_ready_o,
  input  logic          level_i,
  input  logic [63:0]   time_i,
  input  axi_r_t        m_r_i       [W:1],  // answers
  input  logic [ W-1:0] m_r_valid_i,
  output logic [  31:0] count_o     [8][W],
  output logic          still_o
);
endmodule
"""


def read(tmp_path: Path, text: str) -> parts.Header:
    (tmp_path / "via_thing.sv").write_text(text)
    return parts.header(tmp_path / "via_thing.sv")


def test_header(tmp_path: Path):
    head = read(tmp_path, BLOCK)
    assert (head.name, head.macros) == ("via_thing", "`define WIDE 3\n")
    assert head.imports.split() == ["import", "via_pkg::*;"]
    assert head.defaults == {"Depth": "4", "Fast": "1'b0"}
    assert [p.name for p in head.inputs] == [
        *("rst_ni", "cmd_i", "cmd_valid_i", "level_i", "time_i", "m_r_i", "m_r_valid_i")
    ]
    assert [p.name for p in head.outputs] == ["cmd_ready_o", "count_o", "still_o"]
    by_name = {p.name: p for p in head.ports}
    assert (by_name["m_r_i"].type, by_name["m_r_i"].dims) == ("axi_r_t", ["W:1"])
    assert (by_name["count_o"].type, by_name["count_o"].dims) == ("logic [  31:0]", ["8", "W"])


def test_payloads_and_what_is_sampled_move_nothing(tmp_path: Path):
    head = read(tmp_path, BLOCK)
    assert [p.name for p in parts.levels(head, parts.Part("via_thing"))] == ["cmd_valid_i", "level_i"]
    socket = parts.socket(head, [parts.Part("via_thing")], {})
    moves = re.search(r"moves = (.*);", socket)
    # A valid that has a ready moves something with it; that it comes, as a change; one without, always.
    assert moves and moves[1] == "!rst_ni || |(cmd_valid_i & cmd_ready_o) || |m_r_valid_i"
    counted = parts.socket(head, [parts.Part("via_thing", counted=("level_i",))], {})
    assert "moves = !rst_ni || |(cmd_valid_i & cmd_ready_o) || |level_i || |m_r_valid_i;" in counted
    compared = re.findall(r"if \(.*'\((\w+)\) != in\[", socket)
    assert compared == ["cmd_valid_i", "level_i"]
    standing = parts.socket(head, [parts.Part("via_thing", standing=("m_r_valid_i",))], {})
    assert "moves = !rst_ni || |(cmd_valid_i & cmd_ready_o);" in standing
    assert re.findall(r"if \(.*'\((\w+).*\) != in\[", standing) == [
        "cmd_valid_i",
        "level_i",
        "m_r_i",
        "m_r_valid_i",
    ]
    # All inputs are handed over, and all outputs taken.
    for port in head.inputs:
        assert f"in[At_{port.name}" in socket
    for port in head.outputs:
        assert re.search(rf"{port.name}[^;=]* <= out\[At_{port.name}", socket)


def test_a_part_stays_some_cycles_after_an_input_and_after_its_report(tmp_path: Path):
    socket = parts.socket(read(tmp_path, BLOCK), [parts.Part("via_thing")], {})
    assert f"left = moves ? 3'd{parts.SETTLE} : left - 3'(left != 0);" in socket
    assert f"if (!still_o && left < 3'd{parts.STAY}) left = 3'd{parts.STAY};" in socket
    # Parts inside take SETTLE cycles after an input, which this one does not see: it must not stop before them.
    assert parts.STAY >= parts.SETTLE


def test_a_payload_passes_with_its_valid(tmp_path: Path):
    head = read(tmp_path, BLOCK)
    socket = parts.socket(head, [parts.Part("via_thing", (("Depth", "$clog2(9)"),))], {})
    assert "if (in[At_cmd_valid_i + 0]) in[At_cmd_i + 0" in socket
    assert re.search(r"for \(int i0 = 0;.*if \(in\[At_m_r_valid_i \+ .*i0\)\]\) in\[At_m_r_i", socket)
    taken = parts.ports_of(head)
    assert "take_port(r.cmd_i, at_cmd_i, r.cmd_valid_i);" in taken
    assert "take_port(r.m_r_i, at_m_r_i, r.m_r_valid_i);" in taken
    assert "take_port(r.level_i, at_level_i);" in taken
    # Behind the valid, of which the model's is asked.
    assert taken.index("take_port(r.m_r_valid_i") < taken.index("take_port(r.m_r_i")
    assert "return words(r.cmd_ready_o) + words(r.count_o) + words(r.still_o);" in taken


def test_elements_pass_one_by_one_if_their_number_is_known(tmp_path: Path):
    head = read(tmp_path, BLOCK)
    kinds = [parts.Part("via_thing", (("Depth", "2 * NumSlots"),))]
    assert parts.sizes(head, kinds, {"NumSlots": 1}) == {"W:1": 2, "8": 8, "W": 2}
    socket = parts.socket(head, kinds, {"NumSlots": 1})
    assert "for (int" not in socket
    for number in (0, 1):
        assert f"if (in[At_m_r_valid_i + {number}]) in[At_m_r_i + {number} * " in socket
        assert f"'(m_r_i[{number} + (1)]);" in socket
    assert "count_o[7 + 0][1 + 0] <= out[At_count_o + 15 * " in socket
    assert "if (((W) - (1) + 1) != 2) $error" in socket
    # Not with an expression that is not understood, nor if the kinds differ.
    assert parts.sizes(head, [parts.Part("via_thing", (("Depth", "$clog2(9)"),))], {}) == {"8": 8}
    assert parts.sizes(head, [parts.Part("via_thing", (("Depth", n),)) for n in (4, 8)], {}) == {"8": 8}


def test_the_geometry_is_that_of_the_macros():
    assert parts.geometry([]) == {"NumSlots": 4, "NumChan": 4, "NumStreams": 1}
    assert parts.geometry(["VIA_NUM_SLOTS=2", "VIA_SIM"])["NumSlots"] == 2


def test_a_socket_chooses_the_kind_by_its_parameters(tmp_path: Path):
    head = read(tmp_path, BLOCK)
    kinds = [parts.Part("via_thing", (("Depth", n),)) for n in (4, 8)]
    socket = parts.socket(head, kinds, {})
    assert 'Depth == (4) && 1 ? "via_thing_Depth4" : Depth == (8) && 1 ? "via_thing_Depth8" : ""' in socket
    # A parameter that no kind sets has to be what the kinds are made with.
    assert "if (Fast != 1'b0) $error" in socket and "if (Depth" not in socket
    # An expression is not in the name, but in the part.
    part = parts.Part("via_thing", (("Depth", "NumSlots + 1"), ("Fast", 1)))
    assert 'Depth == (NumSlots + 1) && Fast == (1) && 1 ? "via_thing_Fast1"' in parts.socket(head, [part], {})
    assert re.search(r"int unsigned Depth = NumSlots \+ 1,.*bit +Fast  = 1,", parts.top(head, part), re.S)


def test_kinds_must_be_alike_and_have_names_of_their_own(tmp_path: Path):
    four, eight = (parts.Part("via_thing", (("Depth", n),)) for n in (4, 8))
    with pytest.raises(SystemExit, match="differ in `counted`"):
        parts.socket(read(tmp_path, BLOCK), [four, replace(eight, counted=("level_i",))], {})
    with pytest.raises(SystemExit, match="two parts have the same name"):
        parts.flat((four, replace(eight, parameters=(("Depth", 4),))))


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        ("still_o", "stands_o", "a part needs an output still_o or idle_o"),
        ("rst_ni", "rst_i", "a part needs a port rst_ni"),
        ("input  cmd_t          cmd_i,", "input wire signed x_i,", "not understood: input wire signed x_i,"),
        ("module via_thing", "module via_other", "no header of module via_thing found"),
    ],
)
def test_what_cannot_be_a_part_is_refused(tmp_path: Path, was: str, now: str, why: str):
    with pytest.raises(SystemExit, match=re.escape(why)):
        parts.socket(read(tmp_path, BLOCK.replace(was, now)), [parts.Part("via_thing")], {})


def test_a_part_may_say_by_another_output_when_it_is_still(tmp_path: Path):
    head = read(tmp_path, BLOCK.replace("still_o", "stands_o"))
    assert "!stands_o" in parts.socket(head, [parts.Part("via_thing", still="stands_o")], {})


def blocks_in(path: Path) -> set[str]:
    """Names of the blocks that a block consists of, and of those in them."""
    found = set(re.findall(r"^ *(via_\w+) (?:#\(|u_)", path.read_text(), re.M))
    inner = [ROOT / f"rtl/{folder.name}/{name}.sv" for name in found for folder in (ROOT / "rtl").iterdir()]
    return found.union(*(blocks_in(block) for block in inner if block.exists()))


def test_parts_of_the_card():
    """Each block is there, has all inputs that its part calls sampled, and leaves out none that it has not."""
    for part in [*parts.flat(parts.CARD), *parts.WITHOUT_FUNCTIONS.values()]:
        path = next((ROOT / "rtl").glob(f"*/{part.module}.sv"))
        head = parts.header(path)
        known = {p.name for p in head.inputs}
        assert set((*part.sampled, *part.counted)) - {"time_i"} <= known, part.name
        assert set(part.standing) <= {p.name for p in head.ports}, part.name
        assert set(dict(part.parameters)) <= set(head.defaults), part.name
        inside = blocks_in(path)
        for inner in part.inside:
            assert inner.module in inside, f"{inner.module} is not in {path}"
