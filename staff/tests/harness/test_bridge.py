"""The bridge: what a test gets for each thing that a submission can do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from tests.harness.bridge import Adapters, Answer, Missing, Raised
from tests.harness.errors import Crashed, Finding, NotOffered, NotStarted, WrongAnswer
from tests.harness.fingerprints import FAR, Seen
from tests.harness.results import Frame, Waiting
from tests.harness.rubric import read_rubric
from tests.harness.words import failure_lines

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

    def begin(self, task: str) -> None:
        """A new test begins."""

    def call(self, *arguments: Any, inputs: bool = False, refusal: bool = False) -> Any:
        """Give the reply."""
        self.calls.append((*arguments, inputs, refusal))
        return self._give(self.reply)

    def probe(self, name: str, arguments: Mapping[str, Any]) -> Any:
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


def caught(kind: type[Finding], fake: Fake, task: str = "rope") -> Finding:
    """The finding that calling `run_rope` ends with."""
    with pytest.raises(Finding) as raised:
        adapters(fake, task).run_rope(x=1)
    assert type(raised.value) is kind
    return raised.value


def finding(kind: type[Finding], fake: Fake, task: str = "rope") -> tuple[str, ...]:
    """The same in words."""
    return tuple(failure_lines(caught(kind, fake, task).failure))


def test_an_answer_arrives() -> None:
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
def test_only_adapters_are_adapters(name: str) -> None:
    """Catches a misspelt attribute in a test that is taken for an adapter of the submission."""
    with pytest.raises(AttributeError, match=name):
        getattr(adapters(Fake()), name)


def test_a_crash_shows_the_last_frames_of_the_student() -> None:
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
    assert caught(Crashed, Fake(Raised("KeyError", "'x'", frames))).failure.frames == frames[-4:]


def test_a_crash_is_known_by_its_type() -> None:
    """Catches a known mistake that isn't recognised where an exception is worded otherwise."""
    one, other = (caught(Crashed, Fake(Raised("KeyError", text))) for text in ("'x'", "'y'"))
    assert one.seen == other.seen
    assert one.seen == Seen(kind="raises", why="run_rope", detail="KeyError", error=FAR)


@pytest.mark.parametrize(
    ("frame", "written", "task", "waiting"),
    [
        (BODY, False, "rope", "body"),
        (BODY, False, "transformer_block", "task"),
        (GLUE, False, "rope", "body"),
        (GLUE, True, "rope", "glue"),
    ],
)
def test_what_a_stub_waits_for_is_data(
    frame: Frame, written: bool, task: str, waiting: Waiting
) -> None:
    """Catches a report that has to read a sentence to learn what a test waits for."""
    fake = Fake(stub("rope: handout §2.6", frame), written)
    assert caught(NotStarted, fake, task).failure.waiting == waiting


def test_a_stub_of_the_own_task() -> None:
    """Catches a body that nobody has written yet and that is called an error."""
    lines = finding(NotStarted, Fake(stub("rope: handout §2.6", BODY)))
    assert lines == ("not started: write `RotaryEmbedding.__init__` in cs336_basics/rope.py",)
    assert finding(NotStarted, Fake(stub("rope: handout §2.6"))) == ("not started: write rope",)


def test_a_stub_of_another_task() -> None:
    """Catches a task that waits for another one, and a student who is sent to its own file."""
    lines = finding(NotStarted, Fake(stub("rope: handout §2.6", BODY)), "transformer_block")
    assert lines == ("waits for rope · handout §2.6",)


@pytest.mark.parametrize("written", [False, Missing("no file"), Raised("ImportError", "x")])
def test_a_stub_of_the_glue(written: object) -> None:
    """Catches advice that names the glue alone while the module is not written either."""
    fake = Fake(stub("rope: handout §2.6", GLUE), written)
    assert finding(NotStarted, fake) == (
        "not started: write cs336_basics/rope.py, then `run_rope` in adapters.py",
    )


def test_only_the_glue_is_missing() -> None:
    """Catches a student who wrote the module and is told that it isn't there."""
    fake = Fake(stub("rope: handout §2.6", GLUE), written=True)
    text = "`RotaryEmbedding` is written; fill in `run_rope` in adapters.py"
    assert finding(NotStarted, fake) == (text,)
    assert fake.calls[-1] == ("written", {"symbols": ["cs336_basics.rope:RotaryEmbedding"]})


def test_pytorch_raises_the_same_type() -> None:
    """Catches a NotImplementedError of PyTorch that counts as a body which isn't written yet."""
    inside = Frame("cs336_basics/rope.py", 7, "f", "return table.cpu()")
    text = "Cannot copy out of meta tensor"
    assert finding(Crashed, Fake(stub(text, inside)))[0].endswith(f"NotImplementedError: {text}")


def test_an_adapter_that_is_missing() -> None:
    """Catches a traceback where one line is enough."""
    lines = finding(NotStarted, Fake(Missing("adapters.py has no run_rope")))
    assert lines == ("adapters.py has no run_rope; add it to your adapters",)
    assert caught(NotStarted, Fake(Missing("no run_rope"))).failure.waiting == "glue"


def test_the_output_must_be_where_the_inputs_are() -> None:
    """Catches an answer computed on the CPU for inputs on a GPU."""
    lines = finding(WrongAnswer, Fake(Answer(1), device="cuda:0"))
    assert lines == ("the inputs are on cuda, but the output is on cpu",)
    assert adapters(Fake(Answer(1, device="cuda"), device="cuda:1")).run_rope() == 1


def test_what_must_be_refused() -> None:
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


def test_a_probe() -> None:
    """Catches observations that are lost, and a failure that doesn't say that a probe ran."""
    assert adapters(Fake({"a": 1})).probe("module", symbol="m:N") == {"a": 1}
    with pytest.raises(Crashed, match=r"^the probe 'module' raised TypeError: 3$"):
        adapters(Fake(Raised("TypeError", "3"))).probe("module")
    with pytest.raises(NotStarted, match=r"^not started: write `Rotary"):
        adapters(Fake(stub("rope: handout §2.6", BODY))).probe("module")


@pytest.mark.parametrize(("layout", "kind"), [("ours", NotStarted), ("public", NotOffered)])
def test_a_name_that_a_probe_lacks(layout: str, kind: type[Finding]) -> None:
    """Catches a public submission that is blamed for a name which it never promised."""
    with pytest.raises(kind, match=r"^the submission has no cs336_basics/rope\.py$"):
        adapters(Fake(Missing("the submission has no cs336_basics/rope.py"), layout=layout)).probe(
            "module"
        )
