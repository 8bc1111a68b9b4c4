"""The temporary folder of one run: it goes with the run or, where that was killed, with the next.

Whoever works in one holds a lock on it, which ends with the process, however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from staff.files import remove

_PREFIX = "cs336-run-"


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A new folder that others may enter, and not list; those left by killed runs are removed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with _held(left) as mine:
            if mine:
                remove(left)
    while True:
        place = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        with _held(place) as mine:
            if not mine:
                continue  # somebody took it for one that was left
            place.chmod(0o711)
            try:
                yield place
            finally:
                remove(place)
            return


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Lock a folder; false where it isn't ours, or somebody else is at work in it."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        yield os.fstat(fd).st_uid == os.geteuid() and _locked(fd) and _still(folder, fd)
    finally:
        os.close(fd)


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _still(folder: Path, fd: int) -> bool:
    """Whether the folder that was opened stands there still."""
    try:
        return os.path.samestat(folder.lstat(), os.fstat(fd))
    except OSError:
        return False
