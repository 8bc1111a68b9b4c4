"""Reports: each is a function of a grade."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from staff.grader.grade import Grade, write_grade
from tests.harness import terminal
from tests.harness.results import State, TaskResult, percent_text, points_text
from tests.harness.rubric import Rubric


def write_reports(grade: Grade, rubric: Rubric, folder: Path) -> None:
    """Write every report of a grade into a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    write_grade(grade, folder / "grade.json")
    results = json.dumps(gradescope(grade, rubric), indent=2, ensure_ascii=False)
    (folder / "results.json").write_text(results + "\n", "utf-8")
    (folder / "report.txt").write_text(text(grade, rubric), "utf-8")


def text(grade: Grade, rubric: Rubric) -> str:
    """What the student would read in a terminal."""
    result = grade.run.result
    if result is None:
        return f"Could not be graded: {grade.run.problem}\n"
    lines = [line for line, _ in terminal.failures(result, rubric, everything=True)]
    lines += [line for line, _ in terminal.table(result, rubric)]
    return "\n".join([*lines, terminal.next_step(result, rubric)]) + "\n"


def gradescope(grade: Grade, rubric: Rubric) -> dict[str, Any]:
    """The grade in the form of Gradescope's results.json.

    A submission that could not be graded has no score there either: the platform then shows it
    as such to the staff, and no zero stands in the gradebook.
    """
    report: dict[str, Any] = {
        "execution_time": grade.run.seconds,
        "output_format": "text",
        "extra_data": {"format": grade.format, "submission": grade.submission},
    }
    if grade.run.result is None:
        return {**report, "output": f"Could not be graded: {grade.run.problem}"}
    tasks = [_gradescope_task(task, rubric) for task in grade.run.result.tasks]
    return {**report, "output": terminal.next_step(grade.run.result, rubric), "tests": tasks}


def _gradescope_task(task: TaskResult, rubric: Rubric) -> dict[str, Any]:
    passed = sum(test.state is State.PASSED for test in task.counted)
    lines = [f"{passed} of {len(task.counted)} tests pass"] if task.counted else ["not offered"]
    for test in task.tests:
        if test.state.failed:
            lines += ["", test.name if test.counted else f"{test.name} (shown, not counted)"]
            lines += [f"  {line}" for line in test.lines]
    entry: dict[str, Any] = {
        "name": f"{task.id} · {task.title}",
        "number": task.handout,
        "status": "passed" if task.complete else "failed",
        "output": "\n".join(lines),
        "output_format": "text",
        "tags": [f"part-{task.part}"],
        "visibility": "visible",
    }
    if task.possible:
        entry |= {"score": round(task.earned, 4), "max_score": task.possible}
    return entry


def table(grades: list[Grade]) -> Table:
    """One line a submission: its points and what there is to know."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    for column in ("submission", "points", "share", "state"):
        shown.add_column(column, justify="right" if column in ("points", "share") else "left")
    for grade in grades:
        result = grade.run.result
        if result is None:
            problem = f"could not be graded: {grade.run.problem}"
            shown.add_row(escape(grade.submission), "—", "—", escape(problem))
            continue
        points = f"{points_text(result.earned)} / {points_text(result.possible)}"
        share = percent_text(result.earned, result.possible)
        shown.add_row(escape(grade.submission), points, share, _state(result.tasks))
    return shown


def _wrong(task: TaskResult) -> str:
    if task.blames:
        return f"{task.id}: see {task.blames}"
    return f"{task.id}: known mistake" if task.known else f"{task.id}: wrong"


def _state(tasks: tuple[TaskResult, ...]) -> str:
    waiting = sum(task.state is State.NOT_STARTED for task in tasks)
    said = [_wrong(task) for task in tasks if task.state.failed]
    said += [f"{waiting} not started"] if waiting else []
    return " · ".join(said) or "✓"
