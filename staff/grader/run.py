"""Grade submissions: each in a process of its own, several at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from staff.grader.grade import Grade, SuiteRun
from staff.grader.intake import LeftOut, name_of, opened
from staff.grader.scratch.findings import enforced, findings
from staff.grader.scratch.model import Policy, ScratchFinding
from tests.harness.errors import SubmissionError
from tests.harness.rubric import read_rubric

_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")


def grade_all(
    paths: Sequence[Path], fixtures: Path, seconds: float, scratch: Policy = "report"
) -> Iterator[Grade]:
    """Grade submissions, and yield each grade as it comes.

    Args:
        paths: folders or archives.
        fixtures: the folder of saved cases.
        seconds: wall time for one submission; one that takes longer could not be graded.
        scratch: what follows where a submission isn't from scratch.
    """
    names = unique_names(paths)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        jobs = [
            pool.submit(grade_one, path, name, fixtures, seconds, scratch)
            for path, name in zip(paths, names, strict=True)
        ]
        for job in as_completed(jobs):
            yield job.result()


def grade_one(
    path: Path, name: str, fixtures: Path, seconds: float, scratch: Policy = "report"
) -> Grade:
    """Grade one submission."""
    left_out: tuple[LeftOut, ...] = ()
    found: tuple[ScratchFinding, ...] = ()
    try:
        with opened(path) as intake:
            left_out = intake.left_out
            run = _run(intake.folder, fixtures.resolve(), seconds)
            if scratch != "off":
                found = findings(intake.folder, read_rubric(), run.calls)
        if scratch == "enforce" and run.result is not None:
            run = msgspec.structs.replace(run, result=enforced(run.result, found))
    except SubmissionError as error:
        run = SuiteRun(problem=str(error))
    return Grade(
        submission=name,
        run=run,
        fixtures=fixtures.name,
        left_out=left_out,
        scratch=found,
        policy=scratch,
    )


def unique_names(paths: Sequence[Path]) -> list[str]:
    """Name the submissions; of two with one name the second gets a number."""
    names: list[str] = []
    for path in paths:
        name, number = name_of(path), 2
        while name in names:
            name, number = f"{name_of(path)}-{number}", number + 1
        names.append(name)
    return names


def _run(folder: Path, fixtures: Path, seconds: float) -> SuiteRun:
    with TemporaryDirectory(prefix="grade-") as scratch, (Path(scratch) / "log").open("w+b") as log:
        result = Path(scratch) / "result.json"
        command = [sys.executable, "-I", "-m", "staff.grader.suite"]
        process = subprocess.Popen(
            [*command, str(folder), str(fixtures), str(result)],
            cwd=scratch,
            env={key: os.environ[key] for key in _KEPT if key in os.environ},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return SuiteRun(problem=f"the suite took longer than {seconds:g} seconds")
        finally:
            _end(process)
        try:
            return msgspec.json.decode(result.read_bytes(), type=SuiteRun)
        except (OSError, msgspec.MsgspecError):
            log.seek(0)
            lines = log.read().decode("utf-8", "replace").split("\n")
            said = next((line for line in lines if line.startswith("ERROR: ")), "")
            status = process.returncode
            why = said.removeprefix("ERROR: ") or f"its process ended with status {status}"
            return SuiteRun(problem=f"the suite gave no result: {why}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the process and of those it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()
