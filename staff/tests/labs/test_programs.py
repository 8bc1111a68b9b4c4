"""The labs as programs: their output, their pictures and their errors."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from labs import positions
from labs.drawing import write
from staff.paths import ROOT
from staff.tests.labs.running import LABS, RunLab
from staff.tests.support import submission


@pytest.mark.parametrize("name", LABS)
def test_each_lab_writes_its_picture(name: str, lab: RunLab, tmp_path: Path) -> None:
    """Catches a lab that fails on the solution, or that writes no SVG picture."""
    file = tmp_path / f"{name.replace('_', '-')}.svg"
    assert lab(name).endswith(f"picture: {file}\n")
    assert "<svg" in file.read_text("utf-8")


@pytest.mark.parametrize(("name", "task"), LABS.items())
def test_on_stubs_it_says_what_to_write(name: str, task: str, lab: RunLab) -> None:
    """Catches an error on stubs without the task, the file, the section or the command."""
    with pytest.raises(SystemExit) as end:
        lab(name, of=ROOT)
    assert re.fullmatch(
        rf"{task} isn't written yet: write cs336_basics/\w+\.py \(handout §\d\.\d+\), then  "
        rf"pytest --task={task}",
        str(end.value.code),
    )


def test_as_a_program_on_stubs(tmp_path: Path) -> None:
    """Catches `python -m labs.trace_shapes` ending with status 0 or a traceback on stubs."""
    command = [sys.executable, "-m", "labs.trace_shapes", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("transformer_lm isn't written yet: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", LABS)
def test_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a lab's help text without its purpose, its command or its options."""
    module = importlib.import_module(f"labs.{name}")
    with pytest.raises(SystemExit) as end:
        module.main(["--help"])
    text = capsys.readouterr().out
    assert end.value.code == 0
    assert str(module.__doc__).strip() in text
    assert f"python -m labs.{name}" in text
    assert re.findall(r"--(submission|out|seed) ", text)


def test_a_folder_that_is_no_submission(
    lab: RunLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Catches a traceback, or a status other than 2, for a folder that doesn't exist."""
    with pytest.raises(SystemExit) as end:
        lab("positions", of=tmp_path / "nowhere")
    assert end.value.code == 2
    assert "nowhere is not a folder" in capsys.readouterr().err


def test_a_module_that_is_missing(lab: RunLab, tmp_path: Path) -> None:
    """Catches a lab that doesn't report that the submission lacks rope.py."""
    folder = submission(tmp_path / "it")
    (folder / "cs336_basics" / "rope.py").unlink()
    with pytest.raises(SystemExit, match=r"rope isn't written yet: write cs336_basics/rope\.py"):
        lab("rope_distance", of=folder)


def test_an_error_of_the_student_is_shown(lab: RunLab, tmp_path: Path) -> None:
    """Catches a lab that hides the traceback of an error in the student's code."""
    folder = submission(tmp_path / "it", added={"cs336_basics/rope.py": "raise KeyError('mine')"})
    with pytest.raises(KeyError, match="mine"):
        lab("positions", of=folder)


def test_pictures_are_reproducible(tmp_path: Path) -> None:
    """Catches different bytes of two pictures that are drawn from the same numbers."""
    table, turns = torch.rand(2, 8, 8)
    for name in ("one.svg", "two.svg"):
        write(lambda: positions._picture(table, turns), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


@pytest.mark.parametrize("name", LABS)
def test_the_page_shows_each_lab(name: str) -> None:
    """Catches a lab without its section, command or picture in docs/labs.md."""
    section = (ROOT / "docs" / "labs.md").read_text("utf-8").partition(f"\n## {name}\n")[2]
    section = section.partition("\n## ")[0]
    assert f"python -m labs.{name}\n" in section
    (picture,) = re.findall(r"\]\((figures/labs/[a-z-]+\.svg)\)", section)
    assert (ROOT / "docs" / picture).is_file()


@pytest.mark.parametrize("name", LABS)
def test_the_handout_sends_readers_to_each_lab(name: str) -> None:
    """Catches a lab that the handout doesn't mention."""
    assert f"`python -m labs.{name}" in (ROOT / "handout.md").read_text("utf-8")
