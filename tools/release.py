#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The version of Viaduct, in every file that has it.

    tools/release.py check            all files have the same one, and so has a tag of the present commit
    tools/release.py set X.Y.Z        writes it into all, and makes a section of CHANGELOG.md from `Unreleased`

CONTRIBUTING.md says how a release is made. Exit status 1 with one line for each problem.
"""

import argparse
import datetime
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+")
# Files, and what stands before the version in them. Versions of apps, of the register map and of the C ABI are their own.
PLACES = (
    ("Cargo.toml", r'^\[workspace\.package\]\nversion = "'),
    ("python/pyproject.toml", r'^name = "viaduct"\nversion = "'),
    ("Cargo.lock", r'^name = "viaduct[\w-]*"\nversion = "'),
    ("fuzz/Cargo.lock", r'^name = "viaduct(?!-fuzz")[\w-]*"\nversion = "'),
    ("rtl/*/*.core", r"\bviaduct:\w+:\w+:"),
    ("tools/*.core", r"\bviaduct:\w+:\w+:"),
)
CHANGELOG = "CHANGELOG.md"
UNRELEASED = "## Unreleased\n"


def fail(*problems: str) -> None:
    sys.exit("\n".join(f"release: error: {problem}" for problem in problems))


def places(root: Path) -> list[tuple[Path, re.Pattern[str]]]:
    """The files that have the version, each with a pattern whose second group is the version."""
    found: list[tuple[Path, re.Pattern[str]]] = []
    for glob, before in PLACES:
        files = sorted(root.glob(glob))
        if not files:
            fail(f"there is no {glob}")
        found += [(file, re.compile(f'({before})([^"\\s]+)', re.M)) for file in files]
    return found


def release_of(changelog: str) -> str | None:
    """The newest version in the change log."""
    sections = re.findall(r"^## (\S+)", changelog, re.M)
    return next((name for name in sections if VERSION.fullmatch(name)), None)


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def tags(root: Path) -> list[str]:
    """The tags of the present commit that name a version; none where this is no clone."""
    command = ["git", "-C", str(root), "tag", "--points-at", "HEAD", "v[0-9]*"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


def problems(root: Path) -> list[str]:
    """What does not agree with the version in Cargo.toml."""
    (cargo, pattern), *_ = every = places(root)
    first = pattern.search(cargo.read_text())
    if not first:
        return [f"{cargo.relative_to(root)} has no version"]
    version = first[2]
    found: list[str] = []
    for file, pattern in every:
        name = file.relative_to(root)
        versions = {match[2] for match in pattern.finditer(file.read_text())}
        if not versions:
            found.append(f"{name} has no version")
        found += [f"{name} has {v}, Cargo.toml {version}" for v in sorted(versions - {version})]
    changelog = (root / CHANGELOG).read_text()
    if (newest := release_of(changelog)) != version:
        found.append(f"the newest section of {CHANGELOG} is of {newest}, Cargo.toml has {version}")
    if changelog.count(UNRELEASED) != 1:
        found.append(f"{CHANGELOG} has not one section `Unreleased`")
    found += [f"the tag is {tag}, Cargo.toml has {version}" for tag in tags(root) if tag != f"v{version}"]
    return found


def set_version(root: Path, version: str, today: datetime.date) -> None:
    """Writes a version into all files."""
    changelog = root / CHANGELOG
    text = changelog.read_text()
    old = release_of(text) or "0.0.0"
    if not VERSION.fullmatch(version) or numbers(version) <= numbers(old):
        fail(f"{version!r} is not a version after {old}; give three numbers, such as 0.2.0")
    if text.count(UNRELEASED) != 1:
        fail(f"{CHANGELOG} has not one section `Unreleased`")
    _, _, changes = text.partition(UNRELEASED)
    if not changes.partition("\n## ")[0].strip():
        fail(f"{CHANGELOG} has nothing under `Unreleased`")
    for file, pattern in places(root):
        file.write_text(pattern.sub(rf"\g<1>{version}", file.read_text()))
    changelog.write_text(text.replace(UNRELEASED, f"{UNRELEASED}\n## {version} – {today}\n"))


def main() -> None:
    parser = argparse.ArgumentParser(description="The version of Viaduct, in every file that has it.")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="all files have the same version")
    commands.add_parser("set", help="write a version into all files").add_argument("version")
    args = parser.parse_args()
    if args.command == "set":
        set_version(args.root, args.version, datetime.date.today())
    if found := problems(args.root):
        fail(*found)
    print(f"release: {release_of((args.root / CHANGELOG).read_text())} in all files")


if __name__ == "__main__":
    main()
