"""The bridge: it carries the calls of a test to the submission, in this process or in a sandbox.

Only plain data crosses the bridge. A backend is a class with the methods of `Bridge`. One backend
runs the submission in this process, for a student; another runs it in a sandbox, for a grade.
Tests use the bridge through `Adapters`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from tests.harness.errors import Crashed, NotOffered, NotStarted, WrongAnswer, printable
from tests.harness.fingerprints import FAR, Seen
from tests.harness.plain import Plain
from tests.harness.results import Frame
from tests.harness.rubric import Rubric, Task

ADAPTER_PREFIXES = ("run_", "get_", "count_")


@dataclass(frozen=True)
class Answer:
    """The answer of a submission to one call."""

    output: Plain
    inputs: dict[str, Plain] = field(default_factory=dict)
    """The arguments after the call; empty if they were not requested."""
    gradients: dict[str, Tensor | None] = field(default_factory=dict)
    """The gradient of each requested argument for the cotangent; None if no gradient reached it."""
    device: str = "cpu"
    """The type of the device that the output was on."""


@dataclass(frozen=True)
class Raised:
    """An exception that the submission raised, as data."""

    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    """The frames of the submission's own code, the innermost last."""
    annotations: str = ""
    """The violation of the submission's own annotations by the call, in one line; "" if none."""
    error: BaseException | None = field(default=None, compare=False)
    """The exception itself, for a debugger; None if the submission runs in another process."""
    lost: bool = False
    """Whether the process of the submission ended or ran out of time, instead of raising."""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type

    @property
    def by_stub(self) -> bool:
        """Whether a stub of the submission raised this.

        A stub raises NotImplementedError in a `raise` statement. PyTorch raises that type too.
        """
        source = self.frames[-1].source if self.frames else "raise"
        return self.type == "NotImplementedError" and source.startswith("raise")


class Missing(Exception):  # noqa: N818 - an answer, not an error
    """The submission lacks the adapter, module or name that was requested."""


class Bridge(Protocol):
    """The methods of a backend, which runs the code of a submission."""

    layout: str
    """The layout of the submission: `ours` or `public`."""
    device: str
    """The device that inputs are moved to before a call."""

    def begin(self, task: str) -> None:
        """Prepare for a new test of `task`; a backend whose process ended may start a new one."""

    def call(
        self,
        adapter: str,
        arguments: Mapping[str, Plain],
        cotangent: Tensor | None = None,
        wrt: Sequence[str] = (),
        *,
        inputs: bool = False,
        refusal: bool = False,
    ) -> Answer | Raised:
        """Call an adapter with fresh copies of `arguments`.

        Args:
            adapter: the name of the adapter.
            arguments: its keyword arguments.
            cotangent: the gradient of a loss with respect to the output, if gradients are needed.
            wrt: the arguments whose gradients the answer must hold.
            inputs: whether the answer must hold the arguments as they are after the call.
            refusal: whether the call must raise. Such a call runs on the CPU, since an index out
                of range ends the whole process on a GPU, and its exception is not explained.

        Raises:
            Missing: the submission has no such adapter.
        """

    def probe(self, name: str, arguments: Mapping[str, Plain]) -> Plain | Raised:
        """Run a probe of `tests.harness.probes` in the process of the submission.

        Raises:
            Missing: the submission lacks a name that the probe needs.
        """


def ask(bridge: Bridge, name: str, arguments: Mapping[str, Plain]) -> Plain | Raised:
    """Return the output of the adapter or probe with this name."""
    if not name.startswith(ADAPTER_PREFIXES):
        return bridge.probe(name, arguments)
    reply = bridge.call(name, arguments)
    return reply if isinstance(reply, Raised) else reply.output


