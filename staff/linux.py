"""System calls of Linux that Python 3.11 does not offer."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
PR_SET_NO_NEW_PRIVS = 38
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER = 1, 4, 24, 36
_MOUNT_SETATTR, _PIVOT_ROOT = 442, 155  # numbers on x86-64; the second differs on arm64
_LANDLOCK = (444, 445, 446)
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_LIBC = ctypes.CDLL(None, use_errno=True)
if os.uname().machine == "aarch64":
    _PIVOT_ROOT = 41


def unshare(flags: int) -> None:
    """Move this process into new namespaces.

    Raises:
        OSError: the kernel or the surrounding container does not allow it.
    """
    _check(_LIBC.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: Path, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount a file system.

    Raises:
        OSError: it is not allowed.
    """
    result = _LIBC.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode(),
        ctypes.c_ulong(flags),
        options.encode(),
    )
    _check(result, f"mount {target}")


def bind_read_only(source: Path, target: Path) -> None:
    """Mount a folder or file at a second path, read-only, with everything mounted below it.

    Raises:
        OSError: it is not allowed.
    """
    mount(str(source), target, "", MS_BIND | MS_REC)
    attributes = struct.pack("<QQQQ", _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, 0, 0, 0)
    result = _LIBC.syscall(
        ctypes.c_long(_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(target),
        ctypes.c_uint(_AT_RECURSIVE),
        attributes,
        ctypes.c_size_t(len(attributes)),
    )
    _check(result, f"read-only {target}")


def pivot_root(new: Path) -> None:
    """Make `new` the root of this mount namespace, and unmount the old root.

    Raises:
        OSError: it is not allowed.
    """
    os.chdir(new)
    _check(_LIBC.syscall(ctypes.c_long(_PIVOT_ROOT), b".", b"."), "pivot_root")
    _check(_LIBC.umount2(b".", ctypes.c_int(MNT_DETACH)), "umount")
    os.chdir("/")


def die_with_parent() -> None:
    """Make the kernel send SIGKILL to this process when its parent ends."""
    prctl(_PR_SET_PDEATHSIG, 9)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def hide(*, hidden: bool = True) -> None:
    """Keep other processes of the same user from reading or tracing this one.

    Args:
        hidden: False allows it again.
    """
    prctl(_PR_SET_DUMPABLE, int(not hidden))


def forbid_users() -> None:
    """Forbid further user namespaces inside the one that this process has just entered.

    A process has every privilege in a user namespace that it makes. It could, for example, mount
    a file system of any size.
    """
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def bound_privileges() -> None:
    """Keep programs that this process starts from getting a capability.

    This needs a capability itself, so call it before `drop_privileges`.
    """
    for capability in range(64):
        _LIBC.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)


def drop_privileges() -> None:
    """Drop every capability, and every way to get one again.

    Raises:
        OSError: a capability could not be dropped.
    """
    head = struct.pack("<Ii", 0x20080522, 0)
    _check(_LIBC.capset(head, struct.pack("<6I", 0, 0, 0, 0, 0, 0)), "capset")
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    hide()


LANDLOCK_SIGNALS = 6
"""The first version of Landlock that can forbid signals to processes that it does not restrict."""


def landlock_version() -> int:
    """Return the version of Landlock that the kernel supports; 0 if it has none."""
    found = _LIBC.syscall(ctypes.c_long(_LANDLOCK[0]), None, ctypes.c_size_t(0), ctypes.c_uint(1))
    return max(0, int(found))


def landlock(readable: list[Path], writable: list[Path]) -> None:
    """Forbid this process to use any files except these.

    If the kernel can, also forbid TCP, and signals and abstract sockets to processes that do not
    have the same restriction.

    Args:
        readable: files and folders that may be read and executed.
        writable: files and folders that may be read and written.

    Raises:
        OSError: the kernel has no Landlock.
    """
    version = landlock_version()
    if version < 1:
        raise OSError("the kernel has no Landlock")
    every = (1 << (13 + (version >= 2) + (version >= 3))) - 1
    reading = 0b1101  # execute, read a file, read a folder
    network, scoped = 0b11, 0b11  # bind and connect of TCP; abstract sockets and signals
    size = 24 if version >= LANDLOCK_SIGNALS else 16 if version >= 4 else 8
    rules = struct.pack("<QQQ", every, network, scoped)[:size]
    ruleset = _LIBC.syscall(
        ctypes.c_long(_LANDLOCK[0]), rules, ctypes.c_size_t(len(rules)), ctypes.c_uint(0)
    )
    _check(ruleset, "landlock")
    for paths, allowed in ((readable, reading), (writable, every & ~1)):
        for path in paths:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            beneath = struct.pack("<Qi", allowed if path.is_dir() else allowed & 0b111, fd)
            _check(
                _LIBC.syscall(
                    ctypes.c_long(_LANDLOCK[1]),
                    ctypes.c_int(ruleset),
                    ctypes.c_int(1),
                    beneath,
                    ctypes.c_uint(0),
                ),
                f"landlock {path}",
            )
            os.close(fd)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    restricted = _LIBC.syscall(ctypes.c_long(_LANDLOCK[2]), ctypes.c_int(ruleset), ctypes.c_uint(0))
    os.close(ruleset)
    _check(restricted, "landlock")


def prctl(option: int, value: int, pointer: bytes = b"") -> None:
    """Set an attribute of this process.

    Raises:
        OSError: it is not allowed.
    """
    _check(_LIBC.prctl(option, ctypes.c_ulong(value), pointer or None, None, None), "prctl")


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
