"""The zygote: a process that has imported PyTorch once and forks a worker for each request.

It is started before any test, saved case or submission is opened, holds no secret, and runs no
tensor operation, since OpenMP's threads don't survive a fork. A request comes in on a socket that
only the grader's processes have inherited; with it comes one end of a new line, which becomes the
worker's. There is no path that anybody else could connect to.
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import msgspec
import torch

from staff import linux
from staff.files import remove
from staff.grader.sandbox.confine import enter, spawn, supervise
from staff.grader.sandbox.plan import Confinement
from staff.grader.scratch.guard import Guard
from staff.grader.worker.wire import Channel, WireError
from staff.grader.worker.worker import serve
from staff.runner import preloaded  # noqa: F401 - workers find it loaded
from staff.runner.environment import ENVIRONMENT
from tests.harness.rubric import Scratch

_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR")
_MOST_REQUEST = 1 << 16
_LAST_SECONDS = 30
_STRIDE = 61
_LIFELINE = 0
"""Standard input: a pipe whose other end is the grader's alone, so that it ends with it."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of the zygote."""

    plan: Confinement
    device: str


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What a zygote is told first."""

    rooms: str
    """The folder for those of its workers."""
    rules: Scratch | None
    """What is not from scratch, for the guard; none for no guard."""


@contextlib.contextmanager
def zygote(rules: Scratch | None = None, place: Path | None = None) -> Iterator[int]:
    """Run a zygote for as long as the block lasts; gives the file descriptor of its socket.

    Args:
        rules: what a guard beside each submission is to note.
        place: where the folders of its workers go.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, tempfile.TemporaryDirectory(prefix="workers-", dir=place) as folder:
        Path(folder).chmod(0o711)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-I", "-m", "staff.grader.worker.zygote", str(theirs.fileno())],
                env={k: os.environ[k] for k in _KEPT if k in os.environ} | ENVIRONMENT,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        with contextlib.suppress(OSError):  # where it has ended already, the first request says so
            # Not an argument, which any process may read.
            ours.send(msgspec.json.encode(Setup(rooms=folder, rules=rules)))
        try:
            yield ours.fileno()
        finally:
            assert process.stdin is not None
            process.stdin.close()  # it ends when this does, also when the grader is killed
            try:
                process.wait(_LAST_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class _Zygote:
    def __init__(self, line: socket.socket, rooms: Path, guard: Guard | None) -> None:
        self._line = line
        self._rooms = rooms
        self._guard = guard
        self._selector = selectors.DefaultSelector()
        self._selector.register(line, selectors.EVENT_READ, self._serve)
        self._selector.register(_LIFELINE, selectors.EVENT_READ, self._end)
        self._rooms_of: dict[int, tuple[int, Path]] = {}
        self._open = True

    def run(self) -> None:
        while self._open:
            for key, _ in self._selector.select():
                key.data(key.fd)
        # Each supervisor has the same lifeline, and sees to its worker itself: a worker can
        # outlive a supervisor that is killed.
        while self._rooms_of:
            self._reap(next(iter(self._rooms_of)))

    def _end(self, _: int) -> None:
        self._open = False

    def _serve(self, _: int) -> None:
        asked, fds, _, _ = socket.recv_fds(self._line, _MOST_REQUEST, 1)
        if not asked:
            self._end(_)
            return
        with socket.socket(fileno=fds[0]) as connection:
            try:
                self._start(msgspec.json.decode(asked, type=Request), connection)
            except OSError as error:
                _refuse(connection, error)

    def _start(self, request: Request, connection: socket.socket) -> None:
        room = Path(tempfile.mkdtemp(dir=self._rooms))
        room.chmod(0o711)
        try:
            pid = os.fork()
        except OSError:
            remove(room)
            raise
        if pid == 0:
            self._become_worker(request, room, connection)
        fd = os.pidfd_open(pid)
        self._rooms_of[fd] = (pid, room)
        self._selector.register(fd, selectors.EVENT_READ, self._reap)

    def _become_worker(self, request: Request, room: Path, connection: socket.socket) -> None:
        status = 1
        try:
            self._line.close()
            for fd in self._rooms_of:
                os.close(fd)
            self._selector.close()
            # Graders that run at the same time number their workers alike.
            number = request.plan.number + os.getppid() * _STRIDE
            plan = msgspec.structs.replace(request.plan, number=number)
            try:
                supervise(plan, room, connection, _LIFELINE)
                submission = enter(plan, room)
                if plan.spawned:
                    spawn(plan, room, submission, connection, request.device)
            except OSError as error:
                _refuse(connection, error)
            else:
                serve(connection, submission, request.device, self._guard)
                status = 0
        finally:
            os._exit(status)

    def _reap(self, fd: int) -> None:
        self._selector.unregister(fd)
        pid, room = self._rooms_of.pop(fd)
        os.waitpid(pid, 0)
        os.close(fd)
        remove(room)


def _refuse(connection: socket.socket, error: OSError) -> None:
    with contextlib.suppress(WireError):
        Channel(connection).send({"refused": f"the sandbox can't be entered: {error}"})


def main() -> None:
    """Serve until standard input ends."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the grader's end is ours
    linux.hide()
    line = socket.socket(fileno=int(sys.argv[1]))
    setup = msgspec.json.decode(line.recv(_MOST_REQUEST), type=Setup)
    sys.argv[1:] = []
    torch.set_num_threads(1)
    guard = None
    if setup.rules is not None:
        guard = Guard(setup.rules)
        guard.install()
    gc.collect()
    gc.freeze()
    rooms = Path(setup.rooms)
    _Zygote(line, rooms, guard).run()
    remove(rooms)  # also where the grader was killed, and can't


if __name__ == "__main__":
    main()
