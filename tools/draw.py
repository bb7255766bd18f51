#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the drawings of the documents: each docs/drawings/NAME.py as NAME-light.svg and NAME-dark.svg.

A drawing has a function `draw(pen)`; the pen draws boxes, text and arrows in the colours of a theme. There are two files,
since an embedded picture cannot know the theme of its page.
"""

import argparse
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import drawsvg

ROOT = Path(__file__).resolve().parents[1]
DRAWINGS = ROOT / "docs/drawings"
FONT = (
    "-apple-system, BlinkMacSystemFont, 'Segoe UI', 'Noto Sans', Helvetica, Arial, 'DejaVu Sans', sans-serif"
)
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
# Mean width of a character relative to the font's size, in the widest of these fonts.
CHARACTER = 0.62
NAME_SIZE, TEXT_SIZE, LEADING = 14.0, 12.0, 1.3

Point = tuple[float, float]


@dataclass(frozen=True)
class Colour:
    """Colours of a box: its outline and arrows, its fill, its text."""

    line: str
    fill: str
    text: str


Hue = Literal["blue", "orange", "purple", "green", "grey", "panel"]
THEMES: dict[str, dict[Hue, Colour]] = {
    "light": {
        "blue": Colour("#0969da", "#ddf4ff", "#0a3069"),
        "orange": Colour("#bc4c00", "#fff1e5", "#5c2200"),
        "purple": Colour("#8250df", "#fbefff", "#3e1f79"),
        "green": Colour("#1a7f37", "#dafbe1", "#044f1e"),
        "grey": Colour("#6e7781", "#eaeef2", "#1f2328"),
        "panel": Colour("#d0d7de", "#f6f8fa", "#57606a"),
    },
    "dark": {
        "blue": Colour("#4493f8", "#10294b", "#cae8ff"),
        "orange": Colour("#db6d28", "#3a1d0c", "#ffdfb6"),
        "purple": Colour("#ab7df8", "#2d1d52", "#eddeff"),
        "green": Colour("#3fb950", "#0f3119", "#aff5b4"),
        "grey": Colour("#8b949e", "#2b3139", "#e6edf3"),
        "panel": Colour("#3d444d", "#151b23", "#9198a1"),
    },
}


class Pen:
    """Draws in the colours of one theme. Positions are in pixels from the top left corner."""

    def __init__(self, size: Point, title: str, theme: dict[Hue, Colour]):
        self._theme = theme
        self._drawing = drawsvg.Drawing(*size, font_family=FONT)
        self._drawing.append_title(title)
        self._heads: dict[str, drawsvg.Marker] = {}

    def svg(self) -> str:
        """The drawing as a file."""
        # The same source always gives the same file.
        text = self._drawing.as_svg(randomize_ids=False)
        assert text is not None
        return text.rstrip() + "\n"

    def text(self, at: Point, text: str, hue: Hue, size: float = TEXT_SIZE, **style: Any) -> None:
        """One line; `at` is the middle of its baseline unless `text_anchor` says otherwise."""
        style = {"text_anchor": "middle", "fill": self._theme[hue].text} | style
        self._drawing.append(drawsvg.Text(text, size, *at, **style))

    def box(self, at: Point, size: Point, hue: Hue, lines: list[str], **style: Any) -> None:
        """A box with its corner at `at`; the first line of its text is its name."""
        (x, y), (width, height) = at, size
        colour = self._theme[hue]
        style = {"fill": colour.fill, "stroke": colour.line, "stroke_width": 1.5, "rx": 6} | style
        self._drawing.append(drawsvg.Rectangle(x, y, width, height, **style))
        sizes = [NAME_SIZE if n == 0 else TEXT_SIZE for n in range(len(lines))]
        top = y + (height - LEADING * sum(sizes)) / 2
        for n, (line, pixels) in enumerate(zip(lines, sizes, strict=True)):
            wanted = len(line) * pixels * CHARACTER
            assert wanted <= width, f"{line!r} takes {wanted:.0f} of {width:.0f} pixels"
            at = (x + width / 2, top + pixels)
            self.text(at, line, hue, pixels, font_weight=600 if n == 0 else 400)
            top += LEADING * pixels

    def arrow(self, begin: Point, end: Point, hue: Hue, both: bool = True, dashed: bool = False) -> None:
        """A line with a head at its end, and at its beginning if data go both ways."""
        line = self._theme[hue].line
        head = self._heads.get(line)
        if head is None:
            head = drawsvg.Marker(-6, -3, 0, 3, orient="auto-start-reverse", id=f"head-{hue}")
            head.append(drawsvg.Lines(-6, -2.5, 0, 0, -6, 2.5, close=True, fill=line))
            self._heads[line] = head
        style: dict[str, Any] = {"stroke": line, "stroke_width": 2, "fill": "none", "marker_end": head}
        if both:
            style["marker_start"] = head
        if dashed:
            style["stroke_dasharray"] = "5 4"
        self._drawing.append(drawsvg.Line(*begin, *end, **style))


def render(source: Path, theme: str) -> str:
    """The SVG that a drawing's source makes."""
    spec = importlib.util.spec_from_file_location(source.stem, source)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pen = Pen(module.SIZE, module.TITLE, THEMES[theme])
    module.draw(pen)
    return pen.svg()


def main() -> int:
    """Writes the files, or reports those that are out of date."""
    parser = argparse.ArgumentParser(description="Draws docs/drawings.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a file is not up to date"
    )
    args = parser.parse_args()
    old = 0
    for source in sorted(DRAWINGS.glob("*.py")):
        for theme in THEMES:
            file = source.with_name(f"{source.stem}-{theme}.svg")
            made = render(source, theme)
            if file.exists() and file.read_text() == made:
                continue
            old += 1
            if args.check:
                print(f"{file.relative_to(ROOT)} is out of date: run `make drawings`", file=sys.stderr)
            else:
                file.write_text(made)
                print(file.relative_to(ROOT))
    return int(args.check and old > 0)


if __name__ == "__main__":
    sys.exit(main())
