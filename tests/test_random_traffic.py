# SPDX-License-Identifier: Apache-2.0
"""All slots of a card active at the same time, with random apps, lengths, chunks, files and buffers; every byte is compared.

VIA_SEED repeats a run's choices (but not the interleaving of the threads). With VIADUCT_CHECKED the card has a checker at
every port; VIADUCT_COVERAGE names a folder and the traffic counts coverage (tools/coverage.py).
"""

import os
import random
import threading
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import viaduct

STREAMS = ("pass", "inc", "square", "aes", "sha256")
HUGE = 2 << 20


class Traffic:
    """The work of one thread with one slot, until its rounds are done or another thread has failed."""

    def __init__(
        self, card: viaduct.Card, rng: random.Random, folder: Path, golden, stop: threading.Event
    ) -> None:
        self.card, self.rng, self.folder, self.golden, self.stop = card, rng, folder, golden, stop
        self.failure: BaseException | None = None
        self.runs = self.bytes = 0

    def work(self, rounds: int, first: str) -> None:
        try:
            app = first
            while rounds > 0 and not self.stop.is_set():
                # Each app stays for some runs; then the slot is reloaded while the others continue.
                stay = min(rounds, self.rng.randrange(1, 4))
                rounds -= stay
                with self.card.load(app) as slot:
                    (self.memory if app == "rng" else self.streams)(slot, self.golden(app), app, stay)
                app = self.rng.choice((*STREAMS, "rng"))
        except BaseException as failure:  # told by the test's own thread
            self.failure = failure
            self.stop.set()

    # ---------------------------------------------------------------- streams

    def length(self) -> int:
        """Awkward lengths: around beats, pages, chunks; sometimes zero."""
        edge = self.rng.choice((0, 4, 64, 4096, 3 * 4096, 65536))
        return self.rng.choice((max(0, edge + self.rng.randrange(-3, 4)), self.rng.randrange(1, 120_000)))

    def streams(self, slot: viaduct.Slot, model: ModuleType, app: str, runs: int) -> None:
        for _ in range(runs):
            if self.stop.is_set():
                return
            registers: dict[str, int] = {}
            for register in slot.registers.values():
                registers[register.name] = value = self.rng.getrandbits(register.width)
                slot.set(**{register.name: value})
            data = self.rng.randbytes(self.length())
            if app == "sha256":
                # Without a byte there is no message: the library reports it, without further effects.
                no_data = pytest.raises(viaduct.Error, match="give at least one byte")
                with nullcontext() if data else no_data:
                    self.compare(slot, data, model.model({"in": data}, registers)["out"])
            else:
                self.compare(slot, data, model.model({"in": data}, registers)["out"])
            self.runs += 1
            self.bytes += len(data)

    def compare(self, slot: viaduct.Slot, data: bytes, want: bytes) -> None:
        """One run between random ends, in chunks of a random number of pages."""
        chunk = self.rng.choice((0, 1, 4096, 8192, 20_000, 65_536))
        source: bytes | Path = data
        if self.rng.random() < 0.5:
            source = self.folder / f"in{slot.index}"
            source.write_bytes(data)
        way = self.rng.randrange(3)
        if way == 0:
            got = slot.run(source, chunk=chunk).tobytes()
        elif way == 1:
            sink = self.folder / f"out{slot.index}"
            sink.write_bytes(self.rng.randbytes(self.rng.randrange(9000)))  # an older, perhaps longer file
            slot.transfer({"in": source}, {"out": sink}, chunk=chunk)
            got = sink.read_bytes()
        else:
            room = np.full(len(want) + self.rng.randrange(100), 0xA5, np.uint8)
            report = slot.transfer({"in": source}, {"out": room}, chunk=chunk)
            assert report.lengths["out"] == len(want)
            assert (room[len(want) :] == 0xA5).all(), "bytes after the output were changed"
            got = room[: len(want)].tobytes()
        same(got, want, f"{len(data)} bytes, chunks of {chunk}, output {way}")

    # ---------------------------------------------------------------- memory

    def memory(self, slot: viaduct.Slot, model: ModuleType, _app: str, runs: int) -> None:
        """Reads and writes at random addresses of mappings with random pages, in turn."""
        for _ in range(runs):
            if self.stop.is_set():
                return
            huge = self.rng.random() < 0.4
            length = (
                self.rng.randrange(64, 300_000) if not huge else self.rng.randrange(HUGE // 2, HUGE + 200_000)
            )
            size = 1 << self.rng.choice([k for k in (6, 7, 10, 12, 13, 16) if 1 << k <= length])
            before = self.rng.randbytes(length)
            on_host = self.rng.random() < 0.2
            path = self.folder / f"mapped{slot.index}"
            source: Path | np.ndarray = np.frombuffer(bytearray(before), np.uint8)
            if self.rng.random() < 0.5:
                source = path
                path.write_bytes(before)
            place = {"huge": huge, "on_host": on_host}
            what = f"{length} bytes by {size}, {place}, {'file' if source is path else 'buffer'}"
            with slot.map(source, write=True, **place) as mapping:
                now = before
                for write in (1, 0):
                    registers = {
                        "size": size,
                        "count": self.rng.randrange(1, max(3, min(200, 400_000 // size))),
                        "seed": self.rng.getrandbits(64) | 1,
                        "write": write,
                    }
                    slot.set(**registers)
                    report = slot.start_and_wait(mapping)
                    assert (slot.get("errors"), report.denied) == (0, 0), what
                    if write:
                        now = model.model({"mem": now}, registers)["mem"]
                    else:
                        assert slot.get("checksum") == model.checksum(now, registers), what
                if self.rng.random() < 0.5:
                    mapping.sync()
                    same(content(source), now, f"after sync: {what}")
            same(content(source), now, f"after unmapping: {what}")
            self.runs += 1
            self.bytes += length


def content(source: Path | np.ndarray) -> bytes:
    return source.read_bytes() if isinstance(source, Path) else source.tobytes()


def same(got: bytes, want: bytes, what: str) -> None:
    if got == want:
        return
    at = next(
        (i for i, (a, b) in enumerate(zip(got, want, strict=False)) if a != b), min(len(got), len(want))
    )
    pytest.fail(
        f"{what}: {len(got)} bytes received, {len(want)} expected, the first difference is at byte {at}"
    )


@pytest.mark.parametrize(("card", "rounds"), [("sim", 10), ("sim:gen2x4", 4)])
def test_random_traffic(card: str, rounds: int, rng: random.Random, golden, tmp_path: Path):
    if os.environ.get("VIADUCT_COVERAGE") or os.environ.get("VIADUCT_CHECKED"):
        rounds //= 3  # such a card is slow
    stop = threading.Event()
    with viaduct.open(card) as opened:
        slots = opened.info.slots
        first = ["rng", *rng.sample(STREAMS, slots - 1)][:slots]
        traffics = [
            Traffic(opened, random.Random(rng.getrandbits(64)), tmp_path, golden, stop) for _ in range(slots)
        ]
        threads = [
            threading.Thread(target=traffic.work, args=(rounds, app), daemon=True)
            for traffic, app in zip(traffics, first, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
            assert not thread.is_alive(), "the traffic has stopped"
        for traffic in traffics:
            if traffic.failure:
                raise traffic.failure
        assert all(traffic.runs for traffic in traffics)
        print([(traffic.runs, traffic.bytes) for traffic in traffics])
