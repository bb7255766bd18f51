#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Amaranth has no types for what its operators give.
# pyright: reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOperatorIssue=false, reportReturnType=false
"""SHA-256 (FIPS 180-4) of one message after the other, described in Amaranth; makes the Verilog of the app.

    PYTHONPATH=apps/common .venv/bin/python apps/sha_hls/design.py --data-width 512 --out sha_hls_app.v

`viaduct build` calls it so. The ports are those of any app with one stream each way; a stream is a `strm_t` of via_pkg.
"""

import math
from itertools import pairwise

import flow
from amaranth import (
    Array,
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    Elaboratable,
    Module,
    Mux,
    ResetSignal,
    Signal,
)
from amaranth.hdl import Value


def primes(count: int) -> list[int]:
    """The first primes."""
    found: list[int] = []
    n = 2
    while len(found) < count:
        if all(n % p for p in found):
            found.append(n)
        n += 1
    return found


def root(n: int, degree: int) -> int:
    """32 bits behind the point of the square or cube root of n."""
    low, high = 0, n << 32
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= n << 32 * degree else (low, middle - 1)
    return low & 0xFFFF_FFFF


# FIPS 180-4, 4.2.2 and 5.3.3
K = [root(p, 3) for p in primes(64)]
INIT = [root(p, 2) for p in primes(8)]


def mixed(x: Value, *turns: int, shift: int = 0) -> Value:
    """Exclusive or of x rotated to the right by each of `turns`, and shifted by `shift` if it is not zero."""
    result = x >> shift if shift else Const(0, 32)
    for n in turns:
        result = result ^ x.rotate_right(n)
    return result


def swapped(x: Value) -> Value:
    """Reverses the bytes."""
    return Cat(*(x[i : i + 8] for i in reversed(range(0, len(x), 8))))


