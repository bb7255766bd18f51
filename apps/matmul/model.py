# SPDX-License-Identifier: Apache-2.0
"""Golden model of app matmul, in NumPy."""

import numpy as np


def offsets(registers: dict[str, int]) -> tuple[int, int, int]:
    """Offsets of B, of the product, and of what is behind it."""
    rows, inner, cols = (registers[name] for name in ("rows", "inner", "cols"))
    return rows * inner, inner * (rows + cols), inner * (rows + cols) + 4 * rows * cols


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """The memory afterwards, and the number of errors."""
    memory = inputs["mem"]
    rows, inner, cols = (registers[name] for name in ("rows", "inner", "cols"))
    b, c, end = offsets(registers)
    if not rows or not inner or not cols or rows % 16 or inner % 64 or cols % 64 or end > len(memory):
        return {"mem": memory, "errors": (1).to_bytes(4, "little")}
    # In floating point of 64 bits, which is exact here: NumPy has no fast product of integers.
    left = np.frombuffer(memory[:b], np.int8).reshape(rows, inner).astype(np.float64)
    right = np.frombuffer(memory[b:c], np.int8).reshape(inner, cols).astype(np.float64)
    product = (left @ right).astype("<i4").tobytes()
    return {"mem": memory[:c] + product + memory[end:], "errors": bytes(4)}
