"""What reports may hold: bounded, printable, and nothing that is not to be seen yet."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from msgspec.structs import replace

from staff.grader.grade import read_grade
from staff.reports import gradescope, write_reports
from staff.reports.shown import (
    MESSAGE_BYTES,
    PICTURES,
    REPORT_BYTES,
    bounded,
    clipped,
    not_shown,
    shown_to_student,
)
from staff.tests.support import grade_of, small_rubric, task_result
from tests.harness.results import Picture, State, TestResult

P, W = State.PASSED, State.WRONG
RUBRIC = small_rubric()
FIRST, SECOND = RUBRIC.tasks
PICTURE = Picture(case="c", where="[:]", axes=(0,), start=(0,), wrong=((True,),), worst=(0, 0))
READ = ("report.txt", "report.html", "report.md", "junit.xml")


def failing(*lines: str, count: int = 1) -> list[TestResult]:
    """The results of a task whose tests all say the same."""
    tests = tuple(TestResult(name="t", state=W, lines=lines, picture=PICTURE) for _ in range(count))
    return bounded(grade_of(task_result(FIRST, [W] * 3, tests=tests))).run.result.tasks[0].tests


@pytest.mark.parametrize("text", ["a" * 100, "é" * 50, "𝛼" * 25, "a𝛼é" * 20])
@pytest.mark.parametrize("most", [99, 60, 61, 62, 63])
def test_a_text_is_cut_between_characters(text, most) -> None:
    """Catches half a character at the end, or a text that is a little too long."""
    cut = clipped(text, most)
    assert len(cut.encode()) <= most
    assert cut.endswith(" … (cut)")
    assert text.startswith(cut.removesuffix(" … (cut)"))
    assert clipped(text, len(text.encode())) == text


def test_messages_are_cut() -> None:
    """Catches a message that is longer than allowed in one line or in many."""
    for lines in (["x" * 1_000_000], ["x" * 100] * 10_000, ["\x00" * 5_000, "end"]):
        (test,) = failing(*lines)
        assert MESSAGE_BYTES / 2 < sum(len(line.encode()) for line in test.lines) <= MESSAGE_BYTES
        assert test.lines[-1].endswith(" … (cut)")
    assert failing("short", "  frame")[0].lines == ("short", "  frame")


def test_all_messages_together_are_cut() -> None:
    """Catches a report of a thousand long messages; states and points must stay."""
    tests = failing("x" * 3_000, count=1_000)
    assert len(tests) == 1_000
    assert sum(len(line) for test in tests for line in test.lines) < REPORT_BYTES + 50_000
    assert tests[-1].lines == ("left out: this report is full",)
    assert {test.state for test in tests} == {W}
    assert sum(test.picture is not None for test in tests) == PICTURES


def test_nothing_unprintable_is_left() -> None:
    """Catches escapes that paint a terminal, and characters that no file format holds."""
    (test,) = failing("a\x1b[31m\nb", "\ud800\u202e\x00")
    assert test.lines == ("a\\x1b[31m\\nb", "\\ud800\\u202e\\x00")
    ungraded = bounded(grade_of(problem="bad\x07\nname", name="\x1bada"))
    assert (ungraded.run.problem, ungraded.submission) == ("bad\\x07\\nname", "\\x1bada")


def test_what_fits_is_not_touched() -> None:
    """Catches a state, a point or a picture that is lost on the way to the reports."""
    tests = (TestResult(name="t", state=W, lines=("no", "  frame"), clue="x", picture=PICTURE),)
    grade = grade_of(task_result(FIRST, [W] * 3, tests=tests, told=("no",), known="slip"))
    assert bounded(grade) == grade
    assert bounded(bounded(grade)) == grade


def hidden_rubric(visibility: str):
    """The small rubric, its second task not visible."""
    return replace(RUBRIC, tasks=(FIRST, replace(SECOND, visibility=visibility)))


@pytest.mark.parametrize("visibility", ["hidden", "after_due_date", "after_published"])
def test_what_is_not_visible_stays_out(visibility, tmp_path: Path) -> None:
    """Catches points, a message or a next step of a task that a student may not see."""
    rubric = hidden_rubric(visibility)
    secret = (TestResult(name="test_second_0", state=W, lines=("the secret",)),)
    grade = grade_of(task_result(FIRST, [P, P, P]), task_result(SECOND, [W], tests=secret))
    write_reports(grade, rubric, tmp_path)
    texts = {name: (tmp_path / name).read_text("utf-8") for name in READ}
    for text in texts.values():
        assert "secret" not in text
        assert "second" not in text.lower()
    for name in ("report.txt", "report.html", "report.md"):
        assert "1 task is not shown in this report." in texts[name]
    assert "Every point is earned: 3 of 3." in texts["report.txt"]
    assert ET.fromstring(texts["junit.xml"]).get("tests") == "3"


def test_the_platform_hides_by_itself() -> None:
    """Catches a hidden task that is left out of the grade, or told of in what all may read."""
    rubric = hidden_rubric("hidden")
    grade = grade_of(task_result(FIRST, [P, P, P]), task_result(SECOND, [W]))
    report = gradescope(grade, rubric)
    assert [test["visibility"] for test in report["tests"]] == ["visible", "hidden"]
    assert sum(test["max_score"] for test in report["tests"]) == 4
    assert report["output"] == "Every point is earned: 3 of 3."


def test_the_staff_see_everything(tmp_path: Path) -> None:
    """Catches a hidden task that is missing from the grade itself."""
    grade = grade_of(task_result(FIRST, [P, P, P]), task_result(SECOND, [W]))
    write_reports(grade, hidden_rubric("hidden"), tmp_path)
    assert read_grade(tmp_path / "grade.json") == grade
    assert len(json.loads((tmp_path / "results.json").read_text("utf-8"))["tests"]) == 2


def test_what_is_left_out_is_counted() -> None:
    """Catches a report that keeps silent about what it leaves out."""
    grade = grade_of(task_result(FIRST, [P, P, P]), task_result(SECOND, [W]))
    assert not_shown(grade.run.result, RUBRIC) == ""
    assert shown_to_student(grade, RUBRIC) == grade
    everything = replace(RUBRIC, tasks=tuple(replace(t, visibility="hidden") for t in RUBRIC.tasks))
    shown = shown_to_student(grade, everything).run.result
    assert (shown.tasks, shown.possible) == ((), 0)
    assert not_shown(shown, everything) == "2 tasks are not shown in this report."


def test_no_grade_is_written_everywhere(tmp_path: Path) -> None:
    """Catches a format in which a submission that could not be graded looks like a zero."""
    write_reports(grade_of(problem="no adapters.py"), RUBRIC, tmp_path)
    for name in READ:
        text = (tmp_path / name).read_text("utf-8")
        assert "ould not be graded" in text
        assert "no adapters.py" in text
        assert "0 / " not in text
    results = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert not {"score", "tests"} & results.keys()
    assert msgspec.json.decode((tmp_path / "grade.json").read_bytes())["run"]["result"] is None
