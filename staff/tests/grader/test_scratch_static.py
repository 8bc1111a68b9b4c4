"""From scratch, read: what is forbidden is found by whatever name, and nothing else is."""

import pytest
import torch  # noqa: F401 - names are looked up in what is loaded

from staff.catalogue.patches import FOLDER as CATALOGUE
from staff.catalogue.patches import load_alternates, patched
from staff.grader.grade import Grade, SuiteRun, read_grade, write_grade
from staff.grader.intake import LeftOut, opened
from staff.grader.run import Grading
from staff.grader.sandbox import choose
from staff.grader.scratch.findings import enforced, findings
from staff.grader.scratch.model import Call
from staff.paths import ROOT, SOLUTION
from staff.reports.notes import notes
from staff.tests.support import small_rubric, submission, suite_result, task_result
from tests.harness.fixtures import FIXTURES
from tests.harness.results import State
from tests.harness.rubric import Scratch, read_rubric

RUBRIC = read_rubric()
RULES = RUBRIC.scratch


@pytest.fixture
def found(tmp_path):
    """Find what is in a module of a submission: `name how` for each line."""

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
def test_what_is_read(found, what):
    """Catches a name that isn't followed, or is reported as another."""
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
def test_dodges(found, what):
    """Catches a way around that isn't even reported."""
    text, expected = DODGES[what]
    assert any(expected in line for line in found(text))
    if what != "string":
        assert any(line.endswith(" dodge") for line in found(text))


@pytest.mark.parametrize("way", ["__import__('torch.nn').nn", "sys.modules['tor' 'ch'].nn"])
def test_dodges_that_can_be_read(found, way):
    """Catches a way around whose end is plain to see, and is reported as a dodge alone."""
    assert "2 torch.nn.Linear read" in found(f"import sys\n{way}.Linear(1, 2)")
    text = "import importlib\nF = importlib.import_module('torch.nn' + '.functional')\nF.silu(x)"
    assert "3 torch.nn.functional.silu read" in found(text)


def test_through_another_module(found):
    """Catches an alias that is hidden in a second file, there and back."""
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
def test_what_may_be_used(found, text):
    """Catches an honest line that is reported."""
    assert found(text) == []


@pytest.mark.parametrize(
    "folder",
    [ROOT, SOLUTION, *(CATALOGUE / f"alternates/public_{n}" for n in ("layout", "functional"))],
)
def test_nothing_in_what_is_right(folder):
    """Catches findings in the stubs, the solution, or right submissions in the public layout."""
    with opened(folder) as intake:
        assert findings(intake.folder, RUBRIC) == ()


def test_nothing_in_the_alternates(tmp_path):
    """Catches findings in right answers that are written differently.

    A few use what is ready-made, on purpose: that is right, and not from scratch.
    """
    used = set()
    for alternate in load_alternates():
        folder = patched([alternate], SOLUTION, tmp_path / alternate.id)
        for file in folder.rglob("*.py"):  # the rest is the solution's
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


def test_the_task_of_a_place(tmp_path):
    """Catches points that a finding takes from another task than its own."""
    patched([], SOLUTION, tmp_path / "s")
    file = tmp_path / "s/cs336_basics/attention.py"
    text = file.read_text().replace("(softmax(", "(torch.softmax(")
    helper = "\n\ndef _helper(x):\n    return torch.nn.functional.silu(x)\n"
    file.write_text(text + helper)
    adapters = (tmp_path / "s/adapters.py").read_text()
    (tmp_path / "s/adapters.py").write_text(
        adapters.replace("return rmsnorm", "return torch.rms_norm")
        + "\n\nimport torch\ndef run_silu(x):\n    return torch.nn.functional.silu(x)\n"
    )
    line = len(text.splitlines()) + 4
    own = {f.line: f for f in findings(tmp_path / "s", RUBRIC) if f.file.endswith("attention.py")}
    (first, *_) = own
    assert own[first].tasks == ("attention",)
    assert own[line].tasks == ("attention", "multihead_attention", "multihead_attention_rope")
    glue = [f for f in findings(tmp_path / "s", RUBRIC) if f.file == "adapters.py"]
    assert [f.tasks for f in glue] == [("silu",)]
    name = "torch.nn.functional.silu"
    calls = [
        Call(task=task, name=name, file="cs336_basics/attention.py", line=line)
        for task in ("transformer_lm", "multihead_attention", None)
    ]
    called = {f.line: f for f in findings(tmp_path / "s", RUBRIC, calls)}
    assert called[line].how == "called"
    assert called[line].tasks == ("multihead_attention",)
    assert len(own) == sum(f.file.endswith("attention.py") for f in called.values())


