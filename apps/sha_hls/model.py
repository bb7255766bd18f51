# SPDX-License-Identifier: Apache-2.0
"""Golden model of app sha_hls: Python's hashlib."""

import hashlib


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """The digest of one message."""
    return {"out": hashlib.sha256(inputs["in"]).digest()}
