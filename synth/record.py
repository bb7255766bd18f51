# SPDX-License-Identifier: Apache-2.0
"""Results that are kept in the tree, each with a key of its netlist: a block or a whole shell that has not changed since then is not mapped again.

So the largest card, which takes a quarter of an hour to map, is checked whenever anything is tested, and a change of the RTL shows as a change
of the longest paths in the same commit.
"""

import fcntl
import json
import re
from pathlib import Path

from timing import LongPath

Worst = dict[str, tuple[LongPath, LongPath]]  # kind -> the deepest and the slowest path
Results = tuple[dict[str, float], dict[str, Worst]]  # area, and the paths of each part
Plain = dict[str, dict[str, list[str]]]
PATH = re.compile(r"(\d+) levels, (\d+) ps: (.*?) -> (.*)")


def plain(found: dict[str, Worst]) -> Plain:
    """Longest paths as a file has them."""

    def lines(pair: tuple[LongPath, LongPath]) -> list[str]:
        return [f"{p.levels} levels, {p.ps} ps: {p.start} -> {p.end}" for p in dict.fromkeys(pair)]

    return {name: {kind: lines(pair) for kind, pair in part.items()} for name, part in found.items()}


def as_found(file: Plain) -> dict[str, Worst]:
    """The same back."""

    def path(kind: str, line: str) -> LongPath:
        levels, ps, start, end = PATH.fullmatch(line).groups()  # type: ignore[union-attr]  # an invalid file is a traceback
        return LongPath(kind, int(levels), int(ps), start, end)

    return {
        name: {kind: (path(kind, lines[0]), path(kind, lines[-1])) for kind, lines in part.items()}
        for name, part in file.items()
    }


def find(file: Path, geometry: str, block: str, key: str) -> Results | None:
    """The results of a block in this geometry, if they are of the netlist with this key."""
    if not file.exists():
        return None
    with file.open() as all_of_them:
        fcntl.flock(all_of_them, fcntl.LOCK_SH)
        kept = json.load(all_of_them).get(geometry, {}).get(block, {})
    return (kept["area"], as_found(kept["paths"])) if kept.get("key") == key else None


def put(file: Path, geometry: str, block: str, key: str, results: Results) -> None:
    """Replaces the results of a block in this geometry."""
    with file.open("a+") as all_of_them:
        # Blocks are mapped concurrently.
        fcntl.flock(all_of_them, fcntl.LOCK_EX)
        all_of_them.seek(0)
        kept = json.loads(all_of_them.read() or "{}")
        area, found = results
        kept.setdefault(geometry, {})[block] = {"key": key, "area": area, "paths": plain(found)}
        all_of_them.truncate(0)
        all_of_them.write(json.dumps(kept, indent=1, sort_keys=True) + "\n")
