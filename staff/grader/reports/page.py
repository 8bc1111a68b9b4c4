"""The student's page: one HTML file that needs nothing else, not even a script."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from staff.grader.grade import Grade
from staff.grader.reports.heatmap import Panel, panels
from staff.grader.reports.shown import not_shown
from tests.harness import terminal
from tests.harness.results import (
    Picture,
    State,
    SuiteResult,
    TaskResult,
    TestResult,
    percent_text,
    points_text,
)
from tests.harness.rubric import Rubric

_HERE = Path(__file__).parent
OPEN = 3
"""Failing tests of a task that are shown at once; the others unfold."""
_PROMISE, _CASE = "this test: ", "saved case: "
_NAMES = {
    State.PASSED: "done",
    State.WRONG: "wrong",
    State.CRASHED: "raised an error",
    State.NOT_STARTED: "not started",
    State.NOT_OFFERED: "not offered",
    State.NOT_RUN: "not run",
}


@dataclass(frozen=True)
class Test:
    """A failing test, taken apart for the page."""

    name: str
    counted: bool
    promise: str
    """What the test looks at."""
    findings: list[str]
    frames: list[str]
    """The student's own lines that were running."""
    case: str
    picture: Picture | None
    panels: list[Panel]


def page(grade: Grade, rubric: Rubric) -> str:
    """The whole report of one submission."""
    result = grade.run.result
    known = {"grade": grade, "rubric": rubric, "style": _style()}
    if result is None:
        return _template("ungraded.html.j2").render(known)
    step = terminal.next_task(result)
    failing = [task for task in result.tasks if task.fails]
    return _template("page.html.j2").render(
        known,
        result=result,
        parts=[(part, _part(result, part.number)) for part in rubric.parts],
        failing=[(task, _tests(task)) for task in failing],
        failing_tasks=failing,
        step=step,
        todo=terminal.what_to_do(step, rubric, result.layout) if step else "",
        titles={task.id: task.title for task in result.tasks},
        not_shown=not_shown(result, rubric),
        open=OPEN,
    )


def _part(result: SuiteResult, number: int) -> list[TaskResult]:
    return [task for task in result.tasks if task.part == number]


def _tests(task: TaskResult) -> list[Test]:
    """The failing tests; where one cause is told for all of them, one picture is enough."""
    tests = [_test(task, test) for test in task.tests if test.state.failed]
    with_picture = [i for i, test in enumerate(tests) if test.picture]
    kept = with_picture[: 1 if task.told else OPEN]
    return [_drawn(test) if i in kept else test for i, test in enumerate(tests)]


def _test(task: TaskResult, test: TestResult) -> Test:
    lines = task.own_lines(test)
    promise = next((line for line in lines if line.startswith(_PROMISE)), "")
    case = next((line for line in lines if line.startswith(_CASE)), "")
    frames = [line for line in lines if line.startswith("  ")]
    return Test(
        name=test.name,
        counted=test.counted,
        promise=promise.removeprefix(_PROMISE),
        findings=[line for line in lines if line not in (promise, case, *frames)],
        frames=[line.strip() for line in frames],
        case=case,
        picture=test.picture,
        panels=[],
    )


def _drawn(test: Test) -> Test:
    assert test.picture is not None
    return Test(**{**vars(test), "panels": panels(test.picture)})


def _prose(text: str) -> Markup:
    """Escape a text, and set what stands between backticks as code."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return escape(text)
    tags = (Markup("{}"), Markup("<code>{}</code>"))
    return Markup("").join(tags[i % 2].format(piece) for i, piece in enumerate(pieces))


@cache
def _style() -> Markup:
    return Markup((_HERE / "page.css").read_text("utf-8"))


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"points": points_text, "prose": _prose}
    environment.globals |= {
        "percent": percent_text,
        "symbols": terminal.SYMBOLS,
        "state_text": terminal.state_text,
        "state_names": _NAMES,
    }
    return environment.get_template(name)
