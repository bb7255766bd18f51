# SPDX-License-Identifier: Apache-2.0
"""Golden model of app hll: the buckets, with MurmurHash3 of package mmh3, and the estimate from them.

`python apps/hll/model.py FILE…` prints the estimate of the union of sketches that the app has written.
"""

import math
import sys
from pathlib import Path

import mmh3
import numpy as np
from numpy.typing import NDArray

LOG2 = 16


def hashes(data: bytes, seed: int) -> NDArray[np.uint32]:
    """The hash of every item, 4 bytes each; a rest is none."""
    size = len(data) // 4 * 4
    return np.array([mmh3.hash(data[i : i + 4], seed, False) for i in range(0, size, 4)], np.uint32)


def buckets(data: bytes, seed: int = 0, log2: int = LOG2) -> NDArray[np.uint8]:
    """The largest rank in each of 2**log2 buckets."""
    hashed = hashes(data, seed)
    rest = hashed & np.uint32(2 ** (32 - log2) - 1)
    # The exponent of a number is its length in bits.
    rank = 33 - log2 - np.frexp(rest.astype(np.float64))[1]
    found = np.zeros(1 << log2, np.uint8)
    np.maximum.at(found, hashed >> np.uint32(32 - log2), rank.astype(np.uint8))
    return found


def sigma(x: float) -> float:
    """x + the sum of x**(2**k) * 2**(k - 1), k = 1, 2, ...; x below 1."""
    total, last, weight = x, -1.0, 1.0
    while total != last:
        x *= x
        last, total, weight = total, total + x * weight, 2 * weight
    return total


def tau(x: float) -> float:
    """A third of 1 - x - the sum of (1 - x**(2**-k))**2 * 2**-k, k = 1, 2, ..."""
    total, last, weight = 1 - x, -1.0, 1.0
    while total != last and x:
        x, weight = math.sqrt(x), weight / 2
        last, total = total, total - (1 - x) ** 2 * weight
    return total / 3 if x else 0.0


def estimate(zeros: int, full: int, total: float, log2: int = LOG2) -> float:
    """How many different items, from the numbers of buckets with rank zero and the largest rank, and the sum of 2**-rank over all.

    Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017, algorithm 6: no bias in any range, and no
    thresholds between formulas. It supposes hashes that may collide; those of different items of four bytes never do.
    """
    m, rest = 1 << log2, 32 - log2
    if zeros == m:
        return 0.0
    between = total - zeros - full * 0.5 ** (rest + 1)
    hashed = m * m / (2 * math.log(2)) / (m * sigma(zeros / m) + between + m * tau(1 - full / m) * 0.5**rest)
    return -(2**32) * math.expm1(-hashed / 2**32)


def count(sketch: NDArray[np.uint8]) -> float:
    """The estimate from buckets."""
    log2 = len(sketch).bit_length() - 1
    total = float(np.exp2(-sketch.astype(np.float64)).sum())
    return estimate(int((sketch == 0).sum()), int((sketch == 33 - log2).sum()), total, log2)


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """The buckets, and what the registers show."""
    found = buckets(inputs["in"], registers["seed"])
    total = int((2 ** (33 - LOG2 - found.astype(np.int64))).sum())
    return {
        "out": found.tobytes(),
        "items": (len(inputs["in"]) // 4).to_bytes(8, "little"),
        "zeros": int((found == 0).sum()).to_bytes(4, "little"),
        "full": int((found == 33 - LOG2).sum()).to_bytes(4, "little"),
        "sum": total.to_bytes(8, "little"),
    }


if __name__ == "__main__":
    sketches = [np.frombuffer(Path(name).read_bytes(), np.uint8) for name in sys.argv[1:]]
    print(round(count(np.maximum.reduce(sketches))))
