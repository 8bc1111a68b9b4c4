"""Which backend: the strongest that works here, or the one that was asked for."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from staff import linux
from staff.grader.sandbox import bwrap
from staff.grader.sandbox.confine import enter, supervise
from staff.grader.sandbox.plan import Confinement
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
_CALLS = "no system calls that a submission has no use for (seccomp)"
_ALL = (
    "no view of the tests, the saved cases, results, other submissions or home folders",
    "read-only Python environment, private scratch of bounded size",
    "no network",
    "own user, process, mount and IPC namespaces, killed as a whole",
    "no privileges",
    _LIMITS,
)
_OPEN_USER = "as an unprivileged user of its own where the grader is root, otherwise as its user"
BACKENDS = (
    Backend("namespaces", (*_ALL, _CALLS)),
    # The same walls, but a worker is a fresh interpreter, which takes seconds: the second choice.
    Backend("bwrap", (*_ALL, _CALLS)),
    Backend(
        "landlock",
        (
            "no view of files but the Python environment, the system and the submission (Landlock)",
            "no network but sockets of this machine",
            f"no privileges, {_OPEN_USER}",
            _LIMITS,
            _CALLS,
        ),
    ),
    Backend(
        "process",
        (
            f"a process, {_OPEN_USER}",
            "no network but sockets of this machine",
            _LIMITS,
            _CALLS,
            "not protected: files that this user may read or write",
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
        if asked != "auto":
            raise SandboxError(
                f"--sandbox {asked} can't be had: {reason}; --sandbox auto takes what works here"
            )
        reasons.append(f"{backend.name}: {reason}")
    raise SandboxError(f"no sandbox works here ({'; '.join(reasons)}); grade on another machine")


def _trial(backend: str) -> str | None:
    """Confine a process that does nothing; None where that works, otherwise why it doesn't."""
    if backend == "landlock" and not linux.landlock_version():
        return "the kernel has no Landlock"
    if backend == "bwrap" and bwrap.program() is None:
        return "there is no bwrap on this machine (its package is bubblewrap)"
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
                if backend == "bwrap":
                    _say_so_behind(plan, room / "scratch", writer)
                os.write(writer, b"works")
            except BaseException as error:  # noqa: BLE001 - it becomes a text, in a child that ends
                os.write(writer, str(error).encode()[:200])
            finally:
                os._exit(0)
        os.close(writer)
        os.waitpid(pid, 0)
        with os.fdopen(reader, "rb") as pipe:
            said = pipe.read(1000).decode("utf-8", "replace")
    return None if said.endswith("works") else said.partition("\n")[0] or "it was killed"


def _say_so_behind(plan: Confinement, scratch: Path, writer: int) -> None:
    """Run a Python behind bubblewrap that finds the worker and says so; doesn't return."""
    for fd in (1, 2):
        os.dup2(writer, fd)
    wire = "staff.grader.worker.wire"
    look = f"import importlib.util as u; print(end='works' * bool(u.find_spec({wire!r})))"
    command = bwrap.command(plan, [sys.executable, "-I", "-c", look], scratch)
    os.execv(command[0], command)
