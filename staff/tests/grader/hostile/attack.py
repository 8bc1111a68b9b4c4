"""A hostile submission is a copy of the solution, to which an attack adds code or files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from staff.tests.support import submission

KEPT = "kept"
"""The submission must earn every point: its answers are correct, and its attack must fail."""
LOST = "lost"
"""The softmax is wrong, and must earn no more than the submission `wrong`, which has no attack."""
UNGRADED = "ungraded"
"""The submission can't be imported, and so has no grade."""
PRELUDE = """
import contextlib as _contextlib
import ctypes as _ctypes
import errno as _errno
import os as _os
import signal as _signal
import socket as _socket
import sys as _sys
import time as _time
from pathlib import Path as _Path

import torch as _torch

_right = run_softmax
_libc = _ctypes.CDLL(None, use_errno=True)


class Reached(BaseException):
    pass


def _never(what, attempt):
    try:
        got = attempt()
    except (OSError, ImportError, ValueError):
        return
    raise Reached(f"{what}: {got!r}"[:300])


def _call(number, *arguments):
    _ctypes.set_errno(0)
    got = _libc.syscall(_ctypes.c_long(number), *(_ctypes.c_long(a) for a in arguments))
    if got < 0:
        raise OSError(_ctypes.get_errno(), "refused")
    return got


def _line():
    for name in _os.listdir("/proc/self/fd"):
        with _contextlib.suppress(OSError):
            if int(name) > 2 and _os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                return int(name)
    for number in range(3, 64):
        with _contextlib.suppress(OSError):
            with _socket.socket(fileno=_os.dup(number)) as found:
                if found.family == _socket.AF_UNIX:
                    return number
    raise Reached("no line to be found")


def _zeros(in_features, dim):
    return _torch.zeros_like(in_features)
"""


@dataclass(frozen=True)
class Attack:
    """One hostile submission."""

    name: str
    tries: str
    """What the attack does, in a few words. A failing test shows this text."""
    code: str = ""
    """Python code that is added to `adapters.py`, after `PRELUDE`."""
    ends: str = KEPT
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that are added to the solution or replace its own: their texts by path."""
    slow: bool = False
    """Whether the attack uses up its time limits. If so, its batch has short limits."""


def write(attack: Attack, folder: Path, facts: Mapping[str, str]) -> Path:
    """Write the submission of an attack; in its code, replace each `@NAME@` by `facts[NAME]`."""
    code = f"{PRELUDE}\n{attack.code}"
    for name, value in facts.items():
        code = code.replace(f"@{name}@", value)
    added = {"adapters.py": code} if attack.code else {}
    return submission(folder / attack.name, attack.files, added)
