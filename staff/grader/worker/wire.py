"""Frames: how plain data crosses a socket between a grader and the process it doesn't trust.

A frame is a head (magic, length of a JSON text, length of a safetensors blob) and the two bodies.
There is no pickle anywhere. What comes in is held to a size before a byte of it is kept, to a
deadline as a whole, and to plain data: a sender can waste its own time and nothing else.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import time

import msgspec
from safetensors import SafetensorError, TensorSpec, serialize
from safetensors.torch import load
from torch import Tensor

from tests.harness.plain import DepthError, Plain, pack, unpack

MAGIC = b"CS336\x00\x00\x01"
HEAD = struct.Struct("<8sII")
MAX_TEXT = 8_000_000
"""Bytes of the JSON text of one frame."""
MAX_BLOB = 64_000_000
"""Bytes of the tensors of one frame."""
MAX_TENSORS = 20_000
MAX_AXES = 16
MAX_ELEMENTS = 1 << 26
"""Of one tensor, whose bytes say how many there are; unless it has none:"""
MAX_EMPTY = 1 << 16
"""of a tensor with an axis of length zero, that one left out."""
_CHUNK = 1 << 18
_JSON = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":"))


class _Entry(msgspec.Struct):
    """What the table of contents says about a tensor, as far as it is looked at here."""

    shape: list[int]


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
        WireError: it is too large, or too deep.
    """
    tensors: dict[str, Tensor] = {}
    try:
        text = _JSON.encode(pack(message, tensors, "t")).encode()
    except DepthError as error:
        raise WireError(str(error)) from None
    blob = _blob(tensors) if tensors else b""
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
    _check_size(len(text), len(blob))
    try:
        _check_tensors(blob)
        tensors = load(blob) if blob else {}
        return unpack(json.loads(text), tensors, recipes=recipes)
    except WireError:
        raise
    except DepthError as error:
        raise WireError(str(error)) from None
    except (SafetensorError, OverflowError, MemoryError) as error:
        raise WireError(f"not readable tensors ({type(error).__name__})") from None
    except Exception as error:  # noqa: BLE001 - whatever a sender can make a library raise
        raise WireError(f"not plain data ({type(error).__name__})") from None


class Channel:
    """Frames over a connected stream socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._early = bytearray()
        """What came with what was asked for."""

    def send(self, message: Plain, deadline: float | None = None) -> None:
        """Send one message.

        Args:
            message: plain data.
            deadline: on the clock of `time.monotonic`; none waits for ever.

        Raises:
            ClosedError: the other side is gone.
            LateError: it doesn't read in time.
        """
        self.send_frame(encode(message), deadline)

    def send_frame(self, frame: bytes, deadline: float | None = None) -> None:
        """Send what `encode` made; raises as `send` does."""
        try:
            self._until(deadline).sendall(frame)
        except TimeoutError:
            raise LateError("it is not read in time") from None
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
        kept = self._early
        while len(kept) < count:
            try:
                chunk = self._until(deadline).recv(_CHUNK)
            except TimeoutError:
                raise LateError("no answer in time") from None
            except OSError:
                raise ClosedError("the other side is gone") from None
            if not chunk:
                raise ClosedError("the other side is gone")
            kept += chunk
        read = bytes(kept[:count])
        del kept[:count]
        return read

    def _until(self, deadline: float | None) -> socket.socket:
        """The socket, on which the next call ends when the deadline passes.

        Raises:
            TimeoutError: it has passed.
        """
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection


def _blob(tensors: dict[str, Tensor]) -> bytes:
    """Tensors that share no memory, as `pack` leaves them, in the format of safetensors.

    Raises:
        WireError: one of them has no memory to read.
        Exception: no dtype of that format; of any kind.
    """
    specs = {}
    for name, tensor in tensors.items():
        address, size = tensor.data_ptr(), tensor.nbytes
        if tensor.device.type != "cpu" or (size and not address):
            raise WireError(f"a tensor on {tensor.device} can't be read")
        specs[name] = TensorSpec(
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tensor.shape,
            data_ptr=address,
            data_len=size,
        )
    return serialize(specs)


def _check_size(text: int, blob: int) -> None:
    if text > MAX_TEXT or blob > MAX_BLOB:
        raise WireError(f"too large: {text} bytes of data and {blob} of tensors")


def _check_tensors(blob: bytes) -> None:
    """Look at the table of contents before anything is made of it.

    Raises:
        WireError: too many tensors, or shapes that no answer has.
        Exception: it is none; of any kind.
    """
    if not blob:
        return
    length = int.from_bytes(blob[:8], "little")
    if length > MAX_TEXT:
        raise WireError(f"too large: a table of {length} bytes")
    table = msgspec.json.decode(blob[8 : 8 + length], type=dict[str, _Entry])
    if len(table) > MAX_TENSORS:
        raise WireError(f"too many tensors: {len(table)}")
    for entry in table.values():
        most = MAX_EMPTY if 0 in entry.shape else MAX_ELEMENTS
        if len(entry.shape) > MAX_AXES or math.prod(n or 1 for n in entry.shape) > most:
            raise WireError("a tensor of an impossible shape")
