# SPDX-License-Identifier: Apache-2.0
"""Lets every block test import the shared helpers in rtl/common, the models of virtio functions, and the tools."""

import sys
from pathlib import Path

for folder in ("vdev", "vq", "../tools", "common"):
    sys.path.insert(0, str(Path(__file__).parent / folder))
