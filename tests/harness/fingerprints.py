"""Fingerprints: what a wrong answer looks like, small enough to store and sharp enough to tell.

The fingerprint of a wrong tensor is its error, in units of what is allowed for each value, seen
along sixteen fixed directions. A projection is linear, so two answers that differ by rounding have
nearly the same fingerprint, and two unlike mistakes do not.

Processors round differently, so a fingerprint holds nothing that rounding decides: an error of a
few limits is neither stored nor held against anybody, and two errors may differ by a few limits.
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
"""Two numbers of a fingerprint may differ by this share."""
LOUD = 4.0
"""An error of more limits than this is no rounding: only such errors are stored."""
DIGITS = 4
"""Significant digits of a stored fingerprint; it need only be told from others."""
NOISE = 1e-6
"""Relative size of the noise that stands for the rounding of another processor in float32."""

FAR = 1e99
"""An error beyond numbers: NaN, a wrong shape, an exception. JSON knows no infinity."""

Kind = Literal["right", "value", "data", "nan", "shape", "dtype", "type", "raises", "says"]


class Seen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came out of one saved case, or of one test that has none."""

    kind: Kind = "right"
    why: str = ""
    """The sentence of the check that failed, before its numbers, or the adapter that raised."""
    detail: str = ""
    """The shape, dtype or type; the exception's name; where NaN stands; a digest of exact data."""
    numbers: tuple[float, ...] = ()
    """The measured numbers of the sentence."""
    off: tuple[float, ...] = ()
    """The error along the sixteen directions, in units of the dtype's tolerance."""
    error: float = 0.0
    """The largest error, in the same units; `FAR` where no number can say it."""
    limit: float = 1.0
    """The largest error that is allowed here; not stored."""

    @property
    def loud(self) -> bool:
        """Whether this is wrong on every processor, whatever rounding does."""
        return self.kind != "right" and self.error > LOUD * self.limit

    def stored(self) -> Seen:
        """This as a file holds it: rounded, and without its limit."""
        off = tuple(_rounded(value) for value in self.off)
        numbers = tuple(_rounded(value) for value in self.numbers)
        error = _rounded(self.error) if self.kind == "value" else 0.0
        return msgspec.structs.replace(self, off=off, numbers=numbers, error=error, limit=1.0)


def fits(seen: Seen, stored: Seen) -> bool:
    """Whether an outcome is what a mistake gives: `stored` is loud, or right where nothing shows.

    An error of up to twice `LOUD` limits may be missing among the stored ones, since it may have
    been smaller on the processor that made them; and the other way round.
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
    """Project an error on the fixed directions for its size; what isn't finite counts as zero."""
    flat = torch.nan_to_num(error.detach().double().flatten(), 0.0, 0.0, 0.0).clamp(-FAR, FAR)
    return tuple((_signs(flat.numel()) @ flat / math.sqrt(max(1, flat.numel()))).tolist())


def shaken(answer: Tensor, seed: str) -> Tensor:
    """An answer as another processor might round it: no value is off by more than `NOISE`.

    In float64 the noise is smaller, as rounding is there.
    """
    size = NOISE * min(1.0, torch.finfo(answer.dtype).eps / torch.finfo(torch.float32).eps)
    generator = torch.Generator().manual_seed(zlib.crc32(seed.encode()))
    noise = 2 * torch.rand(answer.shape, generator=generator, dtype=torch.float64) - 1
    return (answer.double() * (1 + size * noise)).to(answer.dtype)


def places_of(mask: Tensor) -> str:
    """Say which elements a mask holds, in a few letters."""
    return f"{zlib.crc32(mask.to(torch.uint8).numpy().tobytes()):08x}"


def digest_of(data: object) -> str:
    """Tell exact data (strings, bytes, integers and lists, dicts of these) apart by few letters."""
    return f"{zlib.crc32(repr(data).encode()):08x}"


def finite(number: float) -> float:
    """A number that JSON can hold: `FAR` stands for NaN and infinity."""
    return number if abs(number) < FAR else FAR


def _close(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= NEAR * max(abs(one), abs(other))


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


@functools.lru_cache(maxsize=256)
def _signs(size: int) -> Tensor:
    """Sixteen rows of ±1 that depend on the size alone, on no library's random numbers."""
    raw = random.Random(f"directions/{size}").randbytes(DIRECTIONS * size)
    odd = torch.frombuffer(bytearray(raw), dtype=torch.uint8) if size else torch.zeros(0)
    return (odd.reshape(DIRECTIONS, size).double() % 2) * 2 - 1
