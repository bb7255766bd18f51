# SPDX-License-Identifier: Apache-2.0
"""What the tests of stream apps share: build and run an app, send and collect messages, load the model.

The app itself is the top of the simulation: `in_i` and `out_o` are whole beats (`strm_t`).
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
import tomllib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cocotb
import flow
from cocotb.triggers import RisingEdge

from via_tb import ROOT, cycle, rng, run, stalls, start

APPS = Path(__file__).resolve().parent

Model = Callable[[dict[str, bytes], dict[str, int]], dict[str, bytes]]


def load_model(test_file: str) -> Model:
    """The function `model` of the model.py beside a test."""
    spec = importlib.util.spec_from_file_location("model", Path(test_file).with_name("model.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.model


def generated(app: Path, manifest: dict, data_w: int) -> Path:
    """The Verilog of an app's top module that a program writes; written again if that or the tools have changed."""
    top = manifest["app"]["top"]
    file = ROOT / "build/tb" / f"{app.name}.gen{data_w}" / f"{top}.v"
    design, common = app / manifest["app"]["generator"], APPS / "common"
    made_from = [design, app / "app.toml", common / "flow.py", ROOT / "tools/requirements.txt"]
    key = hashlib.sha256(b"".join(path.read_bytes() for path in made_from)).hexdigest()
    stamp = file.with_suffix(".stamp")
    if not (file.exists() and stamp.exists() and stamp.read_text() == key):
        file.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(design), f"--data-width={data_w}", f"--out={file}"]
        env = {**os.environ, "PYTHONPATH": str(common)}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
        file.with_name(f"{app.name}_tb.sv").write_text(typed(app.name, top, flow.ports(manifest, data_w)))
        stamp.write_text(key)
    return file


def typed(name: str, top: str, ports: list[flow.Port]) -> str:
    """A testbench of a generated app, whose ports are plain vectors: the same ports with the types that an app's have."""
    heads = [f"  {'output' if p.out else 'input'} {p.type} {p.name}" for p in ports]
    pins = [f"    .{p.name}({p.name})" for p in ports]
    return "module {}_tb\n  import via_pkg::*;\n(\n{}\n);\n  {} u_app (\n{}\n  );\nendmodule\n".format(
        name, ",\n".join(heads), top, ",\n".join(pins)
    )


def run_app(test_file: str, data_w: int, **kwargs) -> None:
    """Builds and tests the app a test file lies beside, for a card `data_w` bits wide. Other arguments are those of `run`.

    The top is the app itself, or the testbench of one that is generated.
    """
    app = Path(test_file).resolve().parent
    manifest = tomllib.loads((app / "app.toml").read_text())
    files, top = [(app / p).resolve() for p in manifest["app"].get("sources", [])], manifest["app"]["top"]
    if "generator" in manifest["app"]:
        file, top = generated(app, manifest, data_w), f"{app.name}_tb"
        files, kwargs = [*files, file], {**kwargs, "made": file.parent}
    sources = [str(p.relative_to(ROOT)) for p in files]
    run(top, test_file, defines={"VIA_DATA_W": data_w}, sources=sources, **kwargs)


@dataclass
class Message:
    """A message: its bytes, its id, the cycles in which its first and last beat passed."""

    data: bytes
    id: int = 0
    first: int = 0
    last: int = 0


class Source:
    """Sends chunks on `in`. Between messages and beats it pauses with probability `stall`."""

    def __init__(self, dut, stall: float = 0.0) -> None:
        self._dut, self._stall = dut, stalls(rng(), stall)
        self.width = (len(dut.in_i) - 9) // 9
        self.cycles: list[int] = []  # of every beat taken
        dut.in_valid_i.value = 0

    async def send(self, data: bytes, ident: int = 0, last: bool = True) -> None:
        """Sends one chunk; without `last` it must be a number of whole beats."""
        dut, width = self._dut, self.width
        edge = RisingEdge(dut.clk_i)
        assert data and (last or len(data) % width == 0)
        for at in range(0, len(data), width):
            part = data[at : at + width]
            # Garbage where keep is zero: nobody may rely on it.
            beat = int.from_bytes(part.ljust(width, b"\xee"), "little")
            beat |= ((1 << len(part)) - 1) << 8 * width
            beat |= (last and at + width >= len(data)) << 9 * width
            beat |= ident << 9 * width + 1
            while next(self._stall):
                dut.in_valid_i.value = 0
                await edge
            dut.in_i.value = beat
            dut.in_valid_i.value = 1
            await edge
            while not dut.in_ready_o.value:
                await RisingEdge(dut.in_ready_o)
                await edge
            self.cycles.append(cycle())
        dut.in_valid_i.value = 0


class Sink:
    """Collects messages on `out`, pauses with probability `stall`, checks the stream contract."""

    def __init__(self, dut, stall: float = 0.0) -> None:
        self._dut, self._stall = dut, stalls(rng(), stall)
        self.width = (len(dut.out_o) - 9) // 9
        self._open: dict[int, Message] = {}
        self._done: deque[Message] = deque()
        self._held: int | None = None
        self.cycles: list[int] = []
        dut.out_ready_i.value = 0

    async def receive(self) -> Message:
        """The next message that ends, whatever its id."""
        dut = self._dut
        edge = RisingEdge(dut.clk_i)
        while not self._done:
            ready = not next(self._stall)
            dut.out_ready_i.value = ready
            if ready and self._held is None and not dut.out_valid_o.value:
                await RisingEdge(dut.out_valid_o)
            await edge
            valid = bool(dut.out_valid_o.value)
            assert valid or self._held is None, "valid fell before ready"
            if valid:
                beat = int(dut.out_o.value)
                self._check_held(beat)
                self._held = None if ready else beat
                if ready:
                    self._take(beat)
        dut.out_ready_i.value = 0
        return self._done.popleft()

    def _mask(self, beat: int) -> int:
        """The beat without the bytes that keep leaves out."""
        keep = beat >> 8 * self.width & (1 << self.width) - 1
        return beat & ~((1 << 8 * self.width) - 1 ^ (1 << 8 * keep.bit_length()) - 1)

    def _check_held(self, beat: int) -> None:
        if self._held is not None:
            assert self._mask(beat) == self._mask(self._held), "payload changed before ready"

    def _take(self, beat: int) -> None:
        width = self.width
        raw = (beat & (1 << 8 * width) - 1).to_bytes(width, "little")
        keep = beat >> 8 * width & (1 << width) - 1
        last = beat >> 9 * width & 1
        ident = beat >> 9 * width + 1
        count = keep.bit_length()
        assert keep == (1 << count) - 1, f"holes in keep {keep:#x}"
        assert last or count == width, "a beat that is not the last is not full"
        now = cycle()
        self.cycles.append(now)
        message = self._open.setdefault(ident, Message(b"", ident, first=now))
        message.data += raw[:count]
        message.last = now
        if last:
            self._done.append(self._open.pop(ident))


async def exchange(
    dut, messages: list[tuple[int, bytes]], stall_in: float, stall_out: float, responses: int | None = None
) -> tuple[Source, Sink, list[Message]]:
    """Starts the app, sends messages (id, bytes) one after the other and collects as many, or `responses`."""
    source, sink = Source(dut, stall_in), Sink(dut, stall_out)
    await start(dut)

    async def send_all() -> None:
        for ident, data in messages:
            await source.send(data, ident)

    sender = cocotb.start_soon(send_all())
    got = [await sink.receive() for _ in range(len(messages) if responses is None else responses)]
    await sender
    return source, sink, got
