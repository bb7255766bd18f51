# SPDX-License-Identifier: Apache-2.0
"""Golden model of app pgrnk: PageRank in the fixed-point numbers of the app, and its memory from and to a sparse matrix.

Ranks and shares have 32 bits behind the point, their mean is 1; weights and damping have 31.
"""

import numpy as np
from numpy.typing import NDArray

MASK = 2**64 - 1
RANK, WEIGHT = 2**32, 2**31

VERTEX = np.dtype([("share", "<u8"), ("degree", "<u4"), ("flags", "<u4")])
EDGE = np.dtype([("source", "<u4"), ("weight", "<u4")])


def lines(count: int, size: int) -> int:
    """Bytes of so many items of this size, up to a multiple of 64."""
    return -(-count * size // 64) * 64


def offsets(vertices: int, edges: int) -> tuple[int, int, int, int]:
    """Offsets of edges, first ranks, second ranks, and of what is behind them."""
    edge = lines(vertices, 16)
    first = edge + lines(edges, 8)
    second = first + lines(vertices, 8)
    return edge, first, second, second + lines(vertices, 8)


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """The memory afterwards, the mass that has no edges to follow, and the number of errors."""
    memory = bytearray(inputs["mem"])
    n, m, iterations = registers["vertices"], registers["edges"], registers["iterations"]
    damping, mass = registers["damping"], registers["mass"]
    edge_at, first, second, end = offsets(n, m)
    if not n or not iterations or damping > WEIGHT or end > len(memory):
        return {
            "mem": bytes(memory),
            "mass_after": mass.to_bytes(8, "little"),
            "errors": (1).to_bytes(4, "little"),
        }
    table = np.frombuffer(memory[:edge_at], VERTEX, n).tolist()
    edges = np.frombuffer(memory[edge_at:first], EDGE, m).tolist()
    errors = 0
    for _ in range(iterations):
        ranks = np.frombuffer(memory[first : first + 8 * n], "<u8").tolist()
        base = (WEIGHT - damping + ((mass // n * damping >> 31 & MASK) >> 1)) & 0xFFFF_FFFF
        products = [(ranks[source] * weight >> 31 & MASK) if source < n else 0 for source, weight in edges]
        errors += sum(source >= n for source, _ in edges) + (sum(degree for _, degree, _ in table) != m)
        at, mass, new = 0, 0, []
        for share, degree, flags in table:
            total = sum(products[at : at + degree]) & MASK
            at += degree
            new.append(((total * damping >> 31) + (share * base >> 31)) & MASK)
            mass += new[-1] * (flags & 1)
        mass &= MASK
        memory[second : second + 8 * n] = np.array(new, "<u8").tobytes()
        first, second = second, first
    return {
        "mem": bytes(memory),
        "mass_after": mass.to_bytes(8, "little"),
        "errors": errors.to_bytes(4, "little"),
    }


def pack(matrix, damping: float = 0.85, iterations: int = 20) -> tuple[bytes, dict[str, int]]:
    """Memory and registers for a sparse matrix of SciPy: entry [i, j], not negative, is the weight of an edge from i to j.

    All vertices begin with rank 1 and have share 1. `scipy.io.mmread` reads such a matrix from a Matrix Market file.
    """
    by_target = matrix.tocsc()
    by_target.sum_duplicates()
    n, m = matrix.shape[0], by_target.nnz
    out = np.asarray(matrix.sum(axis=1), float).ravel()
    vertices = np.zeros(n, VERTEX)
    vertices["share"] = RANK
    vertices["degree"] = np.diff(by_target.indptr)
    vertices["flags"] = out == 0
    edges = np.zeros(m, EDGE)
    edges["source"] = by_target.indices
    edges["weight"] = np.rint(by_target.data / out[by_target.indices] * WEIGHT)
    edge, first, _, end = offsets(n, m)
    memory = bytearray(end)
    memory[: 16 * n] = vertices.tobytes()
    memory[edge : edge + 8 * m] = edges.tobytes()
    memory[first : first + 8 * n] = np.full(n, RANK, "<u8").tobytes()
    registers = {
        "vertices": n,
        "edges": m,
        "iterations": iterations,
        "damping": round(damping * WEIGHT),
        "mass": int((out == 0).sum()) * RANK,
    }
    return bytes(memory), registers


def unpack(memory: bytes, registers: dict[str, int]) -> NDArray[np.float64]:
    """Ranks of all vertices, of sum 1."""
    n = registers["vertices"]
    _, first, second, _ = offsets(n, registers["edges"])
    at = second if registers["iterations"] % 2 else first
    return np.frombuffer(memory[at : at + 8 * n], "<u8") / RANK / n
