"""The plan of one worker's confinement: the grader makes it, and a supervisor carries it out."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker may use."""

    cpu_seconds: int = 600
    """CPU time of each process."""
    wall_seconds: float = 900.0
    memory_bytes: int = 8 << 30
    """Both the address space of each process and the memory that all of them together may touch.
    PyTorch takes some 3 GB of address space without touching it."""
    processes: int = 128
    """Processes and threads together."""
    open_files: int = 256
    scratch_bytes: int = 256 << 20
    scratch_files: int = 20_000


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """How one worker is confined."""

    backend: str
    """`bwrap`, `namespaces`, `landlock` or `process`."""
    submission: str
    """The folder of the submission on this machine; every user can read it."""
    number: int = 0
    """A number that differs between workers that run at the same time."""
    limits: Limits = Limits()
    gpu: bool = False
    """Whether the worker uses a GPU."""

    @property
    def spawned(self) -> bool:
        """Whether the worker is a fresh interpreter, not a fork of the zygote.

        Bubblewrap starts a program, and the driver of a GPU does not survive a fork.
        """
        return self.gpu or self.backend == "bwrap"
