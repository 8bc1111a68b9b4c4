"""A sample of `make prove`: mistakes lose points, alternates keep them, through the grader."""

import random

from staff.catalogue.patches import load_alternates, load_mistakes
from staff.prove import judge, judge_public
from tests.harness.rubric import read_rubric

SAMPLE = random.Random(336)


def test_a_sample_of_the_catalogue(tmp_path):
    """A mistake that no test catches, or a right answer that loses points, would show here."""
    sample = [*SAMPLE.sample(load_mistakes(), 8), *SAMPLE.sample(load_alternates(), 4)]
    problems = {v.name: v.problem for v in judge(sample, read_rubric(), tmp_path) if v.problem}
    assert problems == {}


def test_public_submissions():
    """A right submission in the public layout would lose points for promises it never made."""
    verdicts = judge_public(read_rubric())
    assert {v.name: v.problem for v in verdicts} == {
        "public_functional": None,
        "public_layout": None,
    }
