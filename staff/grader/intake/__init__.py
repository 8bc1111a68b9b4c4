"""Intake makes a private copy of a folder, a zip or a tar, so that it can be graded.

The grader never runs or imports the original. Only the files that a grade needs are copied: the
package, the adapters, and the submission's modules that these import. The other files are listed
and not copied.
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
"""The most bytes of a submission's name. File systems allow 255, but a number may be appended."""

__all__ = ["Intake", "LeftOut", "name_of", "opened"]


class Intake(msgspec.Struct, frozen=True, kw_only=True):
    """The copy of a submission, and the list of what was not copied."""

    folder: Path
    """The folder of the copy; every user of the machine can read it."""
    taken: tuple[str, ...]
    """The copied files, as paths from the submission's top."""
    left_out: tuple[LeftOut, ...]
    """The files that were not copied. A folder of which nothing was copied ends in a slash."""


@contextmanager
def opened(path: Path, parent: Path | None = None) -> Iterator[Intake]:
    """Copy the files that a grade needs of a submission; the copy is removed when the block ends.

    Args:
        path: a folder, a zip, or a tar (compressed with gzip, bzip2 or xz, or not at all).
        parent: the folder that the copy is made in; by default the usual temporary folder.

    Raises:
        SubmissionError: the submission can't be read or graded, is too large, or holds something
            harmful. The message is one line: what is wrong, what was expected, what to try.
    """
    with TemporaryDirectory(prefix="submission-", dir=parent) as copy:
        folder = Path(copy).resolve()
        folder.chmod(0o755)
        source: Source = FolderSource(path) if path.is_dir() else archive(path)
        with source:
            taken, left_out = take(source, folder)
        yield Intake(folder=folder, taken=taken, left_out=left_out)


def name_of(path: Path) -> str:
    """Return the name of a submission: that of its folder, or of its archive without the ending.

    The name is printable, cut to a length, and valid as the name of a folder.
    """
    name = path.resolve().name if path.is_dir() else path.name
    if not path.is_dir():
        name = next((name[: -len(e)] for e in ENDINGS if name.lower().endswith(e)), path.stem)
    short = printable(name).encode()[:_MAX_NAME].decode("utf-8", "ignore")
    return short.strip(". ").replace("/", "-") or "submission"
