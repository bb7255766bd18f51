# SPDX-License-Identifier: Apache-2.0
"""App tri against its model, and both against NetworkX."""

import cocotb
import networkx as nx
import pytest
from app_tb import run_app
from cocotb.triggers import RisingEdge
from mem_tb import Bench, golden

from via_tb import rng, start

model = golden("tri")

SIZE = 1 << 15


def graphs(seed: int) -> list[nx.Graph]:
    """Random graphs and known ones: without triangles, with all of them, with lists of many lines."""
    return [
        nx.gnm_random_graph(60, 300, seed),
        nx.gnm_random_graph(200, 2000, seed + 1),
        nx.barabasi_albert_graph(150, 6, seed + 2),
        nx.complete_graph(41),
        nx.complete_bipartite_graph(20, 30),
        nx.path_graph(2),
        nx.cycle_graph(3),
        nx.star_graph(40),
        nx.disjoint_union(nx.complete_graph(5), nx.petersen_graph()),
    ]


def packed(graph: nx.Graph) -> bytes:
    return model.pack(len(graph), graph.edges)


def triangles(graph: nx.Graph) -> int:
    return sum(1 for _ in nx.all_triangles(graph))


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.4])
async def counts_are_those_of_networkx(dut, stall):
    r = rng()
    bench = Bench(dut, r.randbytes(SIZE), latency=40, stall=stall)
    await start(dut)
    for graph in graphs(r.getrandbits(20)):
        memory, base = packed(graph), 64 * r.randrange(100)
        bench.mem.mem[base : base + len(memory)] = memory
        lines = r.choice((0, len(memory) // 64))
        length = len(memory) + (r.randrange(64) if lines == 0 else 500)
        result = await bench.compare(base, length, lines=lines)
        assert result["triangles"] == triangles(graph)
    assert not bench.mem.writes


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def the_read_channel_is_busy(dut):
    # As sparse as those of the paper: 20 neighbours.
    memory = packed(nx.gnm_random_graph(300, 3000, 5))
    bench = Bench(dut, memory, latency=60)
    await start(dut)
    result = await bench.compare(0, len(memory), lines=0)
    beats = len(bench.mem.r_beats)
    assert beats > 3000
    # Latency of a line, of a list, and 5 cycles in 100 for changes of list.
    assert result["cycles"] < 1.05 * beats + 220


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.3])
async def hostile_graphs_end_with_errors(dut, stall):
    """Whatever is in the memory, the count and the errors are those of the model."""
    r = rng()
    bench = Bench(dut, bytes(SIZE), latency=15, stall=stall)
    await start(dut)
    good = packed(nx.gnm_random_graph(60, 500, 3))
    for kind in ("random", "zeros", "ones", "damaged", "places", "long"):
        lines = r.randrange(20, 60)
        data = bytearray(good[: 64 * lines])
        if kind == "random":
            data = bytearray(r.randbytes(64 * lines))
        if kind in ("zeros", "ones"):
            data = bytearray([0xFF if kind == "ones" else 0] * 64 * lines)
        if kind == "damaged":
            for _ in range(40):
                data[r.randrange(len(data))] ^= 1 << r.randrange(8)
        if kind in ("places", "long"):
            # Lists anywhere, and of up to 255 lines; some of the heads are right.
            for at in range(0, len(data), 8):
                place = at // 64 if at % 64 == 0 else r.randrange(lines + 3)
                length = r.choice((0, 1, 2, 3, 40 if kind == "long" else 4, 255))
                word = r.randrange(40) | length << 28 | place << 36
                data[at : at + 8] = word.to_bytes(8, "little")
        bench.mem.mem[: len(data)] = data
        want = model.model({"mem": bytes(data)}, {"lines": 0})
        result = await bench.go(0, len(data), lines=0)
        for name in ("triangles", "errors"):
            assert result[name] == int.from_bytes(want[name], "little"), (kind, name)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def the_longest_list(dut):
    """2039 neighbours, 255 lines, as much as half of the ring; two of them, and lists that end at its end."""
    hubs = [[i + 2 for i in range(2039)], [i + 3 for i in range(2039)]]
    memory = bytearray()
    places: dict[int, tuple[int, int]] = {}

    def add(v: int, list_: list[int]) -> None:
        places[v] = (-(-(len(list_) + 1) // 8), len(memory) // 64)
        lines, place = places[v]
        words = [v | lines << 28 | place << 36]
        words += [w | places.get(w, (0, 0))[0] << 28 | places.get(w, (0, 0))[1] << 36 for w in list_]
        memory.extend(b"".join(w.to_bytes(8, "little") for w in words).ljust(64 * lines, b"\xff"))

    add(2000, [2001, 2002, 2003])
    add(1000, list(range(1100, 1140)))
    add(1, hubs[1])
    add(0, [1, *hubs[0][1:]])
    bench = Bench(dut, bytes(memory), latency=20)
    await start(dut)
    result = await bench.compare(0, len(memory), lines=0)
    # The lists of 1000 and 2000 in that of 1, and of 1, 1000 and 2000 in that of 0.
    assert result["triangles"] == 43 + 43 + 2038


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def bus_errors_are_counted_and_the_run_ends(dut):
    memory = packed(nx.gnm_random_graph(60, 300, 3))
    bench = Bench(dut, memory, latency=9, stall=0.2)
    await start(dut)
    bench.mem.fails = lambda addr: addr // 64 % 7 == 3
    result = await bench.go(0, len(memory), lines=0)
    width = bench.width
    bad = sum(
        any(addr // 64 % 7 == 3 for addr in range(at, at + beats * width, width))
        for _, at, beats in bench.mem.reads
    )
    assert result["errors"] >= bad > 0
    bench.mem.fails = lambda addr: False
    await bench.compare(0, len(memory), lines=0)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def wrong_parameters_end_at_once_with_an_error(dut):
    memory = packed(nx.complete_graph(9))
    bench = Bench(dut, memory, latency=3)
    await start(dut)
    good = {"base": 0, "length": len(memory), "lines": 0}
    wrongs = [
        {"length": 63},
        {"length": 0},
        {"base": 32},
        {"lines": len(memory) // 64 + 1},
        {"lines": 2**32 - 1},
        {"lines": 2**28, "length": 2**40},
        {"length": 2**63},
    ]
    await bench.refuses(good, wrongs)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_start_within_a_run_is_ignored(dut):
    memory = packed(nx.gnm_random_graph(50, 200, 3))
    bench = Bench(dut, memory, latency=10)
    await start(dut)

    async def again():
        for _ in range(5):
            for _ in range(37):
                await RisingEdge(dut.clk_i)
            dut.start_i.value = 1
            await RisingEdge(dut.clk_i)
            dut.start_i.value = 0

    cocotb.start_soon(again())
    await bench.compare(0, len(memory), lines=0)


@pytest.mark.parametrize("data_w", [512, pytest.param(64, marks=pytest.mark.long)])
def test_tri(data_w):
    run_app(__file__, data_w)


def test_the_model_agrees_with_networkx():
    for graph in graphs(7):
        memory = packed(graph)
        assert model.count(memory, len(memory) // 64) == (triangles(graph), 0)


def test_a_list_that_is_too_long_is_refused():
    # Of all edges of n vertices, the first has n - 1 neighbours.
    with pytest.raises(ValueError, match="2039"):
        model.pack(2041, ((u, v) for u in range(2041) for v in range(u)))
