"""The errors that the solution's docstrings promise: their types and messages."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import adapters
import cs336_basics
from cs336_basics.adamw import AdamW
from cs336_basics.attention import MultiHeadSelfAttention
from cs336_basics.batches import get_batch
from cs336_basics.causal_lm import CausalLM, TransformerTrunk
from cs336_basics.compression import compression_ratio
from cs336_basics.cross_entropy import cross_entropy
from cs336_basics.decoding import decode
from cs336_basics.embedding import Embedding
from cs336_basics.grouped_query_attention import GroupedQueryAttention
from cs336_basics.kv_cache import KVCache
from cs336_basics.mixture_of_experts import MixtureOfExperts
from cs336_basics.rope import RotaryEmbedding
from cs336_basics.rope_conversion import adjacent_to_half_split, half_split_to_adjacent
from cs336_basics.rope_half_split import HalfSplitRotaryEmbedding
from cs336_basics.sinusoidal import SinusoidalPositions
from cs336_basics.transformer import TransformerLM
from staff.paths import SOLUTION

Call = Callable[[], object]
VECTORS = torch.ones(1, 4)
HEADS = torch.ones(1, 1, 3, 4)


def _lm(*ids: int) -> object:
    return TransformerLM(11, 6, 8, 1, 2, 12, 10000.0)(torch.tensor([ids]))


def _causal_lm(logits_to_keep: int, labels: Tensor | None = None) -> object:
    model = CausalLM(TransformerTrunk(11, 6, 8, 1, 2, 1, 12, 10000.0))
    return model(torch.tensor([[1, 2, 3]]), labels=labels, logits_to_keep=logits_to_keep)


def _filled_cache(batch: int, tokens: int) -> object:
    cache = KVCache(4)
    cache.append(torch.ones(3, 2, 1, 4), torch.ones(3, 2, 1, 4))
    more = torch.ones(batch, 2, tokens, 4)
    return cache.append(more, more)


_decode = partial(decode, lambda _: torch.zeros(1, 5), max_new_tokens=1)
_adamw = partial(AdamW, [nn.Parameter(torch.zeros(2))])
OUTSIDE: dict[str, Call] = {
    "embedding": lambda: Embedding(5, 2)(torch.tensor([0, 5])),
    "rope": lambda: RotaryEmbedding(1e4, 4, 5)(VECTORS, torch.tensor([5])),
    "sinusoidal": lambda: SinusoidalPositions(4, 5)(VECTORS, torch.tensor([5])),
    "vocabulary": lambda: _lm(0, 11),
    "context": lambda: _lm(*range(7)),
}
REFUSED: dict[str, tuple[Call, str]] = {
    "odd d_k": (lambda: RotaryEmbedding(1e4, 7, 5), "d_k must be even; it is 7"),
    "odd head_dim": (
        lambda: HalfSplitRotaryEmbedding(1e4, 7),
        "head_dim must be even; it is 7",
    ),
    "negative start": (
        lambda: HalfSplitRotaryEmbedding(1e4, 4)(HEADS, HEADS, -2),
        "start_position is -2",
    ),
    "heads": (lambda: MultiHeadSelfAttention(8, 3), "divide d_model; 3 does not divide 8"),
    "heads of queries": (
        lambda: GroupedQueryAttention(8, 3, 1),
        "divide d_model; 3 does not divide 8",
    ),
    "heads of keys": (
        lambda: GroupedQueryAttention(8, 4, 3),
        "divide num_heads; 3 does not divide 4",
    ),
    "more heads of keys": (
        lambda: GroupedQueryAttention(8, 2, 4),
        "divide num_heads; 4 does not divide 2",
    ),
    "no experts": (lambda: MixtureOfExperts(8, 6, 4, 0), "between 1 and 4; it is 0"),
    "negative experts": (lambda: MixtureOfExperts(8, 6, 4, -1), "between 1 and 4; it is -1"),
    "too many experts": (lambda: MixtureOfExperts(8, 6, 4, 5), "between 1 and 4; it is 5"),
    "another batch": (lambda: _filled_cache(1, 1), "reset it before another batch"),
    "negative logits": (lambda: _causal_lm(-1), "logits_to_keep must be 0 or more; it is -1"),
    "lost logits": (lambda: _causal_lm(2, torch.tensor([[1, 2, 3]])), "logits_to_keep"),
    "rows of heads": (
        lambda: adjacent_to_half_split(torch.ones(10, 2), 4),
        "^10 rows don't divide into 4 heads",
    ),
    "rows of pairs": (
        lambda: half_split_to_adjacent(torch.ones(6, 2), 2),
        "^6 rows don't divide into 2 heads",
    ),
    "no tokens": (lambda: compression_ratio("a", []), "there are no tokens"),
    "short text": (lambda: get_batch(np.arange(6), 3, 6, "cpu"), "need 7; the dataset has 6"),
    "temperature": (lambda: _decode([0], temperature=-1.0), "must be 0 or more; it is -1.0"),
    "top_k": (lambda: _decode([0], top_k=0), "top_k must be 1 or more; it is 0"),
    "top_p of 0": (lambda: _decode([0], top_p=0.0), "above 0 and at most 1; it is 0.0"),
    "top_p above 1": (lambda: _decode([0], top_p=1.5), "above 0 and at most 1; it is 1.5"),
    "no prompt": (lambda: _decode([]), "the prompt is empty"),
    "lr": (lambda: _adamw(lr=-1e-9), "lr must not be negative"),
    "lr of nan": (lambda: _adamw(lr=math.nan), "lr must not be negative; it is nan"),
    "eps of nan": (lambda: _adamw(eps=math.nan), "eps must not be negative"),
    "decay of nan": (lambda: _adamw(weight_decay=math.nan), "weight_decay must not be negative"),
    "betas": (lambda: _adamw(betas=(0.9, 1.0)), r"betas must be in \[0, 1\); they are \(0.9, 1.0"),
    "betas of nan": (lambda: _adamw(betas=(math.nan, 0.9)), "betas must be in"),
}


def test_the_solution_is_what_is_tested() -> None:
    """Catches an import path with the stubs or an installed package before the solution."""
    for module in (cs336_basics, adapters):
        assert Path(str(module.__file__)).resolve().is_relative_to(SOLUTION)


@pytest.mark.parametrize("what", OUTSIDE)
def test_outside_of_a_table(what: str) -> None:
    """Catches an id or a position outside its table that is clamped or wrapped around."""
    with pytest.raises(IndexError):
        OUTSIDE[what]()


@pytest.mark.parametrize("target", [-100, -1, 5, 1000])
def test_targets_outside_the_classes(target: int) -> None:
    """Catches a target outside the classes that is clamped, counted from the end or ignored."""
    with pytest.raises(RuntimeError, match="out of bounds"):
        cross_entropy(torch.zeros(2, 5), torch.tensor([0, target]))


@pytest.mark.parametrize("what", REFUSED)
def test_refused_values(what: str) -> None:
    """Catches an invalid value that is accepted, or an error that doesn't name the value."""
    call, text = REFUSED[what]
    with pytest.raises(ValueError, match=text):
        call()


def test_a_full_cache() -> None:
    """Catches a full cache that drops or overwrites tokens, or an error without the sizes."""
    text = "room for 4 tokens and holds 1; 4 more don't fit"
    with pytest.raises(IndexError, match=text):
        _filled_cache(3, 4)
