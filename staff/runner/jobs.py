"""Jobs and outcomes: a job describes one run of the suite, an outcome what the run observed.

`run_jobs` starts one process, which imports PyTorch and collects the tests once and then forks a
child for each job (`staff.runner.forks`). Grading, fixtures and validation run the suite this way.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from staff.files import quick_folder
from staff.runner.environment import ENVIRONMENT
from tests.harness.diagnosis import Hints
from tests.harness.errors import HarnessError
from tests.harness.fingerprints import Seen
from tests.harness.results import SuiteResult

Observations = dict[str, dict[str, dict[str, Seen]]]
"""Observed answers, keyed by task, test and saved case ("" for a test that has none)."""


class BridgeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How a child reaches a submission that it must not import itself."""

    connect: str
    """The function that makes the bridge, as `package.module:name`. It is called with the
    submission, the device and `options`."""
    options: msgspec.Raw
    """Settings of the bridge, as JSON."""
    descriptors: tuple[int, ...] = ()
    """File descriptors that the child inherits for the bridge."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the suite."""

    name: str
    folder: str
    """The folder of the submission."""
    tasks: tuple[str, ...] = ()
    """The tasks whose tests are run; empty for all tasks."""
    cases_only: bool = False
    """Run only the tests that read saved cases."""
    threads: tuple[int, ...] = (1,)
    """The numbers of threads for tensor operations. The tests run once with each number. With the
    second and later numbers, only the tests that read saved cases run."""
    capability: str = ""
    """The vector unit of tensor operations, as a value of ATEN_CPU_CAPABILITY; empty for the
    processor's best."""
    noise: int = 0
    """The number of noise seeds. For each of them, every answer is observed once more, rounded as
    another processor might round it."""
    bridge: BridgeSpec | None = None
    """How to reach the submission. With None, the child imports it, which is safe only for code
    that we trust."""
    annotate: bool = False
    """Whether a failing call quotes the submission's annotations; a worker always quotes them."""
    saved: str = ""
    """A folder of saved cases, on which failing tasks run again for messages; empty for none."""
    seed: str = ""
    """The seed of the inputs that tests draw."""
    device: str = "cpu"
    """The device that inputs are put on."""
    hints: Hints = "full"
    """How much a message reveals."""
    seconds: float = 3600.0
    """Wall time in seconds, after which the child is killed."""


class SuiteRun(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one run of the suite, or the reason why there is none."""

    result: SuiteResult | None = None
    problem: str | None = None
    """The reason why there is no result; None if there is one."""
    seconds: float = 0.0
    """Wall time in seconds."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of the suite observed."""

    name: str
    """The name of the job."""
    run: SuiteRun
    seen: Observations = {}
    """The observed answers."""
    shaken: tuple[Observations, ...] = ()
    """The answers once more for each seed of noise."""
    on_saved: SuiteResult | None = None
    """The result of the failing tasks on the cases of `Job.saved`; None if they were not run."""
    noted: msgspec.Raw = msgspec.Raw(b"[]")
    """The notes of the bridge, as JSON; the code that chose the bridge knows their type."""
    capability: str = ""
    """The vector unit that the job named."""


def run_jobs(
    jobs: Sequence[Job], cases: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Outcome]:
    """Run the suite once for each job, as many at a time as there are cores, and yield outcomes.

    Args:
        jobs: what to run.
        cases: the folder of saved cases.
        environment: more environment variables for all runs.

    Raises:
        HarnessError: the runner stopped before every job was done.
    """
    folder = quick_folder()
    temporary = {"TMPDIR": str(folder)} if folder else {}
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "staff.runner.forks", str(cases.resolve())],
        env=_without_options(os.environ) | ENVIRONMENT | temporary | dict(environment or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=sorted({fd for job in jobs if job.bridge for fd in job.bridge.descriptors}),
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


def _without_options(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without pytest's variables, so that none of them adds an option."""
    return {key: value for key, value in environment.items() if not key.startswith("PYTEST")}