class Adapter:
    """One adapter of the submission, which a test can call."""

    def __init__(self, adapters: Adapters, name: str) -> None:
        self._adapters = adapters
        self.name = name

    def __call__(self, **arguments: Plain) -> Plain:
        """Call the adapter and return only its output."""
        return self.answer(arguments, inputs=False).output

    def answer(
        self,
        arguments: Mapping[str, Plain],
        cotangent: Tensor | None = None,
        wrt: Sequence[str] = (),
        *,
        inputs: bool = True,
    ) -> Answer:
        """Call the adapter and return its output, its gradients and, with `inputs`, its arguments.

        The arguments of this method are those of `Bridge.call`.

        Raises:
            NotStarted: a stub was reached, or the adapter is missing.
            Crashed: the submission raised any other exception.
            WrongAnswer: the output is not on the device of the inputs.
        """
        reply = self._call(arguments, cotangent, wrt, inputs=inputs)
        if isinstance(reply, Raised):
            raise _crashed(self.name, reply) from reply.error
        asked = self._adapters.bridge.device.partition(":")[0]
        if reply.device != asked:
            raise WrongAnswer(f"the inputs are on {asked}, but the output is on {reply.device}")
        return reply

    def error(self, why: str, **arguments: Plain) -> str:
        """Call the adapter with arguments that it must refuse; return the type of its exception.

        Args:
            why: the reason why an exception is right, for the message if none is raised.
            arguments: the keyword arguments of the adapter.

        Raises:
            NotStarted: a stub was reached, or the adapter is missing.
            Crashed: the process of the submission ended, or the call took too long.
            WrongAnswer: the adapter raised nothing.
        """
        reply = self._call(arguments, refusal=True)
        if isinstance(reply, Raised):
            if reply.lost:
                raise _crashed(self.name, reply)
            return reply.type
        raise WrongAnswer(f"no error was raised, but {why}", f"the answer {_ending(reply.output)}")

    def _call(
        self,
        arguments: Mapping[str, Plain],
        cotangent: Tensor | None = None,
        wrt: Sequence[str] = (),
        *,
        inputs: bool = False,
        refusal: bool = False,
    ) -> Answer | Raised:
        try:
            reply = self._adapters.bridge.call(
                self.name, arguments, cotangent, wrt, inputs=inputs, refusal=refusal
            )
        except Missing as missing:
            raise NotStarted(f"{missing}; add it to your adapters", waiting="glue") from None
        if isinstance(reply, Raised) and reply.by_stub:
            raise self._adapters.not_started(self.name, reply) from reply.error
        return reply


class Adapters:
    """The interface of a test to the submission: `adapters.run_rope(...)`, `adapters.probe(...)`.

    Args:
        bridge: runs the submission.
        rubric: the rubric.
        task: the task of the test.
    """

    def __init__(self, bridge: Bridge, rubric: Rubric, task: Task) -> None:
        self.bridge = bridge
        self.rubric = rubric
        self.task = task

    def __getattr__(self, name: str) -> Adapter:
        if name.startswith(ADAPTER_PREFIXES):
            return Adapter(self, name)
        raise AttributeError(name)

    def probing(self, name: str) -> Callable[..., Plain]:
        """Return a function that runs a probe, as `cases.check` needs it."""
        return functools.partial(self.probe, name)

    def probe(self, name: str, **arguments: Plain) -> Plain:
        """Run a probe and return its observations.

        Raises:
            NotOffered: a submission in the public layout lacks a name that the probe needs.
            NotStarted: a submission in our layout lacks such a name, or a stub was reached.
            Crashed: the submission raised any other exception.
        """
        try:
            reply = self.bridge.probe(name, arguments)
        except Missing as missing:
            if self.bridge.layout == "public":
                raise NotOffered(str(missing)) from None
            raise NotStarted(str(missing), waiting="glue") from None
        if not isinstance(reply, Raised):
            return reply
        if reply.by_stub:
            raise self.not_started(name, reply) from reply.error
        raise _crashed(f"the probe {name!r}", reply) from reply.error

    def not_started(self, caller: str, raised: Raised) -> NotStarted:
        """Name the stub that was reached: an adapter, a body of this task, or one of another task.

        Args:
            caller: the name of the adapter or probe that was called.
            raised: the exception of the stub.
        """
        frame = raised.frames[-1] if raised.frames else None
        if frame and frame.file.endswith("adapters.py"):
            return self._glue_missing(caller, frame)
        owners = self.rubric.owners(frame.file, frame.function) if frame else []
        if owners and self.task not in owners:
            owner = owners[0]
            return NotStarted(f"waits for {owner.id} · handout §{owner.handout}", waiting="task")
        where = f"`{frame.function}` in {frame.file}" if frame else self.task.id
        return NotStarted(f"not started: write {where}", waiting="body")

    def _glue_missing(self, adapter: str, frame: Frame) -> NotStarted:
        names = [symbol.partition(":")[2] for symbol in self.task.symbols]
        try:
            written = self.bridge.probe("written", {"symbols": list(self.task.symbols)})
        except Missing:
            written = False
        if written is True:
            text = f"`{names[0]}` is written; fill in `{adapter}` in {frame.file}"
            return NotStarted(text, waiting="glue")
        text = f"not started: write {self.task.files[0]}, then `{adapter}` in {frame.file}"
        return NotStarted(text, waiting="body")


def _ending(output: Plain) -> str:
    """Describe an output in one clause, with its shape and its last values."""
    if not isinstance(output, Tensor) or not output.numel():
        return f"is a {type(output).__name__}"
    values = ", ".join(f"{value:.4g}" for value in output.flatten()[-3:].tolist())
    return f"has shape {tuple(output.shape)} and ends in {values}"


def _crashed(name: str, raised: Raised) -> Crashed:
    headline = f"{name} raised {raised}"
    details = [raised.annotations] if raised.annotations else []
    # The fingerprint holds only the exception's type: its text depends on the student's code and
    # on the versions of libraries.
    seen = Seen(kind="raises", why=name, detail=printable(raised.type), error=FAR)
    return Crashed(headline, *details, seen=seen, frames=raised.frames[-4:])
