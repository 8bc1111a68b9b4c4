"""A sample of `make prove`: mistakes lose points, alternates keep them, through the grader."""

import random
from pathlib import Path

from staff.catalogue.patches import load_alternates, load_mistakes
from staff.validation.sandboxed import judge, judge_public
from tests.harness.rubric import read_rubric

SAMPLE = random.Random(336)


def test_a_sample_of_the_catalogue(tmp_path: Path) -> None:
    """Catches a mistake that keeps its points, and another result through the sandbox."""
    sample = [*SAMPLE.sample(load_mistakes(), 28), *SAMPLE.sample(load_alternates(), 12)]
    verdicts = judge(sample, read_rubric(), tmp_path)
    assert len(verdicts) == 40
    assert {v.name: v.problem for v in verdicts if v.problem} == {}


def test_public_submissions() -> None:
    """A right submission in the public layout would lose points for promises it never made."""
    verdicts = judge_public(read_rubric())
    assert {v.name: v.problem for v in verdicts} == {
        "public_functional": None,
        "public_layout": None,
    }
