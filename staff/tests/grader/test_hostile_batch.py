"""Hostile submissions, graded in a few batches: none may change a grade, stay, or reach anything.

The rows of zip slips, links in archives and bombs are in `test_intake.py`; what is not from
scratch is in `test_scratch_guard.py`.
"""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from staff.grader.grade import SuiteRun, read_grade
from staff.grader.messages import ONLY_SAVED
from staff.grader.sandbox import Confinement, Limits, choose
from staff.grader.worker.remote import Workers
from staff.grader.worker.zygote import zygote
from staff.paths import ROOT
from staff.runner.jobs import Job, run_jobs
from staff.tests.grader.hostile.attack import KEPT, LOST, PRELUDE, UNGRADED, Attack, write
from staff.tests.grader.hostile.harming import HARMING
from staff.tests.grader.hostile.inventing import EMBEDDING_LOST, INVENTING
from staff.tests.grader.hostile.lying import LYING
from staff.tests.grader.hostile.reaching import REACHING
from staff.tests.support import POINTS, Run, submission
from tests.harness.fixtures import FIXTURES, Fixtures
from tests.harness.results import State
from tests.harness.rubric import read_rubric

ATTACKS = {attack.name: attack for attack in (*REACHING, *LYING, *HARMING, *INVENTING)}
WITNESSES = ("witness", "second-witness")
TASKS = ("embedding", "softmax")
SECRET = "x7Qsecret"
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
LIMITS = Limits(memory_bytes=5 << 30)
"""PyTorch's address space, and a little: what is too much is soon reached."""


def grade(
    folders: dict[str, Path],
    cases: Path,
    *,
    call_seconds: float,
    suite_seconds: float,
    tasks: tuple[str, ...] = TASKS,
) -> dict[str, SuiteRun]:
    """Run two tasks on each submission, confined as `auto` would, under short limits."""
    backend = choose("auto").name
    with zygote() as line:
        jobs = [
            Job(
                name=name,
                folder=str(folder),
                tasks=tasks,
                workers=Workers(
                    zygote_socket=line,
                    plan=Confinement(
                        backend=backend, submission=str(folder), number=number, limits=LIMITS
                    ),
                    import_seconds=suite_seconds,
                    call_seconds=call_seconds,
                    suite_seconds=suite_seconds,
                ),
                seconds=120,
            )
            for number, (name, folder) in enumerate(folders.items())
        ]
        return {outcome.name: outcome.run for outcome in run_jobs(jobs, cases)}


