"""Forbidden names are found in code under any alias, and allowed names are not reported."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch  # noqa: F401 - `look_up` searches the modules that are loaded

from staff.catalogue.patches import FOLDER as CATALOGUE
from staff.catalogue.patches import load_alternates, patched
from staff.grader.intake import opened
from staff.grader.scratch.findings import findings
from staff.grader.scratch.rules import look_up
from staff.paths import ROOT, SOLUTION
from tests.harness.rubric import Scratch, read_rubric

RUBRIC = read_rubric()
RULES = RUBRIC.scratch
Find = Callable[..., list[str]]


@pytest.fixture
def found(tmp_path: Path) -> Find:
    """Return a function that writes modules of a submission and returns the findings in them.

    A finding has the form `line name how`.
    """

    def find(text: str, **others: str) -> list[str]:
        for name, content in {"m": text, **others}.items():
            (tmp_path / "cs336_basics").mkdir(exist_ok=True)
            (tmp_path / f"cs336_basics/{name}.py").write_text(content)
        return [f"{f.line} {f.name} {f.how}" for f in findings(tmp_path, RUBRIC)]

    return find


LR = "torch.optim.lr_scheduler"
F = "torch.nn.functional"
SOFTMAX = f"{F}.softmax"
READ = {
    "plain": ("import torch\ntorch.nn.functional.softmax(x, 0)", f"2 {SOFTMAX}"),
    "as F": ("import torch.nn.functional as F\nF.softmax(x, 0)", f"2 {SOFTMAX}"),
    "as n": ("from torch import nn as n\nn.functional.softmax(x)", f"2 {SOFTMAX}"),
    "from nn": ("from torch.nn import functional\nfunctional.softmax(x)", f"2 {SOFTMAX}"),
    "from": ("from torch.nn.functional import softmax as s\ns(x)", f"2 {SOFTMAX}"),
    "from, unused": ("from torch.nn.functional import softmax", f"1 {SOFTMAX}"),
    "star": ("from torch.nn.functional import *\nsoftmax(x)", f"2 {SOFTMAX}"),
    "assigned": ("import torch\nF = torch.nn.functional\nF.softmax(x)", f"3 {SOFTMAX}"),
    "assigned twice": (
        "import torch\na = torch\nb, c = a.nn, 1\nb.functional.softmax",
        f"4 {SOFTMAX}",
    ),
    "walrus": ("import torch\n(f := torch.nn.functional).softmax(x)", f"2 {SOFTMAX}"),
    "kept": (
        "import torch\nclass A:\n    act = torch.nn.functional.silu",
        f"3 {F}.silu",
    ),
    "default": (
        "from torch import nn\ndef f(x, F=nn.functional):\n    F.relu(x)",
        f"3 {F}.relu",
    ),
    "passed": ("import torch\nmap(torch.nn.functional.relu, xs)", "2 torch.nn.functional.relu"),
    "in a function": (
        "def f():\n    import torch.nn.functional as F\n    F.gelu",
        f"3 {F}.gelu",
    ),
    "inherited": ("from torch import nn\nclass Linear(nn.Linear): pass", "2 torch.nn.Linear"),
    "long way": ("import torch\ntorch.nn.modules.linear.Linear(1, 2)", "2 torch.nn.Linear"),
    "another's F": (
        "import torch\ntorch.nn.modules.activation.F.silu(x)",
        f"2 {F}.silu",
    ),
    "optimizer": ("import torch\ntorch.optim.adamw.AdamW(p)", "2 torch.optim.AdamW"),
    "schedule": (
        "from torch.optim import lr_scheduler as s\ns.CosineAnnealingLR",
        f"2 {LR}.CosineAnnealingLR",
    ),
    "clipping": (
        "from torch.nn.utils import clip_grad_norm_ as c\nc(p, 1)",
        "2 torch.nn.utils.clip_grad_norm_",
    ),
    "torch": ("import torch\ntorch.softmax(x, -1)", "2 torch.softmax"),
    "special": ("import torch\ntorch.special.softmax(x, -1)", "2 torch.special.softmax"),
    "unbound": ("from torch import Tensor\nTensor.softmax(x, -1)", "2 torch.Tensor.softmax"),
    "method": ("def f(q, k):\n    return (q @ k).softmax(-1)", "2 torch.Tensor.softmax"),
    "getattr": ("import torch\ngetattr(torch.nn, 'Linear')(1, 2)", "2 torch.nn.Linear"),
    "__dict__": ("import torch\ntorch.nn.__dict__['Linear'](1, 2)", "2 torch.nn.Linear"),
    "tiktoken": ("import tiktoken", "1 tiktoken"),
    "tokenizers": ("from tokenizers.models import BPE", "1 tokenizers"),
}


@pytest.mark.parametrize("what", READ)
def test_what_is_read(found: Find, what: str) -> None:
    """Catches a forbidden name that is not found, or is reported with a wrong name or line."""
    text, expected = READ[what]
    assert f"{expected} read" in found(text)


DODGES = {
    "getattr": ("import torch\ngetattr(torch.nn, name)", "getattr of torch.nn"),
    "string": ("import torch\ngetattr(torch.nn, 'Lin' + 'ear')", "torch.nn.Linear"),
    "import": ("__import__('to' + 'rch').nn.Linear", "__import__ of 'torch'"),
    "importlib": ("import importlib\nimportlib.import_module('torch.nn').Linear", "of 'torch.nn'"),
    "import unknown": ("from importlib import import_module as i\ni(x)", "a name that is computed"),
    "eval": ("eval('x')", "eval"),
    "exec": ("exec(x)", "exec"),
    "compile": ("compile(x, 'f', 'exec')", "compile"),
    "aten": ("import torch\ntorch.ops.aten._softmax(x, -1, False)", "torch.ops.aten._softmax"),
    "inner": ("import torch\ntorch._C._nn.silu(x)", "torch._C._nn.silu"),
    "inner, from": ("from torch import _refs as r\nr.softmax(x)", "torch._refs.softmax"),
    "modules": ("import sys\nsys.modules['torch'].nn.Linear(1, 2)", "sys.modules"),
    "joined": ("x = 'torch' + '.' + 'nn'", "the assembled text 'torch.nn'"),
    "caller": ("from operator import methodcaller\nmethodcaller('softmax', -1)(x)", "'softmax'"),
    "vars": ("import torch\nvars(torch.nn)[x]", "vars of torch.nn"),
    "__dict__": ("import torch\ntorch.nn.__dict__[x]", "torch.nn.__dict__"),
    "ctypes": ("import ctypes", "ctypes"),
}


@pytest.mark.parametrize("what", DODGES)
def test_dodges(found: Find, what: str) -> None:
    """Catches indirect access to a forbidden name, such as `getattr`, that is not reported."""
    text, expected = DODGES[what]
    assert any(expected in line for line in found(text))
    if what != "string":
        assert any(line.endswith(" dodge") for line in found(text))


@pytest.mark.parametrize("way", ["__import__('torch.nn').nn", "sys.modules['tor' 'ch'].nn"])
def test_dodges_that_can_be_read(found: Find, way: str) -> None:
    """Catches a forbidden name that is reported only as a dodge although the code states it."""
    assert "2 torch.nn.Linear read" in found(f"import sys\n{way}.Linear(1, 2)")
    text = "import importlib\nF = importlib.import_module('torch.nn' + '.functional')\nF.silu(x)"
    assert "3 torch.nn.functional.silu read" in found(text)


def test_through_another_module(found: Find) -> None:
    """Catches a forbidden name that is not found because another module imports it."""
    helper = "import torch.nn.functional as F\nfrom .third import G"
    third = "from torch import nn as G"
    text = "from cs336_basics.helper import F\nfrom . import helper as h\nF.silu\nh.G.Linear\n"
    expected = ["3 torch.nn.functional.silu read", "4 torch.nn.Linear read"]
    assert found(text, helper=helper, third=third) == expected
    assert found("from .third import *\nG.Linear", third=third) == ["2 torch.nn.Linear read"]
    assert found("from .helper import F", helper="from .m import F") == []


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nfrom torch import Tensor, nn\nimport torch.nn.functional as F",
        "from torch import nn\nnn.Parameter(nn.init.trunc_normal_(x)), nn.ModuleList(), nn.Module",
        "import torch\ntorch.sigmoid(x), torch.logsumexp(x, 0), torch.compile(f), torch.einsum",
        "import torch.nn.functional as F\nF.pad(x, (0, 1)), F.one_hot(x)",
        "from torch.optim import Optimizer\nclass AdamW(Optimizer): pass",
        "import torch\nfrom torch.optim.optimizer import Optimizer\ntorch.nn.modules.Module",
        "from torch import nn\ndef f(m: nn.Linear, *, o: nn.GRU = 0) -> nn.GRU:\n    y: nn.GRU = m",
        "from torch import nn\ndef f(m):\n    return isinstance(m, nn.Linear)",
        "from cs336_basics.ops import softmax\nsoftmax(x)",
        "import ops\nops.softmax(x)",
        "class A:\n    def f(self, x):\n        return self.softmax(x)",
        "class A:\n    def softmax(self, x): ...\nA().softmax(x), a.b.softmax(x)",
        "import re\nre.compile('x'), model.eval(), getattr(self, f'x{i}'), __import__('regex')",
        "import importlib.metadata\nimportlib.metadata.version('cs336_basics')",
        "def softmax(x): ...\nsoftmax(x)\nLinear = 3\nLinear",
        "'torch.nn.Linear'\nx = 'a' + 'b'",
        "import sys\nsys.path, sys.version_info",
    ],
)
def test_what_may_be_used(found: Find, text: str) -> None:
    """Catches a finding in code that uses nothing forbidden."""
    assert found(text) == []


@pytest.mark.parametrize(
    "folder",
    [ROOT, SOLUTION, *(CATALOGUE / f"alternates/public_{n}" for n in ("layout", "functional"))],
)
def test_nothing_in_what_is_right(folder: Path) -> None:
    """Catches a finding in the stubs, the solution, or correct code in the public layout."""
    with opened(folder) as intake:
        assert findings(intake.folder, RUBRIC) == ()


def test_nothing_in_the_alternates(tmp_path: Path) -> None:
    """Catches an alternate that has a wrong finding, or whose ready-made code is not found."""
    used = set()
    for alternate in load_alternates():
        folder = patched([alternate], SOLUTION, tmp_path / alternate.id)
        for file in folder.rglob("*.py"):  # keep only the files that the alternate changes
            if file.read_bytes() == (SOLUTION / file.relative_to(folder)).read_bytes():
                file.unlink()
        if findings(folder, RUBRIC):
            used.add(alternate.id)
    assert used == {
        "causal-lm-dropout-of-pytorch",
        "causal-loss-negative-log-softmax",
        "causal-loss-of-pytorch",
        "cross-entropy-log-softmax",
        "decoding-python-lists",
        "gqa-attention-of-pytorch",
        "loop-pytorchs-own-parts",
    }


def test_the_longest_pattern_decides() -> None:
    """Catches a name that is decided by a shorter pattern although a longer one matches it."""
    rules = Scratch(("a.*", "a.b.c"), ("a.b", "a.d.*"))
    names = ("a", "a.b", "a.b.x", "a.b.c", "a.b.c.d", "a.d", "a.d.e", "a.bc", "ab")
    assert [n for n in names if rules.forbids(n)] == ["a.b.c", "a.b.c.d", "a.d", "a.bc"]
    assert Scratch(("a.*",), ("a.*",)).forbids("a.b") is False


def test_the_rubric_names_what_there_is() -> None:
    """Catches a misspelt name in the rubric's rules, which would match no function or class."""
    for pattern in (*RULES.forbidden, *RULES.allowed, *RULES.backdoors):
        if pattern.startswith("torch."):
            assert look_up(pattern.removesuffix(".*")) is not None or "cpp_ext" in pattern, pattern
    assert all(RULES.forbids(name) for name in RUBRIC.scratch.tasks)


@pytest.mark.parametrize(
    "text", ["x = (", "\0", "a" + ".b" * 5000, "x = " + "'a' + " * 3000 + "'b'"]
)
def test_files_that_are_no_python(found: Find, text: str) -> None:
    """Catches a file that stops the whole batch because it can't be parsed."""
    assert all(" dodge" in line for line in found(text))
