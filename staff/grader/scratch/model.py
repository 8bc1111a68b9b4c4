"""What is found, as data that grades hold and reports show."""

from __future__ import annotations

from typing import Literal

import msgspec

Policy = Literal["report", "enforce", "off"]
How = Literal["read", "called", "dodge"]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call that the guard noted; see `Guard.found`."""

    task: str | None
    """The task whose tests ran."""
    name: str
    file: str
    line: int
    how: Literal["called", "dodge"] = "called"


class ScratchFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One place where a submission uses what it was to build itself."""

    file: str
    """Below the submission, with forward slashes."""
    line: int
    name: str
    """The dotted name, whatever it is called there."""
    how: How
    """`read` in the code, `called` while it ran, or a `dodge`: a way around that may lead there."""
    tasks: tuple[str, ...] = ()
    """Whose points it concerns; none for a dodge, which a person has to judge."""

    def __str__(self) -> str:
        what = {"read": "uses", "called": "calls", "dodge": "could reach anything by"}[self.how]
        concerns = f" ({', '.join(self.tasks)})" if self.tasks else ""
        return f"{self.file}:{self.line} {what} {self.name}{concerns}"
