"""`results.json`, the form in which Gradescope reads a grade."""

from __future__ import annotations

from typing import Any

from staff.grader.grade import Grade
from staff.grader.reports.shown import shown_to_student
from tests.harness import terminal
from tests.harness.results import State, TaskResult
from tests.harness.rubric import Rubric


def gradescope(grade: Grade, rubric: Rubric) -> dict[str, Any]:
    """One entry for each task, with the visibility that the rubric gives it.

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
    tasks = [_entry(task, rubric) for task in grade.run.result.tasks]
    shown = shown_to_student(grade, rubric).run.result or grade.run.result
    return {**report, "output": terminal.next_step(shown, rubric), "tests": tasks}


def _entry(task: TaskResult, rubric: Rubric) -> dict[str, Any]:
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
        "visibility": rubric.by_id[task.id].visibility,
    }
    if task.possible:
        entry |= {"score": round(task.earned, 4), "max_score": task.possible}
    return entry
