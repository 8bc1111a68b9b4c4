"""`results.json`: a grade in the form that Gradescope reads."""

from __future__ import annotations

from typing import Any

from staff.grader.grade import Grade
from staff.reports.shown import shown_to_student
from tests.harness import terminal, words
from tests.harness.results import State, TaskResult, points_text
from tests.harness.rubric import Rubric


def gradescope(grade: Grade, rubric: Rubric) -> dict[str, Any]:
    """Return the content of `results.json`: one entry for each task, with its visibility.

    A bonus is extra credit: its `max_score` is 0, so that its score raises the total but not the
    possible points. A bonus that was not started has neither status nor score, so the platform
    shows it as neither right nor wrong.

    A submission that could not be graded has no score. The platform then shows staff that the
    autograder failed, and the gradebook gets no zero.
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
    for diagnosis in task.diagnoses:
        lines += ["", *words.diagnosis_lines(diagnosis, task.id)]
    for test in task.failing:
        lines += ["", test.name if test.counted else f"{test.name} (shown, not counted)"]
        lines += [f"  {line}" for line in words.test_lines(task, test)]
    entry: dict[str, Any] = {
        "name": f"{task.id} · {task.title}",
        "number": task.handout,
        "status": "passed" if task.complete else "failed",
        "output": "\n".join(lines),
        "output_format": "text",
        "tags": [f"part-{task.part}"],
        "visibility": rubric.by_id[task.id].visibility,
    }
    if task.bonus and task.possible:
        entry["name"] += f" (bonus: {points_text(task.earned)} of {points_text(task.possible)})"
        entry["tags"] += ["bonus"]
    if task.bonus and task.state is State.NOT_STARTED:
        del entry["status"]
    elif task.possible:
        most = 0.0 if task.bonus else task.possible
        entry |= {"score": round(task.earned, 4), "max_score": most}
    return entry
