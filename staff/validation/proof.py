"""The proof: the results of the whole validation on one page."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Sequence

import torch

from staff.validation.judge import Section

_MOST = 40
"""The most problems that the page lists."""


def proof(sections: Sequence[Section]) -> str:
    """Write the sections as a Markdown page: date, machine, counts, figures and problems."""
    day = datetime.datetime.now(datetime.UTC).date()
    unit = torch.backends.cpu.get_cpu_capability()
    problems = [(s.name, *problem) for s in sections for problem in s.problems]
    lines = [
        "# Proof",
        "",
        f"Made by `make prove` on {day}: Python {platform.python_version()}, "
        f"torch {torch.__version__}, {platform.machine()} with {unit}.",
        "",
        "| subjects | right | what they must do |",
        "|---|---:|---|",
    ]
    lines += [f"| {s.name} | {s.right:,} of {s.total:,} | {s.promise} |" for s in sections]
    figures = [figure for section in sections for figure in section.figures]
    lines += ["", *(f"- {figure}" for figure in figures)]
    lines += ["", "## Problems", ""]
    lines += [f"- {name}: {subject}: {problem}" for name, subject, problem in problems[:_MOST]]
    more = len(problems) - _MOST
    lines += [f"- … and {more} more"] if more > 0 else []
    return "\n".join(lines if problems else [*lines, "None."]) + "\n"
