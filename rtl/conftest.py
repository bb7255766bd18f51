# SPDX-License-Identifier: Apache-2.0
"""Lets every block test import the shared helpers in rtl/common/via_tb.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "common"))
