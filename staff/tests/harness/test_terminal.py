"""The end of a run: the explanations, the table and the next step, to the letter."""

import pytest

from staff.tests.support import failure, small_rubric, suite_result, task_result
from tests.harness import terminal
from tests.harness.results import Diagnosis, Frame, State, SuiteResult, TaskResult, TestResult

P, W, C, S, R = (
    State.PASSED,
    State.WRONG,
    State.CRASHED,
    State.NOT_STARTED,
    State.NOT_RUN,
)
RUBRIC = small_rubric()
FIRST, SECOND = RUBRIC.tasks


def lines(result: SuiteResult, *, everything: bool = False) -> list[str]:
    """The explanations as text."""
    return [line for line, _ in terminal.failures(result, RUBRIC, everything=everything)]


def test_the_table() -> None:
    """Catches a column that wanders, a wrong sum of a part, and a symbol for another state."""
    result = suite_result(task_result(FIRST, [P, P, W]), task_result(SECOND, [S]))
    assert list(terminal.table(result, RUBRIC)) == [
        ("  Part 1 · The part" + " " * 32 + "2 / 4 ", None),
        ("  ✗ first" + " " * 42 + "2 / 3    1 of 3 tests fail", "red"),
        ("  ○ second" + " " * 41 + "0 / 1    why", None),
        ("", None),
    ]


def test_a_part_without_chosen_tasks_is_left_out() -> None:
    """Catches an empty heading when one task is run alone."""
    assert list(terminal.table(suite_result(), RUBRIC)) == []


@pytest.mark.parametrize(
    ("states", "text"),
    [
        ([P, P, P], ""),
        ([W, C, P], "2 of 3 tests fail"),
        ([W, S, R], "1 of 3 tests fail"),
        ([P, P, R], "2 of 3 tests run"),
        ([S, S, S], "why"),
    ],
)
def test_a_state_in_words(states: list[State], text: str) -> None:
    """Catches a count of the wrong tests, or a task that seems done when tests were left out."""
    assert terminal.state_text(task_result(FIRST, states)) == text


def test_a_task_that_is_not_started() -> None:
    """Catches a table that repeats the long form of `not started` in every line."""
    why = failure("not started: write `f` in a.py", waiting="body")
    waiting = TestResult(name="t", state=S, failure=why)
    task = task_result(SECOND, [S], tests=(waiting,))
    assert terminal.state_text(task) == "not started"
    step = terminal.next_step(suite_result(task), RUBRIC)
    assert step == (
        "Next: second · handout §2.1 · write cs336_basics/second.py, then  pytest --task=second"
    )


def test_a_task_that_is_not_offered() -> None:
    """Catches a public submission that is told to write what it never promised."""
    tests = (TestResult(name="t", state=State.NOT_OFFERED, counted=False),)
    task = task_result(SECOND, [R], tests=tests, possible=0.0, state=State.NOT_OFFERED)
    assert terminal.state_text(task) == "not offered"
    assert terminal.next_step(suite_result(task), RUBRIC).startswith("Every point is earned")


@pytest.mark.parametrize(
    ("first", "second", "step"),
    [
        ([P, P, P], P, "Every point is earned: 4 of 4."),
        ([P, P, P], W, "Next: second · handout §2.1 · mend cs336_basics/second.py, then  "),
        ([P, P, R], W, "Next: first · handout §2.3 · run its tests, then  pytest --task=first"),
        ([C, P, S], W, "Next: first · handout §2.3 · mend cs336_basics/first.py, then  "),
        ([P, S, S], S, "Next: first · handout §2.3 · why, then  pytest --task=first"),
    ],
)
def test_the_next_step(first: list[State], second: State, step: str) -> None:
    """Catches advice on a later task than the first that isn't done, or on what isn't wrong."""
    result = suite_result(task_result(FIRST, first), task_result(SECOND, [second]))
    assert terminal.next_step(result, RUBRIC).startswith(step)


