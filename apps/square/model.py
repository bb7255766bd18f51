# SPDX-License-Identifier: Apache-2.0
"""Golden model of app square, in NumPy."""

import numpy as np


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """Squares every 32-bit word; a last, short word is taken as if zeros followed."""
    data = inputs["in"]
    words = np.frombuffer(data + bytes(-len(data) % 4), dtype="<u4")
    return {"out": (words * words).tobytes()[: len(data)]}
