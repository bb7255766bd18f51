# SPDX-License-Identifier: Apache-2.0
"""`eth:`: frames through the board's Ethernet port to apps and back, at the pace of the line; captures of any content."""

import hashlib
import itertools
import json
import random
import re
import signal
import socket
import struct
import subprocess
import time
import urllib.request
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import viaduct

ROOT = Path(__file__).resolve().parents[1]
VIADUCT = str(ROOT / "viaduct")
PATIENCE = 300.0  # longest time for anything, also on a slow machine
NANOSECONDS = 0xA1B23C4D
WITH_FCS = 1 << 26 | 2 << 28  # of a capture's link type: 4 bytes
AROUND = 24  # preamble and delimiter 8, FCS 4, gap 12
Stamped = tuple[int, bytes]


def write(path: Path, frames: Iterable[Stamped], link: int = 1, order: str = "<") -> Path:
    """A capture in the format pcap: times in nanoseconds, frames."""
    data = struct.pack(order + "IHHiIII", NANOSECONDS, 2, 4, 0, 0, 65535, link)
    for at, frame in frames:
        data += struct.pack(order + "IIII", *divmod(at, 10**9), len(frame), len(frame)) + frame
    path.write_bytes(data)
    return path


def read(path: Path) -> list[Stamped]:
    data = path.read_bytes()
    assert struct.unpack_from("<I16xI", data) == (NANOSECONDS, 1)
    at, frames = 24, []
    while at < len(data):
        seconds, rest, length, full = struct.unpack_from("<IIII", data, at)
        assert length == full
        frames.append((seconds * 10**9 + rest, data[at + 16 : at + 16 + length]))
        at += 16 + length
    assert at == len(data)
    return frames


def block(kind: int, body: bytes) -> bytes:
    """Of a capture in the format pcapng."""
    body += bytes(-len(body) % 4)
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def with_fcs(frame: bytes) -> bytes:
    return frame + struct.pack("<I", zlib.crc32(frame))


def command(*args: object) -> list[str]:
    return [VIADUCT, *map(str, args)]


def run(*args: object, code: int = 0, words: str = "") -> subprocess.CompletedProcess[str]:
    """The run ends with this code and, if that is not 0, with one error line that contains these words."""
    done = subprocess.run(
        command("run", *args), capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, check=False
    )
    assert done.returncode == code, (done.returncode, done.stderr)
    errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert len(errors) == (code != 0) and all(words in line for line in errors), done.stderr
    assert "panicked" not in done.stderr
    return done


def both_ways(app: str, *args: object, **kwargs) -> subprocess.CompletedProcess[str]:
    return run(app, "--in", "eth:", "--out", "eth:", *args, **kwargs)


@pytest.fixture
def frames(rng: random.Random) -> list[bytes]:
    sizes = [60, 61, 64, 1514, *(rng.randint(60, 1514) for _ in range(150))]
    return [rng.randbytes(size) for size in sizes]


@pytest.mark.parametrize("gbps", [1, 10, 100])
def test_frames_pass_an_app_at_the_pace_of_the_line(tmp_path: Path, frames: list[bytes], gbps: int):
    source = write(tmp_path / "in", ((0, frame) for frame in frames))
    done = both_ways("pass", "--net", f"pcap:{source},{tmp_path / 'out'}", "--line", f"{gbps}G")
    came = read(tmp_path / "out")
    assert [frame for _, frame in came] == frames
    assert f"Ethernet: frames in {len(frames)}, frames out {len(frames)}" in done.stderr
    # An app that takes a beat a cycle leaves no gap: from the end of the first frame on the line out is as busy as the line in, but
    # for the time by which a long frame is whole later than a short one before it has left.
    busy = sum(len(frame) + AROUND for frame in frames[1:]) * 8 / gbps
    waited = (came[-1][0] - came[0][0]) - busy
    assert -2 <= waited <= (1538 + 64) * 8 / gbps + 100
    for (earlier, _), (later, frame) in itertools.pairwise(came):
        assert later - earlier >= (len(frame) + AROUND) * 8 // gbps - 1, "faster than the line"


def test_the_same_capture_gives_the_same_cycles(tmp_path: Path, frames: list[bytes]):
    source = write(tmp_path / "in", ((0, frame) for frame in frames))
    captures, cycles = [], []
    for name in ("a", "b"):
        net = f"pcap:{source},{tmp_path / name}"
        done = both_ways("pass", "--net", net, "--line", "10G", "--json")
        captures.append((tmp_path / name).read_bytes())
        cycles.append(json.loads(done.stdout)["ethernet"])
    assert captures[0] == captures[1] and cycles[0] == cycles[1]


