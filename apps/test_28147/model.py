# SPDX-License-Identifier: Apache-2.0
"""Golden model of test_28147: its required function, written independently of the RTL."""


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    mask = bytes(byte ^ registers["mask"] for byte in range(256))
    return {"out": inputs["in"].translate(mask)}
