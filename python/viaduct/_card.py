# SPDX-License-Identifier: Apache-2.0
"""Cards, slots and mappings as objects."""

import atexit
import contextlib
import ctypes as c
import errno
import fcntl
import functools
import io
import itertools
import math
import mmap
import operator
import os
import re
import stat
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from collections.abc import Mapping as MappingOf
from concurrent.futures import Future
from dataclasses import dataclass
from types import GeneratorType, TracebackType
from typing import Any, Protocol, Self, TypeGuard, TypeVar, cast

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._library import (
    ArgumentError,
    BusyError,
    ClosedError,
    Error,
    FileError,
    NotFoundError,
    OutOfMemoryError,
    library,
    text,
)

PAGE = 4096  # bytes of a page of the card, whatever the machine has
HUGE = 2 << 20  # bytes of a large page of the card

S = TypeVar("S", bound=c.Structure)
T = TypeVar("T")
Array = npt.NDArray[Any]
Bytes = Array | bytes | bytearray | memoryview
"""Memory: any NumPy array without Python objects in it, or bytes."""


class HasFileno(Protocol):
    """An open file, pipe or socket."""

    def fileno(self) -> int: ...


Endpoint = str | os.PathLike[str] | HasFileno
"""A path object; text as on the command line: `file:PATH`, `-`, `fd:NUMBER`, `card:ADDRESS+LENGTH`; or an object with a
descriptor, which is read or written from its position (data buffered by Python is not seen), and stays open."""


@dataclass(frozen=True)
class CardInfo:
    """Properties of a card."""

    version: tuple[int, int]  # of the register map
    slots: int
    channels: int  # of DRAM
    streams: int  # input streams of a slot, and output streams of a slot
    data_bytes: int  # bytes in a beat of every data path
    clock_khz: int  # of the card; times are in cycles of this clock
    channel_mib: int
    tlb_page: tuple[int, int]  # TLB entries of a slot for 4 KiB pages: ways, sets
    tlb_huge: tuple[int, int]  # the same for 2 MiB pages


@dataclass(frozen=True)
class PortInfo:
    """A stream or memory port of an app."""

    name: str
    direction: str  # "in", "out" or "memory"
    length: (
        int | str | None
    )  # of an output: bytes per message, "same" as its input, or None: not known in advance


@dataclass(frozen=True)
class RegisterInfo:
    """A register of an app."""

    name: str
    offset: int  # in the slot's register window, in bytes
    width: int  # in bits
    access: str  # "rw", "ro" or "pulse"
    required: bool


@dataclass(frozen=True)
class Progress:
    """Progress of a run."""

    bytes_in: int
    total_in: int  # 0 while the length of an input is unknown
    bytes_out: int
    cycles: int


@dataclass(frozen=True)
class Report:
    """Results of a run. Cycles are the card's; beats are those of this slot."""

    bytes_in: int
    bytes_out: int
    cycles: int
    beats_in: int
    beats_out: int
    memory_read_beats: int
    memory_write_beats: int
    misses: int
    denied: int
    lengths: MappingOf[str, int]  # bytes written to each buffer


@dataclass(frozen=True)
class PagerStats:
    """What the pager has done for a slot."""

    faults: int  # served
    remapped: int  # of these, on pages that were on the card
    pages_in: int  # loaded
    pages_out: int  # written back
    evicted: int
    denied: int  # accesses
    damaged: int  # entries of the page table in card memory
    overflowed: int  # pages that stayed in host memory, since card memory was full
    demoted: int  # blocks of 2 MiB that got pages of 4 KiB
    promoted: int  # blocks that got a page of 2 MiB again


def _report(raw: lib.ReportStruct, lengths: MappingOf[str, int]) -> Report:
    return Report(**{name: getattr(raw, name) for name, *_ in lib.ReportStruct._fields_}, lengths=lengths)


class _Native:
    """An object of the library and its parent. Closed by `close`, or when its Python object is dropped.

    Objects that refer to each other may be dropped in any order: a parent is closed with the last of its children.
    """

    def __init__(self, closing: Callable[[], None], name: str, parent: "_Native | None") -> None:
        self.closing = closing
        self.name = name
        self.parent = parent
        self.process = os.getpid()
        self.users = 0
        self.open = True
        self.dropped = False
        if parent is not None:
            parent.users += 1

    def is_ours(self) -> bool:
        """Whether this process opened it, and not its parent."""
        return self.process == os.getpid()

    def close(self) -> None:
        """As `_Handle.close`."""
        if not self.open:
            return
        if self.is_ours():
            if self.users > 0:
                what = self.name.removeprefix("viaduct.").lower()
                raise BusyError(-4, f"this {what} is in use: close what was opened on it")
            try:
                self.closing()
            except BusyError:
                raise
            except BaseException:
                self._closed()
                raise
        self._closed()

    def _closed(self) -> None:
        self.open = False
        if self.parent is not None:
            self.parent.users -= 1
            if self.parent.dropped:
                self.parent.drop()

    def drop(self) -> None:
        """Called when the last reference to the object is gone, or the interpreter ends."""
        if not self.open:
            return
        told, self.dropped = self.dropped, True
        try:
            if not told and self.is_ours():
                warnings.warn(f"unclosed {self.name}", ResourceWarning, stacklevel=2)
        finally:
            if self.users == 0:
                # Errors cannot be reported here. Busy: another thread is in a call on it, at the interpreter's end.
                with contextlib.suppress(Error):
                    self.close()


