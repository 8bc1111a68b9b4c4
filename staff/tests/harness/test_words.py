"""Words: each kind of failure and diagnosis as text, to the letter."""

from msgspec.structs import replace

from staff.tests.support import failure, small_rubric, task_result
from tests.harness.results import CaseNote, Diagnosis, Frame, State, TestResult
from tests.harness.words import diagnosis_lines, failure_lines, test_lines

OWN = Diagnosis(tests=("t",), task="first", mistake="m", sentences=("x",), nudge="Why?")
UPSTREAM = replace(OWN, task="zeroth")
WHOLE = failure(
    "got 1",
    "a detail",
    clue="every value is zero",
    frames=(Frame("adapters.py", 3, "f", "g()"), Frame("m.py", 4, "g", "raise E")),
    case=CaseNote(name="a case", failing=1, total=1),
    promise="Rows sum to one.",
)


def test_a_diagnosis_in_words() -> None:
    """Catches a sentence or a question that is lost, or one that hints keep back."""
    assert diagnosis_lines(OWN, "first") == [
        "This is what comes out when x.",
        "Ask yourself: Why?",
    ]
    assert diagnosis_lines(replace(OWN, sentences=()), "first") == ["Ask yourself: Why?"]
    assert diagnosis_lines(replace(OWN, sentences=(), nudge=""), "first") == []


def test_mistakes_that_look_alike_in_words() -> None:
    """Catches one of several possible mistakes that is told as if it were certain."""
    alike = replace(OWN, mistake=None, sentences=("x", "y"), nudge="")
    assert diagnosis_lines(alike, "first") == [
        "A clue: known mistakes look like this when x; or y."
    ]


def test_a_cause_upstream_in_words() -> None:
    """Catches a student who isn't sent to the task that must be mended first."""
    command = "Mend that first: pytest --task=zeroth"
    assert diagnosis_lines(UPSTREAM, "first") == [
        "Fails exactly as it would with your `zeroth`: x.",
        command,
    ]
    assert diagnosis_lines(replace(UPSTREAM, sentences=()), "first") == [
        "Fails exactly as it would with your `zeroth`.",
        command,
    ]
    assert diagnosis_lines(replace(UPSTREAM, sentences=(), nudge=""), "first") == []
    unknown = Diagnosis(tests=("t",), task="zeroth")
    assert diagnosis_lines(unknown, "first") == [
        "`zeroth`, which this task calls, fails too: mend that first."
    ]


def test_a_failure_in_words() -> None:
    """Catches a field of a failure that no reader sees, or fields in another order."""
    assert failure_lines(WHOLE) == [
        "a clue: every value is zero",
        "got 1",
        "a detail",
        "  adapters.py:3 in f: g()",
        "  m.py:4 in g: raise E",
        "saved case: a case",
        "this test: Rows sum to one.",
    ]
    assert failure_lines(failure("why")) == ["why"]


def test_how_many_cases_fail() -> None:
    """Catches a count of cases that is missing where there are several."""
    some = replace(WHOLE, case=CaseNote(name="a case", failing=1, total=4))
    assert "saved case: a case · 1 of 4 cases fail" in failure_lines(some)


def test_a_clue_gives_way_to_a_diagnosis() -> None:
    """Catches a clue beside a diagnosis of the same test, or one that is lost without any."""
    (first, _) = small_rubric().tasks
    test = TestResult(name="t", state=State.WRONG, failure=WHOLE)
    other = replace(test, name="u")
    task = task_result(first, [State.WRONG] * 3, tests=(test, other), diagnoses=(OWN,))
    assert test_lines(task, test) == failure_lines(WHOLE)[1:]
    assert test_lines(task, other) == failure_lines(WHOLE)
    assert test_lines(task, replace(test, failure=None)) == []
