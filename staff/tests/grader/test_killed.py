"""A grader that is killed during a batch leaves nothing, and the next run continues the batch."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from staff.grader.grade import Grade, read_grade
from staff.grader.sandbox import choose
from staff.grader.sandbox.choose import SandboxError
from staff.grader.workplace import workplace
from staff.paths import ROOT, SOLUTION
from staff.release.stubs import cut, write
from tests.harness.fixtures import FIXTURES
from tests.harness.rubric import read_rubric

NAMES = ("first", "second", "third", "fourth")
SLOW = "import time\n\ntime.sleep(1.5)"
"""Makes a submission slow, so that the batch is not finished when the grader is killed."""


def _works(backend: str) -> bool:
    try:
        return choose(backend).name == backend
    except SandboxError:
        return False


@dataclass(frozen=True)
class Killed:
    """The observed results of a batch that was killed and then started again."""

    early: dict[str, bytes]
    """The content of each `grade.json` that existed after the kill, by submission."""
    left: list[str]
    """The processes of the batch that still ran 20 seconds after the kill."""
    said: str
    status: int
    grades: dict[str, Grade]
    late: dict[str, bytes]
    temporary: list[str]


def kill_in_mid_batch(folder: Path, *, everybody: bool) -> Killed:
    """Grade, kill the grader when a first grade exists, and grade again.

    With `everybody`, the processes that the grader started are killed at the same time.
    """
    rubric = read_rubric()
    for name in NAMES:
        write(cut(SOLUTION, rubric), folder / name)
        with (folder / name / "adapters.py").open("a", encoding="utf-8") as file:
            file.write(f"\n{SLOW if name != NAMES[0] else ''}\n# {name}\n")
    out, temporary = folder / "out", folder / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "staff.cli", "grade", *(str(folder / n) for n in NAMES)]
    command += ["--fixtures", str(FIXTURES), "--out", str(out)]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    grader = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    ends = time.monotonic() + 120
    while not list(out.glob("*/grade.json")) and time.monotonic() < ends:
        time.sleep(0.02)
    started = psutil.Process(grader.pid).children(recursive=True)
    for process in [grader.pid, *(p.pid for p in started if everybody)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    grader.wait()
    _, alive = psutil.wait_procs(started, timeout=20)
    early = {file.parent.name: file.read_bytes() for file in out.glob("*/grade.json")}
    again = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    late = {file.parent.name: file.read_bytes() for file in out.glob("*/grade.json")}
    return Killed(
        early=early,
        left=[str(process) for process in alive],
        said=again.stdout + again.stderr,
        status=again.returncode,
        grades={name: read_grade(out / name / "grade.json") for name in late},
        late=late,
        temporary=[path.name for path in temporary.iterdir()],
    )


@pytest.mark.skipif(not _works("namespaces"), reason="namespaces are barred here")
@pytest.mark.parametrize("everybody", [False, True], ids=["the grader", "all of its processes"])
def test_kill_in_mid_batch(tmp_path: Path, *, everybody: bool) -> None:
    """Catches a killed batch that loses or repeats a grade, or leaves a process or a file."""
    seen = kill_in_mid_batch(tmp_path, everybody=everybody)
    assert 1 <= len(seen.early) < len(NAMES)
    assert seen.left == []
    assert (seen.status, set(seen.grades)) == (0, set(NAMES)), seen.said
    assert seen.said.startswith("continuing the batch that was stopped in ")
    assert {name: seen.late[name] for name in seen.early} == seen.early
    assert all(grade.graded for grade in seen.grades.values())
    assert seen.temporary == []


def test_a_workplace_goes_with_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a leftover folder that is kept, or a link or a folder in use that is removed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, stranger = tmp_path / "cs336-run-left", tmp_path / "cs336-run-link"
    (left / "deep").mkdir(parents=True)
    (tmp_path / "kept").mkdir()
    stranger.symlink_to(tmp_path / "kept")
    with workplace() as one:
        assert not left.exists()
        (one / "file").touch()
        with workplace() as other:
            assert (one / "file").exists()
            assert other != one
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "cs336-run-link"}
