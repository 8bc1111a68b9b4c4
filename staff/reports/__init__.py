"""Reports, one module for each format. Each report is a function of a grade."""

from __future__ import annotations

import json
from pathlib import Path

from staff.files import write_whole
from staff.grader.grade import Grade, write_grade
from staff.reports.gradescope import gradescope
from staff.reports.junit import junit
from staff.reports.markdown import markdown
from staff.reports.overview import table
from staff.reports.page import page
from staff.reports.shown import bounded, shown_to_student
from staff.reports.text import text
from tests.harness.rubric import Rubric

__all__ = ["gradescope", "junit", "markdown", "page", "table", "text", "write_reports"]


def write_reports(grade: Grade, rubric: Rubric, folder: Path) -> None:
    """Write every report of a grade into a folder.

    `grade.json` and `results.json` hold every task: staff read the first, and the platform hides
    the tasks of the second that the rubric does not make visible. Students read the other reports
    directly, so these leave such tasks out.

    Args:
        grade: the grade.
        rubric: the assignment.
        folder: the folder to write to; it is made if it does not exist.

    Raises:
        OSError: a report can't be written; the error names the file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    whole = bounded(grade)
    shown = shown_to_student(whole, rubric)
    reports = {
        "results.json": json.dumps(gradescope(whole, rubric), indent=2, ensure_ascii=False) + "\n",
        "report.txt": text(shown, rubric),
        "report.html": page(shown, rubric),
        "report.md": markdown(shown, rubric),
        "junit.xml": junit(shown, rubric),
    }
    for name, content in reports.items():
        write_whole(folder / name, content.encode())
    write_grade(whole, folder / "grade.json")  # written last: if it exists, all other reports exist
