# SPDX-License-Identifier: Apache-2.0
"""Documents: named files and tests exist, lines are short enough, links have targets."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = [p for p in sorted(ROOT.iterdir()) if p.name not in ("build", "target") and not p.name.startswith(".")]
PAGES = [page for p in OURS for page in ([p] if p.suffix == ".md" else sorted(p.rglob("*.md")))]
WIDTH = 100  # columns of prose; tables and code blocks may be wider


def prose(page: Path) -> list[tuple[int, str]]:
    """The lines outside of code blocks, with their numbers."""
    lines, code = [], False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = line.lstrip().startswith("```")
        code ^= fence
        if not code and not fence:
            lines.append((number, line))
    return lines


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_lines_fit_and_links_lead_to_files(page: Path):
    for number, line in prose(page):
        where = f"{page.relative_to(ROOT)}, line {number}"
        wide = len(line) > WIDTH and not line.lstrip().startswith(("|", "#"))
        assert not wide, f"{where}: {len(line)} columns"
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"`[^`]*`", "", line)):
            if not re.match(r"\w+:", target):
                assert (page.parent / target).exists(), f"{where}: {target} does not exist"


def test_pictures_exist_and_say_what_they_show():
    shown = 0
    for page in PAGES:
        text = page.read_text()
        for alt, target in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", text):
            assert len(alt) >= 20 and (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"
        for tag in re.findall(r"<(?:img|source)\b[^>]*>", text):
            file = re.search(r'\b(?:src|srcset)="([^"]+)"', tag)
            assert file and (page.parent / file[1]).exists(), f"{page.relative_to(ROOT)}: {tag}"
            assert tag.startswith("<source") or re.search(r'\balt="[^"]{20,}"', tag), f"no alt text: {tag}"
            shown += 1
    assert shown


def test_plots_in_the_documents_are_small_and_all_shown():
    text = "".join(page.read_text() for page in PAGES)
    plots = sorted((ROOT / "docs/plots").iterdir())
    assert plots
    for plot in plots:
        assert plot.suffix == ".svg" and plot.stat().st_size < 60_000
        assert ElementTree.parse(plot).getroot().tag.endswith("}svg")
        assert f"(plots/{plot.name})" in text, f"{plot.name} is shown nowhere"


def test_drawings_are_what_their_sources_make():
    command = [sys.executable, ROOT / "tools/draw.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_module_is_in_the_readme_of_its_folder():
    for folder in sorted({p.parent for p in ROOT.glob("rtl/*/*.sv")}):
        text = (folder / "README.md").read_text()
        missing = [p.stem for p in sorted(folder.glob("*.sv")) if not re.search(rf"\b{p.stem}\b", text)]
        assert not missing, f"{folder.relative_to(ROOT)}/README.md does not name {', '.join(missing)}"


def test_conformance_names_tests_that_exist():
    named = set(re.findall(r"([\w/-]+\.(?:py|rs))::(\w+)", (ROOT / "docs/virtio-conformance.md").read_text()))
    assert named
    for file, test in sorted(named):
        folders = ("rtl/virtio", "rtl/vq", "rtl/vdev", "rtl/fn", "")
        found = [ROOT / at / file for at in folders if (ROOT / at / file).is_file()]
        assert found, f"{file}: no such file"
        assert re.search(rf"\b(def|fn) {test}\(", found[0].read_text()), f"{file} has no test {test}"


def git(*arguments: str) -> str:
    """Output of git; the test is left out where this is no clone."""
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"not a git checkout: {done.stderr.strip()}")
    return done.stdout


def test_source_files_name_their_licence():
    others = re.compile(
        r"\.(md|svg|json|lock|txt|in|typed|proptest-regressions)$|^fuzz/corpus/|^LICENSE|gitignore$"
    )
    for name in git("ls-files").splitlines():
        path = ROOT / name
        if others.search(name) or not path.is_file():
            continue
        head = path.read_text(errors="replace")[:400]
        wanted = "GPL-2.0" if name.startswith("kernel/") else "Apache-2.0"
        assert f"SPDX-License-Identifier: {wanted}" in head, name


def test_targets_of_make_in_documents_exist():
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), re.M))
    for page in PAGES:
        for target in re.findall(r"`make ([a-z][a-z0-9-]*)", page.read_text()):
            assert target in targets, f"{page.relative_to(ROOT)}: make {target}"


def test_commits_in_documents_exist():
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("a shallow clone")
    known = set(git("log", "--format=%h", "--abbrev=7").split())
    for page in PAGES:
        for commit in re.findall(r"\bcommit ([0-9a-f]{7})\b", page.read_text()):
            assert commit in known, f"{page.relative_to(ROOT)}: commit {commit}"


@pytest.mark.parametrize("folder", ["guest", "host", "kernel", "python", "synth", "tests", "tools"])
def test_a_folders_readme_names_all_that_is_in_it(folder: str):
    tracked = subprocess.run(
        ["git", "ls-files", "--", folder], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    inside = {Path(line).relative_to(folder).parts for line in tracked.splitlines()}
    # The folders of tests are named where they are used.
    names = {parts[0] for parts in inside if len(parts) == 1 or folder != "tests"} - {"README.md"}
    missing = sorted(name for name in names if f"`{name}`" not in (ROOT / folder / "README.md").read_text())
    assert names and not missing, f"{folder}/README.md does not name {', '.join(missing)}"
