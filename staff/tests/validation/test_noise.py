"""A sample of the noise proof, and what must make it fail."""

import hashlib
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from safetensors.torch import save

from staff.catalogue import subjects
from staff.catalogue.patches import Mistake, load_mistakes
from staff.runner.jobs import Job, Outcome, SuiteRun, run_jobs
from staff.validation.noise import judge_noise
from tests.harness.fingerprints import Seen
from tests.harness.fixtures import (
    FIXTURES,
    MANIFEST,
    METADATA_KEY,
    MistakeEntry,
    decode_fixture,
    read_manifest,
)

SEEDS = 20
SAMPLE = 40
TASK, CASE = "attention", "causal"


@pytest.fixture
def some(monkeypatch: pytest.MonkeyPatch) -> list[Mistake]:
    """A few mistakes of attention in place of all."""
    chosen = [m for m in load_mistakes() if m.task == TASK][:6]
    monkeypatch.setattr(subjects, "load_mistakes", lambda: chosen)
    return chosen


def with_fingerprint(folder: Path, mistake: Mistake, seen: Seen) -> Path:
    """A copy of the saved cases in which a mistake has another fingerprint in one case."""
    shutil.copytree(FIXTURES, folder)
    file = folder / f"{TASK}.safetensors"
    entry, tensors = decode_fixture(file, file.read_bytes())
    cases = list(entry.cases)
    index = next(i for i, case in enumerate(cases) if case.name == CASE)
    known = msgspec.json.decode(cases[index].mistakes, type=dict[str, Seen])
    known[mistake.id] = seen
    raw = msgspec.Raw(msgspec.json.encode(known, order="sorted"))
    cases[index] = msgspec.structs.replace(cases[index], mistakes=raw)
    listed = msgspec.json.decode(entry.mistakes, type=list[MistakeEntry])
    assert any(one.id == mistake.id for one in listed)
    entry = msgspec.structs.replace(entry, cases=tuple(cases))
    text = msgspec.json.encode(entry, order="sorted").decode()
    file.write_bytes(save(tensors, metadata={METADATA_KEY: text}))
    manifest = read_manifest(folder)
    built = manifest.tasks[TASK]
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    manifest.tasks[TASK] = msgspec.structs.replace(built, sha256=digest)
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return folder


def test_a_sample_under_noise() -> None:
    """Catches a fingerprint, or a right answer, that the rounding of a processor decides."""
    section = judge_noise(FIXTURES, lambda *_: None, seeds=SEEDS, sample=SAMPLE)
    assert section.total > 20
    assert section.problems == ()


def test_a_run_that_ends_early(some: list[Mistake], monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a run with noise that is not graded, and is then excused as random."""

    def killed_by_noise(jobs: list[Job], cases: Path) -> Iterator[Outcome]:
        for outcome in run_jobs([replace(job, noise=0) for job in jobs], cases):
            noisy = next(job.noise for job in jobs if job.name == outcome.name)
            killed = Outcome(name=outcome.name, run=SuiteRun(problem="it was killed"))
            yield killed if noisy and outcome.name == some[0].id else outcome

    monkeypatch.setattr("staff.validation.noise.run_jobs", killed_by_noise)
    section = judge_noise(FIXTURES, lambda *_: None, seeds=1)
    assert section.problems == ((some[0].id, "could not be graded: it was killed"),)


@pytest.mark.parametrize("kind", ["value", "nan"])
def test_a_fingerprint_of_noise(tmp_path: Path, some: list[Mistake], kind: str) -> None:
    """Catches a fingerprint of rounding noise, which another processor would not find again."""
    draw = random.Random(1)
    tiny = tuple(draw.uniform(-1e-8, 1e-8) for _ in range(16))
    noise = Seen(kind="value", off=tiny, error=0.5)
    if kind == "nan":
        noise = Seen(kind="nan", detail="0badcafe", off=tiny)
    folder = with_fingerprint(tmp_path / "fixtures", some[0], noise)
    section = judge_noise(folder, lambda *_: None, seeds=2)
    assert {subject for subject, _ in section.problems} == {some[0].id}
    assert any(CASE in problem for _, problem in section.problems)


def test_the_same_few_without_it(some: list[Mistake]) -> None:
    """Catches a test above that would fail whatever the fingerprint is."""
    section = judge_noise(FIXTURES, lambda *_: None, seeds=2)
    assert (section.total, section.problems) == (len(some) + 1, ())
