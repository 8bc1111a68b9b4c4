"""The wire protocol carries plain data without changes, and rejects everything else."""

import json
import math
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import torch

from staff.grader.worker.wire import (
    HEAD,
    MAGIC,
    MAX_AXES,
    MAX_BLOB,
    MAX_TENSORS,
    MAX_TEXT,
    Channel,
    ClosedError,
    LateError,
    WireError,
    decode,
    encode,
)
from staff.validation.frames import fuzz
from tests.harness.plain import MAX_DEPTH
from tests.harness.recipes import File, Strided

Pair = tuple[Channel, Channel]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Yield two connected channels."""
    one, other = socket.socketpair()
    with one, other:
        yield Channel(one), Channel(other)


def _soon(seconds: float = 10) -> float:
    return time.monotonic() + seconds


def _decoded(message: object, *, recipes: bool = False) -> Any:
    frame = encode(message)
    _, text, _ = HEAD.unpack(frame[: HEAD.size])
    body = frame[HEAD.size :]
    return decode(body[:text], body[text:], recipes=recipes)


def test_plain_data_goes_through(pair: Pair) -> None:
    """Catches plain data that is lost or changed between `send` and `receive`."""
    one, other = pair
    sent = {"a": [1, 2.5, None, (True, "\ud800é"), b"\x00\xff"], 7: {"x": math.inf}, (1, 2): -0.0}
    one.send(sent)
    assert other.receive(_soon()) == sent


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.complex64])
def test_tensors_go_through(dtype: torch.dtype) -> None:
    """Catches a tensor whose dtype, shape or values are changed by `encode` and `decode`."""
    tensor = torch.arange(6).reshape(2, 3).to(dtype)
    got = _decoded({"t": [tensor, tensor[:, :0]]})
    assert got["t"][0].dtype is dtype
    assert torch.equal(got["t"][0], tensor)
    assert got["t"][1].shape == (2, 0)


def test_recipes_reach_a_worker_alone() -> None:
    """Catches a grader that accepts a recipe from a submission."""
    recipe = File(b"x")
    assert _decoded([recipe], recipes=True) == [recipe]
    for message in (recipe, [[recipe]], {"x": recipe}, {recipe: 1}, ((recipe,),), {(recipe,): 1}):
        with pytest.raises(WireError, match="not plain data"):
            _decoded(message)
    with pytest.raises(WireError, match="not plain data"):
        _decoded(Strided(torch.ones(2)))


def test_frames_that_come_together_are_taken_apart(pair: Pair) -> None:
    """Catches a message that is lost or incomplete because another message follows at once."""
    one, other = pair
    sent: list[Any] = ["a", torch.ones(3), "b" * 90_000, None]
    one.send_frame(b"".join(map(encode, sent)), _soon())
    got: list[Any] = [other.receive(_soon()) for _ in sent]
    assert torch.equal(got[1], sent[1])
    assert [*got[:1], *got[2:]] == [*sent[:1], *sent[2:]]


def test_a_sender_that_stops_is_not_waited_for(pair: Pair) -> None:
    """Catches a grader that waits forever for the missing bytes of a frame."""
    one, other = pair
    one._connection.send(HEAD.pack(MAGIC, 100, 0) + b"[")
    with pytest.raises(LateError):
        other.receive(_soon(0.05))


def test_a_receiver_that_stops_is_not_waited_for(pair: Pair) -> None:
    """Catches a grader that waits forever to send data to a worker that does not read."""
    one, _ = pair
    with pytest.raises(LateError):
        one.send("x" * 4_000_000, _soon(0.05))


def test_a_hung_up_line_says_so(pair: Pair) -> None:
    """Catches a grader that waits for an answer after the worker has closed the connection."""
    one, other = pair
    one._connection.send(HEAD.pack(MAGIC, 100, 0) + b"[")
    one.close()
    with pytest.raises(ClosedError):
        other.receive(_soon())
    with pytest.raises(ClosedError):
        other.send("late", _soon())


@pytest.mark.parametrize("sizes", [(MAX_TEXT + 1, 0), (0, MAX_BLOB + 1), (2**32 - 1, 2**32 - 1)])
def test_what_is_too_large_is_refused_before_it_comes(pair: Pair, sizes: tuple[int, int]) -> None:
    """Catches a frame that is received or encoded although it is larger than the limits."""
    one, other = pair
    one._connection.send(HEAD.pack(MAGIC, *sizes))
    with pytest.raises(WireError, match="too large"):
        other.receive(_soon())
    with pytest.raises(WireError, match="too large"):
        encode("x" * (MAX_TEXT + 1))


def test_shapes_that_no_answer_has_are_refused() -> None:
    """Catches a `decode` that accepts an impossible shape, too many tensors or a huge header."""
    for shape in ([1] * (MAX_AXES + 1), [2**62, 0]):
        table = {"t": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}
        with pytest.raises(WireError, match="an impossible shape"):
            decode(b'{"$":"tensor","name":"t"}', _blob(table))
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    with pytest.raises(WireError, match="too many tensors"):
        decode(b"1", _blob({str(i): entry for i in range(MAX_TENSORS + 1)}))
    with pytest.raises(WireError, match="too large: a header of"):
        decode(b"1", (2**60).to_bytes(8, "little"))


def _blob(table: Mapping[str, Mapping[str, object]]) -> bytes:
    head = json.dumps(table).encode()
    return len(head).to_bytes(8, "little") + head


def test_nesting_has_an_end() -> None:
    """Catches deeply nested data that is accepted and could overflow the stack."""
    deep: Any = 1
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    assert _decoded(deep[0]) == deep[0]
    with pytest.raises(WireError, match="too deep"):
        encode(deep)
    with pytest.raises(WireError, match="too deep"):
        decode(b"[" * 41 + b"1" + b"]" * 41, b"")


def test_hostile_frames() -> None:
    """Catches a frame on which the grader hangs, crashes or runs out of memory.

    This test sends 2,000 frames, and `make prove` sends 100,000.
    """
    seen = fuzz(2000)
    assert seen.total() == 2000
    assert set(seen) <= {"plain data", "WireError", "ClosedError", "LateError"}
    assert seen["WireError"] > 1000
