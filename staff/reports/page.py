"""The student's page: one HTML file that loads no other file and runs no script."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape
from msgspec.structs import replace

from staff.grader.grade import Grade
from staff.reports.heatmap import Panel, panels
from staff.reports.shown import not_shown
from tests.harness import terminal, words
from tests.harness.results import State, SuiteResult, TaskResult, percent_text, points_text
from tests.harness.rubric import Rubric

_HERE = Path(__file__).parent
OPEN = 3
"""The number of failing tests of a task that are shown unfolded; a click unfolds the others."""
_NAMES = {
    State.PASSED: "done",
    State.WRONG: "wrong",
    State.CRASHED: "raised an error",
    State.NOT_STARTED: "not started",
    State.NOT_OFFERED: "not offered",
    State.NOT_RUN: "not run",
}


class Explanation(NamedTuple):
    """The texts of one diagnosis, as the page shows them."""

    lines: list[str]
    nudge: str
    elsewhere: str
    """The task that contains the mistake, if it is not the failing task; otherwise empty."""


def page(grade: Grade, rubric: Rubric) -> str:
    """Return the page of one submission."""
    result = grade.run.result
    shared = {"grade": grade, "rubric": rubric, "style": _style()}
    if result is None:
        return _template("ungraded.html.j2").render(shared)
    step = terminal.next_task(result)
    failing = [task for task in result.tasks if task.fails]
    return _template("page.html.j2").render(
        shared,
        result=result,
        parts=[(part, _tasks(result, part.number)) for part in rubric.parts],
        failing=failing,
        explanations={task.id: _explanations(task) for task in failing},
        drawn={task.id: _drawn(task) for task in failing},
        step=step,
        todo=terminal.what_to_do(step, rubric, result.layout) if step else "",
        titles={task.id: task.title for task in result.tasks},
        not_shown=not_shown(result, rubric),
        open=OPEN,
    )


def _tasks(result: SuiteResult, part: int) -> list[TaskResult]:
    return [task for task in result.tasks if task.part == part]


def _drawn(task: TaskResult) -> dict[str, list[Panel]]:
    """Return heat maps, keyed by test: one if the task has a diagnosis, otherwise up to `OPEN`."""
    most = 1 if task.diagnoses else OPEN
    pictures = [(t.name, t.failure.picture) for t in task.failing if t.failure]
    drawn = [(name, picture) for name, picture in pictures if picture is not None][:most]
    return {name: panels(picture) for name, picture in drawn}


def _explanations(task: TaskResult) -> list[Explanation]:
    """Return the texts of each diagnosis, with the nudge apart because the page labels it."""
    return [
        Explanation(
            lines=words.diagnosis_lines(replace(d, nudge="") if d.task == task.id else d, task.id),
            nudge=d.nudge if d.task == task.id else "",
            elsewhere=d.task if d.task != task.id else "",
        )
        for d in task.diagnoses
    ]


def _prose(text: str) -> Markup:
    """Escape a text, and mark the pieces between backticks as code."""
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
        "case_line": words.case_line,
    }
    return environment.get_template(name)
