"""A stopped batch can be continued: no grade is lost, and no submission is graded twice."""

from pathlib import Path

import msgspec
import pytest

from staff.grader.batch import Batch, begin, finish
from staff.grader.grade import Grade, write_grade
from staff.runner.jobs import SuiteRun
from staff.tests.support import suite_result

FRESH = Batch(seed="", cases="", sandbox="mock", hints="full", policy="report")


def test_fresh_cases_get_a_seed_and_keep_it(tmp_path: Path) -> None:
    """Catches a continued batch whose seed differs from the seed that it started with."""
    batch, goes_on = begin(tmp_path / "out", FRESH)
    assert not goes_on
    assert len(batch.seed) == 16
    assert begin(tmp_path / "out", FRESH) == (batch, True)


def test_other_settings_begin_anew(tmp_path: Path) -> None:
    """Catches a stopped batch that is continued although its settings have changed."""
    batch, _ = begin(tmp_path, FRESH)
    for other in ({"hints": "off"}, {"sandbox": "process"}, {"seed": "7"}, {"cases": "/cases"}):
        wanted = msgspec.structs.replace(FRESH, **other)
        found, goes_on = begin(tmp_path, wanted)
        assert not goes_on, other
        assert found.seed != batch.seed


def test_a_finished_batch_is_over(tmp_path: Path) -> None:
    """Catches a new batch that uses the seed of a finished batch again."""
    batch, _ = begin(tmp_path, FRESH)
    finish(tmp_path)
    again, goes_on = begin(tmp_path, FRESH)
    assert not goes_on
    assert again.seed != batch.seed


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"seed": 1}', b"\xff"])
def test_a_damaged_record_begins_anew(tmp_path: Path, content: bytes) -> None:
    """Catches a traceback for a `batch.json` that is empty, incomplete or not valid."""
    (tmp_path / "batch.json").write_bytes(content)
    assert not begin(tmp_path, FRESH)[1]


def test_only_the_same_submission_keeps_its_grade(tmp_path: Path) -> None:
    """Catches a grade that is kept although its submission, name or seed has changed."""
    batch, _ = begin(tmp_path, FRESH)
    grade = Grade(
        submission="ada",
        run=SuiteRun(result=suite_result()),
        digest="d1",
        fixtures="fresh",
        seed=batch.seed,
        sandbox="mock",
    )
    (tmp_path / "ada").mkdir()
    write_grade(grade, tmp_path / "ada/grade.json")
    assert batch.kept(tmp_path, "ada", "d1") == grade
    assert batch.kept(tmp_path, "ada", "d2") is None
    assert batch.kept(tmp_path, "eve", "d1") is None
    assert msgspec.structs.replace(batch, seed="other").kept(tmp_path, "ada", "d1") is None
    ungraded = msgspec.structs.replace(grade, run=SuiteRun(problem="no worker"))
    write_grade(ungraded, tmp_path / "ada/grade.json")
    assert batch.kept(tmp_path, "ada", "d1") is None
    (tmp_path / "ada/grade.json").write_bytes(b'{"format": 1')
    assert batch.kept(tmp_path, "ada", "d1") is None
