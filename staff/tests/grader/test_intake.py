"""Intake: archives as students make them are opened, and others are refused in one line."""

import bz2
import gzip
import io
import lzma
import os
import random
import stat
import tarfile
import tracemalloc
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from staff.grader.intake import archives, collect, name_of, opened
from tests.harness.errors import SubmissionError

FILES = {"cs336_basics/__init__.py": "x = 1\n" * 50, "adapters.py": "y = 2\n"}


def write_zip(path: Path, files: Mapping[str, str]) -> Path:
    """Pack texts into a zip."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in files.items():
            file.writestr(name, text)
    return path


def write_tar(path: Path, files: Mapping[str, str], mode: str = "w") -> Path:
    """Pack texts into a tar."""
    with tarfile.open(path, mode) as file:
        for name, text in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(text.encode())
            file.addfile(header, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def pack(tmp_path):
    """Write a zip and give its path."""
    return lambda files, name="ada.zip": write_zip(tmp_path / name, files)


def contents(path: Path) -> dict[str, str]:
    """What is in a submission that was opened."""
    with opened(path) as intake:
        found = {
            file.relative_to(intake.folder).as_posix(): file.read_text()
            for file in sorted(intake.folder.rglob("*"))
            if file.is_file()
        }
    assert tuple(sorted(found)) == intake.taken
    return found


def refusal(path: Path) -> str:
    """The line with which an archive is refused."""
    with pytest.raises(SubmissionError) as caught, opened(path):
        pass
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 700
    return text


def test_an_archive_is_unpacked_and_removed(pack):
    """Catches files that are lost, and unpacked code that stays on the grader's disk."""
    archive = pack(FILES)
    assert contents(archive) == FILES
    with opened(archive) as intake:
        assert intake.folder.is_dir()
    assert not intake.folder.exists()


@pytest.mark.parametrize("ending", [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".txz"])
def test_tars(tmp_path, ending):
    """Catches a packing that isn't known, or is known by the ending alone."""
    mode = {"z": "w:gz", "g": "w:gz", "2": "w:bz2", "x": "w:xz", "r": "w"}
    packed = write_tar(tmp_path / f"ada{ending}", FILES, mode["x" if "x" in ending else ending[-1]])
    assert contents(packed) == FILES
    assert name_of(packed) == "ada"
    assert contents(packed.rename(tmp_path / "ada.zip")) == FILES


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_forms_of_tar(tmp_path, form):
    """Catches long names or attributes of one of the three forms that aren't read."""
    name = f"cs336_basics/{'n' * 90}/{'m' * 90}.py"
    with tarfile.open(tmp_path / "ada.tar", "w", format=form) as file:
        for path, text in {**FILES, name: "z = 3\n"}.items():
            header = tarfile.TarInfo(f"./{path}")
            header.size, header.pax_headers = len(text), {"comment": "größe"}
            file.addfile(header, io.BytesIO(text.encode()))
    assert contents(tmp_path / "ada.tar") == {**FILES, name: "z = 3\n"}


@pytest.mark.parametrize("beside", [{}, {"__MACOSX/._ada": "", "notes.txt": ""}, {".git/x": ""}])
def test_one_folder_at_the_top(pack, beside):
    """Catches a zip of a folder, as every file manager makes it, that isn't recognised."""
    assert contents(pack({**beside, **{f"ada-1/{n}": t for n, t in FILES.items()}})) == FILES


def test_a_zip_of_windows(pack):
    """Catches names with backslashes, as some packers write them, that are no paths here."""
    assert contents(pack({n.replace("/", "\\"): t for n, t in FILES.items()})) == FILES


@pytest.mark.parametrize("write", [write_zip, write_tar])
@pytest.mark.parametrize(
    "name",
    ["../evil.py", "a/../../evil.py", "/etc/evil.py", "..\\evil.py", "C:\\evil.py", "C:evil"],
)
def test_a_name_that_leads_out(tmp_path, write, name):
    """Catches an archive that writes where it likes on the grader's disk."""
    text = refusal(write(tmp_path / "ada.zip", {**FILES, name: "evil"}))
    assert text.startswith(f"ada.zip holds {name!r}, which leads out of the archive; pack ")
    assert [p.name for p in tmp_path.rglob("*")] == ["ada.zip"]


