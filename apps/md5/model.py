# SPDX-License-Identifier: Apache-2.0
"""Golden model of app md5: Python's hashlib."""

import hashlib


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """The digest of one message."""
    return {"out": hashlib.md5(inputs["in"]).digest()}
