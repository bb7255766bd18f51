# SPDX-License-Identifier: Apache-2.0
"""Card memory that a program allocates."""

import ctypes as c
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._handles import Handle, in_range
from ._library import ArgumentError, library


class Memory(Handle):
    """Memory of a card, in one piece; made by `Card.allocate`. Closing it frees it.

    `str()` of it is its endpoint, `card:ADDRESS+LENGTH`, for the streams of apps; `Slot.copy_in` and `Slot.copy_out`
    copy between it and arrays.
    """

    def __init__(self, card: Handle, handle: c.c_void_p, size: int) -> None:
        address = c.c_uint64()
        library.call("alloc_memory", handle, in_range("size", size, 0, 2**64), c.byref(address))
        self.address: int = address.value
        """Card address of the first byte."""
        self.size = size
        """Bytes."""
        super().__init__(lambda: library.call("free_memory", handle, address), card)

    def __str__(self) -> str:
        return f"card:{self.address:#x}+{self.size}"

    def at(self, offset: int, size: int) -> int:
        """Card address of `size` bytes from `offset` on; ArgumentError if they are not inside."""
        if not self._native.open:
            raise lib.ClosedError(-2, "this card memory was freed")
        if offset < 0 or size < 0 or offset + size > self.size:
            raise ArgumentError(
                -1, f"{size} bytes at {offset} are not inside {self.size} bytes of card memory"
            )
        return self.address + offset


def rows_of(array: npt.NDArray[Any], step: int | None) -> tuple[lib.Rows, int]:
    """The array as rows, which have to be contiguous, `step` bytes apart on the card (None: one behind the other); the
    bytes that they span there."""
    if array.dtype.hasobject:
        raise ArgumentError(-1, "the array holds Python objects, not data")
    if array.nbytes == 0:
        return lib.Rows(0, 0, 0, 0), 0
    if step is None and array.flags.c_contiguous:
        return lib.Rows(array.nbytes, 1, array.nbytes, array.nbytes), array.nbytes
    if array.ndim < 2 or not array[0].flags.c_contiguous or array.strides[0] < array[0].nbytes:
        shape, strides = array.shape, array.strides
        raise ArgumentError(-1, f"the rows of the array are not contiguous: shape {shape}, strides {strides}")
    count, size = len(array), array[0].nbytes
    apart: int = size if step is None else in_range("step", step, size, 2**63)
    return lib.Rows(size, count, apart, array.strides[0]), (count - 1) * apart + size


def check_array(array: object, writable: bool) -> npt.NDArray[Any]:
    if not isinstance(array, np.ndarray) or (writable and not array.flags.writeable):
        raise ArgumentError(-1, f"give a NumPy array{' that is writable' if writable else ''}")
    return array
