"""Sources read a submission: a source lists folders and reads files, when it is asked to.

The content of a source is not trusted. A listed file may be removed, changed, or without end when
it is read.
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
"""The most entries of an archive, or of one folder."""
_CHUNK = 1 << 16
_KINDS = (
    (stat.S_ISREG, FILE),
    (stat.S_ISDIR, FOLDER),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


class Source(Protocol):
    """A folder or an archive, which is open for a `with` block.

    Paths are relative to its top, which is `""`, and have forward slashes.
    """

    name: str
    """The name of the submission in messages."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def children(self, folder: str) -> dict[str, str]:
        """List a folder: the names in it, and the kind of each (`FILE`, `FOLDER`, `a link`, …)."""
        ...

    def read(self, file: str) -> Iterator[bytes]:
        """Yield the content of a file, chunk by chunk."""
        ...


class FolderSource:
    """A folder on disk, which may change while it is read.

    Every file is opened step by step from the top, and no link is followed on the way.
    """

    def __init__(self, path: Path) -> None:
        self.name = quoted(path.resolve().name or str(path))[1:-1]
        self._path = path
        self._top = -1

    def __enter__(self) -> Self:
        """Open the top folder; it is still read if another folder gets its path later."""
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
                        f"{quoted(folder or '.')}; hand in only your code"
                    )
                try:
                    found[entry.name] = kind(entry.stat(follow_symlinks=False).st_mode)
                except OSError:  # it has been removed already
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
        """Open a path step by step, since O_NOFOLLOW applies only to the last step of a path."""
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
                "make it readable, and don't change it while it is copied"
            ) from error
        finally:
            os.close(fd)


def kind(mode: int) -> str:
    """Return what kind of file has this mode."""
    return next((name for test, name in _KINDS if test(mode)), "a device")
