# SPDX-License-Identifier: Apache-2.0
"""Known answers for the golden model of {{ name }}; `viaduct test {{ name }}` then holds the RTL against the model."""

import importlib.util
from pathlib import Path

spec = importlib.util.spec_from_file_location("{{ name }}_model", Path(__file__).parent / "model.py")
assert spec and spec.loader
golden = importlib.util.module_from_spec(spec)
spec.loader.exec_module(golden)


def test_known_answers() -> None:
    assert golden.model({"in": b"\x00\x01\xff"}, {"mask": 0x0F}) == {"out": b"\x0f\x0e\xf0"}
    assert golden.model({"in": b"as it is"}, {"mask": 0}) == {"out": b"as it is"}
    assert golden.model({"in": b""}, {"mask": 1}) == {"out": b""}
