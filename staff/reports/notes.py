"""What a report says beside the points: what isn't from scratch, and what wasn't used."""

from __future__ import annotations

from staff.grader.grade import Grade

_SHOWN = 10


def notes(grade: Grade) -> list[str]:
    """The lines; none where there is nothing to say."""
    lines = []
    if grade.scratch:
        follows = "no points for its tasks" if grade.policy == "enforce" else "a person decides"
        lines += [f"Not from scratch ({follows}; the handout says what may be used):"]
        lines += [*_some([str(finding) for finding in grade.scratch]), ""]
    told = [left for left in grade.left_out if not left.why.startswith("is not needed")]
    if told:
        lines += ["Not used:", *_some([f"{left.name} {left.why}" for left in told]), ""]
    return lines


def _some(lines: list[str]) -> list[str]:
    more = [f"  … and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return [*(f"  {line}" for line in lines[:_SHOWN]), *more]
