"""The suite as a student runs it: options, exit statuses, and what is printed."""

import re

import pytest

from staff.catalogue.patches import load_mistakes, patched
from staff.paths import ROOT
from staff.paths import SOLUTION as FOLDER
from staff.tests.support import EARNED, Run, run_suites, submission
from tests.harness.rubric import read_rubric

SOLUTION = "--submission=staff/solution"
MISTAKE = next(m for m in load_mistakes() if m.id == "rmsnorm-sum-over-axis-1")
PUBLIC = "--submission=staff/catalogue/alternates/public_layout"
OWN_TEST = '''
from tests.harness import task


@task("nope")
def test_of_my_own():
    """One."""
'''


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Every run that the tests below look at."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "test_own.py").write_text(OWN_TEST)
    glue = submission(folder / "glue", {"adapters.py": (ROOT / "adapters.py").read_text("utf-8")})
    wrong = patched([MISTAKE], FOLDER, folder / "wrong")
    return run_suites(
        {
            "stubs": [],
            "wrong": [f"--submission={wrong}", "--task=rmsnorm"],
            "solution": [SOLUTION],
            "rope": [SOLUTION, "--task=rope"],
            "typo": [SOLUTION, "--task=ropee"],
            "part": [SOLUTION, "-k", "matches_saved"],
            "public": [PUBLIC],
            "glue": [f"--submission={glue}", "--task=rope,linear"],
            "unlisted": ["--config-file=pyproject.toml", str(folder / "test_own.py")],
        }
    )


def points(run: Run, task: str) -> str:
    """What the table says about a task: symbol and points."""
    found = re.search(rf"^  (\S) {task} +([\d.]+ / \d+)", run.text, re.MULTILINE)
    return f"{found[1]} {found[2]}" if found else "not shown"


def test_no_run_shows_a_traceback(runs: dict[str, Run]) -> None:
    """Catches a run that ends with an error of the suite itself."""
    for name, run in runs.items():
        assert "Traceback" not in run.text, name
        assert "INTERNALERROR" not in run.text, name


def test_the_first_run(runs: dict[str, Run]) -> None:
    """Catches a first run that shows errors, or that doesn't say what to write first."""
    run = runs["stubs"]
    assert run.status == 1
    assert re.search(r"Part 1 · The model +0 / 30", run.text)
    assert (
        "Next: linear · handout §2.1 · write cs336_basics/linear.py, then  pytest --task=linear"
    ) in run.text
    for task in read_rubric().tasks:
        assert points(run, task.id) == f"○ 0 / {task.points:g}"
    assert "Error" not in run.text
    assert len(run.text.splitlines()) < 20 + len(read_rubric().tasks)


def test_the_last_run(runs: dict[str, Run]) -> None:
    """Catches a right solution that does not earn every point."""
    run = runs["solution"]
    assert run.status == 0
    assert EARNED in run.text
    for task in read_rubric().tasks:
        assert points(run, task.id) == f"✓ {task.points:g} / {task.points:g}"


def test_one_task_alone(runs: dict[str, Run]) -> None:
    """Catches other tasks that are run, shown or counted when one is asked for."""
    run = runs["rope"]
    assert run.status == 0
    assert "Every point is earned: 4 of 4." in run.text
    assert points(run, "rope") == "✓ 4 / 4"
    assert points(run, "linear") == "not shown"


def test_a_known_mistake_is_named_once(runs: dict[str, Run]) -> None:
    """Catches a sentence that is repeated for each failing test, or a mistake without a name."""
    text = " ".join(runs["wrong"].text.split())
    assert text.count(f"This is what comes out when {MISTAKE.sentence}.") == 1
    assert text.count(f"Ask yourself: {MISTAKE.nudge}") == 1
    assert "a clue:" not in text
    failing = re.findall(r"^rmsnorm · test_\w+$", runs["wrong"].text, re.MULTILINE)
    assert f"rmsnorm · {len(failing)} tests fail" in runs["wrong"].text
    assert len(failing) > 3


def test_a_slip_in_the_name_of_a_task(runs: dict[str, Run]) -> None:
    """Catches a misspelt task that runs every test, or none with exit status 0."""
    run = runs["typo"]
    assert run.status == 4
    assert run.text.strip() == "ERROR: no task is called 'ropee'; did you mean 'rope'?"


def test_a_part_of_a_task_does_not_earn_all_of_it(runs: dict[str, Run]) -> None:
    """Catches full points for the tests that `-k` left over."""
    run = runs["part"]
    assert run.status == 0
    rope = read_rubric().task("rope")
    assert points(run, "rope") == f"· {4 / len(rope.tests):.2g} / 4"
    assert f"1 of {len(rope.tests)} tests run" in run.text
    assert re.search(r"Next: linear · .* · run its tests, then  pytest --task=linear", run.text)


def test_a_public_submission(runs: dict[str, Run]) -> None:
    """Catches points lost, or a failing run, for promises that the public handout doesn't make."""
    run = runs["public"]
    assert run.status == 0
    assert "Every point is earned: " in run.text
    shown = run.text.partition("Part 1")[0]
    assert "attention · test_query_that_sees_nothing  (shown, not counted)" in shown
    assert shown.count(" · test_") == shown.count("(shown, not counted)")
    assert "add it to your adapters" not in run.text


def test_only_the_glue_is_missing(runs: dict[str, Run]) -> None:
    """Catches a student whose module works and who is told to write it."""
    run = runs["glue"]
    assert run.status == 1
    assert "`RotaryEmbedding` is written; fill in `run_rope` in adapters.py" in run.text
    step = (
        "Next: linear · handout §2.1 · "
        "`Linear` is written; fill in `run_linear` in adapters.py, then"
    )
    assert step in run.text
    assert points(run, "rope")[0] == "○"


def test_a_test_that_the_rubric_does_not_know(runs: dict[str, Run]) -> None:
    """Catches a graded test that silently counts for nothing, or for a task that isn't there."""
    run = runs["unlisted"]
    assert run.status == 4
    line = "::test_of_my_own is not listed under 'nope' in assignment.toml"
    assert run.text.strip().endswith(line)
