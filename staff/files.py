"""Write files whole, find a quick folder for temporary files, and remove any folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_HEADROOM = 1 << 30
"""Bytes of memory that must be free before temporary files are put there."""


def quick_folder() -> Path | None:
    """Return a folder in memory, for many small files that are soon removed, or None.

    None means the usual temporary folder: memory has no such folder, or too little of it is free.
    """
    with contextlib.suppress(OSError):
        if os.access(_MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(_MEMORY).free > _HEADROOM:
            return _MEMORY
    return None


def write_whole(file: Path, content: bytes) -> None:
    """Replace a file as a whole: after an interruption, it has its old or its new content.

    Raises:
        OSError: the file can't be written; the error names the file.
    """
    new = None
    try:
        with tempfile.NamedTemporaryFile(
            dir=file.parent, prefix=f".{file.name}.", delete=False, buffering=0
        ) as new:
            rest = memoryview(content)
            while rest:
                rest = rest[new.write(rest) :]
            os.fsync(new.fileno())
        Path(new.name).chmod(0o644)
        os.replace(new.name, file)
    except BaseException as error:
        if new is not None:
            Path(new.name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror or str(error), str(file)) from None
        raise


def remove(folder: Path) -> None:
    """Remove a folder, even if a submission made it unreadable or too deep for Python to walk."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for tool in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*tool, "--", folder], check=False, stderr=subprocess.DEVNULL)
