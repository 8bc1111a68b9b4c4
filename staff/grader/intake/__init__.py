"""Intake: a folder, a zip or a tar becomes a fresh private copy that can be graded.

Nothing is run, or imported, from where it was handed in. Only what a grade needs is copied: the
package, the adapters, and the modules of the submission that these import. The rest is listed and
left where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from staff.grader.intake.archives import ENDINGS, archive
from staff.grader.intake.collect import LeftOut, take
from staff.grader.intake.sources import FolderSource, Source
from tests.harness.errors import printable

_MAX_NAME = 120
"""Bytes; a number may follow, and no file system takes more than 255."""

__all__ = ["Intake", "LeftOut", "name_of", "opened"]


class Intake(msgspec.Struct, frozen=True, kw_only=True):
    """A submission that was taken in."""

    folder: Path
    """The copy: nobody else's, and readable by every user of the machine."""
    taken: tuple[str, ...]
    """The files in it, as paths from the submission's top."""
    left_out: tuple[LeftOut, ...]
    """What was handed in and is not used; a folder that is left out whole ends in a slash."""


@contextmanager
def opened(path: Path, place: Path | None = None) -> Iterator[Intake]:
    """Copy what a grade needs of a submission; the copy goes when the block ends.

    Args:
        path: a folder, a zip, or a tar (packed with gzip, bzip2 or xz, or not at all).
        place: the folder that the copy is made in.

    Raises:
        SubmissionError: it can't be read, can't be graded, is too large, or holds what could do
            harm. The text is one line: what is wrong, what was expected, what to try.
    """
    with TemporaryDirectory(prefix="submission-", dir=place) as copy:
        folder = Path(copy).resolve()
        folder.chmod(0o755)
        source: Source = FolderSource(path) if path.is_dir() else archive(path)
        with source:
            taken, left_out = take(source, folder)
        yield Intake(folder=folder, taken=taken, left_out=left_out)


def name_of(path: Path) -> str:
    """The name of a submission: that of its folder, or of its archive without the ending.

    It can serve as the name of a folder, and be printed; a long one is cut.
    """
    name = path.resolve().name if path.is_dir() else path.name
    if not path.is_dir():
        name = next((name[: -len(e)] for e in ENDINGS if name.lower().endswith(e)), path.stem)
    short = printable(name).encode()[:_MAX_NAME].decode("utf-8", "ignore")
    return short.strip(". ").replace("/", "-") or "submission"
