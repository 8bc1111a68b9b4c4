"""Helpers for the tests of intake: they pack a submission, open it, or expect its refusal."""

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pytest

from staff.grader.intake import opened
from tests.harness.errors import SubmissionError

FILES = {"cs336_basics/__init__.py": "x = 1\n" * 50, "adapters.py": "y = 2\n"}
TarMode = Literal["w", "w:gz", "w:bz2", "w:xz"]


def write_zip(path: Path, files: Mapping[str, str]) -> Path:
    """Write a zip of these files, given as texts by path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in files.items():
            file.writestr(name, text)
    return path


def write_tar(path: Path, files: Mapping[str, str], mode: TarMode = "w") -> Path:
    """Write a tar of these files, given as texts by path."""
    with tarfile.open(path, mode) as file:
        for name, text in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(text.encode())
            file.addfile(header, io.BytesIO(text.encode()))
    return path


def put(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files, given as texts by path, below a folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def contents(path: Path) -> dict[str, str]:
    """Open a submission, and return the texts of the copied files by path."""
    with opened(path) as intake:
        found = {
            file.relative_to(intake.folder).as_posix(): file.read_text()
            for file in sorted(intake.folder.rglob("*"))
            if file.is_file()
        }
    assert tuple(sorted(found)) == intake.taken
    return found


def left_out(path: Path) -> dict[str, str]:
    """Open a submission, and return the reason for every file that is not copied, by name."""
    with opened(path) as intake:
        return {entry.name: entry.why for entry in intake.left_out}


def refusal(path: Path) -> str:
    """Open a submission that must be refused, and return the message of the error."""
    with pytest.raises(SubmissionError) as caught, opened(path):
        pass
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 700
    return text
