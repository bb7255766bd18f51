# SPDX-License-Identifier: Apache-2.0
"""Golden model of app keccak: Python's hashlib."""

import hashlib


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """The digest of one message."""
    return {"out": hashlib.sha3_256(inputs["in"]).digest()}
