"""JUnit XML, for continuous integration: a suite for each task, and a case for each test."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from staff.grader.grade import Grade
from tests.harness import words
from tests.harness.results import State, TaskResult, TestResult, points_text
from tests.harness.rubric import Rubric

_OUTCOMES = {
    State.WRONG: "failure",
    State.NOT_STARTED: "failure",
    State.CRASHED: "error",
    State.NOT_RUN: "error",
    State.NOT_OFFERED: "skipped",
}
"""The element for each state. A counted test that did not pass is never `skipped`, except a bonus
that was not started."""


def junit(grade: Grade, rubric: Rubric) -> str:
    """Return a grade as JUnit XML. Without a result, there is one case with an error."""
    root = ET.Element("testsuites", name=rubric.title, time=f"{grade.run.seconds:.3f}")
    if grade.run.result is None:
        suite = ET.SubElement(root, "testsuite", name="submission")
        case = ET.SubElement(suite, "testcase", classname="submission", name=grade.submission)
        problem = f"could not be graded: {grade.run.problem}"
        ET.SubElement(case, "error", message=problem, type="could not be graded")
    else:
        for task in grade.run.result.tasks:
            _suite(root, task)
    for suite in root:
        _count(suite, [suite])
    _count(root, list(root))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(root: ET.Element, task: TaskResult) -> None:
    suite = ET.SubElement(root, "testsuite", name=task.id)
    properties = ET.SubElement(suite, "properties")
    for name, points in (("earned", task.earned), ("possible", task.possible)):
        ET.SubElement(properties, "property", name=name, value=points_text(points))
    if task.bonus:
        ET.SubElement(properties, "property", name="bonus", value="true")
    diagnosed = {d.tests[0]: words.diagnosis_lines(d, task.id) for d in task.diagnoses if d.tests}
    for test in task.tests:
        case = ET.SubElement(suite, "testcase", classname=task.id, name=test.name)
        lines = [*diagnosed.get(test.name, ()), *words.test_lines(task, test)]
        _outcome(case, test, lines, bonus=task.bonus)


def _outcome(case: ET.Element, test: TestResult, lines: list[str], *, bonus: bool) -> None:
    """Write how a test ended, with `lines` as the text unless the test passed."""
    if test.state is State.PASSED:
        return
    kind = _OUTCOMES[test.state]
    first = test.failure.headline if test.failure else test.state.value
    if not test.counted:
        kind, first = "skipped", f"shown, not counted: {first}"
    elif bonus and test.state is State.NOT_STARTED:
        kind = "skipped"
    outcome = ET.SubElement(case, kind, message=first, type=test.state.value)
    outcome.text = "\n".join(lines)


def _count(element: ET.Element, suites: list[ET.Element]) -> None:
    """Write the number of cases and of each outcome into an element, as the format requires."""
    for attribute, tag in (
        ("tests", "testcase"),
        ("failures", "failure"),
        ("errors", "error"),
        ("skipped", "skipped"),
    ):
        number = sum(1 for suite in suites for _ in suite.iter(tag))
        element.set(attribute, str(number))
