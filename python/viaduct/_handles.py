# SPDX-License-Identifier: Apache-2.0
"""Open objects of the library: closed in reverse order, by whatever comes first."""

import contextlib
import operator
import os
import warnings
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Self

from ._library import ArgumentError, BusyError, Error


class Native:
    """An object of the library and its parent. Closed by `close`, or when its Python object is dropped.

    Objects that refer to each other may be dropped in any order: a parent is closed with the last of its children.
    """

    def __init__(self, closing: Callable[[], None], name: str, parent: "Native | None") -> None:
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
        """As `Handle.close`."""
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


class Handle:
    """An open object of the library, closed with `with` or close()."""

    def __init__(self, closing: Callable[[], None], opened_on: "Handle | None") -> None:
        self._opened_on = opened_on
        parent = opened_on._native if opened_on is not None else None
        self._native = Native(closing, f"viaduct.{type(self).__name__}", parent)
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


def milliseconds(what: str, seconds: float | None) -> int:
    """0 means the default, so a given time becomes at least 1."""
    if seconds is None:
        return 0
    if not 0 < seconds < 2**32 / 1000:
        raise ArgumentError(-1, f"{what} is {seconds} seconds; give more than 0 and less than 49 days")
    return max(1, int(seconds * 1000))


def in_range(what: str, value: int, low: int, end: int) -> int:
    """An integer in the range of its C type; ctypes would truncate it."""
    number = operator.index(value)
    if not low <= number < end:
        raise ArgumentError(-1, f"{what} is {number}; it must be {low} to {end - 1}")
    return number
