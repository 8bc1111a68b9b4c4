"""Correct submissions keep their points if they print, warn or change settings of the process."""

import pytest

from staff.tests.support import EARNED, Run, run_suites, submission

SETTINGS = """
import torch


def spoil():
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_grad_enabled(False)
    torch.set_printoptions(precision=1)


spoil()
"""
WRAPPED = """
import functools

import cs336_basics


def _spoiling(adapter):
    @functools.wraps(adapter)
    def run(*arguments, **named):
        try:
            return adapter(*arguments, **named)
        finally:
            cs336_basics.spoil()

    return run


for _name in [name for name in globals() if name.startswith("run_")]:
    globals()[_name] = _spoiling(globals()[_name])
"""
NOISY = """
import importlib.metadata
import logging
import sys
import warnings

__version__ = importlib.metadata.version("cs336_basics")
warnings.warn("at import", DeprecationWarning)
logging.getLogger().error("noise")
print("noise")
print("noise", file=sys.stderr)
"""
WARNING = """
import warnings

_softmax = softmax


def softmax(x, dim):
    warnings.warn("in a call", UserWarning)
    print("noise")
    return _softmax(x, dim)
"""
FILES = {
    "pyproject.toml": "[[[ no toml",
    "pytest.ini": "[pytest]\naddopts = --no-such-option -x\n",
    "setup.cfg": "[tool:pytest]\naddopts = --no-such-option\n",
    "conftest.py": "raise RuntimeError('conftest of the submission')",
    "cs336_basics/conftest.py": "raise RuntimeError('conftest of the package')",
    "tests/conftest.py": "raise RuntimeError('conftest of the tests')",
    "tests/test_rope.py": "def test_mine():\n    assert False",
    "tests/assignment.toml": "[[[ no toml",
    "sitecustomize.py": "raise SystemExit(9)",
    "torch.py": "",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Run the suite on the submissions `settings` and `odd`; return both runs by name."""
    folder = tmp_path_factory.mktemp("hostile")
    init = "cs336_basics/__init__.py"
    folders = {
        "settings": submission(folder / "settings", {init: SETTINGS}, {"adapters.py": WRAPPED}),
        "odd": submission(
            folder / "odd", {**FILES, init: NOISY}, {"cs336_basics/softmax.py": WARNING}
        ),
    }
    return run_suites({name: [f"--submission={path}"] for name, path in folders.items()})


def test_settings_for_the_whole_process(runs: dict[str, Run]) -> None:
    """Catches a point lost because a submission sets PyTorch's default dtype or device."""
    assert EARNED in runs["settings"].text
    assert runs["settings"].status == 0


def test_noise_and_configuration(runs: dict[str, Run]) -> None:
    """Catches a warning that costs a point, or pytest files of a submission that are used."""
    assert EARNED in runs["odd"].text
    assert runs["odd"].status == 0
    assert "test_mine" not in runs["odd"].text
