"""A sample of `make prove`: mistakes lose points, alternates keep them, through the grader."""

import random
from pathlib import Path

from staff.catalogue.patches import Patch, load_alternates, load_mistakes
from staff.validation.sandboxed import judge_patches, judge_public
from tests.harness.rubric import read_rubric

SAMPLE = random.Random(336)


def test_a_sample_of_the_catalogue(tmp_path: Path) -> None:
    """Catches a mistake that keeps its points, and another result through the sandbox."""
    sample: list[Patch] = [
        *SAMPLE.sample(load_mistakes(), 28),
        *SAMPLE.sample(load_alternates(), 12),
    ]
    wrong, right = judge_patches(sample, read_rubric(), tmp_path, lambda *_: None)
    assert (wrong.total, wrong.problems) == (28, ())
    assert (right.total, right.problems) == (12, ())


def test_public_submissions() -> None:
    """Catches a right submission in the public layout that loses points for what is ours."""
    section = judge_public(read_rubric())
    assert (section.total, section.problems) == (2, ())
