"""A diagnosis is written once in each report, however many tests it explains."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from staff.grader.grade import read_grade
from staff.reports import write_reports
from staff.tests.support import failure, grade_of, result_of, small_rubric, task_result
from tests.harness import terminal
from tests.harness.diagnosis import Evidence, explain
from tests.harness.fingerprints import Seen, directions_of
from tests.harness.fixtures import MistakeEntry, Signature
from tests.harness.results import State, SuiteResult, TestResult

RUBRIC = small_rubric()
FIRST, SECOND = RUBRIC.tasks
SENTENCE = "the mean is taken over the sequence"
NUDGE = "Which axis holds the features of one token?"
TESTS = tuple(f"test_{i}" for i in range(11))
OFF = Seen(kind="value", off=directions_of(torch.linspace(-50, 100, 40)), error=100.0)


def explained(tasks: int) -> SuiteResult:
    """The first task, or both, with eleven tests that fail as they would with one mistake."""
    tests = tuple(
        TestResult(name=name, state=State.WRONG, failure=failure(f"got {name}")) for name in TESTS
    )
    failing = [
        task_result(task, [State.WRONG] * len(task.tests), tests=tests)
        for task in (FIRST, SECOND)[:tasks]
    ]
    evidence = Evidence()
    for name in TESTS:
        evidence.see(name, "a case", OFF)
    entry = MistakeEntry(id="slip", task="first", sentence=SENTENCE, nudge=NUDGE, tests={})
    known = [Signature(mistake=entry, seen=dict(evidence.seen))]
    return explain(
        result_of(grade_of(*failing)),
        {task.id: evidence for task in failing},
        {task.id: known for task in failing},
        RUBRIC,
        "full",
    )


def _screen(result: SuiteResult, *, everything: bool) -> str:
    lines = (line for line, _ in terminal.failures(result, RUBRIC, everything=everything))
    return " ".join(" ".join(lines).split())


def _written(name: str) -> Callable[[SuiteResult, Path], str]:
    def write(result: SuiteResult, folder: Path) -> str:
        write_reports(grade_of(*result.tasks), RUBRIC, folder)
        return " ".join((folder / name).read_text("utf-8").split())

    return write


REPORTS: dict[str, Callable[[SuiteResult, Path], str]] = {
    "terminal": lambda result, _: _screen(result, everything=False),
    "terminal, one task": lambda result, _: _screen(result, everything=True),
    "report.txt": _written("report.txt"),
    "report.html": _written("report.html"),
    "report.md": _written("report.md"),
    "junit.xml": _written("junit.xml"),
    "results.json": _written("results.json"),
    "grade.json": _written("grade.json"),
}


@pytest.mark.parametrize("report", REPORTS)
def test_eleven_tests_of_one_cause(report: str, tmp_path: Path) -> None:
    """Catches a sentence or a question that is repeated for each test, or that is missing."""
    said = REPORTS[report](explained(1), tmp_path)
    assert said.count(SENTENCE) == 1
    assert said.count(NUDGE) == 1


@pytest.mark.parametrize("report", REPORTS)
def test_two_tasks_of_one_cause(report: str, tmp_path: Path) -> None:
    """Catches a report without the cause of a second task, or with the same question twice."""
    said = REPORTS[report](explained(2), tmp_path)
    assert said.count(SENTENCE) == 2
    assert said.count(NUDGE) == (2 if report == "grade.json" else 1)
    if report != "grade.json":
        assert said.count("Mend that first: pytest --task=first") == 1


def test_the_task_has_it_on_gradescope(tmp_path: Path) -> None:
    """Catches a diagnosis that the platform doesn't show with the task that it belongs to."""
    write_reports(grade_of(*explained(1).tasks), RUBRIC, tmp_path)
    (entry,) = json.loads((tmp_path / "results.json").read_text("utf-8"))["tests"]
    lines = entry["output"].splitlines()
    assert lines[:4] == [
        "0 of 11 tests pass",
        "",
        f"This is what comes out when {SENTENCE}.",
        f"Ask yourself: {NUDGE}",
    ]
    assert [line for line in lines if line.startswith("test_")] == list(TESTS)


def test_a_grade_keeps_which_tests_it_explains(tmp_path: Path) -> None:
    """Catches a diagnosis that loses its tests or the mistake's id on the way to grade.json."""
    result = explained(2)
    write_reports(grade_of(*result.tasks), RUBRIC, tmp_path)
    first, second = result_of(read_grade(tmp_path / "grade.json")).tasks
    assert first.diagnoses == result.tasks[0].diagnoses
    assert first.diagnoses[0].tests == TESTS
    assert (first.known, second.known, second.blames) == ("slip", "slip", "first")
