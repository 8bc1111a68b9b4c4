"""Accounting against the model itself: its parameters, and the operations PyTorch counts."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from cs336_basics.accounting import count_flops, count_parameters
from cs336_basics.transformer import TransformerLM

SIZES = [(11, 10, 8, 3, 2, 12), (101, 32, 48, 2, 4, 128), (7, 5, 4, 1, 1, 3)]


@pytest.mark.parametrize("sizes", SIZES)
def test_parameters_of_the_model(sizes):
    """Catches a tied head, forgotten norms, two matrices in place of SwiGLU's three."""
    model = TransformerLM(*sizes, rope_theta=1e4)
    assert count_parameters(*sizes) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("batch_size", "sequence_length"), [(1, 5), (3, 4), (2, 1)])
def test_operations_of_the_model(sizes, batch_size, sequence_length):
    """Catches a product left out or counted twice, and multiplications without the additions."""
    model = TransformerLM(*sizes, rope_theta=1e4)
    ids = torch.zeros(batch_size, sequence_length, dtype=torch.long)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(ids)
    assert count_flops(*sizes, batch_size, sequence_length) == counter.get_total_flops()
