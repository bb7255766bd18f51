# SPDX-License-Identifier: Apache-2.0
"""The longest paths that `make synth` prints: levels, delays and kinds of path of small netlists made by hand."""

import json
import sys
from pathlib import Path

import pyosys
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "synth"))
import record
import timing

import synth

SHARE = Path(pyosys.__file__).parent / "share"
CLOCK = 2
CLOCK_TO_Q, LUT1 = 303, 127


class Net:
    """A netlist as yosys writes it. Bits are numbers from 3 on; 2 is the clock."""

    def __init__(self) -> None:
        self.cells: dict[str, dict] = {}
        self.ports: dict[str, dict] = {}
        self.names: dict[str, dict] = {}
        self.next = CLOCK + 1

    def cell(self, kind: str, inputs: dict[str, list], outputs: dict[str, list]) -> None:
        directions = dict.fromkeys(inputs, "input") | dict.fromkeys(outputs, "output")
        self.cells[f"$abc$1$lut$c{len(self.cells)}"] = {
            "type": kind,
            "parameters": {},
            "port_directions": directions,
            "connections": inputs | outputs,
        }

    def bit(self) -> int:
        self.next += 1
        return self.next

    def name(self, name: str, bits: list[int]) -> None:
        self.names[name] = {"hide_name": 0, "bits": bits}

    def port(self, name: str, direction: str, bit: int) -> int:
        self.ports[name] = {"direction": direction, "bits": [bit]}
        return bit

    def register(self, name: str, data: int) -> int:
        out = self.bit()
        self.cell("FDRE", {"C": [CLOCK], "CE": ["1"], "D": [data], "R": ["0"]}, {"Q": [out]})
        self.name(name, [out])
        return out

    def inverters(self, data: int, count: int) -> int:
        for _ in range(count):
            out = self.bit()
            self.cell("LUT1", {"I0": [data]}, {"O": [out]})
            data = out
        return data

    def carries(self, data: int, count: int) -> int:
        carry: int | str = "0"
        for _ in range(count):
            out = [self.bit() for _ in range(8)]
            self.cell(
                "CARRY4",
                {"CI": [carry], "CYINIT": ["0"], "DI": [data, "0", "0", "0"], "S": ["1"] * 4},
                {"CO": out[:4], "O": out[4:]},
            )
            data, carry = "0", out[3]  # type: ignore[assignment]
        return int(carry)

    def worst(self, tmp_path: Path) -> dict[str, tuple[timing.LongPath, timing.LongPath]]:
        file = tmp_path / "netlist.json"
        module = {"ports": self.ports, "cells": self.cells, "netnames": self.names}
        file.write_text(json.dumps({"modules": {"top": module}}))
        return timing.worst(timing.Netlist(file, "top", SHARE).paths())


def test_luts_between_registers_are_levels(tmp_path: Path) -> None:
    net = Net()
    first = net.register("first_q", net.bit())
    net.register("last_q", net.inverters(first, 5))
    deep, slow = net.worst(tmp_path)["reg"]
    assert deep == slow
    assert (deep.levels, deep.ps) == (5, CLOCK_TO_Q + 5 * LUT1)
    assert (deep.start, deep.end) == ("first_q", "last_q")


