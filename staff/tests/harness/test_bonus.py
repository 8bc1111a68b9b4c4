"""Bonus points: counted apart, offered when the rest is done, and never held against anybody."""

import io
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace
from rich.console import Console

from staff.grader.grade import Grade
from staff.grader.scratch.findings import enforced
from staff.grader.scratch.model import ScratchFinding
from staff.release import stubs
from staff.reports import gradescope, junit, markdown, page, table, text, write_reports
from staff.tests.support import (
    Run,
    grade_of,
    run_suites,
    small_rubric,
    submission,
    suite_result,
    task_result,
)
from tests.harness import terminal
from tests.harness.errors import RubricError
from tests.harness.results import Points, State, TaskResult, TestResult
from tests.harness.rubric import RUBRIC_FILE, read_rubric
from tests.harness.scoring import Scoreboard

P, W, S = State.PASSED, State.WRONG, State.NOT_STARTED
RUBRIC = small_rubric(bonus=True)
FIRST, SECOND, EXTRA = RUBRIC.tasks
CORE = (task_result(FIRST, [P] * 3), task_result(SECOND, [P]))
THIRD_IS_BONUS = """
from msgspec.structs import replace
from tests.harness import plugin

rubric = plugin.read_rubric()
parts = tuple(replace(part, bonus=part.number >= 3) for part in rubric.parts)
plugin.read_rubric = lambda: replace(rubric, parts=parts)
"""
OFFER = "For a bonus: extra · handout §2.2 · why, then  pytest --task=extra"


def extra(*states: State) -> TaskResult:
    """The result of the bonus task."""
    return task_result(EXTRA, states, bonus=True)


ALL, TRIED, UNBEGUN = extra(P, P), extra(P, W), extra(S, S)


def shown(*grades: Grade) -> list[str]:
    """The table of submissions, its lines without their spaces."""
    screen = io.StringIO()
    Console(file=screen, width=100).print(table(list(grades)))
    return [" ".join(line.split()) for line in screen.getvalue().splitlines()]


@pytest.mark.parametrize(("last", "bonus"), [(P, 2), (W, 1), (S, 1)])
def test_bonus_points_are_counted_apart(last: State, bonus: float) -> None:
    """Catches a bonus that lifts or lowers the share of the points that everybody needs."""
    board = Scoreboard(RUBRIC)
    for task in RUBRIC.tasks:
        for name in task.tests:
            board.record(task.id, TestResult(name=name, state=P))
    board.record("extra", TestResult(name=EXTRA.tests[-1], state=last))
    result = board.result("ours")
    assert (result.earned, result.possible) == (4, 4)
    assert result.bonus == Points(earned=bonus, possible=2)
    assert [task.bonus for task in result.tasks] == [False, False, True]


def test_no_task_needs_a_bonus(tmp_path: Path) -> None:
    """Catches a task that requires one of a bonus, which everybody would then have to do."""
    rubric = RUBRIC_FILE.read_text("utf-8")
    assert read_rubric().bonus == {t.id for t in read_rubric().tasks if t.part == 4}
    file = tmp_path / "assignment.toml"
    file.write_text(rubric.replace('title = "The model"', 'title = "The model"\nbonus = true'))
    with pytest.raises(RubricError, match=r"^task '\w+' requires '\w+', which is a bonus$"):
        read_rubric(file)


@pytest.mark.parametrize(
    ("tasks", "step"),
    [
        ((*CORE, UNBEGUN), f"Every point is earned: 4 of 4.\n{OFFER}"),
        ((*CORE, ALL), "Every point is earned: 4 of 4.\nEvery bonus point is earned: 2 of 2."),
        (
            (*CORE, TRIED),
            "Every point is earned: 4 of 4.\nFor a bonus: extra · handout §2.2 · mend "
            "cs336_basics/extra.py, then  pytest --task=extra",
        ),
        (
            (CORE[0], task_result(SECOND, [W]), TRIED),
            "Next: second · handout §2.1 · mend cs336_basics/second.py, then  pytest --task=second",
        ),
        ((UNBEGUN,), OFFER),
        ((ALL,), "Every bonus point is earned: 2 of 2."),
    ],
)
def test_the_bonus_comes_last(tasks: tuple[TaskResult, ...], step: str) -> None:
    """Catches a bonus that is offered before the rest is done, or that hides that it is."""
    assert terminal.next_step(suite_result(*tasks), RUBRIC) == step
    early = suite_result(*reversed(tasks))
    assert terminal.next_step(early, RUBRIC) == step


def test_the_table() -> None:
    """Catches a bonus that the table shows like any other part."""
    lines = [line for line, _ in terminal.table(suite_result(*CORE, TRIED), RUBRIC)]
    assert "  Part 1 · The part" + " " * 32 + "4 / 4 " in lines
    assert "  Part 2 · On top (bonus)" + " " * 26 + "1 / 2 " in lines


def test_every_report_shows_it_apart(tmp_path: Path) -> None:
    """Catches a report in which the share changes, or which keeps silent about the bonus."""
    grade = grade_of(*CORE, TRIED)
    write_reports(grade, RUBRIC, tmp_path)
    assert markdown(grade, RUBRIC).startswith("## ada: 4 / 4 points (100 %), bonus 1 / 2\n")
    for report in (text(grade, RUBRIC), markdown(grade, RUBRIC), page(grade, RUBRIC)):
        assert "Part 2 · On top" in report
        assert "Every point is earned" in report
        assert "For a bonus" in report
        assert "test_extra_1" in report
    assert ">100 %<" in page(grade, RUBRIC)
    assert "1 of 2</span>" in page(grade, RUBRIC)
    assert "Every point is earned, and every bonus point." in page(grade_of(*CORE, ALL), RUBRIC)
    for write in (text, markdown, page):
        whole = write(grade_of(*CORE), small_rubric()).partition("<body>")
        assert "onus" not in (whole[2] or whole[0])


