"""The notes of a report: ready-made code in the submission, and files that were not used."""

from __future__ import annotations

from staff.grader.grade import Grade

_SHOWN = 10


def notes(grade: Grade) -> list[str]:
    """Return the notes as lines of text; no lines if there is nothing to note."""
    lines = []
    if grade.scratch:
        effect = "its tasks get no points" if grade.policy == "enforce" else "a person decides"
        lines += [f"Not from scratch ({effect}; the handout lists what may be used):"]
        lines += [*_some([str(finding) for finding in grade.scratch]), ""]
    left_out = [entry for entry in grade.left_out if entry.noteworthy]
    if left_out:
        lines += ["Not used:", *_some([f"{entry.name} {entry.why}" for entry in left_out]), ""]
    return lines


def _some(lines: list[str]) -> list[str]:
    more = [f"  … and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return [*(f"  {line}" for line in lines[:_SHOWN]), *more]
