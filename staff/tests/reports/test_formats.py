"""JUnit and Markdown: valid whatever a student writes, and true to the states."""

import re
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from staff.reports import junit, markdown, text
from staff.reports.shown import bounded
from staff.tests.support import grade_of, small_rubric, task_result
from tests.harness.results import State, TestResult

P, W, C, S = State.PASSED, State.WRONG, State.CRASHED, State.NOT_STARTED
RUBRIC = small_rubric()
FIRST, SECOND = RUBRIC.tasks
GRADE = grade_of(task_result(FIRST, [P, C, W]), task_result(SECOND, [S]))
UNGRADED = grade_of(problem="SyntaxError in adapters.py, line 3: <b> & ]]>")
HOSTILE = (
    "ValueError: <script>alert(1)</script> ]]> & \x00\x1b[31m\ud800\ufffe ``` ````\n# heading",
    "  adapters.py:1 in f: raise ValueError('|  | <img src=x>')",
)


def hostile():
    """A grade in which the student's words try to be more than words."""
    tests = (TestResult(name="test_first_0", state=C, lines=HOSTILE),)
    task = task_result(FIRST, [C] * 3, tests=tests, told=())
    return bounded(grade_of(task, name="[x](javascript:1) <b>*a*|`\n# b"))


def tree(grade):
    """The XML, parsed."""
    return ET.fromstring(junit(grade, RUBRIC))


def test_every_test_is_a_case() -> None:
    """Catches a test that is missing, and a state that CI would take for another."""
    root = tree(GRADE)
    assert root.tag == "testsuites"
    cases = {case.get("name"): case for case in root.iter("testcase")}
    outcomes = {name: [child.tag for child in case] for name, case in cases.items()}
    assert outcomes == {
        "test_first_0": [],
        "test_first_1": ["error"],
        "test_first_2": ["failure"],
        "test_second_0": ["failure"],
    }
    assert cases["test_first_2"][0].get("message") == "why"
    assert cases["test_first_2"][0].text == "why\nmore"
    assert cases["test_second_0"][0].get("type") == "not started"


def test_the_counts_are_right() -> None:
    """Catches sums that differ from the cases, which some readers trust."""
    root = tree(GRADE)
    for element in (root, *root):
        assert int(element.get("tests")) == len(list(element.iter("testcase")))
        assert int(element.get("failures")) == len(list(element.iter("failure")))
        assert int(element.get("errors")) == len(list(element.iter("error")))
        assert int(element.get("skipped")) == len(list(element.iter("skipped")))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("4", "2", "1")
    points = {p.get("name"): p.get("value") for p in root[0].iter("property")}
    assert points == {"earned": "1", "possible": "3"}


def test_what_does_not_count_is_skipped() -> None:
    """Catches a red CI for a promise that the submission's layout never made."""
    aside = TestResult(name="t", state=W, counted=False, lines=("no",))
    absent = TestResult(name="u", state=State.NOT_OFFERED, counted=False)
    unrun = TestResult(name="v", state=State.NOT_RUN)
    root = tree(grade_of(task_result(FIRST, [P] * 3, tests=(aside, absent, unrun))))
    found = {
        case.get("name"): (case[0].tag, case[0].get("message")) for case in root.iter("testcase")
    }
    assert found == {
        "t": ("skipped", "shown, not counted: no"),
        "u": ("skipped", "shown, not counted: not offered"),
        "v": ("error", "not run"),
    }


def test_no_grade_is_an_error_of_its_own() -> None:
    """Catches an empty report, which CI takes for success, or one that looks like failed tests."""
    root = tree(UNGRADED)
    assert (root.get("tests"), root.get("errors"), root.get("failures")) == ("1", "1", "0")
    error = next(root.iter("error"))
    assert error.get("type") == "could not be graded"
    assert error.get("message") == f"could not be graded: {UNGRADED.run.problem}"


def test_xml_is_valid_whatever_a_student_writes() -> None:
    """Catches control characters, which XML forbids even when escaped, and text taken for tags."""
    source = junit(hostile(), RUBRIC)
    root = ET.fromstring(source.encode("utf-8"))
    assert {element.tag for element in root.iter()} == {
        *("testsuites", "testsuite", "properties", "property", "testcase", "error")
    }
    assert "<script>" in next(root.iter("error")).text
    assert not re.search(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", source)


def test_markdown_says_it_all() -> None:
    """Catches a summary without points, table, next step or explanation."""
    told = ("This is what comes out when x.", "Ask yourself: `y`?")
    tests = tuple(
        TestResult(name=f"test_first_{i}", state=W, lines=(*told, f"got {i}")) for i in range(5)
    )
    it = grade_of(task_result(FIRST, [W] * 3, tests=tests, told=told), task_result(SECOND, [S]))
    lines = markdown(it, RUBRIC).splitlines()
    assert lines[0] == "## ada: 0 / 4 points (0 %)"
    assert (
        lines[2]
        == "Next: first · handout §2.3 · mend cs336\\_basics/first.py, then  pytest --task=first"
    )
    assert "| | Part 1 · The part | points | |" in lines
    assert "| ✗ | first | 0 / 3 | 5 of 5 tests fail |" in lines
    assert lines.count("> This is what comes out when x.") == 1
    assert "> Ask yourself: \\`y\\`?" in lines
    assert [line for line in lines if line.startswith("got")] == ["got 0", "got 1", "got 2"]
    assert "… and 2 more" in lines


def test_markdown_of_no_grade() -> None:
    """Catches a summary that reads like a zero."""
    report = markdown(UNGRADED, RUBRIC)
    assert report.startswith("## ada: could not be graded\n\nThis is not a zero.\n")
    assert "points" not in report
    assert f"```text\n{UNGRADED.run.problem}\n```" in report


def test_markdown_stays_in_its_fence() -> None:
    """Catches backticks that close the fence, and a name that becomes a link or a heading."""
    lines = markdown(hostile(), RUBRIC).splitlines()
    fence = next(line for line in lines if line.endswith("text") and line.startswith("`"))
    assert fence == "`````text"
    start, end = lines.index(fence), lines.index("`````")
    inside = [line for i, line in enumerate(lines) if start < i < end]
    assert any("<script>" in line for line in inside)
    outside = [line for i, line in enumerate(lines) if not start < i < end]
    assert not any(re.search(r"(?<!\\)[<\[]", line.removeprefix("> ")) for line in outside)
    assert [line for line in lines if line.startswith("# ")] == []


@pytest.mark.parametrize("write", [markdown, junit, text])
def test_reports_are_capped(write) -> None:
    """Catches a student who fills a disk, or a page, through an error message."""
    long = TestResult(name="t", state=W, lines=("é" * 10_000_000,))
    many = task_result(FIRST, [W] * 3, tests=(long,) * 300)
    grade = bounded(replace(grade_of(many), submission="n" * 10_000))
    assert len(write(grade, RUBRIC).encode()) < 1_200_000
