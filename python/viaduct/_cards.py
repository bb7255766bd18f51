# SPDX-License-Identifier: Apache-2.0
"""Cards."""

import ctypes as c
import os
import time

from . import _library as lib
from ._handles import Handle, in_range, milliseconds
from ._library import ArgumentError, BusyError, TooSmallError, library, text
from ._memory import Memory
from ._slots import Slot
from ._values import CardInfo, Measured, SystemMonitor


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

    def system_monitor(self) -> SystemMonitor:
        """Reads the FPGA's system monitor. NotFoundError: the board has none.

        On a simulated card the values are those of a model, and `model` is true.
        """
        raw = lib.SystemMonitor()
        library.call("get_system_monitor", self._handle, raw)
        return SystemMonitor(
            model=bool(raw.model),
            temperature=_measured(raw.temperature),
            vccint=_measured(raw.vccint),
            vccaux=_measured(raw.vccaux),
            vccbram=_measured(raw.vccbram),
            current=raw.current if raw.has_current else None,
            power=raw.power if raw.has_current else None,
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

    def claim(self, slot: int | None = None) -> "Slot":
        """Takes `slot` or the first free one without an app, for copies of card memory."""
        handle = c.c_void_p()
        index = lib.ANY_SLOT if slot is None else in_range("slot", slot, 0, 2**31)
        library.call("claim", self._handle, index, c.byref(handle))
        return Slot(handle, self)

    def allocate(self, size: int) -> Memory:
        """Allocates `size` bytes of card memory in one piece; what they contain is not defined."""
        return Memory(self, self._handle, size)

    def route(self, source: "Slot | str", sink: "Slot | str") -> "Route":
        """Lets `sink` take its messages from `source`, on the card, until the value is closed.

        An end is a slot, for its stream 0, or text: "slot:N:STREAM", "board:net", "board:console"; as a source it is
        an output, as a sink an input. A source may have several sinks, a sink has one source. What the sink took
        before ends with its present message; if that takes longer than the time-out `control`, nothing changes, and
        AppError is raised. A run has no route for an input or output that is connected.
        """
        handle = c.c_void_p()
        library.call("connect", self._handle, _end(source), _end(sink), c.byref(handle))
        return Route(handle, self)

    def routes(self) -> list[tuple[str, str]]:
        """Sources and sinks of all routes of the card now, whoever has made them, and of functions attached to slots."""
        room, count = 64, c.c_size_t()
        while True:
            found = (lib.ConnectionInfo * room)()
            try:
                library.call("get_connections", self._handle, found, room, c.byref(count))
            except TooSmallError:
                room = count.value
                continue
            return [(route.source.decode(), route.sink.decode()) for route in found[: count.value]]


def _measured(raw: lib.Measured) -> Measured:
    return Measured(raw.last, raw.min, raw.max)


def _end(end: "Slot | str") -> bytes:
    return text(f"slot:{end.index}" if isinstance(end, Slot) else end)


class Route(Handle):
    """A route of a card; made by `Card.route`. Closing it ends it between two messages.

    It ends with the app at either end, also by a reset, and does not come back.
    """

    def __init__(self, handle: c.c_void_p, card: Card) -> None:
        super().__init__(lambda: library.call("disconnect", handle), card)
        self._handle = handle

    @property
    def in_effect(self) -> bool:
        """Whether the sink takes its messages from the source now."""
        connected = c.c_int()
        library.call("connected", self._handle, connected)
        return connected.value != 0
