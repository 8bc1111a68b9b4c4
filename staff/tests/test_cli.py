"""The command line: exit statuses, one line for each error, and what is written where."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from staff import cli
from staff.catalogue.patches import load_mistakes, patched
from staff.fixtures import build, diff, draft
from staff.grader.grade import read_grade
from staff.paths import ROOT, SOLUTION
from staff.release import stubs
from staff.tests.support import BONUS, POINTS, result_of
from tests.harness.fixtures import FORMAT, MANIFEST
from tests.harness.results import points_text
from tests.harness.rubric import read_rubric

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the command line in this process: exit status, standard output, standard error."""

    def run_main(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["cs336", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        said = capsys.readouterr()
        return int(caught.value.code or 0), said.out, said.err

    return run_main


@pytest.fixture
def unstarted(tmp_path: Path) -> Path:
    """A submission of stubs."""
    stubs.write(stubs.cut(SOLUTION, read_rubric()), tmp_path / "ada")
    return tmp_path / "ada"


def test_grading(run: Command, unstarted: Path, tmp_path: Path) -> None:
    """Catches a submission without a point that counts as one that could not be graded."""
    status, out, _ = run("grade", unstarted, "--out", tmp_path / "out")
    assert status == 0
    row = next(line.split() for line in out.splitlines() if line.startswith("ada"))
    bonus = ["0", "/", points_text(BONUS)] if BONUS else []
    needed = len(read_rubric().tasks) - len(read_rubric().bonus)
    share = [points_text(POINTS), "0", "%"]
    assert row == ["ada", "0", "/", *share, *bonus, str(needed), "not", "started"]
    assert f"open {tmp_path / 'out'}/ada/report.html" in out.replace("\n", "")
    assert {f.name for f in (tmp_path / "out/ada").iterdir()} == {
        *("grade.json", "results.json", "junit.xml"),
        *("report.txt", "report.html", "report.md"),
    }
    assert result_of(read_grade(tmp_path / "out/ada/grade.json")).possible == POINTS
    scores = json.loads((tmp_path / "out/ada/results.json").read_text("utf-8"))["tests"]
    assert sum(test.get("max_score", 0) for test in scores) == POINTS


def test_hints_are_passed_on(run: Command, tmp_path: Path) -> None:
    """Catches a mistake that is named, or drawn, though the instructor asked for less."""
    slips = [m for m in load_mistakes() if m.id == "rmsnorm-sum-over-axis-1"]
    patched(slips, SOLUTION, tmp_path / "eve")
    status, _, _ = run("grade", tmp_path / "eve", "--out", tmp_path / "out", "--hints", "nudge")
    assert status == 0
    said = (tmp_path / "out/eve/report.txt").read_text("utf-8")
    assert "Ask yourself: " in said
    assert "This is what comes out when" not in said
    page = (tmp_path / "out/eve/report.html").read_text("utf-8")
    assert 'class="title">where it differs' in page
    assert 'class="title">expected' not in page
    assert read_grade(tmp_path / "out/eve/grade.json").hints == "nudge"


def test_what_could_not_be_graded(run: Command, tmp_path: Path) -> None:
    """Catches exit status 0 for a class of which some were not graded, or a report left out."""
    (tmp_path / "bob.zip").write_bytes(b"no zip")
    with zipfile.ZipFile(tmp_path / "ada.zip", "w") as file:
        file.writestr("../evil.py", "")
    status, out, _ = run("grade", tmp_path / "bob.zip", tmp_path / "ada.zip", "--out", tmp_path)
    assert status == 1
    lines = out.splitlines()
    assert [line.split()[0] for line in lines if line[:3] in ("bob", "ada")] == ["bob", "ada"]
    assert out.count("could not be graded") == 2
    for name in ("ada", "bob"):
        assert (tmp_path / name / "report.txt").read_text().startswith("Could not be graded: ")


@pytest.mark.parametrize("path", ["nobody", "no/such.zip"])
def test_a_path_that_is_not_there(run: Command, tmp_path: Path, path: str) -> None:
    """Catches grades for those that are there while a name is misspelt, or a traceback."""
    out = tmp_path / "out"
    status, said, error = run("grade", SOLUTION, path, "--out", out)
    assert (status, said) == (2, "")
    assert error == f"cs336: {path} does not exist; name folders, zips or tars that do\n"
    assert not out.exists()


def test_fixtures_that_are_not_there(run: Command, tmp_path: Path) -> None:
    """Catches a class that is graded to the end before the missing cases are noticed."""
    status, _, error = run("grade", SOLUTION, "--fixtures", tmp_path)
    assert status == 2
    assert error.startswith(f"cs336: {tmp_path}/manifest.json cannot be read (No such file")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("device", "error"),
    [
        ("gpu", "no device is called 'gpu'; choose one of cpu, cuda, mps"),
        ("cuda:x", "no device is called 'cuda:x'; choose one of cpu, cuda, mps"),
        ("cpu:1", "cpu:1 can't be used: this machine or this PyTorch has 1; use cpu"),
        pytest.param(
            "cuda",
            "cuda can't be used: this machine or this PyTorch has none; use cpu",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
        ),
    ],
)
def test_a_device_that_is_not_there(run: Command, tmp_path: Path, device: str, error: str) -> None:
    """Catches a class that loses every point because the machine has no GPU."""
    out = tmp_path / "out"
    status, said, told = run("grade", SOLUTION, "--device", device, "--out", out)
    assert (status, said, told) == (2, "", f"cs336: {error}\n")
    assert not out.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["grade"],
        ["grad"],
        ["fixtures", "buil"],
        ["grade", "--x"],
        ["grade", ".", "--hints", "some"],
    ],
)
def test_wrong_use(run: Command, arguments: list[str]) -> None:
    """Catches a slip on the command line that exits with 0 or 1."""
    assert run(*arguments)[0] == 2


