"""The warm way to run the suite many times: `python -m staff.grader.warm`.

A process of its own imports torch and collects the tests once, and then forks a child for each
submission, which imports it, runs the tests and sends back what it saw. The parent runs no tensor
operation, since OpenMP's threads don't survive a fork. Children are not confined: this is for
code of our own.

Jobs come in on standard input, one JSON list; outcomes go out on standard output, a line each.
"""

from __future__ import annotations

import gc
import os
import selectors
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import beartype.claw  # noqa: F401 - children that check annotations find it loaded
import jaxtyping  # noqa: F401
import msgspec
import pytest
import torch

from staff.grader.grade import SuiteRun
from staff.paths import ROOT, TESTS
from tests.harness.errors import HarnessError
from tests.harness.fingerprints import Seen
from tests.harness.plugin import SUITE, Suite, task_of
from tests.harness.recipes import clean_up

_PATIENT = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
"""Children share the cores, so a thread that waits must not spin."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the suite."""

    name: str
    folder: str
    """The submission."""
    tasks: tuple[str, ...] = ()
    """The tasks whose tests are run; all of them where none is named."""
    cases_only: bool = False
    """Run only the tests that read saved cases."""
    threads: tuple[int, ...] = (1,)
    """Numbers of threads for tensor operations: the tests run once with each."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one run saw."""

    name: str
    run: SuiteRun
    cases: dict[str, dict[str, dict[str, Seen]]]
    """Outcomes of saved cases: task, test, case."""
    texts: dict[str, dict[str, str]]
    """Outcomes of the other tests: task, test, first line ("" for one that passed)."""


def run_warm(
    jobs: Sequence[Job], cases: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Outcome]:
    """Run the suite once for each job, as many at a time as there are cores.

    Args:
        jobs: what to run.
        cases: the folder of saved cases.
        environment: variables for the whole run, such as ATEN_CPU_CAPABILITY.

    Raises:
        HarnessError: the process stopped before every job was done.
    """
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "staff.grader.warm", str(cases.resolve())],
        env={**os.environ, **_PATIENT, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(msgspec.json.encode(jobs))
    process.stdin.close()
    done = 0
    with process.stdout:
        for line in process.stdout:
            done += 1
            yield msgspec.json.decode(line, type=Outcome)
    if process.wait() or done != len(jobs):
        raise HarnessError(f"the suite ran for {done} of {len(jobs)} submissions, then stopped")


class _Forks:
    """A pytest plugin that runs the collected tests once for each job, each time in a fork."""

    def __init__(self, jobs: Sequence[Job], out: int) -> None:
        self._waiting = list(reversed(jobs))
        self._out = out
        self._received: dict[int, bytearray] = {}
        self._pids: dict[int, int] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        # What stands now stays: children needn't walk it for garbage, nor copy its pages.
        gc.collect()
        gc.freeze()
        with selectors.DefaultSelector() as selector:
            while self._waiting or self._received:
                while self._waiting and len(self._received) < (os.cpu_count() or 1):
                    selector.register(
                        self._fork(session, self._waiting.pop()), selectors.EVENT_READ
                    )
                for key, _ in selector.select():
                    self._read(selector, key.fd)
        return True

    def _fork(self, session: pytest.Session, job: Job) -> int:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                outcome = msgspec.json.encode(_run(session, job)) + b"\n"
                with os.fdopen(writer, "wb") as pipe:
                    pipe.write(outcome)
                status = 0
            finally:
                clean_up()
                os._exit(status)
        os.close(writer)
        self._received[reader] = bytearray()
        self._pids[reader] = pid
        return reader

    def _read(self, selector: selectors.BaseSelector, fd: int) -> None:
        chunk = os.read(fd, 1 << 16)
        self._received[fd] += chunk
        if chunk:
            return
        selector.unregister(fd)
        os.close(fd)
        os.waitpid(self._pids.pop(fd), 0)
        with os.fdopen(os.dup(self._out), "wb") as out:
            out.write(self._received.pop(fd))


def _run(session: pytest.Session, job: Job) -> Outcome:
    """Run the collected tests on one submission, in a child."""
    suite = session.config.stash[SUITE]
    suite.folder = Path(job.folder)
    gc.disable()  # a child is gone before garbage matters
    suite.open(annotate=False)
    items = [item for item in session.items if _wanted(item, job)]
    for threads in job.threads if suite.problem is None else ():
        torch.set_num_threads(threads)
        for item, following in zip(items, [*items[1:], None], strict=True):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return _outcome(suite, job)


def _wanted(item: pytest.Item, job: Job) -> bool:
    named = not job.tasks or task_of(item) in job.tasks
    return named and (not job.cases_only or "cases" in getattr(item, "fixturenames", ()))


def _outcome(suite: Suite, job: Job) -> Outcome:
    cases: dict[str, dict[str, dict[str, Seen]]] = {}
    for task, evidence in suite.evidence.items():
        for (test, case), seen in evidence.cases.items():
            cases.setdefault(task, {}).setdefault(test, {})[case] = seen
    problem = suite.problem
    return Outcome(
        name=job.name,
        run=SuiteRun(result=None if problem else suite.result(), problem=problem),
        cases=cases,
        texts={task: evidence.texts for task, evidence in suite.evidence.items()},
    )


def main() -> None:
    """Run the jobs that come in."""
    warnings.simplefilter("ignore")
    jobs = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Job])
    out = os.dup(1)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
    options += ["--confcutdir", str(TESTS), "--cases", sys.argv[1]]
    options += ["--capture=no"]
    for plugin in ("cacheprovider", "logging", "warnings", "threadexception", "faulthandler"):
        options += ["-p", f"no:{plugin}"]
    if all(job.tasks for job in jobs):
        for task in sorted({task for job in jobs for task in job.tasks}):
            options += ["--task", task]
    status = pytest.main([*options, str(TESTS)], plugins=[_Forks(jobs, out)])
    sys.exit(0 if status == pytest.ExitCode.OK else int(status))


if __name__ == "__main__":
    main()
