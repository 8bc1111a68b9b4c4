"""Decoding against the logits processors of Hugging Face transformers, and its edges."""

import importlib
from collections import Counter

import pytest
import torch

from cs336_basics.decoding import decode, next_token_logits
from cs336_basics.transformer import TransformerLM
from staff.tests.solution.checks import normal

LOGITS = normal(40, root=3) * 2
DRAWS = 4000


def _fixed(_):
    return LOGITS.unsqueeze(0)


def _processed(temperature, top_k, top_p):
    """Give the distribution that transformers samples from, in its own order of processors."""
    process = importlib.import_module("transformers.generation.logits_process")
    scores, ids = LOGITS.double().unsqueeze(0), torch.zeros(1, 1, dtype=torch.long)
    processors = [process.TemperatureLogitsWarper(temperature)]
    processors += [process.TopKLogitsWarper(top_k)] if top_k else []
    processors += [process.TopPLogitsWarper(top_p)] if top_p else []
    for processor in processors:
        scores = processor(ids, scores)
    return scores.softmax(-1)[0]


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, None, None), (0.5, None, None), (2.0, 7, None), (1.5, None, 0.7), (1.3, 9, 0.8)],
)
def test_the_distribution_of_transformers(temperature, top_k, top_p):
    """Catches another set of tokens, other weights among them, or another order of settings."""
    expected = _processed(temperature, top_k, top_p)
    drawn = decode(_fixed, [0], DRAWS, temperature, top_k, top_p, seed=11)
    counts = torch.tensor([Counter(drawn)[i] for i in range(40)])
    assert set(drawn) <= set(expected.nonzero().flatten().tolist())
    deviation = (counts - DRAWS * expected).abs()
    assert (deviation <= 5.5 * (DRAWS * expected * (1 - expected)).sqrt() + 3).all()


def test_greedy_whatever_else_is_set():
    """Catches a division by zero, and a draw where there is nothing to draw."""
    for settings in ({}, {"top_k": 5}, {"top_p": 0.9}, {"seed": 1}):
        assert decode(_fixed, [0], 3, temperature=0, **settings) == [int(LOGITS.argmax())] * 3


def test_seeds():
    """Catches a seed that is ignored, or that PyTorch's own generator shares."""
    before = torch.random.get_rng_state()
    one = decode(_fixed, [0], 20, seed=4)
    assert one == decode(_fixed, [0], 20, seed=4) != decode(_fixed, [0], 20, seed=5)
    assert decode(_fixed, [0], 20) != decode(_fixed, [0], 20)
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_model_of_a_short_context():
    """Catches a prompt that is cut at the wrong end, and logits of another position."""
    model = TransformerLM(11, 6, 8, 1, 2, 12, 1e4)
    next_logits = next_token_logits(model, 6)
    ids = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 8, 9]])
    found = next_logits(ids)
    assert not found.requires_grad
    with torch.no_grad():
        torch.testing.assert_close(found, model(ids[:, 3:])[:, -1])
        torch.testing.assert_close(next_logits(ids[:, :2]), model(ids[:, :2])[:, -1])
    assert len(decode(next_logits, [1], 20, seed=0)) == 20


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"temperature": -1.0}, "temperature must be 0 or more; it is -1.0"),
        ({"top_k": 0}, "top_k must be 1 or more; it is 0"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1; it is 0.0"),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1; it is 1.5"),
    ],
)
def test_settings_that_make_no_sense(settings, text):
    """Catches a setting that is taken as it is, and leaves no token to draw."""
    with pytest.raises(ValueError, match=text):
        decode(_fixed, [0], 1, **settings)
    with pytest.raises(ValueError, match="prompt is empty"):
        decode(_fixed, [], 1)
