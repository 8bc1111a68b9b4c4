"""The bridge of a grader: the submission runs in a worker, and only plain data comes back."""

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
_OVER = "the time for the whole suite is over"


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """Where workers come from, and how much time they get."""

    line: int
    """File descriptor of the zygote's socket."""
    plan: Confinement
    import_seconds: float = 60.0
    call_seconds: float = 60.0
    suite_seconds: float = 300.0
    """For all calls together."""

    def spec(self) -> BridgeSpec:
        """How a run of the suite is told to reach its submission through a worker."""
        options = msgspec.Raw(msgspec.json.encode(self))
        return BridgeSpec(
            connect="staff.grader.worker.remote:connect",
            options=options,
            descriptors=(self.line,),
        )


class NoWorkerError(SubmissionError):
    """No worker could be started, which is no fault of the submission's."""


def connect(submission: Submission, device: str, *, options: bytes) -> Remote:
    """Make the bridge that `Workers.spec` describes."""
    return Remote(submission, device, msgspec.json.decode(options, type=Workers))


class Remote:
    """Runs a submission in a worker; implements `Bridge`.

    A worker that dies, hangs or sends what is no answer is given up. Every further call of the
    same test fails at once, and the next test gets a new worker.

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
        """A new test begins; see `Bridge.begin`."""
        self._lost = None
        self._task = task

    def noted(self) -> tuple[Call, ...]:
        """The calls that the guard beside the submission has noted, as far as it still tells."""
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
        return reply["seen"] if "seen" in reply else self._lose("ProtocolError", "no observation")

    def close(self) -> None:
        """Let the worker go."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _explained(self, raised: Raised, adapter: str, arguments: Mapping[str, Plain]) -> Raised:
        """Ask what the submission's own annotations say about a call, once for each adapter."""
        told = raised.lost or raised.type == "NotImplementedError" or adapter in self._asked
        if told or self._channel is None:
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
        """Send the zygote one end of a new line; the worker will have it."""
        ours, theirs = socket.socketpair()
        gpu = self.device.startswith("cuda")
        plan = msgspec.structs.replace(self._workers.plan, gpu=gpu or self._workers.plan.gpu)
        asked = {"plan": plan, "device": self.device}
        with theirs, socket.socket(fileno=os.dup(self._workers.line)) as line:
            try:
                socket.send_fds(line, [msgspec.json.encode(asked)], [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise NoWorkerError(f"no worker could be started: {error}") from None
        return ours

    def _expect(self, word: str, deadline: float, otherwise: type[SubmissionError]) -> None:
        """Take the next frame, which is to say that the worker has come so far."""
        assert self._channel is not None
        try:
            reply = self._channel.receive(deadline)
        except LateError:
            raise
        except WireError:
            ended = "ended its process while it was imported"
            early = otherwise is NoWorkerError
            text = "the sandbox ended before it began" if early else f"the submission {ended}"
            raise otherwise(text) from None
        match reply:
            case {"refused": str() as told} | {"problem": str() as told}:
                raise otherwise(_text(told))
            case dict() if list(reply) == [word] and reply[word] is True:
                return
        raise otherwise("no answer to use")

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
            return self._lose("ProtocolError", f"{what}: no answer to use")
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
    """Check an answer's frame.

    Raises:
        WireError: it is not one.
    """
    match reply.get("answer"):
        case [output, dict() as inputs, dict() as gradients, str() as device] if all(
            isinstance(key, str) for key in (*inputs, *gradients)
        ) and all(g is None or type(g) is Tensor for g in gradients.values()):
            return Answer(output, inputs, gradients, _text(device))
    raise WireError("no answer to use")


def _raised(raised: Any) -> Raised:
    """Check what is said about an exception.

    Raises:
        WireError: it is not what it should be.
    """
    match raised:
        case [str() as kind, str() as message, list() as frames, str() as annotations]:
            shown = tuple(_frame(frame) for frame in frames[-_MOST_FRAMES:])
            return Raised(_text(kind), _text(message), shown, _text(annotations))
    raise WireError("no exception to use")


def _frame(frame: Any) -> Frame:
    match frame:
        case [str() as file, int() as line, str() as function, str() as source]:
            return Frame(_text(file), line % _MOST_LINES, _text(function), _text(source))
    raise WireError("no frame to use")


def _text(text: str) -> str:
    """Text of a submission, short and printable."""
    return printable(text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…")
