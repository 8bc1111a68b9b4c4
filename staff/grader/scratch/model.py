"""Findings of ready-made code, as data that grades hold and reports show."""

from __future__ import annotations

from typing import Literal

import msgspec

Policy = Literal["report", "enforce", "off"]
How = Literal["read", "called", "dodge"]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call that the guard noted; see `Guard.found`."""

    task: str | None
    """The task whose tests ran; None while the submission was imported."""
    name: str
    """The dotted name of the forbidden function."""
    file: str
    """The file of the call, relative to the submission's folder."""
    line: int
    how: Literal["called", "dodge"] = "called"


class ScratchFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One source line of a submission that uses ready-made code."""

    file: str
    """The path relative to the submission's folder, with forward slashes."""
    line: int
    name: str
    """The dotted name of the forbidden function or class, whatever alias the submission uses."""
    how: How
    """`read`: the code names it. `called`: the submission called it. `dodge`: an indirect way, such
    as `eval`, by which the code could reach a forbidden name."""
    tasks: tuple[str, ...] = ()
    """The tasks whose points are concerned; empty for a dodge, which a person has to judge."""

    def __str__(self) -> str:
        what = {"read": "uses", "called": "calls", "dodge": "could use anything through"}[self.how]
        concerns = f" ({', '.join(self.tasks)})" if self.tasks else ""
        return f"{self.file}:{self.line} {what} {self.name}{concerns}"
