"""The reports: files that people and platforms read, each a function of the grade."""

import io
import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

from staff.grader.grade import Grade, read_grade, write_grade
from staff.reports import gradescope, table, text, write_reports
from staff.tests.support import failure, grade_of, result_of, small_rubric, task_result
from tests.harness.results import State, TestResult

P, W, S = State.PASSED, State.WRONG, State.NOT_STARTED
RUBRIC = small_rubric()
FIRST, SECOND = RUBRIC.tasks
TOP_KEYS = {"score", "execution_time", "output", "output_format", "test_output_format"} | {
    *("test_name_format", "visibility", "stdout_visibility", "extra_data", "tests", "leaderboard")
}
TEST_KEYS = {"score", "max_score", "status", "name", "name_format", "number", "output"} | {
    *("output_format", "tags", "visibility", "extra_data")
}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}


PARTLY = grade_of(task_result(FIRST, [P, P, W]), task_result(SECOND, [S]))
THIRDS = grade_of(task_result(FIRST, [P, W, W], earned=1 / 3), task_result(SECOND, [P]))
UNGRADED = grade_of(problem="SyntaxError in adapters.py, line 3: invalid syntax")


def shown(*grades: Grade) -> str:
    """The table as a terminal shows it."""
    screen = io.StringIO()
    Console(file=screen, width=100).print(table(list(grades)))
    return screen.getvalue()


@pytest.mark.parametrize("it", [PARTLY, UNGRADED], ids=["graded", "not graded"])
def test_a_grade_survives_its_file(it: Grade, tmp_path: Path) -> None:
    """Catches a field that is lost in grade.json, or a state that comes back as text."""
    write_grade(it, tmp_path / "grade.json")
    assert read_grade(tmp_path / "grade.json") == it
    assert it.graded is (it is PARTLY)


def test_another_file_is_no_grade(tmp_path: Path) -> None:
    """Catches a JSON file that is no grade and is read as one, with defaults for all fields."""
    (tmp_path / "grade.json").write_text('{"score": 30}')
    with pytest.raises(msgspec.ValidationError, match="missing required field `submission`"):
        read_grade(tmp_path / "grade.json")


@pytest.mark.parametrize("it", [PARTLY, THIRDS, UNGRADED], ids=["partly", "thirds", "not graded"])
def test_the_form_of_gradescope(it: Grade) -> None:
    """Catches a key or a type that the platform does not know, which it refuses as a whole."""
    report = json.loads(json.dumps(gradescope(it, RUBRIC), allow_nan=False))
    assert report.keys() <= TOP_KEYS
    assert isinstance(report["execution_time"], float)
    assert isinstance(report["output"], str)
    assert isinstance(report["extra_data"], dict)
    assert report["output_format"] in FORMATS
    for test in report.get("tests", []):
        assert test.keys() <= TEST_KEYS
        assert all(isinstance(test[key], str) for key in ("name", "number", "output"))
        assert test["status"] in ("passed", "failed")
        assert test["output_format"] in FORMATS
        assert test["visibility"] in ("visible", "hidden", "after_due_date", "after_published")
        assert all(isinstance(tag, str) for tag in test["tags"])
        assert 0 <= test["score"] <= test["max_score"]


def test_gradescope_sums_to_the_points() -> None:
    """Catches a total that differs from the sum of the tasks, or a task that is missing."""
    for it in (PARTLY, THIRDS):
        tests = gradescope(it, RUBRIC)["tests"]
        assert sum(t["score"] for t in tests) == pytest.approx(result_of(it).earned, abs=1e-3)
        assert sum(t["max_score"] for t in tests) == result_of(it).possible
    first = gradescope(PARTLY, RUBRIC)["tests"][0]
    assert (first["name"], first["number"]) == ("first · First", "2.3")
    assert (first["score"], first["max_score"], first["status"]) == (2, 3, "failed")
    assert first["output"] == "2 of 3 tests pass\n\ntest_first_2\n  why\n  more"
    assert first["tags"] == ["part-1"]


def test_no_score_where_there_is_no_grade() -> None:
    """Catches a zero in the gradebook for a submission that could not be graded."""
    report = gradescope(UNGRADED, RUBRIC)
    assert "score" not in report
    assert "tests" not in report
    assert report["output"] == f"Could not be graded: {UNGRADED.run.problem}"


def test_what_is_not_offered_has_no_points() -> None:
    """Catches a report that says `0 / n` points for a task without a counted test."""
    aside = (TestResult(name="t", state=W, counted=False, failure=failure("no")),)
    task = task_result(SECOND, [W], tests=aside, possible=0.0)
    entry = gradescope(grade_of(task), RUBRIC)["tests"][0]
    assert not {"score", "max_score"} & entry.keys()
    assert (entry["status"], entry["output"].splitlines()[0]) == ("passed", "not offered")
    assert "t (shown, not counted)" in entry["output"]


def test_the_text_is_what_the_terminal_shows() -> None:
    """Catches a report that leaves out the explanation, the table or the next step."""
    report = text(PARTLY, RUBRIC)
    assert report.startswith("first · test_first_2\n  why\n  more\n\n")
    assert "  ✗ first " in report
    assert report.endswith("mend cs336_basics/first.py, then  pytest --task=first\n")
    assert text(UNGRADED, RUBRIC) == f"Could not be graded: {UNGRADED.run.problem}\n"


def test_every_report_is_written(tmp_path: Path) -> None:
    """Catches a report that isn't written, or not in UTF-8."""
    write_reports(PARTLY, RUBRIC, tmp_path / "new" / "ada")
    written = {file.name: file.read_text("utf-8") for file in (tmp_path / "new/ada").iterdir()}
    assert written.keys() == {
        *("grade.json", "results.json", "junit.xml"),
        *("report.txt", "report.html", "report.md"),
    }
    assert json.loads(written["results.json"]) == gradescope(PARTLY, RUBRIC)
    assert "first · First" in written["results.json"]
    assert written["report.txt"] == text(PARTLY, RUBRIC)


def test_the_table_of_submissions() -> None:
    """Catches a column of another submission, and a share that is rounded up to 100 %."""
    whole = grade_of(task_result(FIRST, [P, P, P]), task_result(SECOND, [P]), name="bob")
    lines = [line.split() for line in shown(PARTLY, whole, UNGRADED).splitlines()]
    assert lines[1][:7] == ["ada", "2", "/", "4", "50", "%", "first:"]
    assert lines[1][7:] == ["wrong", "·", "1", "not", "started"]
    assert lines[2] == ["bob", "4", "/", "4", "100", "%", "✓"]
    assert lines[3][:4] == ["ada", "—", "—", "could"]


def test_a_share_of_fewer_points_says_so() -> None:
    """Catches a share of fewer points, those of the public layout, that isn't marked as such."""
    grade = grade_of(task_result(FIRST, [P, P, P]))
    result = replace(result_of(grade), layout="public")
    line = shown(replace(grade, run=replace(grade.run, result=result))).splitlines()[1]
    assert line.split() == ["ada", "3", "/", "3", "100", "%", "✓", "·", "public", "layout"]


def test_the_words_of_a_submission_are_only_words() -> None:
    """Catches brackets in a name or an error that are taken for markup, and stop the grader."""
    hostile = grade_of(problem="ValueError: [/red] [bold]x[/bold]", name="[link=x]")
    assert "ValueError: [/red] [bold]x[/bold]" in shown(hostile)
    assert "[link=x]" in shown(hostile)