def test_an_explanation() -> None:
    """Catches a block without its test, its file or its section."""
    assert lines(suite_result(task_result(FIRST, [P, W, P]))) == [
        "first · test_first_1",
        "  why",
        "  more",
        "",
        "  your code: cs336_basics/first.py · handout §2.3",
        "",
    ]


def test_only_three_blocks_a_task_unless_asked() -> None:
    """Catches more than three blocks for a task, and a wrong number in "… and N more"."""
    result = suite_result(failing(5))
    assert "  … and 2 more: pytest --task=second" in lines(result)
    assert sum(line.startswith("second · ") for line in lines(result)) == 3
    assert sum(line.startswith("second · ") for line in lines(result, everything=True)) == 5


def failing(count: int, *diagnoses: Diagnosis) -> TaskResult:
    """The second task with so many failing tests, `t0` and on, and these diagnoses."""
    why = failure("no", clue="zero")
    tests = tuple(TestResult(name=f"t{i}", state=W, failure=why) for i in range(count))
    return task_result(SECOND, [W], tests=tests, diagnoses=diagnoses)


def test_one_diagnosis_above_the_tests_it_explains() -> None:
    """Catches a cause that is printed for each test, or that hides a test it does not explain."""
    cause = Diagnosis(tests=("t0", "t1", "t2"), task="second", sentences=("x",), nudge="Why?")
    block = lines(suite_result(failing(4, cause)))
    assert block == [
        "second · 3 tests fail",
        "  This is what comes out when x.",
        "  Ask yourself: Why?",
        "",
        "second · t0",
        "  no",
        "",
        "second · t3",
        "  a clue: zero",
        "  no",
        "",
        "  … and 2 more: pytest --task=second",
        "  your code: cs336_basics/second.py · handout §2.1",
        "",
    ]
    whole = lines(suite_result(failing(4, cause)), everything=True)
    assert whole.count("  This is what comes out when x.") == 1
    assert [line for line in whole if line.startswith("second · t")] == [
        f"second · t{i}" for i in range(4)
    ]


def test_a_diagnosis_that_says_nothing_takes_no_place() -> None:
    """Catches an empty heading, or a task of which one test is shown, where hints are off."""
    silent = Diagnosis(tests=("t0", "t1", "t2", "t3"), task="second", mistake="x")
    block = lines(suite_result(failing(4, silent)))
    assert [line for line in block if line.startswith("second")] == [
        f"second · t{i}" for i in range(3)
    ]
    assert "  … and 1 more: pytest --task=second" in block


def test_what_does_not_count_says_so_and_names_no_file() -> None:
    """Catches a public submission that is sent to a file it hasn't got."""
    aside = TestResult(name="t", state=W, counted=False, failure=failure("no"))
    result = suite_result(task_result(SECOND, [W], tests=(aside,)), layout="public")
    assert lines(result) == [
        "second · t  (shown, not counted)",
        "  no",
        "",
        "  handout §2.1",
        "",
    ]


def test_long_lines_are_wrapped_and_keep_their_indentation() -> None:
    """Catches a message that runs out of the window, or a frame that loses its place."""
    frame = Frame("adapters.py", 1, "f", "frame " * 30)
    long = TestResult(name="t", state=C, failure=failure("word " * 40, frames=(frame,)))
    block = lines(suite_result(task_result(SECOND, [C], tests=(long,))))
    assert max(map(len, block)) <= terminal.WIDTH
    assert block[-6].startswith("    adapters.py:1 in f: frame frame")
    assert block[-5].startswith("    frame frame")
    assert sum(line.startswith("  word") for line in block) == 3


def test_ascii_alone() -> None:
    """Catches a symbol that a terminal without Unicode shows as garbage, or dies of."""
    assert terminal.as_ascii("✓ ✗ ○ · – — − § × …") == "+ x o - - - - section  x ..."
    assert terminal.as_ascii("naïve 日") == "na?ve ?"
    for symbol in terminal.SYMBOLS.values():
        assert terminal.as_ascii(symbol) not in ("?", symbol)
