# SPDX-License-Identifier: Apache-2.0
"""via_rival_vio: routes of the card that change under load, and what the published multiplexer loses then.

Ports and switch are those of a card, with the ends of all streams in the test's program (sim/rivals/vio.cpp). VIA_ROUTES=N makes N changes;
1000000 take half an hour.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHANGES = int(os.environ.get("VIA_ROUTES", "5000"))
SEED = int(os.environ.get("VIA_SEED", "1"))
MUX, VIADUCT = 2, 3


@pytest.fixture(scope="module")
def program() -> Path:
    subprocess.run([sys.executable, "tools/verilate.py", "vio"], cwd=ROOT, check=True)
    return ROOT / "build/rivals/vio"


def obey(program: Path, *lines: str) -> dict[str, list[int]]:
    done = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, timeout=3 * 3600)
    assert done.returncode == 0, done.stderr
    return {word: [int(n) for n in rest] for word, *rest in map(str.split, done.stdout.splitlines())}


def test_a_route_changes_within_sixteen_cycles_and_within_sixteen_of_its_drain(program: Path):
    idle, busy = obey(program, f"system {VIADUCT} 0", "change")["changed"]
    assert 1 < idle <= 16 and 1 < busy <= 16


def test_no_change_of_a_route_loses_doubles_damages_or_misroutes_a_message(program: Path):
    print(f"VIA_SEED={SEED} VIA_ROUTES={CHANGES}")
    said = obey(program, f"system {VIADUCT} 0", f"routes {CHANGES} {SEED}")["routes"]
    changes, messages, dropped, *wrong, idle, busy = said
    print(f"{messages} messages, {dropped} dropped, at most {idle} and {busy} cycles")
    assert wrong == [0, 0, 0, 0], "lost, doubled, damaged, misrouted"
    assert changes == CHANGES and messages > 10 * changes and dropped < messages / 2
    assert idle <= 16 and busy <= 16


def test_the_published_multiplexer_loses_what_is_on_its_way(program: Path):
    """So the comparison sees a loss where there is one."""
    _, messages, _, lost, _, damaged, *_ = obey(program, f"system {MUX} 0", f"routes 200 {SEED}")["routes"]
    assert 50 < lost < messages and 50 < damaged < messages


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["system 4 0"], "no such system"),
        (["system 2 1"], "no routes from app to app"),
        (["system 0 0", "change"], "no routes to be changed"),
        (["system 3 0", "app 0 /nonexistent.so"], "/nonexistent.so"),
        (["system 3 0", "run 64 1 /dev/null /dev/null"], "has another length"),
        (["system x"], "no number"),
        (["jump"], "unknown: jump"),
    ],
)
def test_a_wrong_line_ends_the_program_with_its_reason(program: Path, lines: list[str], why: str):
    done = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and why in done.stderr
