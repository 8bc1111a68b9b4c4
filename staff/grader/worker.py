"""The worker: runs one submission for a grader that is at the other end of a socket.

It sees inputs and nothing else. Whatever happens here, all that the grader gets is frames of
plain data, and it checks them.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import torch

from staff.grader.wire import Channel, ClosedError, WireError
from tests.harness.bridge import Answer, Missing, Raised
from tests.harness.errors import SubmissionError
from tests.harness.in_process import InProcess
from tests.harness.plain import Plain
from tests.harness.submission import locate


def serve(connection: socket.socket, folder: Path, device: str) -> None:
    """Import a submission and answer until the grader hangs up."""
    channel = Channel(connection)
    torch.set_num_threads(1)
    try:
        bridge = InProcess(locate(folder), device)
    except SubmissionError as error:
        channel.send({"problem": str(error)})
        return
    channel.send({"opened": True})
    try:
        while True:
            request = channel.receive(recipes=True)
            channel.send(_sendable(_answer(bridge, request)))
    except ClosedError:
        return


def _answer(bridge: InProcess, request: dict[str, Any]) -> Plain:
    kind, arguments = request["kind"], request["arguments"]
    try:
        if kind == "probe":
            reply = bridge.probe(request["name"], arguments)
        else:
            reply = bridge.call(
                request["name"],
                arguments,
                request["cotangent"],
                request["wrt"],
                refusal=request["refusal"],
            )
    except Missing as missing:
        return {"missing": str(missing)}
    except SubmissionError as error:
        return {"problem": str(error)}
    if isinstance(reply, Raised):
        frames = [[f.file, f.line, f.function, f.source] for f in reply.frames[-8:]]
        return {
            "raised": [reply.type, reply.message, frames, reply.annotations],
        }
    if isinstance(reply, Answer):
        return {"answer": [reply.output, reply.inputs, reply.gradients, reply.device]}
    return {"seen": reply}


def _sendable(reply: Plain) -> Plain:
    """The reply, or, where it can't be sent, an exception that says so."""
    from staff.grader.wire import encode

    try:
        encode(reply)
    except (WireError, TypeError, ValueError, RuntimeError) as error:
        return {"raised": ["AnswerError", f"the answer can't be sent: {error}", [], ""]}
    return reply
