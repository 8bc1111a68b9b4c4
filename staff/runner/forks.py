"""The preloaded runner: one process that runs the suite many times.

`python -m staff.runner.forks CASES` imports PyTorch and collects the tests once. Then it forks a
child for each job. The child runs the tests on the job's submission and returns an outcome. The
parent runs no tensor operation, since OpenMP's threads don't survive a fork.

A child reaches the submission over the bridge that the job names. If the job names none, the child
imports the submission itself, which is safe only for code that we trust.

The process reads the jobs from standard input, as one JSON list. It writes the outcomes to standard
output, one line of JSON each.
"""

from __future__ import annotations

import functools
import gc
import os
import pkgutil
import resource
import selectors
import signal
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec
import pytest
import torch

from staff import linux
from staff.paths import ROOT, TESTS
from staff.runner import preloaded  # noqa: F401 - loaded here for all children
from staff.runner.jobs import Job, Observations, Outcome, SuiteRun
from tests.harness.bridge import Bridge
from tests.harness.diagnosis import Evidence
from tests.harness.fixtures import Fixtures
from tests.harness.in_process import InProcess
from tests.harness.plugin import SUITE, Suite, task_of
from tests.harness.recipes import clean_up
from tests.harness.results import SuiteResult
from tests.harness.submission import Submission

_HEADROOM = 4 << 30
"""Bytes of address space that a child may use in addition to what it starts with."""
_IDLE = (
    *("cacheprovider", "capture", "faulthandler", "logging", "setuponly", "setupplan"),
    *("subtests", "threadexception", "unittest", "warnings"),
)
"""Plugins of pytest that a run does not need; some of them would inspect every test."""


@runtime_checkable
class Noting(Protocol):
    """A bridge that records notes in addition to the answers."""

    def noted(self) -> Sequence[Any]:
        """Return the notes."""


class _Forks:
    """A pytest plugin that runs the collected tests once for each job, each time in a child."""

    def __init__(self, jobs: Sequence[Job], out: int) -> None:
        self._waiting = list(reversed(jobs))
        self._out = out
        self._running: dict[int, _Child] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        fixtures = session.config.stash[SUITE].fixtures
        # Read the signatures and locations once, so that no child has to.
        for task in filter(None, {task_of(item) for item in session.items}):
            fixtures.signatures(task)
        for item in session.items:
            _ = item.location
        session.config.pluginmanager.unregister(name="terminalreporter")  # nobody reads its output
        # The objects that exist now stay in use. If a child's garbage collector visited them, their
        # memory pages would be copied.
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
    """A running child."""

    job: Job
    pid: int
    ends: float
    received: bytearray = field(default_factory=bytearray)


def _lost(child: _Child, status: int) -> bytes:
    """Return the outcome of a job whose child ended without sending one."""
    late = time.monotonic() > child.ends
    why = f"the suite took longer than {child.job.seconds:g} seconds"
    run = SuiteRun(problem=why if late else f"the suite's process ended with status {status}")
    job = child.job
    lost = Outcome(name=job.name, run=run, capability=job.capability)
    return msgspec.json.encode(lost) + b"\n"


def _run(session: pytest.Session, job: Job) -> Outcome:
    """Run the collected tests on one submission, in a child."""
    start = time.perf_counter()
    suite = session.config.stash[SUITE]
    suite.folder = Path(job.folder)
    suite.seed, suite.device, suite.hints = job.seed, job.device, job.hints
    suite.shake(job.noise)
    if job.capability:
        suite.problem = _compute_with(job.capability)
    gc.disable()  # a child ends before garbage fills memory
    if sys.platform == "linux":
        _bound_memory()
    suite.open(_connect(job))
    items = [item for item in session.items if _wanted(item, job)]
    noted: Sequence[Any] = ()
    on_saved = None
    try:
        for threads in job.threads if suite.problem is None else ():
            torch.set_num_threads(threads)
            _run_items(session, items)
            items = [item for item in items if _reads_cases(item)]
        outcome = _outcome(suite, job)
        noted = suite.bridge.noted() if isinstance(suite.bridge, Noting) else ()
        if job.saved and outcome.run.result is not None:
            on_saved = _on_saved(session, outcome.run.result, Path(job.saved))
    except pytest.exit.Exception as stop:
        suite.problem = str(stop.msg)
        outcome, noted = _outcome(suite, job), ()
    seconds = round(time.perf_counter() - start, 3)
    return msgspec.structs.replace(
        outcome,
        run=msgspec.structs.replace(outcome.run, seconds=seconds),
        on_saved=on_saved,
        noted=msgspec.Raw(msgspec.json.encode(noted)),
    )


def _connect(job: Job) -> Callable[[Submission, str], Bridge]:
    if job.bridge is None:
        return functools.partial(InProcess, annotate=job.annotate)
    connect: Callable[..., Bridge] = pkgutil.resolve_name(job.bridge.connect)
    return functools.partial(connect, options=bytes(job.bridge.options))


def _compute_with(capability: str) -> str | None:
    """Choose the vector unit before the first tensor operation; return the problem, if any."""
    os.environ["ATEN_CPU_CAPABILITY"] = capability
    unit = torch.backends.cpu.get_cpu_capability().lower()
    return None if unit == capability else f"tensor operations run on {unit}, not on {capability}"


def _bound_memory() -> None:
    """Limit the memory of this process, so that a test that needs too much of it only fails.

    A submission can need too much memory. A test can too: a small answer can lead to a huge
    computation, such as a count of every id up to the largest.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + _HEADROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _run_items(session: pytest.Session, items: Sequence[pytest.Item]) -> None:
    for item, following in zip(items, [*items[1:], None], strict=False):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _on_saved(session: pytest.Session, result: SuiteResult, saved: Path) -> SuiteResult | None:
    """Run the failing tasks again on saved cases; return None if no task fails."""
    suite = session.config.stash[SUITE]
    failing = {task.id for task in result.tasks if task.state.failed}
    if not failing:
        return None
    suite.start_over(Fixtures(saved))
    suite.seed = ""
    _run_items(session, [item for item in session.items if task_of(item) in failing])
    return suite.result()


def _wanted(item: pytest.Item, job: Job) -> bool:
    named = not job.tasks or task_of(item) in job.tasks
    return named and (not job.cases_only or _reads_cases(item))


def _reads_cases(item: pytest.Item) -> bool:
    return "cases" in getattr(item, "fixturenames", ())


def _outcome(suite: Suite, job: Job) -> Outcome:
    problem = suite.problem
    return Outcome(
        name=job.name,
        run=SuiteRun(result=None if problem else suite.result(), problem=problem),
        seen=_nested(suite.evidence),
        shaken=tuple(_nested(evidence) for evidence in suite.shaken),
        capability=job.capability,
    )


def _nested(evidence: Mapping[str, Evidence]) -> Observations:
    nested: Observations = {}
    for task, found in evidence.items():
        for (test, case), seen in found.seen.items():
            nested.setdefault(task, {}).setdefault(test, {})[case] = seen
    return nested


def main() -> None:
    """Run the jobs that arrive on standard input."""
    if sys.platform == "linux":
        linux.hide()  # a worker that runs as the same user must not read this process
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
