"""Clues: each is a true sentence about the numbers of a wrong answer."""

import math

import pytest
import torch
from torch import Tensor

from tests.harness.clues import clues_of

X = torch.tensor([[0.5, -1.0, 2.0, 3.5], [1.5, 0.25, -0.75, 4.0], [2.5, -3.0, 0.125, 1.0]])


@pytest.mark.parametrize(
    ("got", "clue"),
    [
        (torch.zeros_like(X), "every value is zero"),
        (-X, "every value has the wrong sign"),
        (X.abs(), "some values have the wrong sign, and all are right without their signs"),
        (X * 4, "every value is 4 × too large, and √d_model is 4"),
        (X / 16, "every value is 16 × too small, and d_model is 16"),
        (X * 1.3, "every value is 1.3 × too large"),
        (X + 0.5, "every value is 0.5 too large"),
        (X.softmax(-1), "this is the softmax of the right answer"),
        (X.log_softmax(-1), "this is the logarithm of the softmax of the right answer"),
        (
            X[:, [0, 2, 1, 3]],
            "the answer is right if the features are regrouped: "
            "adjacent pairs were taken for two halves, or two halves for adjacent pairs",
        ),
        (
            torch.cat([X[:1], X[1:] + torch.randn(2, 4)]),
            "the answer is right at position 0 and wrong at every later position: "
            "look at positions, or at the causal mask",
        ),
        (
            torch.cat([X[:2] * 3 - 1, X[2:]]),
            "the answer is right at the last position and wrong at every earlier position: "
            "does the future leak into the past?",
        ),
        (X.flip(-1), "all the right values are there, but in the wrong order"),
        (
            X + torch.tensor([0.0, 0.003, -0.002, 0.001]),
            "the answer is right to 3 digits of the largest value: "
            "is it computed in half precision, or is a constant slightly wrong?",
        ),
    ],
)
def test_each_clue(got: Tensor, clue: str) -> None:
    """Catches a clue that is not found, or one after another that is less telling."""
    assert clues_of(got, X, {"d_model": 16})[0] == clue


def test_axes_of_a_square() -> None:
    """Catches a transposed square, whose shape is right, that gets no clue."""
    square = X[:, :3]
    assert "the answer is right if axes 0 and 1 are swapped" in clues_of(square.T, square, {})


def test_head_width_is_a_known_factor() -> None:
    """Catches a factor that is the root of the width of a head, and is not named as such."""
    clues = clues_of(X * math.sqrt(6), X, {"d_model": 12, "num_heads": 2})
    assert clues[0] == "every value is 2.449 × too large, and √d_head is 2.449"


def test_rounding_is_no_sign() -> None:
    """Catches an answer that is right to four digits and gets a clue about signs."""
    nearly = X * torch.tensor([1.0, 1.00005, 1.0, 0.99998])
    assert [clue[:31] for clue in clues_of(nearly, X, {})] == ["the answer is right to 4 digits"]


def test_no_clue_for_noise() -> None:
    """Catches a clue about numbers that have nothing to do with the right ones."""
    noise = torch.tensor([[9.0, 3.0, -7.0, 1.0], [0.3, 8.0, 2.2, -6.0], [5.0, 4.1, 7.7, -2.0]])
    assert clues_of(noise, X, {"d_model": 16}) == []


def test_no_clue_for_nan() -> None:
    """Catches a clue that is measured on NaN."""
    assert clues_of(torch.full_like(X, math.nan), X, {}) == []
