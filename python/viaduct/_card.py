# SPDX-License-Identifier: Apache-2.0
"""Cards, slots and mappings as objects."""

import contextlib
import ctypes as c
import io
import itertools
import operator
import os
import time
import warnings
import weakref
from collections.abc import Callable, Generator, Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from types import GeneratorType, TracebackType
from typing import Any, Protocol, Self, TypeGuard, TypeVar, cast

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._library import ArgumentError, BusyError, Error, NotFoundError, library, text

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


def _report(raw: lib.ReportStruct, lengths: MappingOf[str, int]) -> Report:
    return Report(**{name: getattr(raw, name) for name, *_ in lib.ReportStruct._fields_}, lengths=lengths)


class _Native:
    """An object of the library and its parent. Closed by `close`, or when its Python object is dropped.

    Objects that refer to each other may be dropped in any order: a parent is closed with the last of its children.
    """

    def __init__(self, handle: c.c_void_p, closing: str, name: str, parent: "_Native | None") -> None:
        self.handle = handle
        self.closing = closing
        self.name = name
        self.parent = parent
        self.process = os.getpid()
        self.users = 0
        self.array: Array | None = None  # the library writes to it until it is closed
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
            try:
                library.call(self.closing, self.handle)
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

    _closing: str

    def __init__(self, handle: c.c_void_p, opened_on: "_Handle | None") -> None:
        self._handle = handle
        self._opened_on = opened_on
        parent = opened_on._native if opened_on is not None else None
        self._native = _Native(handle, self._closing, f"viaduct.{type(self).__name__}", parent)
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
            return Card(handle, None)
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

    _closing = "close"

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
        raise ArgumentError(-1, f"{what} is {number}; it is at least {low} and below {end}")
    return number


class Slot(_Handle):
    """A slot with an app in it; made by `Card.load`."""

    _closing = "unload"

    def __init__(self, handle: c.c_void_p, card: Card) -> None:
        super().__init__(handle, card)
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

    def _names(self, direction: str) -> list[str]:
        return [name for way, name in self.ports if way == direction]

    def _run(
        self, routes: "_Routes", progress: Callable[[Progress], None] | None, chunk: int, durable: bool
    ) -> Report:
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
        source: Bytes | os.PathLike[str] | None = None,
        *,
        read: bool = True,
        write: bool = False,
        length: int = 0,
        create: bool = False,
        on_host: bool = False,
        huge: bool | None = None,
    ) -> "Mapping":
        """Maps a file or memory into the app's address space; `read` and `write` are what the app may do.

        `source` is a path object, an array or bytes, or None for `length` zero bytes. With `write`, an array
        is changed by `sync` and `close` of the mapping. `create` creates the file, of `length` bytes. `on_host`
        leaves the pages in host memory; `huge` selects pages of 2 MiB or 4 KiB instead of a choice by length.
        """
        flags = lib.MAP_HOST * on_host + lib.MAP_CREATE * create
        if huge is not None:
            flags += lib.MAP_HUGE if huge else lib.MAP_SMALL
        path, array = None, None
        if isinstance(source, os.PathLike):
            path = text(source)
        elif source is not None:
            array = _writable(source) if write else _readable(source)
            length = length or array.nbytes
            if length > array.nbytes:
                raise ArgumentError(-1, f"{length} bytes are to be mapped, the buffer has {array.nbytes}")
        data = array.ctypes.data if array is not None else None
        prot = lib.READ * read + lib.WRITE * write
        length = _in_range("length", length, 0, 2**64)
        handle = c.c_void_p()
        library.call("map", self._handle, path, data, length, prot, flags, c.byref(handle))
        return Mapping(handle, self, array)

    def start_and_wait(self, mapping: "Mapping | None" = None, *, limit: float | None = None) -> Report:
        """Runs an app that works through its memory port, on a mapping, until it is done.

        Without a mapping, the registers with the location of the app's data must be set. `limit` is the
        longest time in seconds; without it the run may last as long as the app shows activity.
        """
        raw = lib.ReportStruct()
        handle = mapping._handle if mapping is not None else None
        watch = _Watch(None)
        with watch:
            limit_ms = _milliseconds("limit", limit)
            library.call("start_and_wait", self._handle, handle, limit_ms, watch.options(), raw)
        self.report = _report(raw, {})
        return self.report


class Mapping(_Handle):
    """A file or memory in the address space of a slot; made by `Slot.map`."""

    _closing = "unmap"

    def __init__(self, handle: c.c_void_p, slot: Slot, array: Array | None) -> None:
        super().__init__(handle, slot)
        self.slot = slot
        self._native.array = array

    @property
    def va(self) -> int:
        """Address of the first byte, as the app sees it."""
        va = c.c_uint64()
        library.call("mapping_va", self._handle, va)
        return va.value

    def __len__(self) -> int:
        """Bytes mapped."""
        length = c.c_uint64()
        library.call("mapping_length", self._handle, length)
        return length.value

    def sync(self, *, durable: bool = False) -> None:
        """Writes the app's changes to the file or array; `durable`: also to the file's stable storage."""
        library.call("sync", self._handle, durable)


class _Watch:
    """Reports a run's progress and stops the run at an exception: one of `progress`, or KeyboardInterrupt.

    A signal is noticed when Python code runs again, which the library causes ten times a second. Its exception may be
    raised at the first instruction of that code; in a function this would be before any `try`. Therefore the code is
    a generator suspended inside a `try`, called without a Python function in between.
    """

    def __init__(self, progress: Callable[[Progress], None] | None) -> None:
        self._progress = progress
        self._raised: BaseException | None = None
        self._told = self._tell()
        next(self._told)
        self._function = lib.ProgressFn(GeneratorType.send)

    def options(self, **fields: int) -> lib.RunOptions:
        """Options of the run; valid while this object exists."""
        return lib.RunOptions(progress=self._function, user=id(self._told), **fields)

    def _tell(self) -> Generator[int, Any, None]:
        last = (0, 0, 0, 0)
        while True:
            try:
                while True:
                    p = (yield int(self._raised is not None)).contents
                    now = (p.bytes_in, p.total_in, p.bytes_out, p.cycles)
                    if self._progress is not None and self._raised is None and now != last:
                        last = now
                        self._progress(Progress(*now))
            except GeneratorExit:
                return
            except BaseException as error:
                self._raised = self._raised or error

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._told.close()
        if self._raised is not None:
            raise self._raised from None


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
        raise TypeError(f"{kind} is not data: give a NumPy array, bytes, or a path or an open file") from None
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
