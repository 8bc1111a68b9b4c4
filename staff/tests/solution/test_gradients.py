"""The solution's gradients against finite differences, in float64, and against closed formulas."""

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call

from cs336_basics.attention import MultiHeadSelfAttention, scaled_dot_product_attention
from cs336_basics.embedding import Embedding
from cs336_basics.feed_forward import SwiGLU, silu
from cs336_basics.linear import Linear
from cs336_basics.rmsnorm import RMSNorm
from cs336_basics.rope import RotaryEmbedding
from cs336_basics.softmax import softmax
from cs336_basics.transformer import TransformerBlock, TransformerLM
from staff.tests.solution.checks import agree, normal

F64 = torch.float64
IDS = torch.tensor([[3, 0, 3], [1, 4, 2]])

MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...] | Tensor]] = {
    "linear": (lambda: Linear(3, 2, dtype=F64), (2, 2, 3)),
    "embedding": (lambda: Embedding(5, 2, dtype=F64), IDS),
    "rmsnorm": (lambda: RMSNorm(4, dtype=F64), (2, 3, 4)),
    "swiglu": (lambda: SwiGLU(3, 5, dtype=F64), (2, 3)),
    "attention": (lambda: MultiHeadSelfAttention(4, 2, dtype=F64), (2, 3, 4)),
    "attention with rope": (
        lambda: MultiHeadSelfAttention(4, 2, RotaryEmbedding(10.0, 2, 3, dtype=F64), dtype=F64),
        (2, 3, 4),
    ),
    "block": (lambda: TransformerBlock(4, 2, 5, 3, 10.0, dtype=F64), (1, 3, 4)),
    "model": (lambda: TransformerLM(5, 3, 4, 2, 2, 3, 10.0, dtype=F64), IDS),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Keep to one thread: for tensors this small a second one costs more than it saves."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", MODULES)
def test_module(name: str) -> None:
    """Catches a gradient that is cut, or lost on the way to a parameter or to the input."""
    build, given = MODULES[name]
    module = build()
    names = [key for key, _ in module.named_parameters()]
    shapes = [parameter.shape for parameter in module.parameters()]
    flat = normal(sum(shape.numel() for shape in shapes), root=3, dtype=F64)
    parts = flat.split([shape.numel() for shape in shapes])
    weights = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
    x = given if isinstance(given, Tensor) else normal(*given, root=2, dtype=F64).requires_grad_()

    def call(x: Tensor, *weights: Tensor) -> Tensor:
        result: Tensor = functional_call(module, dict(zip(names, weights, strict=True)), (x,))
        return result

    assert gradcheck(call, (x, *(weight.requires_grad_() for weight in weights)))


def test_silu() -> None:
    """Catches a SiLU that is right in value only, such as one with a detached gate."""
    assert gradcheck(silu, (torch.linspace(-6, 6, 13, dtype=F64).requires_grad_(),))


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_softmax(dim: int) -> None:
    """Catches a maximum, or a sum, whose gradient is cut where it matters."""
    x = normal(2, 3, 4, root=2, dtype=F64).requires_grad_()
    assert gradcheck(lambda x: softmax(x, dim), (x,))
    assert gradgradcheck(lambda x: softmax(x, dim), (x,))


def test_rope() -> None:
    """Catches a rotation through which no gradient comes back."""
    rope = RotaryEmbedding(10.0, 6, 9, dtype=F64)
    x = normal(2, 3, 6, root=2, dtype=F64).requires_grad_()
    assert gradcheck(lambda x: rope(x, torch.tensor([0, 4, 8])), (x,))


BLIND_ROW = torch.tensor([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0]], dtype=torch.bool)
MASKS = {
    "no mask": None,
    "causal": torch.ones(3, 4, dtype=torch.bool).tril(),
    "blind row": BLIND_ROW,
    "all blind": torch.zeros(3, 4, dtype=torch.bool),
}


def _qkv() -> tuple[Tensor, ...]:
    shapes = {2: (2, 3, 5), 3: (2, 4, 5), 5: (2, 4, 2)}
    return tuple(normal(*s, root=root, dtype=F64).requires_grad_() for root, s in shapes.items())


@pytest.mark.parametrize("name", MASKS)
def test_attention(name: str) -> None:
    """Catches the NaN that a fill of -inf gives to the gradients of a query that sees nothing."""
    mask = MASKS[name]
    assert gradcheck(lambda q, k, v: scaled_dot_product_attention(q, k, v, mask), _qkv())


def test_blind_query_has_zero_gradients() -> None:
    """Catches a blind query that still pulls at keys and values: it must be as if absent."""
    q, k, v = _qkv()
    answer = scaled_dot_product_attention(q, k, v, BLIND_ROW)
    gradients = torch.autograd.grad(answer.sum(), (q, k, v))
    seeing = BLIND_ROW.any(-1)
    alone = F.scaled_dot_product_attention(q[:, seeing], k, v, attn_mask=BLIND_ROW[seeing])
    wanted = torch.autograd.grad(alone.sum(), (q, k, v))
    for gradient, expected in zip(gradients, wanted, strict=True):
        agree(gradient, expected)
    assert torch.equal(gradients[0][:, ~seeing], torch.zeros(2, 1, 5, dtype=F64))


def test_rmsnorm_of_zeros() -> None:
    """Catches a root taken of 0: at x = 0 the derivative is weight / sqrt(eps), not infinity."""
    norm = RMSNorm(4, eps=1e-5, dtype=F64)
    x = torch.zeros(4, dtype=F64, requires_grad=True)
    (gradient,) = torch.autograd.grad(norm(x).sum(), x)
    agree(gradient, torch.full((4,), 1e-5**-0.5, dtype=F64))
