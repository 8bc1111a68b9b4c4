"""The bridge: what a test gets for each thing a submission can do, and in which words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from tests.harness.bridge import Adapters, Answer, Missing, Raised
from tests.harness.errors import Crashed, Finding, Frame, NotOffered, NotStarted, WrongAnswer
from tests.harness.rubric import read_rubric

RUBRIC = read_rubric()
BODY = Frame(
    "cs336_basics/rope.py", 7, "RotaryEmbedding.__init__", "raise NotImplementedError(...)"
)
GLUE = Frame("adapters.py", 9, "run_rope", 'raise NotImplementedError("rope: handout §2.6")')


@dataclass
class Fake:
    """A bridge whose replies are set beforehand; an exception among them is raised."""

    reply: object = None
    written: object = False
    layout: str = "ours"
    device: str = "cpu"
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def call(self, *arguments, inputs: bool, refusal: bool):
        """Give the reply."""
        self.calls.append((*arguments, inputs, refusal))
        return self._give(self.reply)

    def probe(self, name: str, arguments: Mapping[str, Any]):
        """Give the reply, or whether the symbols are written."""
        self.calls.append((name, arguments))
        return self._give(self.written if name == "written" else self.reply)

    def _give(self, reply: object) -> object:
        if isinstance(reply, Exception):
            raise reply
        return reply


def adapters(fake: Fake, task: str = "rope") -> Adapters:
    """The face of the fake, for a test of the task."""
    return Adapters(fake, RUBRIC, RUBRIC.task(task))


def stub(message: str, *frames: Frame) -> Raised:
    """What comes back when a stub is reached."""
    return Raised("NotImplementedError", message, frames)


def finding(kind: type[Finding], fake: Fake, task: str = "rope") -> tuple[str, ...]:
    """The lines of the finding that calling `run_rope` ends with."""
    with pytest.raises(Finding) as caught:
        adapters(fake, task).run_rope(x=1)
    assert type(caught.value) is kind
    return caught.value.lines


def test_an_answer_arrives():
    """Catches arguments that are dropped on the way, or an output that isn't the adapter's."""
    fake = Fake(Answer(3, {"x": 1}, {"x": None}))
    cotangent = torch.ones(1)
    assert adapters(fake).run_rope(x=1) == 3
    assert adapters(fake).run_rope.answer({"x": 1}, cotangent, ["x"]).gradients == {"x": None}
    assert fake.calls == [
        ("run_rope", {"x": 1}, None, (), False, False),
        ("run_rope", {"x": 1}, cotangent, ["x"], True, False),
    ]


@pytest.mark.parametrize("name", ["run", "calls", "__deepcopy__", "bridge_", "_task"])
def test_only_adapters_are_adapters(name):
    """Catches a slip in a test that becomes a call, and so a fault, of the submission."""
    with pytest.raises(AttributeError, match=name):
        getattr(adapters(Fake()), name)


def test_a_crash_shows_the_last_frames_of_the_student():
    """Catches an explanation that starts with PyTorch, or is as long as a recursion is deep."""
    frames = tuple(Frame("cs336_basics/a.py", n, f"f{n}", f"f{n}()") for n in range(9))
    assert finding(Crashed, Fake(Raised("KeyError", "'x'", frames))) == (
        "run_rope raised KeyError: 'x'",
        "  cs336_basics/a.py:5 in f5: f5()",
        "  cs336_basics/a.py:6 in f6: f6()",
        "  cs336_basics/a.py:7 in f7: f7()",
        "  cs336_basics/a.py:8 in f8: f8()",
    )
    assert finding(Crashed, Fake(Raised("ValueError", ""))) == ("run_rope raised ValueError",)


def test_a_stub_of_the_own_task():
    """Catches a first run that calls the work to be done an error."""
    lines = finding(NotStarted, Fake(stub("rope: handout §2.6", BODY)))
    assert lines == ("not started: write `RotaryEmbedding.__init__` in cs336_basics/rope.py",)
    assert finding(NotStarted, Fake(stub("rope: handout §2.6"))) == ("not started: write rope",)


def test_a_stub_of_another_task():
    """Catches a student who is sent to the wrong file: the block waits for what it calls."""
    lines = finding(NotStarted, Fake(stub("rope: handout §2.6", BODY)), "transformer_block")
    assert lines == ("waits for rope · handout §2.6",)


@pytest.mark.parametrize("written", [False, Missing("no file"), Raised("ImportError", "x")])
def test_a_stub_of_the_glue(written):
    """Catches advice that names the glue alone while the module is not written either."""
    fake = Fake(stub("rope: handout §2.6", GLUE), written)
    assert finding(NotStarted, fake) == (
        "not started: write cs336_basics/rope.py, then `run_rope` in adapters.py",
    )


def test_only_the_glue_is_missing():
    """Catches a student who wrote the module and is told that nothing is there."""
    fake = Fake(stub("rope: handout §2.6", GLUE), written=True)
    text = "`RotaryEmbedding` is written; fill in `run_rope` in adapters.py"
    assert finding(NotStarted, fake) == (text,)
    assert fake.calls[-1] == ("written", {"symbols": ["cs336_basics.rope:RotaryEmbedding"]})


def test_pytorch_raises_the_same_type():
    """Catches a real crash called `not started`: not all of PyTorch is implemented either."""
    inside = Frame("cs336_basics/rope.py", 7, "f", "return table.cpu()")
    text = "Cannot copy out of meta tensor"
    assert finding(Crashed, Fake(stub(text, inside)))[0].endswith(f"NotImplementedError: {text}")


def test_an_adapter_that_is_missing():
    """Catches a traceback where one line is enough."""
    lines = finding(NotStarted, Fake(Missing("adapters.py has no run_rope")))
    assert lines == ("adapters.py has no run_rope; add it to your adapters",)


def test_the_output_must_be_where_the_inputs_are():
    """Catches an answer computed on the CPU for inputs on a GPU."""
    lines = finding(WrongAnswer, Fake(Answer(1), device="cuda:0"))
    assert lines == ("the inputs are on cuda, but the output is on cpu",)
    assert adapters(Fake(Answer(1, device="cuda"), device="cuda:1")).run_rope() == 1


def test_what_must_be_refused():
    """Catches an answer where an error was promised, or a stub that passes for a refusal."""
    fake = Fake(Raised("IndexError", "17"), device="cuda")
    assert adapters(fake).run_rope.error("17 is too much", x=17) == "IndexError"
    assert fake.calls[-1][-1] is True
    said = (
        r"^no error was raised, but 17 is too much\nthe answer has shape \(2,\) and ends in 3, 4$"
    )
    with pytest.raises(WrongAnswer, match=said):
        adapters(Fake(Answer(torch.tensor([3.0, 4.0])))).run_rope.error("17 is too much", x=17)
    with pytest.raises(NotStarted, match="not started: write"):
        adapters(Fake(stub("rope: handout §2.6", BODY))).run_rope.error("17 is too much")


def test_a_probe():
    """Catches observations that are lost, and a failure that doesn't say that a probe ran."""
    assert adapters(Fake({"a": 1})).probe("module", symbol="m:N") == {"a": 1}
    with pytest.raises(Crashed, match=r"^the probe 'module' raised TypeError: 3$"):
        adapters(Fake(Raised("TypeError", "3"))).probe("module")
    with pytest.raises(NotStarted, match=r"^not started: write `Rotary"):
        adapters(Fake(stub("rope: handout §2.6", BODY))).probe("module")


@pytest.mark.parametrize(("layout", "kind"), [("ours", NotStarted), ("public", NotOffered)])
def test_a_name_that_a_probe_lacks(layout, kind):
    """Catches a public submission that is blamed for a name which it never promised."""
    with pytest.raises(kind, match=r"^the submission has no cs336_basics/rope\.py$"):
        adapters(Fake(Missing("the submission has no cs336_basics/rope.py"), layout=layout)).probe(
            "module"
        )
