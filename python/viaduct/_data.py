# SPDX-License-Identifier: Apache-2.0
"""Data of runs: arrays, files and streams, as routes for the library."""

import ctypes as c
import io
import os
import weakref
from typing import Any, Protocol, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._library import ArgumentError, library, text

Array = npt.NDArray[Any]
Bytes = Array | bytes | bytearray | memoryview
"""Memory: any NumPy array without Python objects in it, or bytes."""


class HasFileno(Protocol):
    """An open file, pipe or socket."""

    def fileno(self) -> int: ...


Endpoint = str | os.PathLike[str] | HasFileno
"""A path object; text as on the command line: `file:PATH`, `-`, `fd:NUMBER`, `card:ADDRESS+LENGTH`, `eth:`; or an object with a
descriptor, which is read or written from its position (data buffered by Python is not seen), and stays open."""


class Routes:
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
            self._add_array(name, lib.IN, readable(cast("Bytes", source)))

    def add_output(self, name: str, sink: Array | Endpoint) -> None:
        if _is_endpoint(sink):
            self.add(name, lib.OUT, endpoint=_endpoint(sink))
        else:
            self._add_array(name, lib.OUT, writable(sink))

    def _add_array(self, name: str, direction: int, array: Array) -> None:
        self._alive.append(array)
        self.add(name, direction, data=array.ctypes.data, capacity=array.nbytes)


def is_buffer(route: lib.Route) -> bool:
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


def readable(data: Bytes) -> Array:
    """The data as a contiguous array; copied if necessary."""
    try:
        array = np.asarray(data if isinstance(data, np.ndarray) else memoryview(data))
    except TypeError:
        kind = type(data).__name__
        raise TypeError(f"{kind} is not data: give a NumPy array, bytes, a pathlib.Path or a file") from None
    if array.dtype.hasobject:
        raise ArgumentError(-1, "the array holds Python objects, not data")
    return np.ascontiguousarray(array)


def writable(data: object) -> Array:
    if not isinstance(data, np.ndarray) or not data.flags.c_contiguous or not data.flags.writeable:
        raise ArgumentError(-1, "results need a NumPy array that is writable and contiguous")
    if data.dtype.hasobject:
        raise ArgumentError(-1, "the array holds Python objects, not data")
    return data


def adopt(route: lib.Route) -> npt.NDArray[np.uint8]:
    """The buffer that the library allocated, released with the last array that refers to it."""
    if not route.data:
        return np.empty(0, np.uint8)
    memory = (c.c_uint8 * route.length).from_address(route.data)
    weakref.finalize(memory, library.call, "free", route.data).atexit = False
    return np.frombuffer(memory, np.uint8)
