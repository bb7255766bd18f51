# SPDX-License-Identifier: Apache-2.0
"""Names in the RTL."""

import re
from pathlib import Path

from pyslang.syntax import SyntaxKind, SyntaxTree  # pyright: ignore[reportMissingModuleSource]

ROOT = Path(__file__).resolve().parents[1]


def registers(tree: SyntaxTree) -> set[str]:
    """What is assigned at the edge of a clock."""
    found: set[str] = set()

    def visit(node: object) -> None:
        if getattr(node, "kind", None) == SyntaxKind.NonblockingAssignmentExpression:
            target = re.sub(r"//.*", "", str(getattr(node, "left", ""))).strip()
            # Of `a[i].b` the register is a; of `{a, b}` there are two.
            parts = target.strip("{}").split(",") if target.startswith("{") else [target]
            found.update(re.sub(r"\W.*", "", part.strip(), flags=re.S) for part in parts)

    tree.root.visit(visit)
    return found


def test_registers_are_told_by_their_names():
    """They end in `_q`, `_nq` if low is active, or are outputs; `mem` is a memory."""
    name = re.compile(r"\w+(_q\d*|_nq|_o)|mem")
    seen: set[str] = set()
    for path in sorted(ROOT.glob("rtl/*/**/*.sv")):
        found = registers(SyntaxTree.fromFile(str(path)))
        seen |= found
        wrong = {r for r in found if not name.fullmatch(r)}
        assert not wrong, f"{path.relative_to(ROOT)}: {', '.join(sorted(wrong))}"
    assert len(seen) > 500
