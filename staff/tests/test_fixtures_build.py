"""The build of the saved cases: the same bytes everywhere, and files that are whole or old."""

import hashlib
import math
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load

from staff.catalogue import subjects
from staff.catalogue.patches import load_alternates, load_mistakes
from staff.fixtures import calibrate, oracle
from staff.fixtures.build import SEED, build_files
from staff.fixtures.draft import (
    SAME,
    BuildError,
    Stored,
    drafts_of,
    encoded,
    settle,
    source_hash,
    write_files,
)
from staff.fixtures.inputs import all_cases
from staff.paths import ROOT, SOLUTION
from staff.tests.support import clean_imports
from tests.harness.fixtures import FIXTURES, SEALS, Fixtures
from tests.harness.in_process import InProcess
from tests.harness.rubric import read_rubric
from tests.harness.submission import locate

DIGESTS = """
import hashlib, pathlib, sys
from staff.tests.test_fixtures_build import drafted
for name, content in drafted(pathlib.Path(sys.argv[1])).items():
    print(name, hashlib.sha256(content).hexdigest())
"""


def drafted(reference):
    """The files as they are before limits are measured and mistakes are run."""
    tasks = [task.id for task in read_rubric().tasks]
    with clean_imports():
        solution = InProcess(locate(SOLUTION))
        return encoded(drafts_of(all_cases(SEED), Stored(reference), tasks, solution))


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A folder with nothing in it."""
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(scope="module")
def scratch(empty):
    """Every input and answer, made from nothing."""
    return drafted(empty)


@pytest.fixture
def small_catalogue(monkeypatch, empty):
    """Two mistakes and one alternate in place of hundreds, on this processor alone."""
    mistakes, alternates = load_mistakes(), load_alternates()
    monkeypatch.setattr(subjects, "load_mistakes", lambda: mistakes[:2])
    monkeypatch.setattr(subjects, "load_alternates", lambda: alternates[:1])
    monkeypatch.setattr(subjects, "FOLDER", empty)
    monkeypatch.setattr(calibrate, "CAPABILITIES", ())
    monkeypatch.setattr(calibrate, "THREADS", (1,))


def test_from_nothing_come_the_committed_tensors(scratch):
    """Catches inputs or answers that depend on what is stored, or on this machine."""
    assert {n for n in scratch if n != SEALS} == {f.name for f in FIXTURES.glob("*.safetensors")}
    for name, content in scratch.items():
        if name != SEALS:
            new, old = load(content), load((FIXTURES / name).read_bytes())
            assert new.keys() == old.keys(), name
            for key, tensor in new.items():
                absolute, relative = SAME
                torch.testing.assert_close(
                    tensor, old[key], atol=absolute, rtol=relative, equal_nan=True, msg=key
                )


def test_a_processor_without_vectors_gives_the_same_bytes():
    """Catches the last digits of a processor in a file, which `check` would find on another."""
    done = subprocess.run(
        [sys.executable, "-c", DIGESTS, str(FIXTURES)],
        cwd=ROOT,
        env={**os.environ, "ATEN_CPU_CAPABILITY": "default", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    digests = dict(line.split() for line in done.stdout.splitlines())
    here = drafted(FIXTURES)
    assert digests == {n: hashlib.sha256(content).hexdigest() for n, content in here.items()}


@pytest.mark.usefixtures("small_catalogue")
def test_building_twice_gives_equal_bytes(empty, tmp_path):
    """Catches a time, a random order or a measured number in a file."""
    told = []
    with clean_imports():
        first = build_files(empty, progress=told.append)
        write_files(first, tmp_path)
        second = build_files(tmp_path)
    assert list(first) == list(second)
    assert [n for n in first if first[n] != second[n]] == []
    assert list(first)[-1] == SEALS
    assert told
    fixtures = Fixtures(tmp_path)
    for task in read_rubric().tasks:
        fixtures.task(task.id)


def test_an_oracle_that_disagrees_stops_the_build(monkeypatch, empty):
    """Catches a wrong answer that becomes the truth."""
    right = oracle.ANSWERS["run_silu"]
    monkeypatch.setitem(oracle.ANSWERS, "run_silu", lambda **given: right(**given) + 1e-9)
    text = r"^silu · test_silu_\w+ · .+: in float64 the solution is 1.0e-09 off the oracle, and "
    with pytest.raises(BuildError, match=text):
        drafted(empty)
    monkeypatch.setitem(oracle.ANSWERS, "run_silu", lambda **_: torch.tensor(math.nan))
    with pytest.raises(BuildError, match="in float64 the solution is inf off the oracle"):
        drafted(empty)


def test_settling():
    """Catches a stored value that moves with the processor, or stays when the answer moved."""
    third = torch.tensor([1 / 3, 1e30 / 3], dtype=torch.float64)
    rounded = settle(third, None)
    assert rounded.tolist() == [0.333333333333, 3.33333333333e29]
    stored = rounded * (1 + 5e-10)
    assert torch.equal(settle(third, stored), stored)
    assert torch.equal(settle(third, stored * (1 + 1e-8)), rounded)
    assert torch.equal(settle(third, stored[:1]), rounded)
    tiny = torch.tensor([1e-13], dtype=torch.float64)
    assert torch.equal(settle(torch.zeros_like(tiny), tiny), tiny)
    infinite = torch.tensor([math.inf, -math.inf], dtype=torch.float64)
    assert torch.equal(settle(infinite, infinite), infinite)
    assert settle(torch.zeros(2, 0).double(), None).shape == (2, 0)


def test_writing(tmp_path):
    """Catches a file of a task that is no more, other files removed, or wrong permissions."""
    (tmp_path / "old.safetensors").write_bytes(b"old")
    (tmp_path / "README").write_bytes(b"stays")
    files = {"a.safetensors": b"a", SEALS: b"seals"}
    write_files(files, tmp_path)
    assert {f.name: f.read_bytes() for f in tmp_path.iterdir()} == files | {"README": b"stays"}
    assert (tmp_path / SEALS).stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_writing_that_fails_leaves_whole_files(tmp_path, monkeypatch, failing):
    """Catches half a file, a temporary one left behind, or seals of files that aren't there."""
    names = ["a.safetensors", "b.safetensors", SEALS]
    write_files(dict.fromkeys(names, b"old"), tmp_path)
    moved, move = [], os.replace

    def replace(source, target):
        if len(moved) == failing:
            raise OSError("no space left on device")
        moved.append(target)
        move(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="no space left"):
        write_files(dict.fromkeys(names, b"new"), tmp_path)
    contents = {f.name: f.read_bytes() for f in tmp_path.iterdir()}
    assert contents == {n: b"new" if i < failing else b"old" for i, n in enumerate(names)}


def test_the_hash_of_source(tmp_path):
    """Catches a hash that changes with a comment, or stays when the code changes."""
    file = tmp_path / "a.py"

    def hash_of(text: str) -> str:
        file.write_text(text)
        return source_hash(file)

    plain = hash_of("def f(x):\n    return x + 1\n")
    assert hash_of('"""M."""\n\n\ndef f(x):\n    """D."""\n    return (x + 1)  # c\n') == plain
    assert hash_of("def f(x):\n    return x + 2\n") != plain
    assert source_hash(tmp_path) == source_hash(file)
    (tmp_path / "b.py").write_text("")
    assert source_hash(tmp_path) != source_hash(file)
