"""The temporary folder of one run of the grader.

A run removes its folder when it ends. If a run is killed, the next run removes the folder. A run
holds a lock on its folder; the system releases the lock when the process ends, however it ends.
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
    """Make a temporary folder for the block; first remove the folders that killed runs left.

    Other users may enter the folder, so that workers can reach their files, but not list it.
    """
    for leftover in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with _locked(leftover) as mine:
            if mine:
                remove(leftover)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        with _locked(folder) as mine:
            if not mine:
                continue  # another run took it for a leftover, and removes it
            folder.chmod(0o711)
            try:
                yield folder
            finally:
                remove(folder)
            return


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Lock a folder for the block; yield False if it isn't ours or another process holds it."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        yield os.fstat(fd).st_uid == os.geteuid() and _lock(fd) and _is_at(folder, fd)
    finally:
        os.close(fd)


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_at(folder: Path, fd: int) -> bool:
    """Whether the path still leads to the folder that was opened."""
    try:
        return os.path.samestat(folder.lstat(), os.fstat(fd))
    except OSError:
        return False
