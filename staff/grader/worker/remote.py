"""The bridge for grading: the submission runs in a worker, and only plain data comes back."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from torch import Tensor

from staff.grader.sandbox.plan import Confinement
from staff.grader.scratch.model import Call
from staff.grader.worker.wire import Channel, ClosedError, LateError, WireError
from staff.runner.jobs import BridgeSpec
from tests.harness.bridge import Answer, Missing, Raised
from tests.harness.errors import SubmissionError, printable
from tests.harness.plain import Plain
from tests.harness.results import Frame
from tests.harness.submission import Submission

_MOST_TEXT = 2_000
_MOST_FRAMES = 8
_MOST_CALLS = 1_000
_MOST_LINES = 1_000_000
_OVER = "the time for the whole suite is used up"


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """How a run of the suite gets its workers, and how much time they have."""

    zygote_socket: int
    """The file descriptor of the zygote's socket."""
    plan: Confinement
    """How the workers are confined."""
    import_seconds: float = 60.0
    """Wall time for importing the submission."""
    call_seconds: float = 60.0
    """Wall time for one call."""
    suite_seconds: float = 300.0
    """Wall time for all imports and calls together."""

    def spec(self) -> BridgeSpec:
        """Return the spec with which the runner makes the bridge to these workers."""
        options = msgspec.Raw(msgspec.json.encode(self))
        return BridgeSpec(
            connect="staff.grader.worker.remote:connect",
            options=options,
            descriptors=(self.zygote_socket,),
        )


class NoWorkerError(SubmissionError):
    """No worker could be started, which is not the submission's fault."""


def connect(submission: Submission, device: str, *, options: bytes) -> Remote:
    """Make the bridge that `Workers.spec` describes."""
    return Remote(submission, device, msgspec.json.decode(options, type=Workers))


