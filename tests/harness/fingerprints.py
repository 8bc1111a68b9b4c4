"""Fingerprints: short descriptions of wrong answers, by which known mistakes are recognised.

The fingerprint of a wrong tensor is the projection of its errors on sixteen fixed directions. Each
error is measured in units of the tolerance. A projection is linear, so two answers that differ
only by rounding have nearly the same fingerprint. Two different mistakes have different ones.

Processors round differently, so no fingerprint may depend on rounding. An error of a few limits is
not stored, and it does not count against a known mistake. Two errors may differ by a few limits.
"""

from __future__ import annotations

import functools
import math
import random
import zlib
from typing import Literal

import msgspec
import torch
from torch import Tensor

DIRECTIONS = 16
NEAR = 0.02
"""The largest relative difference of two numbers that count as equal in a fingerprint."""
LOUD = 4.0
"""The number of limits above which an error can't come from rounding: only these are stored."""
DIGITS = 4
"""The number of significant digits in a stored fingerprint."""
NOISE = 1e-6
"""The relative size of the noise that imitates how another processor rounds float32."""

FAR = 1e99
"""The error of an outcome that has no number: NaN, a wrong shape, an exception.

It is not infinity, since JSON has none.
"""

Kind = Literal["right", "value", "data", "nan", "shape", "dtype", "type", "raises", "says"]


class Seen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one saved case, or of one test without saved cases."""

    kind: Kind = "right"
    why: str = ""
    """The sentence of the failed check with its fields unfilled, or the adapter that raised."""
    detail: str = ""
    """Details of the outcome; their meaning depends on the kind.

    For a wrong shape, dtype or type, this is the difference in words. For an exception, it is the
    exception's name. For NaN, it is a digest of the positions. For exact data, it is a digest of
    the answer.
    """
    numbers: tuple[float, ...] = ()
    """The numbers that fill the fields of the sentence."""
    off: tuple[float, ...] = ()
    """The projections of the errors on the sixteen directions, in units of the tolerance."""
    error: float = 0.0
    """The largest error, in the same units; `FAR` if the outcome has no number."""
    limit: float = 1.0
    """The largest error allowed; it is not stored."""

    @property
    def loud(self) -> bool:
        """Whether the answer is wrong on every processor, however that rounds."""
        return self.kind != "right" and self.error > LOUD * self.limit

    def stored(self) -> Seen:
        """Return the outcome as a file holds it: rounded, and without its limit."""
        off = tuple(_rounded(value) for value in self.off)
        numbers = tuple(_rounded(value) for value in self.numbers)
        error = _rounded(self.error) if self.kind == "value" else 0.0
        return msgspec.structs.replace(self, off=off, numbers=numbers, error=error, limit=1.0)


def fits(seen: Seen, stored: Seen) -> bool:
    """Return whether an outcome agrees with the stored outcome of a known mistake.

    An error of up to twice `LOUD` limits agrees with the kind "right" as well: on another
    processor it may be too small to be stored.

    Args:
        seen: the outcome.
        stored: the stored outcome; its kind is "right" where the mistake does not show.
    """
    near = 2 * LOUD * seen.limit
    if not seen.loud:
        return stored.kind == "right" or (stored.kind == "value" and stored.error <= near)
    if stored.kind == "right":
        return seen.kind == "value" and seen.error <= near
    if (seen.kind, seen.why, seen.detail) != (stored.kind, stored.why, stored.detail):
        return False
    if len(seen.numbers) != len(stored.numbers) or len(seen.off) != len(stored.off):
        return False
    if not all(_close(a, b) for a, b in zip(seen.numbers, stored.numbers, strict=True)):
        return False
    if seen.kind != "value":
        return True
    allowed = max(1.0, seen.limit)
    gap = math.dist(seen.off, stored.off)
    return (
        abs(seen.error - stored.error) <= NEAR * stored.error + 2 * allowed
        and gap <= NEAR * math.hypot(*stored.off) + 4 * allowed
    )


def directions_of(error: Tensor) -> tuple[float, ...]:
    """Project the errors of a tensor on the sixteen directions; NaN and infinity count as 0."""
    flat = torch.nan_to_num(error.detach().double().flatten(), 0.0, 0.0, 0.0).clamp(-FAR, FAR)
    return tuple((_signs(flat.numel()) @ flat / math.sqrt(max(1, flat.numel()))).tolist())


def shaken(answer: Tensor, seed: str) -> Tensor:
    """Add noise to an answer, to imitate another processor: at most a share of `NOISE` a value.

    In float64 the noise is smaller, since rounding is smaller there.
    """
    size = NOISE * min(1.0, torch.finfo(answer.dtype).eps / torch.finfo(torch.float32).eps)
    generator = torch.Generator().manual_seed(zlib.crc32(seed.encode()))
    noise = 2 * torch.rand(answer.shape, generator=generator, dtype=torch.float64) - 1
    return (answer.double() * (1 + size * noise)).to(answer.dtype)


def places_of(mask: Tensor) -> str:
    """Return a digest of a mask, eight characters long."""
    return f"{zlib.crc32(mask.to(torch.uint8).numpy().tobytes()):08x}"


def digest_of(data: object) -> str:
    """Return a digest of exact data, eight characters long."""
    return f"{zlib.crc32(repr(data).encode()):08x}"


def finite(number: float) -> float:
    """Return a number that JSON can hold: `FAR` in place of NaN and infinity."""
    return number if abs(number) < FAR else FAR


def _close(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= NEAR * max(abs(one), abs(other))


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


@functools.lru_cache(maxsize=256)
def _signs(size: int) -> Tensor:
    """Return sixteen rows of ±1, which depend only on the size.

    They come from Python's generator, not from PyTorch's or numpy's.
    """
    raw = random.Random(f"directions/{size}").randbytes(DIRECTIONS * size)
    odd = torch.frombuffer(bytearray(raw), dtype=torch.uint8) if size else torch.zeros(0)
    return (odd.reshape(DIRECTIONS, size).double() % 2) * 2 - 1
