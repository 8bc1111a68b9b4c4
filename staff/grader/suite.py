"""The process that runs the suite on one submission: `python -m staff.grader.suite`.

pytest is told where everything is, so that no configuration of the submission is read. The
result leaves through a file that the grader named.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec
import pytest

from staff.grader.grade import SuiteRun
from staff.paths import ROOT, TESTS
from tests.harness.plugin import SUITE


class _Collector:
    """Keeps the suite's state when pytest is done."""

    def __init__(self) -> None:
        self.run = SuiteRun(problem="the suite stopped before it began")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        suite = session.config.stash[SUITE]
        if suite.problem is None:
            self.run = SuiteRun(result=suite.result())
        else:
            self.run = SuiteRun(problem=suite.problem)


def run_suite(submission: Path, fixtures: Path, hints: str) -> SuiteRun:
    """Run the suite in this process, which may be used for one submission only."""
    collector = _Collector()
    start = time.perf_counter()
    status = pytest.main(
        [
            f"--config-file={ROOT / 'pyproject.toml'}",
            f"--rootdir={ROOT}",
            f"--confcutdir={TESTS}",
            "-p",
            "no:cacheprovider",
            f"--submission={submission}",
            f"--cases={fixtures}",
            f"--hints={hints}",
            str(TESTS),
        ],
        plugins=[collector],
    )
    run = msgspec.structs.replace(collector.run, seconds=round(time.perf_counter() - start, 3))
    if status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return run
    raise SystemExit(f"pytest stopped with status {int(status)}")


def main() -> None:
    """Run the suite on the submission named first, and write the result to the file named last."""
    submission, fixtures, hints, result = sys.argv[1:]
    run = run_suite(Path(submission), Path(fixtures), hints)
    Path(result).write_bytes(msgspec.json.encode(run))


if __name__ == "__main__":
    main()
