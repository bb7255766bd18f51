# SPDX-License-Identifier: Apache-2.0
"""Fixtures shared by the tests of the whole system: the seed, the Python package, golden models, a card in another process."""

import importlib.util
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

# A shell without job control starts programs with & that ignore SIGINT, which children inherit: a test's SIGINT would have no effect.
signal.signal(signal.SIGINT, signal.default_int_handler)

SEED = int(os.environ.get("VIA_SEED") or random.SystemRandom().getrandbits(32))


def pytest_report_header() -> str:
    return f"VIA_SEED={SEED}"


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers of this test; the same for the same VIA_SEED."""
    print(f"VIA_SEED={SEED}")
    return random.Random(f"{SEED} {request.node.nodeid}")


@pytest.fixture(scope="session")
def golden() -> Callable[[str], ModuleType]:
    """The golden model of an app, by the app's name."""

    def load(app: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"{app}_model", ROOT / "apps" / app / "model.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
