"""The worker: runs one submission for a grader that is at the other end of a socket.

It sees inputs and nothing else. Whatever happens here, all that the grader gets is frames of
plain data, and it checks them.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

from staff.grader.scratch.guard import Guard
from staff.grader.worker.wire import Channel, ClosedError, encode
from tests.harness.bridge import Answer, Missing, Raised
from tests.harness.errors import SubmissionError
from tests.harness.in_process import InProcess
from tests.harness.plain import Plain
from tests.harness.submission import first_line, locate

_PR_SET_DUMPABLE = 4


def serve(connection: socket.socket, folder: Path, device: str, guard: Guard | None = None) -> None:
    """Import a submission and answer until the grader hangs up.

    Args:
        connection: the line to the grader.
        folder: the submission.
        device: where inputs are put.
        guard: notes what is not from scratch; it has been installed.
    """
    channel = Channel(connection)
    torch.set_num_threads(1)
    try:
        torch.zeros(1, device=device)
    except Exception as error:  # noqa: BLE001 - of any kind: a driver, a library, what it lacks
        channel.send_frame(_sendable({"refused": f"{device} can't be used: {first_line(error)}"}))
        return
    channel.send({"entered": True})
    if guard is not None:
        guard.watch(folder)
    try:
        bridge = InProcess(locate(folder), device)
    except SubmissionError as error:
        channel.send_frame(_sendable({"problem": str(error)}))
        return
    channel.send({"opened": True})
    try:
        while True:
            request = channel.receive(recipes=True)
            if guard is not None:
                guard.task = request["task"]
            channel.send_frame(_sendable(_answer(bridge, request, guard)))
    except ClosedError:
        return


def _answer(bridge: InProcess, request: dict[str, Any], guard: Guard | None) -> Plain:
    kind = request["kind"]
    if kind == "noted":
        return {"seen": guard.found() if guard is not None else []}
    arguments = request["arguments"]
    try:
        if kind == "complaint":
            return {"complaint": bridge.complaint(request["name"], arguments)}
        if kind == "probe":
            reply = bridge.probe(request["name"], arguments)
        else:
            reply = bridge.call(
                request["name"],
                arguments,
                request["cotangent"],
                request["wrt"],
                inputs=request["inputs"],
                # Explained when asked, so that it can't be told which calls must be refused.
                refusal=request["on_cpu"] or bridge.device == "cpu",
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


def _sendable(reply: Plain) -> bytes:
    """The frame of a reply or, where it can't be sent, of an exception that says so."""
    try:
        return encode(reply)
    except Exception as error:  # noqa: BLE001 - dtypes and layouts that no frame holds, and worse
        text = f"the answer can't be sent: {first_line(error)}"
        return encode({"raised": ["AnswerError", text, [], ""]})


def main() -> None:
    """Serve a submission from a fresh interpreter: the line's file descriptor, folder, device."""
    warnings.simplefilter("ignore")
    fd, folder, device = sys.argv[1:]
    if device == "cpu":  # a driver of GPUs looks at its own process
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # nothing of it is to be read
    try:
        serve(socket.socket(fileno=int(fd)), Path(folder), device)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
