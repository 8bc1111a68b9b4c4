"""Archives that students make are opened; other files are refused with a one-line message."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from staff.grader.intake import name_of, opened
from staff.tests.grader.intake.packing import (
    FILES,
    TarMode,
    contents,
    refusal,
    write_tar,
    write_zip,
)


def test_an_archive_is_unpacked_and_removed(tmp_path: Path) -> None:
    """Catches a file of a zip that is lost, or a copy that is not removed afterwards."""
    archive = write_zip(tmp_path / "ada.zip", FILES)
    assert contents(archive) == FILES
    with opened(archive) as intake:
        assert intake.folder.is_dir()
    assert not intake.folder.exists()


@pytest.mark.parametrize(
    ("ending", "mode"),
    [
        (".tar", "w"),
        (".tar.gz", "w:gz"),
        (".tgz", "w:gz"),
        (".tar.bz2", "w:bz2"),
        (".tar.xz", "w:xz"),
        (".txz", "w:xz"),
    ],
)
def test_tars(tmp_path: Path, ending: str, mode: TarMode) -> None:
    """Catches a tar that is refused, or is recognised by its name and not by its content."""
    packed = write_tar(tmp_path / f"ada{ending}", FILES, mode)
    assert contents(packed) == FILES
    assert name_of(packed) == "ada"
    assert contents(packed.rename(tmp_path / "ada.zip")) == FILES


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_forms_of_tar(tmp_path: Path, form: int) -> None:
    """Catches a tar in the PAX, GNU or USTAR format whose long names can't be read."""
    name = f"cs336_basics/{'n' * 90}/{'m' * 90}.py"
    with tarfile.open(tmp_path / "ada.tar", "w", format=form) as file:
        for path, text in {**FILES, name: "z = 3\n"}.items():
            header = tarfile.TarInfo(f"./{path}")
            header.size, header.pax_headers = len(text), {"comment": "größe"}
            file.addfile(header, io.BytesIO(text.encode()))
    assert contents(tmp_path / "ada.tar") == {**FILES, name: "z = 3\n"}


@pytest.mark.parametrize("beside", [{}, {"__MACOSX/._ada": "", "notes.txt": ""}, {".git/x": ""}])
def test_one_folder_at_the_top(tmp_path: Path, beside: Mapping[str, str]) -> None:
    """Catches a package that isn't found if one folder at the top of a zip holds all the code."""
    files = {**beside, **{f"ada-1/{name}": text for name, text in FILES.items()}}
    assert contents(write_zip(tmp_path / "ada.zip", files)) == FILES


def test_a_zip_of_windows(tmp_path: Path) -> None:
    """Catches a backslash in a name, as zips from Windows have it, that is not read as a slash."""
    files = {name.replace("/", "\\"): text for name, text in FILES.items()}
    assert contents(write_zip(tmp_path / "ada.zip", files)) == FILES


@pytest.mark.parametrize("content", [b"", b"PK", b"hello", b"PK\x05\x06" + b"\0" * 10])
def test_what_is_no_zip(tmp_path: Path, content: bytes) -> None:
    """Catches a traceback for a file that is named `ada.zip` but is not a zip."""
    (tmp_path / "ada.zip").write_bytes(content)
    assert refusal(tmp_path / "ada.zip").startswith("ada.zip is not a readable zip: ")


def test_what_is_no_archive(tmp_path: Path) -> None:
    """Catches a traceback or an unclear message for a file that is neither a zip nor a tar."""
    for name, content, text in (
        ("ada.rar", b"Rar!\x1a\x07\0", "is neither a folder nor a zip nor a tar (.tar, .tar.gz"),
        ("ada.py", b"x = 1", "is neither a folder nor a zip nor a tar"),
        ("ada.tar", b"", "is empty; hand in"),
        ("ada.gz", gzip.compress(b"x = 1"), "is not a readable tar: "),
        ("ada.bz2", bz2.compress(b"\0" * 5000)[:-9], "is not a readable tar: "),
        ("ada.xz", lzma.compress(b"x")[:20], "is not a readable tar: "),
    ):
        (tmp_path / name).write_bytes(content)
        assert refusal(tmp_path / name).startswith(f"{name} {text}")
    assert refusal(Path("/dev/zero")).startswith("zero is a device; hand in a folder, a zip or")
    os.mkfifo(tmp_path / "ada.pipe")
    assert refusal(tmp_path / "ada.pipe").startswith("ada.pipe is a pipe; hand in")
    assert (
        refusal(tmp_path / "nobody.zip") == "nobody.zip can't be opened: No such file or directory"
    )


def test_an_encrypted_zip(tmp_path: Path) -> None:
    """Catches a traceback for an archive with a password."""
    archive = write_zip(tmp_path / "ada.zip", {**FILES, "adapters.py": "x"})
    content = bytearray(archive.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.rindex(mark) + offset] |= 1
    archive.write_bytes(content)
    assert "password required" in refusal(archive)


def test_nothing_in_it(tmp_path: Path) -> None:
    """Catches a refusal that doesn't say what is missing in an empty or wrongly packed archive."""

    def refused(files: Mapping[str, str]) -> str:
        return refusal(write_zip(tmp_path / "ada.zip", files))

    empty = "is empty; expected cs336_basics/ and the adapters"
    assert refused({}) == f"ada.zip {empty}"
    assert refusal(write_tar(tmp_path / "ada.tar", {})) == f"ada.tar {empty}"
    assert refused({"ada-2/ada.tar.gz": ""}).startswith(
        "ada.zip holds another archive, 'ada.tar.gz', and no cs336_basics/ folder; hand in the inn"
    )
    assert refused({"a/b.py": ""}) == "ada.zip has no cs336_basics/ folder; put the package there"
    assert refused({"cs336_basics/m.py": ""}) == (
        "ada.zip has neither adapters.py nor tests/adapters.py; put the adapters in one"
    )


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a wrong, empty or unprintable name of a submission, or a name that is a path."""
    (tmp_path / "ada.v2").mkdir()
    monkeypatch.chdir(tmp_path / "ada.v2")
    assert name_of(Path()) == "ada.v2"
    assert name_of(tmp_path / "ada.v2") == "ada.v2"
    assert name_of(tmp_path / "ada.v2.zip") == "ada.v2"
    for name in ("...zip", "..zip", ".zip", "/"):
        assert name_of(Path(name)) == "submission" or name == ".zip"
    assert name_of(Path("a\x1b[2J\udcff.zip")) == "a\\x1b[2J\\udcff"