def test_a_link_in_a_zip(pack):
    """Catches a symbolic link in a zip that lets a submission read the grader's files."""
    link = zipfile.ZipInfo("cs336_basics/link.py")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    archive = pack(FILES)
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
def test_what_is_no_file_in_a_tar(tmp_path, what):
    """Catches a link, a device or a pipe that is unpacked, and one elsewhere that stops a grade."""
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


def test_a_file_through_a_link(tmp_path):
    """Catches a member that is written through a link that came before it."""
    archive = write_tar(tmp_path / "ada.tar", {})
    with tarfile.open(archive, "a") as file:
        header = tarfile.TarInfo("cs336_basics")
        header.type, header.linkname = tarfile.SYMTYPE, str(tmp_path)
        file.addfile(header)
        file.addfile(tarfile.TarInfo("cs336_basics/evil.py"))
    text = refusal(archive)
    assert text == "ada.tar holds 'cs336_basics' as a link and as a folder; pack it again"


@pytest.mark.parametrize(("limit", "value"), [("MAX_FILES", 1), ("MAX_BYTES", 100)])
def test_an_archive_that_is_too_large(pack, monkeypatch, limit, value):
    """Catches a small archive that fills the grader's disk."""
    monkeypatch.setattr(collect, limit, value)
    text = refusal(pack(FILES))
    assert text.startswith("ada.zip is too large: it may have at most ")
    assert text.endswith(" MB; hand in only your code")


@pytest.mark.parametrize("limit", ["MAX_MODULE", "MAX_MODULES"])
def test_too_much_python(pack, monkeypatch, limit):
    """Catches megabytes of Python that are parsed where grades are made."""
    monkeypatch.setattr(collect, limit, 100)
    assert "'cs336_basics/__init__.py' makes it too large" in refusal(pack(FILES))


def test_limits_of_the_archive_itself(pack, tmp_path, monkeypatch):
    """Catches an archive that is read whole before anybody asks for its size."""
    monkeypatch.setattr(archives, "MAX_ARCHIVE", 100)
    assert "ada.zip is too large: an archive may have at most" in refusal(pack(FILES))
    monkeypatch.undo()
    monkeypatch.setattr(archives, "MAX_LISTED", 1)
    assert "ada.zip holds more than 1 entries" in refusal(pack(FILES))
    monkeypatch.setattr(archives, "MAX_TAR", 100)
    assert "ada.tar is too large: it may unpack" in refusal(write_tar(tmp_path / "ada.tar", FILES))


@pytest.mark.parametrize("form", ["zip", "gz", "bz2", "xz"])
def test_a_bomb(tmp_path, form):
    """Catches a few kilobytes that unpack to megabytes of nothing."""
    zeros = {**FILES, "cs336_basics/zeros.bin": "\0" * 20_000_000}
    if form == "zip":
        archive = write_zip(tmp_path / "ada.zip", zeros)
    else:
        archive = write_tar(tmp_path / f"ada.tar.{form}", zeros, f"w:{form}")
    assert archive.stat().st_size < 50_000
    assert "unpacks to more than 200 times its size; hand in" in refusal(archive)


def test_a_size_that_lies(pack):
    """Catches a limit that asks the header how large a member is."""
    archive = pack({**FILES, "cs336_basics/zeros.bin": "\0" * 60_000_000})
    content = bytearray(archive.read_bytes())
    size = (60_000_000).to_bytes(4, "little")
    while size in content:
        at = content.index(size)
        content[at : at + 4] = (5).to_bytes(4, "little")
    archive.write_bytes(content)
    assert refusal(archive).startswith("ada.zip is not a readable zip: Bad CRC-32")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE])
def test_a_header_of_headers(tmp_path, kind):
    """Catches a tar whose table of attributes is read into memory, however large it is."""
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


