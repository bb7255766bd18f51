# SPDX-License-Identifier: Apache-2.0
"""Golden model of app aes: OpenSSL's AES-256-CTR."""

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR


def model(inputs: dict[str, bytes], registers: dict[str, int]) -> dict[str, bytes]:
    """Encrypts one message; decrypting is the same."""
    key = registers["key"].to_bytes(32, "little")
    iv = registers["iv"].to_bytes(16, "little")
    data = inputs["in"]
    head = 64 if registers.get("sectors") else 0
    if head:
        sector = int.from_bytes(data[:5], "little")
        iv = ((int.from_bytes(iv, "big") + 32 * sector) % 2**128).to_bytes(16, "big")
    return {"out": data[:head] + Cipher(AES256(key), CTR(iv)).encryptor().update(data[head:])}
