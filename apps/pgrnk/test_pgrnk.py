# SPDX-License-Identifier: Apache-2.0
"""App pgrnk against its model, and both against NetworkX's PageRank."""

import io

import cocotb
import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from app_tb import run_app
from cocotb.triggers import RisingEdge
from mem_tb import Bench, golden

from via_tb import rng, start

model = golden("pgrnk")


def graph(vertices: int, edges: int, seed: int) -> tuple[bytes, dict[str, int]]:
    """Memory and registers of a random graph, some of whose vertices have no edge out."""
    r = np.random.default_rng(seed)
    source, target = r.integers(0, max(1, vertices * 4 // 5), edges), r.integers(0, vertices, edges)
    matrix = scipy.sparse.coo_array((r.uniform(0.1, 5, edges), (source, target)), (vertices, vertices))
    return model.pack(matrix, iterations=3)


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.4])
async def ranks_equal_the_model(dut, stall):
    r = rng()
    cases = [(1, 0), (1, 1), (3, 7), (8, 8), (9, 60), (100, 300), (64, 0), (33, 500)]
    memories = [graph(n, m, r.getrandbits(30)) for n, m in cases]
    bench = Bench(dut, bytes(1 << 15), latency=30, stall=stall)
    await start(dut)
    for memory, registers in memories:
        base = 64 * r.randrange(64)
        bench.mem.mem[base : base + len(memory)] = memory
        result = await bench.compare(base, len(memory) + r.choice((0, 1, 63)), **registers)
        assert result["errors"] == 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def the_read_channel_is_busy(dut):
    memory, registers = graph(200, 3000, 7)
    registers["iterations"] = 1
    bench = Bench(dut, memory, latency=60)
    await start(dut)
    result = await bench.compare(0, len(memory), **registers)
    width = 512 // (8 * bench.width)
    lines = (registers["edges"] + registers["edges"] / 8 + registers["vertices"] / 4) * width
    assert len(bench.mem.r_beats) >= lines
    # Behind what is read: setup, base, latency of an edge, of its rank, and of the last write.
    assert result["cycles"] < len(bench.mem.r_beats) + 350


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.3])
async def hostile_graphs_end_with_errors(dut, stall):
    """Degrees and sources of any value: the result and the errors are still those of the model."""
    r = rng()
    bench = Bench(dut, r.randbytes(1 << 14), latency=12, stall=stall)
    await start(dut)
    for degrees in ("random", "short", "long", "huge"):
        n, m = r.randrange(2, 40), r.randrange(1, 200)
        edge = model.offsets(n, m)[0]
        most = 2 * m // n
        into = {
            "random": [r.getrandbits(32) for _ in range(n)],
            "short": [*(r.randrange(most + 1) for _ in range(n - 1)), 1 << 31],
            "long": [r.randrange(most // 4 + 1) for _ in range(n)],
            "huge": [2**32 - 1, *(r.randrange(most + 1) for _ in range(n - 1))],
        }[degrees]
        table = np.array([(r.getrandbits(64), d, r.getrandbits(32)) for d in into], model.VERTEX)
        sources = [r.choice((r.randrange(n), r.getrandbits(32), n, n - 1)) for _ in range(m)]
        edges = np.array([(source, r.getrandbits(32)) for source in sources], model.EDGE)
        bench.mem.mem[: 16 * n] = table.tobytes()
        bench.mem.mem[edge : edge + 8 * m] = edges.tobytes()
        registers = {"vertices": n, "edges": m, "iterations": 2, "damping": r.getrandbits(31)}
        registers["mass"] = r.getrandbits(64)
        want = model.model({"mem": bytes(bench.mem.mem)}, registers)
        result = await bench.go(0, len(bench.mem.mem), **registers)
        assert bytes(bench.mem.mem) == want["mem"], degrees
        for name in ("errors", "mass_after"):
            assert result[name] == int.from_bytes(want[name], "little"), (degrees, name)
        assert result["errors"]


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def bus_errors_are_counted_and_the_run_ends(dut):
    memory, registers = graph(100, 400, 3)
    registers["iterations"] = 1
    bench = Bench(dut, memory, latency=9, stall=0.2)
    await start(dut)
    edge, first, second, _ = model.offsets(100, registers["edges"])
    # One line each of vertices, edges, ranks that are read and ranks that are written.
    for bad, least in ((128, 1), (edge + 64, 1), (first + 64, 1), (second + 64, 1)):
        bench.mem.fails = lambda addr, bad=bad: bad <= addr < bad + 64
        result = await bench.go(0, len(memory), **registers)
        assert result["errors"] >= least
        bench.mem.mem[:] = memory
    bench.mem.fails = lambda addr: False
    await bench.compare(0, len(memory), **registers)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def wrong_parameters_end_at_once_with_an_error(dut):
    memory, registers = graph(20, 40, 5)
    bench = Bench(dut, memory, latency=3)
    await start(dut)
    good = {"base": 0, "length": len(memory), **registers}
    wrongs = [
        {"length": len(memory) - 1},
        {"length": 0},
        {"base": 32},
        {"vertices": 0},
        {"vertices": 2**32 - 1},
        {"edges": 2**32 - 1},
        {"vertices": 2**32 - 1, "edges": 2**32 - 1},
        {"iterations": 0},
        {"damping": 2**31 + 1},
    ]
    await bench.refuses(good, wrongs, cycles=8)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_start_within_a_run_is_ignored(dut):
    memory, registers = graph(30, 100, 6)
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
    await bench.compare(0, len(memory), **registers)


@pytest.mark.parametrize("data_w", [512, pytest.param(64, marks=pytest.mark.long)])
def test_pgrnk(data_w):
    run_app(__file__, data_w)


def test_the_model_agrees_with_networkx():
    """Of a weighted graph in a Matrix Market file: ranks within 2^-20 of those of floating point."""
    r = np.random.default_rng(2)
    web = nx.gnp_random_graph(120, 0.05, seed=3, directed=True)
    web.remove_edges_from(list(web.out_edges(range(7))))
    for edge in web.edges.values():
        edge["weight"] = float(r.uniform(0.5, 2))
    file = io.BytesIO()
    scipy.io.mmwrite(file, nx.to_scipy_sparse_array(web))
    file.seek(0)
    memory, registers = model.pack(scipy.io.mmread(file), iterations=60)
    after = model.model({"mem": memory}, registers)
    assert not int.from_bytes(after["errors"], "little")
    found = model.unpack(after["mem"], registers)
    want = nx.pagerank(web, 0.85, tol=1e-12, max_iter=200)
    assert np.abs(found * 120 - np.array([want[v] for v in web]) * 120).max() < 2**-20
    assert abs(found.sum() - 1) < 1e-6
