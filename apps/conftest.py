# SPDX-License-Identifier: Apache-2.0
"""Lets every app's test import the shared helpers: rtl/common/via_tb.py, app_tb.py here, and those in common/."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "common"), str(HERE.parent / "rtl/common"), str(HERE.parent / "tools")]
