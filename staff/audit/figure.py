"""The picture of an audit: for each case, right answers, the limit and the nearest mistake."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from staff.audit.audit import Audit

_RIGHT, _WRONG, _INK = "#2a9d8f", "#d1495b", "#33312e"
_FLOOR = 1e-3
"""An error below this, in units of the tolerance, is drawn at the edge."""
_CEILING = 1e8


def draw(audit: Audit, file: Path) -> None:
    """Draw the margins of every case on one logarithmic axis, and write an SVG."""
    mpl.rcParams["svg.hashsalt"] = "cs336"
    mpl.rcParams["svg.fonttype"] = "path"
    cases = list(reversed(audit.cases))
    figure = Figure(figsize=(10, 0.17 * len(cases) + 1.6), facecolor="white", layout="constrained")
    axes = figure.subplots()
    rows = range(len(cases))
    right = [max(case.right, _FLOOR) for case in cases]
    limits = [case.limit for case in cases]
    axes.hlines(rows, right, limits, color=_RIGHT, lw=1, alpha=0.5)
    axes.scatter(right, rows, s=14, color=_RIGHT, label="furthest right answer", zorder=3)
    axes.scatter(limits, rows, s=40, marker="|", color=_INK, label="limit", zorder=3)
    told = [(min(c.wrong, _CEILING), row) for row, c in zip(rows, cases, strict=True) if c.wrong]
    wrong, where = [error for error, _ in told], [row for _, row in told]
    axes.scatter(wrong, where, s=14, color=_WRONG, label="nearest mistake", zorder=3)
    axes.set_xscale("log")
    axes.set_xlim(_FLOOR * 0.7, _CEILING * 2)
    axes.set_ylim(-1, len(cases))
    axes.set_yticks(rows, [f"{c.task} · {c.case}" for c in cases], fontsize=6.5, color=_INK)
    axes.tick_params(length=0)
    axes.grid(axis="x", color="#e7e4df", lw=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel("error, in units of the dtype's tolerance", color=_INK)
    axes.set_title("How far apart right and wrong lie, case by case", loc="left", color=_INK)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.03), ncols=3, frameon=False, fontsize=8)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None})
