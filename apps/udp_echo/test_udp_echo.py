# SPDX-License-Identifier: Apache-2.0
"""App udp_echo against a model that takes frames apart and puts the answers together from the standards."""

import struct

import cocotb
import pytest
from app_tb import exchange, rng, run_app

from via_tb import until

MAC = bytes.fromhex("025649564401")
PEER = bytes.fromhex("02aabbccddee")
HERE, THERE = bytes([10, 0, 0, 2]), bytes([10, 0, 0, 1])


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip(source: bytes, to: bytes, proto: int, payload: bytes, flags: int = 0) -> bytes:
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 7, flags, 64, proto, 0, source, to)
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload


def udp(source: bytes, to: bytes, ports: tuple[int, int], payload: bytes) -> bytes:
    head = struct.pack(">HHHH", *ports, 8 + len(payload), 0)
    pseudo = source + to + struct.pack(">BBH", 0, 17, 8 + len(payload))
    return head[:6] + struct.pack(">H", checksum(pseudo + head + payload) or 0xFFFF) + payload


def icmp(kind: int, rest: bytes) -> bytes:
    return bytes([kind, 0]) + struct.pack(">H", checksum(bytes([kind, 0, 0, 0]) + rest)) + rest


def arp(op: int, sha: bytes, spa: bytes, tha: bytes, tpa: bytes) -> bytes:
    return struct.pack(">HHBBH6s4s6s4s", 1, 0x800, 6, 4, op, sha, spa, tha, tpa)


def ethernet(to: bytes, source: bytes, kind: int, payload: bytes) -> bytes:
    return to + source + struct.pack(">H", kind) + payload


def cases(r) -> list[tuple[bytes, bytes | None]]:
    """Frames and what must come back."""
    found: list[tuple[bytes, bytes | None]] = []
    for size in (0, 1, 17, 18, 21, 22, 23, 64, 86, 1024, 1472):
        data = r.randbytes(size)
        ports = (r.randrange(65536), r.randrange(65536))
        ask = ethernet(MAC, PEER, 0x800, ip(THERE, HERE, 17, udp(THERE, HERE, ports, data)))
        reply = ethernet(PEER, MAC, 0x800, ip(HERE, THERE, 17, udp(HERE, THERE, ports[::-1], data)))
        found.append((ask, reply))
    for size in (0, 56, 57, 1000):
        for _ in range(4):
            rest = r.randbytes(4 + size)
            ask = ethernet(MAC, PEER, 0x800, ip(THERE, HERE, 1, icmp(8, rest)))
            found.append((ask, ethernet(PEER, MAC, 0x800, ip(HERE, THERE, 1, icmp(0, rest)))))
    for to in (MAC, b"\xff" * 6):
        ask = ethernet(to, PEER, 0x806, arp(1, PEER, THERE, bytes(6), HERE) + bytes(18))
        found.append((ask, ethernet(PEER, MAC, 0x806, arp(2, MAC, HERE, PEER, THERE) + bytes(18))))
    datagram = udp(THERE, HERE, (1, 2), b"x" * 40)
    whole = ip(THERE, HERE, 17, datagram)
    found += [
        (frame, None)
        for frame in (
            ethernet(PEER, PEER, 0x800, whole),  # for someone else
            ethernet(b"\xff" * 6, PEER, 0x800, whole),  # broadcast
            ethernet(MAC, b"\x01" + PEER[1:], 0x800, whole),  # from a group
            ethernet(MAC, PEER, 0x86DD, whole),  # IPv6
            ethernet(MAC, PEER, 0x800, b"\x46" + whole[1:]),  # options
            ethernet(MAC, PEER, 0x800, ip(THERE, HERE, 17, datagram, flags=0x2000)),  # more fragments
            ethernet(MAC, PEER, 0x800, ip(THERE, HERE, 17, datagram, flags=0x0001)),  # a later fragment
            ethernet(MAC, PEER, 0x800, ip(THERE, HERE, 6, datagram)),  # TCP
            ethernet(MAC, PEER, 0x800, ip(THERE, HERE, 1, icmp(0, bytes(20)))),  # a reply
            ethernet(MAC, PEER, 0x806, arp(2, PEER, THERE, MAC, HERE)),  # an ARP reply
            ethernet(MAC, PEER, 0x800, whole)[:41],  # cut short
            b"\x00",
            r.randbytes(300),
        )
    ]
    # A don't-fragment flag is no fragment.
    found.append(
        (
            ethernet(MAC, PEER, 0x800, ip(THERE, HERE, 17, datagram, flags=0x4000)),
            ethernet(
                PEER, MAC, 0x800, ip(HERE, THERE, 17, udp(HERE, THERE, (2, 1), b"x" * 40), flags=0x4000)
            ),
        )
    )
    r.shuffle(found)
    return found


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.4])
async def answers_what_is_for_it(dut, stall):
    r = rng()
    dut.mac_i.value = int.from_bytes(MAC, "little")
    todo = cases(r)
    wanted = [reply for _, reply in todo if reply is not None]
    source, _, got = await exchange(dut, [(3, ask) for ask, _ in todo], stall, stall, responses=len(wanted))
    assert [(m.id, m.data) for m in got] == [(3, reply) for reply in wanted]
    # What is dropped after the last response is still to come, and the counters follow a cycle later.
    await until(dut, lambda: int(dut.answered_o.value) + int(dut.dropped_o.value) == len(todo), 200)
    assert int(dut.answered_o.value) == len(wanted)
    assert int(dut.dropped_o.value) == len(todo) - len(wanted)
    if not stall:
        assert source.cycles[-1] - source.cycles[0] == len(source.cycles) - 1


@pytest.mark.parametrize("data_w", [512])
def test_udp_echo(data_w):
    run_app(__file__, data_w)
