"""Hostile frames: for every frame that a worker sends, a grader soon gets plain data or an error.

Every frame is drawn from a seed. Some frames are noise. Most are nearly right, since the grader
reads more of these: real frames with bytes flipped, cut or joined, heads with false lengths, tables
of tensors with false shapes, data that is nested deeply.
"""

from __future__ import annotations

import json
import random
import resource
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable

import torch

from staff.grader.worker.wire import HEAD, MAGIC, MAX_BLOB, MAX_TEXT, Channel, WireError, encode
from staff.validation.judge import Section

_DEADLINE = 2.0
"""Seconds that the grader waits for a frame; the sender closes its socket long before."""
_SLOW = 5.0
"""Seconds that a frame may take at most, even on a slow machine."""
_GROWTH = 1 << 30
"""Bytes of memory that all frames together may add: enough for copies of the largest frame."""


def fuzz(count: int, seed: str = "frames") -> Counter[str]:
    """Send hostile frames through a socket, and count the results.

    Args:
        count: the number of frames.
        seed: the seed of all frames.

    Returns:
        How many frames raised each type of error, and how many were "plain data".

    Raises:
        AssertionError: a frame took too long, or the frames took too much memory.
        Exception: a frame raised an error that is not a `WireError`.
    """
    draw = random.Random(seed)
    results: Counter[str] = Counter()
    start = _peak()
    for number in range(count):
        frame = draw.choice(_KINDS)(draw)
        began = time.monotonic()
        results[_receive(frame)] += 1
        took = time.monotonic() - began
        assert took < _SLOW, f"frame {number} of {seed!r} took {took:.1f} s; {_SLOW} s are allowed"
    added = _peak() - start
    assert added < _GROWTH, f"the frames took {added} bytes of memory; {_GROWTH} are allowed"
    return results


def judge_frames(count: int) -> Section:
    """Send hostile frames; for each of them the grader must get plain data or an error."""
    results = fuzz(count)
    errors = results.total() - results["plain data"]
    return Section(
        name="hostile frames",
        promise="produce an error or plain data, quickly and in little memory",
        total=count,
        figures=(f"{errors:,} frames are errors, {results['plain data']:,} are plain data",),
    )


