# SPDX-License-Identifier: Apache-2.0
"""Golden model of app gzip: the choice of matches as the app makes it, the format of RFC 1951 and 1952 from their tables.

That zlib gives the input back from this is tested, too.
"""

import zlib

HASH_BITS, REACH, MIN, MAX = 13, 32751, 4, 258

# RFC 1951, 3.2.5: first length and first distance of each code, and bits behind it.
LENGTHS = [(3 + i, 0) for i in range(8)] + [
    (3 + ((4 + i % 4) << i // 4 - 1), i // 4 - 1) for i in range(8, 28)
]
DISTANCES = [(1 + i, 0) for i in range(4)] + [
    (1 + ((2 + i % 2) << i // 2 - 1), i // 2 - 1) for i in range(4, 30)
]


def code(symbol: int) -> tuple[int, int]:
    """The fixed Huffman code of a literal or length (RFC 1951, 3.2.6), first bit lowest, and its bits."""
    for low, high, bits, first in (
        (0, 143, 8, 0x30),
        (144, 255, 9, 0x190),
        (256, 279, 7, 0),
        (280, 287, 8, 0xC0),
    ):
        if low <= symbol <= high:
            return int(f"{first + symbol - low:0{bits}b}"[::-1], 2), bits
    raise ValueError(symbol)


def _values(table: list[tuple[int, int]], first: int, fixed: bool) -> dict[int, tuple[int, int]]:
    """For each length or distance: its code with the bits behind it."""
    found = {}
    for i, (low, extra) in enumerate(table):
        head, bits = code(first + i) if fixed else (int(f"{i:05b}"[::-1], 2), 5)
        for value in range(low, low + (1 << extra)):
            found[value] = head | value - low << bits, bits + extra
    return found


_LITERAL = [code(i) for i in range(256)]
_LENGTH = {**_values(LENGTHS, 257, fixed=True), MAX: code(285)}
_DISTANCE = _values(DISTANCES, 0, fixed=False)


def place(four: bytes) -> int:
    """Where the table has the last position at which these bytes, or others with the same place, began."""
    word = int.from_bytes(four, "little")
    return (word ^ word >> 9 ^ word >> 19) & (1 << HASH_BITS) - 1


def tokens(data: bytes) -> list[tuple[int, int]]:
    """Literals (byte, 0) and matches (length, distance)."""
    found, table, at, size = [], {}, 0, len(data)

    def candidate(position: int) -> int:
        """The position in the table for this one, which takes its place."""
        here = place(data[position : position + 4])
        last = table.get(here, -1)
        table[here] = position
        return last

    while at < size:
        last = candidate(at) if at + MIN <= size else -1
        if last < 0 or at - last > REACH or data[last : last + MIN] != data[at : at + MIN]:
            found.append((data[at], 0))
            at += 1
            continue
        length = MIN
        while length < MAX and at + length < size and data[last + length] == data[at + length]:
            length += 1
        for inside in range(at + 1, min(at + length, size - MIN + 1)):
            candidate(inside)
        found.append((length, at - last))
        at += length
    return found


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """One message as a gzip file with one block of fixed codes."""
    data = inputs["in"]
    out, bits, count = bytearray(bytes.fromhex("1f8b08000000000000ff")), 0b011, 3
    for value, distance in tokens(data):
        for piece, size in (_LENGTH[value], _DISTANCE[distance]) if distance else (_LITERAL[value],):
            bits |= piece << count
            count += size
        if count >= 64:
            out += (bits & (1 << 64) - 1).to_bytes(8, "little")
            bits, count = bits >> 64, count - 64
    count += 7  # the end of the block
    out += bits.to_bytes((count + 7) // 8, "little")
    return {"out": bytes(out) + zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")}
