"""Intake: a folder or a zip becomes a folder that can be graded."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from tests.harness.errors import SubmissionError
from tests.harness.submission import PACKAGE

MAX_BYTES = 50_000_000
MAX_FILES = 5_000
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)
"""What `zipfile` raises for an archive that is damaged, encrypted, or packed in a rare way."""


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """Give a folder for a submission; what was unpacked goes when the block ends.

    Raises:
        SubmissionError: an archive is damaged, too large, or holds a name that leads out of it.
    """
    if path.is_dir():
        yield path
        return
    with TemporaryDirectory(prefix="submission-") as folder:
        _unpack(path, Path(folder))
        yield _root(Path(folder))


def name_of(path: Path) -> str:
    """The name of a submission: that of its folder, or of its archive without the ending."""
    return path.resolve().name if path.is_dir() else path.stem


def _unpack(archive: Path, folder: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as file:
            members = file.infolist()
            if len(members) > MAX_FILES or sum(m.file_size for m in members) > MAX_BYTES:
                raise SubmissionError(
                    f"{archive.name} is too large: at most {MAX_FILES} files "
                    f"and {MAX_BYTES // 1_000_000} MB unpacked are taken"
                )
            for member in members:
                name = PurePosixPath(member.filename.replace("\\", "/"))
                if name.is_absolute() or ".." in name.parts or ":" in member.filename:
                    raise SubmissionError(
                        f"{archive.name} holds {member.filename!r}, which leads out of the archive"
                    )
            file.extractall(folder)
    except _DAMAGED as error:
        raise SubmissionError(f"{archive.name} is not a readable zip: {error}") from error


def _root(folder: Path) -> Path:
    """The folder that holds the package: the top, or the one folder at the top."""
    inner = [p for p in folder.iterdir() if p.is_dir() and p.name != "__MACOSX"]
    if not (folder / PACKAGE).is_dir() and len(inner) == 1:
        return inner[0]
    return folder
