# SPDX-License-Identifier: Apache-2.0
"""What cards, slots and runs say of themselves."""

from collections.abc import Mapping as MappingOf
from dataclasses import dataclass

from . import _library as lib


@dataclass(frozen=True)
class CardInfo:
    """Properties of a card."""

    version: tuple[int, int]  # of the register map
    slots: int
    channels: int  # of DRAM
    streams: int  # input streams of a slot, and output streams of a slot
    data_bytes: int  # bytes in a beat of every data path
    clock_khz: int  # of the card; times are in cycles of this clock
    channel_mib: int
    tlb_page: tuple[int, int]  # TLB entries of a slot for 4 KiB pages: ways, sets
    tlb_huge: tuple[int, int]  # the same for 2 MiB pages


@dataclass(frozen=True)
class Measured:
    """What a sensor has measured last, and its extremes since the monitor was reset."""

    last: float
    min: float
    max: float


@dataclass(frozen=True)
class SystemMonitor:
    """One reading of the FPGA's system monitor: degrees Celsius, volts, amperes, watts."""

    model: bool  # the values are those of a model; a simulated card has no sensors
    temperature: Measured
    vccint: Measured  # supply of the logic
    vccaux: Measured  # auxiliary supply
    vccbram: Measured  # supply of the memories
    current: float | None  # of the supply of the logic; None: the board has no sensor
    power: float | None


@dataclass(frozen=True)
class PortInfo:
    """A stream or memory port of an app."""

    name: str
    direction: str  # "in", "out" or "memory"
    length: (
        int | str | None
    )  # of an output: bytes per message, "same" as its input, or None: not known in advance


@dataclass(frozen=True)
class RegisterInfo:
    """A register of an app."""

    name: str
    offset: int  # in the slot's register window, in bytes
    width: int  # in bits
    access: str  # "rw", "ro" or "pulse"
    required: bool


@dataclass(frozen=True)
class Progress:
    """Progress of a run."""

    bytes_in: int
    total_in: int  # 0 while the length of an input is unknown
    bytes_out: int
    cycles: int


@dataclass(frozen=True)
class Report:
    """Results of a run. Cycles are the card's; beats are those of this slot."""

    bytes_in: int
    bytes_out: int
    cycles: int
    beats_in: int
    beats_out: int
    memory_read_beats: int
    memory_write_beats: int
    misses: int
    denied: int
    lengths: MappingOf[str, int]  # bytes written to each buffer


@dataclass(frozen=True)
class PagerStats:
    """What the pager has done for a slot."""

    faults: int  # served
    remapped: int  # of these, on pages that were on the card
    pages_in: int  # loaded
    pages_out: int  # written back
    evicted: int
    denied: int  # accesses
    damaged: int  # entries of the page table in card memory
    overflowed: int  # pages that stayed in host memory, since card memory was full
    demoted: int  # blocks of 2 MiB that got pages of 4 KiB
    promoted: int  # blocks that got a page of 2 MiB again


def report_of(raw: lib.ReportStruct, lengths: MappingOf[str, int]) -> Report:
    return Report(**{name: getattr(raw, name) for name, *_ in lib.ReportStruct._fields_}, lengths=lengths)


def port_of(raw: lib.Port) -> PortInfo:
    length = {lib.LENGTH_ANY: None, lib.LENGTH_SAME: "same"}.get(raw.length_kind, raw.length)
    return PortInfo(raw.name.decode(), ("in", "out", "memory")[raw.direction], length)


def register_of(raw: lib.Register) -> RegisterInfo:
    access = ("rw", "ro", "pulse")[raw.access]
    return RegisterInfo(raw.name.decode(), raw.offset, raw.width, access, bool(raw.required))
