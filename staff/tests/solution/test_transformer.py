"""The solution's whole models: gradients, initial weights, counts, and missing weights."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

from adapters import run_transformer_lm
from cs336_basics.accounting import count_flops, count_parameters
from cs336_basics.causal_lm import CausalLM, TransformerTrunk
from cs336_basics.transformer import TransformerLM
from staff.tests.solution.checks import normal
from tests.harness.properties import check_truncated_normal

F64 = torch.float64
IDS = torch.tensor([[3, 0, 3], [1, 4, 2]])
SIZES = [(11, 10, 8, 3, 2, 12), (101, 32, 48, 2, 4, 128), (7, 5, 4, 1, 1, 3)]
MODELS: dict[str, Callable[[], nn.Module]] = {
    "transformer lm": lambda: TransformerLM(5, 3, 4, 2, 2, 3, 10.0, dtype=F64),
    "causal lm": lambda: CausalLM(TransformerTrunk(5, 3, 4, 2, 2, 1, 3, 10.0, dtype=F64)),
}


@pytest.mark.parametrize("name", MODELS)
def test_gradients(name: str) -> None:
    """Catches a wrong or missing gradient in a model, such as that of a detached tensor.

    Every gradient is compared with finite differences.
    """
    module = MODELS[name]()
    named = dict(module.named_parameters())
    weights = [normal(*weight.shape, root=3, dtype=F64) for weight in named.values()]

    def call(*values: Tensor) -> Tensor:
        given = dict(zip(named, values, strict=True))
        answer = functional_call(module, given, (IDS,))
        return answer if isinstance(answer, Tensor) else answer[0]

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a second thread is slower on such small tensors
    try:
        assert gradcheck(call, tuple(weight.requires_grad_() for weight in weights))
    finally:
        torch.set_num_threads(threads)


def test_first_weights() -> None:
    """Catches initial weights with a wrong spread, or equal ones in two layers."""
    d_model, d_ff, vocab = 64, 192, 500
    model = TransformerLM(vocab, 8, d_model, 2, 4, d_ff, 10000.0)
    stds = dict.fromkeys(("w1", "w2", "w3"), math.sqrt(2 / (d_model + d_ff)))
    names = ("q_proj", "k_proj", "v_proj", "output_proj")
    stds |= dict.fromkeys(names, math.sqrt(1 / d_model))
    stds |= {"token_embeddings": 1.0, "lm_head": math.sqrt(2 / (d_model + vocab))}
    matrices = {n: p.detach() for n, p in model.named_parameters() if p.ndim == 2}
    assert len(matrices) == 2 + 2 * 7
    for name, weight in matrices.items():
        check_truncated_normal(weight, stds[name.split(".")[-2]])
    starts = {tuple(weight.flatten()[:4].tolist()) for weight in matrices.values()}
    assert len(starts) == len(matrices)


@pytest.mark.parametrize("sizes", SIZES)
def test_number_of_parameters(sizes: tuple[int, int, int, int, int, int]) -> None:
    """Catches `count_parameters` returning another number than the model has."""
    model = TransformerLM(*sizes, rope_theta=1e4)
    assert count_parameters(*sizes) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("batch_size", "sequence_length"), [(1, 5), (3, 4), (2, 1)])
def test_number_of_operations(
    sizes: tuple[int, int, int, int, int, int], batch_size: int, sequence_length: int
) -> None:
    """Catches `count_flops` returning another number than PyTorch counts in a forward pass."""
    model = TransformerLM(*sizes, rope_theta=1e4)
    ids = torch.zeros(batch_size, sequence_length, dtype=torch.long)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(ids)
    assert count_flops(*sizes, batch_size, sequence_length) == counter.get_total_flops()


def _weights() -> dict[str, Tensor]:
    return TransformerLM(11, 6, 8, 2, 2, 12, 10000.0).state_dict()


@pytest.mark.parametrize("name", ["lm_head.weight", "layers.1.ffn.w2.weight", "ln_final.weight"])
def test_missing_weight_is_an_error(name: str) -> None:
    """Catches an adapter that leaves a missing weight at its random initial value."""
    weights = _weights()
    del weights[name]
    with pytest.raises(RuntimeError, match=f'Missing key.*"{name}"'):
        run_transformer_lm(11, 6, 8, 2, 2, 12, 10000.0, weights, torch.tensor([[0]]))


def test_surplus_weight_is_an_error() -> None:
    """Catches an adapter that ignores a weight of a layer that the model doesn't have."""
    weights = _weights() | {"layers.2.ln1.weight": torch.ones(8)}
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"layers\.2\.ln1\.weight"'):
        run_transformer_lm(11, 6, 8, 2, 2, 12, 10000.0, weights, torch.tensor([[0]]))
