"""Bounds of a report: short enough, printable, and without tasks that are hidden."""

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
from staff.tests.support import failure, grade_of, result_of, small_rubric, task_result
from tests.harness.results import Diagnosis, Failure, Frame, Picture, State, TestResult
from tests.harness.rubric import Rubric, Visibility
from tests.harness.words import failure_lines

P, W = State.PASSED, State.WRONG
RUBRIC = small_rubric()
FIRST, SECOND = RUBRIC.tasks
PICTURE = Picture(case="c", where="[:]", axes=(0,), start=(0,), wrong=((True,),), worst=(0, 0))
READ = ("report.txt", "report.html", "report.md", "junit.xml")


def failing(why: Failure, count: int = 1) -> tuple[TestResult, ...]:
    """The results of a task whose tests all say the same, as a report holds them."""
    tests = tuple(TestResult(name="t", state=W, failure=why) for _ in range(count))
    grade = bounded(grade_of(task_result(FIRST, [W] * 3, tests=tests)))
    return result_of(grade).tasks[0].tests


def lines_of(test: TestResult) -> list[str]:
    """What a test says."""
    assert test.failure is not None
    return failure_lines(test.failure)


@pytest.mark.parametrize("text", ["a" * 100, "é" * 50, "𝛼" * 25, "a𝛼é" * 20])
@pytest.mark.parametrize("most", [99, 60, 61, 62, 63])
def test_a_text_is_cut_between_characters(text: str, most: int) -> None:
    """Catches half a character at the end, or a text that is a little too long."""
    cut = clipped(text, most)
    assert len(cut.encode()) <= most
    assert cut.endswith(" … (cut)")
    assert text.startswith(cut.removesuffix(" … (cut)"))
    assert clipped(text, len(text.encode())) == text


FRAMES = tuple(Frame("f.py", n, "f", "g()") for n in range(4))


@pytest.mark.parametrize(
    "why",
    [
        failure("x" * 1_000_000, frames=FRAMES),
        failure("head", *["x" * 100] * 10_000, clue="zero", frames=FRAMES),
        failure("\x00" * 5_000, "end", clue="zero"),
        failure("head", frames=(Frame("f.py", 1, "f", "x" * 1_000_000),) * 4),
    ],
)
def test_messages_are_cut(why: Failure) -> None:
    """Catches a message that is longer than allowed, in one line or in many."""
    lines = lines_of(failing(why)[0])
    assert MESSAGE_BYTES / 2 < sum(len(line.encode()) + 1 for line in lines) <= MESSAGE_BYTES
    assert lines[-1].endswith(" … (cut)")


def test_a_frame_without_room_is_left_out() -> None:
    """Catches a frame that is shown without the file, the function or the line of code."""
    for long in (Frame("x" * 1_000_000, 1, "f", "g()"), Frame("f.py", 1, "x" * 1_000_000, "g()")):
        assert lines_of(failing(failure("head", frames=(long, *FRAMES)))[0]) == ["head"]
    (test,) = failing(failure("x" * 1_000_000, frames=FRAMES))
    assert len(lines_of(test)) == 1


def test_a_short_message_stays() -> None:
    """Catches a message that fits and is changed all the same."""
    why = failure("short", "more", frames=FRAMES, clue="zero", picture=PICTURE)
    assert failing(why)[0].failure == why


def test_all_messages_together_are_cut() -> None:
    """Catches a report of a thousand long messages, and a state or a point that is cut."""
    tests = failing(failure("x" * 3_000, picture=PICTURE), count=1_000)
    assert len(tests) == 1_000
    assert sum(len(line) for test in tests for line in lines_of(test)) < REPORT_BYTES + 50_000
    assert lines_of(tests[-1]) == ["this message is left out, since the report is full"]
    assert {test.state for test in tests} == {W}
    drawn = [test for test in tests if test.failure and test.failure.picture]
    assert len(drawn) == PICTURES


def test_nothing_unprintable_is_left() -> None:
    """Catches escapes that paint a terminal, and characters that no file format holds."""
    (test,) = failing(failure("a\x1b[31m\nb", "\ud800\u202e\x00"))
    assert lines_of(test) == ["a\\x1b[31m\\nb", "\\ud800\\u202e\\x00"]
    (test,) = failing(failure("x", frames=(Frame("\x07.py", 1, "\x1b", "\ud800"),)))
    assert lines_of(test)[1] == "  \\x07.py:1 in \\x1b: \\ud800"
    ungraded = bounded(grade_of(problem="bad\x07\nname", name="\x1bada"))
    assert (ungraded.run.problem, ungraded.submission) == ("bad\\x07\\nname", "\\x1bada")


def test_what_fits_is_not_touched() -> None:
    """Catches a state, a point, a picture or a diagnosis that is lost before the reports."""
    cause = Diagnosis(tests=("t",), task="first", mistake="slip", sentences=("x",), nudge="Why?")
    why = failure("no", frames=FRAMES, clue="x", picture=PICTURE)
    tests = (TestResult(name="t", state=W, failure=why),)
    grade = grade_of(task_result(FIRST, [W] * 3, tests=tests, diagnoses=(cause,)))
    assert bounded(grade) == grade


def hidden_rubric(visibility: str) -> Rubric:
    """The small rubric, its second task not visible."""
    return replace(RUBRIC, tasks=(FIRST, replace(SECOND, visibility=visibility)))


@pytest.mark.parametrize("visibility", ["hidden", "after_due_date", "after_published"])
def test_what_is_not_visible_stays_out(visibility: Visibility, tmp_path: Path) -> None:
    """Catches points, a message or a next step of a task that a student may not see."""
    rubric = hidden_rubric(visibility)
    secret = (TestResult(name="test_second_0", state=W, failure=failure("the secret")),)
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
    """Catches a hidden task that is left out of the grade, or named in the output for students."""
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
    """Catches a report that leaves out tasks and doesn't say how many."""
    grade = grade_of(task_result(FIRST, [P, P, P]), task_result(SECOND, [W]))
    assert not_shown(result_of(grade), RUBRIC) == ""
    assert shown_to_student(grade, RUBRIC) == grade
    everything = replace(RUBRIC, tasks=tuple(replace(t, visibility="hidden") for t in RUBRIC.tasks))
    shown = result_of(shown_to_student(grade, everything))
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
