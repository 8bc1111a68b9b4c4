"""An audit as text: a table of the mistakes, and the totals."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from staff.validation.audit import Audit
from staff.validation.judge import Section


def mistakes_table(audit: Audit) -> Table:
    """One line a mistake: how far outside it lies, what is told, which tests catch it."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    for name, justify in (
        ("mistake", "left"),
        ("margin", "right"),
        ("told", "left"),
        ("caught by", "left"),
    ):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for verdict in audit.mistakes:
        margin = "" if verdict.margin is None else f"{verdict.margin:.2g}"
        caught = ", ".join(test.removeprefix("test_") for test in verdict.caught_by[:3])
        more = len(verdict.caught_by) - 3
        caught += f" and {more} more" if more > 0 else ""
        table.add_row(verdict.id, margin, verdict.told, caught or "nothing")
    return table


def sections(audit: Audit) -> list[Section]:
    """An audit as the judge sums it up."""
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
            promise="keep every point, with room",
            total=len(audit.alternates),
            problems=tuple((v.id, p) for v in audit.alternates for p in v.problems),
            figures=(alternates, limits),
        ),
        Section(
            name="names",
            promise="are given often enough",
            total=1,
            problems=tuple(("the whole", p) for p in audit.problems),
        ),
    ]


def totals(audit: Audit) -> Iterator[str]:
    """What an instructor wants to know at a glance."""
    total = len(audit.mistakes)
    losing = sum(bool(v.caught_by) for v in audit.mistakes)
    told = {
        kind: sum(v.told == kind for v in audit.mistakes) for kind in ("named", "clue", "numbers")
    }
    false = sum(v.named_wrongly for v in audit.mistakes)
    yield (
        f"mistakes    {losing} / {total} lose points · {told['named']} named, "
        f"{told['clue']} given a clue, {told['numbers']} shown the numbers, {false} named wrongly"
    )
    keeping = sum(not verdict.loses for verdict in audit.alternates)
    yield f"alternates  {keeping} / {len(audit.alternates)} keep every point"
    yield f"margins     {_nearest_wrong(audit)} · {_furthest_right(audit)}"


def _nearest_wrong(audit: Audit) -> str:
    margins = [v for v in audit.mistakes if v.margin is not None and v.shows == "value"]
    if not margins:
        return "no mistake shows in values"
    nearest = min(margins, key=lambda v: v.margin or 0.0)
    return f"nearest mistake {nearest.margin:.3g} × the limit ({nearest.id})"


def _furthest_right(audit: Audit) -> str:
    furthest = max((v for v in audit.alternates if v.id != "solution"), key=lambda v: v.worst)
    return f"furthest right answer {furthest.worst:.2f} of it ({furthest.id})"
