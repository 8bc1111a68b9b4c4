"""Fresh cases: other inputs, the same limits, and words that a student can repeat."""

import pytest

from staff.fixtures import fresh
from staff.fixtures.draft import write_files
from staff.grader.fresh import ONLY_SAVED, in_words_of
from staff.tests.support import clean_imports, small_rubric, suite_result, task_result
from tests.harness.fixtures import FIXTURES, SEALS, Fixtures
from tests.harness.results import State
from tests.harness.rubric import read_rubric

P, W = State.PASSED, State.WRONG


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A folder of fresh cases, and the cases that stayed the saved ones."""
    folder = tmp_path_factory.mktemp("fresh")
    with clean_imports():
        files, stayed = fresh.fresh_files(FIXTURES, "a seed")
    write_files(files, folder)
    return Fixtures(folder), stayed


def test_every_saved_case_has_a_fresh_one(drawn):
    """Catches a case that is lost, or one under another limit."""
    new, stayed = drawn
    assert stayed == []
    for task in read_rubric().tasks:
        old = Fixtures(FIXTURES).task(task.id)
        assert list(new.task(task.id)) == list(old)
        for test, cases in old.items():
            found = [(case.name, case.limit) for case in new.task(task.id)[test]]
            assert found == [(case.name, case.limit) for case in cases]


def test_a_case_without_room_stays_and_is_told(drawn, monkeypatch):
    """Catches a fresh case that a right answer could miss, and silence about one that stayed."""
    room = fresh._has_room
    monkeypatch.setattr(fresh, "DRAWS", 2)
    monkeypatch.setattr(
        fresh, "_has_room", lambda case, *rest: case.test != "test_any_axis" and room(case, *rest)
    )
    with clean_imports():
        files, stayed = fresh.fresh_files(FIXTURES, "a seed")
    names = [case.name for case in Fixtures(FIXTURES).task("softmax")["test_any_axis"]]
    assert [line for line in stayed if line.startswith("softmax")] == [
        f"softmax · test_any_axis · {name}" for name in names
    ]
    assert SEALS in files


def test_words_come_from_the_saved_cases():
    """Catches a message that a student can't repeat, and points that it would change."""
    (task, *_) = small_rubric().tasks
    states = [W] * len(task.tests)
    new = suite_result(task_result(task, states))
    right = suite_result(task_result(task, [P] * len(task.tests)))
    told = in_words_of(new, right)
    assert told.earned == new.earned
    assert all(test.lines[0] == ONLY_SAVED for test in told.tasks[0].tests)
    assert in_words_of(new, new) == new
