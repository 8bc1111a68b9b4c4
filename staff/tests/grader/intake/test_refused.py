"""An archive with an unsafe, duplicate or damaged member is refused with a one-line message."""

import random
import stat
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from staff.tests.grader.intake.packing import FILES, contents, refusal, write_tar, write_zip
from tests.harness.errors import SubmissionError

Write = Callable[[Path, Mapping[str, str]], Path]


def _write_tgz(path: Path, files: Mapping[str, str]) -> Path:
    return write_tar(path, files, "w:gz")


@pytest.mark.parametrize("write", [write_zip, write_tar])
@pytest.mark.parametrize(
    "name",
    ["../evil.py", "a/../../evil.py", "/etc/evil.py", "..\\evil.py", "C:\\evil.py", "C:evil"],
)
def test_a_name_that_leads_out(tmp_path: Path, write: Write, name: str) -> None:
    """Catches a file of an archive that is written outside the folder for the unpacked files."""
    text = refusal(write(tmp_path / "ada.zip", {**FILES, name: "evil"}))
    assert text.startswith(f"ada.zip holds {name!r}, which leads out of the archive; pack ")
    assert [p.name for p in tmp_path.rglob("*")] == ["ada.zip"]


def test_a_link_in_a_zip(tmp_path: Path) -> None:
    """Catches a symbolic link in a zip that lets a submission read the grader's files."""
    link = zipfile.ZipInfo("cs336_basics/link.py")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    archive = write_zip(tmp_path / "ada.zip", FILES)
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(link, "/etc/passwd")
    text = "ada.zip: 'cs336_basics/link.py' is a link; expected a file, so replace it with one"
    assert refusal(archive) == text


KINDS = {
    "a link": (tarfile.SYMTYPE, tarfile.LNKTYPE),
    "a pipe": (tarfile.FIFOTYPE,),
    "a device": (tarfile.CHRTYPE, tarfile.BLKTYPE),
}


@pytest.mark.parametrize("what", KINDS)
def test_what_is_no_file_in_a_tar(tmp_path: Path, what: str) -> None:
    """Catches a link, pipe or device that is unpacked, or one in `venv/` that causes a refusal.

    Links in `venv/` are common and harmless, since no file of that folder is copied.
    """
    for kind in KINDS[what]:
        for name in ("cs336_basics/odd.py", "adapters.py", "cs336_basics", "venv/bin/python"):
            rest = {n: t for n, t in FILES.items() if not n.startswith(name)}
            archive = write_tar(tmp_path / "ada.tar", rest)
            with tarfile.open(archive, "a") as file:
                header = tarfile.TarInfo(name)
                header.type, header.linkname = kind, "/etc/passwd"
                file.addfile(header)
            if name.startswith("venv"):
                assert contents(archive) == FILES
            else:
                assert f" '{name}' is {what}; expected a f" in refusal(archive)


def test_a_file_through_a_link(tmp_path: Path) -> None:
    """Catches a file that is written to the target of a link from the same archive."""
    archive = write_tar(tmp_path / "ada.tar", {})
    with tarfile.open(archive, "a") as file:
        header = tarfile.TarInfo("cs336_basics")
        header.type, header.linkname = tarfile.SYMTYPE, str(tmp_path)
        file.addfile(header)
        file.addfile(tarfile.TarInfo("cs336_basics/evil.py"))
    text = refusal(archive)
    assert text == "ada.tar holds 'cs336_basics' as a link and as a folder; pack it again"


@pytest.mark.parametrize("write", [write_zip, _write_tgz, write_tar])
def test_a_damaged_archive(tmp_path: Path, write: Write) -> None:
    """Catches a damaged archive that stops the whole batch with an error of the decompressor."""
    archive = write(tmp_path / "ada.zip", FILES)
    good, draw = archive.read_bytes(), random.Random(3)
    refusals = []
    for _ in range(150):
        content = bytearray(good)
        content[draw.randrange(len(good))] ^= 1 << draw.randrange(8)
        archive.write_bytes(content[: draw.choice([len(good), draw.randrange(len(good))])])
        try:
            contents(archive)
        except (SubmissionError, UnicodeDecodeError) as error:
            refusals.append(str(error))
    assert len(refusals) > 40


def test_a_tar_whose_middle_is_damaged(tmp_path: Path) -> None:
    """Catches files that are lost without a message because a damaged header ends a tar early."""
    archive = write_tar(tmp_path / "ada.tar", {**FILES, "cs336_basics/last.py": ""})
    content = archive.read_bytes()
    archive.write_bytes(content.replace(b"cs336_basics/last.py", b"cs336_basics/lost.py"))
    assert "is not a readable tar: a header is damaged; pack it again" in refusal(archive)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_a_file_that_is_there_twice(tmp_path: Path, write: Write) -> None:
    """Catches an archive that is accepted although it holds two files with the same name."""
    archive = write(tmp_path / "ada.zip", FILES)
    if write is write_zip:
        with zipfile.ZipFile(archive, "a") as zipped:
            zipped.writestr("adapters.py", "other")
    else:
        with tarfile.open(archive, "a:") as tarred:
            tarred.addfile(tarfile.TarInfo("adapters.py"))
    assert refusal(archive) == "ada.zip holds 'adapters.py' twice; pack it again"


def test_a_file_where_a_folder_must_be(tmp_path: Path) -> None:
    """Catches a traceback for a zip in which the same name is a file and a folder."""
    archive = write_zip(tmp_path / "ada.zip", {"a": "file", "a/b": "in it"})
    assert refusal(archive) == "ada.zip holds 'a' as a file and as a folder; pack it again"
