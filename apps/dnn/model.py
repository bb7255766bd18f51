# SPDX-License-Identifier: Apache-2.0
"""Golden model of app dnn: the network as convolutions of NumPy in integers, and its memory from and to arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
LANES, LINE = 32, 64
SIDE, KERNEL, MAPS1, MAPS2, HIDDEN, CLASSES = 28, 5, 20, 50, 500, 10
# Lines of all weights of a layer: outputs, lines of each.
LINES = {"conv1": (MAPS1, 1), "conv2": (MAPS2, 25), "full2": (CLASSES, 16), "full1": (HIDDEN, 26)}
WEIGHTS = sum(n * k for n, k in LINES.values())


@dataclass
class Network:
    """Weights as integers: [output, row, column, input] of convolutions, [output, input] of full layers, and biases.

    The inputs of the first full layer are pixels in rows, 50 maps each. `rest` of a convolution are the numbers in
    the last lanes of its lines but the last: they count as a bias too, and are zero in a sensible network.
    """

    conv1: Numbers
    bias1: Numbers
    conv2: Numbers
    bias2: Numbers
    full1: Numbers
    bias3: Numbers
    full2: Numbers
    bias4: Numbers


def scaled(sums: Numbers, bias: Numbers, fraction: int) -> Numbers:
    """Sums of products as numbers of 16 bits, halves up."""
    total = sums + (bias << fraction)
    return np.clip(total + (1 << fraction >> 1) >> fraction, -(2**15), 2**15 - 1)


def convolve(maps: Numbers, weights: Numbers) -> Numbers:
    """Sums of products of every window of maps [row, column, map], without edges."""
    windows = np.lib.stride_tricks.sliding_window_view(maps, weights.shape[1:3], axis=(0, 1))
    return np.einsum("yxcij,nijc->yxn", windows, weights)


def pooled(maps: Numbers) -> Numbers:
    """The largest of every two by two pixels, and nothing negative."""
    y, x, n = maps.shape
    return np.maximum(maps.reshape(y // 2, 2, x // 2, 2, n).max(axis=(1, 3)), 0)


def scores(image: Numbers, net: Network, fraction: int) -> Numbers:
    """Ten numbers for an image [row, column]."""
    maps = pooled(scaled(convolve(image[..., None], net.conv1), net.bias1, fraction))
    maps = pooled(scaled(convolve(maps, net.conv2), net.bias2, fraction))
    hidden = np.maximum(scaled(net.full1 @ maps.ravel(), net.bias3, fraction), 0)
    return scaled(net.full2 @ hidden, net.bias4, fraction)


def from_lines(data: bytes) -> Network:
    """The network in the lines of weights. Lanes without an input are ignored, as the app does."""
    words = np.frombuffer(data, "<i2", WEIGHTS * LANES).astype(np.int64)
    part, at = {}, 0
    for name, (n, k) in LINES.items():
        part[name] = words[at : at + n * k * LANES].reshape(n, k, LANES)
        at += n * k * LANES
    c1, c2, f1, f2 = (part[name] for name in ("conv1", "conv2", "full1", "full2"))
    return Network(
        conv1=c1[:, 0, :25].reshape(MAPS1, KERNEL, KERNEL, 1),
        bias1=c1[:, 0, 31],
        conv2=c2[:, :, :MAPS1].reshape(MAPS2, KERNEL, KERNEL, MAPS1),
        bias2=c2[:, :, 31].sum(axis=1),
        full1=f1[:, :25].reshape(HIDDEN, -1),
        bias3=f1[:, 25, 31],
        full2=f2.reshape(CLASSES, -1)[:, :HIDDEN],
        bias4=f2[:, 15, 31],
    )


def to_lines(net: Network) -> bytes:
    """The lines of weights of a network."""
    part = {name: np.zeros((n, k, LANES), np.int64) for name, (n, k) in LINES.items()}
    part["conv1"][:, 0, :25] = net.conv1.reshape(MAPS1, 25)
    part["conv1"][:, 0, 31] = net.bias1
    part["conv2"][:, :, :MAPS1] = net.conv2.reshape(MAPS2, 25, MAPS1)
    part["conv2"][:, 24, 31] = net.bias2
    part["full1"][:, :25] = net.full1.reshape(HIDDEN, 25, LANES)
    part["full1"][:, 25, 31] = net.bias3
    flat = part["full2"].reshape(CLASSES, -1)
    flat[:, :HIDDEN] = net.full2
    flat[:, 511] = net.bias4
    return b"".join(part[name].astype("<i2").tobytes() for name in LINES)


def pack(net: Network, images: Numbers) -> bytes:
    """The memory for images [image, row, column], with room for the results."""
    rows = np.zeros((len(images), SIDE, LANES), "<i2")
    rows[..., :SIDE] = images
    return to_lines(net) + rows.tobytes() + bytes(LINE * len(images))


def unpack(memory: bytes, images: int) -> tuple[Numbers, Numbers]:
    """Scores [image, class], and the class of each image."""
    at = LINE * (WEIGHTS + SIDE * images)
    lines = np.frombuffer(memory[at : at + LINE * images], "<i2").reshape(images, LANES).astype(np.int64)
    return lines[:, :CLASSES], lines[:, CLASSES]


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """The memory afterwards, and the number of errors."""
    memory, images, fraction = inputs["mem"], registers["images"], registers["fraction"]
    at, end = LINE * WEIGHTS, LINE * (WEIGHTS + (SIDE + 1) * images)
    if not images or fraction > 14 or end > len(memory):
        return {"mem": memory, "errors": (1).to_bytes(4, "little")}
    net = from_lines(memory)
    out = np.zeros((images, LANES), "<i2")
    rows = np.frombuffer(memory[at:], "<i2", images * SIDE * LANES).reshape(images, SIDE, LANES)
    for line, image in zip(out, rows[..., :SIDE].astype(np.int64), strict=True):
        line[:CLASSES] = scores(image, net, fraction)
        line[CLASSES] = line[:CLASSES].argmax()
    result = memory[: end - LINE * images] + out.tobytes() + memory[end:]
    return {"mem": result, "errors": bytes(4)}