class _Handle:
    """An open object of the library, closed with `with` or close()."""

    def __init__(self, closing: Callable[[], None], opened_on: "_Handle | None") -> None:
        self._opened_on = opened_on
        parent = opened_on._native if opened_on is not None else None
        self._native = _Native(closing, f"viaduct.{type(self).__name__}", parent)
        # Also at the interpreter's end, and then in reverse order of opening.
        self._dropped = weakref.finalize(self, self._native.drop)

    def close(self) -> None:
        """Closes the object; does nothing if it is closed. BusyError: an object opened on it is still open.

        In a child of `os.fork()` the parent's object is not affected.
        """
        self._native.close()
        self._dropped.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


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
        _milliseconds(what, value) for what, value in [("stall", stall), ("busy", busy), ("control", control)]
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


def _milliseconds(what: str, seconds: float | None) -> int:
    """0 means the default, so a given time becomes at least 1."""
    if seconds is None:
        return 0
    if not 0 < seconds < 2**32 / 1000:
        raise ArgumentError(-1, f"{what} is {seconds} seconds; give more than 0 and less than 49 days")
    return max(1, int(seconds * 1000))


class Card(_Handle):
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
        index = lib.ANY_SLOT if slot is None else _in_range("slot", slot, 0, 2**31)
        library.call("load", self._handle, index, text(app), c.byref(handle))
        return Slot(handle, self)


def _in_range(what: str, value: int, low: int, end: int) -> int:
    """An integer in the range of its C type; ctypes would truncate it."""
    number = operator.index(value)
    if not low <= number < end:
        raise ArgumentError(-1, f"{what} is {number}; it must be {low} to {end - 1}")
    return number


