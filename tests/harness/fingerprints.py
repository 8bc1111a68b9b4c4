"""Fingerprints: what a wrong answer looks like, small enough to store and sharp enough to tell.

The fingerprint of a wrong tensor is its error (answer minus right answer) seen along sixteen
fixed directions. A projection is linear, so two answers that differ by rounding have nearly the
same fingerprint, and two unlike mistakes do not.
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
"""Two fingerprints fit when they differ by this share of their length at most."""

FAR = 1e99
"""An error beyond numbers: NaN, a wrong shape, an exception. JSON knows no infinity."""

Kind = Literal["right", "value", "data", "nan", "shape", "dtype", "type", "raises"]


class Seen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came out of one case."""

    kind: Kind = "right"
    detail: str = ""
    """The shape, dtype or type; the exception's name; where NaN stands; a digest of exact data."""
    off: tuple[float, ...] = ()
    """The error along the sixteen directions; empty where it can't be told."""
    error: float = 0.0
    """The largest error, in units of the dtype's tolerance; `FAR` where no number can say it."""


def directions_of(error: Tensor) -> tuple[float, ...]:
    """Project an error (answer minus right answer) on the fixed directions for its size."""
    flat = error.detach().double().flatten()
    signs = _signs(flat.numel())
    return tuple(
        (signs @ torch.nan_to_num(flat, 0.0, 0.0, 0.0) / math.sqrt(max(1, flat.numel()))).tolist()
    )


def places_of(mask: Tensor) -> str:
    """Say which elements a mask holds, in a few letters."""
    return f"{zlib.crc32(mask.to(torch.uint8).numpy().tobytes()):08x}"


def digest_of(data: object) -> str:
    """Tell exact data (strings, bytes, integers and lists, dicts of these) apart by few letters."""
    return f"{zlib.crc32(repr(data).encode()):08x}"


def fits(seen: Seen, stored: Seen) -> bool:
    """Whether an outcome is what a mistake would have given."""
    if (seen.kind, seen.detail) != (stored.kind, stored.detail):
        return False
    if not stored.off or not seen.off:
        return not stored.off and not seen.off
    gap = math.dist(seen.off, stored.off)
    return gap <= NEAR * math.hypot(*stored.off)


@functools.lru_cache(maxsize=256)
def _signs(size: int) -> Tensor:
    """Sixteen rows of ±1 that depend on the size alone, on no library's random numbers."""
    raw = random.Random(f"directions/{size}").randbytes(DIRECTIONS * size)
    odd = torch.frombuffer(bytearray(raw), dtype=torch.uint8) if size else torch.zeros(0)
    return (odd.reshape(DIRECTIONS, size).double() % 2) * 2 - 1
