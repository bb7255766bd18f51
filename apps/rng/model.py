# SPDX-License-Identifier: Apache-2.0
"""Golden model of app rng: where it reads and writes, what it writes, what it sums up."""

from collections.abc import Iterator

import numpy as np

MASK = 2**64 - 1


def offsets(size: int, count: int, seed: int, length: int, permute: int = 0) -> Iterator[int]:
    """Offsets of the accesses in a memory of `length` bytes; none if the parameters are wrong."""
    slots = min(length // size, 2**32 - 1) if size in {1 << k for k in range(6, 22)} else 0
    if not slots or not seed:
        return
    if permute:
        slots = 1 << slots.bit_length() - 1
        x = seed % slots
        for _ in range(count):
            x = (x * 8197 + 0x9E3779B9) % slots
            yield (x ^ x >> 7) * size
        return
    x = seed
    for _ in range(count):
        x ^= x >> 12
        x ^= x << 25 & MASK
        x ^= x >> 27
        star = x * 0x2545F4914F6CDD1D & MASK
        yield (star >> 32) * slots >> 32 << (size.bit_length() - 1)


def accesses(length: int, registers: dict[str, int]) -> Iterator[int]:
    """Offsets in a memory of `length` bytes for the values of the registers."""
    size, count, seed = (registers[name] for name in ("size", "count", "seed"))
    return offsets(size, count, seed, length, registers.get("permute", 0))


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """The memory afterwards: every 64-bit word written is the seed xor its offset."""
    memory = bytearray(inputs["mem"])
    size = registers["size"]
    if registers["write"]:
        for at in accesses(len(memory), registers):
            offsets = np.arange(at, at + size, 8, dtype="<u8")
            memory[at : at + size] = (offsets ^ np.uint64(registers["seed"])).tobytes()
    return {"mem": bytes(memory)}


def checksum(memory: bytes, registers: dict[str, int]) -> int:
    """What register `checksum` holds after reading."""
    words = np.frombuffer(memory[: len(memory) // 8 * 8], dtype="<u8")
    n = registers["size"] // 8
    return sum(int(words[at // 8 : at // 8 + n].sum()) for at in accesses(len(memory), registers)) & MASK
