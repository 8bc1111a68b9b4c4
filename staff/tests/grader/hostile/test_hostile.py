"""No hostile submission may gain points, reach protected data, or harm another submission.

The quick submissions are graded in one batch and the slow ones in another. The folder `intake` has
the tests of hostile archives, and the folder `scratch` has those of ready-made code.
"""

import contextlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from staff.grader.grade import read_grade
from staff.grader.messages import ONLY_FRESH
from staff.paths import ROOT
from staff.runner.jobs import SuiteRun
from staff.tests.grader.hostile.attack import KEPT, LOST, PRELUDE, UNGRADED, Attack, write
from staff.tests.grader.hostile.harming import HARMING
from staff.tests.grader.hostile.inventing import EMBEDDING_LOST, INVENTING
from staff.tests.grader.hostile.lying import LYING
from staff.tests.grader.hostile.reaching import REACHING
from staff.tests.grader.hostile.run import (
    SECRET,
    TASKS,
    earned,
    facts,
    grade,
    left_running,
    one_test,
    result_of,
    surroundings,
    task_of,
    text_of,
)
from staff.tests.support import POINTS, Run, submission
from tests.harness.fixtures import FIXTURES, Fixtures
from tests.harness.results import State
from tests.harness.rubric import read_rubric

Runs = dict[str, SuiteRun]
ATTACKS = {attack.name: attack for attack in (*REACHING, *LYING, *HARMING, *INVENTING)}
WITNESSES = ("witness", "second-witness")
"""Two correct submissions. Each batch starts with one of them and ends with the other."""
WRITTEN = """
from safetensors.torch import load_file

_known = load_file(_Path(__file__).parent / "cs336_basics/known.safetensors")


def run_softmax(in_features, dim):
    for name, x in _known.items():
        if name.endswith(".x") and x.shape == in_features.shape and _torch.equal(x, in_features):
            return _known[f"{int(name[:-2])}.y"].clone()
    return _zeros(in_features, dim)
"""
COUNTED = """
    x = _torch.arange(batch_size)[:, None].expand(-1, context_length).clone()
    x[0] = 1 << 29
    return x, x + 1
"""


