"""Saved cases: a damaged file is one line that helps, and a right answer is held against them."""

import ast
import hashlib
import json
import random
import shutil
from functools import partial
from pathlib import Path

import msgspec
import pytest
import torch
from msgspec.structs import replace
from safetensors.torch import load, save
from torch import Tensor

from staff.paths import TESTS
from staff.tests.support import run_suite
from tests.harness.cases import Case, Cases
from tests.harness.errors import FixtureError, WrongAnswer
from tests.harness.fixtures import (
    FIXTURES,
    MANIFEST,
    METADATA_KEY,
    Fixtures,
    read_manifest,
)
from tests.harness.pictures import picture_of
from tests.harness.results import CaseNote, Picture
from tests.harness.rubric import read_rubric

MEND = "run `git checkout -- tests/fixtures`, or `cs336 fixtures build` if you are staff"
FILE = "softmax.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the committed fixtures."""
    return shutil.copytree(FIXTURES, tmp_path / "fixtures")


def read_all(folder: Path) -> None:
    """Read every file of a folder."""
    fixtures = Fixtures(folder)
    for task in read_rubric().tasks:
        fixtures.task(task.id)


def refusal(folder: Path) -> str:
    """The text with which a folder is refused: it must be one line that says how to mend it."""
    with pytest.raises(FixtureError) as caught:
        read_all(folder)
    text = str(caught.value)
    assert text.endswith(f"; {MEND}")
    assert "\n" not in text
    return text


def hashes(folder: Path) -> dict[str, str] | None:
    """The hash of each file; None where the manifest can't be read."""
    try:
        return {task: built.sha256 for task, built in read_manifest(folder).tasks.items()}
    except FixtureError:
        return None


def put(folder: Path, content: bytes) -> None:
    """Write a file, and its hash into the manifest."""
    (folder / FILE).write_bytes(content)
    manifest = read_manifest(folder)
    built = replace(manifest.tasks["softmax"], sha256=hashlib.sha256(content).hexdigest())
    tasks = {**manifest.tasks, "softmax": built}
    (folder / MANIFEST).write_bytes(msgspec.json.encode(replace(manifest, tasks=tasks)))


def test_every_test_with_cases_has_some() -> None:
    """Catches a test without its cases, and cases that no test reads."""
    asked = set()
    for file in TESTS.glob("test_*.py"):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and "cases" in [a.arg for a in node.args.args]:
                asked.add(node.name)
    fixtures = Fixtures()
    saved = {test for task in read_rubric().tasks for test in fixtures.task(task.id)}
    assert saved == asked
    tasks = {task.id for task in read_rubric().tasks}
    assert fixtures.manifest.tasks.keys() == tasks == {f.stem for f in FIXTURES.glob("*.safe*")}


@pytest.mark.parametrize("place", [0, 7, 8, 9, 100, 0.2, 0.4, 0.6, 0.8, -1])
def test_one_changed_byte_of_a_file(folder: Path, place: float) -> None:
    """Catches damage, in the header or in the tensors, that passes for a wrong answer."""
    content = bytearray((folder / FILE).read_bytes())
    index = place if isinstance(place, int) else int(place * len(content))
    content[index] ^= 1 << random.Random(place).randrange(8)
    (folder / FILE).write_bytes(content)
    damaged = f"{folder / FILE} is damaged: its digest is not the one in {MANIFEST}"
    assert refusal(folder) == f"{damaged}; {MEND}"


def test_one_changed_byte_of_the_manifest(folder: Path) -> None:
    """Catches a manifest that is read leniently, so that a name or a hash may be wrong."""
    content, right = (folder / MANIFEST).read_bytes(), hashes(folder)
    refused = 0
    for index in [0, len(content) - 1, *random.Random(1).sample(range(len(content)), 40)]:
        for flip in (0x20, 0x80):
            changed = bytearray(content)
            changed[index] ^= flip
            (folder / MANIFEST).write_bytes(changed)
            if hashes(folder) != right:  # else only what the files were built from may differ
                text = refusal(folder)
                assert text.startswith(str(folder))
                assert "damaged" in text or "has format" in text
                refused += 1
    assert refused > 60


@pytest.mark.parametrize("length", [0, 4, 8, 500, -1])
def test_a_truncated_file(folder: Path, length: int) -> None:
    """Catches a file cut short that is read as far as it goes."""
    (folder / FILE).write_bytes((folder / FILE).read_bytes()[:length])
    assert f"{FILE} is damaged" in refusal(folder)


def test_a_missing_file(folder: Path) -> None:
    """Catches a traceback, or tests silently left out, where a file or the seals are gone."""
    (folder / FILE).unlink()
    assert refusal(folder).startswith(f"{folder / FILE} cannot be read (No such file or directory)")
    (folder / MANIFEST).unlink()
    assert refusal(folder).startswith(f"{folder / MANIFEST} cannot be read (No such file or dire")


