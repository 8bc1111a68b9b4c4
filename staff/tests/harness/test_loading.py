"""Loading: only the submission's own code is graded, and what fails is said in one line."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tests
from staff.catalogue.patches import FOLDER
from staff.paths import ROOT, SOLUTION
from staff.tests.support import clean_imports, submission
from tests.harness.errors import SubmissionError
from tests.harness.in_process import InProcess
from tests.harness.submission import locate

EVERY = "cs336_basics/__init__.py"


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    with clean_imports():
        yield


def failure(folder: Path) -> str:
    """The line with which a submission is refused."""
    with pytest.raises(SubmissionError) as caught:
        InProcess(locate(folder))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_layouts(tmp_path: Path) -> None:
    """Catches a layout taken for the other, and a folder that is refused without help."""
    public = locate(FOLDER / "alternates/public_layout")
    assert (public.layout, public.adapters_file.name) == ("public", "adapters.py")
    assert locate(SOLUTION).layout == locate(ROOT).layout == "ours"
    for folder, text in (
        (tmp_path / "none", "is not a folder; expected one that holds cs336_basics/"),
        (tmp_path, "has no cs336_basics/ folder; the package goes there"),
        (FOLDER, "has no cs336_basics/ folder; the package goes there"),
    ):
        assert failure(folder) == f"{folder} {text}"
    (tmp_path / "cs336_basics").mkdir()
    has_neither = "has neither adapters.py nor tests/adapters.py; one must hold the adapters"
    assert failure(tmp_path) == f"{tmp_path} {has_neither}"


@pytest.mark.parametrize("name", ["rope", "softmax", "linear"])
def test_what_is_missing_is_not_taken_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Catches the root's stubs, or the solution, filling a gap of the submission."""
    folder = submission(tmp_path / "s")
    (folder / f"cs336_basics/{name}.py").unlink()
    for other in (ROOT, SOLUTION):
        monkeypatch.syspath_prepend(other)
    text = failure(folder)
    assert text.startswith("ModuleNotFoundError in ")
    assert text.endswith(f": the submission has no cs336_basics/{name}.py")


def test_a_package_without_init_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a namespace package that is joined from the folders of several submissions."""
    folder = submission(tmp_path / "s")
    (folder / EVERY).unlink()
    for other in (ROOT, SOLUTION):
        monkeypatch.syspath_prepend(other)
    InProcess(locate(folder))
    assert list(sys.modules["cs336_basics"].__path__) == [str(folder / "cs336_basics")]


FAILURES = {
    "syntax": (
        "cs336_basics/rope.py",
        "x = (",
        "SyntaxError in cs336_basics/rope.py, line 1: '(' was",
    ),
    "exit": (EVERY, "import sys\nsys.exit(0)", f"SystemExit in {EVERY}, line 2: 0"),
    "pytest.skip": (EVERY, "import pytest\npytest.skip('x')", f"Skipped in {EVERY}, line 2: x"),
    "pytest.exit": (EVERY, "import pytest\npytest.exit('x')", f"Exit in {EVERY}, line 2: x"),
    "no package": (
        EVERY,
        "import no_such_thing",
        "ModuleNotFoundError in cs336_basics/__init__.py",
    ),
    "many lines": (EVERY, "raise ValueError('a\\nb')", f"ValueError in {EVERY}, line 1: a"),
    "no text": (
        EVERY,
        "class E(Exception):\n    def __str__(self):\n        return 1\nraise E",
        f"E in {EVERY}, line 4: (no text: str() raised TypeError)",
    ),
    "surrogate": (
        EVERY,
        "raise ValueError('\\ud800\\x1b[2J')",
        f"{EVERY}, line 1: \\ud800\\x1b[2J",
    ),
    "a name": (
        "adapters.py",
        "from cs336_basics.rope import nothing",
        "ImportError in adapters.py, ",
    ),
}


@pytest.mark.parametrize("what", FAILURES)
def test_a_failure_is_one_line_of_the_student(tmp_path: Path, what: str) -> None:
    """Catches a traceback, a line number of ours, or a submission that ends the run."""
    file, text, expected = FAILURES[what]
    assert expected in failure(submission(tmp_path / "s", {file: text}))


def test_the_version_of_the_public_package(tmp_path: Path) -> None:
    """Catches a refusal of the public `__init__.py`, which asks for its installed version."""
    text = "import importlib.metadata\n__version__ = importlib.metadata.version('cs336_basics')"
    folder = submission(tmp_path / "s", {EVERY: text})
    InProcess(locate(folder))
    assert sys.modules["cs336_basics"].__version__ == "0"


def test_a_module_from_elsewhere_is_refused(tmp_path: Path) -> None:
    """Catches a submission that imports a package from outside its own folder."""
    elsewhere = submission(tmp_path / "elsewhere") / "cs336_basics"
    folder = submission(tmp_path / "s", {EVERY: f"__path__.insert(0, {str(elsewhere)!r})"})
    line = r"cs336_basics\.(\w+) was imported from outside the submission: (.*)"
    found = re.fullmatch(line, failure(folder))
    assert found is not None
    assert found[2] == f"{elsewhere}/{found[1]}.py"


def test_the_public_tests_folder() -> None:
    """Catches helpers of a public submission that aren't found, or its `conftest.py` imported."""
    public = locate(FOLDER / "alternates/public_layout")
    InProcess(public)
    assert sys.modules["tests"] is tests
    helpers = sys.modules[sys.modules["tests.adapters"].weights_under.__module__]
    assert helpers.__file__ == str(public.root / "tests/common.py")
    assert not any("public_layout/tests/conftest" in str(m) for m in sys.modules.values())
