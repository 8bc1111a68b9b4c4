"""The fixture that runs a lab."""

import importlib
from pathlib import Path

import pytest

from staff.paths import SOLUTION
from staff.tests.labs.running import QUICK, RunLab
from staff.tests.support import clean_imports


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> RunLab:
    """A function that runs a lab, writes its picture to `tmp_path` and returns its output."""

    def run(name: str, *options: str, of: Path = SOLUTION) -> str:
        with clean_imports():
            main = importlib.import_module(f"labs.{name}").main
            main([*QUICK.get(name, []), f"--submission={of}", f"--out={tmp_path}", *options])
        return capsys.readouterr().out

    return run
