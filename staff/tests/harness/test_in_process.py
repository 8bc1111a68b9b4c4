"""The bridge of a student: answers and errors come back as data, and nothing stays behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from staff.paths import SOLUTION
from staff.tests.support import clean_imports, submission
from tests.harness.bridge import Answer, Missing, Raised
from tests.harness.in_process import InProcess
from tests.harness.recipes import File
from tests.harness.submission import locate

BAD = """
def run_silu(in_features):
    in_features.add_(1)
    return {1: in_features, "x": None}


def run_softmax(**_):
    raise SystemExit(3)


def run_linear(**_):
    return object()


del run_rope
"""
SETTINGS = """
import torch


def spoil():
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_grad_enabled(False)


spoil()
"""


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    with clean_imports():
        yield


def test_calls(tmp_path: Path) -> None:
    """Catches an answer, an error, or a missing adapter that arrives as one of the others."""
    bridge = InProcess(locate(submission(tmp_path / "s", added={"adapters.py": BAD})))
    x = torch.zeros(2)
    answer = bridge.call("run_silu", {"in_features": x}, inputs=True)
    assert isinstance(answer, Answer)
    assert answer.output[1].tolist() == answer.inputs["in_features"].tolist() == [1, 1]
    assert x.tolist() == [0, 0]
    with pytest.raises(Missing, match=r"^adapters.py has no run_rope$"):
        bridge.call("run_rope", {})


def test_whatever_is_raised_is_data(tmp_path: Path) -> None:
    """Catches a submission that ends the run, or an answer that is no data and gets through."""
    bridge = InProcess(locate(submission(tmp_path / "s", added={"adapters.py": BAD})))
    raised = bridge.call("run_softmax", {})
    assert isinstance(raised, Raised)
    assert str(raised) == "SystemExit: 3"
    (frame,) = raised.frames
    assert (frame.file, frame.function) == ("adapters.py", "run_softmax")
    assert frame.source == "raise SystemExit(3)"
    assert str(bridge.call("run_linear", {})) == "TypeError: object is not plain data"
    assert "unexpected keyword argument 'nonsense'" in str(bridge.call("run_silu", {"nonsense": 1}))


def test_a_temporary_file_goes_by_its_name(tmp_path: Path) -> None:
    """Catches the path of a temporary folder in a message, which is another one at every run."""
    added = "def run_silu(**given):\n    raise ValueError(f'{given[\"in_features\"]}: odd')"
    bridge = InProcess(locate(submission(tmp_path / "s", added={"adapters.py": added})))
    raised = bridge.call("run_silu", {"in_features": File(b"x", ".json")})
    assert str(raised) == "ValueError: file.json: odd"


def test_what_is_set_for_the_whole_process_is_undone(tmp_path: Path) -> None:
    """Catches a default dtype, device or gradient mode of one test that decides another."""
    added = "from cs336_basics import spoil\n\n\ndef run_silu(**_):\n    spoil()"
    changed = {"cs336_basics/__init__.py": SETTINGS}
    bridge = InProcess(locate(submission(tmp_path / "s", changed, {"adapters.py": added})))
    for act in (
        lambda: "the import",
        lambda: bridge.call("run_silu", {}),
        lambda: bridge.probe("written", {"symbols": ["cs336_basics:spoil"]}),
    ):
        act()
        assert torch.get_default_dtype() == torch.float32
        assert torch.zeros(1).device.type == "cpu"
        assert torch.is_grad_enabled()


def test_gradients() -> None:
    """Catches gradients of the wrong argument, none where one is due, and one where none is."""
    bridge = InProcess(locate(SOLUTION))
    x, W, cotangent = torch.randn(3, 4), torch.randn(2, 4), torch.randn(3, 2)
    arguments = {"d_in": 4, "d_out": 2, "weights": W, "in_features": x}
    answer = bridge.call("run_linear", arguments, cotangent, ["in_features"])
    assert isinstance(answer, Answer)
    torch.testing.assert_close(answer.gradients, {"in_features": cotangent @ W})
    assert not x.requires_grad
    # The adapter copies the weight into a parameter, so none reaches what it was given.
    only = bridge.call("run_linear", arguments, cotangent, ["weights"])
    assert isinstance(only, Answer)
    assert only.gradients == {"weights": None}


def test_written() -> None:
    """Catches a stub that counts as written, and a short body that counts as a stub."""
    bridge = InProcess(locate(SOLUTION))
    every = [f"cs336_basics.{n}" for n in ("rope:RotaryEmbedding", "softmax:softmax")]
    assert bridge.probe("written", {"symbols": every}) is True
    for symbol, text in (
        ("cs336_basics.nothing:X", r"^the submission has no cs336_basics/nothing\.py$"),
        ("cs336_basics.rope:X", r"^cs336_basics/rope\.py has no X$"),
    ):
        with pytest.raises(Missing, match=text):
            bridge.probe("written", {"symbols": [symbol]})


def test_stubs_are_not_written(tmp_path: Path) -> None:
    """Catches a class with one stub among its methods that counts as written."""
    stub = "    def extra(self):\n        raise NotImplementedError('rope: x')"
    folder = submission(tmp_path / "s", added={"cs336_basics/rope.py": stub})
    bridge = InProcess(locate(folder))
    assert bridge.probe("written", {"symbols": ["cs336_basics.rope:RotaryEmbedding"]}) is False
