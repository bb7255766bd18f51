# SPDX-License-Identifier: Apache-2.0
"""Golden model of app flow: whole images at a time, in integers."""

import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.int64]
MAX_WIDTH, FRAMES, PIXEL = 8192, 5, 8
GRADIENT, SEVEN, THREE = (1, -8, 0, 8, -1), (19, 34, 48, 74, 48, 34, 19), (83, 90, 83)


def weighted(plane: Plane, weights: tuple[int, ...], axis: int) -> Plane:
    """Sums of the values around each one along an axis, times the weights; zero outside."""
    half = len(weights) // 2
    edge = [(half, half) if a == axis else (0, 0) for a in range(plane.ndim)]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(plane, edge), len(weights), axis=axis)
    return windows @ np.array(weights)


def smoothed(plane: Plane, weights: tuple[int, ...], inside: NDArray[np.bool_]) -> Plane:
    """Weighted means over rows, then over columns, each rounded to an integer."""
    for axis in (0, 1):
        plane = np.where(inside, (weighted(plane, weights, axis) + 128) >> 8, 0)
    return plane


def quotient(n: Plane, d: Plane) -> Plane:
    """n / d with 8 bits behind the point, rounded towards zero and limited; zero where d is not positive."""
    size = np.minimum((np.abs(n) << 8) // np.where(d > 0, d, 1), 32767)
    return np.where(d > 0, np.sign(n) * size, 0)


def movement(frames: Plane, inside: NDArray[np.bool_]) -> tuple[Plane, Plane]:
    """Movement in x and y of each pixel [row, column] of frames [frame, row, column], in 1/256 of a pixel."""
    middle = frames[FRAMES // 2]
    steps = np.tensordot(np.array(GRADIENT), frames, 1)
    dx, dy = (np.where(inside, weighted(middle, GRADIENT, axis), 0) for axis in (1, 0))
    dz = np.where(inside, steps, 0)
    x, y, z = (smoothed(d, SEVEN, inside) for d in (dx, dy, dz))
    xx, yy, xy, xz, yz = (
        (smoothed(product, THREE, inside) + 32) >> 6 for product in (x * x, y * y, x * y, x * z, y * z)
    )
    det = xx * yy - xy * xy
    return quotient(xy * yz - yy * xz, det), quotient(xy * xz - xx * yz, det)


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """What one message gives, and the number of errors."""
    data, width = inputs["in"], registers["width"]
    if width % 8 or not 16 <= width <= MAX_WIDTH:
        return {"out": bytes(len(data)), "errors": (1).to_bytes(4, "little")}
    pixels = -(-len(data) // PIXEL)
    lines = -(-pixels // width)
    image = np.frombuffer(data.ljust(lines * width * PIXEL, b"\0"), np.uint8)
    image = image.reshape(lines, width, PIXEL).astype(np.int64)
    inside = (np.arange(lines * width) < pixels).reshape(lines, width)
    moves = movement(np.moveaxis(image[..., :FRAMES], 2, 0), inside)
    out = np.stack(moves, axis=-1).astype("<i4").tobytes()
    return {"out": out[: len(data)], "errors": bytes(4)}
