"""Files that are whole, or as they were; folders that cost little."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM = 1 << 30


def quick_folder() -> str | None:
    """Where to make many small files that are soon gone: in memory, where there is room.

    None stands for where temporary files go otherwise.
    """
    with contextlib.suppress(OSError):
        if os.access(_MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
            return str(_MEMORY)
    return None


def write_whole(file: Path, content: bytes) -> None:
    """Write a file so that it is either the old one or the new one, whenever this is stopped."""
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as new:
        try:
            new.write(content)
            new.flush()
            os.fsync(new.fileno())
        except OSError:
            Path(new.name).unlink()
            raise
    try:
        Path(new.name).chmod(0o644)
        os.replace(new.name, file)
    except OSError:
        Path(new.name).unlink()
        raise
