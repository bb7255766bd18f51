# SPDX-License-Identifier: Apache-2.0
"""Runs that go on: in order on threads, watched, and stopped at the end of the program."""

import atexit
import functools
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from types import GeneratorType
from typing import Any, TypeVar

from . import _library as lib
from ._library import BusyError
from ._values import Progress

T = TypeVar("T")


class Begun:
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
        self._watches: dict[Watch, threading.Thread] = {}
        self._last: threading.Thread | None = None  # the thread that ends the program

    def begin(self, watch: "Watch") -> None:
        """A run is about to begin in this thread."""
        # In this order: either it is stopped, or it does not begin.
        self._watches[watch] = threading.current_thread()
        if self.is_ending():
            self.end(watch)
            raise SystemExit

    def end(self, watch: "Watch") -> None:
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


class Watch:
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

    def __exit__(self, *_: object) -> None:
        _runs.end(self)
        self._told.close()
        if self._raised is not None:
            raise self._raised from None
        if self._stopped and _runs.is_ending():
            raise SystemExit from None
