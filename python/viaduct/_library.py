# SPDX-License-Identifier: Apache-2.0
"""libviaduct through ctypes: its location, its structures, and its errors as exceptions."""

import ctypes as c
import os
import shutil
from pathlib import Path

ABI_VERSION = 5
SONAME = f"libviaduct.so.{ABI_VERSION}"
ANY_SLOT = -1
IN, OUT, MEMORY = 0, 1, 2
LENGTH_ANY, LENGTH_SAME, LENGTH_MESSAGE = 0, 1, 2
ALLOCATE = 2**64 - 1
MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_HUGETLB = 0x10, 0x100000, 0x40000  # of <sys/mman.h>
MAP_HOST, MAP_SMALL = 0x200000, 0x400000
MAP_FAILED = 2**64 - 1
MS_ASYNC, MS_INVALIDATE, MS_SYNC = 1, 2, 4
ADVICE = {
    "normal": 0,
    "random": 1,
    "sequential": 2,
    "willneed": 3,
    "dontneed": 4,
    "reuse": 0x1000,
    "lowuse": 0x1001,
}


class Error(Exception):
    """An operation on a card failed. `code` is the VIADUCT_E_* number of viaduct.h."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class ArgumentError(Error, ValueError):
    """An argument is invalid."""


class ClosedError(Error):
    """The card, slot or mapping is closed."""


class NotFoundError(Error, LookupError):
    """There is no such app, port, register or slot."""


class BusyError(Error):
    """The object is in use."""


class TooSmallError(Error, ValueError):
    """A buffer is too small."""


class FileError(Error, OSError):
    """A file could not be opened, read or written. `errno`, `strerror` and `filename` are as those of OSError."""

    def __init__(self, code: int, text: str, number: int, path: str | None) -> None:
        super().__init__(code, text)
        self.errno = number
        self.strerror = os.strerror(number)
        self.filename = path

    def __str__(self) -> str:
        return str(self.args[0])


class AppError(Error):
    """The app hangs, violated a protocol, or its output is too long or short."""


class CardError(Error):
    """The card is gone, does not respond, or refused the image."""


class BuildError(Error):
    """The app or the simulated card could not be built."""


class OutOfMemoryError(Error, MemoryError):
    """Out of memory, on the card or the host."""


class StoppedError(Error):
    """The program has stopped the run."""


ERRORS: dict[int, type[Error]] = {
    -1: ArgumentError,
    -2: ClosedError,
    -3: NotFoundError,
    -4: BusyError,
    -5: TooSmallError,
    -6: FileError,
    -7: AppError,
    -8: CardError,
    -9: BuildError,
    -10: OutOfMemoryError,
    -12: StoppedError,
}


class Timeouts(c.Structure):
    _fields_ = [(name, c.c_uint32) for name in ("stall_ms", "busy_ms", "control_ms")]


class Info(c.Structure):
    _fields_ = [
        ("version_major", c.c_uint32),
        ("version_minor", c.c_uint32),
        ("slots", c.c_uint32),
        ("channels", c.c_uint32),
        ("streams", c.c_uint32),
        ("data_bytes", c.c_uint32),
        ("clock_khz", c.c_uint32),
        ("tlb_page_ways", c.c_uint32),
        ("tlb_page_sets", c.c_uint32),
        ("tlb_huge_ways", c.c_uint32),
        ("tlb_huge_sets", c.c_uint32),
        ("reserved", c.c_uint32),
        ("channel_mib", c.c_uint64),
    ]


class Measured(c.Structure):
    _fields_ = [(name, c.c_double) for name in ("last", "min", "max")]


class SystemMonitor(c.Structure):
    _fields_ = [
        ("model", c.c_uint32),
        ("has_current", c.c_uint32),
        ("temperature", Measured),
        ("vccint", Measured),
        ("vccaux", Measured),
        ("vccbram", Measured),
        ("current", c.c_double),
        ("power", c.c_double),
    ]


class Port(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("direction", c.c_int32),
        ("length_kind", c.c_int32),
        ("length", c.c_uint64),
    ]


class Register(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("offset", c.c_uint32),
        ("width", c.c_uint32),
        ("access", c.c_int32),
        ("required", c.c_uint32),
    ]


class Route(c.Structure):
    _fields_ = [
        ("port", c.c_char_p),
        ("direction", c.c_int32),
        ("reserved", c.c_int32),
        ("endpoint", c.c_char_p),
        ("data", c.c_void_p),
        ("capacity", c.c_uint64),
        ("length", c.c_uint64),
    ]


class ProgressStruct(c.Structure):
    _fields_ = [(name, c.c_uint64) for name in ("bytes_in", "total_in", "bytes_out", "cycles")]


ProgressFn = c.CFUNCTYPE(c.c_int, c.py_object, c.POINTER(ProgressStruct))


class RunOptions(c.Structure):
    _fields_ = [
        ("chunk_bytes", c.c_uint64),
        ("progress", ProgressFn),
        ("user", c.c_void_p),
        ("durable", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class ReportStruct(c.Structure):
    _fields_ = [
        ("bytes_in", c.c_uint64),
        ("bytes_out", c.c_uint64),
        ("cycles", c.c_uint64),
        ("beats_in", c.c_uint64),
        ("beats_out", c.c_uint64),
        ("memory_read_beats", c.c_uint64),
        ("memory_write_beats", c.c_uint64),
        ("misses", c.c_uint64),
        ("denied", c.c_uint64),
    ]


class Pager(c.Structure):
    _fields_ = [
        (name, c.c_uint64)
        for name in (
            "faults",
            "remapped",
            "pages_in",
            "pages_out",
            "evicted",
            "denied",
            "damaged",
            "overflowed",
            "demoted",
            "promoted",
        )
    ]


# VIADUCT_SCHEDULE_* of the header.
SCHEDULE_FIRST, SCHEDULE_LIMIT = 1, 2


class Schedule(c.Structure):
    _fields_ = [
        ("weight", c.c_uint32),
        ("flags", c.c_uint32),
        ("rate", c.c_uint64),
        ("burst", c.c_uint64),
        ("in_flight", c.c_uint64),
    ]


class Rows(c.Structure):
    _fields_ = [(name, c.c_uint64) for name in ("bytes", "rows", "card_step", "host_step")]


class ConnectionInfo(c.Structure):
    _fields_ = [
        ("source", c.c_char * 24),
        ("sink", c.c_char * 24),
        ("changing", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class Awaited(c.Structure):
    _fields_ = [("slot", c.c_void_p), ("irqs", c.c_uint64)]


# Arguments of each function; all of these return a code. A handle is a number that the library looks up.
HANDLE = c.c_void_p
FUNCTIONS: dict[str, list[type]] = {
    "open": [c.c_char_p, c.POINTER(Timeouts), c.POINTER(HANDLE)],
    "close": [HANDLE],
    "get_info": [HANDLE, c.POINTER(Info)],
    "get_system_monitor": [HANDLE, c.POINTER(SystemMonitor)],
    "time": [HANDLE, c.POINTER(c.c_uint64)],
    "load": [HANDLE, c.c_int32, c.c_char_p, c.POINTER(HANDLE)],
    "unload": [HANDLE],
    "pause": [HANDLE],
    "resume": [HANDLE],
    "slot_index": [HANDLE, c.POINTER(c.c_uint32)],
    "get_port": [HANDLE, c.c_uint32, c.POINTER(Port)],
    "get_register": [HANDLE, c.c_uint32, c.POINTER(Register)],
    "set": [HANDLE, c.c_char_p, c.c_char_p],
    "set_bytes": [HANDLE, c.c_char_p, c.c_char_p, c.c_size_t],
    "get_bytes": [HANDLE, c.c_char_p, c.c_char_p, c.c_size_t, c.POINTER(c.c_size_t)],
    "read32": [HANDLE, c.c_uint32, c.POINTER(c.c_uint32)],
    "write32": [HANDLE, c.c_uint32, c.c_uint32],
    "run": [HANDLE, c.POINTER(Route), c.c_size_t, c.POINTER(RunOptions), c.POINTER(ReportStruct)],
    "run_through": [
        c.POINTER(HANDLE),
        c.c_size_t,
        c.POINTER(Route),
        c.c_size_t,
        c.POINTER(RunOptions),
        c.POINTER(ReportStruct),
    ],
    "claim": [HANDLE, c.c_int32, c.POINTER(HANDLE)],
    "reset": [HANDLE],
    "alloc_memory": [HANDLE, c.c_uint64, c.POINTER(c.c_uint64)],
    "free_memory": [HANDLE, c.c_uint64],
    "copy_rows_in": [HANDLE, c.c_uint64, c.c_void_p, c.POINTER(Rows)],
    "copy_rows_out": [HANDLE, c.c_uint64, c.c_void_p, c.POINTER(Rows)],
    "read_word": [HANDLE, c.c_uint64, c.POINTER(c.c_uint32)],
    "write_word": [HANDLE, c.c_uint64, c.c_uint32],
    "run_buffered": [
        HANDLE,
        c.c_void_p,
        c.c_uint64,
        c.c_void_p,
        c.c_uint64,
        c.c_uint64,
        c.POINTER(ReportStruct),
    ],
    "connect": [HANDLE, c.c_char_p, c.c_char_p, c.POINTER(HANDLE)],
    "connected": [HANDLE, c.POINTER(c.c_int)],
    "disconnect": [HANDLE],
    "get_connections": [HANDLE, c.POINTER(ConnectionInfo), c.c_size_t, c.POINTER(c.c_size_t)],
    "free": [c.c_void_p],
    "set_frames": [HANDLE, c.c_uint64],
    "set_host_frames": [HANDLE, c.c_uint64],
    "set_channels": [HANDLE, c.c_uint32],
    "set_weight": [HANDLE, c.c_uint32],
    "set_schedule": [HANDLE, c.POINTER(Schedule)],
    "get_pager": [HANDLE, c.POINTER(Pager)],
    "get_irqs": [HANDLE, c.POINTER(c.c_uint64)],
    "start_and_wait": [
        HANDLE,
        c.c_uint64,
        c.c_uint64,
        c.c_uint32,
        c.POINTER(RunOptions),
        c.POINTER(ReportStruct),
    ],
}
# These return -1 and set errno.
POSIX_FUNCTIONS: dict[str, list[type]] = {
    "mmap": [HANDLE, c.c_uint64, c.c_uint64, c.c_int, c.c_int, c.c_int, c.c_int64],
    "munmap": [HANDLE, c.c_uint64, c.c_uint64],
    "msync": [HANDLE, c.c_uint64, c.c_uint64, c.c_int],
    "madvise": [HANDLE, c.c_uint64, c.c_uint64, c.c_int],
    "wait_for_one": [c.POINTER(Awaited), c.c_size_t, c.c_uint32],
}


def _path() -> str:
    """VIADUCT_LIB, else the library that `make host` built in the checkout that contains this package, else the installed
    one: that of the dynamic loader, or the one beside the `viaduct` on PATH."""
    if given := os.environ.get("VIADUCT_LIB"):
        if not Path(given).is_file():
            raise ImportError(
                f"VIADUCT_LIB names {given}: there is no such file; name libviaduct, or unset it"
            )
        return given
    built = Path(__file__).resolve().parents[2] / "target/release/libviaduct.so"
    if built.is_file():
        return str(built)
    try:
        c.CDLL(SONAME)
        return SONAME
    except OSError as error:
        program = shutil.which("viaduct")
        beside = Path(program).resolve().parents[1] / "lib" / SONAME if program else None
        if beside and beside.is_file():
            return str(beside)
        remedy = "run `make host` where this package is in a checkout, else `make install`"
        raise ImportError(f"{error}; {remedy}; or name the library with VIADUCT_LIB") from None


class _Library:
    """The loaded library; `call` turns failures into exceptions."""

    def __init__(self) -> None:
        path = _path()
        self._dll = c.CDLL(path, use_errno=True)
        version = self._dll.viaduct_abi_version()
        if version != ABI_VERSION:
            raise ImportError(
                f"{path}: ABI version {version}, this package needs {ABI_VERSION}; rebuild both"
            )
        self._dll.viaduct_error.restype = c.c_char_p
        self._dll.viaduct_error_path.restype = c.c_char_p
        for name, arguments in FUNCTIONS.items():
            function = getattr(self._dll, f"viaduct_{name}")
            function.argtypes = arguments
            function.restype = c.c_int
        for name, arguments in POSIX_FUNCTIONS.items():
            function = getattr(self._dll, f"viaduct_{name}")
            function.argtypes = arguments
            function.restype = c.c_uint64 if name == "mmap" else c.c_int

    def call(self, name: str, *arguments: object) -> None:
        code: int = getattr(self._dll, f"viaduct_{name}")(*arguments)
        if code != 0:
            raise self._failed(code)

    def posix(self, name: str, *arguments: object) -> int:
        """Calls one of POSIX_FUNCTIONS and returns its result."""
        result: int = getattr(self._dll, f"viaduct_{name}")(*arguments)
        if result not in (-1, MAP_FAILED):
            return result
        raise self._failed(self._dll.viaduct_error_code())

    def _failed(self, code: int) -> Error:
        """The exception for the failure of the last call of this thread."""
        number = c.get_errno()
        text: str = self._dll.viaduct_error().decode(errors="replace")
        kind = ERRORS.get(code, Error)
        if kind is not FileError:
            return kind(code, text)
        path: bytes | None = self._dll.viaduct_error_path()
        return FileError(code, text, number, None if path is None else os.fsdecode(path))


library = _Library()


def text(value: str | os.PathLike[str]) -> bytes:
    """A string in C's form, without the terminating zero."""
    encoded = os.fsdecode(value).encode()
    if b"\0" in encoded:
        raise ArgumentError(-1, f"{value!r} contains a zero byte")
    return encoded
