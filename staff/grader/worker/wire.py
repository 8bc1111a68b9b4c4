"""Frames carry plain data over a socket between the grader and a process that it does not trust.

A frame consists of a head (magic bytes, the length of a JSON text, the length of a safetensors
blob), the text and the blob. Nothing is pickled. The receiver checks the size before it stores a
byte, enforces one deadline for the whole frame, and accepts plain data only. So a hostile sender
can waste its own time and nothing else.
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
"""The most bytes of the JSON text of one frame."""
MAX_BLOB = 64_000_000
"""The most bytes of the tensors of one frame."""
MAX_TENSORS = 20_000
MAX_AXES = 16
MAX_ELEMENTS = 1 << 26
"""The most elements of one tensor."""
MAX_EMPTY = 1 << 16
"""The largest product of the other axes of a tensor with an axis of length zero. Such a tensor has
no bytes that would limit its shape."""
_CHUNK = 1 << 18
_JSON = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":"))


class _Entry(msgspec.Struct):
    """The part of a tensor's entry in a safetensors header that is checked here."""

    shape: list[int]


class WireError(Exception):
    """A frame is malformed or too large. The message is short and safe to print."""


class ClosedError(WireError):
    """The other side has closed the connection."""


class LateError(WireError):
    """The deadline has passed."""


def encode(message: Plain) -> bytes:
    """Make the frame of a message.

    Raises:
        TypeError: the message is not plain data.
        WireError: the message is too large, or nested too deep.
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
    """Return the message of a frame.

    Args:
        text: the JSON text.
        blob: the tensors, in the format of safetensors.
        recipes: accept recipes too. Only a worker does, and only from the grader.

    Raises:
        WireError: the text and the blob are not plain data.
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
        raise WireError(f"the tensors are not readable ({type(error).__name__})") from None
    except Exception as error:  # noqa: BLE001 - whatever a sender can make a library raise
        raise WireError(f"the message is not plain data ({type(error).__name__})") from None


class Channel:
    """Frames over a connected stream socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = bytearray()
        """Bytes that were received and not yet read."""

    def send(self, message: Plain, deadline: float | None = None) -> None:
        """Send one message.

        Args:
            message: plain data.
            deadline: when to give up, on the clock of `time.monotonic`; None waits for ever.

        Raises:
            ClosedError: the other side has closed the connection.
            LateError: the other side does not read in time.
        """
        self.send_frame(encode(message), deadline)

    def send_frame(self, frame: bytes, deadline: float | None = None) -> None:
        """Send a frame that `encode` made; raises the same errors as `send`."""
        try:
            self._until(deadline).sendall(frame)
        except TimeoutError:
            raise LateError("the other side does not read in time") from None
        except OSError:
            raise ClosedError("the other side has closed the connection") from None

    def receive(self, deadline: float | None = None, *, recipes: bool = False) -> Plain:
        """Wait for one message.

        Args:
            deadline: when to give up, on the clock of `time.monotonic`; None waits for ever.
            recipes: accept recipes too; see `decode`.

        Raises:
            ClosedError: the other side has closed the connection.
            LateError: the whole message did not arrive in time.
            WireError: the received bytes are not a message.
        """
        magic, text, blob = HEAD.unpack(self._read(HEAD.size, deadline))
        if magic != MAGIC:
            raise WireError("the received bytes are not a frame")
        _check_size(text, blob)
        return decode(self._read(text, deadline), self._read(blob, deadline), recipes=recipes)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _read(self, count: int, deadline: float | None) -> bytes:
        kept = self._received
        while len(kept) < count:
            try:
                chunk = self._until(deadline).recv(_CHUNK)
            except TimeoutError:
                raise LateError("no answer in time") from None
            except OSError:
                raise ClosedError("the other side has closed the connection") from None
            if not chunk:
                raise ClosedError("the other side has closed the connection")
            kept += chunk
        read = bytes(kept[:count])
        del kept[:count]
        return read

    def _until(self, deadline: float | None) -> socket.socket:
        """Return the socket, whose next call ends when the deadline passes.

        Raises:
            TimeoutError: the deadline has passed already.
        """
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection


def _blob(tensors: dict[str, Tensor]) -> bytes:
    """Encode tensors in the format of safetensors. No two share memory, since `pack` copies them.

    Raises:
        WireError: a tensor has no memory that can be read.
        Exception: the format does not have a tensor's dtype; the library raises any type.
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
        raise WireError(f"the message is too large: {text} bytes of JSON, {blob} of tensors")


def _check_tensors(blob: bytes) -> None:
    """Check the header of a safetensors blob before a tensor is made.

    Raises:
        WireError: there are too many tensors, or a shape is impossible.
        Exception: the header is malformed; the library raises any type.
    """
    if not blob:
        return
    length = int.from_bytes(blob[:8], "little")
    if length > MAX_TEXT:
        raise WireError(f"the message is too large: a header of {length} bytes")
    header = msgspec.json.decode(blob[8 : 8 + length], type=dict[str, _Entry])
    if len(header) > MAX_TENSORS:
        raise WireError(f"the message has too many tensors: {len(header)}")
    for entry in header.values():
        most = MAX_EMPTY if 0 in entry.shape else MAX_ELEMENTS
        if len(entry.shape) > MAX_AXES or math.prod(n or 1 for n in entry.shape) > most:
            raise WireError("the message has a tensor of an impossible shape")
