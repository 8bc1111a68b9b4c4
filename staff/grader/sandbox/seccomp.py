"""A seccomp filter: the kernel refuses some system calls that no submission needs.

The calls below are refused; all others are allowed.

The other protections work without it. The filter closes what they leave open: further namespaces
(which would bring privileges, and memory that no limit counts), networks outside any namespace
(vsock), reading other processes, memory that belongs to no process, and rarely used system calls,
in which the kernel is more likely to have errors.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from staff import linux

_NUMBERS = {
    "x86_64": {
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298,
        "userfaultfd": 323, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
        "unshare": 272, "setns": 308, "shmget": 29, "kexec_load": 246, "kexec_file_load": 320,
        "init_module": 175, "finit_module": 313, "delete_module": 176, "swapon": 167,
        "swapoff": 168, "reboot": 169, "acct": 163, "settimeofday": 164, "clock_settime": 227,
        "quotactl": 179, "name_to_handle_at": 303, "open_by_handle_at": 304, "personality": 135,
        "syslog": 103, "vhangup": 153, "sethostname": 170, "setdomainname": 171,
        "modify_ldt": 154, "iopl": 172, "ioperm": 173, "memfd_create": 319,
        "kill": 62, "tkill": 200, "tgkill": 234, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297,
        "socket": 41, "clone": 56,
    },
    "aarch64": {
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
        "add_key": 217, "request_key": 218, "keyctl": 219, "bpf": 280, "perf_event_open": 241,
        "userfaultfd": 282, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51,
        "unshare": 97, "setns": 268, "shmget": 194, "kexec_load": 104, "kexec_file_load": 294,
        "init_module": 105, "finit_module": 273, "delete_module": 106, "swapon": 224,
        "swapoff": 225, "reboot": 142, "acct": 89, "settimeofday": 170, "clock_settime": 112,
        "quotactl": 60, "name_to_handle_at": 264, "open_by_handle_at": 265, "personality": 92,
        "syslog": 116, "vhangup": 58, "sethostname": 161, "setdomainname": 162,
        "memfd_create": 279,
        "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240,
        "socket": 198, "clone": 220,
    },
}  # fmt: skip
_EVERYWHERE = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431,
    "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438, "mount_setattr": 442,
    "memfd_secret": 447,
}  # fmt: skip
"""Newer calls have the same number on every machine."""
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SIGNALS = frozenset(
    ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
)
_SPECIAL = frozenset(("socket", "clone", "clone3"))
_NEW_NAMESPACES = 0x7E020000
"""The flags with which `clone` makes a new namespace."""
_X32 = 0x40000000

_LOAD, _JUMP_EQUAL, _JUMP_ANY, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets, in bytes, in the structure that the kernel passes to a filter."""
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_SECCOMP_MODE_FILTER, _PR_SET_SECCOMP = 2, 22


def known() -> bool:
    """Whether this module has the numbers of this machine's system calls."""
    return os.uname().machine in _NUMBERS


def restrict(*, signals: bool, memory_files: bool = False) -> None:
    """Refuse the calls for good, in this process and in every process that it starts.

    Of all sockets, only those between processes of this machine (AF_UNIX) remain allowed.

    Args:
        signals: allow the calls that send signals, since another protection contains them.
        memory_files: allow files that exist in memory alone (`memfd_create`).

    Raises:
        OSError: the kernel does not support such filters.
    """
    instructions = program(signals=signals, memory_files=memory_files)
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    head = struct.pack("HxxxxxxQ", len(instructions) // 8, ctypes.addressof(buffer))
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, head)


def program(*, signals: bool, memory_files: bool = False, machine: str | None = None) -> bytes:
    """Return the filter as a BPF program.

    Args:
        signals: see `restrict`.
        memory_files: see `restrict`.
        machine: the architecture, as `uname` names it; by default that of this machine.
    """
    machine = machine or os.uname().machine
    numbers = _NUMBERS[machine] | _EVERYWHERE
    kept = _SPECIAL | (_SIGNALS if signals else set())
    kept |= {"memfd_create"} if memory_files else set()
    steps = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_JUMP_EQUAL, _ARCHITECTURES[machine], then=1),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":  # its x32 mode has a second set of numbers for the same calls
        steps += [_step(_JUMP_AT_LEAST, _X32, otherwise=1), _refuse(errno.EPERM)]
    for name, number in numbers.items():
        if name not in kept:
            steps += [_step(_JUMP_EQUAL, number, otherwise=1), _refuse(errno.EPERM)]
    # A filter can't read the flags of clone3. If clone3 is missing, programs use clone.
    steps += [_step(_JUMP_EQUAL, numbers["clone3"], otherwise=1), _refuse(errno.ENOSYS)]
    steps += [
        _step(_JUMP_EQUAL, numbers["clone"], otherwise=3),
        _step(_LOAD, _FIRST_ARGUMENT),
        _step(_JUMP_ANY, _NEW_NAMESPACES, otherwise=5),
        _refuse(errno.EPERM),
        _step(_JUMP_EQUAL, numbers["socket"], otherwise=3),
        _step(_LOAD, _FIRST_ARGUMENT),
        _step(_JUMP_EQUAL, 1, then=1),  # AF_UNIX
        _refuse(errno.EAFNOSUPPORT),
        _step(_RETURN, _ALLOW),
    ]
    # A `clone` without a new namespace jumps to the last step, and so does an AF_UNIX socket.
    return b"".join(steps)


def _refuse(number: int) -> bytes:
    return _step(_RETURN, _REFUSE | number)


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    """Encode one instruction; a jump skips `then` others if its test holds, else `otherwise`."""
    return struct.pack("HBBI", code, then, otherwise, value)
