"""Archives whose members lead out, are no files, clash or are damaged: refused in one line."""

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
    """Catches an archive that writes outside the folder it is unpacked to."""
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
    text = "ada.zip: 'cs336_basics/link.py' is a link; expected a file: put it there itself"
    assert refusal(archive) == text


KINDS = {
    "a link": (tarfile.SYMTYPE, tarfile.LNKTYPE),
    "a pipe": (tarfile.FIFOTYPE,),
    "a device": (tarfile.CHRTYPE, tarfile.BLKTYPE),
}


@pytest.mark.parametrize("what", KINDS)
def test_what_is_no_file_in_a_tar(tmp_path: Path, what: str) -> None:
    """Catches an unpacked link, pipe or device, and a refusal where one lies outside the package.

    A link in `venv/` is common and harmless: nothing there is taken.
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
    """Catches a member that is written through a link that came before it."""
    archive = write_tar(tmp_path / "ada.tar", {})
    with tarfile.open(archive, "a") as file:
        header = tarfile.TarInfo("cs336_basics")
        header.type, header.linkname = tarfile.SYMTYPE, str(tmp_path)
        file.addfile(header)
        file.addfile(tarfile.TarInfo("cs336_basics/evil.py"))
    text = refusal(archive)
    assert text == "ada.tar holds 'cs336_basics' as a link and as a folder; pack it anew"


@pytest.mark.parametrize("write", [write_zip, _write_tgz, write_tar])
def test_a_damaged_archive(tmp_path: Path, write: Write) -> None:
    """Catches an error of the decompressor that ends the grading of a whole class."""
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
    """Catches files that are lost in silence because damage is taken for the end of a tar."""
    archive = write_tar(tmp_path / "ada.tar", {**FILES, "cs336_basics/last.py": ""})
    content = archive.read_bytes()
    archive.write_bytes(content.replace(b"cs336_basics/last.py", b"cs336_basics/lost.py"))
    assert "is not a readable tar: a header is damaged; pack it anew" in refusal(archive)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_a_file_that_is_there_twice(tmp_path: Path, write: Write) -> None:
    """Catches an archive in which two readers see different code under one name."""
    archive = write(tmp_path / "ada.zip", FILES)
    if write is write_zip:
        with zipfile.ZipFile(archive, "a") as zipped:
            zipped.writestr("adapters.py", "other")
    else:
        with tarfile.open(archive, "a:") as tarred:
            tarred.addfile(tarfile.TarInfo("adapters.py"))
    assert refusal(archive) == "ada.zip holds 'adapters.py' twice; pack it anew"


def test_a_file_where_a_folder_must_be(tmp_path: Path) -> None:
    """Catches a traceback for a zip that holds one name as a file and as a folder."""
    archive = write_zip(tmp_path / "ada.zip", {"a": "file", "a/b": "in it"})
    assert refusal(archive) == "ada.zip holds 'a' as a file and as a folder; pack it anew"
