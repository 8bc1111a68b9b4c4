"""Frames: how plain data crosses a socket between a grader and the process it doesn't trust.

A frame is a head (magic, length of a JSON text, length of a safetensors blob) and the two bodies.
There is no pickle anywhere. What comes in is held to a size before a byte of it is kept, to a
deadline as a whole, and to plain data: a sender can waste its own time and nothing else.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from tests.harness.plain import Plain, pack, unpack
from tests.harness.recipes import RECIPES

MAGIC = b"CS336\x00\x00\x01"
HEAD = struct.Struct("<8sII")
MAX_TEXT = 8_000_000
"""Bytes of the JSON text of one frame."""
MAX_BLOB = 128_000_000
"""Bytes of the tensors of one frame."""
_CHUNK = 1 << 18


class WireError(Exception):
    """A frame is not one, or too large; what it says is short and safe to print."""


class ClosedError(WireError):
    """The other side is gone."""


class LateError(WireError):
    """The deadline passed."""


def encode(message: Plain) -> bytes:
    """Make the frame of a message.

    Raises:
        TypeError: it is not plain data.
        WireError: it is too large.
    """
    tensors: dict[str, Tensor] = {}
    text = json.dumps(pack(message, tensors, "t"), allow_nan=False).encode()
    blob = save(tensors) if tensors else b""
    _check_size(len(text), len(blob))
    return HEAD.pack(MAGIC, len(text), len(blob)) + text + blob


def decode(text: bytes, blob: bytes, *, recipes: bool = False) -> Plain:
    """Undo `encode` for the bodies of a frame.

    Args:
        text: the JSON text.
        blob: the tensors.
        recipes: take recipes too; only a worker does, and only from the grader.

    Raises:
        WireError: they are no plain data.
    """
    try:
        tensors = load(blob) if blob else {}
        message = unpack(json.loads(text), tensors)
        if not recipes:
            _refuse_recipes(message)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise WireError(f"not plain data ({type(error).__name__})") from None
    except (SafetensorError, OverflowError, MemoryError) as error:
        raise WireError(f"not readable tensors ({type(error).__name__})") from None
    return message


class Channel:
    """Frames over a connected stream socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.setblocking(False)

    def send(self, message: Plain, deadline: float | None = None) -> None:
        """Send one message.

        Args:
            message: plain data.
            deadline: on the clock of `time.monotonic`; none waits for ever.

        Raises:
            ClosedError: the other side is gone.
            LateError: it doesn't read in time.
        """
        rest = memoryview(encode(message))
        while rest:
            try:
                rest = rest[self._connection.send(rest[:_CHUNK]) :]
            except BlockingIOError:
                self._wait(deadline, writing=True)
            except OSError:
                raise ClosedError("the other side is gone") from None

    def receive(self, deadline: float | None = None, *, recipes: bool = False) -> Plain:
        """Wait for one message.

        Raises:
            ClosedError: the other side is gone.
            LateError: the whole message was not there in time.
            WireError: what came is no message.
        """
        magic, text, blob = HEAD.unpack(self._read(HEAD.size, deadline))
        if magic != MAGIC:
            raise WireError("what came is not a frame")
        _check_size(text, blob)
        return decode(self._read(text, deadline), self._read(blob, deadline), recipes=recipes)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def _read(self, count: int, deadline: float | None) -> bytes:
        kept = bytearray()
        while len(kept) < count:
            try:
                chunk = self._connection.recv(min(_CHUNK, count - len(kept)))
            except BlockingIOError:
                self._wait(deadline)
                continue
            except OSError:
                raise ClosedError("the other side is gone") from None
            if not chunk:
                raise ClosedError("the other side is gone")
            kept += chunk
            if deadline is not None and time.monotonic() > deadline:
                raise LateError("no answer in time")
        return bytes(kept)

    def _wait(self, deadline: float | None, *, writing: bool = False) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise LateError("no answer in time")
        ends = [self._connection]
        select.select([] if writing else ends, ends if writing else [], [], left)


def _check_size(text: int, blob: int) -> None:
    if text > MAX_TEXT or blob > MAX_BLOB:
        raise WireError(f"too large: {text} bytes of data and {blob} of tensors")


def _refuse_recipes(value: Any) -> None:
    """Only the grader gives recipes: what they build must never be built on its side."""
    if isinstance(value, RECIPES):
        raise TypeError("a recipe")
    for item in value.values() if isinstance(value, dict) else ():
        _refuse_recipes(item)
    for item in value if isinstance(value, list | tuple | dict) else ():
        _refuse_recipes(item)
