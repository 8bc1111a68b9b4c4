"""Grading: every submission comes to a grade or a reason, and nothing around it has a say."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from staff.grader import run
from staff.grader.grade import Grade, SuiteRun
from staff.grader.intake import opened
from staff.grader.run import Grading, grade_all, unique_names
from staff.grader.sandbox import choose
from staff.paths import SOLUTION
from staff.tests.support import POINTS, submission
from tests.harness.errors import HarnessError
from tests.harness.fixtures import FIXTURES
from tests.harness.rubric import read_rubric

DYING = "import os\n\nos._exit(7)"
EVIL = {
    "tests/__init__.py": "raise SystemExit(3)",
    "sitecustomize.py": "raise SystemExit(4)",
    "msgspec.py": "raise SystemExit(5)",
    "conftest.py": "raise SystemExit(6)",
}


def how(cases: Path = FIXTURES) -> Grading:
    """Grade on saved cases, in the strongest sandbox that there is."""
    return Grading(rubric=read_rubric(), cases=cases, backend=choose("auto"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where the submissions and what they leave behind are."""
    return tmp_path_factory.mktemp("grade")


@pytest.fixture(scope="module")
def environment(folder) -> Iterator[None]:
    """Variables and a folder of modules that would change what Python and pytest do."""
    for name, text in EVIL.items():
        (folder / "evil" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "evil" / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder / "evil"))
        patch.setenv("PYTHONSTARTUP", str(folder / "evil/conftest.py"))
        patch.setenv("PYTEST_ADDOPTS", "--task=rope -x --no-such-option")
        patch.setenv("PYTEST_PLUGINS", "no_such_plugin")
        patch.chdir(folder / "evil")
        yield


@pytest.fixture(scope="module")
def grades(folder, environment) -> dict[str, Grade]:
    """A whole solution in a zip with one folder at its top, and a submission that dies."""
    submission(folder / "top/ada")
    whole = shutil.make_archive(str(folder / "whole"), "zip", folder / "top")
    dying = submission(folder / "dying", {"cs336_basics/rope.py": DYING})
    broken = folder / "broken.zip"
    broken.write_bytes(Path(whole).read_bytes()[:5000])
    return {g.submission: g for g in grade_all([Path(whole), dying, broken], how())}


def test_a_zip_of_the_solution_earns_everything(grades):
    """Catches a folder at the top of a zip that hides the package."""
    result = grades["whole"].run.result
    assert (result.earned, result.possible, result.layout) == (POINTS, POINTS, "ours")
    assert 0 < grades["whole"].run.seconds < 120
    assert grades["whole"].fixtures == "fixtures"


def test_the_environment_has_no_say(grades):
    """Catches PYTEST_ADDOPTS, PYTEST_PLUGINS, PYTHONPATH or the folder changing a grade."""
    assert grades["whole"].run.problem is None
    assert all(task.complete for task in grades["whole"].run.result.tasks)


def test_a_process_that_dies_is_no_zero(grades):
    """Catches a zero, or a hanging grader, where a submission ends its process."""
    dying = grades["dying"]
    assert not dying.graded
    assert dying.run.problem.startswith("the submission ended its process")


def test_an_archive_that_cannot_be_read_is_no_zero(grades):
    """Catches one damaged zip that stops the grading of all the others."""
    assert not grades["broken"].graded
    assert grades["broken"].run.problem.startswith("broken.zip is not a readable zip: ")


def test_every_decision_reaches_the_run():
    """Catches a seed, a device or a level of hints that is asked for and then forgotten."""
    told = {"seed": "7", "device": "cuda:1", "hints": "off"}
    job = Grading(rubric=read_rubric(), cases=FIXTURES, backend=choose("mock"), **told).job(
        "ada", SOLUTION, 0, None
    )
    assert {name: getattr(job, name) for name in told} == told


DEEP = {
    "sum": f"def total(a):\n    return {'+'.join(['a'] * 1500)}",
    "attributes": f"def inner(a):\n    return a{'.b' * 2500}",
    "text": f"name = getattr(str, {'+'.join(repr('b') for _ in range(1500))})",
    "signs": f"NUMBER = {'-' * 50_000}1",
}


@pytest.mark.parametrize("what", DEEP)
def test_code_that_nests_deep_stops_no_batch(tmp_path, what):
    """Catches a grader that follows a submission's text until its own stack is full."""
    deep = submission(tmp_path / "deep", added={"adapters.py": DEEP[what]})
    grading = Grading(rubric=read_rubric(), cases=FIXTURES, backend=choose("mock"))
    with opened(deep) as intake:
        [finding] = grading.grade("deep", SuiteRun(), intake).scratch
    assert str(finding) == (
        "adapters.py:1 could use anything through code that nests too deep to be read"
    )


def test_a_fault_of_ours_costs_one_submission(tmp_path, monkeypatch):
    """Catches one submission that finds a fault of the grader's, and stops it for all others."""
    monkeypatch.setattr(run, "findings", lambda *_: [][0])
    grading = Grading(rubric=read_rubric(), cases=FIXTURES, backend=choose("mock"))
    with opened(submission(tmp_path / "ada")) as intake:
        grade = grading.grade("ada", SuiteRun(), intake)
    assert grade.run.problem == (
        "the grader failed on this submission (IndexError: list index out of range); "
        "report this error of the grader"
    )


def test_damaged_fixtures_stop_the_batch(folder):
    """Catches points lost to a damaged file of ours."""
    cases = shutil.copytree(FIXTURES, folder / "cases")
    (cases / "rope.safetensors").write_bytes(b"")
    with pytest.raises(HarnessError, match="the suite ran for 0 of 1 submissions, then stopped"):
        list(grade_all([SOLUTION], how(cases)))


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a", "b"], ["a", "b"]),
        (["x/a", "y/a.zip", "z/a"], ["a", "a-2", "a-3"]),
        (["a-2.zip", "x/a", "y/a"], ["a-2", "a", "a-3"]),
        (["x/a", "y/a", "a-2.zip"], ["a", "a-2", "a-2-2"]),
        (["x/Ada", "ada.zip", "y/ａda"], ["Ada", "ada-2", "ａda-3"]),
        (["batch.json.zip", "x/Batch.json.zip"], ["batch.json-2", "Batch.json-3"]),
        (["x" * 255, "y/" + "x" * 255], ["x" * 120, "x" * 120 + "-2"]),
        (["\x1b" * 200 + ".zip", "é" * 100], ["\\x1b" * 30, "é" * 60]),
    ],
)
def test_names_are_unique(paths, names):
    """Catches reports that overwrite each other, or a name that stops the whole batch."""
    assert unique_names([Path(path) for path in paths]) == names
