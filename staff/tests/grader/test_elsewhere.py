"""The grader works as root or as an ordinary user, and reports a full disk in one line."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from staff.grader.grade import read_grade
from staff.paths import SOLUTION
from staff.tests.grader.elsewhere import (
    ORDINARY,
    WITH_MOUNTS,
    Elsewhere,
    elsewhere,
    libraries_for_all,
    pythons,
    readable_by_all,
)
from staff.tests.support import POINTS, Run

AS_ROOT = os.getuid() == 0
ADA, EVE = "Ada's Lösung", "-eve (leer)"
FOR_ALL = [python for python in pythons() if libraries_for_all() and readable_by_all(python)]
QUICK = ("--fixtures", "../checkout/tests/fixtures", "--sandbox", "mock")


def _may_mount() -> bool:
    trial = [*WITH_MOUNTS, "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(trial, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


needs_mounts = pytest.mark.skipif(not _may_mount(), reason="no mount namespaces here")


@pytest.fixture(scope="module")
def place() -> Iterator[Elsewhere]:
    """Copy the checkout to another folder, with the solution and the stubs under odd names."""
    with elsewhere((FOR_ALL or pythons())[0]) as found:
        shutil.copytree(SOLUTION, found.work / ADA)
        stubs = found.work / EVE
        for part in ("cs336_basics", "adapters.py"):
            stubs.mkdir(exist_ok=True)
            subprocess.run(["cp", "-r", found.checkout / part, stubs / part], check=True)
        yield found


def grade_there(place: Elsewhere, *, user: int | None = None, before: str = "") -> None:
    """Grade the solution; check that it earns every point and that only `--out` changes."""
    files, mine = place.files(), sorted(place.work.rglob("*"))
    out = place.out / f"Noten für {user}"
    done = place.run("grade", ADA, *QUICK[:2], "--out", out, user=user, before=before)
    assert done.status == 0, done.text
    grade = read_grade(out / ADA / "grade.json")
    assert grade.run.result is not None
    assert grade.run.result.earned == POINTS
    assert grade.sandbox != "mock"
    assert [path.name for path in out.iterdir()] == [ADA]
    assert place.files() == files
    assert sorted(place.work.rglob("*")) == mine
    assert list(place.temporary.iterdir()) == []


@pytest.mark.skipif(not AS_ROOT, reason="not run as root")
@needs_mounts
def test_as_root_in_a_read_only_checkout(place: Elsewhere) -> None:
    """Catches a grader that writes to its checkout, or splits a path at a space."""
    it = f"'{place.checkout}'"
    remount = f"mount --bind {it} {it}\nmount -o remount,ro,bind {it}"
    grade_there(place, before=f"{remount}\nif touch {it}/x 2>/dev/null; then exit 9; fi")


@pytest.mark.skipif(
    AS_ROOT and not FOR_ALL, reason="no Python, or no library, that an ordinary user may read"
)
def test_as_an_ordinary_user_who_may_not_write_to_it(place: Elsewhere) -> None:
    """Catches a grader that needs root, a user with a name, or write access to its checkout."""
    paths = [place.checkout, *place.checkout.rglob("*")]
    for path in paths:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        grade_there(place, user=ORDINARY if AS_ROOT else None)
    finally:
        for path in paths:
            path.chmod(path.stat().st_mode | 0o200)


def on_small_disk(place: Elsewhere, folder: Path, room: int, kept: Path) -> Run:
    """Grade the stubs with `room` kB free in `folder`; afterwards copy its content to `kept`."""
    it, size = f"'{folder}'", 256
    before = f"mount -t tmpfs -o size={size}k none {it}\nchmod 777 {it}"
    before += f"\nhead -c {size - room}k /dev/zero > {it}/filling"
    out = folder if folder.is_relative_to(place.out) else place.out / "small"
    arguments = ("grade", f"./{EVE}", *QUICK, "--out", out)
    return place.run(*arguments, before=before, after=f"cp -r {it} '{kept}'")


@needs_mounts
@pytest.mark.parametrize("room", [0, 4, 40])
def test_a_full_disk_for_the_grades(place: Elsewhere, tmp_path: Path, room: int) -> None:
    """Catches a traceback, an incomplete file or exit status 0 if the disk for grades is full."""
    folder = place.out / "full"
    folder.mkdir(exist_ok=True)
    done = on_small_disk(place, folder, room, tmp_path / "kept")
    assert done.status == 2, done.text
    assert done.text.count("\n") == 1
    assert done.text.startswith(f"cs336: {folder}/")
    assert "No space left on device; free some space and start again" in done.text
    files = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert not [path for path in files if path.name.startswith(".")]
    for path in files:
        if path.suffix == ".json":
            msgspec.json.decode(path.read_bytes())
    assert (room == 0) is not (tmp_path / "kept/batch.json").exists()
    assert not list((tmp_path / "kept").glob("*/grade.json"))


@needs_mounts
def test_a_full_disk_for_temporary_files(place: Elsewhere, tmp_path: Path) -> None:
    """Catches a grade for an incomplete copy if the disk for temporary files is full."""
    done = on_small_disk(place, place.temporary, 40, tmp_path / "kept")
    assert done.status == 2, done.text
    assert done.text.count("\n") == 1
    assert done.text.startswith(f"cs336: the temporary folder {place.temporary}: No space left on")
    assert not list(place.out.glob("small/*/grade.json"))
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {"filling"}


def test_a_sandbox_that_is_not_there(place: Elsewhere) -> None:
    """Catches a run in another sandbox if `bwrap` is missing, or a message of several lines."""
    arguments = ("grade", ADA, *QUICK[:2], "--sandbox", "bwrap", "--out", place.out / "none")
    done = place.run(*arguments, path=str(place.work))
    assert (done.status, done.text) == (
        2,
        "cs336: --sandbox bwrap is not available: bwrap is not installed (its package is "
        "bubblewrap); --sandbox auto uses the strongest one that works here\n",
    )
    assert not (place.out / "none").exists()
