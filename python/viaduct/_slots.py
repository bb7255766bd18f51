# SPDX-License-Identifier: Apache-2.0
"""Slots and their mappings."""

import contextlib
import ctypes as c
import errno
import itertools
import math
import mmap
import os
import stat
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as MappingOf
from concurrent.futures import Future
from types import TracebackType
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._data import Array, Bytes, Endpoint, HasFileno, Routes, adopt, is_buffer, readable, writable
from ._handles import Handle, in_range, milliseconds
from ._library import ArgumentError, ClosedError, NotFoundError, library, text
from ._mapped import HUGE, PAGE, Created, Parts, in_memory, open_file, rest_of, view_of
from ._memory import Memory, check_array, rows_of
from ._runs import Begun, Watch
from ._values import PagerStats, Progress, Report, port_of, register_of, report_of

S = TypeVar("S", bound=c.Structure)
T = TypeVar("T")


class Slot(Handle):
    """A slot with an app in it; made by `Card.load`."""

    def __init__(self, handle: c.c_void_p, card: Handle) -> None:
        super().__init__(lambda: library.call("unload", handle), card)
        self._handle = handle
        self._begun = {
            "streams": Begun("viaduct-streams", stops=True),
            "memory": Begun("viaduct-memory", stops=True),
            "mappings": Begun("viaduct-mappings", stops=False),
        }
        # Slots with runs in the background that lead through this one.
        self._leads: weakref.WeakSet[Slot] = weakref.WeakSet()
        self._mapped: weakref.WeakSet[Parts] = weakref.WeakSet()
        index = c.c_uint32()
        library.call("slot_index", handle, index)
        self.index: int = index.value
        """Number of the slot on its card."""
        self.ports = {(p.direction, p.name): p for p in self._list("get_port", lib.Port, port_of)}
        """Streams and memory port of the app, by direction and name."""
        self.registers = {r.name: r for r in self._list("get_register", lib.Register, register_of)}
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
        number = in_range(f"register {name}", value, 0, 1 << register.width)
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
        library.call("read32", self._handle, in_range("offset", offset, 0, 2**32), value)
        return value.value

    def write32(self, offset: int, value: int) -> None:
        """Writes 32 bits at a byte offset of the slot's register window."""
        offset = in_range("offset", offset, 0, 2**32)
        library.call("write32", self._handle, offset, in_range("value", value, 0, 2**32))

    def reset(self) -> None:
        """Resets the app: registers take their reset values, and what was under way on its streams fails."""
        library.call("reset", self._handle)

    def copy_in(self, to: Memory, array: Array, offset: int = 0, step: int | None = None) -> None:
        """Copies an array to card memory, from `offset` on.

        With `step` the rows of the array (along its first axis) are so many bytes apart on the card; what is between them
        stays. Rows may be apart in the array, too. A copy whose rows do not begin at beats of the card (64 bytes)
        reads the beats and writes them back: an app must not write there meanwhile. The app in the slot makes no
        difference.
        """
        rows, span = rows_of(check_array(array, writable=False), step)
        library.call("copy_rows_in", self._handle, to.at(offset, span), array.ctypes.data, rows)

    def copy_out(self, source: Memory, array: Array, offset: int = 0, step: int | None = None) -> None:
        """Copies card memory to an array; see `copy_in`."""
        rows, span = rows_of(check_array(array, writable=True), step)
        library.call("copy_rows_out", self._handle, source.at(offset, span), array.ctypes.data, rows)

    def read_word(self, source: Memory, offset: int) -> int:
        """A 32-bit word of card memory."""
        value = c.c_uint32()
        library.call("read_word", self._handle, source.at(offset, 4), value)
        return value.value

    def write_word(self, to: Memory, offset: int, value: int) -> None:
        """Writes a 32-bit word of card memory; see `copy_in` about the beat it is in."""
        library.call("write_word", self._handle, to.at(offset, 4), in_range("value", value, 0, 2**32))

    def run_buffered(self, data: Bytes | None, out: Array | None, buffer: int = 256 << 10) -> Report:
        """Sends `data` through the app by way of two buffers of `buffer` bytes in card memory each way.

        While the DMA engine fills one, the app has the other. `out` is an array of exactly the bytes that the app gives.
        None leaves the first input or output of the app alone.
        """
        given = readable(data) if data is not None else np.empty(0, np.uint8)
        taken = writable(out) if out is not None else np.empty(0, np.uint8)
        raw = lib.ReportStruct()
        library.call(
            "run_buffered",
            self._handle,
            given.ctypes.data,
            given.nbytes,
            taken.ctypes.data,
            taken.nbytes,
            in_range("buffer", buffer, 0, 2**63),
            raw,
        )
        self.report = report_of(raw, {})
        return self.report

    def run(
        self,
        data: Bytes | Endpoint | None = None,
        *,
        progress: Callable[[Progress], None] | None = None,
        chunk: int = 0,
        then: "Sequence[Slot]" = (),
    ) -> Array:
        """Sends `data` through an app with one output and at most one input; returns the output.

        The apps of the slots in `then` follow it, on the card: what one gives, the next one gets, and the output is that
        of the last. Each has one input and one output.

        If the app's output is as long as its input and `data` is an array, the result has its type and
        shape; else it is a one-dimensional array of bytes. The result is not copied: it is the library's
        buffer. `report` has the results of the run.
        """
        last = then[-1] if then else self
        inputs, outputs = self._names("in"), last._names("out")
        if len(outputs) != 1 or len(inputs) != (data is not None):
            raise ArgumentError(
                -1,
                f"the app has inputs {inputs} and outputs {outputs}; run() serves one output and the one "
                "input that it is given, transfer() the others",
            )
        routes = Routes()
        if data is not None:
            routes.add_input(inputs[0], data)
        routes.add(outputs[0], lib.OUT, capacity=lib.ALLOCATE)
        self._run(routes, progress, chunk, durable=False, then=then)
        made = adopt(routes.routes[-1])
        lengths = [
            port.length for slot in (self, *then) for (way, _), port in slot.ports.items() if way == "out"
        ]
        same = all(length == "same" for length in lengths)
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
        then: "Sequence[Slot]" = (),
    ) -> Report:
        """Sends data through any app: maps each stream's name to its file or memory. Outputs are those of the last app, if
        others follow (`then`, as for `run`).

        Outputs into memory need writable, contiguous arrays. `chunk` is the number of bytes moved by one
        command (0: the library's default), `durable` waits until output files are on stable storage.
        """
        routes = Routes()
        for name, source in inputs.items():
            routes.add_input(name, source)
        for name, sink in outputs.items():
            routes.add_output(name, sink)
        return self._run(routes, progress, chunk, durable, then)

    def run_async(
        self,
        data: Bytes | Endpoint | None = None,
        *,
        progress: Callable[[Progress], None] | None = None,
        chunk: int = 0,
        then: "Sequence[Slot]" = (),
    ) -> "Future[Array]":
        """Begins `run`, whose data must stay as it is meanwhile; one run begins when the one before has ended. `progress` is
        called on its thread. Until all of them have ended the other methods that run the app raise BusyError. A run is
        stopped by an exception in `progress`, by an exception that leaves the `with` of the slot, and at the end of the
        program."""
        then = self._lead(then)
        return self._begun["streams"].begin(lambda: self.run(data, progress=progress, chunk=chunk, then=then))

    def transfer_async(
        self,
        inputs: MappingOf[str, Bytes | Endpoint],
        outputs: MappingOf[str, Array | Endpoint],
        *,
        progress: Callable[[Progress], None] | None = None,
        chunk: int = 0,
        durable: bool = False,
        then: "Sequence[Slot]" = (),
    ) -> "Future[Report]":
        """Begins `transfer`, as `run_async` begins `run`."""
        then = self._lead(then)
        return self._begun["streams"].begin(
            lambda: self.transfer(inputs, outputs, progress=progress, chunk=chunk, durable=durable, then=then)
        )

    def _lead(self, then: "Sequence[Slot]") -> "tuple[Slot, ...]":
        """Notes that a run in the background leads through other slots, which end it before they are closed."""
        for slot in then:
            slot._leads.add(self)
        return tuple(then)

    def _names(self, direction: str) -> list[str]:
        return [name for way, name in self.ports if way == direction]

    def _run(
        self,
        routes: "Routes",
        progress: Callable[[Progress], None] | None,
        chunk: int,
        durable: bool,
        then: "Sequence[Slot]",
    ) -> Report:
        line = [self, *then]
        for slot in line:
            slot._begun["streams"].check_turn()
        watch = Watch(progress)
        options = watch.options(chunk_bytes=in_range("chunk", chunk, 0, 2**64), durable=durable)
        array = (lib.Route * len(routes.routes))(*routes.routes)
        raw = lib.ReportStruct()
        try:
            with watch:
                if then:
                    slots = (lib.HANDLE * len(line))(*(slot._handle for slot in line))
                    library.call("run_through", slots, len(line), array, len(array), options, raw)
                else:
                    library.call("run", self._handle, array, len(array), options, raw)
        except BaseException:
            # The run may have ended before it could be stopped.
            for route in array:
                if route.capacity == lib.ALLOCATE:
                    library.call("free", route.data)
            raise
        routes.routes = list(array)
        lengths = {name: r.length for name, r in zip(routes.names, array, strict=True) if is_buffer(r)}
        self.report = report_of(raw, lengths)
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
        length, offset = in_range("length", length, 0, 2**63), in_range("offset", offset, 0, 2**63)
        va = 0 if address is None else in_range("address", address, 0, 2**64)
        array = None
        created = None
        with contextlib.ExitStack() as opened:
            if isinstance(source, os.PathLike) and create:
                created = Created(source, length)
                opened.callback(created.close)
                created.extend()
                fd = created.fd
            elif isinstance(source, os.PathLike):
                fd = open_file(source, write and not private)
                opened.callback(os.close, fd)
            elif hasattr(source, "fileno"):
                fd = cast("HasFileno", source).fileno()
            else:
                array, fd = in_memory(cast("Bytes | None", source), write, length)
                opened.callback(os.close, fd)
            length = length or rest_of(fd, offset)
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
                view = None if private else view_of(fd, offset, length)
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
        library.call("set_frames", self._handle, 0 if size is None else in_range("size", size, 1, 2**64))

    def limit_host_frames(self, size: int | None) -> None:
        """Limits the host memory for pages that advice "random" leaves there while card memory is full, in bytes; None: no limit."""
        library.call(
            "set_host_frames", self._handle, 2**64 - 1 if size is None else in_range("size", size, 0, 2**64)
        )

    def place(self, channels: Iterable[int] | None) -> None:
        """The channels of card memory that pages of mappings made from now on are in; None: the slot's share, which is all of them while
        no other slot has mappings."""
        mask = 0
        for channel in channels if channels is not None else ():
            mask |= 1 << in_range("channel", channel, 0, 32)
        if channels is not None and not mask:
            raise ArgumentError(-1, "channels is empty; give at least one, or None for the slot's share")
        library.call("set_channels", self._handle, mask)

    def set_weight(self, weight: int) -> None:
        """The slot's share of card memory beside others that use it at the same time: in proportion to the weights, in bytes. 1, as at the
        beginning, to 15; what one does not use the others get."""
        library.call("set_weight", self._handle, in_range("weight", weight, 1, 16))

    def set_schedule(
        self,
        *,
        weight: int = 1,
        first: bool = False,
        rate: int | None = None,
        burst: int = 64 << 10,
        limit: bool = False,
        in_flight: int | None = None,
    ) -> None:
        """How the slot's accesses of card memory, host memory and the link are scheduled beside those of others.

        `weight` is as for `set_weight`. A slot that goes `first` goes before those that do not, which get what it leaves; with a `rate`, in
        bytes a second, only while it keeps to that. `burst` is how many bytes may pass at once after a rest. Beyond its rate a slot with
        `limit` waits. `in_flight` bounds the bytes under way at a time, reads and writes each. Takes effect at once."""
        schedule = lib.Schedule(
            in_range("weight", weight, 1, 16),
            (lib.SCHEDULE_FIRST if first else 0) | (lib.SCHEDULE_LIMIT if limit else 0),
            0 if rate is None else in_range("rate", rate, 1, 2**64),
            in_range("burst", burst, 0, 2**64),
            0 if in_flight is None else in_range("in_flight", in_flight, 1, 2**64),
        )
        library.call("set_schedule", self._handle, schedule)

    @property
    def irqs(self) -> int:
        """How often the app has raised its interrupt, as far as the library has seen."""
        irqs = c.c_uint64()
        library.call("get_irqs", self._handle, irqs)
        return irqs.value

    def pause(self) -> None:
        """Pauses the app, to leave link and memory to others: nothing more is taken from its output streams and its memory port until
        `resume`. Nothing is lost, and what waits for the app goes on waiting, without its time-out."""
        library.call("pause", self._handle)

    def resume(self) -> None:
        """Ends a pause."""
        library.call("resume", self._handle)

    def close(self) -> None:
        """As `Handle.close`, when what was begun has ended."""
        if self._native.is_ours():
            for begun in (*self._begun.values(), *(lead._begun["streams"] for lead in self._leads)):
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
            for begun in (*self._begun.values(), *(lead._begun["streams"] for lead in self._leads)):
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
        watch = Watch(None)
        with watch:
            limit_ms = milliseconds("limit", limit)
            library.call("start_and_wait", self._handle, va, length, limit_ms, watch.options(), raw)
        self.report = report_of(raw, {})
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
    counts = (in_range("irqs", count, 0, 2**64) for count in slots.values())
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


class Mapping(Handle):
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
        parts = Parts(slot._handle, va, length)
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
        start = in_range("start", start, 0, self._length)
        if length is None:
            length = self._length - start
        return start, in_range("length", length, 0, self._length - start + 1)
