"""Plain data: what crosses the bridge arrives as it left, shares nothing, and is nothing else."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from staff.tests.support import thorough
from tests.harness.plain import Plain, pack, plain, realise, unpack
from tests.harness.recipes import Expanded, Strided

CPU = torch.device("cpu")
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool]
TENSORS = st.builds(
    lambda shape, dtype: torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype),
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from(DTYPES),
)
KEYS = st.one_of(st.text(max_size=3), st.integers(), st.booleans(), st.binary(max_size=2))
LEAVES = st.one_of(KEYS, st.none(), st.floats(), TENSORS, TENSORS.map(Strided))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(KEYS, inner, max_size=3),
    ),
    max_leaves=8,
)


def same(a: object, b: object) -> bool:
    """Whether two plain values are equal in type, order and every bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, Strided) and isinstance(b, Strided):
        return same(a.tensor, b.tensor)
    if isinstance(a, dict) and isinstance(b, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b or (a != a and b != b)


@thorough
@given(VALUES)
def test_a_value_survives_a_file(value: Plain) -> None:
    """Catches data that changes its type, order, bits or infinity on the way through JSON."""
    tensors: dict[str, Tensor] = {}
    text = json.dumps(pack(value, tensors, "name"), allow_nan=False)
    assert same(unpack(json.loads(text), tensors), value)


def test_names_never_meet() -> None:
    """Catches two tensors that are stored under one name, so that one replaces the other."""
    one, two, three = torch.tensor(1), torch.tensor(2), torch.tensor(3)
    value = {1: one, "1": two, "a.b": one, "a": {"b": three}}
    tensors: dict[str, Tensor] = {}
    assert same(unpack(pack(value, tensors, "x"), tensors), value)
    assert list(tensors) == ["x.1", "x.1'", "x.a.b", "x.a.b'"]


def test_the_packed_form() -> None:
    """Catches a change of the stored form, which files of saved cases already have."""
    packed = pack({"w": torch.ones(2), "s": (1, b"\0"), "x": [None, float("inf")]}, {}, "case")
    assert packed == {
        "$": "dict",
        "items": [
            ["w", {"$": "tensor", "name": "case.w"}],
            ["s", {"$": "tuple", "items": [1, {"$": "bytes", "base64": "AA=="}]}],
            ["x", [None, {"$": "float", "text": "inf"}]],
        ],
    }


def test_a_packed_tensor_is_a_copy() -> None:
    """Catches a fixture that changes with the tensor it was made of, or keeps strides."""
    tensor = torch.zeros(2, 3).T
    tensors: dict[str, Tensor] = {}
    pack(tensor, tensors, "x")
    tensor += 1
    assert not tensors["x"].any()
    assert tensors["x"].is_contiguous()


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, torch.nn.Linear(1, 1), [print]])
def test_nothing_alive_crosses(value: Plain) -> None:
    """Catches an object, a function or a module that gets across as if it were data."""
    for way in (plain, lambda v: pack(v, {}, "x")):
        with pytest.raises(TypeError, match=r"^\w+ is not plain data$"):
            way(value)


def test_subclasses_do_not_cross() -> None:
    """Catches a submission's own number, list or dict with an `__eq__` that always agrees."""
    for kind in (int, float, str, list, dict):
        with pytest.raises(TypeError, match=r"^Liar is not plain data$"):
            plain(type("Liar", (kind,), {"__eq__": lambda *_: True, "__hash__": None})())


def test_a_parameter_crosses_as_a_bare_tensor() -> None:
    """Catches an answer that carries a graph, or memory that the submission can still change."""
    parameter = torch.nn.Parameter(torch.ones(2))
    crossed = plain({"w": [parameter * 2, parameter]})["w"]
    assert [type(t) for t in crossed] == [torch.Tensor, torch.Tensor]
    assert not any(t.requires_grad for t in crossed)
    parameter.data += 1
    assert crossed[1].tolist() == [1, 1]


def test_every_call_gets_fresh_copies() -> None:
    """Catches inputs that one call can change for the next."""
    value: Plain = {"x": torch.zeros(2), "more": [(torch.zeros(1),)], "n": 3}
    real = realise(value, CPU)
    real["x"] += 1
    real["more"][0][0].add_(1)
    assert type(real["more"][0]) is tuple
    assert real["n"] == 3
    assert not value["x"].any()
    assert not value["more"][0][0].any()


def test_recipes_lay_memory_out_as_they_say() -> None:
    """Catches a test of strided or expanded inputs that passes contiguous memory."""
    x = torch.arange(6.0).reshape(2, 3)
    strided, expanded = realise([Strided(x), Expanded(x[:1], (2, 3))], CPU)
    assert torch.equal(strided, x)
    assert not strided.is_contiguous()
    assert torch.equal(expanded, x[:1].expand(2, 3))
    assert expanded.stride() == (0, 1)
    assert expanded.data_ptr() != x.data_ptr()


def test_foreign_data_is_refused() -> None:
    """Catches packed data of another kind that turns into something silently."""
    with pytest.raises(ValueError, match=r"^unknown kind of packed data: 'code'$"):
        unpack([{"$": "code"}], {})
    with pytest.raises(ValueError, match=r"^unknown kind of packed data: None$"):
        unpack({}, {})
    with pytest.raises(KeyError, match="absent"):
        unpack({"$": "tensor", "name": "absent"}, {})
