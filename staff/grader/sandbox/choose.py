"""The backends of the sandbox, and the choice of the strongest that works on this machine."""

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
    """The sandbox that was asked for is not available on this machine."""


@dataclass(frozen=True)
class Backend:
    """A way to confine workers."""

    name: str
    protections: tuple[str, ...]
    """The protections that are in force, as texts for a person."""


_LIMITS = "limits on CPU, time, memory, processes, open files, file size and output"
_CALLS = "none of the system calls that a submission never needs (seccomp)"
_ALL = (
    "no access to the tests, the saved cases, results, other submissions or home folders",
    "read-only Python environment, private scratch folder of bounded size",
    "no network",
    "own user, process, mount and IPC namespaces; all its processes are killed together",
    "no privileges",
    _LIMITS,
)
_USER = "an unprivileged user of its own if the grader runs as root, otherwise the grader's user"
BACKENDS = (
    Backend("namespaces", (*_ALL, _CALLS)),
    # The same protections, but each worker is a fresh interpreter, which takes seconds to start.
    Backend("bwrap", (*_ALL, _CALLS)),
    Backend(
        "landlock",
        (
            "no access to files except Python, the system and the submission (Landlock)",
            "no network except sockets of this machine",
            f"no privileges, runs as {_USER}",
            _LIMITS,
            _CALLS,
        ),
    ),
    Backend(
        "process",
        (
            f"own process, runs as {_USER}",
            "no network except sockets of this machine",
            _LIMITS,
            _CALLS,
            "not protected: files that this user may read or write",
        ),
    ),
)
MOCK = Backend("mock", ("none: the submission runs in the grader's own process",))


def choose(asked: str) -> Backend:
    """Return the strongest backend that works here, or the one that was asked for.

    Args:
        asked: the name of a backend, or `auto`.

    Raises:
        SandboxError: the backend does not work here, or with `auto`, none does.
    """
    if asked == "mock":
        return MOCK
    by_name = {backend.name: backend for backend in BACKENDS}
    if asked != "auto" and asked not in by_name:
        raise SandboxError(f"no sandbox is called {asked!r}; there are auto, {', '.join(by_name)}")
    if not sys.platform.startswith("linux"):
        raise SandboxError(
            "a submission can be confined only on Linux; grade there, or trust it with "
            "--sandbox mock"
        )
    reasons = []
    for backend in [by_name[asked]] if asked != "auto" else BACKENDS:
        reason = _trial(backend.name)
        if reason is None:
            return backend
        if asked != "auto":
            raise SandboxError(
                f"--sandbox {asked} is not available: {reason}; "
                "--sandbox auto uses the strongest one that works here"
            )
        reasons.append(f"{backend.name}: {reason}")
    raise SandboxError(f"no sandbox works here ({'; '.join(reasons)}); grade on another machine")


def _trial(backend: str) -> str | None:
    """Confine a process that does nothing; return the reason why that fails, or None."""
    if backend == "landlock" and not linux.landlock_version():
        return "the kernel has no Landlock"
    if backend == "bwrap" and bwrap.program() is None:
        return "bwrap is not installed (its package is bubblewrap)"
    reader, writer = os.pipe()
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryDirectory(prefix="trial-") as temporary, ours, theirs:
        Path(temporary).chmod(0o755)
        submission, folder = Path(temporary) / "submission", Path(temporary) / "worker"
        submission.mkdir()
        folder.mkdir()
        pid = os.fork()
        if pid == 0:
            try:
                plan = Confinement(backend=backend, submission=str(submission))
                supervise(plan, folder, theirs)
                enter(plan, folder)
                if backend == "bwrap":
                    _find_worker_in_bwrap(plan, folder / "scratch", writer)
                os._exit(0)
            except BaseException as error:  # noqa: BLE001 - it becomes a text, in a child that ends
                os.write(writer, str(error).encode()[:200])
            finally:
                os._exit(1)
        os.close(writer)
        _, status = os.waitpid(pid, 0)
        with os.fdopen(reader, "rb") as pipe:
            reason, _, _ = pipe.read(1000).decode("utf-8", "replace").partition("\n")
    return None if status == 0 else reason or "the trial was killed"


def _find_worker_in_bwrap(plan: Confinement, scratch: Path, writer: int) -> None:
    """Run a Python in bubblewrap whose exit status is 0 if it finds the worker; never return."""
    for fd in (1, 2):
        os.dup2(writer, fd)
    wire = "staff.grader.worker.wire"
    look = f"import importlib.util as u, sys; sys.exit(u.find_spec({wire!r}) is None)"
    command = bwrap.command(plan, [sys.executable, "-I", "-c", look], scratch)
    os.execv(command[0], command)
