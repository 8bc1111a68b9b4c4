"""Files that are whole, or as they were; folders that cost little, and that go."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM = 1 << 30


def quick_folder() -> Path | None:
    """Where to make many small files that are soon gone: in memory, where there is room.

    None stands for where temporary files go otherwise.
    """
    with contextlib.suppress(OSError):
        if os.access(_MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
            return _MEMORY
    return None


def write_whole(file: Path, content: bytes) -> None:
    """Write a file so that it is either the old one or the new one, whenever this is stopped.

    Raises:
        OSError: it can't be written; the error names it.
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
    """Remove a folder that a submission may have filled: unreadable, or deeper than Python goes."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for tool in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*tool, "--", folder], check=False, stderr=subprocess.DEVNULL)