def test_the_table_of_submissions() -> None:
    """Catches a column of nothing where there is no bonus, and unbegun tasks that are held up."""
    grades = [grade_of(*CORE, it, name=n) for it, n in ((ALL, "a"), (TRIED, "b"), (UNBEGUN, "c"))]
    assert shown(*grades, grade_of(problem="no")) == [
        "submission points share bonus state",
        "a 4 / 4 100 % 2 / 2 ✓",
        "b 4 / 4 100 % 1 / 2 extra: wrong",
        "c 4 / 4 100 % 0 / 2 ✓",
        "ada — — — could not be graded: no",
    ]
    assert shown(grade_of(*CORE))[0] == "submission points share state"


def test_extra_credit_on_gradescope() -> None:
    """Catches a bonus that raises what can be had, or one that lowers the total when unbegun."""
    for it, score, status in ((ALL, 2, "passed"), (TRIED, 1, "failed"), (UNBEGUN, 0, None)):
        report = json.loads(json.dumps(gradescope(grade_of(*CORE, it), RUBRIC)))
        *_, entry = report["tests"]
        assert sum(test.get("score", 0) for test in report["tests"]) == 4 + score
        assert sum(test.get("max_score", 0) for test in report["tests"]) == 4
        assert entry["name"] == f"extra · Extra (bonus: {score} of 2)"
        assert entry["tags"] == ["part-2", "bonus"]
        assert entry.get("status") == status
        assert ("score" in entry) is (it is not UNBEGUN)


def test_ci_stays_green_where_no_bonus_was_begun() -> None:
    """Catches a failed build where no bonus was begun, and a passed one where a bonus is wrong."""
    for it, outcome in ((UNBEGUN, "skipped"), (TRIED, "failure")):
        root = ET.fromstring(junit(grade_of(*CORE, it), RUBRIC))
        assert root[2].findall("properties/property[@name='bonus']")[0].get("value") == "true"
        assert root[2][-1][0].tag == outcome
        assert (root.get("failures") == "0") is (it is UNBEGUN)


def test_hidden_and_enforced_points() -> None:
    """Catches a bonus that moves to the others where points are summed up once more."""
    found = ScratchFinding(file="f.py", line=1, name="x", how="read", tasks=("extra", "second"))
    taken = enforced(suite_result(*CORE, ALL), [found])
    assert (taken.earned, taken.possible, taken.bonus) == (3, 4, Points(earned=0, possible=2))
    hidden = replace(RUBRIC, tasks=(FIRST, SECOND, replace(EXTRA, visibility="hidden")))
    assert "For a bonus" not in gradescope(grade_of(*CORE, UNBEGUN), hidden)["output"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Runs of the suite in which the tokenizer is a bonus."""
    folder = tmp_path_factory.mktemp("bonus")
    (folder / "third_is_bonus.py").write_text(THIRD_IS_BONUS)
    unbegun, wrong = submission(folder / "unbegun"), submission(folder / "wrong")
    rubric = read_rubric()
    unwritten = [task.id for task in rubric.tasks if task.part == 3]
    stubs.write(stubs.cut(unbegun, rubric, unwritten), unbegun)
    file = wrong / "cs336_basics/tokenizer.py"
    file.write_text(file.read_text("utf-8") + "\n\ndel Tokenizer.decode\n", "utf-8")
    options = ["-p", "third_is_bonus"]
    of_public = "--submission=staff/catalogue/alternates/public_layout"
    lists = {
        "unbegun": [*options, f"--submission={unbegun}"],
        "asked for": [*options, f"--submission={unbegun}", "--task=tokenizer"],
        "wrong": [*options, f"--submission={wrong}"],
        "public": [*options, of_public],
    }
    return run_suites(lists, {name: {"PYTHONPATH": str(folder)} for name in lists})


def test_nobody_fails_for_a_bonus_that_was_not_begun(runs: dict[str, Run]) -> None:
    """Catches exit status 1 for what nobody needs, or 0 for what was asked for by name."""
    assert runs["unbegun"].status == 0
    assert "For a bonus: train_bpe · handout" in runs["unbegun"].text
    assert "Part 3 · The tokenizer (bonus)" in runs["unbegun"].text
    assert runs["asked for"].status == 1


def test_a_bonus_that_is_wrong_fails(runs: dict[str, Run]) -> None:
    """Catches a wrong answer in a bonus task that passes."""
    assert runs["wrong"].status == 1
    assert "tokenizer · test_decode_matches_saved_texts" in runs["wrong"].text
    assert "Every point is earned" in runs["wrong"].text


def test_a_public_submission_is_offered_no_bonus(runs: dict[str, Run]) -> None:
    """Catches bonus points, or an open task, for what the public handout never asked."""
    assert runs["public"].status == 0
    assert "bonus point" not in runs["public"].text
    assert "For a bonus" not in runs["public"].text
    assert "○" not in runs["public"].text
    assert "0 / 0    not offered" in runs["public"].text
