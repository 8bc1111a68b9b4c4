"""The warm way to run the suite many times: `python -m staff.grader.warm`.

A process of its own imports torch and collects the tests once, and then forks a child for each
submission, which runs the tests and sends back what it saw. The parent runs no tensor operation,
since OpenMP's threads don't survive a fork. A child reaches the submission through a worker in a
sandbox where the job names one; otherwise it imports it, which is for code of our own.

Jobs come in on standard input, one JSON list; outcomes go out on standard output, a line each.
"""

from __future__ import annotations

import functools
import gc
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
import torch

from staff.files import quick_folder
from staff.grader import preloaded  # noqa: F401 - children find it loaded
from staff.grader.environment import ENVIRONMENT
from staff.grader.fresh import in_words_of
from staff.grader.grade import SuiteRun
from staff.grader.remote import Remote, Workers
from staff.grader.sandbox import linux
from staff.paths import ROOT, TESTS
from tests.harness.diagnosis import Hints
from tests.harness.errors import HarnessError
from tests.harness.fingerprints import Seen
from tests.harness.fixtures import Fixtures
from tests.harness.in_process import InProcess
from tests.harness.plugin import SUITE, Suite, task_of
from tests.harness.recipes import clean_up

_ROOM = 4 << 30
"""Bytes of address space that a run may take beside what it starts with."""
_IDLE = (
    *("cacheprovider", "capture", "faulthandler", "logging", "setuponly", "setupplan"),
    *("subtests", "threadexception", "unittest", "warnings"),
)
"""Plugins of pytest that have nothing to do here, though some would look at every test."""


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
    """Numbers of threads for tensor operations: with all but the first, only saved cases run."""
    capability: str = ""
    """ATEN_CPU_CAPABILITY: the vector unit of tensor operations, if not the processor's best."""
    workers: Workers | None = None
    """Where to get a confined worker; none runs the submission in the child."""
    annotate: bool = False
    """Quote the submission's annotations where a call raises; a worker always does."""
    saved: str = ""
    """A folder of saved cases that failing tasks are run on once more, for their messages."""
    seed: str = ""
    """Of the inputs that tests draw."""
    device: str = "cpu"
    """Where inputs are put."""
    hints: Hints = "full"
    """How much a failure says."""
    seconds: float = 3600.0
    """Wall time, after which the child is killed."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one run saw."""

    name: str
    run: SuiteRun
    cases: dict[str, dict[str, dict[str, Seen]]]
    """Outcomes of saved cases: task, test, case."""
    texts: dict[str, dict[str, str]]
    """Outcomes of the other tests: task, test, first line ("" for one that passed)."""
    capability: str = ""
    """The vector unit, where the job named one."""


