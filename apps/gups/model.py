# SPDX-License-Identifier: Apache-2.0
"""Golden model of app gups: RandomAccess of the HPC Challenge, one update after the other."""

from array import array

TOP, MASK, POLY = 2**63, 2**64 - 1, 7


def table_words(length: int) -> int:
    """Words of the table in a memory of `length` bytes: a power of two; none in less than 8 bytes."""
    return 1 << (length // 8).bit_length() - 1 if length >= 8 else 0


def right(length: int, registers: dict[str, int]) -> bool:
    """Whether the app accepts the parameters."""
    return bool(table_words(length) and registers["seed"])


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """The memory afterwards, and the number of errors."""
    memory = inputs["mem"]
    words = table_words(len(memory))
    if not right(len(memory), registers):
        return {"mem": memory, "errors": (1).to_bytes(4, "little")}
    table = array("Q", memory[: 8 * words])
    last = words - 1
    x = registers["seed"]
    for _ in range(registers["updates"] or 4 * words):
        x = (x << 1 & MASK) ^ (POLY if x >= TOP else 0)
        table[x & last] ^= x
    return {"mem": table.tobytes() + memory[8 * words :], "errors": bytes(4)}
