"""A submission on disk: its folder, its layout, and the student's lines in a traceback."""

from __future__ import annotations

import linecache
import traceback
from dataclasses import dataclass
from pathlib import Path

from tests.harness.errors import SubmissionError, printable
from tests.harness.results import Frame

PACKAGE = "cs336_basics"


@dataclass(frozen=True)
class Submission:
    """A folder with a `cs336_basics` package and an adapters file."""

    root: Path
    layout: str
    """`ours` (the adapters are in adapters.py) or `public` (they are in tests/adapters.py)."""

    @property
    def adapters_file(self) -> Path:
        """The path of the file with the adapters."""
        return self.root / ("adapters.py" if self.layout == "ours" else "tests/adapters.py")

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that hold the student's code."""
        return (PACKAGE,) if self.layout == "ours" else (PACKAGE, "tests")

    def frames(self, error: BaseException) -> tuple[Frame, ...]:
        """Find the student's own lines in the traceback of an exception, the innermost last."""
        frames = []
        for frame, line in traceback.walk_tb(error.__traceback__):
            file = Path(frame.f_code.co_filename)
            if not file.is_relative_to(self.root):
                continue
            relative = file.relative_to(self.root)
            if len(relative.parts) == 1 or relative.parts[0] in self.folders:
                source = linecache.getline(str(file), line).strip()
                frames.append(Frame(relative.as_posix(), line, frame.f_code.co_qualname, source))
        return tuple(frames)


def locate(folder: Path) -> Submission:
    """Find the layout of the submission in a folder.

    Raises:
        SubmissionError: `folder` is not a folder, or lacks the package or the adapters file.
    """
    root = folder.resolve()
    if not root.is_dir():
        raise SubmissionError(f"{folder} is not a folder; expected one that holds {PACKAGE}/")
    if not (root / PACKAGE).is_dir():
        raise SubmissionError(f"{folder} has no {PACKAGE}/ folder; the package goes there")
    for layout in ("ours", "public"):
        submission = Submission(root, layout)
        if submission.adapters_file.is_file():
            return submission
    raise SubmissionError(
        f"{folder} has neither adapters.py nor tests/adapters.py; one must hold the adapters"
    )


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's text.

    If that line ends in a colon, the second line is added to it.
    """
    try:
        text = str(error)
    except Exception as failure:  # noqa: BLE001 - `__str__` may be the student's own code
        text = f"(no text: str() raised {type(failure).__name__})"
    line, *rest = text.strip().splitlines() or [""]
    if line.endswith(":") and rest:
        line = f"{line} {rest[0].strip()}"
    return printable(line)
