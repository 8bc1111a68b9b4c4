"""Every submission gets a grade, or a message that says why it has none."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from staff.grader import run
from staff.grader.grade import Grade, Settings
from staff.grader.intake import opened
from staff.grader.run import Grading, grade_all, unique_names
from staff.grader.sandbox import choose
from staff.paths import SOLUTION
from staff.runner.jobs import SuiteRun
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
    """Return how to grade: on these cases, in the strongest sandbox that works here."""
    return Grading(rubric=read_rubric(), cases=cases, backend=choose("auto"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder for the submissions, the modules of `EVIL` and a copy of the cases."""
    return tmp_path_factory.mktemp("grade")


@pytest.fixture(scope="module")
def environment(folder: Path) -> Iterator[None]:
    """Set variables and enter a folder of modules that would change what Python and pytest do."""
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
def grades(folder: Path, environment: None) -> dict[str, Grade]:
    """Grade a zip of the solution, a submission that ends its process, and a damaged zip."""
    submission(folder / "top/ada")
    whole = shutil.make_archive(str(folder / "whole"), "zip", folder / "top")
    dying = submission(folder / "dying", {"cs336_basics/rope.py": DYING})
    broken = folder / "broken.zip"
    broken.write_bytes(Path(whole).read_bytes()[:5000])
    return {g.submission: g for g in grade_all([Path(whole), dying, broken], how())}


def test_a_zip_of_the_solution_earns_everything(grades: dict[str, Grade]) -> None:
    """Catches a package that is not found because a zip has one folder at its top."""
    result = grades["whole"].run.result
    assert result is not None
    assert (result.earned, result.possible, result.layout) == (POINTS, POINTS, "ours")
    assert 0 < grades["whole"].run.seconds < 120
    assert grades["whole"].fixtures == "fixtures"


def test_the_environment_has_no_say(grades: dict[str, Grade]) -> None:
    """Catches a grade that depends on PYTHONPATH, a variable of pytest or the current folder."""
    run = grades["whole"].run
    assert run.problem is None
    assert run.result is not None
    assert all(task.complete for task in run.result.tasks)


def test_a_process_that_dies_is_no_zero(grades: dict[str, Grade]) -> None:
    """Catches a grade of 0 points, or a grader that hangs, if a submission ends its process."""
    dying = grades["dying"]
    assert not dying.graded
    assert str(dying.run.problem).startswith("the submission ended its process")


def test_an_archive_that_cannot_be_read_is_no_zero(grades: dict[str, Grade]) -> None:
    """Catches a damaged zip that stops the batch, or that gets a grade."""
    assert not grades["broken"].graded
    assert str(grades["broken"].run.problem).startswith("broken.zip is not a readable zip: ")


def test_every_decision_reaches_the_run() -> None:
    """Catches a setting (seed, device or hints) that is missing in the job that runs the suite."""
    told = Settings(seed="7", device="cuda:1", hints="off")
    grading = Grading(rubric=read_rubric(), cases=FIXTURES, backend=choose("mock"), **told.settings)
    job = grading.job("ada", SOLUTION, 0, None)
    assert (job.seed, job.device, job.hints) == ("7", "cuda:1", "off")


DEEP = {
    "sum": f"def total(a):\n    return {'+'.join(['a'] * 1500)}",
    "attributes": f"def inner(a):\n    return a{'.b' * 2500}",
    "text": f"name = getattr(str, {'+'.join(repr('b') for _ in range(1500))})",
    "signs": f"NUMBER = {'-' * 50_000}1",
}


@pytest.mark.parametrize("what", DEEP)
def test_code_that_nests_deep_stops_no_batch(tmp_path: Path, what: str) -> None:
    """Catches a grader whose own stack overflows while it reads deeply nested code."""
    deep = submission(tmp_path / "deep", added={"adapters.py": DEEP[what]})
    grading = Grading(rubric=read_rubric(), cases=FIXTURES, backend=choose("mock"))
    with opened(deep) as intake:
        [finding] = grading.grade("deep", SuiteRun(), intake).scratch
    assert str(finding) == (
        "adapters.py:1 could use anything through code that nests too deep to be read"
    )


def test_a_fault_of_the_grader_costs_one_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches an error of the grader on one submission that stops the whole batch."""
    monkeypatch.setattr(run, "findings", lambda *_: [][0])
    grading = Grading(rubric=read_rubric(), cases=FIXTURES, backend=choose("mock"))
    with opened(submission(tmp_path / "ada")) as intake:
        grade = grading.grade("ada", SuiteRun(), intake)
    assert grade.run.problem == (
        "the grader failed on this submission (IndexError: list index out of range); "
        "report this error of the grader"
    )


def test_damaged_fixtures_stop_the_batch(folder: Path) -> None:
    """Catches a grade that is made although a file of saved cases is damaged."""
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
def test_names_are_unique(paths: list[str], names: list[str]) -> None:
    """Catches two submissions with the same name, whose reports overwrite each other."""
    assert unique_names([Path(path) for path in paths]) == names
