# SPDX-License-Identifier: Apache-2.0
"""Golden model of app nw: the table of Needleman and Wunsch, for all pairs of blocks at once."""

import numpy as np
from numpy.typing import NDArray

BASES, BLOCK = 64, 16


def bases(data: bytes) -> NDArray[np.uint8]:
    """Blocks of 64 bases of two bits, the first in the lowest bits of the first byte."""
    raw = np.frombuffer(data, np.uint8).reshape(-1, BLOCK, 1)
    return ((raw >> np.array([0, 2, 4, 6], np.uint8)) & np.uint8(3)).reshape(-1, BASES)


def scores(a: bytes, b: bytes) -> NDArray[np.int8]:
    """Row for each block of a, column for each of b: 1 for a match, -1 for a mismatch or a gap."""
    rows, cols = bases(a), bases(b)
    shape = (len(rows), len(cols))
    above = [np.full(shape, -j, np.int16) for j in range(BASES + 1)]
    for i in range(BASES):
        line = [np.full(shape, -(i + 1), np.int16)]
        for j in range(BASES):
            match = np.where(rows[:, i, None] == cols[None, :, j], 1, -1).astype(np.int16)
            gap = np.maximum(above[j + 1], line[j]) - np.int16(1)
            line.append(np.maximum(above[j] + match, gap))
        above = line
    return above[BASES].astype(np.int8)


def offsets(registers: dict[str, int]) -> tuple[int, int, int]:
    """Offsets of string b, of the scores, and of what is behind them."""
    rows, cols = registers["rows"], registers["cols"]
    b = -(-BLOCK * rows // 1024) * 1024
    return b, b + BLOCK * cols, b + BLOCK * cols + rows * cols


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """The memory afterwards, and the number of errors."""
    memory, rows, cols = inputs["mem"], registers["rows"], registers["cols"]
    b, at, end = offsets(registers)
    if not rows or not cols or cols % 64 or end > len(memory):
        return {"mem": memory, "errors": (1).to_bytes(4, "little")}
    found = scores(memory[: BLOCK * rows], memory[b:at])
    return {"mem": memory[:at] + found.tobytes() + memory[end:], "errors": bytes(4)}
