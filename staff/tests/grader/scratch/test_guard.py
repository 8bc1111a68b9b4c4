"""The guard notes which forbidden functions a submission calls, and changes no result."""

import functools
import importlib.util
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from staff.grader.scratch.guard import Guard
from staff.grader.scratch.rules import bindings
from staff.paths import ROOT, SOLUTION
from staff.tests.support import clean_imports
from tests.harness.bridge import Answer
from tests.harness.in_process import InProcess
from tests.harness.rubric import read_rubric
from tests.harness.submission import locate

RULES = read_rubric().scratch


Run = Callable[[str], tuple[dict[str, Any], list[str]]]


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Guard]:
    """Install a guard that watches the test's folder, and remove it after the test."""
    made = Guard(RULES)
    made.install()
    made.watch(tmp_path)
    yield made
    made.remove()


@pytest.fixture
def run(guard: Guard, tmp_path: Path) -> Iterator[Run]:
    """Yield a function that runs code as a file of the submission.

    The function returns the names that the code defines, and the notes as `line name how`.
    """

    def run_text(text: str) -> tuple[dict[str, Any], list[str]]:
        file = tmp_path / "m.py"
        file.write_text(f"import torch\nfrom torch import nn\nx = torch.ones(2, 3)\n{text}\n")
        spec = importlib.util.spec_from_file_location("m_of_guard", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["m_of_guard"] = module
        spec.loader.exec_module(module)
        assert all(note["file"] == "m.py" for note in guard.found())
        return vars(module), [f"{n['line']} {n['name']} {n['how']}" for n in guard.found()]

    yield run_text
    sys.modules.pop("m_of_guard", None)


NOTED = {
    "nn.functional.silu(x)": "torch.nn.functional.silu",
    "torch.softmax(x, -1)": "torch.softmax",
    "x.softmax(-1)": "torch.Tensor.softmax",
    "torch.special.softmax(x, -1)": "torch.special.softmax",
    "getattr(torch.nn, 'Lin' + 'ear')(3, 2)": "torch.nn.Linear",
    "nn.modules.linear.Linear(3, 2)": "torch.nn.Linear",
    "nn.modules.activation.F.linear(x, x)": "torch.nn.functional.linear",
    "getattr(x, 'soft' + 'max')(-1)": "torch.Tensor.softmax",
    "list(map(nn.functional.relu, [x]))": "torch.nn.functional.relu",
    "exec('torch.softmax(x, -1)')": "torch.softmax",
    "eval('lambda: torch.softmax(x, -1)')()": "torch.softmax",
    "__import__('importlib').import_module('torch.nn').SiLU()": "torch.nn.SiLU",
    "nn.Tanh()": "torch.nn.Tanh",
    "torch.optim.AdamW([nn.Parameter(x)])": "torch.optim.AdamW",
    "nn.utils.clip_grad_norm_([nn.Parameter(x)], 1.0)": "torch.nn.utils.clip_grad_norm_",
    "nn.utils.clip_grad.clip_grad_norm_([], 1.0)": "torch.nn.utils.clip_grad_norm_",
    "nn.MultiheadAttention(4, 2)": "torch.nn.MultiheadAttention",
    "type('Mine', (nn.Linear,), {})(3, 2)": "torch.nn.Linear",
}


@pytest.mark.parametrize("text", NOTED)
def test_what_is_noted(run: Run, text: str) -> None:
    """Catches a forbidden call that is not noted, or is noted with a wrong name or line number."""
    assert run(text)[1] == [f"4 {NOTED[text]} called"]


def test_a_method_of_a_class(run: Run) -> None:
    """Catches a call of `nn.SiLU.forward` that is not noted if its object is not an `nn.SiLU`."""
    text = "nn.SiLU.forward(type('S', (), {'inplace': False})(), x)"
    assert "4 torch.nn.SiLU called" in run(text)[1]


def test_inner_operators(run: Run) -> None:
    """Catches a call of an operator in `torch.ops.aten` that is not noted as a dodge."""
    noted = run("torch.ops.aten._softmax(x, -1, False)\ntorch.ops.aten.silu.default(x)")[1]
    name = "torch.ops.aten"
    assert noted == [f"4 {name}._softmax dodge", f"5 {name}.silu.default dodge"]


def test_a_derived_class(run: Run) -> None:
    """Catches an object of a class derived from `nn.Linear` that is created without a note."""
    names, noted = run("class Linear(nn.Linear):\n    def extra(self): ...")
    assert noted == []
    names["Linear"](3, 2)
    assert run("class A(nn.Module): ...\nA()\nnn.ModuleList(), nn.Parameter(x), nn.Identity()")[
        1
    ] == ["5 torch.nn.Linear called"]


def test_an_import(run: Run) -> None:
    """Catches an import of a ready-made tokenizer that is not noted."""
    noted = run("try:\n    import sentencepiece\nexcept ImportError: pass")[1]
    assert noted == ["5 sentencepiece called"]


def test_the_task(run: Run, guard: Guard) -> None:
    """Catches a call that is noted for a task whose tests are not running."""
    names, _ = run("def f():\n    return torch.softmax(x, -1)")
    for task in ("softmax", "attention", "softmax"):
        guard.task = task
        names["f"]()
    notes = [(note["task"], note["line"]) for note in guard.found()]
    assert notes == [("softmax", 5), ("attention", 5)]


def test_what_pytorch_and_others_call(guard: Guard, run: Run) -> None:
    """Catches a call by PyTorch or by a test that is noted as a call by the submission."""
    torch.nn.functional.softmax(torch.ones(2), 0)
    torch.nn.Linear(2, 2)(torch.ones(2)).softmax(0)
    layer = torch.nn.TransformerEncoderLayer(4, 2)
    assert run("def f(layer):\n    return layer(torch.ones(1, 2, 4))")[1] == []
    run("def f(layer):\n    return layer(torch.ones(1, 2, 4))")[0]["f"](layer)
    assert guard.found() == []


def test_notes_have_an_end(run: Run, guard: Guard) -> None:
    """Catches a list of notes that grows without limit."""
    run("\n".join("torch.softmax(x, -1)" for _ in range(1200)))
    assert len(guard.found()) == 1000


def test_nothing_changes(guard: Guard) -> None:
    """Catches a watched function that returns a different result, or can't be pickled."""
    F = torch.nn.functional
    x = torch.randn(3, 4, requires_grad=True)
    expected = torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)
    torch.testing.assert_close(F.softmax(x, dim=-1), expected)
    for function in (F.softmax, F.linear, F.silu, torch.softmax, torch.nn.utils.clip_grad_norm_):
        assert pickle.loads(pickle.dumps(function)) is function
    layer = torch.nn.Linear(4, 2)
    again = pickle.loads(pickle.dumps(layer))
    assert torch.equal(again(x), layer(x))
    assert functools.partial(F.softmax, dim=0)(x).shape == x.shape
    assert isinstance(layer, torch.nn.Module)
    assert type(layer) is torch.nn.Linear
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        torch.nn.Linear(3)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        F.silu()  # type: ignore[call-arg]


