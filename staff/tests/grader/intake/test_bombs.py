"""An archive that unpacks to too much data is refused before it fills the memory or the disk."""

import os
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from staff.grader.intake import archives, collect
from staff.tests.grader.intake.packing import FILES, TarMode, refusal, write_tar, write_zip


@pytest.mark.parametrize(("limit", "value"), [("MAX_FILES", 1), ("MAX_BYTES", 100)])
def test_an_archive_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    """Catches an archive that is accepted although its files exceed `MAX_FILES` or `MAX_BYTES`."""
    monkeypatch.setattr(collect, limit, value)
    text = refusal(write_zip(tmp_path / "ada.zip", FILES))
    assert text.startswith("ada.zip is too large: it may have at most ")
    assert text.endswith(" MB; hand in only your code")


@pytest.mark.parametrize("limit", ["MAX_MODULE", "MAX_MODULES"])
def test_too_much_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """Catches Python code that is accepted although it is larger than the grader should parse."""
    monkeypatch.setattr(collect, limit, 100)
    archive = write_zip(tmp_path / "ada.zip", FILES)
    assert "'cs336_basics/__init__.py' makes it too large" in refusal(archive)


def test_limits_of_the_archive_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches an archive that is accepted although it has too many bytes or too many entries."""
    archive = write_zip(tmp_path / "ada.zip", FILES)
    monkeypatch.setattr(archives, "MAX_ARCHIVE", 100)
    assert "ada.zip is too large: an archive may have at most" in refusal(archive)
    monkeypatch.undo()
    monkeypatch.setattr(archives, "MAX_LISTED", 1)
    assert "ada.zip holds more than 1 entries" in refusal(archive)
    monkeypatch.setattr(archives, "MAX_TAR", 100)
    assert "ada.tar is too large: it may unpack" in refusal(write_tar(tmp_path / "ada.tar", FILES))


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("ada.zip", None),
        ("ada.tar.gz", "w:gz"),
        ("ada.tar.bz2", "w:bz2"),
        ("ada.tar.xz", "w:xz"),
    ],
)
def test_a_bomb(tmp_path: Path, name: str, mode: TarMode | None) -> None:
    """Catches an archive of less than 50 kB that is accepted although it holds 20 MB of zeros."""
    zeros = {**FILES, "cs336_basics/zeros.bin": "\0" * 20_000_000}
    path = tmp_path / name
    archive = write_tar(path, zeros, mode) if mode else write_zip(path, zeros)
    assert archive.stat().st_size < 50_000
    assert "unpacks to more than 200 times its size; hand in" in refusal(archive)


def test_a_size_that_lies(tmp_path: Path) -> None:
    """Catches a zip that is accepted although a member is larger than the header states."""
    zeros = {**FILES, "cs336_basics/zeros.bin": "\0" * 60_000_000}
    archive = write_zip(tmp_path / "ada.zip", zeros)
    content = bytearray(archive.read_bytes())
    size = (60_000_000).to_bytes(4, "little")
    while size in content:
        at = content.index(size)
        content[at : at + 4] = (5).to_bytes(4, "little")
    archive.write_bytes(content)
    assert refusal(archive).startswith("ada.zip is not a readable zip: Bad CRC-32")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE])
def test_a_header_of_headers(tmp_path: Path, kind: bytes) -> None:
    """Catches a tar whose extension header is read into memory although it has many megabytes."""
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 150_000_000
    raw = header.tobuf(tarfile.GNU_FORMAT)
    (tmp_path / "ada.tar").write_bytes(raw)
    os.truncate(tmp_path / "ada.tar", 90_000_000)
    tracemalloc.start()
    text = refusal(tmp_path / "ada.tar")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert text.startswith("ada.tar is not a readable tar: a header is larger than any name")
    assert peak < 5_000_000


def test_a_list_of_members_that_lies(tmp_path: Path) -> None:
    """Catches a zip whose list of members is read although its stated size is 80 MB."""
    archive = write_zip(tmp_path / "ada.zip", FILES)
    with archive.open("r+b") as file:
        file.truncate(90_000_000)
    end = bytearray(write_zip(tmp_path / "empty.zip", {}).read_bytes())
    end[12:16] = (80_000_000).to_bytes(4, "little")
    with archive.open("ab") as file:
        file.write(end)
    assert "its list of members is larger than any submission's" in refusal(archive)