def test_the_task_of_a_name(tmp_path):
    """Catches a file that the rubric doesn't know, and a finding that concerns nobody."""
    (tmp_path / "cs336_basics").mkdir()
    text = "import torch\ndef f(x):\n    return torch.softmax(x, 0)\ntorch.nn.ReLU()\neval('x')"
    (tmp_path / "cs336_basics/ops.py").write_text(text)
    one, two, three = findings(tmp_path, RUBRIC)
    assert str(one) == "cs336_basics/ops.py:3 uses torch.softmax (softmax)"
    assert str(two) == "cs336_basics/ops.py:4 uses torch.nn.ReLU"
    assert str(three) == "cs336_basics/ops.py:5 could use anything through eval"


def test_points_are_taken():
    """Catches points of another task that go, or a total that stays."""
    rubric = small_rubric()
    first, second = rubric.tasks
    result = suite_result(
        task_result(first, [State.PASSED] * 3), task_result(second, [State.PASSED])
    )
    found = findings_of("first")
    taken = enforced(result, found)
    assert [task.earned for task in taken.tasks] == [0, 1]
    assert (taken.earned, taken.possible) == (1, 4)
    assert result.earned == 4
    assert enforced(result, ()) == result


def findings_of(task):
    """A finding that concerns a task, and a dodge."""
    from staff.grader.scratch.model import ScratchFinding

    return (
        ScratchFinding(file="a.py", line=1, name="torch.softmax", how="called", tasks=(task,)),
        ScratchFinding(file="a.py", line=2, name="eval", how="dodge"),
    )


def test_what_follows(tmp_path):
    """Catches points that are kept at `enforce`, lost at `report`, or said nothing of."""
    text = "from torch import softmax as ready\n\n\ndef softmax(x, dim):\n    return ready(x, dim)"
    folder = submission(tmp_path / "ada", {"cs336_basics/softmax.py": text})
    tasks = [task_result(task, [State.PASSED] * len(task.tests)) for task in RUBRIC.tasks]
    run = SuiteRun(result=suite_result(*tasks))
    line = "cs336_basics/softmax.py:5 uses torch.softmax (softmax)"
    with opened(folder) as intake:
        off, reported, taken = (
            Grading(rubric=RUBRIC, cases=FIXTURES, backend=choose("mock"), policy=policy).grade(
                "ada", run, intake
            )
            for policy in ("off", "report", "enforce")
        )
    assert (off.run, off.scratch) == (run, ())
    found = reported.scratch
    assert (reported.run, [str(finding) for finding in found]) == (run, [line])
    assert taken.run.result.earned == run.result.earned - RUBRIC.task("softmax").points
    left = (LeftOut(name="conftest.py", why="is a test"), LeftOut(name="a", why="is not needed"))
    grade = Grade(submission="ada", run=run, fixtures="f", left_out=left, scratch=found)
    write_grade(grade, tmp_path / "grade.json")
    assert read_grade(tmp_path / "grade.json") == grade
    said = "Not from scratch (a person decides; the handout lists what may be used):"
    assert notes(grade) == [said, f"  {line}", "", "Not used:", "  conftest.py is a test", ""]
    assert notes(Grade(submission="ada", run=run, fixtures="f")) == []


def test_the_longest_pattern_decides():
    """Catches a list of what is allowed that allows too much, or nothing."""
    rules = Scratch(("a.*", "a.b.c"), ("a.b", "a.d.*"))
    names = ("a", "a.b", "a.b.x", "a.b.c", "a.b.c.d", "a.d", "a.d.e", "a.bc", "ab")
    assert [n for n in names if rules.forbids(n)] == ["a.b.c", "a.b.c.d", "a.d", "a.bc"]
    assert Scratch(("a.*",), ("a.*",)).forbids("a.b") is False


def test_the_rubric_names_what_there_is():
    """Catches a slip in the list: a name that forbids or allows nothing."""
    from staff.grader.scratch.rules import look_up

    for pattern in (*RULES.forbidden, *RULES.allowed, *RULES.backdoors):
        if pattern.startswith("torch."):
            assert look_up(pattern.removesuffix(".*")) is not None or "cpp_ext" in pattern, pattern
    assert all(RULES.forbids(name) for name in RUBRIC.scratch.tasks)


@pytest.mark.parametrize(
    "text", ["x = (", "\0", "a" + ".b" * 5000, "x = " + "'a' + " * 3000 + "'b'"]
)
def test_files_that_are_no_python(found, text):
    """Catches a file that stops the grading of a class."""
    assert all(" dodge" in line for line in found(text))
