"""Intake copies the package, the adapters and the modules that these import."""

from pathlib import Path

import pytest

from staff.catalogue.patches import FOLDER as CATALOGUE
from staff.grader.intake import opened
from staff.paths import ROOT, SOLUTION
from staff.tests.grader.intake.packing import contents, left_out, put, write_tar, write_zip

TWO = {"cs336_basics/__init__.py": "", "adapters.py": ""}


def test_what_is_taken(tmp_path: Path) -> None:
    """Catches a needed file that is not copied, or a file that is copied and not needed."""
    files = {
        **TWO,
        "adapters.py": "from helpers.deep import f\nimport alone\nimport torch, json",
        "helpers/__init__.py": "from . import near",
        "helpers/near.py": "import other",
        "helpers/deep/__init__.py": "",
        "helpers/notes.txt": "",
        "alone.py": "if True:\n    import later as l",
        "later.py": "def f():\n    import alone\n    from .. import x",
        "other.py": "",
        "unused.py": "",
        "cs336_basics/data/größe.json": "{}",
        "cs336_basics/model.py": "from cs336_basics import data",
        "cs336_basics/.hidden": "",
        "cs336_basics/__pycache__/model.pyc": "",
        "cs336_basics/x.pth": "import os",
        "torch.py": "raise SystemExit",
        "json/__init__.py": "raise SystemExit",
        "sitecustomize.py": "",
        "evil.pth": "",
        "conftest.py": "",
        "pyproject.toml": "",
        "tests/adapters.py": "",
        "tests/test_x.py": "",
    }
    put(tmp_path, files)
    expected = {
        *("adapters.py", "alone.py", "later.py", "other.py"),
        *("helpers/__init__.py", "helpers/near.py", "helpers/deep/__init__.py"),
        *("cs336_basics/__init__.py", "cs336_basics/data/größe.json", "cs336_basics/model.py"),
    }
    assert set(contents(tmp_path)) == expected
    unneeded = "is not needed by the package or the adapters"
    assert left_out(tmp_path) == {
        "cs336_basics/x.pth": "would run at Python's start",
        "conftest.py": "is a test, and the grader brings its own",
        "evil.pth": "would run at Python's start",
        "json/": "has the name of the installed module json",
        "pyproject.toml": "is configuration, and the grader brings its own",
        "sitecustomize.py": "would run at Python's start",
        "tests/": unneeded,
        "torch.py": "has the name of the installed module torch",
        "unused.py": unneeded,
    }
    for archive in (
        write_zip(tmp_path.parent / "a.zip", files),
        write_tar(tmp_path.parent / "a.tgz", files, "w:gz"),
    ):
        assert set(contents(archive)) == expected
        assert left_out(archive) == left_out(tmp_path)


def test_the_public_layout(tmp_path: Path) -> None:
    """Catches an imported module of `tests/` that is not copied, or a `conftest.py` that is."""
    assert set(contents(CATALOGUE / "alternates/public_layout")) == {
        *("cs336_basics/__init__.py", "cs336_basics/bpe.py", "cs336_basics/loop_utils.py"),
        *("cs336_basics/model.py", "cs336_basics/nn_utils.py", "cs336_basics/optim.py"),
        *("tests/adapters.py", "tests/common.py"),
    }
    put(
        tmp_path,
        {
            "cs336_basics/m.py": "import mine",
            "mine.py": "",
            "tests/adapters.py": "from .a import f\nimport tests.b\nfrom tests import c, conftest\n"
            "from . import d, test_x, nothing",
            **{f"tests/{name}.py": "" for name in ("a", "b", "c", "d", "e", "conftest")},
            "tests/test_x.py": "",
        },
    )
    names = {f"tests/{name}.py" for name in ("adapters", "a", "b", "c", "d", "test_x")}
    assert set(contents(tmp_path)) == {"cs336_basics/m.py", "mine.py", *names}
    assert set(left_out(tmp_path)) == {"tests/conftest.py", "tests/e.py"}


@pytest.mark.parametrize("folder", [ROOT, SOLUTION])
def test_our_own(folder: Path) -> None:
    """Catches a refusal of this repository or its solution, or an unneeded file that is copied."""
    with opened(folder) as intake:
        names = {f"cs336_basics/{f.name}" for f in (folder / "cs336_basics").glob("*.py")}
        assert set(intake.taken) == {"adapters.py", *names}
