"""Confinement of one worker, in two processes.

A *supervisor* enters fresh namespaces, lays out the root that the worker will see, forks it, and
kills it when the grader hangs up or its time is over; with the worker, which is process 1 of its
namespace, goes everything it started. The *worker* gives up the rest of what it may do, and only
then imports the submission.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import sys
import time
from pathlib import Path

import msgspec

from staff.grader.sandbox import linux
from staff.paths import ROOT

SUBMISSION = Path("/submission")
SCRATCH = Path("/scratch")
NOBODY = 65534
_FIRST_UID = 61_000
"""As root, each worker gets a user of its own: this one, or one of the thousand after it."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/nix")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_GPU_DEVICES = "nvidia*"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker may use."""

    cpu_seconds: int = 600
    wall_seconds: float = 900.0
    memory_bytes: int = 8 << 30
    """Address space, of which PyTorch alone takes some 3 GB without touching it."""
    processes: int = 128
    """Processes and threads."""
    open_files: int = 512
    scratch_bytes: int = 256 << 20
    scratch_files: int = 20_000


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """How one worker is to be confined."""

    backend: str
    """`namespaces`, `landlock` or `process`."""
    submission: str
    """The folder of the submission on this machine, readable by everybody."""
    number: int = 0
    """Tells workers that run at the same time apart."""
    limits: Limits = Limits()
    gpu: bool = False


def supervise(plan: Confinement, room: Path, connection: socket.socket) -> int:
    """Become the supervisor of a worker, in a process that has been forked for this.

    Args:
        plan: how the worker is to be confined.
        room: an empty folder of this supervisor's own.
        connection: the line to the grader; the worker ends when it is cut.

    Returns:
        0 in the worker, which is to call `enter` next. The supervisor doesn't return.
    """
    linux.die_with_parent()
    if plan.backend == "namespaces":
        _fresh_namespaces(plan)
        _lay_out_root(plan, room)
    else:
        (room / "scratch").mkdir()
        (room / "scratch").chmod(0o777)
    worker = os.fork()
    if worker == 0:
        return 0
    status = _watch(worker, connection, time.monotonic() + plan.limits.wall_seconds)
    os._exit(status)


def enter(plan: Confinement, room: Path) -> Path:
    """Confine the worker itself; gives the folder where the submission is.

    Raises:
        OSError: a protection is not to be had; the worker must end then.
    """
    linux.die_with_parent()
    os.setsid()
    submission, scratch = SUBMISSION, SCRATCH
    if plan.backend == "namespaces":
        _mount_proc(room / "root")
        linux.pivot_root(room / "root")
    else:
        submission, scratch = Path(plan.submission), room / "scratch"
    _limit(plan)
    inside = NOBODY if plan.backend == "namespaces" else _FIRST_UID + plan.number % 1000
    if plan.backend == "landlock":
        readable = [Path(p) for p in _readable(plan)]
        linux.landlock([*readable, submission], [scratch, Path("/dev/null")])
    if os.getuid() == 0 or plan.backend == "namespaces":
        _become(inside)
    if not os.access(sys.base_prefix, os.R_OK | os.X_OK):
        raise OSError(f"an ordinary user can't read {sys.base_prefix}, where Python is")
    linux.drop_privileges()
    linux.die_with_parent()  # once more: a change of user takes it back
    os.environ.clear()
    os.environ |= {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "LANG": "C.UTF-8",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    os.chdir(scratch)
    _silence()
    return submission


def _fresh_namespaces(plan: Confinement) -> None:
    """Enter them; as root, an outsider maps two users, and otherwise we map our own."""
    uid, gid = os.getuid(), os.getgid()
    ready, go = os.pipe(), os.pipe()
    mapper = 0
    if uid == 0:
        mapper = os.fork()
        if mapper == 0:
            os.read(ready[0], 1)
            other = _FIRST_UID + plan.number % 1000
            for name in ("uid_map", "gid_map"):
                lines = f"0 0 1\n{NOBODY} {other} 1\n"
                Path(f"/proc/{os.getppid()}/{name}").write_text(lines)
            os.write(go[1], b"x")
            os._exit(0)
    linux.unshare(
        linux.CLONE_NEWUSER
        | linux.CLONE_NEWNS
        | linux.CLONE_NEWPID
        | linux.CLONE_NEWNET
        | linux.CLONE_NEWIPC
        | linux.CLONE_NEWUTS
    )
    if mapper:
        os.write(ready[1], b"x")
        os.close(go[1])
        mapped = os.read(go[0], 1)
        os.waitpid(mapper, 0)
        if not mapped:
            raise OSError("no users could be mapped")
    else:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{NOBODY} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{NOBODY} {gid} 1")
    for fd in (*ready, *go):
        if fd != go[1] or not mapper:
            os.close(fd)


def _lay_out_root(plan: Confinement, room: Path) -> None:
    """Mount everything that the worker will see below `room/root`."""
    root = room / "root"
    linux.mount("none", Path("/"), "", linux.MS_REC | linux.MS_PRIVATE)
    root.mkdir()
    sealed = linux.MS_NOSUID | linux.MS_NODEV
    linux.mount("tmpfs", root, "tmpfs", sealed, "size=1m,nr_inodes=4k,mode=755")
    for source in _readable(plan):
        path = Path(source)
        target = root / path.relative_to("/")
        if path.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(os.readlink(path))
            continue
        _make_room(path, target)
        linux.bind_read_only(str(path), target)  # type: ignore[arg-type]
    (root / "dev/shm").mkdir(parents=True)
    devices = [Path("/dev") / name for name in _DEVICES]
    devices += sorted(Path("/dev").glob(_GPU_DEVICES)) if plan.gpu else []
    for device in devices:
        if device.exists():
            _make_room(device, root / device.relative_to("/"))
            linux.mount(str(device), root / device.relative_to("/"), "", linux.MS_BIND)
    (root / "submission").mkdir()
    linux.bind_read_only(Path(plan.submission), root / "submission")
    (root / "proc").mkdir()
    limits = plan.limits
    for name, size in (("scratch", limits.scratch_bytes), ("dev/shm", limits.scratch_bytes // 4)):
        (root / name).mkdir(exist_ok=True)
        options = f"size={size},nr_inodes={limits.scratch_files},mode=1777"
        linux.mount("tmpfs", root / name, "tmpfs", sealed, options)
    if not (root / "tmp").exists():  # a Python environment may lie there
        (root / "tmp").symlink_to(SCRATCH)


def _readable(plan: Confinement) -> list[str]:
    """The system and the Python environment, and no folder that holds the assignment."""
    found = [Path(p) for p in _SYSTEM]
    found += [Path(sys.prefix), Path(sys.base_prefix), *(Path(p) for p in sys.path if p)]
    if plan.gpu:
        found += [Path("/sys"), Path("/etc/alternatives")]
    kept: list[Path] = []
    for path in found:
        if path.exists() and not ROOT.is_relative_to(path) and not _inside(path, kept):
            kept.append(path)
    return [str(path) for path in kept]


def _inside(path: Path, others: list[Path]) -> bool:
    return any(path.is_relative_to(other) and not other.is_symlink() for other in others)


def _make_room(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()


def _mount_proc(root: Path) -> None:
    try:
        flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
        linux.mount("proc", root / "proc", "proc", flags)
    except OSError:
        pass  # a container hides parts of its own; then there is none, which is stricter


def _limit(plan: Confinement) -> None:
    limits = plan.limits
    for what, most in (
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.scratch_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        if what == resource.RLIMIT_AS and plan.gpu:
            continue  # CUDA maps far more than it uses
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def _become(uid: int) -> None:
    if os.getuid() == uid:
        return
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _silence() -> None:
    """Nothing that the submission prints goes anywhere."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def _watch(worker: int, connection: socket.socket, deadline: float) -> int:
    """Wait for the worker's end; kill it when the line is cut or the time is over."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP | select.POLLHUP)
    pidfd = os.pidfd_open(worker)
    poll.register(pidfd, select.POLLIN)
    while True:
        left = deadline - time.monotonic()
        events = dict(poll.poll(max(0, left) * 1000))
        if pidfd not in events:
            os.kill(worker, signal.SIGKILL)
        status = os.waitpid(worker, 0)[1]
        return os.waitstatus_to_exitcode(status) & 0xFF
