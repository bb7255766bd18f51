# SPDX-License-Identifier: Apache-2.0
"""What is mapped: files and memory, and the parts of a mapping."""

import ctypes as c
import errno
import fcntl
import mmap
import os
import re
import stat
from collections.abc import Iterator

import numpy as np

from ._data import Array, Bytes, readable, writable
from ._library import ArgumentError, Error, FileError, OutOfMemoryError, library, text

PAGE = 4096  # bytes of a page of the card, whatever the machine has
HUGE = 2 << 20  # bytes of a large page of the card


class Parts:
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


def open_file(path: os.PathLike[str], write: bool) -> int:
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


class Created:
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


def in_memory(source: Bytes | None, write: bool, length: int) -> tuple[Array | None, int]:
    """A file in memory with the bytes of an array, or zeros."""
    array = None
    if source is not None:
        array = writable(source) if write else readable(source)
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


def rest_of(fd: int, offset: int) -> int:
    """Bytes of a file from `offset` on. Of what is no file it is one: the library says why it cannot be mapped."""
    info = os.fstat(fd)
    if stat.S_ISFIFO(info.st_mode) or stat.S_ISSOCK(info.st_mode):
        raise ArgumentError(
            -1, "a pipe or socket has no length yet; give length=, as much as the app may read"
        )
    return max(0, info.st_size - offset) if stat.S_ISREG(info.st_mode) else 1


def view_of(fd: int, offset: int, length: int) -> mmap.mmap | None:
    """The program's own mapping of the file, as far as it goes."""
    there = min(length, os.fstat(fd).st_size - offset)
    if there <= 0:
        return None
    writable = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
    prot = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    return mmap.mmap(fd, there, flags=mmap.MAP_SHARED, prot=prot, offset=offset)
