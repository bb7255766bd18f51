# SPDX-License-Identifier: Apache-2.0
"""Golden model of app pass."""


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """The output is the input."""
    return {"out": inputs["in"]}
