"""What dtype and device go in, and what come out, in the solution's functions and modules."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from cs336_basics.attention import MultiHeadSelfAttention, scaled_dot_product_attention
from cs336_basics.embedding import Embedding
from cs336_basics.feed_forward import SwiGLU, silu
from cs336_basics.linear import Linear
from cs336_basics.rmsnorm import RMSNorm
from cs336_basics.rope import RotaryEmbedding
from cs336_basics.softmax import softmax
from cs336_basics.transformer import TransformerBlock, TransformerLM
from staff.tests.solution.checks import agree, normal

HALVES = [torch.bfloat16, torch.float16]
DTYPES = [*HALVES, torch.float32, torch.float64]

# Each is built with the keywords `device` and `dtype`.
MODULES: dict[str, Callable[..., nn.Module]] = {
    "linear": lambda **kw: Linear(8, 8, **kw),
    "embedding": lambda **kw: Embedding(9, 8, **kw),
    "rmsnorm": lambda **kw: RMSNorm(8, **kw),
    "swiglu": lambda **kw: SwiGLU(8, 12, **kw),
    "attention": lambda **kw: MultiHeadSelfAttention(8, 2, RotaryEmbedding(1e4, 4, 6, **kw), **kw),
    "block": lambda **kw: TransformerBlock(8, 2, 12, 6, 1e4, **kw),
    "model": lambda **kw: TransformerLM(9, 6, 8, 2, 2, 12, 1e4, **kw),
}
TAKES_IDS = ("embedding", "model")


def _input(name: str, dtype: torch.dtype) -> Tensor:
    if name in TAKES_IDS:
        return torch.arange(6).reshape(1, 6)
    return normal(1, 6, 8, root=2, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MODULES)
def test_modules_keep_the_dtype(name: str, dtype: torch.dtype) -> None:
    """Catches a float32 table, gain or mask that promotes the result of half-precision numbers."""
    y = MODULES[name](dtype=dtype)(_input(name, dtype))
    assert y.dtype == dtype
    assert y.isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_keep_the_dtype(dtype: torch.dtype) -> None:
    """Catches a function that answers in the dtype it works in."""
    x = normal(1, 6, 8, root=2, dtype=dtype)
    mask = torch.ones(6, 6, dtype=torch.bool).tril()
    mask[2] = False
    answers = [silu(x), softmax(x, -1), scaled_dot_product_attention(x, x, x, mask)]
    assert [answer.dtype for answer in answers] == [dtype] * 3
    assert all(answer.isfinite().all() for answer in answers)


@pytest.mark.parametrize("name", MODULES)
def test_meta_device_and_dtype_reach_every_parameter(name: str) -> None:
    """Catches `device` or `dtype` that is not handed on to a part, and a mask made on the CPU."""
    module = MODULES[name](device="meta", dtype=torch.bfloat16)
    for parameter in module.parameters():
        assert (parameter.device.type, parameter.dtype) == ("meta", torch.bfloat16)
    assert all(buffer.is_meta for buffer in module.buffers())
    y = module(_input(name, torch.bfloat16).to("meta"))
    assert (y.device.type, y.dtype) == ("meta", torch.bfloat16)


@pytest.mark.parametrize("dtype", [None, *DTYPES], ids=str)
def test_rope_tables(dtype: torch.dtype | None) -> None:
    """Catches cosines kept in half precision, or in float32 where float64 is asked for."""
    wanted = torch.float64 if dtype == torch.float64 else torch.float32
    model = TransformerLM(9, 6, 8, 2, 2, 12, 1e4, dtype=dtype)
    for module in (model, RotaryEmbedding(1e4, 4, 6, dtype=dtype)):
        tables = list(module.buffers())
        assert tables
        assert all(table.dtype == wanted and table.shape == (6, 2) for table in tables)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("gain_dtype", [torch.float32, None], ids=["float32 gain", "half gain"])
def test_rmsnorm_of_large_half_numbers(dtype: torch.dtype, gain_dtype: torch.dtype | None) -> None:
    """Catches squares taken in half precision: 300² is more than float16 holds.

    By hand: the mean square of 300 and 400 is 125000, its root 353.55; eps is nothing beside them.
    """
    x = torch.tensor([300.0, 400.0], dtype=dtype)
    y = RMSNorm(2, dtype=gain_dtype or dtype)(x)
    agree(y, (torch.tensor([300.0, 400.0]) / 125000**0.5).to(dtype))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_softmax_of_half_numbers(dtype: torch.dtype) -> None:
    """Catches differences and sums in half precision, where a small weight is off by percents."""
    x = (4 * normal(64, 128, root=2)).to(dtype)
    weights = softmax(x, -1)
    errors = (weights.double() - x.double().softmax(-1)).abs() / weights.double()
    assert errors[weights > torch.finfo(dtype).tiny].max() < torch.finfo(dtype).eps