def test_stubs_in_step(run: Command) -> None:
    """Catches a check that fails on what is committed, or that rewrites it."""
    status, out, _ = run("stubs", "--check")
    assert status == 0
    assert out.startswith("stubs match the solution: ")
    assert out.endswith(" files, 0 rewritten\n")


def test_stubs_out_of_step(run: Command, unstarted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a check that only warns, and a cut that leaves stale files behind."""
    monkeypatch.setattr(cli, "ROOT", unstarted)
    (unstarted / "cs336_basics/old.py").write_text("")
    (unstarted / "cs336_basics/rope.py").write_text("")
    status, out, _ = run("stubs", "--check")
    names = "cs336_basics/old.py, cs336_basics/rope.py"
    assert status == 1
    assert out == f"stubs differ from the solution: {names} · run `cs336 stubs`\n"
    assert (unstarted / "cs336_basics/old.py").exists()
    status, out, _ = run("stubs")
    assert status == 0
    assert out.endswith(", 2 rewritten\n")
    assert not (unstarted / "cs336_basics/old.py").exists()
    assert run("stubs", "--check")[0] == 0


@pytest.mark.parametrize(("lines", "status"), [([], 0), (["a: answers [0, 1] change", "b"], 1)])
def test_fixtures_check_and_diff(
    run: Command, monkeypatch: pytest.MonkeyPatch, lines: list[str], status: int
) -> None:
    """Catches a check that finds changes and passes, and brackets that are taken for markup."""
    monkeypatch.setattr(diff, "differences", lambda *_: iter(lines))
    checked, out, _ = run("fixtures", "check")
    assert checked == status
    last = "2 differences · run `cs336 fixtures build` to accept them"
    in_step = "the fixtures match the oracle and the solution"
    assert out.splitlines() == [*lines, last if lines else in_step]
    told, out, _ = run("fixtures", "diff")
    assert told == 0
    assert out.splitlines() == (lines or ["a new build would change nothing"])


def test_fixtures_build(run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Catches files that are written elsewhere than asked, or a seed that is not passed on."""
    seeds = []
    manifest = json.dumps({"format": FORMAT, "tasks": {}}).encode()

    def make(_: Path, seed: str, *_others: object, into: Path) -> dict[str, bytes]:
        seeds.append((seed, into))
        return {"a": b"x" * 1500, MANIFEST: manifest}

    monkeypatch.setattr(build, "build_files", make)
    new = tmp_path / "new"
    status, out, _ = run("fixtures", "build", "--all", "--out", new, "--seed", "7")
    assert status == 0
    assert out.replace("\n", "") == f"wrote 2 files, 2 kB, to {new}/"
    assert (new / "a").read_bytes() == b"x" * 1500
    assert seeds == [("7", new)]


def test_a_build_with_nothing_to_do(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a build of minutes though no source has changed."""
    monkeypatch.setattr(build, "stale_tasks", lambda _: {})
    monkeypatch.setattr(build, "build_files", lambda *_: pytest.fail("something was built"))
    status, out, _ = run("fixtures", "build")
    assert status == 0
    assert "--all" in out


def test_a_part_that_is_not_there(run: Command) -> None:
    """Catches an audit of everything where a part is asked for that doesn't exist."""
    status, out, error = run("audit", "--part", "9")
    assert (status, out, error.count("\n")) == (2, "", 1)
    assert "part 9" in error


def test_a_build_that_fails_is_one_line(
    run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Catches a traceback where oracle and solution disagree, or files written all the same."""

    def fail(*_: object, **__: object) -> None:
        raise draft.BuildError("rope · test_x · case [a]: 1e-3 off")

    monkeypatch.setattr(build, "build_files", fail)
    status, _, error = run("fixtures", "build", "--out", tmp_path / "new")
    assert (status, error) == (2, "cs336: rope · test_x · case [a]: 1e-3 off\n")
    assert not (tmp_path / "new").exists()


def test_a_terminal_without_unicode() -> None:
    """Catches a crash where the terminal's encoding lacks the signs of a table or a help text."""
    done = subprocess.run(
        [sys.executable, "-m", "staff.cli", "grade", "--help"],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()
    assert b"SUBMISSION..." in done.stdout