def run_command(*arguments: str) -> Run:
    """Run `cs336`, as an instructor does."""
    command = [sys.executable, "-m", "staff.cli", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    return Run(done.returncode, done.stdout + done.stderr)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder for the submissions, the canary file and the temporary files."""
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def runs(place: Path) -> Runs:
    """Grade the quick submissions in one batch and the slow ones in another; return all runs."""
    (place / "canary").write_text("sings")
    temporary = place / "temporary"
    temporary.mkdir()
    found: Runs = {}
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("GRADER_SECRET", SECRET)
        patch.setattr(tempfile, "tempdir", str(temporary))
        told = stack.enter_context(facts(place))
        before = surroundings(place)
        for slow in (False, True):
            done = _batch(place / f"batch-{slow}", told, slow=slow)
            found |= {
                f"{name} ({slow})" if name in WITNESSES else name: done[name] for name in done
            }
        assert surroundings(place) == before
        assert list(temporary.iterdir()) == []
    return found


def _batch(folder: Path, told: dict[str, str], *, slow: bool) -> Runs:
    chosen = [attack.name for attack in ATTACKS.values() if attack.slow is slow]
    names = [WITNESSES[0], *chosen, WITNESSES[1]]
    folders = {
        name: write(
            ATTACKS.get(name, Attack(name, "nothing")), folder, {**told, "BATCH": str(folder)}
        )
        for name in names
    }
    done = grade(folders, call_seconds=0.5 if slow else 10, suite_seconds=2.5 if slow else 30)
    assert set(done) == set(names)
    return done


@pytest.mark.parametrize("name", [name for name, a in ATTACKS.items() if a.ends == KEPT])
def test_nothing_is_reached_and_nothing_lost(runs: Runs, name: str) -> None:
    """Catches an attack that succeeds, or a protection that makes a correct submission fail."""
    assert earned(runs[name]) == dict.fromkeys(TASKS, 1.0), ATTACKS[name].tries


@pytest.mark.parametrize("name", [name for name, a in ATTACKS.items() if a.ends == LOST])
def test_lies_earn_nothing(runs: Runs, name: str) -> None:
    """Catches an attack that earns points for a wrong softmax, or changes the possible points."""
    share, wrong = earned(runs[name])["softmax"], earned(runs["wrong"])["softmax"]
    assert share <= wrong < 0.5, ATTACKS[name].tries
    possible = {task.id: task.possible for task in result_of(runs["wrong"]).tasks}
    assert {task.id: task.possible for task in result_of(runs[name]).tasks} == possible


@pytest.mark.parametrize("name", EMBEDDING_LOST)
def test_only_an_error_is_a_refusal(runs: Runs, name: str) -> None:
    """Catches a point for refusing unknown ids if the submission does not check the ids.

    It exits, hangs, or looks in the request for a hint that an error is expected.
    """
    tests = {test.name: test.state for task in result_of(runs[name]).tasks for test in task.tests}
    assert tests["test_unknown_ids_are_refused"].failed
    assert tests["test_rows_are_exact"] is State.PASSED


@pytest.mark.parametrize("name", [name for name, a in ATTACKS.items() if a.ends == UNGRADED])
def test_what_cannot_be_imported_has_no_grade(runs: Runs, name: str) -> None:
    """Catches a grade for a submission that can't be imported."""
    assert runs[name].result is None
    assert runs[name].problem


def test_the_others_keep_their_grades(runs: Runs) -> None:
    """Catches a hostile submission that takes points from a correct one in the same batch."""
    for name in WITNESSES:
        for slow in (False, True):
            assert earned(runs[f"{name} ({slow})"]) == dict.fromkeys(TASKS, 1.0), name


def test_nothing_is_left_running(runs: Runs) -> None:
    """Catches a process of a submission or of the grader that still runs after the batches."""
    assert runs
    deadline = time.monotonic() + 2
    while left_running() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left_running() == []


def test_reports_hold_nothing_that_harms(runs: Runs) -> None:
    """Catches a report with control characters, lone surrogates or a line of 10,000 characters."""
    for name, run in runs.items():
        lines = text_of(run)
        assert all(line.isprintable() for line in lines), name
        assert all(len(line) < 10_000 for line in lines), name


def test_answers_that_were_written_down(place: Path, runs: Runs) -> None:
    """Catches points for stored answers, or an exit status of `cs336` set by a submission."""
    written = submission(place / "command/written", added={"adapters.py": PRELUDE + WRITTEN})
    known: dict[str, torch.Tensor] = {}
    for test in read_rubric().task("softmax").tests:
        for case in Fixtures(FIXTURES).cases("softmax", test).cases if "saved" in test else ():
            number = len(known) // 2
            known[f"{number}.x"] = case.arguments["in_features"].contiguous()
            known[f"{number}.y"] = case.answers[0].to(case.dtype).contiguous()
    save_file(known, written / "cs336_basics/known.safetensors")
    (written / "cs336_basics/known.safetensors").chmod(0o644)
    ending = write(ATTACKS["exits-at-import"], place / "command", {})
    done = run_command(
        "grade", str(written), str(ending), "--seed", "7", "--out", str(place / "out")
    )
    assert done.status == 1, done.text
    run = read_grade(place / "out/written/grade.json").run
    softmax = task_of(run, "softmax")
    assert softmax.earned / softmax.possible <= earned(runs["wrong"])["softmax"]
    failure = one_test(softmax, "test_matches_saved_tensors").failure
    assert failure is not None
    assert failure.headline == ONLY_FRESH
    assert result_of(run).earned == POINTS - softmax.possible + softmax.earned


def test_what_a_test_makes_of_an_answer_is_bounded(place: Path) -> None:
    """Catches a test that uses up the memory because an answer contains the huge id 2**29."""
    code = f"def run_get_batch(dataset, batch_size, context_length, device):{COUNTED}"
    folder = write(Attack("counted", "is counted up to its largest id", code), place / "huge", {})
    done = grade({"counted": folder}, call_seconds=10, suite_seconds=60, tasks=("get_batch",))
    test = one_test(task_of(done["counted"], "get_batch"), "test_every_window_is_drawn")
    assert test.state is State.WRONG
    assert test.failure is not None
    start = "the test could not use what came back: RuntimeError: "
    assert test.failure.headline.startswith(start)
    assert "allocate" in test.failure.headline


def test_there_are_enough() -> None:
    """Catches a list of attacks, such as `LYING`, that is no longer part of `ATTACKS`."""
    assert len(ATTACKS) >= 60
