# SPDX-License-Identifier: Apache-2.0
"""The driver's side of a virtqueue, written from the VIRTIO specification and independent of the RTL: split and packed rings, indirect tables,
event index, in order, notification data. It lays out rings in a bytearray, takes used buffers back, and watches every write of the device.

`Host` owns the memory: hand each write of the device to `Host.store`. It fails the test if the device writes where no device-writable buffer of
a chain in its hands lies, or other than the specification lets it in the rings, or shows a chain whose data is not in memory yet.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

NEXT, WRITE, INDIRECT = 1, 2, 4
AVAIL, USED = 1 << 7, 1 << 15


@dataclass(frozen=True)
class Features:
    event_idx: bool = False
    indirect: bool = False
    packed: bool = False
    in_order: bool = False
    notif_data: bool = False

    @property
    def bits(self) -> int:
        """As vq_feat_t."""
        return (
            self.event_idx << 4 | self.indirect << 3 | self.packed << 2 | self.in_order << 1 | self.notif_data
        )


@dataclass(eq=False)
class Chain:
    """One buffer in the sense of the specification: its parts, and what came of it."""

    parts: list[tuple[bool, int, int]]  # device-writable, address, length
    ident: int = -1
    slots: list[int] = field(default_factory=list)
    table: tuple[int, int] | None = None
    number: int = 0
    used: int | None = None  # length the device told

    @property
    def rlen(self) -> int:
        return sum(n for w, _, n in self.parts if not w)

    @property
    def wlen(self) -> int:
        return sum(n for w, _, n in self.parts if w)


def need_event(event: int, new: int, old: int) -> bool:
    return (new - event - 1) & 0xFFFF < (new - old) & 0xFFFF


class Host:
    """Memory with its owners. `permit[i]`: 1 = a buffer the device may write, 2 = used ring (checked by its queue)."""

    def __init__(self, mem: bytearray, r: random.Random) -> None:
        self.mem, self.r = mem, r
        self.permit = bytearray(len(mem))
        self.queues: list[Queue] = []
        self._slab = 16384
        self._free: list[int] = []

    def arena(self, first: int, last: int, slab: int = 16384) -> None:
        self._slab = slab
        self._free = list(range(first, last, slab))

    @property
    def room(self) -> int:
        return len(self._free)

    def alloc(self, length: int, align: int = 1) -> int:
        """A buffer at a random place of its own slab."""
        assert length <= self._slab - 256, "longer than a slab"
        slab = self._free.pop(self.r.randrange(len(self._free)))
        return slab + self.r.randrange(0, self._slab - length - 128) // align * align

    def free(self, addr: int) -> None:
        self._free.append(addr // self._slab * self._slab)

    def put(self, addr: int, value: int, size: int) -> None:
        self.mem[addr : addr + size] = value.to_bytes(size, "little")

    def get(self, addr: int, size: int) -> int:
        return int.from_bytes(self.mem[addr : addr + size], "little")

    def gather(self, chain: Chain, write: bool) -> bytes:
        return b"".join(bytes(self.mem[a : a + n]) for w, a, n in chain.parts if w == write)

    def store(self, addr: int, data: bytes) -> None:
        """The device writes. Words become visible in any order."""
        words: list[tuple[int, bytes]] = []
        at = 0
        while at < len(data):
            step = min(8 - (addr + at) % 8, len(data) - at)
            words.append((addr + at, data[at : at + step]))
            at += step
        if len(words) > 1:
            self.r.shuffle(words)
        ring = False
        for a, d in words:
            kinds = set(self.permit[a : a + len(d)])
            if kinds == {1}:
                self.mem[a : a + len(d)] = d
                continue
            owner = next((q for q in self.queues if q.owns(a, len(d))), None)
            assert owner, f"device writes {len(d)} bytes at {a:#x}, which is not granted"
            self.mem[a : a + len(d)] = d
            owner.look()
            owner.settled()
            ring = True
        assert not ring or len(data) <= 64


class Queue:
    """One virtqueue. `add` and `publish` make chains available, `notification` says whether and what to write to the doorbell, `reap` gives
    back what is used. `verify(chain, length)` is called when the device shows a chain, before anything else can happen."""

    def __init__(self, host: Host, index: int, base: int, size: int, feat: Features, verify) -> None:
        self.host, self.index, self.size, self.feat, self.verify = host, index, size, feat, verify
        r = host.r
        self.desc = base + 16 * r.randrange(16)
        self.driver = self.desc + 16 * size + (4 if feat.packed else 2) * r.randrange(16)
        self.device = (self.driver + 6 + 2 * size + 67) // 4 * 4 + 4 * r.randrange(16)
        self.end = self.device + 8 + 8 * size
        host.mem[base : self.end + 64] = bytes(self.end + 64 - base)
        self.tables = base + 0x2000
        self.table_slots = list(range(size))  # 256 bytes each
        self.live: dict[int, Chain] = {}
        self.order: deque[Chain] = deque()  # made available, not shown
        self.shown: deque[Chain] = deque()  # shown, not taken back
        self.made = 0
        self.room = size
        self.free_desc = list(range(size))
        r.shuffle(self.free_desc)
        self.free_ids = list(range(size if not feat.packed else 4 * size))
        r.shuffle(self.free_ids)
        self.place = 0  # next descriptor (packed, in order)
        self.wrap = 1
        self.avail = 0  # split: index, published or not
        self.told = 0
        self.pending: list[tuple[int, int]] = []  # packed: first descriptors' flags, not yet visible
        self.used_at, self.used_wrap = 0, 1  # where the next used entry will be
        self.alive = True
        self.settled = lambda: None  # called after each look
        host.queues = [q for q in host.queues if q.index != index] + [self]

    @property
    def config(self) -> int:
        """As vq_cfg_t."""
        return 1 << 208 | self.size << 192 | self.desc << 128 | self.driver << 64 | self.device

    # ------------------------------------------------------------ what the device may write in the rings
    def owns(self, addr: int, size: int) -> bool:
        if not self.alive:
            return False
        if self.feat.packed:
            # The upper half of a descriptor: length, id, flags; of one that the device has not used yet. The lower half, the address, of one that
            # begins a chain; but not of the next one to be used: the driver may put a new address there as soon as it sees the upper half.
            inside = self.desc <= addr and addr + size <= self.desc + 16 * self.size
            place = (addr - self.desc) // 16
            ahead = (place - self.used_at) % self.size
            held = sum(len(chain.slots) for chain in self.order)
            upper = (addr - self.desc) % 16 >= 8
            return (
                inside
                and ahead < held
                and (upper or (ahead > 0 and any(chain.slots[0] == place for chain in self.order)))
            )
        first, ring, event = self.device + 2, self.device + 4, self.device + 4 + 8 * self.size
        if (addr, size) == (first, 2):
            return True
        if (addr, size) == (event, 2):
            return self.feat.event_idx
        return ring <= addr and addr + size <= event

    # ------------------------------------------------------------ make available
    def need(self, chain: Chain, indirect: bool) -> int:
        return 1 if indirect else len(chain.parts)

    def fits(self, chain: Chain, indirect: bool) -> bool:
        return self.need(chain, indirect) <= self.room

    def add(self, chain: Chain, indirect: bool = False) -> None:
        host, r, n = self.host, self.host.r, self.need(chain, indirect)
        assert n <= self.room
        self.room -= n
        chain.number, self.made = self.made, self.made + 1
        for write, addr, length in chain.parts:
            if write:
                host.permit[addr : addr + length] = b"\1" * length
        entries = [(WRITE if w else 0, a, length) for w, a, length in chain.parts]
        if indirect:
            slot = self.table_slots.pop()
            at = self.tables + slot * 256 + 16 * r.randrange(16 - len(entries) + 1)
            chain.table = (slot, at)
            for i, (flags, a, length) in enumerate(entries):
                more = 0 if self.feat.packed or i == len(entries) - 1 else NEXT
                self._desc(at + 16 * i, a, length, flags | more, i + 1)
            entries = [(INDIRECT, at, 16 * len(entries))]
        if self.feat.packed:
            self._add_packed(chain, entries)
        else:
            self._add_split(chain, entries)
        self.live[chain.ident] = chain
        self.order.append(chain)

    def _desc(self, at: int, addr: int, length: int, flags: int, nxt: int) -> None:
        """Split descriptors; those of a packed queue's table lie the same, with id and flags swapped."""
        tail = (nxt, flags) if self.feat.packed else (flags, nxt)
        self.host.put(at, addr | length << 64 | tail[0] << 96 | tail[1] << 112, 16)

    def _add_split(self, chain: Chain, entries) -> None:
        if self.feat.in_order:
            chain.slots = [(self.place + i) % self.size for i in range(len(entries))]
            self.place = (self.place + len(entries)) % self.size
        else:
            chain.slots = [self.free_desc.pop() for _ in entries]
        for i, (flags, addr, length) in enumerate(entries):
            more = i < len(entries) - 1
            self._desc(
                self.desc + 16 * chain.slots[i],
                addr,
                length,
                flags | (NEXT if more else 0),
                chain.slots[i + 1] if more else self.host.r.getrandbits(16),
            )
        chain.ident = chain.slots[0]
        self.host.put(self.driver + 4 + 2 * (self.avail % self.size), chain.ident, 2)
        self.avail = (self.avail + 1) & 0xFFFF

    def _add_packed(self, chain: Chain, entries) -> None:
        chain.ident = self.free_ids.pop()
        for i, (flags, addr, length) in enumerate(entries):
            at = self.desc + 16 * self.place
            more = NEXT if i < len(entries) - 1 else 0
            flags |= more | (AVAIL if self.wrap else USED)
            self.host.put(at, addr | length << 64 | chain.ident << 96, 14)
            if i == 0:
                self.pending.append((at + 14, flags))
            else:
                self.host.put(at + 14, flags, 2)
            chain.slots.append(self.place)
            self.place += 1
            if self.place == self.size:
                self.place, self.wrap = 0, 1 - self.wrap

    def publish(self) -> None:
        if self.feat.packed:
            for at, flags in self.pending:
                self.host.put(at, flags, 2)
            self.pending.clear()
        else:
            self.host.put(self.driver + 2, self.avail, 2)

    def notification(self) -> int | None:
        """vq_notify_t, or None if the device does not want to be told."""
        if self.feat.packed:
            data = self.wrap << 15 | self.place
        else:
            data = self.avail
            old, self.told = self.told, self.avail
            if self.feat.event_idx and not need_event(
                self.host.get(self.device + 4 + 8 * self.size, 2), self.avail, old
            ):
                return None
        return self.index << 16 | data

    # ------------------------------------------------------------ used
    def look(self) -> None:
        """Follows the device: takes what it shows now, and checks that it may."""
        while True:
            entry = self._look_packed() if self.feat.packed else self._look_split()
            if entry is None:
                return
            ident, length = entry
            assert ident in self.live, f"queue {self.index}: used id {ident}, which is not with the device"
            chain = self.live[ident]
            if self.feat.in_order:
                # Those before it were used wholly; no entry says so.
                while self.order[0] is not chain:
                    self._show(self.order[0], self.order[0].wlen)
            self._show(chain, length)

    def _look_split(self) -> tuple[int, int] | None:
        index = self.host.get(self.device + 2, 2)
        behind = (index - self.used_at) & 0xFFFF
        assert behind <= len(self.order), (
            f"queue {self.index}: used index {index}, {len(self.order)} with the device"
        )
        if not behind:
            return None
        at = self.device + 4 + 8 * (self.used_at % self.size)
        return self.host.get(at, 4), self.host.get(at + 4, 4)

    def _look_packed(self) -> tuple[int, int] | None:
        at = self.desc + 16 * self.used_at
        flags = self.host.get(at + 14, 2)
        if not (bool(flags & AVAIL) == bool(flags & USED) == bool(self.used_wrap)) or not self.order:
            return None
        length, ident = self.host.get(at + 8, 4), self.host.get(at + 12, 2)
        assert bool(flags & WRITE) == (length != 0), "WRITE and length do not agree"
        return ident, length

    def _show(self, chain: Chain, length: int) -> None:
        assert self.order[0] is chain or not self.feat.in_order
        assert chain in self.order
        self.order.remove(chain)
        del self.live[chain.ident]
        chain.used = length
        self.verify(self, chain, length)
        for write, addr, n in chain.parts:
            if write:
                self.host.permit[addr : addr + n] = bytes(n)
        if self.feat.packed:
            self.used_at += len(chain.slots)
            if self.used_at >= self.size:
                self.used_at, self.used_wrap = self.used_at - self.size, 1 - self.used_wrap
        else:
            self.used_at = (self.used_at + 1) & 0xFFFF
        self.shown.append(chain)

    def reap(self) -> Chain | None:
        """Takes one shown chain back: its descriptors and buffers are free again."""
        if not self.shown:
            return None
        chain = self.shown.popleft()
        self.room += len(chain.slots)
        if chain.table:
            self.table_slots.append(chain.table[0])
        if self.feat.packed:
            self.free_ids.append(chain.ident)
        elif not self.feat.in_order:
            self.free_desc += chain.slots
            self.host.r.shuffle(self.free_desc)
        for _, addr, _ in chain.parts:
            self.host.free(addr)
        return chain

    def drop(self) -> None:
        """The queue was reset: everything comes back unused."""
        self.alive = False
        for chain in [*self.order, *self.shown]:
            for write, addr, n in chain.parts:
                if write:
                    self.host.permit[addr : addr + n] = bytes(n)
                self.host.free(addr)
        self.host.queues.remove(self)

    # ------------------------------------------------------------ interrupts
    def interrupts(self, want: bool, ahead: int = 0) -> None:
        """Says when to interrupt: never, or after `ahead` more used chains (with EVENT_IDX; packed: places of the ring)."""
        host = self.host
        if self.feat.packed:
            if want and self.feat.event_idx:
                at, wrap = self._reaped_at()
                at += ahead
                if at >= self.size:
                    at, wrap = at - self.size, 1 - wrap
                # Both halves are 16 bits; the device may see the first one before the second.
                host.put(self.driver, wrap << 15 | at, 2)
                host.put(self.driver + 2, 2, 2)
            else:
                host.put(self.driver + 2, 0 if want else 1, 2)
        elif self.feat.event_idx:
            reaped = (self.used_at - len(self.shown)) & 0xFFFF
            event = (reaped + ahead) & 0xFFFF if want else (reaped - 1) & 0xFFFF
            host.put(self.driver, host.r.getrandbits(16), 2)  # nothing to the device
            host.put(self.driver + 4 + 2 * self.size, event, 2)
        else:
            host.put(self.driver, 0 if want else 1, 2)

    def _reaped_at(self) -> tuple[int, int]:
        back = sum(len(c.slots) for c in self.shown)
        at, wrap = self.used_at - back, self.used_wrap
        if at < 0:
            at, wrap = at + self.size, 1 - wrap
        return at, wrap
