"""Intake of folders: which files are copied, which are left out, and which are refused."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from staff.grader.intake import opened
from staff.grader.intake.sources import FolderSource
from staff.paths import ROOT
from staff.tests.grader.intake.packing import (
    FILES,
    contents,
    put,
    refusal,
    write_zip,
)
from tests.harness.errors import SubmissionError


def test_a_folder_is_copied(tmp_path: Path) -> None:
    """Catches a grader that does not copy the submission's folder, or that deletes it."""
    put(tmp_path / "ada", FILES)
    with opened(tmp_path / "ada") as intake:
        assert not intake.folder.is_relative_to(tmp_path)
        assert (intake.folder / "adapters.py").read_text() == FILES["adapters.py"]
    assert not intake.folder.exists()
    assert contents(tmp_path / "ada") == FILES


def test_the_copy_can_be_read_by_everybody(tmp_path: Path) -> None:
    """Catches a copy that another user of the machine can't read, or could write to."""
    put(tmp_path, {**FILES, "cs336_basics/data/v.json": "{}"})
    for path in tmp_path.rglob("*"):
        path.chmod(0o700)
    umask = os.umask(0o077)
    try:
        with opened(tmp_path) as intake:
            modes = {
                p.relative_to(intake.folder).as_posix(): oct(p.stat().st_mode & 0o7777)
                for p in [intake.folder, *intake.folder.rglob("*")]
            }
    finally:
        os.umask(umask)
    assert {modes.pop(n) for n in (".", "cs336_basics", "cs336_basics/data")} == {"0o755"}
    assert set(modes.values()) == {"0o644"}


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize(
    ("what", "make"),
    [("a link", _link), ("a pipe", os.mkfifo), ("a socket", _socket), ("a folder", Path.mkdir)],
)
@pytest.mark.parametrize("name", ["cs336_basics/odd.py", "adapters.py", "cs336_basics", "x/odd"])
def test_what_is_no_file(
    tmp_path: Path, what: str, make: Callable[[Path], None], name: str
) -> None:
    """Catches a link that is followed, or a grader that hangs because it opens a pipe."""
    put(tmp_path, {n: t for n, t in FILES.items() if not n.startswith(name)})
    (tmp_path / name).parent.mkdir(exist_ok=True)
    make(tmp_path / name)
    if name == "x/odd" or (what == "a folder" and name != "adapters.py"):
        if name == "cs336_basics":
            assert contents(tmp_path) == {"adapters.py": FILES["adapters.py"]}
        else:
            assert contents(tmp_path) == FILES
        return
    expected = "a folder" if name == "cs336_basics" else "a file"
    text = f"{tmp_path.name}: '{name}' is {what}; expected {expected}, so replace it with one"
    assert refusal(tmp_path) == text


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Catches a traceback for an unreadable file, or a file that is left out without a message."""
    put(tmp_path, FILES)
    (tmp_path / "adapters.py").chmod(0)
    if os.access(tmp_path / "adapters.py", os.R_OK):
        pytest.skip("the superuser reads everything")
    text = f"{tmp_path.name}: 'adapters.py' can't be read (Permission denied); make it readable"
    assert refusal(tmp_path).startswith(text)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs the superuser")
def test_as_another_user(tmp_path: Path) -> None:
    """Catches an intake that works only if the superuser runs it."""
    put(tmp_path / "ä b", FILES)
    put(tmp_path / "closed", FILES)
    (tmp_path / "closed/adapters.py").chmod(0)
    for path in [tmp_path, *tmp_path.parents]:
        if (
            path.stat().st_uid == os.geteuid()
            and path.is_relative_to("/tmp")
            and path != Path("/tmp")
        ):
            path.chmod(0o755)
    code = """
import os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from staff.grader.intake import opened
os.setgroups([]); os.setgid(65534); os.setuid(65534)
os.environ["TMPDIR"] = "/tmp"
with opened(Path(sys.argv[2])) as intake:
    print(sorted(intake.taken), (intake.folder / "adapters.py").read_text())
try:
    with opened(Path(sys.argv[3])):
        pass
except Exception as error:
    print(error)
"""
    command = [
        sys.executable,
        "-c",
        code,
        str(ROOT),
        str(tmp_path / "ä b"),
        str(tmp_path / "closed"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert "['adapters.py', 'cs336_basics/__init__.py'] y = 2" in done.stdout
    assert "closed: 'adapters.py' can't be read (Permission denied)" in done.stdout


def test_a_path_with_spaces_and_letters(tmp_path: Path) -> None:
    """Catches a submission that isn't opened because of a space, quote or umlaut in its path."""
    assert contents(put(tmp_path / "Übung 1/Zoë's", FILES)) == FILES
    archive = write_zip(tmp_path / "Übung 1/Zoë's.zip", FILES)
    assert contents(archive) == FILES
    (tmp_path / "link").symlink_to(tmp_path / "Übung 1/Zoë's")  # a link to a submission
    assert contents(tmp_path / "link") == FILES


def test_a_folder_that_changes_while_it_is_read(tmp_path: Path) -> None:
    """Catches a link that is followed because it replaced a file or folder after the check."""
    put(tmp_path / "ada", FILES)
    put(tmp_path / "secret", {"f.py": "secret", "__init__.py": "secret"})
    place = tmp_path / "ada/cs336_basics"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            place.rename(tmp_path / "kept")
            place.symlink_to(tmp_path / "secret")
            place.unlink()
            (tmp_path / "kept").rename(place)
            file = place / "__init__.py"
            file.unlink()
            file.symlink_to(tmp_path / "secret/f.py")
            file.unlink()
            file.write_text("x")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(200):
            try:
                seen = contents(tmp_path / "ada")
            except SubmissionError as error:
                seen = {"refused": str(error)}
            assert "secret" not in seen.values()
    finally:
        stop.set()
        swapper.join()


def test_a_file_swapped_after_the_look(tmp_path: Path) -> None:
    """Catches a file that is copied although it was removed or replaced after the check.

    `test_a_folder_that_changes_while_it_is_read` swaps files at random moments. In this test, each
    swap happens after the check and before the copy.
    """
    put(tmp_path, FILES)
    with FolderSource(tmp_path) as source:
        (tmp_path / "adapters.py").unlink()
        with pytest.raises(SubmissionError, match="No such file"):
            list(source.read("adapters.py"))
        (tmp_path / "adapters.py").symlink_to(tmp_path / "cs336_basics/__init__.py")
        with pytest.raises(SubmissionError, match="Too many levels of symbolic links"):
            list(source.read("adapters.py"))
        (tmp_path / "adapters.py").unlink()
        os.mkfifo(tmp_path / "adapters.py")
        with pytest.raises(SubmissionError, match="became a pipe while it was copied"):
            list(source.read("adapters.py"))
        (tmp_path / "cs336_basics").rename(tmp_path / "moved")
        (tmp_path / "cs336_basics").symlink_to(tmp_path / "moved")
        with pytest.raises(SubmissionError, match="Not a directory"):
            list(source.read("cs336_basics/__init__.py"))


def test_a_file_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a copy that never ends because another process keeps writing to the file."""
    put(tmp_path, FILES)

    def endless(_source: FolderSource, _file: str) -> Iterator[bytes]:
        while True:
            yield b"\0" * 100_000

    monkeypatch.setattr(FolderSource, "read", endless)
    assert "makes it too large: Python code may have at most 500 kB in" in refusal(tmp_path)
