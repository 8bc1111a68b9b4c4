"""Grading: every submission comes to a grade or a reason, and nothing around it has a say."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from staff.grader.grade import Grade
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
    ],
)
def test_names_are_unique(paths, names):
    """Catches two submissions whose reports overwrite each other."""
    assert unique_names([Path(path) for path in paths]) == names