def run_command(*arguments: str) -> Run:
    """Run `cs336`, as an instructor does."""
    command = [sys.executable, "-m", "staff.cli", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    return Run(done.returncode, done.stdout + done.stderr)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """The folder where everything lies."""
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def runs(place) -> dict[str, SuiteRun]:
    """What every submission came to, in a batch of the quick ones and a batch of the slow ones."""
    (place / "canary").write_text("sings")
    temporary = place / "temporary"
    temporary.mkdir()
    found: dict[str, SuiteRun] = {}
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("GRADER_SECRET", SECRET)
        patch.setattr(tempfile, "tempdir", str(temporary))
        facts = stack.enter_context(_facts(place))
        before = _outside(place)
        for slow in (False, True):
            batch = place / f"batch-{slow}"
            chosen = [a for a in ATTACKS.values() if a.slow is slow]
            names = [WITNESSES[0], *(attack.name for attack in chosen), WITNESSES[1]]
            facts["BATCH"] = str(batch)
            folders = {
                name: write(ATTACKS.get(name, Attack(name, "nothing")), batch, facts)
                for name in names
            }
            done = grade(
                folders,
                FIXTURES,
                call_seconds=0.5 if slow else 10,
                suite_seconds=2.5 if slow else 30,
            )
            assert set(done) == set(names)
            found |= {
                f"{name} ({slow})" if name in WITNESSES else name: done[name] for name in done
            }
        assert _outside(place) == before
        assert list(temporary.iterdir()) == []
    return found


@contextlib.contextmanager
def _facts(place: Path) -> Iterator[dict[str, str]]:
    """What hostile code is told, to spare it the search; the sockets must stay silent."""
    name = f"cs336-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        abstract.bind(f"\0{name}")
        abstract.listen()
        yield {
            "FIXTURES": str(FIXTURES),
            "ROOT": str(ROOT),
            "HOME": str(Path.home()),
            "SECRET": SECRET,
            "PID": str(os.getpid()),
            "PORT": str(tcp.getsockname()[1]),
            "ABSTRACT": name,
            "CANARY": str(place / "canary"),
        }
        for listener in (tcp, abstract):
            listener.setblocking(False)
            with pytest.raises(BlockingIOError):
                listener.accept()


def _outside(place: Path) -> dict[str, object]:
    """What must be the same afterwards: files, mounts, whose processes run."""
    folders = (ROOT / "staff", ROOT / "tests")
    files = {
        str(file): file.stat().st_mtime_ns
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }
    mounts = Path("/proc/self/mountinfo").read_text()
    return {"files": files, "mounts": mounts, "canary": (place / "canary").read_text()}


def _workers() -> list[str]:
    """Processes of workers' users, or of ours that work for them."""
    shown = subprocess.run(
        ["ps", "-eo", "uid,pid,ppid,args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[1:]
    own = str(os.getpid())
    return [
        line
        for line in shown
        if ("sleep 4242" in line and "ps -eo" not in line)
        or (own in line.split()[1:3] and "staff.grader" in line)
    ]


@pytest.mark.parametrize("name", [name for name, a in ATTACKS.items() if a.ends == KEPT])
def test_nothing_is_reached_and_nothing_lost(runs, name):
    """Catches a wall that lets through, and one that keeps a right submission from its points."""
    assert _earned(runs[name]) == dict.fromkeys(TASKS, 1.0), ATTACKS[name].tries


@pytest.mark.parametrize("name", [name for name, a in ATTACKS.items() if a.ends == LOST])
def test_lies_earn_nothing(runs, name):
    """Catches a wrong answer that earns more than the same wrong answer without the attempt."""
    earned, wrong = _earned(runs[name]), _earned(runs["wrong"])
    assert earned["softmax"] <= wrong["softmax"] < 0.5, ATTACKS[name].tries
    possible = {t.id: t.possible for t in runs["wrong"].result.tasks}
    assert {t.id: t.possible for t in runs[name].result.tasks} == possible


@pytest.mark.parametrize("name", EMBEDDING_LOST)
def test_only_an_error_is_a_refusal(runs, name):
    """Catches a death, a time-out or a hint in the request that earns what an error should."""
    tests = {s.name: s.state for t in runs[name].result.tasks for s in t.tests}
    assert tests["test_unknown_ids_are_refused"].failed
    assert tests["test_rows_are_exact"] is State.PASSED


@pytest.mark.parametrize("name", [name for name, a in ATTACKS.items() if a.ends == UNGRADED])
def test_what_cannot_be_imported_has_no_grade(runs, name):
    """Catches a grade for what was never tested."""
    assert runs[name].result is None
    assert runs[name].problem


def test_the_others_keep_their_grades(runs):
    """Catches a submission that costs its neighbours points, before it or after."""
    for name in WITNESSES:
        for slow in (False, True):
            assert _earned(runs[f"{name} ({slow})"]) == dict.fromkeys(TASKS, 1.0), name


def test_nothing_is_left_running(runs):
    """Catches a daemon that outlives its grade."""
    assert runs
    deadline = time.monotonic() + 2
    while _workers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _workers() == []


def test_reports_hold_nothing_that_harms(runs):
    """Catches control characters, lone surrogates or endless text that reach a report."""
    for name, run in runs.items():
        lines = [run.problem or ""]
        lines += (
            [x for t in run.result.tasks for s in t.tests for x in s.lines] if run.result else []
        )
        assert all(line.isprintable() for line in lines), name
        assert all(len(line) < 10_000 for line in lines), name


def test_answers_that_were_written_down(place, runs):
    """Catches points for knowing the saved cases by heart, and an exit status that isn't ours."""
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
    grade = read_grade(place / "out/written/grade.json")
    [softmax] = [task for task in grade.run.result.tasks if task.id == "softmax"]
    assert softmax.earned / softmax.possible <= _earned(runs["wrong"])["softmax"]
    [saved] = [test for test in softmax.tests if test.name == "test_matches_saved_tensors"]
    assert saved.lines[0] == ONLY_SAVED
    assert grade.run.result.earned == POINTS - softmax.possible + softmax.earned


def test_what_a_test_makes_of_an_answer_is_bounded(place):
    """Catches a small answer of which the trusted side makes so much that all memory is gone."""
    code = f"def run_get_batch(dataset, batch_size, context_length, device):{COUNTED}"
    folder = write(Attack("counted", "is counted up to its largest id", code), place / "huge", {})
    limits = {"call_seconds": 10, "suite_seconds": 60}
    run = grade({"counted": folder}, FIXTURES, **limits, tasks=("get_batch",))["counted"]
    [batch] = run.result.tasks
    [test] = [test for test in batch.tests if test.name == "test_every_window_is_drawn"]
    assert test.state is State.WRONG
    assert test.lines[0].startswith("the test could not use what came back: RuntimeError: ")
    assert "allocate" in test.lines[0]


def test_there_are_enough():
    """Catches attempts that get lost when files are moved."""
    assert len(ATTACKS) >= 60


def _earned(run: SuiteRun) -> dict[str, float]:
    assert run.result is not None, run.problem
    why = [line for t in run.result.tasks for s in t.tests for line in s.lines[:1] if t.id in TASKS]
    shares = {t.id: t.earned / t.possible for t in run.result.tasks if t.id in TASKS}
    if why and "Reached" in " ".join(why):
        pytest.fail(" · ".join(dict.fromkeys(why)))
    return shares
