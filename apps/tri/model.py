# SPDX-License-Identifier: Apache-2.0
"""Golden model of app tri: merges lists of neighbours line by line, as its README says, and packs graphs into memory."""

from collections.abc import Iterable
from itertools import accumulate, zip_longest

LINE, NONE, PLACES, MOST = 64, 2**28 - 1, 2**28, 255

Entry = tuple[int, int, int]  # id, lines, place


def entries(line: bytes) -> list[Entry]:
    """The eight entries of a line."""
    words = [int.from_bytes(line[i : i + 8], "little") for i in range(0, LINE, 8)]
    return [(w & NONE, w >> 28 & 255, w >> 36) for w in words]


def ids(lines: list[list[Entry]]) -> list[list[int]]:
    """Ids of the neighbours in a list, line by line; the first entry is not one."""
    found = [[id_ for id_, _, _ in line] for line in lines]
    found[0][0] = NONE
    return found


def common(mine: list[list[int]], other: list[list[int]]) -> int:
    """Entries of a list that are in mine, a pair of lines of which is compared with each of its lines."""
    pairs = [[*a, *b] for a, b in zip_longest(mine[::2], mine[1::2], fillvalue=[NONE] * 8)]
    at = count = 0
    for line in other:
        while True:
            count += sum(id_ != NONE and id_ in pairs[at] for id_ in line)
            if at + 1 == len(pairs) or pairs[at][15] >= line[7]:
                break
            at += 1
    return count


def count(memory: bytes, length: int) -> tuple[int, int]:
    """Triangles and errors of a graph of so many lines."""
    graph = [entries(memory[LINE * i : LINE * (i + 1)]) for i in range(length)]
    at = triangles = errors = 0
    while at < length:
        _, lines, place = graph[at][0]
        if not lines or place != at:
            errors, lines = errors + 1, 1
        mine = graph[at : at + lines]
        at += len(mine)
        for i, line in enumerate(mine):
            for k, (id_, lines, place) in enumerate(line):
                if id_ == NONE or not lines or (i == 0 and k == 0):
                    continue
                if place + lines > length:
                    errors += 1
                else:
                    triangles += common(ids(mine), ids(graph[place : place + lines]))
    return triangles, errors


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """The memory, which stays as it is, triangles and errors."""
    memory = inputs["mem"]
    length = registers["lines"] or len(memory) // LINE
    triangles, errors = 0, 1
    if length and length < PLACES and LINE * length <= len(memory):
        triangles, errors = count(memory, length)
    return {
        "mem": memory,
        "triangles": triangles.to_bytes(8, "little"),
        "errors": errors.to_bytes(4, "little"),
    }


def pack(vertices: int, edges: Iterable[tuple[int, int]]) -> bytes:
    """The memory of an undirected graph. Vertices get new numbers, by their degree: an edge is in the list of the lower one.

    Raises ValueError for a list that is too long, of 2040 neighbours with more edges than the vertex itself or as many.
    """
    pairs = {(min(u, v), max(u, v)) for u, v in edges if u != v}
    degree = [0] * vertices
    for u, v in pairs:
        degree[u] += 1
        degree[v] += 1
    number = {v: i for i, v in enumerate(sorted(range(vertices), key=degree.__getitem__))}
    above: list[list[int]] = [[] for _ in range(vertices)]
    for u, v in pairs:
        low, high = sorted((number[u], number[v]))
        above[low].append(high)
    lines = [-(-(len(list_) + 1) // 8) if list_ else 0 for list_ in above]
    *places, total = accumulate(lines, initial=0)
    if max(lines, default=0) > MOST or total >= PLACES or vertices > NONE:
        raise ValueError("a list has more than 2039 neighbours, or the graph more than 2^28 lines")

    def word(v: int) -> bytes:
        return (v | lines[v] << 28 | (places[v] << 36 if lines[v] else 0)).to_bytes(8, "little")

    memory = bytearray()
    for v, list_ in enumerate(above):
        if list_:
            part = word(v) + b"".join(map(word, sorted(list_)))
            memory += part.ljust(LINE * lines[v], b"\xff")
    return bytes(memory)
