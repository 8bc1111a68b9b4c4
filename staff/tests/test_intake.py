"""Intake: archives as students make them are opened, and others are refused in one line."""

import random
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from staff.grader import intake
from staff.grader.intake import name_of, opened
from tests.harness.errors import SubmissionError

FILES = {"cs336_basics/__init__.py": "x = 1\n" * 50, "adapters.py": "y = 2\n"}


@pytest.fixture
def pack(tmp_path):
    """Write a zip and give its path."""

    def write(files: Mapping[str, str], name: str = "ada.zip") -> Path:
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as file:
            for inner, text in files.items():
                file.writestr(inner, text)
        return tmp_path / name

    return write


def contents(path: Path) -> dict[str, str]:
    """What is in a submission that was opened."""
    with opened(path) as folder:
        return {
            file.relative_to(folder).as_posix(): file.read_text()
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        }


def refusal(path: Path) -> str:
    """The line with which an archive is refused."""
    with pytest.raises(SubmissionError) as caught, opened(path):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_is_taken_as_it_is(tmp_path):
    """Catches a folder that is copied, or deleted when the grade is done."""
    with opened(tmp_path) as folder:
        assert folder == tmp_path
    assert tmp_path.is_dir()


def test_a_zip_is_unpacked_and_removed(pack):
    """Catches files that are lost, and unpacked code that stays on the grader's disk."""
    archive = pack(FILES)
    assert contents(archive) == FILES
    with opened(archive) as folder:
        assert folder.is_dir()
    assert not folder.exists()


@pytest.mark.parametrize("beside", [{}, {"__MACOSX/._ada": "", "notes.txt": ""}])
def test_one_folder_at_the_top(pack, beside):
    """Catches a zip of a folder, as every file manager makes it, that isn't recognised."""
    assert contents(pack({**beside, **{f"ada-1/{n}": t for n, t in FILES.items()}})) == FILES


def test_a_public_submission_keeps_its_top(pack):
    """Catches the package's own folder that is taken for the folder around the submission."""
    files = {"cs336_basics/m.py": "", "tests/adapters.py": ""}
    assert contents(pack(files)) == files
    assert contents(pack({"cs336_basics/m.py": ""})) == {"cs336_basics/m.py": ""}


@pytest.mark.parametrize(
    "name",
    ["../evil.py", "a/../../evil.py", "/etc/evil.py", "..\\evil.py", "C:\\evil.py", "C:evil"],
)
def test_a_name_that_leads_out(pack, tmp_path, name):
    """Catches a zip that writes where it likes on the grader's disk."""
    text = refusal(pack({**FILES, name: "evil"}))
    assert text == f"ada.zip holds {name!r}, which leads out of the archive"
    assert [p.name for p in tmp_path.rglob("*")] == ["ada.zip"]


def test_a_link_is_no_way_out(tmp_path, pack):
    """Catches a symbolic link in a zip that lets a submission read the grader's files."""
    archive = pack(FILES)
    link = zipfile.ZipInfo("cs336_basics/link.py")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(link, "/etc/passwd")
    with opened(archive) as folder:
        assert not any(path.is_symlink() for path in folder.rglob("*"))


@pytest.mark.parametrize(("limit", "value"), [("MAX_FILES", 1), ("MAX_BYTES", 100)])
def test_a_zip_that_is_too_large(pack, monkeypatch, limit, value):
    """Catches a small archive that fills the grader's disk."""
    monkeypatch.setattr(intake, limit, value)
    text = refusal(pack(FILES))
    assert text.startswith("ada.zip is too large: at most ")
    assert text.endswith("are taken")


@pytest.mark.parametrize("content", [b"", b"PK", b"hello", b"PK\x05\x06" + b"\0" * 10])
def test_what_is_no_zip(tmp_path, content):
    """Catches a traceback for a file that only bears the name of a zip."""
    (tmp_path / "ada.zip").write_bytes(content)
    assert refusal(tmp_path / "ada.zip").startswith("ada.zip is not a readable zip: ")


def test_a_damaged_zip(pack):
    """Catches an error of the decompressor that ends the grading of a whole class."""
    archive = pack(FILES)
    good, draw = archive.read_bytes(), random.Random(3)
    refusals = []
    for _ in range(150):
        content = bytearray(good)
        content[draw.randrange(len(good))] ^= 1 << draw.randrange(8)
        archive.write_bytes(content[: draw.choice([len(good), draw.randrange(len(good))])])
        try:
            contents(archive)
        except SubmissionError as error:
            refusals.append(str(error))
    assert len(refusals) > 100
    assert all(text.startswith("ada.zip ") for text in refusals)


def test_an_encrypted_zip(pack):
    """Catches a traceback for an archive with a password."""
    archive = pack({"adapters.py": "x"})
    content = bytearray(archive.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    archive.write_bytes(content)
    assert "password required" in refusal(archive)


def test_names(tmp_path, monkeypatch):
    """Catches reports that bear another name than the submission, or none."""
    (tmp_path / "ada.v2").mkdir()
    monkeypatch.chdir(tmp_path / "ada.v2")
    assert name_of(Path()) == "ada.v2"
    assert name_of(tmp_path / "ada.v2") == "ada.v2"
    assert name_of(tmp_path / "ada.v2.zip") == "ada.v2"


def test_a_file_where_a_folder_must_be(pack):
    """Catches a traceback for a zip whose names clash."""
    assert "is not a readable zip" in refusal(pack({"a": "file", "a/b": "in it"}))
