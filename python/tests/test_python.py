# SPDX-License-Identifier: Apache-2.0
"""The package viaduct on the simulated card, against the golden models of the apps."""

import asyncio
import contextlib
import errno
import gc
import hashlib
import importlib.util
import io
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import viaduct  # noqa: E402

SIZES = [1, 63, 64, 65, 4095, 4096, 4097, 100_000]
SEED = int(os.environ.get("VIA_SEED", "1"))


def model(app: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"model_{app}", ROOT / "apps" / app / "model.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def data(size: int) -> np.ndarray:
    return np.random.default_rng([SEED, size]).integers(0, 256, size, np.uint8)


@pytest.fixture(scope="module")
def card() -> Iterator[viaduct.Card]:
    with viaduct.open("sim", stall=20) as card:
        yield card


# ---------------------------------------------------------------- results


def test_pass_hands_everything_on(card: viaduct.Card):
    with card.load("pass") as slot:
        for size in SIZES:
            out = slot.run(data(size))
            assert np.array_equal(out, data(size))
            report = slot.report
            assert report and report.bytes_in == report.bytes_out == size and report.cycles > 0
            assert report.beats_in == -(-size // card.info.data_bytes)
        assert slot.run(b"").size == 0


def test_inc_adds_as_its_model_says(card: viaduct.Card):
    with card.load("inc") as slot:
        for amount in (0xDEADBEEF, 0, 1):
            slot.set(amount=amount)
            assert slot.get("amount") == amount
            for size in SIZES:
                expected = model("inc").model({"in": data(size).tobytes()}, {"amount": amount})["out"]
                assert slot.run(data(size)).tobytes() == expected


def test_aes_encrypts_as_its_model_says(card: viaduct.Card):
    with card.load("aes", slot=0) as slot:
        assert slot.index == 0
        key, iv = data(32).tobytes(), data(16).tobytes()
        registers = {"key": int.from_bytes(key, "little"), "iv": int.from_bytes(iv, "little")}
        slot.set(key=key, iv=iv.hex())
        assert slot.get_bytes("key") == key and slot.get("iv") == registers["iv"]
        for size in SIZES:
            expected = model("aes").model({"in": data(size).tobytes()}, registers)["out"]
            assert slot.run(data(size)).tobytes() == expected


def test_sha256_gives_a_digest(card: viaduct.Card):
    with card.load("sha256") as slot:
        for size in (1, 64, 1000):
            digest = slot.run(data(size))
            assert digest.tobytes() == model("sha256").model({"in": data(size).tobytes()}, {})["out"]
        with pytest.raises(viaduct.ArgumentError, match="empty"):
            slot.run(b"")


# ---------------------------------------------------------------- arrays


def test_apps_of_several_slots_are_in_sequence(card: viaduct.Card, tmp_path: Path):
    key, iv = bytes(range(32)), bytes(range(100, 116))
    with (
        card.load("aes") as there,
        card.load("pass") as between,
        card.load("aes") as back,
        card.load("sha256") as digest,
    ):
        for slot in (there, back):
            slot.set(key=key, iv=iv)
        plain = data(100_003)
        out = there.run(plain, then=[between, back])
        assert np.array_equal(out, plain) and out.dtype == plain.dtype
        told = there.run(plain, then=[digest])
        secret = there.run(plain)
        assert bytes(told) == hashlib.sha256(secret.tobytes()).digest()
        # Also in the background, and to a file.
        report = there.transfer_async({"in": plain}, {"out": tmp_path / "d"}, then=[between, digest]).result(
            60
        )
        assert (tmp_path / "d").read_bytes() == bytes(told) and report.bytes_in == plain.nbytes
        for wrong, why in (([there], "listed twice"), ([digest, between, digest], "listed twice")):
            with pytest.raises(viaduct.Error, match=why):
                there.run(plain, then=wrong)
        # Only what has the length and type of the input has its type.
        assert there.run(np.zeros(8, np.float32), then=[digest, between]).dtype == np.uint8
        # After a failure all of them work, with their registers.
        with pytest.raises(viaduct.ArgumentError, match="empty"):
            there.run(b"", then=[back])
        assert np.array_equal(there.run(plain, then=[back]), plain)


def test_an_exception_that_leaves_a_slot_stops_the_runs_through_it(card: viaduct.Card):
    begun = time.monotonic()
    with card.load("pass") as first:
        with pytest.raises(KeyError), card.load("pass") as second:
            first.run_async(np.zeros(1 << 26, np.uint8), then=[second])
            raise KeyError
        assert np.array_equal(first.run(data(1000)), data(1000))
    assert time.monotonic() - begun < 30


def test_what_is_not_data_is_refused_by_name(card: viaduct.Card):
    with card.load("pass") as slot:
        for wrong in ([1, 2], 5, {}):
            with pytest.raises(TypeError, match=f"{type(wrong).__name__} is not data: give a NumPy array"):
                slot.run(wrong)  # pyright: ignore[reportArgumentType]
        with pytest.raises(viaduct.ArgumentError, match="this BytesIO has no descriptor"):
            slot.run(io.BytesIO(b"abc"))
        assert slot.run(io.BytesIO(b"abc").getbuffer()).tobytes() == b"abc"


def test_results_have_type_and_shape_of_the_input(card: viaduct.Card):
    with card.load("inc") as slot:
        matrix = np.arange(1000, dtype=np.uint32).reshape(50, 20)
        slot.set(amount=5)
        assert np.array_equal(slot.run(matrix), matrix + 5)
        assert np.array_equal(slot.run(matrix.T), matrix.T + 5)  # in another order of memory
        assert np.array_equal(slot.run(matrix[::3, ::2]), matrix[::3, ::2] + 5)
        assert slot.run(np.array(7, np.uint32)) == 12
        floats = np.linspace(0, 1, 100)
        slot.set(amount=0)
        assert np.array_equal(slot.run(floats), floats)
        assert (
            slot.run(bytearray(b"abcd")).tobytes()
            == slot.run(memoryview(b"a-b-c-d-")[::2]).tobytes()
            == b"abcd"
        )


def test_a_result_outlives_slot_and_card():
    with viaduct.open() as card, card.load("pass") as slot:
        first, second = slot.run(data(4096)), slot.run(data(65))
        part = first[100:200]
    del first
    gc.collect()
    assert np.array_equal(part, data(4096)[100:200]) and np.array_equal(second, data(65))


def test_transfer_between_arrays_and_files(card: viaduct.Card, tmp_path: Path):
    file, other = tmp_path / "file", tmp_path / "other=file:x"
    out = np.zeros(6000, np.uint8)
    with card.load("pass") as slot:
        report = slot.transfer({"in": data(5000)}, {"out": file}, durable=True)
        assert file.read_bytes() == data(5000).tobytes() and report.lengths == {}
        report = slot.transfer({"in": f"file:{file}"}, {"out": out}, chunk=4096)
        assert report.lengths == {"out": 5000}
        assert np.array_equal(out[:5000], data(5000)) and not out[5000:].any()
        slot.transfer({"in": file}, {"out": other})
        assert other.read_bytes() == file.read_bytes()
        assert np.array_equal(slot.run(file), data(5000))
        with pytest.raises(viaduct.TooSmallError, match="5000 bytes"):
            slot.transfer({"in": file}, {"out": np.zeros(4999, np.uint8)})


def test_data_stays_in_card_memory_between_runs(card: viaduct.Card):
    where = "card:0x400000000+4096"  # the second channel
    with card.load("inc") as slot:
        slot.set(amount=1)
        slot.transfer({"in": np.arange(1024, dtype=np.uint32)}, {"out": where})
        assert np.array_equal(slot.run(where).view(np.uint32), np.arange(2, 1026))
        with pytest.raises(viaduct.ArgumentError, match="channel"):
            slot.run("card:0xffffffffffff0000+4096")
        with pytest.raises(viaduct.ArgumentError, match="file:"):
            slot.run("name-without-file")


def test_progress_is_told_and_its_exceptions_arrive(card: viaduct.Card):
    seen: list[viaduct.Progress] = []
    with card.load("pass") as slot:
        slot.run(data(100_000), progress=seen.append, chunk=4096)
        assert len(seen) > 1 and seen[-1].bytes_in == seen[-1].total_in == seen[-1].bytes_out == 100_000
        assert [p.cycles for p in seen] == sorted(p.cycles for p in seen)

        def stop(_: viaduct.Progress) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            slot.run(data(100_000), progress=stop)
        assert np.array_equal(slot.run(data(65)), data(65))


@pytest.mark.parametrize("kind", [GeneratorExit, KeyboardInterrupt, SystemExit, StopIteration])
def test_an_exception_of_any_kind_arrives(card: viaduct.Card, kind: type[BaseException]):
    def fail(_: viaduct.Progress) -> None:
        raise kind("enough")

    with card.load("pass") as slot:
        with pytest.raises(kind, match="enough"):
            slot.run(data(100_000), progress=fail)
        assert slot.run(data(64)).size == 64


def test_an_exception_stops_a_run_at_once(card: viaduct.Card, tmp_path: Path):
    """Including a run that would never end by itself."""
    seen: list[int] = []

    def stop(p: viaduct.Progress) -> None:
        seen.append(p.bytes_in)
        if len(seen) == 3:
            raise ZeroDivisionError

    with card.load("pass") as slot:
        with pytest.raises(ZeroDivisionError):
            slot.transfer({"in": "file:/dev/zero"}, {"out": tmp_path / "out"}, progress=stop)
        assert len(seen) == 3
        assert np.array_equal(slot.run(data(65)), data(65))


def test_ctrl_c_stops_a_run_at_once(card: viaduct.Card):
    """While no data moves, while data moves, and while an app works on memory; the slot still works afterwards."""

    def soon() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    source, target = os.pipe()
    with os.fdopen(source, "rb") as silent, os.fdopen(target, "wb"), card.load("pass") as slot:
        for endless in (silent, "file:/dev/zero"):
            timer = threading.Timer(1, soon)
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                slot.transfer({"in": endless}, {"out": "file:/dev/null"})
            timer.join()
            assert np.array_equal(slot.run(data(65)), data(65))
    with card.load("rng") as slot, slot.map(length=65_536) as mapping:
        slot.set(size=64, count=10**9, seed=1)
        timer = threading.Timer(1, soon)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            slot.start_and_wait(mapping)
        timer.join()
        slot.set(count=10)
        assert slot.start_and_wait(mapping).denied == 0


def test_open_files_and_pipes_are_endpoints(card: viaduct.Card, tmp_path: Path):
    with card.load("pass") as slot:
        source, target = os.pipe()
        with os.fdopen(source, "rb") as reader:
            writer = threading.Thread(target=lambda: os.fdopen(target, "wb").write(data(100_000).tobytes()))
            writer.start()
            assert np.array_equal(slot.run(reader), data(100_000))
            writer.join()
            assert not reader.closed
        with (tmp_path / "out").open("wb", buffering=0) as out:
            out.write(b"head")
            slot.transfer({"in": data(5000)}, {"out": out})
            out.write(b"tail")
        assert (tmp_path / "out").read_bytes() == b"head" + data(5000).tobytes() + b"tail"
        assert slot.run(Path("/proc/version")).tobytes() == Path("/proc/version").read_bytes()


# ---------------------------------------------------------------- memory


def test_an_app_reads_and_writes_an_array(card: viaduct.Card, tmp_path: Path):
    rng = model("rng")
    memory = data(20_000)
    registers = {"size": 128, "count": 200, "seed": 0x123456789ABCDEF, "write": 1}
    with card.load("rng") as slot:
        slot.set(**registers)
        expected = rng.model({"mem": memory.tobytes()}, registers)["mem"]
        with slot.map(memory, write=True) as mapping:
            assert len(mapping) == 20_000 and mapping.va != 0
            report = slot.start_and_wait(mapping, limit=60)
            assert report.denied == 0 and report.misses > 0 and report.memory_write_beats == 400
            mapping.sync()
            assert memory.tobytes() == expected
        registers["write"] = 0
        slot.set(write=0)
        with slot.map(memory) as mapping:
            slot.start_and_wait(mapping)
        assert slot.get("checksum") == rng.checksum(expected, registers)

        path = tmp_path / "new"
        slot.set(write=1)
        with slot.map(path, write=True, create=True, length=20_000, on_host=True) as mapping:
            slot.start_and_wait(mapping)
        assert path.read_bytes() == rng.model({"mem": bytes(20_000)}, registers | {"write": 1})["mem"]


def test_a_mapping_is_a_view_of_its_file(card: viaduct.Card, tmp_path: Path):
    rng = model("rng")
    path = tmp_path / "table"
    path.write_bytes(data(40_000).tobytes())
    registers = {"size": 64, "count": 300, "seed": 77, "write": 1}
    with card.load("rng") as slot:
        slot.set(**registers)
        # A part of the file, at a demanded address. The view outlives the mapping.
        with slot.map(
            path, write=True, offset=8192, length=20_000, address=0x7000_0000_0000, fixed=True
        ) as mapping:
            assert (mapping.va, len(mapping)) == (0x7000_0000_0000, 20_000)
            view = mapping.array
            assert np.array_equal(view, data(40_000)[8192:28_192])
            slot.start_and_wait(mapping)
            mapping.sync()
            once = rng.model({"mem": data(40_000)[8192:28_192].tobytes()}, registers)["mem"]
            assert view.tobytes() == once
            # The program writes; the app sees it when the pages have left the card.
            view[:] = data(20_000)
            for invalidate in (False, True):
                mapping.sync(invalidate=invalidate)
                slot.set(write=0)
                slot.start_and_wait(mapping)
                same = slot.get("checksum") == rng.checksum(data(20_000).tobytes(), registers | {"write": 0})
                assert same == invalidate
        view[0] ^= 1
        whole = path.read_bytes()
        assert whole[8192:28_192] == view.tobytes() and whole[:8192] == data(40_000)[:8192].tobytes()

        # Private: the file does not change, and need not be writable. There is no view of what is on the card.
        slot.set(write=1)
        path.chmod(0o400)
        with path.open("rb") as file, slot.map(file, write=True, private=True) as mapping:
            assert slot.start_and_wait(mapping).denied == 0
            mapping.sync(durable=True)
            with pytest.raises(ValueError, match="private"):
                mapping.array  # noqa: B018
        assert path.read_bytes() == whole
        # Read-only views of read-only files.
        with slot.map(path, length=4096) as mapping:
            assert not mapping.array.flags.writeable
            assert slot.start_and_wait(mapping).denied > 0


def test_advice_on_a_mapping_changes_what_the_pager_does(card: viaduct.Card):
    def pages(advice: str) -> tuple[int, int]:
        with card.load("rng") as slot, slot.map(length=256 * 4096) as mapping:
            mapping.madvise(advice)
            slot.set(size=4096, count=20, seed=5)
            slot.start_and_wait(mapping)
            loaded = slot.pager
            mapping.madvise("dontneed")
            assert slot.pager.evicted == loaded.pages_in
            return loaded.pages_in, loaded.faults

    assert pages("random")[0] <= 20 < pages("sequential")[0]
    assert pages("willneed") == (256, 0)
    with card.load("rng") as slot, slot.map(length=64 * 4096, write=True) as mapping:
        slot.limit_frames(8 * 4096)
        mapping.madvise("willneed")
        assert slot.pager.pages_in == 8
        mapping.madvise("normal", 4096, 8192)
        for wrong in (lambda: mapping.madvise("often"), lambda: mapping.madvise("random", 64 * 4096)):
            with pytest.raises(ValueError, match=r"advice is 'often'|it must be"):
                wrong()
        slot.set(size=64, count=500, seed=5, write=1)
        assert slot.start_and_wait(mapping).denied == 0
        assert slot.pager.evicted > 0 and any(mapping.array), "what was evicted is there already"


def test_pages_are_in_the_channels_that_are_named(card: viaduct.Card):
    """Accesses of a beat to one channel meet in its banks; four channels respond faster."""

    def cycles(channels: list[int] | None) -> int:
        with card.load("rng") as slot:
            slot.place(channels)
            with slot.map(length=256 * 4096) as mapping:
                mapping.madvise("willneed")
                slot.set(size=64, count=4000, seed=5)
                slot.start_and_wait(mapping)
                assert slot.pager.faults == 0
                return slot.get("cycles")

    one = cycles([3])
    assert max(cycles([0, 1, 2, 3]), cycles(None)) < 0.97 * one
    with card.load("rng") as slot:
        slot.place([1])
        for wrong, why in (([card.info.channels], "of the card's 4"), ([], "is empty"), ([-1], "-1")):
            with pytest.raises(ValueError, match=why):
                slot.place(wrong)


def test_weights_are_checked_and_a_paused_app_goes_on(card: viaduct.Card):
    data = bytes(range(256)) * 4096
    with card.load("pass") as slot:
        for wrong in (0, 16, -1):
            with pytest.raises(viaduct.ArgumentError, match="weight"):
                slot.set_weight(wrong)
        slot.set_weight(15)
        slot.pause()
        run = slot.run_async(data)
        with pytest.raises(TimeoutError):
            run.result(timeout=0.5)
        slot.resume()
        assert run.result(timeout=60).tobytes() == data


def test_a_schedule_is_checked_and_slows_down(card: viaduct.Card):
    data = bytes(range(256)) * 1024
    with card.load("pass") as slot:
        refused: list[tuple[dict[str, Any], str]] = [
            ({"weight": 16}, "weight"),
            ({"rate": 0}, "rate"),
            ({"limit": True}, "needs a rate"),
            ({"rate": 1 << 40}, "leave it out"),
            ({"rate": 1 << 30, "burst": 1 << 30}, "at most"),
            ({"in_flight": 1 << 30}, "at most"),
        ]
        for wrong, why in refused:
            with pytest.raises(viaduct.ArgumentError, match=why):
                slot.set_schedule(**wrong)

        def cycles() -> int:
            assert slot.run(data).tobytes() == data and slot.report is not None
            return slot.report.cycles

        free = cycles()
        slot.set_schedule(weight=3, first=True, rate=1_000_000_000, limit=True, in_flight=4096)
        limited = cycles()
        # A gigabyte a second, reads and writes together, of a card at 250 MHz: 4 bytes a cycle.
        assert 0.9 < limited / (2 * len(data) / 4) < 1.1 and limited > 4 * free
        slot.set_schedule()
        assert cycles() < 1.1 * free


def test_parts_of_a_mapping_go_and_operations_go_on(card: viaduct.Card, tmp_path: Path):
    path = tmp_path / "table"
    path.write_bytes(bytes(64 * 4096))
    with card.load("rng") as slot:
        slot.set(size=64, count=5000, seed=3, write=1)
        mapping = slot.map(path, write=True)
        assert slot.start_and_wait(mapping).denied == 0
        part = slice(16 * 4096, 32 * 4096)
        mapping.unmap(part.start, part.stop - part.start)
        written = np.fromfile(path, np.uint8)
        assert any(written[part]) and not any(written[part.stop :])
        assert slot.start_and_wait(mapping).denied > 0
        with pytest.raises(ValueError, match="nothing is mapped"):
            mapping.sync(0, len(mapping))
        mapping.sync()

        async def end() -> None:
            await asyncio.wrap_future(mapping.madvise_async("lowuse", part.stop))
            await asyncio.wrap_future(mapping.unmap_async(part.stop, 4096))
            await asyncio.wrap_future(mapping.close_async())

        asyncio.run(end())
        assert np.count_nonzero(np.fromfile(path, np.uint64)) > 1000
        for closed in (mapping.sync, lambda: mapping.va, lambda: slot.start_and_wait(mapping)):
            with pytest.raises(viaduct.ClosedError, match="mapping is closed"):
                closed()
        with slot.map(path) as mapping:
            failed = mapping.sync_async(64, durable=True)
            with pytest.raises(ValueError, match="multiple of 4096"):
                failed.result()


def test_parts_that_are_left_are_written(card: viaduct.Card, tmp_path: Path):
    """Errors name places in the mapping, not addresses of the app."""
    path = tmp_path / "table"
    path.write_bytes(data(40_000).tobytes())
    with card.load("rng") as slot, slot.map(path, write=True, huge=False) as mapping:
        mapping.unmap(8192, 4096)
        mapping.unmap(36_864, 40_000 - 36_864)
        mapping.sync()
        mapping.sync(4096)
        mapping.sync(durable=True, invalidate=True)
        with pytest.raises(viaduct.ArgumentError, match="nothing is mapped at byte 8192 of the map") as told:
            mapping.sync(0, 20_000)
        assert "0x" not in str(told.value)
        with pytest.raises(viaduct.ArgumentError, match="byte 100 of the mapping is not a multiple"):
            mapping.sync(100)
        # What is in the gap belongs to somebody else.
        at = mapping.va + 8192
        with slot.map(data(4096), address=at, fixed=True, huge=False) as other:
            mapping.close()
            other.sync(0, 4096)
    assert path.read_bytes() == data(40_000).tobytes()


def test_a_mapping_that_another_one_has_replaced_leaves_that_alone(card: viaduct.Card, tmp_path: Path):
    path = tmp_path / "old"
    path.write_bytes(bytes(40_000))
    with card.load("rng") as slot:
        slot.set(size=64, count=64, seed=3, write=1)
        part, whole = slot.map(path, write=True), slot.map(path, write=True)
        at = part.va
        new = slot.map(data(4096), write=True, address=at + 8192, fixed=True)
        # A part that was replaced is an error by name; otherwise what is left counts.
        for call in (
            lambda: part.sync(8192, 4096),
            lambda: part.madvise("dontneed"),
            lambda: part.madvise("dontneed", 4096, 8192),
        ):
            with pytest.raises(viaduct.ArgumentError, match="nothing is mapped at byte 8192 of the mapping"):
                call()
        part.sync(invalidate=True)
        part.sync(0, 8192)
        part.madvise("normal", 12_288)
        part.unmap(4096, 12_288)
        part.close()
        new.sync(0, 4096)
        new.close()
        # Nothing is left of it.
        newer = slot.map(data(40_000), write=True, address=whole.va, fixed=True)
        for call in (
            lambda: whole.va,
            lambda: len(whole),
            whole.sync,
            lambda: whole.madvise("dontneed"),
            lambda: whole.unmap(0, 4096),
            lambda: slot.start_and_wait(whole),
        ):
            with pytest.raises(viaduct.ClosedError, match="another mapping has replaced this one"):
                call()
        whole.close()
        newer.sync(0, 40_000)
        assert slot.start_and_wait(newer).denied == 0
        assert np.any(newer.array)
        newer.close()
    assert path.read_bytes() == bytes(40_000)


def test_a_refused_mapping_harms_no_file(card: viaduct.Card, tmp_path: Path):
    old, new = tmp_path / "old", tmp_path / "new"
    content = data(10_000).tobytes()
    with card.load("rng") as slot:
        # Too large for a file, too small, not possible there.
        for length, address in ((1 << 62, None), (0, None), (5000, 1), (20_000, 1)):
            old.write_bytes(content)
            for path in (old, new):
                with pytest.raises(viaduct.Error):
                    slot.map(
                        path, write=True, create=True, length=length, address=address, fixed=bool(address)
                    )
            assert old.read_bytes() == content and not new.exists(), length
        for length in (5000, 20_000):
            old.write_bytes(content)
            with slot.map(old, write=True, create=True, length=length) as mapping:
                assert not mapping.array.any() and len(mapping.array) == length
            assert old.read_bytes() == bytes(length)


def test_errors_of_files_are_those_of_the_system(card: viaduct.Card, tmp_path: Path):
    missing = tmp_path / "missing"
    with card.load("pass") as slot:
        for attempt in (lambda: slot.run(missing), lambda: slot.map(missing)):
            with pytest.raises(viaduct.FileError) as told:
                attempt()
            assert (told.value.errno, told.value.filename) == (errno.ENOENT, str(missing))
            assert told.value.strerror == os.strerror(errno.ENOENT)


def test_one_thread_waits_for_several_apps(card: viaduct.Card):
    """Their pages are loaded by that thread: nothing else serves them."""
    rng = model("rng")
    with card.load("rng") as first, card.load("rng") as second, contextlib.ExitStack() as mapped:
        slots = {first: 3000, second: 100}
        expected = {}
        for slot, count in slots.items():
            registers = {"size": 64, "count": count, "seed": 7 + count, "write": 0}
            memory = data(65_536)
            mapping = mapped.enter_context(slot.map(memory))
            slot.set(base=mapping.va, bytes=len(mapping), **registers)
            expected[slot] = rng.checksum(memory.tobytes(), registers)
        seen = {slot: slot.irqs for slot in slots}
        with pytest.raises(TimeoutError, match=r"within 0.05 seconds"):
            viaduct.wait_for_one(seen, timeout=0.05)
        for slot in slots:
            slot.set(start=1)
        order = []
        while seen:
            order.append(viaduct.wait_for_one(seen, timeout=60))
            del seen[order[-1]]
        assert order == [second, first]
        for slot in slots:
            assert slot.get("done") == 1 and slot.get("checksum") == expected[slot]
        with pytest.raises(ValueError, match="give at least one"):
            viaduct.wait_for_one({}, timeout=1)
        with pytest.raises(ValueError, match="0 or more"):
            viaduct.wait_for_one({first: 0}, timeout=-1)
    with pytest.raises(viaduct.ClosedError):
        viaduct.wait_for_one({first: 0}, timeout=1)


def test_runs_go_on_while_the_program_does_something_else(card: viaduct.Card):
    with card.load("pass") as streams, card.load("rng") as memory, memory.map(length=65_536) as mapping:
        memory.set(size=64, count=2000, seed=3, write=0)
        told: list[int] = []

        async def both() -> tuple[np.ndarray, viaduct.Report]:
            running = memory.start_and_wait_async(mapping, limit=60)
            passed = streams.run_async(data(5000), progress=lambda now: told.append(now.bytes_in))
            return await asyncio.wrap_future(passed), await asyncio.wrap_future(running)

        out, report = asyncio.run(both())
        assert np.array_equal(out, data(5000)) and told[-1] == 5000
        assert report.memory_read_beats == 2000
        into = np.zeros(5000, np.uint8)
        ran = streams.transfer_async({"in": data(5000)}, {"out": into})
        failed = memory.start_and_wait_async(mapping, limit=0)
        assert ran.result().lengths == {"out": 5000} and np.array_equal(into, out)
        with pytest.raises(ValueError, match="limit is 0"):
            failed.result()
        # Closing waits for what goes on.
        last = streams.run_async(data(100_000))
    assert last.done() and last.result().nbytes == 100_000


def test_an_exception_in_a_with_stops_what_was_begun(card: viaduct.Card):
    begun: list[Future[viaduct.Report]] = []
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), card.load("pass") as slot:
            for _ in range(2):
                begun.append(slot.transfer_async({"in": "file:/dev/zero"}, {"out": "file:/dev/null"}))
            raise ZeroDivisionError
        # The first one has begun, or not yet.
        assert all(f.cancelled() or isinstance(f.exception(), viaduct.StoppedError) for f in begun)
        assert begun[-1].cancelled()
    with card.load("pass") as slot:
        assert np.array_equal(slot.run(data(65)), data(65))


def test_a_run_that_was_begun_has_its_slot_at_once(card: viaduct.Card):
    """Also before its thread has done anything. Each run that is in the way waits for a pipe, so it can't have ended."""
    with card.load("pass") as slot, card.load("rng") as memory:
        memory.set(size=64, count=200, seed=3, write=0)
        for _ in range(20):
            source, sink = os.pipe()
            with os.fdopen(source, "rb") as reader, os.fdopen(sink, "wb") as writer:
                first, second = slot.run_async(data(5000)), slot.run_async(reader)
                with pytest.raises(viaduct.BusyError, match="a run is running on this slot"):
                    slot.run(data(64))
                writer.write(data(65).tobytes())
                writer.close()
                assert np.array_equal(first.result(), data(5000)) and np.array_equal(
                    second.result(), data(65)
                )
            assert np.array_equal(slot.run(data(64)), data(64))

            source, sink = os.pipe()
            with (
                os.fdopen(source, "rb") as reader,
                os.fdopen(sink, "wb") as writer,
                memory.map(reader, length=65_536) as mapping,
            ):
                works = memory.start_and_wait_async(mapping)
                with pytest.raises(viaduct.BusyError, match="running on this slot"):
                    memory.start_and_wait(mapping)
                writer.write(data(65_536).tobytes())
                writer.close()
                assert works.result().denied == 0


def write_slowly(sink: BinaryIO | socket.socket, sent: bytes) -> None:
    with sink:
        for at in range(0, len(sent), 10_000):
            time.sleep(0.05)
            os.write(sink.fileno(), sent[at : at + 10_000])


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_an_app_reads_a_pipe_or_socket(card: viaduct.Card, kind: str):
    """At random places, which wait for the data before them. What the stream has not is denied."""
    rng = model("rng")
    registers = {"size": 128, "count": 200, "seed": 0x123456789ABCDEF, "write": 0}
    for sent, denied in [(data(65_536), False), (data(40_000), True)]:
        if kind == "pipe":
            source, sink = (os.fdopen(fd, mode) for fd, mode in zip(os.pipe(), ("rb", "wb"), strict=True))
        else:
            source, sink = socket.socketpair()

        with card.load("rng") as slot, source, ThreadPoolExecutor(1) as pool:
            slot.set(**registers)
            with pytest.raises(viaduct.ArgumentError, match="give length="):
                slot.map(source)
            with pytest.raises(viaduct.ArgumentError, match="reading only or for writing only"):
                slot.map(source, length=65_536, write=True)
            with slot.map(source, length=65_536) as mapping:
                writing = pool.submit(write_slowly, sink, sent.tobytes())
                report = slot.start_and_wait(mapping, limit=60)
                writing.result()
            assert (report.denied > 0) == denied
            there = sent.tobytes() + bytes(65_536 - len(sent))
            assert slot.get("checksum") == rng.checksum(there, registers)


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_an_app_writes_a_pipe_or_socket(card: viaduct.Card, kind: str):
    """Each place once, in a random order; what arrives is in order."""
    registers = {"size": 64, "count": 1024, "seed": 0x123456789ABCDEF, "write": 1, "permute": 1}
    expected = np.uint64(registers["seed"]) ^ np.arange(0, 65_536, 8, dtype=np.uint64)
    with card.load("rng") as slot, ThreadPoolExecutor(1) as pool:
        slot.set(**registers)
        for length in (65_536, 62_001):
            if kind == "pipe":
                source, sink = (os.fdopen(fd, mode) for fd, mode in zip(os.pipe(), ("rb", "wb"), strict=True))
            else:
                sink, source = socket.socketpair()
            with source, os.fdopen(os.dup(source.fileno()), "rb") as reader:
                reading = pool.submit(reader.read)
                with slot.map(sink, length=1 << 20, read=False, write=True) as mapping:
                    sink.close()
                    slot.set(base=mapping.va, bytes=65_536)
                    assert slot.start_and_wait(limit=60).denied == 0
                    mapping.sync(0, 4097)
                    mapping.unmap(0, length)
                assert reading.result() == expected.tobytes()[:length]


@pytest.mark.parametrize("closes", [True, False])
def test_a_reader_that_closes_is_an_error(card: viaduct.Card, closes: bool):
    source, sink = os.pipe()
    with card.load("rng") as slot:
        slot.set(size=64, count=2048, seed=5, write=1, permute=1)
        with os.fdopen(sink, "wb") as file:
            mapping = slot.map(file, length=131_072, read=False, write=True)
        if closes:
            os.close(source)
        assert slot.start_and_wait(mapping, limit=60).denied == 0
        begun = time.monotonic()
        # A pipe holds half of that.
        with pytest.raises(
            viaduct.FileError, match="closed it" if closes else "took nothing for 10s"
        ) as told:
            mapping.close()
        assert told.value.errno == (errno.EPIPE if closes else errno.ETIMEDOUT)
        assert time.monotonic() - begun < 20
    if not closes:
        os.close(source)


def test_a_mapping_that_is_not_possible(card: viaduct.Card, tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(bytes(8192))
    with card.load("rng") as slot, card.load("rng") as other:
        with path.open("wb") as file, pytest.raises(viaduct.FileError, match="not open for reading") as told:
            slot.map(file, length=4096)
        assert told.value.errno == errno.EACCES
        with pytest.raises(ValueError, match="multiple of 4096"):
            slot.map(path, length=4096, offset=10)
        with pytest.raises(ValueError, match="multiple of the"):
            slot.map(length=4096, address=0x12345678901, fixed=True)
        with pytest.raises(viaduct.OutOfMemoryError, match="address space"):
            slot.map(length=4096, address=2**48, fixed=True)
        with pytest.raises(ValueError, match="length is 0"):
            slot.map(path)  # it was emptied above
        os.mkfifo(tmp_path / "fifo")
        with pytest.raises(viaduct.FileError, match="needs a reader") as told:
            slot.map(tmp_path / "fifo", length=4096, read=False, write=True)
        assert told.value.errno == errno.ENXIO
        with other.map(length=4096) as mapping, pytest.raises(ValueError, match="another slot"):
            slot.start_and_wait(mapping)


# ---------------------------------------------------------------- errors


def test_what_there_is_not(card: viaduct.Card):
    with pytest.raises(viaduct.NotFoundError, match="did you mean pass"):
        card.load("psas")
    with pytest.raises(viaduct.NotFoundError, match="no slot 99"):
        card.load("pass", slot=99)
    with pytest.raises(viaduct.NotFoundError, match="gen3x16"):
        viaduct.open("sim:gen9")
    with pytest.raises(viaduct.ArgumentError, match="or sim"):
        viaduct.open("pci")
    with pytest.raises(viaduct.CardError, match="nowhere"):
        viaduct.open("unix:/nowhere/a.sock")
    with pytest.raises(viaduct.ArgumentError, match="write it like 0000:01:00"):
        viaduct.open("vfio:01")
    with pytest.raises(viaduct.CardError, match="there is no such PCI function"):
        viaduct.open("vfio:fffffffe:ff:1f.7")
    with pytest.raises(viaduct.FileError, match="nowhere"):
        card.load(Path("/nowhere/x.via"))
    with card.load("aes") as slot:
        assert [(p.direction, p.name, p.length) for p in slot.ports.values()] == [
            ("in", "in", None),
            ("out", "out", "same"),
        ]
        assert (slot.registers["key"].width, slot.registers["key"].required) == (256, True)
        with pytest.raises(LookupError, match="did you mean key"):
            slot.set(kye=1)
        with pytest.raises(LookupError, match="no register"):
            slot.get("nothing")
        with pytest.raises(LookupError, match="no output"):
            slot.set(key=bytes(32), iv=bytes(16))
            slot.transfer({"in": b"x"}, {"result": np.zeros(1, np.uint8)})
        with pytest.raises(LookupError, match="no memory port"):
            slot.start_and_wait()


def test_wrong_arguments(card: viaduct.Card):
    with card.load("aes") as slot:
        with pytest.raises(ValueError, match="key must be set"):
            slot.run(b"x")
        for wrong in (b"short", bytes(33), "zz", 2**256, -1):
            with pytest.raises(ValueError):
                slot.set(key=wrong)
        with pytest.raises(ValueError, match="zero byte"):
            slot.set(key="0\0")
        slot.set(key=0, iv=0)
        with pytest.raises(ValueError, match="Python objects"):
            slot.run(np.array([None]))
        with pytest.raises(ValueError, match="writable"):
            slot.transfer({"in": b"xy"}, {"out": np.zeros(4, np.uint8)[::2]})
        with pytest.raises(ValueError, match="writable"):
            slot.transfer({"in": b"xy"}, {"out": np.frombuffer(b"xy", np.uint8)})
        with pytest.raises(ValueError, match="has no route"):
            slot.transfer({"in": b"x"}, {})
        with pytest.raises(ValueError, match="transfer"):
            slot.run()
        with pytest.raises(viaduct.FileError, match="nowhere"):
            slot.run(Path("/nowhere/x"))
        with pytest.raises(ValueError, match="it must be 0 to"):
            slot.write32(0, 2**32)
        with pytest.raises(ValueError, match="multiples of 4"):
            slot.read32(2)
        with pytest.raises(ValueError, match="writable"):
            slot.map(b"abc", write=True)
        with pytest.raises(ValueError, match="seconds"):
            slot.start_and_wait(limit=-1)
        assert slot.run(b"x").size == 1


def test_closing_goes_backwards(card: viaduct.Card):
    slot = card.load("pass")
    mapping = slot.map(data(100))
    with pytest.raises(viaduct.BusyError, match="in use"):
        slot.close()
    with pytest.raises(viaduct.BusyError, match="in use"):
        card.close()
    mapping.close()
    mapping.close()
    with pytest.raises(viaduct.ClosedError, match="closed"):
        mapping.sync()
    slot.close()
    with pytest.raises(viaduct.ClosedError, match="closed"):
        slot.run(b"x")
    assert card.time() > 0


def test_a_card_that_dies_in_a_run_is_told(tmp_path: Path):
    socket = tmp_path / "card.sock"
    command = [ROOT / "viaduct", "card", "--socket", socket]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, cwd=ROOT) as served:
        assert served.stdout and "card on" in served.stdout.readline()
        card = viaduct.open(f"unix:{socket}")
        slot = card.load("pass")
        assert np.array_equal(slot.run(data(65)), data(65))
        with pytest.raises(viaduct.CardError):
            slot.run(data(1_000_000), chunk=4096, progress=lambda _: served.kill())
        with pytest.raises(viaduct.CardError):
            slot.run(b"x")
        slot.close()
        card.close()
    with pytest.raises(viaduct.CardError, match=r"card\.sock"):
        viaduct.open(f"unix:{socket}")


def test_threads_with_a_slot_each(card: viaduct.Card):
    results: dict[int, bool] = {}

    def work(number: int) -> None:
        with card.load("pass") as slot:
            results[number] = all(np.array_equal(slot.run(data(n)), data(n)) for n in (65, 5000 + number))

    threads = [threading.Thread(target=work, args=[number]) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {0: True, 1: True, 2: True}


def test_a_program_may_end_without_closing():
    program = "import viaduct; slot = (card := viaduct.open()).load('pass'); print(bytes(slot.run(b'abc')))"
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "b'abc'\n", "")


STREAMS = "slot.transfer{}({{'in': 'file:/dev/zero'}}, {{'out': 'file:/dev/null'}})"
MEMORY = "slot.start_and_wait{}(mapping)"
ENDS: dict[str, list[str]] = {
    "in a daemon thread": [f"threading.Thread(target=lambda: {STREAMS.format('')}, daemon=True).start()"],
    "in several": [
        f"threading.Thread(target=lambda: {STREAMS.format('')}, daemon=True).start()",
        "def again():",
        "    while True:",
        "        try: other.run(bytes(5000))",
        "        except Exception: pass",
        "threading.Thread(target=again, daemon=True).start()",
    ],
    "begun": [STREAMS.format("_async"), STREAMS.format("_async")],
    "begun on memory": [MEMORY.format("_async")],
    "interrupted": [
        f"begun = {STREAMS.format('_async')}",
        "threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()",
        "with contextlib.suppress(KeyboardInterrupt): begun.result()",
    ],
}


@pytest.mark.parametrize("how", ENDS)
def test_the_end_of_a_program_stops_runs(how: str, tmp_path: Path):
    """Runs that would never end, at each moment of a call. What the program has mapped is written."""
    path = tmp_path / "mapped"
    path.write_bytes(bytes(65_536))
    begin = [
        "import atexit, contextlib, os, signal, sys, threading, time, viaduct",
        "from pathlib import Path",
        "card = viaduct.open()",
        "slot, other = card.load(sys.argv[2]), card.load('pass')",
        "if sys.argv[2] == 'rng':",
        "    slot.set(size=64, count=10**9, seed=1, write=1)",
        "    mapping = slot.map(Path(sys.argv[1]), write=True)",
        *ENDS[how],
        "time.sleep(float(sys.argv[3]))",
        "print('end')",
    ]
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    app = "rng" if "memory" in how else "pass"
    for seconds in (0.02, 0.35):
        command = [sys.executable, "-c", "\n".join(begin), str(path), app, str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
    assert app == "pass" or any(path.read_bytes())


def test_the_end_of_a_program_waits_for_threads_and_for_mappings(tmp_path: Path):
    """As Python does for threads that are not daemons."""
    path = tmp_path / "mapped"
    path.write_bytes(bytes(65_536))
    program = """
import sys, threading, time, viaduct
from pathlib import Path
card = viaduct.open()
slot, other = card.load("rng"), card.load("pass")
slot.set(size=64, count=1000, seed=1, write=1)
mapping = slot.map(Path(sys.argv[1]), write=True)
slot.start_and_wait(mapping)
def work():
    time.sleep(0.5)
    print(other.run(bytes(100_000)).nbytes)
threading.Thread(target=work).start()
mapping.close_async()
"""
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "100000\n", "")
    assert any(path.read_bytes())


def test_a_child_of_fork_ends_while_the_parent_is_in_a_run():
    program = f"""
import os, threading, time, viaduct
card = viaduct.open()
slot = card.load("pass")
threading.Thread(target=lambda: {STREAMS.format("")}, daemon=True).start()
time.sleep(0.2)
child = os.fork()
if child != 0:
    print(os.waitpid(child, 0)[1])
"""
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT, timeout=40)
    assert (done.returncode, done.stdout) == (0, "0\n")


