"""How one worker is to be confined: the plan that a grader makes and a supervisor carries out."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker may use."""

    cpu_seconds: int = 600
    """For each process."""
    wall_seconds: float = 900.0
    memory_bytes: int = 8 << 30
    """Address space of each process, of which PyTorch takes some 3 GB without touching it; and
    what all of them together may touch."""
    processes: int = 128
    """Processes and threads."""
    open_files: int = 256
    scratch_bytes: int = 256 << 20
    scratch_files: int = 20_000


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """How one worker is to be confined."""

    backend: str
    """`bwrap`, `namespaces`, `landlock` or `process`."""
    submission: str
    """The folder of the submission on this machine, readable by everybody."""
    number: int = 0
    """Tells workers that run at the same time apart."""
    limits: Limits = Limits()
    gpu: bool = False

    @property
    def spawned(self) -> bool:
        """Whether the worker is a fresh interpreter: a driver of GPUs doesn't survive a fork."""
        return self.gpu or self.backend == "bwrap"
