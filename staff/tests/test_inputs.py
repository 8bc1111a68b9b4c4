"""The inputs of the saved cases: drawn the same everywhere, each with a name, none too large."""

import hashlib
import inspect
import math
from collections import ChainMap, Counter

import pytest
import torch

import adapters
from staff.fixtures import oracle
from staff.fixtures.inputs import all_cases
from staff.fixtures.inputs.draw import ExactDraw
from tests.harness.plain import pack
from tests.harness.probes import PROBES
from tests.harness.rubric import read_rubric

CASES = list(all_cases("2026"))


def test_bits_do_not_depend_on_the_machine():
    """Catches a draw that goes through a library's generator or a processor's logarithm."""
    draw = ExactDraw("a seed")
    drawn = (draw.normal(3, 2), draw.uniform(-1, 1, 4), draw.integers(10, 5), draw.gain(4))
    bits = b"".join(tensor.numpy().tobytes() for tensor in drawn)
    assert [t.dtype for t in drawn[:3]] == [torch.float32, torch.float32, torch.int64]
    assert hashlib.sha256(bits).hexdigest()[:16] == "22bb4ffc06036842"


def test_another_seed_gives_other_bits():
    """Catches fresh cases for grading that are the public ones."""
    one, other, again = (ExactDraw(seed).normal(8) for seed in ("1", "2", "1"))
    assert torch.equal(one, again)
    assert not torch.isclose(one, other).any()


def test_what_is_drawn_is_spread_as_it_says():
    """Catches a scale or a mean that is off: the sum of twelve uniform numbers has variance 1."""
    draw = ExactDraw("spread")
    normal = draw.normal(20_000, scale=2.0, mean=5.0).double()
    assert normal.mean().item() == pytest.approx(5, abs=5 * 2 / math.sqrt(20_000))
    assert normal.std().item() == pytest.approx(2, rel=0.03)
    assert ((normal - 5).abs() <= 12).all()
    weight = draw.weight(100, 400)
    assert weight.shape == (100, 400)
    assert weight.std().item() == pytest.approx(1 / 20, rel=0.03)
    uniform = draw.uniform(2, 6, 20_000)
    assert uniform.min() >= 2
    assert uniform.max() < 6
    assert uniform.double().var().item() == pytest.approx(16 / 12, rel=0.05)
    assert Counter(draw.integers(3, 3000).tolist()).keys() == {0, 1, 2}
    gain = draw.gain(1000)
    assert gain.abs().min() >= 0.5
    assert 0.2 < (gain < 0).double().mean() < 0.3


def test_every_case_belongs_to_a_test():
    """Catches a case of a test that is misspelt, so that nothing checks it."""
    listed = {(task.id, test) for task in read_rubric().tasks for test in task.tests}
    assert {(case.task, case.test) for case in CASES} <= listed


def test_names_are_unique_and_say_something():
    """Catches two cases whose tensors would share a name, or a name that can't be one."""
    names = Counter((case.task, case.test, case.name) for case in CASES)
    assert max(names.values()) == 1
    for case in CASES:
        assert case.name.strip() == case.name
        assert len(case.name) > 3
        assert not set("/\n") & set(case.name), case.name


def test_arguments_are_those_of_the_adapter():
    """Catches an argument that is misspelt, missing or of another adapter."""
    for case in CASES:
        inspect.signature(oracle.function_of(case.adapter)).bind(**case.arguments)
        if case.adapter in PROBES:
            given = [case.arguments]
            if "adapters" in inspect.signature(PROBES[case.adapter]).parameters:
                given.append({"adapters": adapters})
            inspect.signature(PROBES[case.adapter]).bind(**dict(ChainMap(*given)))
        else:
            inspect.signature(getattr(adapters, case.adapter)).bind(**case.arguments)
        pack(case.arguments, {}, "x")


def test_cases_are_small():
    """Catches a case that makes the repository or every run heavy."""
    tensors = {}
    for case in CASES:
        pack(case.arguments, tensors, f"{case.test}/{case.name}")
    assert sum(t.numel() * t.element_size() for t in tensors.values()) < 2_000_000
