# SPDX-License-Identifier: Apache-2.0
"""Tests that docs/virtio-conformance.md names exist under that name."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_conformance_names_tests_that_exist():
    named = set(re.findall(r"([\w/-]+\.(?:py|rs))::(\w+)", (ROOT / "docs/virtio-conformance.md").read_text()))
    assert named
    for file, test in sorted(named):
        found = [ROOT / at / file for at in ("rtl/virtio", "rtl/vq", "rtl/vdev", "rtl/fn", "") if (ROOT / at / file).is_file()]
        assert found, f"{file}: no such file"
        assert re.search(rf"\b(def|fn) {test}\(", found[0].read_text()), f"{file} has no test {test}"
