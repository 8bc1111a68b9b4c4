"""Which backend: the strongest that works here, or the one that was asked for."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from staff.grader.sandbox import linux
from staff.grader.sandbox.confine import Confinement, enter, supervise
from tests.harness.errors import HarnessError


class SandboxError(HarnessError):
    """The sandbox that was asked for is not to be had here."""


@dataclass(frozen=True)
class Backend:
    """A way to confine workers."""

    name: str
    protections: tuple[str, ...]
    """What is in force, for a person to read."""


_LIMITS = "limits on CPU, time, memory, processes, open files, file size and output"
_ALL = (
    "no view of the tests, the saved cases, results, other submissions or home folders",
    "read-only Python environment, private scratch of bounded size",
    "no network",
    "own user, process, mount and IPC namespaces, killed as a whole",
    "no privileges",
    _LIMITS,
)
BACKENDS = (
    Backend("namespaces", _ALL),
    Backend(
        "landlock",
        (
            "no view of files but the Python environment, the system and the submission (Landlock)",
            "no TCP where the kernel's Landlock knows it; other networks are open",
            "no privileges",
            _LIMITS,
        ),
    ),
    Backend(
        "process",
        (
            "a process of its own, as an unprivileged user where the grader is root",
            _LIMITS,
            "the network and files that everybody may read are open",
        ),
    ),
)
MOCK = Backend("mock", ("none: the submission runs in the grader's own process",))


def choose(asked: str) -> Backend:
    """The strongest backend that works, for `auto`; otherwise the one that was asked for.

    Raises:
        SandboxError: that one doesn't work here; or none does.
    """
    if asked == "mock":
        return MOCK
    by_name = {backend.name: backend for backend in BACKENDS}
    if asked != "auto" and asked not in by_name:
        raise SandboxError(f"no sandbox is called {asked!r}; there are auto, {', '.join(by_name)}")
    if not sys.platform.startswith("linux"):
        raise SandboxError("submissions are confined on Linux only; grade there, or --sandbox mock")
    reasons = []
    for backend in [by_name[asked]] if asked != "auto" else BACKENDS:
        reason = _trial(backend.name)
        if reason is None:
            return backend
        reasons.append(f"{backend.name}: {reason}")
    raise SandboxError(f"no sandbox works here ({'; '.join(reasons)}); try --sandbox auto")


def _trial(backend: str) -> str | None:
    """Confine a process that does nothing; None where that works, otherwise why it doesn't."""
    if backend == "landlock" and not linux.landlock_version():
        return "the kernel has no Landlock"
    reader, writer = os.pipe()
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryDirectory(prefix="trial-") as folder, ours, theirs:
        Path(folder).chmod(0o755)
        submission, room = Path(folder) / "submission", Path(folder) / "room"
        submission.mkdir()
        room.mkdir()
        pid = os.fork()
        if pid == 0:
            try:
                plan = Confinement(backend=backend, submission=str(submission))
                supervise(plan, room, theirs)
                enter(plan, room)
                os.write(writer, b"works")
            except BaseException as error:  # noqa: BLE001 - it becomes a text, in a child that ends
                os.write(writer, str(error).encode()[:200])
            finally:
                os._exit(0)
        os.close(writer)
        os.waitpid(pid, 0)
        with os.fdopen(reader, "rb") as pipe:
            said = pipe.read().decode("utf-8", "replace")
    return None if said == "works" else said or "it was killed"