class Slot(_Handle):
    """A slot with an app in it; made by `Card.load`."""

    def __init__(self, handle: c.c_void_p, card: Card) -> None:
        super().__init__(lambda: library.call("unload", handle), card)
        self._handle = handle
        self._begun = {
            "streams": _Begun("viaduct-streams", stops=True),
            "memory": _Begun("viaduct-memory", stops=True),
            "mappings": _Begun("viaduct-mappings", stops=False),
        }
        self._mapped: weakref.WeakSet[_Parts] = weakref.WeakSet()
        index = c.c_uint32()
        library.call("slot_index", handle, index)
        self.index: int = index.value
        """Number of the slot on its card."""
        self.ports = {(p.direction, p.name): p for p in self._list("get_port", lib.Port, _port)}
        """Streams and memory port of the app, by direction and name."""
        self.registers = {r.name: r for r in self._list("get_register", lib.Register, _register)}
        """Registers of the app, by name."""
        self.report: Report | None = None
        """Results of the last run."""

    def _list(self, function: str, struct: Callable[[], S], convert: Callable[[S], T]) -> Iterator[T]:
        for index in itertools.count():
            raw = struct()
            try:
                library.call(function, self._handle, index, c.byref(raw))
            except NotFoundError:
                return
            yield convert(raw)

    def set(self, /, **values: int | str | bytes) -> None:
        """Sets registers: a number, text as for `--set` of the command line, or bytes, lowest first."""
        for name, value in values.items():
            if isinstance(value, str):
                library.call("set", self._handle, text(name), text(value))
                continue
            data = value if isinstance(value, bytes) else self._encode(name, value)
            library.call("set_bytes", self._handle, text(name), data, len(data))

    def _encode(self, name: str, value: int) -> bytes:
        register = self.registers.get(name)
        if register is None:
            return b""  # the library's error names the registers
        number = _in_range(f"register {name}", value, 0, 1 << register.width)
        return number.to_bytes((register.width + 7) // 8, "little")

    def get_bytes(self, name: str) -> bytes:
        """Reads a register, lowest byte first."""
        room = (self.registers[name].width + 7) // 8 if name in self.registers else 0
        data = c.create_string_buffer(room)
        library.call("get_bytes", self._handle, text(name), data, room, None)
        return data.raw

    def get(self, name: str) -> int:
        """Reads a register as a number."""
        return int.from_bytes(self.get_bytes(name), "little")

    def read32(self, offset: int) -> int:
        """Reads 32 bits at a byte offset of the slot's register window."""
        value = c.c_uint32()
        library.call("read32", self._handle, _in_range("offset", offset, 0, 2**32), value)
        return value.value

    def write32(self, offset: int, value: int) -> None:
        """Writes 32 bits at a byte offset of the slot's register window."""
        offset = _in_range("offset", offset, 0, 2**32)
        library.call("write32", self._handle, offset, _in_range("value", value, 0, 2**32))

    def run(
        self,
        data: Bytes | Endpoint | None = None,
        *,
        progress: Callable[[Progress], None] | None = None,
        chunk: int = 0,
    ) -> Array:
        """Sends `data` through an app with one output and at most one input; returns the output.

        If the app's output is as long as its input and `data` is an array, the result has its type and
        shape; else it is a one-dimensional array of bytes. The result is not copied: it is the library's
        buffer. `report` has the results of the run.
        """
        inputs, outputs = self._names("in"), self._names("out")
        if len(outputs) != 1 or len(inputs) != (data is not None):
            raise ArgumentError(
                -1,
                f"the app has inputs {inputs} and outputs {outputs}; run() serves one output and the one "
                "input that it is given, transfer() the others",
            )
        routes = _Routes()
        if data is not None:
            routes.add_input(inputs[0], data)
        routes.add(outputs[0], lib.OUT, capacity=lib.ALLOCATE)
        self._run(routes, progress, chunk, durable=False)
        made = _adopt(routes.routes[-1])
        same = self.ports["out", outputs[0]].length == "same"
        if same and isinstance(data, np.ndarray) and data.nbytes == made.nbytes:
            return made.view(data.dtype).reshape(data.shape)
        return made

    def transfer(
        self,
        inputs: MappingOf[str, Bytes | Endpoint],
        outputs: MappingOf[str, Array | Endpoint],
        *,
        progress: Callable[[Progress], None] | None = None,
        chunk: int = 0,
        durable: bool = False,
    ) -> Report:
        """Sends data through any app: maps each stream's name to its file or memory.

        Outputs into memory need writable, contiguous arrays. `chunk` is the number of bytes moved by one
        command (0: the library's default), `durable` waits until output files are on stable storage.
        """
        routes = _Routes()
        for name, source in inputs.items():
            routes.add_input(name, source)
        for name, sink in outputs.items():
            routes.add_output(name, sink)
        return self._run(routes, progress, chunk, durable)

    def run_async(
        self,
        data: Bytes | Endpoint | None = None,
        *,
        progress: Callable[[Progress], None] | None = None,
        chunk: int = 0,
    ) -> "Future[Array]":
        """Begins `run`, whose data must stay as it is meanwhile; one run begins when the one before has ended. `progress` is
        called on its thread. Until all of them have ended the other methods that run the app raise BusyError. A run is
        stopped by an exception in `progress`, by an exception that leaves the `with` of the slot, and at the end of the
        program."""
        return self._begun["streams"].begin(lambda: self.run(data, progress=progress, chunk=chunk))

    def transfer_async(
        self,
        inputs: MappingOf[str, Bytes | Endpoint],
        outputs: MappingOf[str, Array | Endpoint],
        *,
        progress: Callable[[Progress], None] | None = None,
        chunk: int = 0,
        durable: bool = False,
    ) -> "Future[Report]":
        """Begins `transfer`, as `run_async` begins `run`."""
        return self._begun["streams"].begin(
            lambda: self.transfer(inputs, outputs, progress=progress, chunk=chunk, durable=durable)
        )

    def _names(self, direction: str) -> list[str]:
        return [name for way, name in self.ports if way == direction]

    def _run(
        self, routes: "_Routes", progress: Callable[[Progress], None] | None, chunk: int, durable: bool
    ) -> Report:
        self._begun["streams"].check_turn()
        watch = _Watch(progress)
        options = watch.options(chunk_bytes=_in_range("chunk", chunk, 0, 2**64), durable=durable)
        array = (lib.Route * len(routes.routes))(*routes.routes)
        raw = lib.ReportStruct()
        try:
            with watch:
                library.call("run", self._handle, array, len(array), options, raw)
        except BaseException:
            # The run may have ended before it could be stopped.
            for route in array:
                if route.capacity == lib.ALLOCATE:
                    library.call("free", route.data)
            raise
        routes.routes = list(array)
        lengths = {name: r.length for name, r in zip(routes.names, array, strict=True) if _is_buffer(r)}
        self.report = _report(raw, lengths)
        return self.report

    def map(
        self,
        source: "Bytes | os.PathLike[str] | HasFileno | None" = None,
        *,
        read: bool = True,
        write: bool = False,
        private: bool = False,
        offset: int = 0,
        length: int = 0,
        create: bool = False,
        on_host: bool = False,
        huge: bool | None = None,
        address: int | None = None,
        fixed: bool = False,
    ) -> "Mapping":
        """Maps a file or memory into the app's address space; `read` and `write` are what the app may do.

        `source` is a path object, an open file, an array or bytes, or None for `length` zero bytes. What the app
        writes is in the file after `sync` and `close` of the mapping; an array is changed by them. With `private`
        it is seen through this mapping only and never written. `offset` (a multiple of 4096) and `length` choose a
        part of a file. `create` creates the file, of `length` bytes; if the mapping is refused, an existing one stays as it
        is. `on_host` leaves the pages in host memory;
        `huge` selects pages of 2 MiB or 4 KiB instead of a choice by length. `address` is a hint, or with `fixed` a
        demand: then whatever is mapped in the range is unmapped first, and older mappings have only what is left. A pipe, FIFO or stream socket, with `length`,
        is read in order as the app accesses its pages; with `read=False, write=True` it is written in order: what the
        app writes is sent by `sync`, `close`, and `unmap` of a part that ends with the last byte, and while the app
        runs once it is half of 1 MiB behind.
        """
        flags = lib.MAP_HOST * on_host + lib.MAP_FIXED * fixed
        flags += mmap.MAP_PRIVATE if private else mmap.MAP_SHARED
        if huge is not None:
            flags += lib.MAP_HUGETLB if huge else lib.MAP_SMALL
        length, offset = _in_range("length", length, 0, 2**63), _in_range("offset", offset, 0, 2**63)
        va = 0 if address is None else _in_range("address", address, 0, 2**64)
        array = None
        created = None
        with contextlib.ExitStack() as opened:
            if isinstance(source, os.PathLike) and create:
                created = _Created(source, length)
                opened.callback(created.close)
                created.extend()
                fd = created.fd
            elif isinstance(source, os.PathLike):
                fd = _open_file(source, write and not private)
                opened.callback(os.close, fd)
            elif hasattr(source, "fileno"):
                fd = cast("HasFileno", source).fileno()
            else:
                array, fd = _in_memory(cast("Bytes | None", source), write, length)
                opened.callback(os.close, fd)
            length = length or _rest(fd, offset)
            prot = mmap.PROT_READ * read + mmap.PROT_WRITE * write
            va = library.posix("mmap", self._handle, va, length, prot, flags, fd, offset)
            if fixed:
                # Of a mapping with pages of 2 MiB, the whole last one.
                large = length >= HUGE and va % HUGE == 0 if huge is None else huge
                large = large and stat.S_ISREG(os.fstat(fd).st_mode)
                step = HUGE if large else PAGE
                for older in list(self._mapped):
                    older.lose(va, va + -(-length // step) * step)
            try:
                if created is not None:
                    created.empty()
                view = None if private else _view(fd, offset, length)
            except BaseException:
                library.posix("munmap", self._handle, va, length)
                raise
        return Mapping(self, va, length, view, array if write and not private else None)

    @property
    def pager(self) -> PagerStats:
        """What the pager has done for the slot so far."""
        raw = lib.Pager()
        library.call("get_pager", self._handle, raw)
        return PagerStats(**{name: getattr(raw, name) for name, *_ in lib.Pager._fields_})

    def limit_frames(self, size: int | None) -> None:
        """Limits the card memory that the slot's pages hold, in bytes; None: no limit."""
        library.call("set_frames", self._handle, 0 if size is None else _in_range("size", size, 1, 2**64))

    def limit_host_frames(self, size: int | None) -> None:
        """Limits the host memory for pages that advice "random" leaves there while card memory is full, in bytes; None: no limit."""
        library.call(
            "set_host_frames", self._handle, 2**64 - 1 if size is None else _in_range("size", size, 0, 2**64)
        )

    def place(self, channels: Iterable[int] | None) -> None:
        """The channels of card memory that pages of mappings made from now on are in; None: the slot's share, which is all of them while
        no other slot has mappings."""
        mask = 0
        for channel in channels if channels is not None else ():
            mask |= 1 << _in_range("channel", channel, 0, 32)
        if channels is not None and not mask:
            raise ArgumentError(-1, "channels is empty; give at least one, or None for the slot's share")
        library.call("set_channels", self._handle, mask)

    @property
    def irqs(self) -> int:
        """How often the app has raised its interrupt, as far as the library has seen."""
        irqs = c.c_uint64()
        library.call("get_irqs", self._handle, irqs)
        return irqs.value

    def close(self) -> None:
        """As `_Handle.close`, when what was begun has ended."""
        if self._native.is_ours():
            for begun in self._begun.values():
                begun.wait()
        super().close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes it. If an exception leaves the `with`, runs that go on are stopped: nobody waits for them."""
        if kind is not None and self._native.is_ours():
            for begun in self._begun.values():
                begun.stop()
        self.close()

    def start_and_wait(self, mapping: "Mapping | None" = None, *, limit: float | None = None) -> Report:
        """Runs an app that works through its memory port, on a mapping, until it is done.

        Without a mapping, the registers with the location of the app's data must be set. `limit` is the
        longest time in seconds; without it the run may last as long as the app shows activity.
        """
        raw = lib.ReportStruct()
        if mapping is not None and mapping.slot is not self:
            raise ArgumentError(-1, "this mapping belongs to another slot")
        va, length = (mapping.va, len(mapping)) if mapping is not None else (0, 0)
        self._begun["memory"].check_turn()
        watch = _Watch(None)
        with watch:
            limit_ms = _milliseconds("limit", limit)
            library.call("start_and_wait", self._handle, va, length, limit_ms, watch.options(), raw)
        self.report = _report(raw, {})
        return self.report

    def start_and_wait_async(
        self, mapping: "Mapping | None" = None, *, limit: float | None = None
    ) -> "Future[Report]":
        """Begins `start_and_wait`; one run begins when the one before has ended. It is stopped as `run_async` says."""
        return self._begun["memory"].begin(lambda: self.start_and_wait(mapping, limit=limit))


def wait_for_one(slots: MappingOf[Slot, int], timeout: float = math.inf) -> Slot:
    """Waits until the app of one of these slots, of one card, has raised its interrupt more often than `slots` says, and returns
    that slot. One thread works with several slots so: it serves the page faults of all meanwhile, which nothing else does if the
    apps were started by their registers. TimeoutError: it has not come within `timeout` seconds.

    >>> seen = {slot: slot.irqs for slot in slots}
    >>> for slot in slots:
    ...     slot.set(start=1)
    >>> while seen:
    ...     del seen[viaduct.wait_for_one(seen, timeout=60)]
    """
    if not timeout >= 0:
        raise ArgumentError(-1, f"timeout is {timeout} seconds; give 0 or more")
    listed = list(slots)
    counts = (_in_range("irqs", count, 0, 2**64) for count in slots.values())
    awaited = (lib.Awaited * len(listed))(
        *((slot._handle.value, count) for slot, count in zip(listed, counts, strict=True))
    )
    end = time.monotonic() + timeout
    while True:
        # In pieces, so that a keyboard interrupt ends the wait.
        piece = min(max(0.0, end - time.monotonic()), 0.1)
        try:
            return listed[library.posix("wait_for_one", awaited, len(listed), int(piece * 1000))]
        except ArgumentError:
            if c.get_errno() != errno.ETIMEDOUT:
                raise
        if time.monotonic() >= end:
            raise TimeoutError(f"no app has raised its interrupt within {timeout} seconds")


class Mapping(_Handle):
    """A file or memory in the address space of a slot; made by `Slot.map`.

    `array` is the program's view of the file's bytes. What the app has written is in it once `sync` or `close` has
    returned. What the program writes to it the app sees on pages that are not on the card; `sync(invalidate=True)`
    removes them from there. App and program must not change one page at the same time: pages are written whole.

    The methods that end with `_async` return a `concurrent.futures.Future`; `asyncio.wrap_future` makes it awaitable.
    """

    def __init__(self, slot: Slot, va: int, length: int, view: mmap.mmap | None, array: Array | None) -> None:
        def copy_back() -> None:
            if array is not None and view is not None:
                array.reshape(-1).view(np.uint8)[:length] = np.frombuffer(view, np.uint8, length)

        # Without `self`, which would never be dropped otherwise.
        parts = _Parts(slot._handle, va, length)
        slot._mapped.add(parts)

        def unmap() -> None:
            with contextlib.ExitStack() as rest:
                rest.callback(copy_back)
                for start, end in parts.mapped(0, length):
                    rest.callback(parts.call, "munmap", start, end - start)

        super().__init__(unmap, slot)
        self.slot = slot
        self._va = va
        self._length = length
        self._parts = parts
        self._view = view
        self._copy_back = copy_back

    @property
    def va(self) -> int:
        """Address of the first byte, as the app sees it."""
        self._check()
        return self._va

    @property
    def array(self) -> npt.NDArray[np.uint8]:
        """The bytes of the file, as far as they existed when it was mapped; writable if the file is open for writing. It
        remains valid when the mapping is closed. If the file is truncated, access to what is cut off ends the
        program with SIGBUS, as with any mapped file."""
        if self._view is None:
            raise ArgumentError(
                -1, "there is no view: the mapping is private, or its part of the file is empty"
            )
        return np.frombuffer(self._view, np.uint8)

    def __len__(self) -> int:
        """Bytes mapped."""
        self._check()
        return self._length

    def sync(
        self, start: int = 0, length: int | None = None, *, durable: bool = False, invalidate: bool = False
    ) -> None:
        """Writes the app's changes to the file; they are there when it returns. `durable`: on stable storage.
        `invalidate`: the app sees from now on what is in the file. `start` (a multiple of 4096) and `length`
        choose a part; without `length`, what has been unmapped is left out."""
        flags = (lib.MS_SYNC if durable else lib.MS_ASYNC) | lib.MS_INVALIDATE * invalidate
        start, size = self._part(start, length)
        if length is not None:
            self._parts.check(start, size)
        whole = [(start, start + size)]
        for begin, end in self._parts.mapped(start, start + size) if length is None else whole:
            self._parts.call("msync", begin, end - begin, flags)
        self._copy_back()

    def madvise(self, advice: str, start: int = 0, length: int | None = None) -> None:
        """Says how the app will use the mapping or a part of it: "normal", "sequential", "random", "willneed" (loads),
        "dontneed" (writes back and frees), "reuse" (stays longer than others), "lowuse" (leaves before others)."""
        if advice not in lib.ADVICE:
            raise ArgumentError(-1, f"advice is {advice!r}; there are {', '.join(lib.ADVICE)}")
        start, size = self._part(start, length)
        self._parts.check(start, size)
        self._parts.call("madvise", start, size, lib.ADVICE[advice])

    def unmap(self, start: int, length: int) -> None:
        """Removes a part of the mapping: the app cannot access it any more, and its changes are in the file."""
        self._parts.unmap(*self._part(start, length))

    def sync_async(
        self, start: int = 0, length: int | None = None, *, durable: bool = False, invalidate: bool = False
    ) -> "Future[None]":
        """Begins `sync`."""
        return self.slot._begun["mappings"].begin(
            lambda: self.sync(start, length, durable=durable, invalidate=invalidate)
        )

    def madvise_async(self, advice: str, start: int = 0, length: int | None = None) -> "Future[None]":
        """Begins `madvise`."""
        return self.slot._begun["mappings"].begin(lambda: self.madvise(advice, start, length))

    def unmap_async(self, start: int, length: int) -> "Future[None]":
        """Begins `unmap`."""
        return self.slot._begun["mappings"].begin(lambda: self.unmap(start, length))

    def close_async(self) -> "Future[None]":
        """Begins `close`."""
        return self.slot._begun["mappings"].begin(self.close)

    def _check(self) -> None:
        if not self._native.open:
            raise ClosedError(-2, "this mapping is closed")
        if self._parts.replaced():
            raise ClosedError(-2, "another mapping has replaced this one; use that, or close this one")

    def _part(self, start: int, length: int | None) -> tuple[int, int]:
        self._check()
        start = _in_range("start", start, 0, self._length)
        if length is None:
            length = self._length - start
        return start, _in_range("length", length, 0, self._length - start + 1)


class _Parts:
    """Addresses of a mapping, and what of it is still mapped. What was mapped there since belongs to others."""

    def __init__(self, slot: c.c_void_p, va: int, length: int) -> None:
        self._slot = slot
        self._va = va
        self._length = length
        self._gone: list[tuple[int, int]] = []
        self._lost = False

    def unmap(self, start: int, length: int) -> None:
        """Removes what is still mapped of a part; whole pages are gone then."""
        left = list(self.mapped(start, start + length))
        for begin, end in left if length else [(start, start)]:
            self.call("munmap", begin, end - begin)
        self._gone = sorted([*self._gone, (start, start + -(-length // PAGE) * PAGE)])

    def lose(self, start: int, end: int) -> None:
        """Another mapping has replaced what was in a range of addresses."""
        start, end = max(start - self._va, 0), min(end - self._va, -(-self._length // PAGE) * PAGE)
        if start < end:
            self._gone = sorted([*self._gone, (start, end)])
            self._lost = True

    def replaced(self) -> bool:
        """Whether nothing is left of it, and others have replaced some of it."""
        return self._lost and not any(self.mapped(0, self._length))

    def check(self, start: int, length: int) -> None:
        """Raises unless all of a part is still mapped."""
        at = start
        for begin, end in self.mapped(start, start + length):
            if begin > at:
                break
            at = end
        if at < start + length:
            raise ArgumentError(
                -1,
                f"nothing is mapped at byte {at} of the mapping; it was unmapped, or replaced by another mapping",
            )

    def mapped(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Of a part, what is still mapped."""
        for begin, after in [*self._gone, (end, end)]:
            if start < min(begin, end):
                yield start, min(begin, end)
            start = max(start, after)

    def call(self, function: str, start: int, length: int, *rest: int) -> None:
        """Calls a function of POSIX on a part. An error names places in the mapping instead of addresses of the app."""
        try:
            library.posix(function, self._slot, self._va + start, length, *rest)
        except Error as error:

            def place(address: re.Match[str]) -> str:
                at = int(address[0], 16) - self._va
                return f"byte {at} of the mapping" if 0 <= at <= self._length else address[0]

            error.args = (re.sub("0x[0-9a-f]+", place, str(error)),)
            raise


def _open_file(path: os.PathLike[str], write: bool) -> int:
    """Opens a file."""
    flags = os.O_CLOEXEC | os.O_NONBLOCK | (os.O_RDWR if write else os.O_RDONLY)
    doing = "open it for writing" if write else "open it"
    text(path)
    try:
        if write and stat.S_ISFIFO(os.stat(path).st_mode):
            # Open for reading too, it would never be without a reader.
            flags = os.O_CLOEXEC | os.O_NONBLOCK | os.O_WRONLY
            doing = "open it for writing (it needs a reader first)"
        return os.open(path, flags)
    except OSError as error:
        raise _file_error(path, doing, error) from None


def _file_error(path: os.PathLike[str], doing: str, error: OSError) -> FileError:
    name = os.fspath(path)
    return FileError(-6, f"{name}: cannot {doing}: {error.strerror}", error.errno or errno.EIO, name)


class _Created:
    """A file that is created, of a length. An earlier one of the name stays as it is, and a new one goes, unless `empty` is called."""

    def __init__(self, path: os.PathLike[str], length: int) -> None:
        text(path)
        if length == 0:
            raise ArgumentError(-1, "length is 0; give the length of the file to be created")
        self._path = path
        self._length = length
        flags = os.O_CLOEXEC | os.O_NONBLOCK | os.O_RDWR
        try:
            try:
                self.fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
                self._before = None
            except FileExistsError:
                # Not exclusive: it may be a link to a file that is not there.
                self.fd = os.open(path, flags | os.O_CREAT, 0o666)
                self._before = os.fstat(self.fd).st_size
        except OSError as error:
            raise _file_error(path, "create it", error) from None
        self._kept = False

    def extend(self) -> None:
        """Makes it at least as long as it is to be, so that it can be mapped."""
        if (self._before or 0) < self._length:
            self._truncate(self._length)

    def empty(self) -> None:
        """Makes all of it zeros."""
        self._kept = True
        self._truncate(0)
        self._truncate(self._length)

    def _truncate(self, length: int) -> None:
        try:
            os.ftruncate(self.fd, length)
        except OSError as error:
            raise _file_error(self._path, "set its length", error) from None

    def close(self) -> None:
        """Closes it."""
        try:
            if self._kept:
                return
            if self._before is None:
                os.unlink(self._path)
            elif self._before < self._length:
                os.ftruncate(self.fd, self._before)
        except OSError:
            pass  # What has failed is told; that it could not be undone is less.
        finally:
            os.close(self.fd)


def _in_memory(source: Bytes | None, write: bool, length: int) -> tuple[Array | None, int]:
    """A file in memory with the bytes of an array, or zeros."""
    array = None
    if source is not None:
        array = _writable(source) if write else _readable(source)
        if length > array.nbytes:
            raise ArgumentError(-1, f"{length} bytes are to be mapped, the buffer has {array.nbytes}")
        length = length or array.nbytes
    if length == 0:
        raise ArgumentError(-1, "length is 0; at least one byte is mapped")
    fd = os.memfd_create("viaduct")
    try:
        os.ftruncate(fd, length)
        if array is not None:
            view = mmap.mmap(fd, length)
            np.frombuffer(view, np.uint8)[:] = array.reshape(-1).view(np.uint8)[:length]
    except OSError as error:
        os.close(fd)
        raise OutOfMemoryError(-10, f"not enough host memory for {length} bytes: {error.strerror}") from None
    except BaseException:
        os.close(fd)
        raise
    return array, fd


def _rest(fd: int, offset: int) -> int:
    """Bytes of a file from `offset` on. Of what is no file it is one: the library says why it cannot be mapped."""
    info = os.fstat(fd)
    if stat.S_ISFIFO(info.st_mode) or stat.S_ISSOCK(info.st_mode):
        raise ArgumentError(
            -1, "a pipe or socket has no length yet; give length=, as much as the app may read"
        )
    return max(0, info.st_size - offset) if stat.S_ISREG(info.st_mode) else 1


def _view(fd: int, offset: int, length: int) -> mmap.mmap | None:
    """The program's own mapping of the file, as far as it goes."""
    there = min(length, os.fstat(fd).st_size - offset)
    if there <= 0:
        return None
    writable = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
    prot = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    return mmap.mmap(fd, there, flags=mmap.MAP_SHARED, prot=prot, offset=offset)


class _Begun:
    """Work of one kind that was begun, done in order on a thread that exists only while there is any."""

    def __init__(self, name: str, *, stops: bool) -> None:
        self._name = name
        self._stops = stops
        self._lock = threading.Lock()
        self._left: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._thread: threading.Thread | None = None

    def begin(self, work: Callable[[], T]) -> "Future[T]":
        """Does `work` after all that was begun before."""
        future: Future[T] = Future()
        with self._lock:
            if self._thread is None:
                # The program's end waits for what ends by itself; a run is stopped then.
                thread = threading.Thread(target=self._do, name=self._name, daemon=self._stops)
                thread.start()
                self._thread = thread
            self._left.append((future, work))
        return future

    def _do(self) -> None:
        while True:
            with self._lock:
                if not self._left:
                    self._thread = None
                    return
                future, work = self._left[0]
            tell = _outcome(future, work) if future.set_running_or_notify_cancel() else None
            # Who is told finds the slot free.
            with self._lock:
                self._left.popleft()
            if tell is not None:
                tell()
            del future, work, tell

    def check_turn(self) -> None:
        """Raises BusyError if something was begun and has not ended, unless it is that which asks."""
        if self._left and self._thread is not threading.current_thread():
            raise BusyError(-4, "a run is running on this slot already; wait for its end")

    def wait(self) -> None:
        """Waits until all has ended."""
        while (thread := self._thread) is not None:
            thread.join()

    def stop(self) -> None:
        """Waits, and stops what can be stopped. What waits for its turn is not begun."""
        if not self._stops:
            return self.wait()
        while (thread := self._thread) is not None:
            for future, _ in self._left.copy():
                future.cancel()
            # Again and again: it may be about to begin.
            _runs.stop_in(thread)
            thread.join(0.1)


def _outcome(future: "Future[T]", work: Callable[[], T]) -> Callable[[], None]:
    """Does `work`; returns what tells its result."""
    try:
        result = work()
    except BaseException as error:
        return functools.partial(future.set_exception, error)
    return functools.partial(future.set_result, result)


class _Runs:
    """The runs that go on in this process, by the thread that is in the call.

    During such a call the library calls Python ten times a second. The interpreter ends a thread that comes back to it once it is
    being finalised, which must not happen below a call of the library. So all runs are stopped before, and none begins then.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """In a child of fork() there are no other threads."""
        self._watches: dict[_Watch, threading.Thread] = {}
        self._last: threading.Thread | None = None  # the thread that ends the program

    def begin(self, watch: "_Watch") -> None:
        """A run is about to begin in this thread."""
        # In this order: either it is stopped, or it does not begin.
        self._watches[watch] = threading.current_thread()
        if self.is_ending():
            self.end(watch)
            raise SystemExit

    def end(self, watch: "_Watch") -> None:
        """It has ended."""
        self._watches.pop(watch, None)

    def is_ending(self) -> bool:
        """Whether the program ends, and not in this thread. A thread that is told so ends silently, by SystemExit."""
        return self._last is not None and self._last is not threading.current_thread()

    def stop_in(self, thread: threading.Thread) -> None:
        """Stops the run of a thread, if there is one."""
        for watch, where in self._watches.copy().items():
            if where is thread:
                watch.stop()

    def stop_all(self) -> None:
        """Stops all runs in other threads, and waits until the threads are back in Python. It does not wait for ever for a
        `progress` that does not return."""
        self._last = threading.current_thread()
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            others = {thread for thread in self._watches.copy().values() if thread is not self._last}
            if not others:
                return
            for thread in others:
                self.stop_in(thread)
            time.sleep(0.01)


_runs = _Runs()
# Functions are called in reverse order: runs are stopped before objects are closed, which finalizers do.
weakref.finalize(_runs, lambda: None)
atexit.register(_runs.stop_all)
os.register_at_fork(after_in_child=_runs.reset)


class _Watch:
    """Reports a run's progress and stops the run at an exception: one of `progress`, or KeyboardInterrupt.

    A signal is noticed when Python code runs again, which the library causes ten times a second. Its exception may be
    raised at the first instruction of that code; in a function this would be before any `try`. Therefore the code is
    a generator suspended inside a `try`, called without a Python function in between.
    """

    def __init__(self, progress: Callable[[Progress], None] | None) -> None:
        self._progress = progress
        self._raised: BaseException | None = None
        self._stopped = False
        self._told = self._tell()
        next(self._told)
        self._function = lib.ProgressFn(GeneratorType.send)

    def options(self, **fields: int) -> lib.RunOptions:
        """Options of the run; valid while this object exists."""
        return lib.RunOptions(progress=self._function, user=id(self._told), **fields)

    def stop(self) -> None:
        """Stops the run within a tenth of a second; the call raises StoppedError."""
        self._stopped = True

    def _ends(self) -> bool:
        return self._stopped or self._raised is not None

    def _tell(self) -> Generator[int, Any, None]:
        last = (0, 0, 0, 0)
        while True:
            told = False  # `progress` is being called
            try:
                while True:
                    p = (yield int(self._ends())).contents
                    now = (p.bytes_in, p.total_in, p.bytes_out, p.cycles)
                    if self._progress is not None and not self._ends() and now != last:
                        last = now
                        told = True
                        self._progress(Progress(*now))
                        told = False
            except BaseException as error:
                # That of the generator's close ends it; `progress` may raise one, too.
                if isinstance(error, GeneratorExit) and not told:
                    return
                self._raised = self._raised or error

    def __enter__(self) -> None:
        _runs.begin(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _runs.end(self)
        self._told.close()
        if self._raised is not None:
            raise self._raised from None
        if self._stopped and _runs.is_ending():
            raise SystemExit from None


class _Routes:
    """Routes of a run, and the memory they point to."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.routes: list[lib.Route] = []
        self._alive: list[Array] = []

    def add(self, name: str, direction: int, **fields: object) -> None:
        self.names.append(name)
        self.routes.append(lib.Route(port=text(name), direction=direction, **fields))

    def add_input(self, name: str, source: Bytes | Endpoint) -> None:
        if _is_endpoint(source):
            self.add(name, lib.IN, endpoint=_endpoint(source))
        else:
            self._add_array(name, lib.IN, _readable(cast("Bytes", source)))

    def add_output(self, name: str, sink: Array | Endpoint) -> None:
        if _is_endpoint(sink):
            self.add(name, lib.OUT, endpoint=_endpoint(sink))
        else:
            self._add_array(name, lib.OUT, _writable(sink))

    def _add_array(self, name: str, direction: int, array: Array) -> None:
        self._alive.append(array)
        self.add(name, direction, data=array.ctypes.data, capacity=array.nbytes)


def _is_buffer(route: lib.Route) -> bool:
    return route.direction == lib.OUT and not route.endpoint


def _is_endpoint(what: object) -> TypeGuard[Endpoint]:
    return isinstance(what, str | os.PathLike) or hasattr(what, "fileno")


def _endpoint(where: Endpoint) -> bytes:
    if isinstance(where, str):
        return text(where)
    if isinstance(where, os.PathLike):
        return b"file:" + text(where)
    try:
        return f"fd:{where.fileno()}".encode()
    except io.UnsupportedOperation:
        kind = type(where).__name__
        raise ArgumentError(
            -1, f"this {kind} has no descriptor: give an open file, or the bytes in it"
        ) from None


def _readable(data: Bytes) -> Array:
    """The data as a contiguous array; copied if necessary."""
    try:
        array = np.asarray(data if isinstance(data, np.ndarray) else memoryview(data))
    except TypeError:
        kind = type(data).__name__
        raise TypeError(f"{kind} is not data: give a NumPy array, bytes, a pathlib.Path or a file") from None
    if array.dtype.hasobject:
        raise ArgumentError(-1, "the array holds Python objects, not data")
    return np.ascontiguousarray(array)


def _writable(data: object) -> Array:
    if not isinstance(data, np.ndarray) or not data.flags.c_contiguous or not data.flags.writeable:
        raise ArgumentError(-1, "results need a NumPy array that is writable and contiguous")
    if data.dtype.hasobject:
        raise ArgumentError(-1, "the array holds Python objects, not data")
    return data


def _adopt(route: lib.Route) -> npt.NDArray[np.uint8]:
    """The buffer that the library allocated, released with the last array that refers to it."""
    if not route.data:
        return np.empty(0, np.uint8)
    memory = (c.c_uint8 * route.length).from_address(route.data)
    weakref.finalize(memory, library.call, "free", route.data).atexit = False
    return np.frombuffer(memory, np.uint8)


def _port(raw: lib.Port) -> PortInfo:
    length = {lib.LENGTH_ANY: None, lib.LENGTH_SAME: "same"}.get(raw.length_kind, raw.length)
    return PortInfo(raw.name.decode(), ("in", "out", "memory")[raw.direction], length)


def _register(raw: lib.Register) -> RegisterInfo:
    access = ("rw", "ro", "pulse")[raw.access]
    return RegisterInfo(raw.name.decode(), raw.offset, raw.width, access, bool(raw.required))