def _receive(frame: bytes) -> str:
    """Send one frame, close the socket, and return the grader's error type or "plain data"."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    with ours, theirs:
        theirs.setblocking(False)
        while frame:
            try:
                frame = frame[theirs.send(frame) :]
            except BlockingIOError:
                break  # the socket's buffer is full: the grader gets the start of the frame
        theirs.close()
        try:
            channel.receive(time.monotonic() + _DEADLINE)
        except WireError as error:
            return type(error).__name__
    return "plain data"


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _real(draw: random.Random) -> bytes:
    """Make a frame such as a worker sends."""
    tensor = torch.arange(draw.randrange(1, 9)).to(draw.choice((torch.float32, torch.int64)))
    text = draw.choice(("x", "\ud800", "\u202e", "9" * 50))
    values = [tensor, {"a": [1.5, None, (True, text)], 7: b"\x00\xff"}, float("nan"), 10**40]
    draw.shuffle(values)
    return encode({draw.choice(("answer", "seen", "raised")): values})


def _noise(draw: random.Random) -> bytes:
    return draw.randbytes(draw.randrange(200))


def _cut(draw: random.Random) -> bytes:
    frame = _real(draw)
    return frame[: draw.randrange(len(frame))]


def _flipped(draw: random.Random) -> bytes:
    frame = bytearray(_real(draw))
    for _ in range(draw.randrange(1, 9)):
        frame[draw.randrange(len(frame))] = draw.randrange(256)
    return bytes(frame)


def _spliced(draw: random.Random) -> bytes:
    one, other = _real(draw), _real(draw)
    return one[: draw.randrange(len(one))] + other[draw.randrange(len(other)) :]


def _lying_head(draw: random.Random) -> bytes:
    sizes = (0, 1, 63, 4096, MAX_TEXT, MAX_TEXT + 1, MAX_BLOB, MAX_BLOB + 1, 2**31, 2**32 - 1)
    head = HEAD.pack(MAGIC, draw.choice(sizes), draw.choice(sizes))
    return head + draw.randbytes(draw.randrange(64))


def _framed(text: bytes, blob: bytes = b"") -> bytes:
    return HEAD.pack(MAGIC, len(text), len(blob)) + text + blob


def _nested(draw: random.Random) -> bytes:
    depth = draw.choice((30, 45, 500, 5_000))
    left, right = draw.choice(
        (
            (b"[", b"]"),
            (b'{"$":"tuple","items":[', b"]}"),
            (b'{"$":"dict","items":[[1,', b"]]}"),
            (b'{"$":"dict","items":[[', b",1]]}"),
        )
    )
    return _framed(left * depth + b"1" + right * draw.choice((depth, depth - 1)))


def _odd_data(draw: random.Random) -> bytes:
    """Make a frame whose text is JSON that `pack` never writes, or not JSON."""
    return _framed(draw.choice(_ODD))


_ODD = (
    b"", b"null", b"NaN", b"-Infinity", b"1e999", b"9" * 4000, b"9" * 6000, b"\xff\xfe", b"[1,]",
    b"{}", b'{"$":[]}', b'{"$":"tensor"}', b'{"$":"tensor","name":"t"}',
    b'{"$":"tensor","name":[]}',
    b'{"$":"bytes","base64":5}', b'{"$":"bytes","base64":"\\ud800"}',
    b'{"$":"bytes","base64":"="}',
    b'{"$":"float","text":[]}', b'{"$":"float","text":"1_0"}', b'{"$":"float"}',
    b'{"$":"dict","items":5}', b'{"$":"dict","items":[1]}', b'{"$":"dict","items":[[[],1]]}',
    b'{"$":"dict","items":[[{"$":"dict","items":[]},1]]}', b'{"$":"dict","items":[[1,2],[1,3]]}',
    b'{"$":"dict","items":[[{"$":"float","text":"nan"},1],[{"$":"float","text":"nan"},2]]}',
    b'{"$":"tuple","items":5}', b'{"$":"tuple"}', b'{"$":"File","fields":{}}',
    b'{"$":"File","fields":{"$":"dict","items":[["content",{"$":"bytes","base64":""}]]}}',
    b'[[{"$":"File","fields":{"$":"dict","items":[["content",1],["suffix","/../../x"]]}}]]',
    b'{"$":"dict","items":[[{"$":"File","fields":{"$":"dict","items":[["content",1]]}},1]]}',
    b'{"$":"Strided","fields":{"$":"dict","items":[["tensor",1]]}}', b'{"$":"__class__"}',
    b'{"$":"Array","fields":{"$":"dict","items":[["self",1],["values",1],["dtype","O"]]}}',
    b'"\\ud800"', b'["\\u0000"]', b"[" + b"[]," * 50_000 + b"1]", b"[true,1,1.0]",
)  # fmt: skip


def _odd_tensors(draw: random.Random) -> bytes:
    """Make a frame whose table of tensors is wrong."""
    shape = draw.choice((
        [], [4], [0], [2**62, 0], [0, 2**62], [2**33, 2**33], [-1, -4], [1] * 17, [1] * 20_000,
        ["4"], [4.5], None, "4", [True], [[4]], [1e400],
    ))  # fmt: skip
    dtype = draw.choice(("F32", "F64", "BF16", "BOOL", "I64", "C64", "F8_E4M3", "F4", "X", None, 5))
    offsets = draw.choice(([0, 16], [0, 0], [16, 0], [0, 2**63], [8, 24], [-16, 0], [], None, "ab"))
    entry = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
    table: object = draw.choice((
        {"t": entry},
        {"t": entry, "u": entry},
        {f"t{i}": entry for i in range(draw.choice((3, 300)))},
        {"t": [entry]},
        [entry],
        {"__metadata__": entry},
        5,
    ))  # fmt: skip
    head = json.dumps(table).encode()
    length = draw.choice((len(head), len(head), len(head), 0, 2**62, 2**64 - 1, len(head) + 16))
    blob = struct.pack("<Q", length) + head + draw.randbytes(draw.choice((0, 16, 16, 24)))
    return _framed(b'{"$":"tensor","name":"t"}', blob)


def _many(draw: random.Random) -> bytes:
    """Make a frame, followed by bytes that nobody reads: another frame, a part of one, or noise."""
    return _real(draw) + draw.choice((_real, _noise, _cut))(draw)


_KINDS: tuple[Callable[[random.Random], bytes], ...] = (
    _real,
    _noise,
    _cut,
    _flipped,
    _flipped,
    _spliced,
    _lying_head,
    _nested,
    _odd_data,
    _odd_tensors,
    _odd_tensors,
    _many,
)
