"""Messages: what a student reads after each of the usual mistakes, in a terminal of ASCII."""

import re

import pytest

from staff.tests.support import Run, run_suites, submission

BAD = """
import os
import sys

import pytest


def run_linear(d_in, d_out, weights, in_features):
    in_features @ weights.T


def run_embedding(vocab_size, d_model, weights, token_ids):
    return weights[token_ids][..., :-1]


def run_rmsnorm(d_model, eps, weights, in_features):
    return in_features.double()


def run_silu(in_features):
    pytest.skip("not today")


def run_softmax(in_features, dim):
    sys.exit(0)


def run_swiglu(**weights):
    raise ValueError("naïve – ✓ 日本\\nsecond line")


def run_rope(in_query_or_key, **_):
    return _deeper(in_query_or_key)


def _deeper(x):
    return torch.nn.functional.linear(x, x.new_zeros(3, 1))


def run_scaled_dot_product_attention(**_):
    pytest.exit("done", 0)


def run_multihead_self_attention(**_):
    raise AssertionError


def run_multihead_self_attention_with_rope(**_):
    return torch.full((3,), float("nan")).numpy()
"""
SAID = {
    "linear": r"returned None \(is a `return` missing\?\), expected a tensor",
    "embedding": r"shape \(.*\), expected \(.*\)",
    "rmsnorm": "dtype float64, expected float32",
    "silu": "run_silu raised Skipped: not today",
    "softmax": "run_softmax raised SystemExit: 0",
    "swiglu": r"run_swiglu raised ValueError: na\?ve - \+ \?\? adapters.py:\d+ in run_swiglu",
    "rope": "run_rope raised RuntimeError: mat1 and mat2 shapes cannot be multiplied",
    "attention": "run_scaled_dot_product_attention raised Exit: done",
    "multihead_attention": r"run_multihead_self_attention raised AssertionError adapters.py:\d+",
    "multihead_attention_rope": "raised TypeError: ndarray is not plain data",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Every run that the tests below look at."""
    folder = tmp_path_factory.mktemp("messages")
    bad = submission(folder / "bad", added={"adapters.py": f"import torch\n{BAD}"})
    syntax = submission(folder / "syntax", {"cs336_basics/rope.py": "import torch\n\nx = = 1\n"})
    return run_suites(
        {
            "bad": [f"--submission={bad}"],
            "syntax": [f"--submission={syntax}"],
        },
        {"bad": {"PYTHONIOENCODING": "ascii"}},
    )


def block(run: Run, task: str) -> str:
    """All that is said about the failures of a task, on one line."""
    found = re.search(rf"^{task} - .*? handout section \S+$", run.text, re.MULTILINE | re.DOTALL)
    assert found, f"nothing is said about {task}"
    return " ".join(found[0].split())


@pytest.mark.parametrize("task", SAID)
def test_what_is_said(runs: dict[str, Run], task: str) -> None:
    """Catches a message that doesn't say what the student's function did."""
    assert re.search(SAID[task], block(runs["bad"], task))


@pytest.mark.parametrize("task", ["silu", "softmax", "attention"])
def test_no_way_around_a_test(runs: dict[str, Run], task: str) -> None:
    """Catches a skip, an exit or a crash that passes, or that ends the run before later tests."""
    assert runs["bad"].status == 1
    assert re.search(rf"^  x {task} +0 / \d", runs["bad"].text, re.MULTILINE)


def test_the_rest_is_graded_all_the_same(runs: dict[str, Run]) -> None:
    """Catches a task that loses points because another one is broken."""
    for task, points in (("transformer_block", 3), ("transformer_lm", 3)):
        assert re.search(rf"^  \+ {task} +{points} / {points}", runs["bad"].text, re.MULTILINE)


def test_only_frames_of_the_student(runs: dict[str, Run]) -> None:
    """Catches a frame of PyTorch or of the suite in an explanation, and an absolute path."""
    frames = re.findall(r"\S+\.py:\d+ in \w+", runs["bad"].text)
    assert frames
    assert all(re.fullmatch(r"adapters\.py:\d+ in (run_\w+|_deeper)", frame) for frame in frames)
    rope = block(runs["bad"], "rope")
    first, second = rope.index(" in run_rope: return _deeper("), rope.index(" in _deeper: return ")
    assert first < second
    assert "Traceback" not in runs["bad"].text


def test_a_terminal_without_unicode(runs: dict[str, Run]) -> None:
    """Catches a crash where the terminal knows ASCII alone, or a letter that it can't show."""
    assert runs["bad"].text.isascii()
    assert "UnicodeEncodeError" not in runs["bad"].text
    assert (
        "Next: linear - handout section 2.1 - mend cs336_basics/linear.py, then" in runs["bad"].text
    )


def test_what_cannot_be_graded(runs: dict[str, Run]) -> None:
    """Catches a traceback, points, or exit status 0 where the submission can't be imported."""
    run = runs["syntax"]
    assert run.status == 1
    lines = [text for text in run.text.splitlines() if text.strip()]
    said = "Could not be graded: SyntaxError in cs336_basics/rope.py, line 3: invalid syntax"
    assert lines[0] == said
    assert len(lines) == 2
    assert "/ 30" not in run.text