def test_a_file_that_the_manifest_does_not_know(folder: Path) -> None:
    """Catches a file that is read though no hash of it is known."""
    manifest = read_manifest(folder)
    tasks = {task: built for task, built in manifest.tasks.items() if task != "softmax"}
    (folder / MANIFEST).write_bytes(msgspec.json.encode(replace(manifest, tasks=tasks)))
    assert f"{FILE} is damaged: its digest is not the one in {MANIFEST}" in refusal(folder)


def test_another_format(folder: Path) -> None:
    """Catches a file or a manifest of a later format that is read as if it were of this one."""
    content = (folder / FILE).read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    entry = json.loads(header["__metadata__"][METADATA_KEY]) | {"format": 99, "new_field": 1}
    put(folder, save(load(content), metadata={METADATA_KEY: json.dumps(entry)}))
    assert f"{FILE} has format 99, expected " in refusal(folder)
    (folder / MANIFEST).write_text('{"format": 99, "new_field": 1}')
    assert f"{MANIFEST} has format 99, expected " in refusal(folder)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x02\0\0\0\0\0\0\0{}", save({"x": torch.ones(1)}), b"\xff" * 40, b"PK\x03\x04" * 9],
    ids=["empty", "empty header", "no metadata", "huge header", "zip"],
)
def test_a_file_with_its_hash_that_is_no_fixture(folder: Path, content: bytes) -> None:
    """Catches a traceback of JSON or safetensors for a file that something else wrote."""
    put(folder, content)
    assert f"{FILE} is not a fixture (" in refusal(folder)


def test_a_test_without_cases() -> None:
    """Catches a test that compares nothing and passes."""
    with pytest.raises(FixtureError, match=r"rope.safetensors holds no case for test_x; run `git"):
        Fixtures().cases("rope", "test_x")


def test_pytest_stops_at_a_damaged_file(folder: Path) -> None:
    """Catches points lost to a damaged file, and a traceback where one line is enough."""
    with (folder / FILE).open("ab") as file:
        file.write(b"\0")
    run = run_suite("--submission=staff/solution", f"--cases={folder}")
    assert run.status == 4
    assert [line for line in run.text.splitlines() if line.strip()][-1] == (
        f"ERROR: {folder / FILE} is damaged: its digest is not the one in {MANIFEST}; {MEND}"
    )
    assert "Traceback" not in run.text
    assert "/ 30" not in run.text


def test_an_answer_is_held_against_every_accepted_one() -> None:
    """Catches a right convention that loses points, and a difference from the farther answer."""
    answers = tuple(torch.tensor([x], dtype=torch.float64) for x in (1.0, 3.0))
    names = ("near", "far")
    cases = Cases(
        tuple(
            Case(name=n, arguments={"n": n}, answers=answers, dtype=torch.float32, limit=1.0)
            for n in names
        )
    )
    cases.check(lambda n: torch.tensor([{"near": 1.0, "far": 3.0}[n]]))
    with pytest.raises(WrongAnswer) as caught:
        cases.check(lambda n: torch.tensor([{"near": 1.0, "far": 2.9}[n]]))
    failure = caught.value.failure
    assert failure.headline.startswith("got 2.9 at [0], expected 3; error ")
    assert failure.case == CaseNote(name="far", failing=1, total=2)


def test_the_error_is_the_one_from_the_nearest_answer() -> None:
    """Catches limits that are as wide as two right answers are apart."""
    answers = tuple(torch.tensor([x], dtype=torch.float64) for x in (1.0, 1.0 + 5e-6))
    case = Case(name="x", arguments={}, answers=answers, dtype=torch.float32, limit=1.0)
    for right in answers:
        cases = Cases((case,))
        cases.check(partial(Tensor.float, right))
        assert cases.seen["x"].error < 0.01


def test_the_first_wrong_case_has_its_picture() -> None:
    """Catches a picture of another case, of a right answer, or none where numbers differ."""
    right = torch.arange(4, dtype=torch.float64).reshape(2, 2)

    def run(answers: dict[str, torch.Tensor]) -> Picture | None:
        cases = Cases(
            tuple(
                Case(name=n, arguments={"n": n}, answers=(right,), dtype=torch.float32, limit=1.0)
                for n in answers
            )
        )
        with pytest.raises(WrongAnswer) as caught:
            cases.check(lambda n: answers[n])
        return caught.value.failure.picture

    good, off, worse = right.float(), right.float() + 1, right.float() * 9
    assert run({"a": good, "b": off, "c": worse}) == picture_of("b", off, right, 1.0)
    assert run({"a": off / 0}) == picture_of("a", off / 0, right, 1.0)
    assert run({"a": good[:1], "b": off}) is None