class Sha256(Elaboratable):
    """A block of 64 bytes in 66 cycles and those of its beats. Beats of `width` bits."""

    def __init__(self, width: int) -> None:
        self.width, self.bytes = width, width // 8
        beat = width + self.bytes + 9

        def port(name: str, bits: int = 1) -> Signal:
            return Signal(bits, name=name)

        self.clk_i, self.rst_ni = port("clk_i"), port("rst_ni")
        self.in_i, self.in_valid_i, self.in_ready_o = (
            port("in_i", beat),
            port("in_valid_i"),
            port("in_ready_o"),
        )
        self.out_o, self.out_valid_o = port("out_o", beat), port("out_valid_o")
        self.out_ready_i, self.busy_o = port("out_ready_i"), port("busy_o")

    def ports(self) -> list[Value]:
        """In the order of an app's ports."""
        streams = [self.in_i, self.in_valid_i, self.in_ready_o, self.out_o, self.out_valid_o]
        return [self.clk_i, self.rst_ni, *streams, self.out_ready_i, self.busy_o]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = ClockDomain()
        m.d.comb += [ClockSignal().eq(self.clk_i), ResetSignal().eq(~self.rst_ni)]

        # A beat, with a number in place of `keep`: bytes, if it is not full.
        size, log2 = self.bytes, int(math.log2(self.bytes))
        data_i, keep_i = self.in_i[: self.width], self.in_i[self.width :][:size]
        beat, count, full, last, held, id_ = (
            Signal(self.width), Signal(log2), Signal(), Signal(), Signal(), Signal(8),
        )  # fmt: skip
        take = Signal()
        m.d.comb += self.in_ready_o.eq(~held | take)
        with m.If(self.in_ready_o):
            m.d.sync += held.eq(self.in_valid_i)
            ends = [Mux(keep_i[i - 1] & ~keep_i[i], i, 0) for i in range(1, size)]
            number = Const(0, log2)
            for end in ends:
                number = number | end
            m.d.sync += [
                beat.eq(data_i), full.eq(keep_i[-1]), count.eq(number), last.eq(self.in_i[-9]), id_.eq(self.in_i[-8:]),
            ]  # fmt: skip

        # The beat that enters the block: of the message, then its mark 0x80, zeros, and its length in bits.
        beats = 64 // size
        place, mark, zero, first, final = (
            Signal(max(1, (beats - 1).bit_length())), Signal(), Signal(), Signal(init=1), Signal(),
        )  # fmt: skip
        whole, rest = Signal(61 - log2), Signal(log2)  # beats of the message that are full; bytes behind them
        padding, fits, end = mark | zero, Signal(), Signal()
        before = Mux(first, 0, whole)
        bits = Cat(Const(0, 3), Mux(padding, rest, count), before)[:64]
        m.d.comb += end.eq(place == beats - 1)
        if size > 8:
            m.d.comb += fits.eq(padding | (last & ~full & (count <= size - 9)))
        else:
            m.d.comb += fits.eq(zero)
        parts = []
        for i in range(size):
            here = Mux(full | (count > i), beat[8 * i : 8 * i + 8], Mux(count == i, 0x80, 0))
            there = Mux(mark, 0x80, 0) if i == 0 else Const(0, 8)
            parts.append(Mux(padding, there, here)[:8])
        parts[-8:] = [
            Mux(end & fits, bits[56 - 8 * i : 64 - 8 * i], part) for i, part in enumerate(parts[-8:])
        ]
        padded = Cat(*parts)

        # State and schedule; a sum without what the last round gives is made a cycle ahead, its constant two.
        words = [Signal(32, name=f"w{i}") for i in range(16)]
        hash_ = [Signal(32, name=f"hash{i}") for i in range(8)]
        a, b, c, d, e, f, g, _ = state = [Signal(32, name=f"state_{name}") for name in "abcdefgh"]
        early, constant, turn = Signal(32), Signal(32), Signal(6)
        constants = Array(K)
        new = Signal(32)
        m.d.comb += new.eq(
            mixed(words[14], 17, 19, shift=10) + words[9] + mixed(words[1], 7, 18, shift=3) + words[0]
        )

        beat_words = [swapped(padded[i : i + 32]) for i in range(0, max(self.width, 32), 32)]
        out_left, out, id_out = Signal(2), Signal(256), Signal(8)
        out_bytes = min(32, size)
        with m.FSM():
            with m.State("LOAD"), m.If(held | padding):
                m.d.comb += take.eq(~padding)
                m.d.sync += Cat(words).eq(Cat(*words[len(beat_words) :], *beat_words))
                m.d.sync += place.eq(place + 1)
                with m.If(~padding):
                    m.d.sync += [first.eq(0), whole.eq(before + full), rest.eq(count)]
                    m.d.sync += [mark.eq(last & full), zero.eq(last & ~full)]
                    m.d.sync += id_out.eq(id_)
                with m.Else():
                    m.d.sync += [mark.eq(0), zero.eq(1)]
                with m.If(first & ~padding):
                    m.d.sync += [word.eq(value) for word, value in zip(hash_, INIT, strict=True)]
                with m.If(end):
                    m.d.sync += [place.eq(0), final.eq(fits)]
                    m.next = "START"
            with m.State("START"):
                m.d.sync += [x.eq(y) for x, y in zip(state, hash_, strict=True)]
                m.d.sync += [early.eq(hash_[7] + words[0] + K[0]), constant.eq(K[1]), turn.eq(0)]
                m.next = "ROUND"
            with m.State("ROUND"):
                one = early + mixed(e, 6, 11, 25) + ((e & f) ^ (~e & g))
                two = mixed(a, 2, 13, 22) + ((a & b) ^ (a & c) ^ (b & c))
                m.d.sync += [y.eq(x) for x, y in pairwise(state)]
                m.d.sync += [e.eq(d + one), a.eq(one + two)]
                m.d.sync += [early.eq(g + words[1] + constant), constant.eq(constants[(turn + 2)[:6]])]
                m.d.sync += turn.eq(turn + 1)
                m.d.sync += Cat(words).eq(Cat(*words[1:], new))
                with m.If(turn == 63):
                    m.next = "ADD"
            with m.State("ADD"):
                m.d.sync += [x.eq(x + y) for x, y in zip(hash_, state, strict=True)]
                m.next = "LOAD"
                with m.If(final):
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.sync += [out.eq(Cat(*map(swapped, hash_))), out_left.eq(32 // out_bytes - 1)]
                m.d.sync += [mark.eq(0), zero.eq(0), first.eq(1), final.eq(0)]
                m.next = "OUT"
            with m.State("OUT"):
                m.d.comb += self.out_valid_o.eq(1)
                with m.If(self.out_ready_i):
                    m.d.sync += [out.eq(out >> 8 * out_bytes), out_left.eq(out_left - 1)]
                    with m.If(out_left == 0):
                        m.next = "LOAD"
        idle = Signal()
        m.d.comb += idle.eq(~held & first & ~padding)
        m.d.comb += self.busy_o.eq(~idle & ~self.out_valid_o)
        zeros, keep_o = Const(0, self.width - 8 * out_bytes), Const((1 << out_bytes) - 1, size)
        m.d.comb += self.out_o.eq(Cat(out[: 8 * out_bytes], zeros, keep_o, out_left == 0, id_out))
        return m


def main() -> None:
    app = flow.App(__file__)
    design = Sha256(app.width)
    app.write(flow.from_amaranth(app, design, design.ports()))


if __name__ == "__main__":
    main()