def address_space() -> int:
    """GiB that this process has mapped."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") >> 30


def test_what_is_dropped_is_closed(tmp_path: Path):
    path = tmp_path / "mapped"
    path.write_bytes(bytes(4096))
    before = address_space()
    for in_a_circle in (False, True):
        card = viaduct.open()
        assert address_space() > before + 32, "a card uses address space, else this test shows nothing"
        slot = card.load("rng")
        slot.set(size=64, count=1, seed=1, write=1)
        mapping = slot.map(path, write=True)
        slot.start_and_wait(mapping)
        if in_a_circle:
            # The collector chooses the order.
            card.__dict__["circle"] = [card, mapping, slot]
        with pytest.warns(ResourceWarning, match="unclosed viaduct") as told:
            del card, slot, mapping
            gc.collect()
        assert sorted(str(w.message) for w in told) == [
            "unclosed viaduct.Card",
            "unclosed viaduct.Mapping",
            "unclosed viaduct.Slot",
        ]
        assert address_space() < before + 8
        assert any(path.read_bytes()), "the app's changes are in the file"
        path.write_bytes(bytes(4096))
    # A slot keeps its card open, without other references to it.
    with pytest.warns(ResourceWarning):
        slot = viaduct.open().load("pass")
        assert np.array_equal(slot.run(data(65)), data(65))
        slot.close()
        del slot
        gc.collect()
    assert address_space() < before + 8


def test_a_child_of_fork_leaves_the_card_alone():
    program = """
import os, sys, viaduct
card = viaduct.open()
slot = card.load("pass")
mapping = slot.map(length=4096, write=True)
child = os.fork()
if child == 0:
    for use in (card.time, lambda: slot.run(b"x"), lambda: slot.get("x"), mapping.sync):
        try:
            use()
            sys.exit("not refused")
        except viaduct.ClosedError as error:
            assert "before fork()" in str(error)
    mapping.close()
    with viaduct.open() as own, own.load("pass") as other:
        assert bytes(other.run(b"child")) == b"child"
    sys.exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
print(bytes(slot.run(b"parent")))
mapping.close()
slot.close()
card.close()
"""
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "b'parent'\n", "")


def test_a_missing_library_is_told():
    env = os.environ | {"PYTHONPATH": str(ROOT / "python"), "VIADUCT_LIB": "/nowhere/lib.so"}
    done = subprocess.run([sys.executable, "-c", "import viaduct"], capture_output=True, text=True, env=env)
    assert "ImportError: VIADUCT_LIB names /nowhere/lib.so: there is no such file" in done.stderr