def test_a_list_of_members_that_lies(pack):
    """Catches a zip that says its list is gigabytes long, and is believed."""
    archive = pack(FILES)
    with archive.open("r+b") as file:
        file.truncate(90_000_000)
    content = zipfile.ZipFile(pack({}, "empty.zip"))
    content.close()
    end = bytearray((archive.parent / "empty.zip").read_bytes())
    end[12:16] = (80_000_000).to_bytes(4, "little")
    with archive.open("ab") as file:
        file.write(end)
    assert "its list of members is larger than any submission's" in refusal(archive)


@pytest.mark.parametrize("content", [b"", b"PK", b"hello", b"PK\x05\x06" + b"\0" * 10])
def test_what_is_no_zip(tmp_path, content):
    """Catches a traceback for a file that only bears the name of a zip."""
    (tmp_path / "ada.zip").write_bytes(content)
    assert refusal(tmp_path / "ada.zip").startswith("ada.zip is not a readable zip: ")


def test_what_is_no_archive(tmp_path):
    """Catches a traceback for a file of another kind, and a line that doesn't say what would do."""
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


@pytest.mark.parametrize("write", [write_zip, lambda p, f: write_tar(p, f, "w:gz"), write_tar])
def test_a_damaged_archive(tmp_path, write):
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


def test_a_tar_whose_middle_is_damaged(tmp_path):
    """Catches files that are lost without a word, where the reader takes damage for the end."""
    archive = write_tar(tmp_path / "ada.tar", {**FILES, "cs336_basics/last.py": ""})
    content = archive.read_bytes()
    archive.write_bytes(content.replace(b"cs336_basics/last.py", b"cs336_basics/lost.py"))
    assert "is not a readable tar: a header is damaged; pack it again" in refusal(archive)


def test_an_encrypted_zip(pack):
    """Catches a traceback for an archive with a password."""
    archive = pack({**FILES, "adapters.py": "x"})
    content = bytearray(archive.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.rindex(mark) + offset] |= 1
    archive.write_bytes(content)
    assert "password required" in refusal(archive)


def test_nothing_in_it(tmp_path, pack):
    """Catches an empty archive, and an archive of an archive, that is told of in riddles."""
    empty = "is empty; expected cs336_basics/ and the adapters"
    assert refusal(pack({})) == f"ada.zip {empty}"
    assert refusal(write_tar(tmp_path / "ada.tar", {})) == f"ada.tar {empty}"
    assert refusal(pack({"ada-2/ada.tar.gz": ""})).startswith(
        "ada.zip holds another archive, 'ada.tar.gz', and no cs336_basics/ folder; hand in the inn"
    )
    assert refusal(pack({"a/b.py": ""})) == (
        "ada.zip has no cs336_basics/ folder; put the package there"
    )
    assert refusal(pack({"cs336_basics/m.py": ""})) == (
        "ada.zip has neither adapters.py nor tests/adapters.py; put the adapters in one"
    )


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_a_file_that_is_there_twice(tmp_path, write):
    """Catches an archive of which one reader sees other code than the next."""
    archive = write(tmp_path / "ada.zip", FILES)
    if write is write_zip:
        with zipfile.ZipFile(archive, "a") as file:
            file.writestr("adapters.py", "other")
    else:
        with tarfile.open(archive, "a:") as file:
            file.addfile(tarfile.TarInfo("adapters.py"))
    assert refusal(archive) == "ada.zip holds 'adapters.py' twice; pack it again"


def test_a_file_where_a_folder_must_be(pack):
    """Catches a traceback for a zip whose names clash."""
    assert refusal(pack({"a": "file", "a/b": "in it"})) == (
        "ada.zip holds 'a' as a file and as a folder; pack it again"
    )


def test_names(tmp_path, monkeypatch):
    """Catches reports that bear another name than the submission, none, or one that leads out."""
    (tmp_path / "ada.v2").mkdir()
    monkeypatch.chdir(tmp_path / "ada.v2")
    assert name_of(Path()) == "ada.v2"
    assert name_of(tmp_path / "ada.v2") == "ada.v2"
    assert name_of(tmp_path / "ada.v2.zip") == "ada.v2"
    for name in ("...zip", "..zip", ".zip", "/"):
        assert name_of(Path(name)) == "submission" or name == ".zip"
    assert name_of(Path("a\x1b[2J\udcff.zip")) == "a\\x1b[2J\\udcff"
