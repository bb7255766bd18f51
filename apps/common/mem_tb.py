# SPDX-License-Identifier: Apache-2.0
"""What the tests of memory apps share: an app, the top of the simulation, before a memory, and runs compared with its model.

Register names come from the app's manifest; the memory port is `mem`.
"""

import importlib.util
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType

import cocotb
from cocotb.triggers import RisingEdge

from via_tb import AxiMem, rng

APPS = Path(__file__).resolve().parents[1]


@cache
def manifest(app: str) -> dict:
    """The contents of an app's app.toml."""
    return tomllib.loads((APPS / app / "app.toml").read_text())


@cache
def golden(app: str) -> ModuleType:
    """The golden model of an app, as a module."""
    spec = importlib.util.spec_from_file_location(f"{app}_model", APPS / app / "model.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Get:
    """A member of a struct that the app drives."""

    def __init__(self, signal, low: int, width: int) -> None:
        self._signal, self._low, self._width = signal, low, width

    def __len__(self) -> int:
        return self._width

    @property
    def value(self) -> int:
        return int(self._signal.value) >> self._low & (1 << self._width) - 1


class _Put:
    """A member of a struct that the memory drives; the signal changes with its last member, the id."""

    def __init__(self, struct: dict[int, int], signal, low: int, width: int, last: bool = False) -> None:
        self._struct, self._signal, self._low, self._width = struct, signal, low, width
        self._last = last
        self._handle = self  # via_tb's `high` asks it

    def get_signal_val_binstr(self) -> str:
        return f"{self.value:b}"

    def __len__(self) -> int:
        return self._width

    @property
    def value(self) -> int:
        return self._struct.get(self._low, 0)

    @value.setter
    def value(self, value: int) -> None:
        self._struct[self._low] = int(value)
        if self._last:
            self._signal.value = sum(part << low for low, part in self._struct.items())


class _Port:
    """The memory port of an app as the individual signals that AxiMem knows; structs as in via_pkg."""

    def __init__(self, dut) -> None:
        for name, end in (("ar", "oi"), ("r", "io"), ("aw", "oi"), ("w", "oi"), ("b", "io")):
            for wire, way in (("valid", end[0]), ("ready", end[1])):
                setattr(self, f"mem_{name}{wire}", getattr(dut, f"mem_{name}_{wire}_{way}"))
        for name in ("ar", "aw"):
            ax = getattr(dut, f"mem_{name}_o")
            setattr(self, f"mem_{name}addr", _Get(ax, 0, 64))
            setattr(self, f"mem_{name}len", _Get(ax, 64, 8))
            setattr(self, f"mem_{name}id", _Get(ax, 77, len(ax) - 77))
        r, w, b = dut.mem_r_i, dut.mem_w_o, dut.mem_b_i
        width = (len(w) - 1) // 9 * 8
        self.mem_wdata = _Get(w, 0, width)
        self.mem_wstrb = _Get(w, width, width // 8)
        self.mem_wlast = _Get(w, width + width // 8, 1)
        struct: dict[int, int] = {}
        self.mem_rdata = _Put(struct, r, 0, width)
        self.mem_rlast = _Put(struct, r, width, 1)
        self.mem_rresp = _Put(struct, r, width + 1, 2)
        self.mem_rid = _Put(struct, r, width + 3, len(r) - width - 3, last=True)
        struct = {}
        self.mem_bresp = _Put(struct, b, 0, 2)
        self.mem_bid = _Put(struct, b, 2, len(b) - 2, last=True)


class Bench:
    """An app before a memory with this content. `memory`: arguments of AxiMem."""

    def __init__(self, dut, content: bytes, **memory) -> None:
        self.dut = dut
        self.app = dut._name.removesuffix("_app")
        access = {r["name"]: r["access"] for r in manifest(self.app)["register"]}
        self._rw = [name for name, way in access.items() if way == "rw"]
        self._ro = [name for name, way in access.items() if way == "ro" and name != "done"]
        dut.start_i.value = 0
        for name in self._rw:
            getattr(dut, f"{name}_i").value = 0
        port = _Port(dut)
        self.width = len(port.mem_rdata) // 8  # bytes of a beat
        self.mem = AxiMem(port, "mem", size=len(content), **memory)
        self.mem.mem[:] = content
        self.irqs = 0
        cocotb.start_soon(self._count_irqs())

    async def _count_irqs(self) -> None:
        while True:
            await RisingEdge(self.dut.irq_o)
            self.irqs += 1

    async def go(self, base: int, length: int, **registers: int) -> dict[str, int]:
        """Runs once and returns the registers; they are changed while it runs, which must not matter."""
        dut, before = self.dut, self.irqs
        for name, value in {"base": base, "bytes": length, **registers}.items():
            getattr(dut, f"{name}_i").value = value
        dut.start_i.value = 1
        await RisingEdge(dut.clk_i)
        dut.start_i.value = 0
        for name in self._rw:
            wire = getattr(dut, f"{name}_i")
            wire.value = rng().getrandbits(min(20, len(wire)))
        for _ in range(2):
            await RisingEdge(dut.clk_i)
        while not dut.done_o.value:
            await RisingEdge(dut.done_o)
        for _ in range(3):
            await RisingEdge(dut.clk_i)
        assert self.irqs == before + 1
        assert not self.mem.open_reads and not self.mem.open_writes
        return {name: int(getattr(dut, f"{name}_o").value) for name in self._ro}

    async def compare(self, base: int, length: int, **registers: int) -> dict[str, int]:
        """Runs once and compares the whole memory, and the registers that the model gives."""
        before = bytes(self.mem.mem)
        result = await self.go(base, length, **registers)
        want = golden(self.app).model({"mem": before[base : base + length]}, registers)
        assert self.mem.mem == before[:base] + want.pop("mem") + before[base + length :]
        assert not result.get("errors")
        for name, value in want.items():
            assert result[name] == int.from_bytes(value, "little"), name
        return result

    async def refuses(self, good: dict[str, int], wrongs: list[dict[str, int]], cycles: int = 6) -> None:
        """Runs with wrong parameters end within `cycles` with one error and no access; one with good ones works after that."""
        for wrong in wrongs:
            result = await self.go(**{**good, **wrong})
            assert result["errors"] == 1 and result["cycles"] < cycles, wrong
        assert not self.mem.reads and not self.mem.writes
        await self.compare(**good)
