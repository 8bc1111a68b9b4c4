"""The bridge: how a test reaches a submission, wherever that runs.

Only plain data crosses. A backend (in this process for a student, across a sandbox for a grade)
is a class with the methods of `Bridge`; `Adapters` is the face that tests see.
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
    """What came back from one call."""

    output: Plain
    inputs: dict[str, Plain] = field(default_factory=dict)
    """The arguments as they are after the call, where they were asked for."""
    gradients: dict[str, Tensor | None] = field(default_factory=dict)
    """For each argument asked for, its gradient for the cotangent; None if none reached it."""
    device: str = "cpu"
    """Type of the device that the output was on."""


@dataclass(frozen=True)
class Raised:
    """The submission raised: what and where, as data."""

    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    """The submission's own frames, the innermost last."""
    annotations: str = ""
    """What the submission's own annotations say about the call, in one line."""
    error: BaseException | None = field(default=None, compare=False)
    """The exception itself, for a debugger, where the submission runs in this process."""
    lost: bool = False
    """The process that ran it is gone, or out of time: no refusal, and no answer either."""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type

    @property
    def by_stub(self) -> bool:
        """Whether it came from a `raise` of the submission: PyTorch raises this type too."""
        source = self.frames[-1].source if self.frames else "raise"
        return self.type == "NotImplementedError" and source.startswith("raise")


class Missing(Exception):  # noqa: N818 - an answer, not an error
    """The submission has no such adapter, module or name."""


class Bridge(Protocol):
    """A way to run a submission's code."""

    layout: str
    """`ours` or `public`."""
    device: str
    """Where inputs are put before a call."""

    def begin(self, task: str) -> None:
        """A new test of a task begins: a bridge that lost its submission may fetch it again."""

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

        With a `cotangent`, the answer holds the gradients with respect to the arguments `wrt`;
        with `inputs`, what the call has left in its arguments.
        A call that must be refused runs on the CPU, since a look-up out of range on a GPU ends the
        whole process, and its exception is not explained.

        Raises:
            Missing: the submission has no such adapter.
        """

    def probe(self, name: str, arguments: Mapping[str, Plain]) -> Plain | Raised:
        """Run a probe of `tests.harness.probes` beside the submission.

        Raises:
            Missing: the submission lacks a name that the probe was given.
        """


def ask(bridge: Bridge, name: str, arguments: Mapping[str, Plain]) -> Plain | Raised:
    """The output of an adapter or probe, whichever bears the name."""
    if not name.startswith(ADAPTER_PREFIXES):
        return bridge.probe(name, arguments)
    reply = bridge.call(name, arguments)
    return reply if isinstance(reply, Raised) else reply.output


class Adapter:
    """One adapter of the submission, for one test."""

    def __init__(self, adapters: Adapters, name: str) -> None:
        self._adapters = adapters
        self.name = name

    def __call__(self, **arguments: Plain) -> Plain:
        """Run it and return its output alone."""
        return self.answer(arguments, inputs=False).output

    def answer(
        self,
        arguments: Mapping[str, Plain],
        cotangent: Tensor | None = None,
        wrt: Sequence[str] = (),
        *,
        inputs: bool = True,
    ) -> Answer:
        """Run it and return everything that can come back, or all but its inputs.

        Raises:
            NotStarted: a stub was reached, or the adapter is missing.
            Crashed: the submission raised anything else.
            WrongAnswer: the output is on another device than the inputs.
        """
        reply = self._call(arguments, cotangent, wrt, inputs=inputs)
        if isinstance(reply, Raised):
            raise _crashed(self.name, reply) from reply.error
        asked = self._adapters.bridge.device.partition(":")[0]
        if reply.device != asked:
            raise WrongAnswer(f"the inputs are on {asked}, but the output is on {reply.device}")
        return reply

    def error(self, why: str, **arguments: Plain) -> str:
        """Run it where it must refuse, and return the type of its exception.

        Raises:
            NotStarted: a stub was reached, or the adapter is missing.
            Crashed: its process ended, or it took too long.
            WrongAnswer: it answered; the message is `why`.
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
    """The submission as a test sees it: `adapters.run_rope(...)`, `adapters.probe(...)`."""

    def __init__(self, bridge: Bridge, rubric: Rubric, task: Task) -> None:
        self.bridge = bridge
        self.rubric = rubric
        self.task = task

    def __getattr__(self, name: str) -> Adapter:
        if name.startswith(ADAPTER_PREFIXES):
            return Adapter(self, name)
        raise AttributeError(name)

    def probing(self, name: str) -> Callable[..., Plain]:
        """A probe in the form of an adapter, for `cases.check`."""
        return functools.partial(self.probe, name)

    def probe(self, name: str, **arguments: Plain) -> Plain:
        """Run a probe and return its observations.

        Raises:
            NotOffered: the submission, in the public layout, lacks a name the probe was given.
            NotStarted: one in our layout lacks it, or a stub was reached.
            Crashed: the submission raised anything else.
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
        """Say which body is still the stub's: the glue, the task's own, or another task's."""
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
            text = f"`{names[0]}` answers; fill in `{adapter}` in {frame.file}"
            return NotStarted(text, waiting="glue")
        text = f"not started: write {self.task.files[0]}, then `{adapter}` in {frame.file}"
        return NotStarted(text, waiting="body")


def _ending(output: Plain) -> str:
    """The last values of an answer that should not have been given."""
    if not isinstance(output, Tensor) or not output.numel():
        return f"is a {type(output).__name__}"
    values = ", ".join(f"{value:.4g}" for value in output.flatten()[-3:].tolist())
    return f"has shape {tuple(output.shape)} and ends in {values}"


def _crashed(name: str, raised: Raised) -> Crashed:
    headline = f"{name} raised {raised}"
    details = [raised.annotations] if raised.annotations else []
    # How an exception is worded is up to the student, and to the version of a library.
    seen = Seen(kind="raises", why=name, detail=printable(raised.type), error=FAR)
    return Crashed(headline, *details, seen=seen, frames=raised.frames[-4:])
