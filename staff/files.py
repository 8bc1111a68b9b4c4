"""Files that are whole, or as they were."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


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
