"""Takes a picture of the report of the "first week" example: `python -m staff.figures.report`.

The picture shows the page twice: in a wide window with light colours, and on a phone with dark
ones. Chromium must be installed. The letters depend on the fonts of the machine.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from staff.figures.browser import chromium, screenshot
from staff.figures.handout import FOLDER
from staff.grader.run import Grading, grade_all
from staff.grader.sandbox import choose
from staff.release.examples import write_examples
from staff.reports import write_reports
from tests.harness.fixtures import FIXTURES
from tests.harness.rubric import read_rubric

FILE = FOLDER / "report-first-week.png"
_WIDE, _NARROW, _HEIGHT, _GAP = 1160, 400, 1560, 24
_SECTION = "rmsnorm"
"""The section of the page that the phone shows."""


def draw(file: Path) -> None:
    """Grade the example, and write a picture of its report."""
    rubric = read_rubric()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _, week, _ = write_examples(folder / "examples")
        how = Grading(cases=FIXTURES, rubric=rubric, backend=choose("auto"))
        (grade,) = grade_all([week], how)
        write_reports(grade, rubric, folder / "grade")
        page, wide, narrow = (folder / n for n in ("grade/report.html", "wide.png", "narrow.png"))
        screenshot(page, wide, _WIDE, _HEIGHT)
        screenshot(page, narrow, _NARROW, _HEIGHT, dark=True, section=_SECTION)
        _beside(wide, narrow).save(file, optimize=True)


def _beside(wide: Path, narrow: Path) -> Image.Image:
    """Join the two pictures on a transparent background; 256 colours keep the file small."""
    both = Image.new("RGBA", (_WIDE + _GAP + _NARROW, _HEIGHT))
    with Image.open(wide) as one, Image.open(narrow) as other:
        both.paste(one.convert("RGB"), (0, 0))
        both.paste(other.convert("RGB").crop((0, 0, _NARROW, _HEIGHT)), (_WIDE + _GAP, 0))
    return both.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)


if __name__ == "__main__":
    if chromium() is None:
        sys.exit(
            "docs/figures/report-first-week.png was not drawn: Chromium is not installed; "
            "on Debian: apt install chromium"
        )
    draw(FILE)