def test_time_stamps_are_kept(tmp_path: Path, rng: random.Random):
    # In turns close to each other and far apart; one earlier than the one before.
    times = [5_000_000_000 + at for at in (0, 100, 50_000, 50_001, 49_000, 200_000)]
    data = [rng.randbytes(1000) for _ in times]
    source = write(tmp_path / "in", zip(times, data, strict=True), order=">")
    both_ways("pass", "--net", f"pcap-times:{source},{tmp_path / 'out'}", "--line", "10G")
    came = read(tmp_path / "out")
    assert [frame for _, frame in came] == data
    each = (1000 + AROUND) * 0.8
    expected = [0.0]
    for at in times[1:]:
        expected.append(max(at - times[0], expected[-1] + each))
    for (at, _), due in zip(came, expected, strict=True):
        assert abs((at - came[0][0]) - due) <= 10, (came, expected)


def udp(mac: bytes, payload: bytes) -> bytes:
    """From 10.0.0.1:1000 to 10.0.0.2:7, without a checksum of its payload."""
    datagram = struct.pack(">HHHH", 1000, 7, 8 + len(payload), 0) + payload
    head = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 20 + len(datagram), 1, 0, 64, 17, 0, b"\n\0\0\1", b"\n\0\0\2"
    )
    total = sum(struct.unpack(">10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF) + head[12:]
    return mac + b"\2\0\0\0\0\1" + b"\x08\0" + head + datagram


def test_a_host_on_the_card_answers(tmp_path: Path, rng: random.Random):
    echo, other = bytes.fromhex("025649564401"), bytes.fromhex("025649564402")
    payloads = [rng.randbytes(rng.randint(18, 1400)) for _ in range(20)]
    asked = [udp(echo if k % 4 else other, payload) for k, payload in enumerate(payloads)]
    source = write(tmp_path / "in", ((0, frame) for frame in asked))
    done = both_ways("udp_echo", "--net", f"pcap:{source},{tmp_path / 'out'}", "--json")
    replies = [frame for _, frame in read(tmp_path / "out")]
    expected = [frame for k, frame in enumerate(asked) if k % 4]
    assert [reply[42:] for reply in replies] == [frame[42:] for frame in expected]
    assert all(reply[:6] == b"\2\0\0\0\0\1" and reply[6:12] == echo for reply in replies)
    result = json.loads(done.stdout)
    assert result["registers"] == {"answered": "0xf", "dropped": "0x5"}
    assert (result["ethernet"]["frames_in"], result["ethernet"]["frames_out"]) == (20, 15)


def test_apps_in_sequence_work_on_frames(tmp_path: Path, frames: list[bytes]):
    source = write(tmp_path / "in", ((0, frame) for frame in frames))
    both_ways("pass", "--then", "pass", "--net", f"pcap:{source},{tmp_path / 'out'}")
    assert [frame for _, frame in read(tmp_path / "out")] == frames


def test_one_frame_is_one_message(tmp_path: Path, frames: list[bytes]):
    source = write(tmp_path / "in", ((0, frame) for frame in frames))
    digest = run("sha256", "--in", "eth:", "--net", f"pcap:{source}").stdout.split()[-1]
    assert digest == hashlib.sha256(frames[0]).hexdigest()
    run("pass", "--in", "eth:", "--out", f"file:{tmp_path / 'one'}", "--net", f"pcap:{source}")
    assert (tmp_path / "one").read_bytes() == frames[0]
    for size, sent in ((20, 60), (60, 60), (9000, 9000)):
        (tmp_path / "data").write_bytes(b"x" * size)
        to = ["--out", "eth:", "--net", f"pcap:,{tmp_path / 'out'}"]
        run("pass", "--in", f"file:{tmp_path / 'data'}", *to)
        assert [frame for _, frame in read(tmp_path / "out")] == [(b"x" * size).ljust(sent, b"\0")]
    done = run("pass", "--in", f"file:{tmp_path / 'one'}", "--out", "eth:", "--net", "loop")
    assert "Ethernet: frames in 1, frames out 1" in done.stderr


def test_what_is_no_valid_frame_is_counted_and_harms_nothing(tmp_path: Path, rng: random.Random):
    def wire(size: int) -> bytes:
        return with_fcs(rng.randbytes(size))

    good = [wire(60), wire(1514), wire(700)]
    bad = [rng.randbytes(700), wire(59), wire(1), rng.randbytes(3), wire(1515), wire(9014), wire(60_000)]
    mixed = [good[0], *bad[:4], good[1], *bad[4:], good[2]]
    source = write(tmp_path / "in", ((0, frame) for frame in mixed), link=1 | WITH_FCS)
    net = ["--net", f"pcap:{source},{tmp_path / 'out'}", "--max-frame", "1518"]
    dropped = json.loads(both_ways("pass", *net, "--json").stdout)["ethernet"]["dropped_in"]
    assert [frame for _, frame in read(tmp_path / "out")] == [frame[:-4] for frame in good]
    assert dropped == {"short": 3, "long": 3, "fcs": 1, "link": 0, "room": 0}
    # Jumbo frames, if the port is set to them.
    dropped = json.loads(both_ways("pass", *net[:2], "--max-frame", "9018", "--json").stdout)["ethernet"]
    assert dropped["dropped_in"]["long"] == 1 and dropped["frames_out"] == 5
    # What is too long for the port is not sent either, and that is an error where it is all there is.
    (tmp_path / "data").write_bytes(bytes(1515))
    to = ["--out", "eth:", "--max-frame", "1518"]
    run("pass", "--in", f"file:{tmp_path / 'data'}", *to, code=1, words="1 dropped: 1 too long")


def test_a_slow_app_loses_frames_and_goes_on(tmp_path: Path, rng: random.Random):
    # An app that takes about a byte a cycle, 2 Gb/s, at a line of 100 Gb/s.
    data = [rng.randbytes(1514) for _ in range(1000)]
    source = write(tmp_path / "in", ((0, frame) for frame in data))
    done = both_ways("md5", "--net", f"pcap:{source},{tmp_path / 'out'}", "--json")
    line = json.loads(done.stdout)["ethernet"]
    assert line["dropped_in"]["room"] > 0
    assert line["frames_in"] + line["dropped_in"]["room"] == 1000 and line["frames_out"] == line["frames_in"]
    known = [hashlib.md5(frame).digest() for frame in data]
    digests = [frame[:16] for _, frame in read(tmp_path / "out")]
    assert len(digests) == line["frames_out"] and digests[0] == known[0]
    rest = iter(known)
    assert all(digest in rest for digest in digests), "in order, and none that was not sent"


def test_captures_in_the_format_pcapng(tmp_path: Path, rng: random.Random):
    data = [rng.randbytes(size) for size in (60, 100, 1514)]
    times = [0, 1_000, 5_000_000]
    head = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    # Times in nanoseconds, frames with FCS; a second interface of another kind, without frames.
    wire = struct.pack("<HHI", 1, 0, 0) + option(9, b"\x09") + option(13, b"\x04") + option(0, b"")
    body = head + block(1, wire) + block(1, struct.pack("<HHI", 105, 0, 0)) + block(0x0BAD, b"unknown")
    for at, frame in zip(times, map(with_fcs, data), strict=True):
        length = len(frame)
        body += block(6, struct.pack("<IIIII", 0, at >> 32, at & 0xFFFFFFFF, length, length) + frame)
    (tmp_path / "in").write_bytes(body)
    both_ways("pass", "--net", f"pcap-times:{tmp_path / 'in'},{tmp_path / 'out'}")
    came = read(tmp_path / "out")
    assert [frame for _, frame in came] == data
    # A frame is whole before it goes to the app, beat by beat, and before it goes on the line.
    longer = 2 * (1514 - 60) * 0.08 + (24 - 1) * 4
    assert abs(came[2][0] - came[0][0] - times[2] - longer) <= 10
    stray = block(6, struct.pack("<IIIII", 1, 0, 0, 60, 60) + bytes(60))
    (tmp_path / "in").write_bytes(body + stray)
    both_ways(
        "pass", "--net", f"pcap:{tmp_path / 'in'}", code=1, words="frame 4: its frames are of link type 105"
    )


def test_a_capture_that_is_none_is_refused_in_one_line(tmp_path: Path, frames: list[bytes]):
    whole = write(tmp_path / "whole", ((0, frame) for frame in frames)).read_bytes()

    def refused(name: str, data: bytes | None, words: str) -> None:
        if data is not None:
            (tmp_path / name).write_bytes(data)
        both_ways("pass", "--net", f"pcap:{tmp_path / name},{tmp_path / 'out'}", code=1, words=words)

    refused("nosuch", None, "nosuch: No such file")
    refused(".", None, "only come from a regular file")
    refused("empty", b"", "too short")
    refused("junk", b"junk" * 100, "not a capture")
    refused("head", whole[:20], "its header: the file ends within it")
    refused("packet", whole[:30], "frame 1: the file ends within it")
    refused("half", whole[: len(whole) // 2], "the file ends within it")
    # What came before was sent.
    assert 10 < len(read(tmp_path / "out")) < len(frames)
    refused("long", whole[:24] + struct.pack("<IIII", 0, 0, 1 << 31, 1 << 31) + whole[40:], "frame 1:")
    refused("zero", whole[:24] + bytes(16), "frame 1: it has 0 bytes")
    cut = whole[:24] + struct.pack("<IIII", 0, 0, 60, 1514) + bytes(60)
    refused("cut", cut, "frame 1: only 60 of its 1514 bytes were captured")
    refused("wifi", whole[:20] + struct.pack("<I", 105) + whole[24:], "link type 105, not Ethernet")
    refused("ng", b"\x0a\x0d\x0d\x0a" + bytes(40), "its header")
    late = write(tmp_path / "late", [(0, frames[0]), (3601 * 10**9, frames[1])])
    both_ways("pass", "--net", f"pcap-times:{late}", code=1, words="frame 2: it is 3601 s behind the first")


def test_an_output_that_cannot_be_written_is_told_in_one_line(tmp_path: Path, frames: list[bytes]):
    source = write(tmp_path / "in", ((0, frame) for frame in frames))
    both_ways("pass", "--net", f"pcap:{source},/dev/full", code=1, words="/dev/full: No space left")
    both_ways("pass", "--net", f"pcap:{source},{tmp_path}", code=1, words="regular file or a device")
    both_ways("pass", "--net", f"pcap:{source},{source}", code=1, words="come from this file")
    assert [frame for _, frame in read(source)] == frames
    both_ways("pass", "--net", f"pcap:{source},{tmp_path / 'no/such'}", code=1, words="No such file")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["pass", "--in", "host:64", "--out", "host:64", "--net", "loop"], "are for an app with --in eth:"),
        (["pass", "--in", "host:64", "--out", "host:64", "--line", "10G"], "are for an app with --in eth:"),
        (["pass", "--in", "eth:1", "--out", "eth:"], "one Ethernet port"),
        (["pass", "--in", "eth:", "--out", "eth:", "--check"], "--check needs files"),
        (["sha256", "--in", "eth:", "--in", "eth:"], "without other routes"),
        (["gups", "--in", "mem=eth:"], "a memory port works on a file"),
        (
            ["pass", "--in", "eth:", "--out", "eth:", "--card", "unix:/nosuch", "--line", "10G"],
            "`viaduct card`",
        ),
        (["pass", "--in", "eth:", "--out", "eth:", "--line", "2G"], "write 1G, 10G, 25G, 100G"),
        (["pass", "--in", "eth:", "--out", "eth:", "--net", "pcap:"], "pcap:IN,OUT"),
        (["pass", "--in", "eth:", "--out", "eth:", "--max-frame", "1517"], "from 1518 to 9238"),
    ],
)
def test_wrong_usage_is_told(args: list[str], words: str):
    done = subprocess.run(
        command("run", *args), capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, check=False
    )
    assert done.returncode == 2 and words in done.stderr, done.stderr


def test_a_line_without_end_is_ended_by_a_signal(tmp_path: Path):
    """Frames as datagrams, from another program; a client that sends what is none harms nothing."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    args = command("run", "pass", "--in", "eth:", "--out", "eth:", "--net", f"unix:{ours}", "--json")
    process = subprocess.Popen(args, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + PATIENCE
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as peer:
        peer.bind(str(theirs))
        peer.settimeout(0.5)
        reply = b""
        while not reply:
            assert time.monotonic() < end and process.poll() is None
            try:
                # Until the app is there.
                for frame in (b"", b"short", bytes(9300), b"frame".ljust(60, b".")):
                    peer.sendto(frame, str(ours))
                reply = peer.recv(1 << 16)
            except (FileNotFoundError, ConnectionRefusedError, TimeoutError):
                time.sleep(0.1)
        assert reply == b"frame".ljust(60, b".")
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and json.loads(told)["ethernet"]["frames_out"] >= 1


@contextmanager
def served(tmp_path: Path, *args: object, code: int = 0) -> Iterator[tuple[str, str]]:
    """A card in a process of its own: its name, and the address of its counters."""
    path = tmp_path / "card.sock"
    options = ["--socket", path, "--metrics", "127.0.0.1:0", *args]
    process = subprocess.Popen(
        command("card", *options), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    told = ""
    while "http://" not in told:
        line = process.stdout.readline()
        assert line, process.communicate()
        told += line
    found = re.search(r"http://([\d.:]+)/metrics", told)
    assert found
    try:
        yield f"unix:{path}", found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, said


def test_programs_use_the_port_of_a_card_in_another_process(tmp_path: Path, frames: list[bytes]):
    frames.append(bytes(2000))
    source = write(tmp_path / "in", ((0, frame) for frame in frames))
    options = ["--net", f"pcap:{source},{tmp_path / 'out'}", "--line", "1G", "--max-frame", "1518"]
    with served(tmp_path, *options) as (name, address):
        with viaduct.open(name) as card:
            with card.load("sha256") as slot:
                # The frames begin when the app gets them.
                assert bytes(slot.run("eth:")) == hashlib.sha256(frames[0]).digest()
            # The app of that run may have got more of them.
            with card.load("sha256") as slot:
                slot.transfer({"in": b"to the line"}, {"out": "eth:"})
        key = 'viaduct_port_line_drops_total{cause="long",direction="rx",function="net"} '
        end = time.monotonic() + PATIENCE
        while True:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE) as response:
                text = response.read().decode()
            # The line goes on without the program.
            if key + "1" in text:
                break
            assert time.monotonic() < end, text
            time.sleep(0.1)
        assert 'viaduct_port_link_up{function="net"} 1.0' in text
        assert 'viaduct_port_line_bits_per_second{function="net"} 1000000000.0' in text
        busy = re.search(r'line_busy_seconds_total{direction="rx",function="net"} ([\d.e-]+)', text)
        taken = sum(len(frame) + AROUND for frame in frames) * 8e-9
        assert busy and abs(float(busy[1]) - taken) < 1e-9
        top = subprocess.run(
            command("top", address, "--count", 1),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert re.search(r"net 1G +up ", top.stdout), top.stdout
    digest = hashlib.sha256(b"to the line").digest()
    assert [frame for _, frame in read(tmp_path / "out")] == [digest.ljust(60, b"\0")]


def test_a_served_card_reports_a_bad_capture_and_goes_on(tmp_path: Path, frames: list[bytes]):
    source = write(tmp_path / "in", ((0, frame) for frame in frames))
    source.write_bytes(source.read_bytes()[:-1])
    with (
        served(tmp_path, "--net", f"pcap:{source}", code=1) as (name, _),
        viaduct.open(name) as card,
        card.load("sha256") as slot,
    ):
        assert bytes(slot.run("eth:")) == hashlib.sha256(frames[0]).digest()
        with card.load("sha256") as other:
            assert bytes(other.run(b"abc")) == hashlib.sha256(b"abc").digest()


def test_a_clients_card_has_only_a_line(tmp_path: Path):
    for where in ("app:udp_echo", "none"):
        args = command("card", "--socket", tmp_path / "s", "--net", where)
        done = subprocess.run(args, capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, check=False)
        assert done.returncode == 2
        assert "cannot be used with '--net <WHERE>', unless that is the other end" in done.stderr


@pytest.mark.parametrize(
    ("net", "told"),
    [("pcap:{0}/in,{0}/out", "captures: frames from {0}/in, to {0}/out"), ("loop", "a plug that sends back")],
)
def test_the_network_device_is_on_such_a_line(tmp_path: Path, frames: list[bytes], net: str, told: str):
    """Its driver is missing: no frame comes, and the card ends properly."""
    write(tmp_path / "in", ((0, frame) for frame in frames))
    args = command("card", "--functions", tmp_path / "f", "--net", net.format(tmp_path), "--uart", "none")
    process = subprocess.Popen(args, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    assert "functions in" in process.stdout.readline()
    assert told.format(tmp_path) in process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and said == "", said
    assert "pcap" not in net or read(tmp_path / "out") == []


def test_the_line_belongs_to_the_process_of_the_card(tmp_path: Path):
    for option in (["--line", "10G"], ["--max-frame", "1518"], ["--net", "loop"]):
        args = command("vm", "--card", tmp_path, *option, "--", "true")
        done = subprocess.run(args, capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, check=False)
        assert done.returncode == 2 and "cannot be used with" in done.stderr
