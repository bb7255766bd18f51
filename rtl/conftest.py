# SPDX-License-Identifier: Apache-2.0
"""Lets every block test import the shared helpers in rtl/common and the models of virtio functions."""

import sys
from pathlib import Path

for folder in ("vdev", "vq", "common"):
    sys.path.insert(0, str(Path(__file__).parent / folder))
