"""The worker runs one submission and answers the requests of a grader over a socket.

It gets the inputs of the tests and nothing else. Whatever the submission does here, the grader
receives only frames of plain data, and checks them.
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
    """Import a submission and answer requests until the grader closes the connection.

    Args:
        connection: the socket to the grader.
        folder: the folder of the submission.
        device: the device that inputs are put on.
        guard: an installed guard, which notes calls of ready-made code; None for no guard.
    """
    channel = Channel(connection)
    torch.set_num_threads(1)
    try:
        torch.zeros(1, device=device)
    except Exception as error:  # noqa: BLE001 - drivers and libraries raise errors of any type
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
                # On the CPU, every call is treated as one that may raise, and the grader asks for
                # annotations later. So the submission can't see which calls must raise an error.
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
    """Return the frame of a reply; if it can't be encoded, return one that says so."""
    try:
        return encode(reply)
    except Exception as error:  # noqa: BLE001 - a dtype or layout can make a library raise any type
        text = f"the answer can't be sent: {first_line(error)}"
        return encode({"raised": ["AnswerError", text, [], ""]})


def main() -> None:
    """Serve a submission from a fresh interpreter.

    The command's arguments are the file descriptor of the socket to the grader, the folder of the
    submission, and the device.
    """
    warnings.simplefilter("ignore")
    fd, folder, device = sys.argv[1:]
    if device == "cpu":  # the driver of a GPU must be able to read its own process
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # others must not read this process
    try:
        serve(socket.socket(fileno=int(fd)), Path(folder), device)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
