"""The results of an audit as text: a table of the mistakes, and the totals."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from staff.validation.audit import HALF, NAMED_SHARE, Audit
from staff.validation.judge import Section


def mistakes_table(audit: Audit) -> Table:
    """Make a table with one row for each mistake: margin, feedback, and the tests that catch it."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    for name, justify in (
        ("mistake", "left"),
        ("margin", "right"),
        ("feedback", "left"),
        ("caught by", "left"),
    ):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for verdict in audit.mistakes:
        margin = "" if verdict.margin is None else f"{verdict.margin:.2g}"
        caught = ", ".join(test.removeprefix("test_") for test in verdict.caught_by[:3])
        more = len(verdict.caught_by) - 3
        caught += f" and {more} more" if more > 0 else ""
        table.add_row(verdict.id, margin, verdict.feedback, caught or "no test")
    return table


def sections(audit: Audit) -> list[Section]:
    """Turn an audit into sections, as every kind of validation returns them."""
    mistakes, alternates, limits = totals(audit)
    return [
        Section(
            name="mistakes",
            promise="lose points in their task, and nowhere else",
            total=len(audit.mistakes),
            problems=tuple((v.id, p) for v in audit.mistakes for p in v.problems),
            figures=(mistakes,),
        ),
        Section(
            name="alternates",
            promise=f"keep every point, and stay below {HALF} × every limit",
            total=len(audit.alternates),
            problems=tuple((v.id, p) for v in audit.alternates for p in v.problems),
            figures=(alternates, limits),
        ),
        Section(
            name="audits",
            promise=f"name at least {NAMED_SHARE:.0%} of the mistakes",
            total=1,
            problems=tuple(("the audit", p) for p in audit.problems),
        ),
    ]


def totals(audit: Audit) -> Iterator[str]:
    """Yield three lines of totals: mistakes, alternates, margins."""
    total = len(audit.mistakes)
    losing = sum(bool(v.caught_by) for v in audit.mistakes)
    number = {
        kind: sum(v.feedback == kind for v in audit.mistakes)
        for kind in ("named", "clue", "numbers")
    }
    false = sum(v.named_wrongly for v in audit.mistakes)
    yield (
        f"mistakes    {losing} / {total} lose points · feedback: {number['named']} named, "
        f"{number['clue']} with a clue, {number['numbers']} with numbers only, "
        f"{false} named wrongly"
    )
    keeping = sum(not verdict.loses for verdict in audit.alternates)
    yield f"alternates  {keeping} / {len(audit.alternates)} keep every point"
    yield f"margins     {_nearest_wrong(audit)} · {_worst_right(audit)}"


def _nearest_wrong(audit: Audit) -> str:
    margins = [v for v in audit.mistakes if v.margin is not None and v.shows == "value"]
    if not margins:
        return "no mistake shows in values"
    nearest = min(margins, key=lambda v: v.margin or 0.0)
    return f"nearest mistake {nearest.margin:.3g} × the limit ({nearest.id})"


def _worst_right(audit: Audit) -> str:
    worst = max((v for v in audit.alternates if v.id != "solution"), key=lambda v: v.worst)
    return f"worst right answer {worst.worst:.2f} × the limit ({worst.id})"