def test_everything_is_put_back() -> None:
    """Catches a function or constructor that stays replaced after the guard is removed."""
    before = {(id(b.holder), b.attribute): b.value for b in bindings(RULES)}
    classes = [b.value for b in bindings(RULES) if isinstance(b.value, type)]
    constructors = [vars(cls).get("__init__") for cls in classes]
    guard = Guard(RULES)
    guard.install()
    assert torch.softmax.__name__ == "softmax"
    assert torch.softmax is not before[id(torch), "softmax"]
    guard.remove()
    assert {(id(b.holder), b.attribute): b.value for b in bindings(RULES)} == before
    assert [vars(cls).get("__init__") for cls in classes] == constructors
    assert "softmax" not in vars(torch.Tensor)


def test_the_solution_has_no_finding(guard: Guard) -> None:
    """Catches a note about the solution, which calls nothing forbidden, or a changed result."""
    guard.watch(SOLUTION)
    with clean_imports():
        bridge = InProcess(locate(SOLUTION), annotate=False)
        from cs336_basics.transformer import TransformerLM

        model = TransformerLM(11, 8, 16, 2, 2, 32, 10000.0)
        ids = torch.arange(6)[None]
        loss = model(ids).logsumexp(-1).sum()
        loss.backward()
        answer = bridge.call("run_softmax", {"in_features": torch.ones(2), "dim": 0})
        assert isinstance(answer, Answer)
        assert isinstance(answer.output, torch.Tensor)
        assert torch.equal(answer.output, torch.tensor([0.5, 0.5]))
        again = pickle.loads(pickle.dumps(model))
        assert torch.equal(again(ids), model(ids))
    assert guard.found() == []


COMPILED = """
import sys, torch, pathlib
from staff.grader.scratch.rules import bindings
from staff.grader.scratch.guard import Guard
from tests.harness.rubric import read_rubric
guard = Guard(read_rubric().scratch)
guard.install()
guard.watch(pathlib.Path(sys.argv[1]))
sys.path.insert(0, sys.argv[1])
from cs336_basics.transformer import TransformerLM
import mine
torch.manual_seed(0)
model = TransformerLM(11, 8, 16, 2, 2, 32, 10000.0)
ids = torch.arange(6)[None]
plain = model(ids)
compiled = torch.compile(model, backend="eager", fullgraph=True)(ids)
assert torch.equal(plain, compiled)
f = torch.compile(mine.f, backend="eager", fullgraph=True)
x = torch.randn(3, 4)
assert torch.allclose(f(x), mine.f(x))
print([(n["name"], n["line"]) for n in guard.found()])
"""


def test_the_compiler(tmp_path: Path) -> None:
    """Catches a guard that makes `torch.compile` fail, or changes the results of compiled code."""
    (tmp_path / "cs336_basics").symlink_to(SOLUTION / "cs336_basics")
    (tmp_path / "mine.py").write_text(
        "import torch\ndef f(x):\n    return torch.nn.functional.silu(x.softmax(-1))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", COMPILED, str(tmp_path)],
        cwd=Path(ROOT),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[('torch.Tensor.softmax', 3), ('torch.nn.functional.silu', 3)]\n"
