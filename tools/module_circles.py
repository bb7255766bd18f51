#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds circles among the modules and folders of each crate: modules that need each other cannot be read, tested or changed one at a time.

    tools/module_circles.py [FOLDER]      # of crates; host/ by default

So it is with folders, each with all that is in it. A module is a file. It needs those whose items it names in `use` or in a path that starts with
crate, self or super, and where the methods of a type are in several modules, those whose methods it calls on self. An item that a module only
re-exports (`pub use`) belongs to the module that defines it. Test modules do not count. Exit status 1 if there is a circle.
"""

import re
import sys
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Name = tuple[str, ...]  # of a module, from the crate's root


def code(path: Path) -> str:
    """The file without comments, strings and test modules, with its lines."""
    text = re.sub(r"//.*", "", path.read_text())
    text = re.sub(r'"(?:[^"\\]|\\.)*"', lambda m: '"' + "\n" * m[0].count("\n") + '"', text)
    return re.split(r"^#\[cfg\(test\)\]\nmod \w+ \{", text, flags=re.M)[0]


def name_of(path: Path, source: Path) -> Name:
    parts = path.relative_to(source).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts


def leaves(tree: str) -> list[list[str]]:
    """Paths of a use tree, `a::{b, c::{d, e}}`."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    prefix = [s.strip() for s in head.split("::") if s.strip()]
    if not brace:
        return [[*prefix[:-1], prefix[-1].split(" as ")[0].strip()]] if prefix else []
    found, depth, last = [], 0, ""
    for c in rest.rpartition("}")[0] + ",":
        depth += (c == "{") - (c == "}")
        if c == "," and depth == 0:
            found += [[*prefix, *leaf] for leaf in leaves(last)]
            last = ""
        else:
            last += c
    return found


IMPL = re.compile(r"^impl(?:<[^>]*>)? (\w+)[^{\n]*\{\n(.*?)^\}", re.M | re.S)
METHOD = re.compile(r"^    (?:pub(?:\([^)]*\))? )?(?:const |async |unsafe )*fn (\w+)", re.M)


class Crate:
    def __init__(self, source: Path) -> None:
        files = {name_of(path, source): path for path in sorted(source.rglob("*.rs"))}
        self.files = files
        self.text = {name: code(path) for name, path in files.items()}
        self.exports = {
            name: {
                leaf[-1]: leaf
                for tree in re.findall(r"pub(?:\([^)]*\))?\s+use\s+([^;]*);", text)
                for leaf in leaves(tree)
            }
            for name, text in self.text.items()
        }
        # Where the methods of each type are; types of one name have different ones.
        self.methods: dict[tuple[str, str], set[Name]] = {}
        for name, text in self.text.items():
            for found in IMPL.finditer(text):
                for method in METHOD.findall(found[2]):
                    self.methods.setdefault((found[1], method), set()).add(name)

    def module(self, path: list[str], at: Name, depth: int = 0) -> Name | None:
        """The module that defines what a path in module `at` names; None if it is of another crate."""
        first, *rest = path
        if first == "super":
            start = at[:-1]
        elif first in ("crate", "self"):
            start = () if first == "crate" else at
        elif (*at, first) in self.files:
            start, rest = at, path
        else:
            return None
        while rest and rest[0] == "super":
            start, rest = start[:-1], rest[1:]
        while rest and (*start, rest[0]) in self.files:
            start, rest = (*start, rest[0]), rest[1:]
        export = self.exports[start].get(rest[0]) if rest else None
        if export and depth < len(self.files):
            return self.module([*export, *rest[1:]], start, depth + 1) or start
        return start

    def needs(self, name: Name) -> dict[Name, int]:
        """Modules that a module needs, with a line that says so."""
        found: dict[Name, int] = {}
        text = self.text[name]

        def note(path: list[str], offset: int) -> None:
            other = self.module(path, name)
            if other is not None and other != name:
                found.setdefault(other, text[:offset].count("\n") + 1)

        def use(match: re.Match[str]) -> str:
            if not match[1]:
                for leaf in leaves(match[2]):
                    note(leaf, match.start(2))
            return re.sub(r"[^\n]", " ", match[0])

        rest = re.sub(r"(pub(?:\([^)]*\))?\s+)?\buse\s+([^;]*);", use, text)
        for match in re.finditer(r"\b(?:crate|super|self)(?:::\w+)+", rest):
            note(match[0].split("::"), match.start())
        for impl in IMPL.finditer(text):
            for call in re.finditer(r"\bself\s*\.(\w+)\(", impl[2]):
                homes = self.methods.get((impl[1], call[1]), set())
                if len(homes) == 1 and name not in homes:
                    found.setdefault(next(iter(homes)), text[: impl.start(2) + call.start()].count("\n") + 1)
        return found


Arrows = dict[Name, dict[Name, str]]  # what each needs, and where that is said


def among(arrows: Arrows) -> list[str]:
    """One circle; none if there is none."""
    try:
        TopologicalSorter({a: set(needed) for a, needed in arrows.items()}).prepare()
    except CycleError as error:
        # Each needs the one before it.
        names: list[Name] = error.args[1][::-1]
        return [f"{arrows[a][b]}: {'::'.join(a)} needs {'::'.join(b)}" for a, b in pairwise(names)]
    return []


def folders(arrows: Arrows, folder: Name) -> Arrows:
    """The arrows between what is in a folder: modules, and folders with all that is in them."""
    depth, found = len(folder), Arrows()
    for a, needed in arrows.items():
        for b, where in needed.items():
            inside = all(name[:depth] == folder and len(name) > depth for name in (a, b))
            if inside and a[depth] != b[depth]:
                found.setdefault(a[: depth + 1], {}).setdefault(b[: depth + 1], where)
    return found


def circle(source: Path) -> list[str]:
    """The arrows of one circle of a crate, of modules or of folders; none if there is no circle."""
    crate = Crate(source)
    arrows = Arrows()
    for name, path in crate.files.items():
        arrows[name] = {needed: f"{path}:{line}" for needed, line in crate.needs(name).items()}
    inner = sorted({name[:depth] for name in arrows for depth in range(len(name))})
    return among(arrows) or next((found for f in inner if (found := among(folders(arrows, f)))), [])


def main() -> None:
    host = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "host"
    sources = sorted(host.glob("*/src"))
    if not sources:
        sys.exit(f"module_circles: error: no crate in {host}")
    found = {source.parent.name: arrows for source in sources if (arrows := circle(source))}
    for name, arrows in found.items():
        print(f"{name}: modules that need each other:", *arrows, sep="\n  ", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
