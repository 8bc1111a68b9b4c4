"""Where a submission is read from: a source lists its folders and reads its files, when asked.

A source is not trusted. What it lists may be gone, or changed, or endless by the time it is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, Self

from staff.grader.intake.names import quoted
from tests.harness.errors import SubmissionError

FILE, FOLDER = "a file", "a folder"
MAX_LISTED = 50_000
"""Entries of an archive, or of one folder."""
_CHUNK = 1 << 16
_KINDS = (
    (stat.S_ISREG, FILE),
    (stat.S_ISDIR, FOLDER),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


class Source(Protocol):
    """A folder or an archive, closed at the end of a `with` block.

    Paths are relative to its top, which is `""`, and have forward slashes.
    """

    name: str
    """What errors call it."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def children(self, folder: str) -> dict[str, str]:
        """What lies in a folder: names, and what each is (`FILE`, `FOLDER`, `a link`, …)."""
        ...

    def read(self, file: str) -> Iterator[bytes]:
        """The content of a file, piece by piece."""
        ...


class FolderSource:
    """A folder on disk, which may change while it is read.

    Every file is opened from the folder it lies in, and no link is followed on the way.
    """

    def __init__(self, path: Path) -> None:
        self.name = quoted(path.resolve().name or str(path))[1:-1]
        self._path = path
        self._top = -1

    def __enter__(self) -> Self:
        """Open the top; what it is moved to, or replaced with, is no matter from now on."""
        try:
            self._top = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise SubmissionError(f"{self.name} can't be opened: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._top)

    def children(self, folder: str) -> dict[str, str]:
        """See `Source.children`."""
        found: dict[str, str] = {}
        with self._opened(folder, os.O_DIRECTORY) as fd, os.scandir(fd) as entries:
            for entry in entries:
                if len(found) == MAX_LISTED:
                    raise SubmissionError(
                        f"{self.name} has more than {MAX_LISTED} entries in "
                        f"{quoted(folder or '.')}; hand in the code alone"
                    )
                try:
                    found[entry.name] = kind(entry.stat(follow_symlinks=False).st_mode)
                except OSError:  # gone already
                    continue
        return dict(sorted(found.items()))

    def read(self, file: str) -> Iterator[bytes]:
        """See `Source.read`."""
        with self._opened(file, os.O_NONBLOCK) as fd:
            if (now := kind(os.fstat(fd).st_mode)) != FILE:
                raise SubmissionError(f"{self.name}/{file} became {now} while it was copied")
            while chunk := os.read(fd, _CHUNK):
                yield chunk

    @contextmanager
    def _opened(self, path: str, flags: int) -> Iterator[int]:
        """Open step by step, since O_NOFOLLOW speaks of the last step alone."""
        fd = os.dup(self._top)
        try:
            steps = path.split("/") if path else []
            for i, step in enumerate(steps):
                wanted = flags if i == len(steps) - 1 else os.O_DIRECTORY
                mode = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | wanted
                inner = os.open(step, mode, dir_fd=fd)
                os.close(fd)
                fd = inner
            yield fd
        except OSError as error:
            shown = quoted(path or ".")
            raise SubmissionError(
                f"{self.name}: {shown} can't be read ({error.strerror}); "
                "it must be there, readable, and stay as it is while it is copied"
            ) from error
        finally:
            os.close(fd)


def kind(mode: int) -> str:
    """What a file of that mode is."""
    return next((name for test, name in _KINDS if test(mode)), "a device")