class Remote:
    """A `Bridge` that runs a submission in a worker.

    If a worker dies, hangs or sends something that is not an answer, the bridge closes its
    connection. Every further call of the same test then fails at once, and the next test gets a new
    worker.

    Raises:
        SubmissionError: the submission can't be imported.
    """

    def __init__(self, submission: Submission, device: str, workers: Workers) -> None:
        self.layout = submission.layout
        self.device = device
        self._workers = workers
        self._ends = time.monotonic() + workers.suite_seconds
        self._channel: Channel | None = None
        self._lost: Raised | None = None
        self._task = ""
        self._asked: set[str] = set()
        self._open()

    def begin(self, task: str) -> None:
        """Begin a new test; see `Bridge.begin`."""
        self._lost = None
        self._task = task

    def noted(self) -> tuple[Call, ...]:
        """Return the calls that the guard has noted; none if its answer is not usable."""
        self._lost = None
        reply = self._ask({"kind": "noted"}, "the guard")
        try:
            found = [] if isinstance(reply, Raised) else reply["seen"]
            calls = msgspec.convert(found[:_MOST_CALLS], tuple[Call, ...])
        except (msgspec.ValidationError, KeyError, TypeError):
            return ()
        return tuple(
            Call(task=c.task, name=_text(c.name), file=_text(c.file), line=c.line, how=c.how)
            for c in calls
        )

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
        """Call an adapter; see `Bridge.call`."""
        request = {
            "kind": "call",
            "name": adapter,
            "arguments": dict(arguments),
            "cotangent": cotangent,
            "wrt": list(wrt),
            "inputs": inputs,
            "on_cpu": refusal and self.device != "cpu",
        }
        reply = self._ask(request, f"`{adapter}`")
        if isinstance(reply, Raised):
            return reply if refusal else self._explained(reply, adapter, arguments)
        try:
            return _answer(reply)
        except WireError as error:
            return self._lose("ProtocolError", f"`{adapter}`: {error}")

    def probe(self, name: str, arguments: Mapping[str, Plain]) -> Plain | Raised:
        """Run a probe; see `Bridge.probe`."""
        request = {"kind": "probe", "name": name, "arguments": dict(arguments)}
        reply = self._ask(request, f"the probe {name!r}")
        if isinstance(reply, Raised):
            return reply
        if "seen" in reply:
            return reply["seen"]
        return self._lose("ProtocolError", f"the probe {name!r}: the reply has no observation")

    def close(self) -> None:
        """Close the connection to the worker, which ends the worker."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _explained(self, raised: Raised, adapter: str, arguments: Mapping[str, Plain]) -> Raised:
        """Add what the submission's own annotations report about a call, once for each adapter."""
        done = raised.lost or raised.type == "NotImplementedError" or adapter in self._asked
        if done or self._channel is None:
            return raised
        self._asked.add(adapter)
        request = {"kind": "complaint", "name": adapter, "arguments": dict(arguments)}
        reply = self._ask(request, f"`{adapter}`, called again,")
        text = reply.get("complaint") if isinstance(reply, dict) else None
        return replace(raised, annotations=_text(text) if isinstance(text, str) else "")

    def _open(self) -> None:
        self._channel = Channel(self._fetch())
        deadline = self._deadline(self._workers.import_seconds)
        try:
            self._expect("entered", deadline, NoWorkerError)
            self._expect("opened", deadline, SubmissionError)
        except LateError:
            self.close()
            raise SubmissionError(
                f"importing the submission took longer than {self._workers.import_seconds:g} s"
            ) from None
        except SubmissionError:
            self.close()
            raise

    def _fetch(self) -> socket.socket:
        """Request a worker from the zygote, and return the socket that leads to it.

        The request carries one end of a new socket pair, which becomes the worker's.
        """
        ours, theirs = socket.socketpair()
        gpu = self.device.startswith("cuda")
        plan = msgspec.structs.replace(self._workers.plan, gpu=gpu or self._workers.plan.gpu)
        request = {"plan": plan, "device": self.device}
        with theirs, socket.socket(fileno=os.dup(self._workers.zygote_socket)) as zygote:
            try:
                socket.send_fds(zygote, [msgspec.json.encode(request)], [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise NoWorkerError(f"no worker could be started: {error}") from None
        return ours

    def _expect(self, word: str, deadline: float, otherwise: type[SubmissionError]) -> None:
        """Receive a message, which must report that the worker has reached this state.

        Args:
            word: the state: `entered` the sandbox, or `opened` the submission.
            deadline: when to give up, on the clock of `time.monotonic`.
            otherwise: the error to raise for any other message.

        Raises:
            LateError: the deadline has passed.
            SubmissionError: the worker reported a problem, or ended.
        """
        assert self._channel is not None
        try:
            reply = self._channel.receive(deadline)
        except LateError:
            raise
        except WireError:
            early = otherwise is NoWorkerError
            text = "the worker ended before it was confined"
            if not early:
                text = "the submission ended its process while it was imported"
            raise otherwise(text) from None
        match reply:
            case {"refused": str() as reason} | {"problem": str() as reason}:
                raise otherwise(_text(reason))
            case dict() if list(reply) == [word] and reply[word] is True:
                return
        raise otherwise("the worker's reply is not valid")

    def _ask(self, request: dict[str, Plain], what: str) -> dict[str, Any] | Raised:
        if self._lost is not None:
            return self._lost
        if time.monotonic() > self._ends:
            return self._lose("TimeoutError", _OVER)
        try:
            if self._channel is None:
                self._open()
            assert self._channel is not None
            deadline = self._deadline(self._workers.call_seconds)
            self._channel.send(request | {"task": self._task}, deadline)
            reply = self._channel.receive(deadline)
        except NoWorkerError:
            raise
        except SubmissionError as error:
            return self._lose("ImportError", str(error))
        except LateError:
            if time.monotonic() > self._ends:
                return self._lose("TimeoutError", _OVER)
            seconds = self._workers.call_seconds
            return self._lose("TimeoutError", f"{what} took longer than {seconds:g} s")
        except ClosedError:
            return self._lose("ProcessEnded", f"{what} ended the process that it ran in")
        except WireError as error:
            return self._lose("ProtocolError", f"{what}: {error}")
        if not isinstance(reply, dict) or len(reply) != 1:
            return self._lose("ProtocolError", f"{what}: the reply is not valid")
        if isinstance(missing := reply.get("missing"), str):
            raise Missing(_text(missing))
        if isinstance(problem := reply.get("problem"), str):
            return self._lose("SubmissionError", _text(problem))
        if "raised" in reply:
            try:
                return _raised(reply["raised"])
            except WireError as error:
                return self._lose("ProtocolError", f"{what}: {error}")
        return reply

    def _deadline(self, seconds: float) -> float:
        return min(time.monotonic() + seconds, self._ends)

    def _lose(self, kind: str, text: str) -> Raised:
        with contextlib.suppress(OSError):
            self.close()
        self._channel = None
        self._lost = Raised(kind, text, lost=True)
        return self._lost


def _answer(reply: dict[str, Any]) -> Answer:
    """Make an answer of a reply.

    Raises:
        WireError: the reply is not an answer.
    """
    match reply.get("answer"):
        case [output, dict() as inputs, dict() as gradients, str() as device] if all(
            isinstance(key, str) for key in (*inputs, *gradients)
        ) and all(g is None or type(g) is Tensor for g in gradients.values()):
            return Answer(output, inputs, gradients, _text(device))
    raise WireError("the reply is not a valid answer")


def _raised(raised: Any) -> Raised:
    """Make a `Raised` of the description of an exception.

    Raises:
        WireError: the description is not valid.
    """
    match raised:
        case [str() as kind, str() as message, list() as frames, str() as annotations]:
            shown = tuple(_frame(frame) for frame in frames[-_MOST_FRAMES:])
            return Raised(_text(kind), _text(message), shown, _text(annotations))
    raise WireError("the description of an exception is not valid")


def _frame(frame: Any) -> Frame:
    match frame:
        case [str() as file, int() as line, str() as function, str() as source]:
            return Frame(_text(file), line % _MOST_LINES, _text(function), _text(source))
    raise WireError("a line of the traceback is not valid")


def _text(text: str) -> str:
    """Return a text of the submission, cut and made printable."""
    return printable(text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…")