def run_warm(
    jobs: Sequence[Job], cases: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Outcome]:
    """Run the suite once for each job, as many at a time as there are cores.

    Args:
        jobs: what to run.
        cases: the folder of saved cases.
        environment: variables for the whole run.

    Raises:
        HarnessError: the process stopped before every job was done.
    """
    folder = quick_folder()
    temporary = {"TMPDIR": str(folder)} if folder else {}
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "staff.grader.warm", str(cases.resolve())],
        env=_clean(os.environ) | ENVIRONMENT | temporary | dict(environment or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=sorted({job.workers.line for job in jobs if job.workers}),
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


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment from which pytest takes no options."""
    return {key: value for key, value in environment.items() if not key.startswith("PYTEST")}


class _Forks:
    """A pytest plugin that runs the collected tests once for each job, each time in a fork."""

    def __init__(self, jobs: Sequence[Job], out: int) -> None:
        self._waiting = list(reversed(jobs))
        self._out = out
        self._running: dict[int, _Child] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        fixtures = session.config.stash[SUITE].fixtures
        # Read and worked out once, and not by every child.
        for task in filter(None, {task_of(item) for item in session.items}):
            fixtures.signatures(task)
        for item in session.items:
            _ = item.location
        session.config.pluginmanager.unregister(name="terminalreporter")  # nobody would see it
        # What stands now stays: children needn't walk it for garbage, nor copy its pages.
        gc.collect()
        gc.freeze()
        with selectors.DefaultSelector() as selector:
            while self._waiting or self._running:
                while self._waiting and len(self._running) < (os.cpu_count() or 1):
                    selector.register(
                        self._fork(session, self._waiting.pop()), selectors.EVENT_READ
                    )
                for key, _ in selector.select(timeout=1.0):
                    self._read(selector, key.fd)
                for child in self._running.values():
                    if time.monotonic() > child.ends:
                        os.kill(child.pid, signal.SIGKILL)
        return True

    def _fork(self, session: pytest.Session, job: Job) -> int:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            if sys.platform == "linux":
                linux.die_with_parent()
            try:
                outcome = msgspec.json.encode(_run(session, job)) + b"\n"
                with os.fdopen(writer, "wb") as pipe:
                    pipe.write(outcome)
                status = 0
            finally:
                clean_up()
                os._exit(status)
        os.close(writer)
        self._running[reader] = _Child(job, pid, time.monotonic() + job.seconds)
        return reader

    def _read(self, selector: selectors.BaseSelector, fd: int) -> None:
        chunk = os.read(fd, 1 << 16)
        self._running[fd].received += chunk
        if chunk:
            return
        selector.unregister(fd)
        os.close(fd)
        child = self._running.pop(fd)
        status = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        with os.fdopen(os.dup(self._out), "wb") as out:
            out.write(bytes(child.received) if status == 0 else _lost(child, status))


@dataclass
class _Child:
    """A child that runs."""

    job: Job
    pid: int
    ends: float
    received: bytearray = field(default_factory=bytearray)


def _lost(child: _Child, status: int) -> bytes:
    """The outcome of a job whose child ended without one."""
    late = time.monotonic() > child.ends
    why = f"the suite took longer than {child.job.seconds:g} seconds"
    run = SuiteRun(problem=why if late else f"the suite's process ended with status {status}")
    job = child.job
    lost = Outcome(name=job.name, run=run, cases={}, texts={}, capability=job.capability)
    return msgspec.json.encode(lost) + b"\n"


def _run(session: pytest.Session, job: Job) -> Outcome:
    """Run the collected tests on one submission, in a child."""
    start = time.perf_counter()
    suite = session.config.stash[SUITE]
    suite.folder = Path(job.folder)
    suite.seed, suite.device, suite.hints = job.seed, job.device, job.hints
    if job.capability:
        suite.problem = _compute_with(job.capability)
    gc.disable()  # a child is gone before garbage matters
    if sys.platform == "linux":
        _bound_memory()
    connect = functools.partial(InProcess, annotate=job.annotate)
    suite.open(functools.partial(Remote, workers=job.workers) if job.workers else connect)
    items = [item for item in session.items if _wanted(item, job)]
    try:
        for threads in job.threads if suite.problem is None else ():
            torch.set_num_threads(threads)
            _run_items(session, items)
            items = [item for item in items if _reads_cases(item)]
        outcome = _outcome(suite, job)
        calls = suite.bridge.noted() if isinstance(suite.bridge, Remote) else ()
        if job.saved and outcome.run.result is not None:
            outcome = _with_messages(session, outcome, Path(job.saved))
    except pytest.exit.Exception as stop:
        suite.problem = str(stop.msg)
        outcome, calls = _outcome(suite, job), ()
    seconds = round(time.perf_counter() - start, 3)
    return msgspec.structs.replace(
        outcome, run=msgspec.structs.replace(outcome.run, seconds=seconds, calls=calls)
    )


def _compute_with(capability: str) -> str | None:
    """Choose the vector unit before the first tensor operation; says why where it can't be had."""
    os.environ["ATEN_CPU_CAPABILITY"] = capability
    unit = torch.backends.cpu.get_cpu_capability().lower()
    return None if unit == capability else f"tensor operations run on {unit}, not on {capability}"


def _bound_memory() -> None:
    """Let what would take all memory fail its test: a submission that runs here, or the test.

    An answer may be small and what is made of it huge: a count of each id up to the largest.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + _ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _run_items(session: pytest.Session, items: Sequence[pytest.Item]) -> None:
    for item, following in zip(items, [*items[1:], None], strict=False):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _with_messages(session: pytest.Session, outcome: Outcome, saved: Path) -> Outcome:
    """Let failing tasks say on the saved cases what the student's own run says there."""
    suite = session.config.stash[SUITE]
    assert outcome.run.result is not None
    failing = {task.id for task in outcome.run.result.tasks if task.state.failed}
    if not failing:
        return outcome
    suite.start_over(Fixtures(saved))
    suite.seed = ""
    _run_items(session, [item for item in session.items if task_of(item) in failing])
    told = in_words_of(outcome.run.result, suite.result())
    return msgspec.structs.replace(outcome, run=msgspec.structs.replace(outcome.run, result=told))


def _wanted(item: pytest.Item, job: Job) -> bool:
    named = not job.tasks or task_of(item) in job.tasks
    return named and (not job.cases_only or _reads_cases(item))


def _reads_cases(item: pytest.Item) -> bool:
    return "cases" in getattr(item, "fixturenames", ())


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
        capability=job.capability,
    )


def main() -> None:
    """Run the jobs that come in."""
    if sys.platform == "linux":
        linux.hide()  # where workers run as the same user, they can't read this process
        linux.die_with_parent()
    warnings.simplefilter("ignore")
    jobs = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Job])
    out = os.dup(1)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
    options += ["--confcutdir", str(TESTS), "--cases", sys.argv[1]]
    for plugin in _IDLE:
        options += ["-p", f"no:{plugin}"]
    if all(job.tasks for job in jobs):
        for task in sorted({task for job in jobs for task in job.tasks}):
            options += ["--task", task]
    status = pytest.main([*options, str(TESTS)], plugins=[_Forks(jobs, out)])
    sys.exit(0 if status == pytest.ExitCode.OK else int(status))


if __name__ == "__main__":
    main()
