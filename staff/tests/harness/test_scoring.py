"""The scoreboard: points for what passed, among what counts, and nothing for what wasn't run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staff.tests.support import BONUS, POINTS, failure, small_rubric, thorough
from tests.harness.results import State, TaskResult, TestResult, percent_text, points_text
from tests.harness.rubric import read_rubric
from tests.harness.scoring import Scoreboard

P, W, C, S = State.PASSED, State.WRONG, State.CRASHED, State.NOT_STARTED


def scored(*states: State, counted: tuple[bool, ...] = (True, True, True)) -> TaskResult:
    """The result of the task `first`, whose three tests ended like this."""
    board = Scoreboard(small_rubric())
    for i, (state, counts) in enumerate(zip(states, counted, strict=False)):
        board.record("first", TestResult(name=f"test_first_{i}", state=state, counted=counts))
    return board.result("ours").tasks[0]


@pytest.mark.parametrize(
    ("states", "earned", "state"),
    [
        ([P, P, P], 3, P),
        ([P, P, W], 2, W),
        ([P, S, W], 1, W),
        ([C, W, W], 0, C),
        ([S, S, S], 0, S),
        ([P, P], 2, State.NOT_RUN),
        ([], 0, State.NOT_RUN),
    ],
)
def test_points_are_shared_equally(states: list[State], earned: float, state: State) -> None:
    """Catches another share than passed / counted, and a state that hides a graver one."""
    task = scored(*states)
    assert (task.earned, task.possible, task.state) == (earned, 3, state)
    assert task.complete is (earned == 3)
    assert len(task.tests) == 3


def test_what_does_not_count_is_kept_but_not_scored() -> None:
    """Catches a promise of ours that costs a public submission points, or that earns some."""
    task = scored(P, W, W, counted=(True, True, False))
    assert (task.earned, task.possible) == (1.5, 3)
    assert [test.name for test in task.counted] == ["test_first_0", "test_first_1"]
    aside = scored(W, P, P, counted=(True, True, False))
    assert (aside.earned, aside.state) == (1.5, W)
    passed = scored(P, P, W, counted=(True, True, False))
    assert (passed.earned, passed.state, passed.complete) == (3, P, True)


def test_a_task_without_a_counted_test_is_worth_nothing() -> None:
    """Catches points that nobody could earn, or a division by zero."""
    task = scored(W, P, P, counted=(False, False, False))
    assert (task.earned, task.possible, task.state) == (0, 0, W)
    assert task.complete


@pytest.mark.parametrize("order", [(P, W), (W, P)])
def test_a_failure_stays(order: tuple[State, State]) -> None:
    """Catches parameters or phases of one test of which the last, or the best, wins."""
    board = Scoreboard(small_rubric())
    for i, state in enumerate(order):
        result = TestResult(name="test_second_0", state=state, failure=failure(str(i)))
        board.record("second", result)
    board.record("second", TestResult(name="test_second_0", state=C, failure=failure("later")))
    only = board.result("ours").tasks[1].tests[0]
    assert (only.state, only.failure) == (W, failure(str(order.index(W))))


def test_the_whole_is_the_sum() -> None:
    """Catches a total of all tasks where one was chosen, or a lost layout."""
    rubric = small_rubric()
    every, chosen = Scoreboard(rubric), Scoreboard(rubric, ["second"])
    for board in (every, chosen):
        board.record("second", TestResult(name="test_second_0", state=P))
    result = every.result("public")
    assert (result.earned, result.possible, result.layout) == (1, 4, "public")
    assert [task.id for task in chosen.result("ours").tasks] == ["second"]
    assert chosen.result("ours").possible == 1


def test_results_of_unknown_tests_earn_nothing() -> None:
    """Catches a test of the submission's own making that is counted among ours."""
    board = Scoreboard(small_rubric())
    board.record("second", TestResult(name="test_mine", state=P))
    board.record("third", TestResult(name="test_second_0", state=P))
    assert board.result("ours").earned == 0


@thorough
@given(st.data())
def test_full_points_mean_that_every_test_passed(data: st.DataObject) -> None:
    """Catches rounding that lets a failed test keep full points, or a passed suite lose some."""
    rubric = read_rubric()
    board = Scoreboard(rubric)
    failing = data.draw(
        st.sampled_from([(t.id, n) for t in rubric.tasks for n in t.tests] + [None])
    )
    for task in rubric.tasks:
        for name in task.tests:
            state = W if (task.id, name) == failing else P
            board.record(task.id, TestResult(name=name, state=state))
    result = board.result("ours")
    on_top = failing is not None and failing[0] in rubric.bonus
    whole = failing is None or on_top
    assert (result.possible, result.bonus.possible) == (POINTS, BONUS)
    assert (result.earned == POINTS) is whole
    assert (percent_text(result.earned, POINTS) == "100 %") is whole
    assert points_text(result.earned) != points_text(POINTS) or whole
    assert (result.bonus.earned == BONUS) is not on_top


@pytest.mark.parametrize(
    ("points", "text"),
    [(3, "3"), (1.5, "1.5"), (8 / 3, "2.67"), (0, "0"), (10.0, "10"), (100, "100"), (0.1, "0.1")],
)
def test_points_are_written_short(points: float, text: str) -> None:
    """Catches `3.00`, and `1` for ten points whose zero was stripped."""
    assert points_text(points) == text


@pytest.mark.parametrize(
    ("earned", "possible", "text"),
    [(30, 30, "100 %"), (29.99, 30, "99 %"), (0, 30, "0 %"), (0, 0, "0 %"), (8.7, 30, "29 %")],
)
def test_percent_is_rounded_down(earned: float, possible: float, text: str) -> None:
    """Catches 100 % for less than every point, and a share that floats make one smaller."""
    assert percent_text(earned, possible) == text
