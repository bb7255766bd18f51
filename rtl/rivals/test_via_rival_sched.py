# SPDX-License-Identifier: Apache-2.0
"""via_rival_sched: any members share a device by bytes and weight with this card's scheduler, and do not with the published one.

The device and the members are in the test's program (sim/rivals/sched.cpp).
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("VIA_SEED", "1"))
BYTES, BURSTS, PUBLISHED, MENDED = range(4)
LINK, CHANNEL = range(2)
BURST, CAP = 64, 64
Member = tuple[int, int, int, int, int]  # index, ways, weight, shortest, longest


@pytest.fixture(scope="module")
def program() -> Path:
    subprocess.run([sys.executable, "tools/verilate.py", "sched"], cwd=ROOT, check=True)
    return ROOT / "build/rivals/sched"


def obey(program: Path, *lines: str) -> list[list[int]]:
    done = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [[int(n) for n in line.split()[1:]] for line in done.stdout.splitlines()]


def share(policy: int, device: int, of: int, members: list[Member], beats: int = 6400) -> str:
    words = [":".join(map(str, member)) for member in members]
    return f"share {policy} {device} {of} {CAP} {beats} {' '.join(words)}"


def some(r: random.Random, of: int, device: int, heaviest: int) -> list[Member]:
    members = []
    for index in sorted(r.sample(range(of), r.randrange(1, of + 1))):
        longest = r.choice((1, BURST, r.randrange(1, BURST + 1)))
        ways = r.randrange(1, 4) if device == CHANNEL else 1
        members.append((index, ways, r.randrange(1, heaviest + 1), r.randrange(1, longest + 1), longest))
    return members


@pytest.mark.parametrize("device", [LINK, CHANNEL])
@pytest.mark.parametrize("heaviest", [1, 4])
def test_any_members_share_by_bytes_and_weight(program: Path, device: int, heaviest: int):
    r = random.Random(SEED)
    print(f"VIA_SEED={SEED}")
    sets = [(of, some(r, of, device, heaviest)) for of in range(1, 17)]
    said = obey(program, *(share(BYTES, device, of, members) for of, members in sets))
    for (of, members), (cycles, moved, *beats) in zip(sets, said, strict=True):
        shares = [b / weight for b, (_, _, weight, _, _) in zip(beats, members, strict=True)]
        mean = sum(shares) / len(shares)
        # Between two that request without pause: via_share's bound over what each has had.
        assert max(shares) - min(shares) <= 4 * 2 * BURST, f"{members} of {of}: {shares}"
        assert sum(shares) ** 2 / len(shares) / sum(s * s for s in shares) > 0.99, f"{members} of {of}"
        assert all(abs(s / mean - 1) < 0.02 for s in shares), f"{members} of {of}: {shares}"
        assert moved >= 0.99 * cycles, "the device was idle while somebody requested"


@pytest.mark.parametrize("policy", [BYTES, BURSTS, PUBLISHED, MENDED])
def test_who_is_alone_has_the_device(program: Path, policy: int):
    lines = [share(policy, LINK, of, [(of - 1, 1, 1, 1, BURST)]) for of in range(1, 17)]
    for cycles, moved, _ in obey(program, *lines):
        assert moved >= 0.99 * cycles


def test_the_published_round_robin_has_the_faults_of_the_original(program: Path):
    """And the mended one does not: shares of the first of two active members."""
    two = [(0, 1, 1, BURST, BURST), (1, 1, 1, BURST, BURST)]
    sizes = (2, 3, 4, 5, 8)
    for policy, expected in ((PUBLISHED, (1, 2 / 3, 1, 4 / 5, 1)), (MENDED, (1 / 2,) * 5)):
        said = obey(program, *(share(policy, LINK, of, two) for of in sizes))
        for of, part, (_, _, a, b) in zip(sizes, expected, said, strict=True):
            assert abs(a / (a + b) - part) < 0.02, f"policy {policy}, {of} members: {a}, {b}"


def test_a_round_robin_by_bursts_is_not_one_by_bytes(program: Path):
    mixed = [(0, 1, 1, 1, 1), (1, 1, 1, BURST, BURST)]
    for policy in (BURSTS, MENDED):
        [[_, _, small, large]] = obey(program, share(policy, LINK, 2, mixed))
        assert large / small > BURST / 2


@pytest.mark.parametrize("members", [2, 4, 16])
def test_a_member_that_goes_first_waits_for_the_cap_and_a_burst(program: Path, members: int):
    for cap in (CAP, 640):
        [[_, start]] = obey(program, f"wait {BYTES} {LINK} {members} {cap} 200 8")
        assert cap / 2 < start <= cap + BURST


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("share 4 0 4 64 100 0:1:1:1:1", "no such policy"),
        ("share 2 1 4 64 100 0:1:1:1:1", "no reads and writes"),
        ("share 0 0 17 64 100 0:1:1:1:1", "1 to 16 members"),
        ("share 0 0 4 64 100", "nobody requests"),
        ("share 0 0 4 64 100 4:1:1:1:1", "4:1:1:1:1 is not"),
        ("share 0 0 4 64 100 0:1:1:1:65", "is not"),
        ("share 0 0 4 0 100 0:1:1:1:1", "at least a beat"),
        ("wait 0 0 4 64 10 65", "1 to 64 beats"),
        ("share 0", "no number"),
        ("jump", "unknown"),
    ],
)
def test_a_wrong_line_ends_the_program_with_its_reason(program: Path, line: str, why: str):
    done = subprocess.run([program], input=line, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and why in done.stderr
