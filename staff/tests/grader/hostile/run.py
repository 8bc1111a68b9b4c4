"""Run hostile submissions, and record what they must not change: files, mounts and processes."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from staff.grader.sandbox import Confinement, Limits, choose
from staff.grader.worker.remote import Workers
from staff.grader.worker.zygote import zygote
from staff.paths import ROOT
from staff.runner.jobs import Job, SuiteRun, run_jobs
from tests.harness.fixtures import FIXTURES
from tests.harness.results import SuiteResult, TaskResult, TestResult
from tests.harness.words import diagnosis_lines, failure_lines

TASKS = ("embedding", "softmax")
"""The tasks whose tests are run on each submission."""
SECRET = "x7Qsecret"
_LIMITS = Limits(memory_bytes=5 << 30)
"""PyTorch takes some 3 GB of address space. With this limit, an attack on memory ends soon."""


def grade(
    folders: Mapping[str, Path],
    *,
    call_seconds: float,
    suite_seconds: float,
    tasks: tuple[str, ...] = TASKS,
) -> dict[str, SuiteRun]:
    """Run the tests of `tasks` on each submission, in the sandbox that `auto` chooses."""
    backend = choose("auto").name
    with zygote() as line:
        jobs = []
        for number, (name, folder) in enumerate(folders.items()):
            plan = Confinement(
                backend=backend, submission=str(folder), number=number, limits=_LIMITS
            )
            workers = Workers(
                zygote_socket=line,
                plan=plan,
                import_seconds=suite_seconds,
                call_seconds=call_seconds,
                suite_seconds=suite_seconds,
            )
            jobs += [
                Job(
                    name=name,
                    folder=str(folder),
                    tasks=tasks,
                    bridge=workers.spec(),
                    seconds=120,
                )
            ]
        return {outcome.name: outcome.run for outcome in run_jobs(jobs, FIXTURES)}


def result_of(run: SuiteRun) -> SuiteResult:
    """Return the result of a run; the test fails if the run has none."""
    assert run.result is not None, run.problem
    return run.result


def task_of(run: SuiteRun, task: str) -> TaskResult:
    """Return the result of one task of a run."""
    return next(result for result in result_of(run).tasks if result.id == task)


def one_test(task: TaskResult, name: str) -> TestResult:
    """Return the result of one test of a task."""
    return next(test for test in task.tests if test.name == name)


def text_of(run: SuiteRun) -> list[str]:
    """Return every line of text that a report may show about a run."""
    lines = [run.problem or ""]
    for task in run.result.tasks if run.result else ():
        for test in task.tests:
            lines += failure_lines(test.failure) if test.failure else []
        for diagnosis in task.diagnoses:
            lines += diagnosis_lines(diagnosis, task.id)
    return lines


def earned(run: SuiteRun) -> dict[str, float]:
    """Return the share of points earned in each of `TASKS`; fail if an attack raised `Reached`."""
    reached = [line for line in text_of(run) if "Reached" in line]
    if reached:
        pytest.fail(" · ".join(dict.fromkeys(reached)))
    tasks = result_of(run).tasks
    return {task.id: task.earned / task.possible for task in tasks if task.id in TASKS}


@contextlib.contextmanager
def facts(place: Path) -> Iterator[dict[str, str]]:
    """Yield the paths, ports and numbers that attacks use, so that they need not search for them.

    Two sockets listen during the block. The test fails if anyone has connected to one of them.
    """
    name = f"cs336-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        abstract.bind(f"\0{name}")
        abstract.listen()
        yield {
            "FIXTURES": str(FIXTURES),
            "ROOT": str(ROOT),
            "HOME": str(Path.home()),
            "SECRET": SECRET,
            "PID": str(os.getpid()),
            "PORT": str(tcp.getsockname()[1]),
            "ABSTRACT": name,
            "CANARY": str(place / "canary"),
        }
        for listener in (tcp, abstract):
            listener.setblocking(False)
            with pytest.raises(BlockingIOError):
                listener.accept()


def surroundings(place: Path) -> dict[str, object]:
    """Return what no attack may change: the times of our files, the mounts and the canary file."""
    folders = (ROOT / "staff", ROOT / "tests")
    files = {
        str(file): file.stat().st_mtime_ns
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }
    mounts = Path("/proc/self/mountinfo").read_text()
    return {"files": files, "mounts": mounts, "canary": (place / "canary").read_text()}


def left_running() -> list[str]:
    """List running processes: `sleep 4242` of an attack, and the grader processes of this one."""
    shown = subprocess.run(
        ["ps", "-eo", "uid,pid,ppid,args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[1:]
    own = str(os.getpid())
    return [
        line
        for line in shown
        if ("sleep 4242" in line and "ps -eo" not in line)
        or (own in line.split()[1:3] and "staff.grader" in line)
    ]
