"""The suite, many times: what one run is told, what it saw, and how many runs are asked for.

`run_jobs` starts one process, which imports torch and collects the tests once and then forks a
child for each job (`staff.runner.forks`). Grading, fixtures and validation all run the suite so.
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
"""What came out, under task, test and saved case ("" for a test that has none)."""


class BridgeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How a child reaches a submission that it must not import itself."""

    connect: str
    """The function that makes the bridge, as `package.module:name`: it is called with the
    submission, the device and `options`."""
    options: msgspec.Raw
    descriptors: tuple[int, ...] = ()
    """File descriptors that the child inherits for it."""


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
    noise: int = 0
    """Seeds of noise: with each, every answer is seen once more as another processor might
    round it."""
    bridge: BridgeSpec | None = None
    """How to reach the submission; none imports it in the child, for code of our own."""
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


class SuiteRun(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of the suite came to: a result, or the reason why there is none."""

    result: SuiteResult | None = None
    problem: str | None = None
    seconds: float = 0.0
    """Wall time."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of the suite saw."""

    name: str
    run: SuiteRun
    seen: Observations = {}
    shaken: tuple[Observations, ...] = ()
    """The same for each seed of noise."""
    on_saved: SuiteResult | None = None
    """The failing tasks once more, on the cases of `Job.saved`."""
    noted: msgspec.Raw = msgspec.Raw(b"[]")
    """What the bridge has to say beside the answers; its maker knows how to read it."""
    capability: str = ""
    """The vector unit, where the job named one."""


def run_jobs(
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
    """An environment from which pytest takes no options."""
    return {key: value for key, value in environment.items() if not key.startswith("PYTEST")}
