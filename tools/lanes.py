#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs make targets in two lanes, one for each of two cores, and prints the duration of each target.

    .venv/bin/python tools/lanes.py "test-host test-e2e" checked test-rtl formal synth

A free lane takes the next argument. Targets within one argument run one after the other, even after a failure. Long targets, and those
that must not run at the same time, therefore come first. Every line of output begins with the name of its target. Skipped tests with
reasons, and the last lines of each failed target, are repeated at the very end, where a reader looks first. Exit status 1 if a target
failed, 130 or 143 if it was interrupted.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
LANES = 2
# Lines of a failed target that are repeated at the end: the summary of its tests and the message of make.
LAST_LINES, LAST_WIDTH = 8, 200


class Lane(threading.Thread):
    """Runs targets from lists that the lanes share."""

    def __init__(self, lists: deque[list[str]]) -> None:
        super().__init__()
        self.lists = lists
        self.took: list[tuple[str, float, int]] = []  # target, seconds, exit status
        self.last: dict[str, deque[str]] = {}  # target -> the end of its output
        self.named: dict[str, deque[str]] = {}  # target -> tests that failed, as pytest reports
        self.skipped: dict[str, deque[str]] = {}  # target -> tests that pytest has skipped, and why
        self.process: subprocess.Popen[str] | None = None
        self.stopped = False

    def run(self) -> None:
        while not self.stopped:
            try:
                targets = self.lists.popleft()
            except IndexError:
                return
            for target in targets:
                if not self.stopped:
                    self.make(target)

    def make(self, target: str) -> None:
        begun = time.monotonic()
        # A process group of its own, so that it can be ended with all its children.
        self.process = subprocess.Popen(
            ["make", target],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,
        )
        if self.stopped:  # stopped in the meantime
            os.killpg(self.process.pid, signal.SIGTERM)
        assert self.process.stdout
        last = self.last[target] = deque[str](maxlen=LAST_LINES)
        named = self.named[target] = deque[str](maxlen=LAST_LINES)
        skipped = self.skipped[target] = deque[str](maxlen=LAST_LINES)
        for line in self.process.stdout:
            to = named if line.startswith(("FAILED ", "ERROR ")) else last
            if line.startswith("SKIPPED "):
                to = skipped
            to.append(line.rstrip()[:LAST_WIDTH])
            print(f"{target}: {line}", end="", flush=True)
        status = self.process.wait()
        self.took.append((target, time.monotonic() - begun, status))

    def stop(self) -> None:
        self.stopped = True
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)


def main() -> None:
    lists = deque(argument.split() for argument in sys.argv[1:])
    lanes = [Lane(lists) for _ in range(LANES)]

    def interrupted(number: int, _frame: FrameType | None) -> None:
        for lane in lanes:
            lane.stop()
        sys.exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    failed = []
    took = [t for lane in lanes for t in lane.took]
    for target, seconds, status in sorted(took, key=lambda t: -t[1]):
        print(f"{target:<12} {seconds:6.0f} s  {'failed' if status else 'passed'}")
        failed += [target] if status else []
    for lane in lanes:
        for target, lines in lane.skipped.items():
            if lines:
                print(f"not tested in {target}:", *lines, sep="\n  ")
    # Targets that did not finish have no result.
    ended = {target for target, *_ in took}
    failed += [target for argument in sys.argv[1:] for target in argument.split() if target not in ended]
    for lane in lanes:
        for target, lines in lane.last.items():
            if target in failed:
                print(f"the end of {target}:", *lines, *lane.named[target], sep="\n  ")
    sys.stdout.flush()
    if failed:
        sys.exit(
            f"failed: {', '.join(failed)}; the complete output is above, in the lines that begin with that name"
        )


if __name__ == "__main__":
    main()