@pytest.mark.parametrize(("carries", "levels"), [(1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_sixteen_bits_of_carry_are_a_level(tmp_path: Path, carries: int, levels: int) -> None:
    net = Net()
    net.register("sum_q", net.inverters(net.carries(net.register("a_q", net.bit()), carries), 1))
    assert net.worst(tmp_path)["reg"][0].levels == levels + 1


def test_paths_are_told_apart_by_where_they_begin_and_end(tmp_path: Path) -> None:
    net = Net()
    come = net.port("come_i", "input", net.bit())
    held = net.register("held_q", net.inverters(come, 3))
    net.port("go_o", "output", net.inverters(held, 2))
    net.port("ready_o", "output", net.inverters(come, 1))
    net.port("still_o", "output", net.inverters(come, 7))  # combined over blocks: not an output here
    worst = net.worst(tmp_path)
    assert {kind: deep.levels for kind, (deep, _) in worst.items()} == {"in": 3, "out": 2, "through": 1}
    assert (worst["through"][0].start, worst["through"][0].end) == ("come_i", "ready_o")


def test_a_cell_without_figures_is_an_error(tmp_path: Path) -> None:
    net = Net()
    net.cell("NEW1", {"I": [net.bit()]}, {"O": [net.bit()]})
    with pytest.raises(ValueError, match="no timing for cell type NEW1"):
        net.worst(tmp_path)


def test_a_path_may_not_grow_over_its_ceiling_nor_a_new_one_over_its_target(tmp_path: Path) -> None:
    def paths(levels: int) -> dict[str, synth.Worst]:
        path = timing.LongPath("reg", levels, 900, "a_q", "b_q")
        return {"via_block": {"reg": (path, path)}}

    file = tmp_path / "ceilings.json"
    assert synth.check(file, "64/1/1", paths(11), renew=True) == []
    assert synth.check(file, "64/1/1", paths(11), renew=False) == []
    assert len(synth.check(file, "64/1/1", paths(12), renew=False)) == 1
    assert len(synth.check(file, "128/2/1", paths(9), renew=False)) == 1
    assert synth.check(file, "128/2/1", paths(8), renew=False) == []


def test_results_of_a_netlist_are_found_again_until_it_changes(tmp_path: Path) -> None:
    deep, slow = timing.LongPath("reg", 8, 900, "a_q", "b_q"), timing.LongPath("reg", 7, 950, "c_q", "d -> e")
    through = timing.LongPath("through", 0, 12, "a_i", "b_o")
    results = {"LUT": 7.0}, {"via_x": {"reg": (deep, slow)}, "via_x: u_y": {"through": (through, through)}}
    file = tmp_path / "record.json"
    assert record.find(file, "64/1/1", "via_x", "k") is None
    record.put(file, "64/1/1", "via_x", "k", results)
    record.put(file, "64/1/1", "via_z", "k", ({"LUT": 1.0}, {}))
    assert record.find(file, "64/1/1", "via_x", "k") == results
    for place in (("64/1/1", "via_x", "other"), ("64/1/1", "via_y", "k"), ("128/2/1", "via_x", "k")):
        assert record.find(file, *place) is None
    record.put(file, "64/1/1", "via_x", "other", ({"LUT": 8.0}, {}))
    assert record.find(file, "64/1/1", "via_x", "k") is None


def test_every_path_that_is_recorded_is_allowed() -> None:
    """Whatever has not changed since is not mapped again: so the file itself must be within the rules and the ceilings."""
    recorded = json.loads((synth.ROOT / "synth/record.json").read_text())
    assert set(recorded) == {"64/1/1", "128/2/1", "512/4/4"}
    for geometry, blocks in recorded.items():
        assert synth.WHOLE in blocks
        for block in blocks.values():
            paths = record.as_found(block["paths"])
            assert not synth.check(synth.ROOT / "synth/ceilings.json", geometry, paths, renew=False)


LABELS = {
    "network": "via_vdev_select.net",
    "disk": "via_vdev_select.blk",
    **{name: f"via_vdev_select.{name}" for name in ("console", "entropy", "input")},
}
KINDS = {
    "register to register": "reg",
    "input to register": "in",
    "register to output": "out",
    "input to output": "through",
}


def recorded_row(recorded: dict, label: str, kinds: list[str]) -> list[str]:
    """The cells of a block in a table of the results: levels of the deepest path, nanoseconds of the slowest, of each kind."""
    name = LABELS.get(label, label)
    geometry = next(g for g in ("64/1/1", "512/4/4") if name in recorded[g])
    paths = next(iter(record.as_found(recorded[geometry][name]["paths"]).values()))
    return [f"{p[0].levels}, {p[1].ps / 1000:.1f}" if (p := paths.get(kind)) else "–" for kind in kinds]


def test_the_tables_in_the_results_are_what_is_recorded() -> None:
    recorded = json.loads((synth.ROOT / "synth/record.json").read_text())
    section = (synth.ROOT / "docs/results.md").read_text().split("## Longest paths")[1].split("\n## ")[0]
    seen, wrong, first, kinds = 0, [], 0, []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        now = [n for n, cell in enumerate(cells) if cell.startswith("now: ")]
        if now:
            first = now[0]
            kinds = [KINDS[cell.removeprefix("now: ")] for cell in cells[first:]]
        label = cells[0].removeprefix("… ")
        if (
            first
            and len(cells) == first + len(kinds)
            and any(LABELS.get(label, label) in r for r in recorded.values())
        ):
            seen += 1
            expected = [*cells[:first], *recorded_row(recorded, label, kinds)]
            wrong += [f"| {' | '.join(expected)} |"] if cells != expected else []
    assert seen > 30
    assert not wrong, "these rows should be:\n" + "\n".join(wrong)


def test_the_areas_in_the_results_are_what_is_recorded() -> None:
    recorded = json.loads((synth.ROOT / "synth/record.json").read_text())["512/4/4"]
    section = (synth.ROOT / "docs/results.md").read_text().split("## Area")[1].split("\n## ")[0]
    columns = ("LUT", "LUTRAM", "FF", "BRAM")
    total = dict.fromkeys(columns, 0.0)
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 2 + len(columns) or cells[0] == "block":
            continue
        stated = dict(zip(columns, cells[2:], strict=True))
        if cells[0] == "**shell**":
            assert {c: float(v) for c, v in stated.items()} == total
            return
        if (name := cells[0].removeprefix("… ")) in recorded:
            area = recorded[name]["area"]
            assert {c: float(v) for c, v in stated.items()} == {c: area[c] for c in columns}, name
            for column in columns if name == cells[0] else ():
                total[column] += int(cells[1]) * area[column]
    raise AssertionError("no sum over the shell")
