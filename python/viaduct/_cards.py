# SPDX-License-Identifier: Apache-2.0
"""Cards."""

import ctypes as c
import os
import time

from . import _library as lib
from ._handles import Handle, in_range, milliseconds
from ._library import ArgumentError, BusyError, library, text
from ._slots import Slot
from ._values import CardInfo


def open(
    name: str = "sim",
    *,
    stall: float | None = None,
    busy: float | None = None,
    control: float | None = None,
    wait: float = 0,
) -> "Card":
    """Opens a card: "sim", "sim:PROFILE", "unix:PATH" or "vfio:0000:01:00.0".

    `stall`, `busy` and `control` are time-outs in seconds: without any activity of a slot, the same while the app
    reports that it computes, and for loading or draining a slot. While another program uses the card, the call
    waits `wait` seconds (`math.inf`: without limit); after that, BusyError names the program.
    """
    limits = [
        milliseconds(what, value) for what, value in [("stall", stall), ("busy", busy), ("control", control)]
    ]
    if not wait >= 0:
        raise ArgumentError(-1, f"wait is {wait} seconds; give 0 or more")
    end = time.monotonic() + wait
    handle = c.c_void_p()
    while True:
        try:
            library.call("open", text(name), lib.Timeouts(*limits), c.byref(handle))
            return Card(handle)
        except BusyError:
            if time.monotonic() >= end:
                raise
        # Here and not in the library, so that a keyboard interrupt ends the wait.
        time.sleep(0.1)


class Card(Handle):
    """An open card; made by `viaduct.open`."""

    def __init__(self, handle: c.c_void_p) -> None:
        super().__init__(lambda: library.call("close", handle), None)
        self._handle = handle

    @property
    def info(self) -> CardInfo:
        """Properties of the card."""
        raw = lib.Info()
        library.call("get_info", self._handle, raw)
        return CardInfo(
            version=(raw.version_major, raw.version_minor),
            slots=raw.slots,
            channels=raw.channels,
            streams=raw.streams,
            data_bytes=raw.data_bytes,
            clock_khz=raw.clock_khz,
            channel_mib=raw.channel_mib,
            tlb_page=(raw.tlb_page_ways, raw.tlb_page_sets),
            tlb_huge=(raw.tlb_huge_ways, raw.tlb_huge_sets),
        )

    def time(self) -> int:
        """Cycles since power-up."""
        cycles = c.c_uint64()
        library.call("time", self._handle, cycles)
        return cycles.value

    def load(self, app: str | os.PathLike[str], slot: int | None = None) -> "Slot":
        """Loads an app, by name or by the path of its image, into `slot` or the first free one."""
        handle = c.c_void_p()
        index = lib.ANY_SLOT if slot is None else in_range("slot", slot, 0, 2**31)
        library.call("load", self._handle, index, text(app), c.byref(handle))
        return Slot(handle, self)
