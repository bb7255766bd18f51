# SPDX-License-Identifier: Apache-2.0
"""Viaduct cards from Python: load an app, set its registers, send NumPy arrays or files through it.

>>> with viaduct.open("sim") as card, card.load("aes") as slot:
...     slot.set(key=key, iv=iv)
...     cipher = slot.run(np.frombuffer(text, np.uint8))

Objects are closed in reverse order of opening; `with` does that. An object dropped while open is closed with a
ResourceWarning. A child of `os.fork()` cannot use its parent's objects. The package loads libviaduct (see
docs/host-api.md).
"""

from ._cards import Card, Route, open
from ._library import (
    AppError,
    ArgumentError,
    BuildError,
    BusyError,
    CardError,
    ClosedError,
    Error,
    FileError,
    NotFoundError,
    OutOfMemoryError,
    StoppedError,
    TooSmallError,
)
from ._memory import Memory
from ._slots import Mapping, Slot, wait_for_one
from ._values import (
    CardInfo,
    Measured,
    PagerStats,
    PortInfo,
    Progress,
    RegisterInfo,
    Report,
    SystemMonitor,
)

__all__ = [
    "AppError",
    "ArgumentError",
    "BuildError",
    "BusyError",
    "Card",
    "CardError",
    "CardInfo",
    "ClosedError",
    "Error",
    "FileError",
    "Mapping",
    "Measured",
    "Memory",
    "NotFoundError",
    "OutOfMemoryError",
    "PagerStats",
    "PortInfo",
    "Progress",
    "RegisterInfo",
    "Report",
    "Route",
    "Slot",
    "StoppedError",
    "SystemMonitor",
    "TooSmallError",
    "open",
    "wait_for_one",
]
