"""General mutants: small random-looking changes to the solution, made by cosmic-ray.

The catalogue holds the mistakes that people make; these are the ones that nobody thought of.
Each mutant is judged by the graded suite. One that survives is either a hole in the suite or
means the same as the original, and then `mutation.toml` says why.
"""

from __future__ import annotations

import ast
import difflib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from rich.console import Console
from rich.progress import track

from staff.catalogue.patches import patched
from staff.files import quick_folder
from staff.grader.warm import Job, Outcome, run_warm
from staff.paths import SOLUTION
from tests.harness.fixtures import FIXTURES

SURVIVORS = Path(__file__).with_name("mutation.toml")
LEAST_KILLED = 0.98
"""Share of the mutants that don't mean the same as the original which must be killed."""


@dataclass(frozen=True)
class Mutant:
    """One changed file of the solution."""

    file: str
    operator: str
    text: str
    change: str
    """The lines that differ, as `- before` and `+ after`."""


class Equivalent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change that survives, and why that is no hole."""

    file: str
    change: str
    reason: str


class _Survivors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    equivalent: tuple[Equivalent, ...] = ()


def mutants() -> Iterator[Mutant]:
    """Make every mutant of the solution's package.

    Changes that come out alike count once, and changes to annotations alone don't count.
    """
    for path in sorted((SOLUTION / "cs336_basics").glob("*.py")):
        source = path.read_text("utf-8")
        seen = {_meaning(source)}
        for name in operator_names():
            operator_class = get_operator(name)
            if operator_class.arguments():
                continue
            operator = operator_class()
            nodes = ast_nodes(get_ast(source))
            count = sum(1 for node in nodes for _ in operator.mutation_positions(node))
            for occurrence in range(count):
                text = mutate_code(source, operator_class(), occurrence)
                if text is not None and (meaning := _meaning(text)) not in seen:
                    seen.add(meaning)
                    yield Mutant(path.name, name, text, _change(source, text))


def _meaning(source: str) -> str:
    """The code without its annotations."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
    return ast.unparse(tree)


def judge(found: list[Mutant], scratch: Path) -> dict[str, Outcome]:
    """Run the graded suite on every mutant; outcomes by the mutant's number."""
    jobs = []
    for number, mutant in enumerate(found):
        folder = patched([], SOLUTION, scratch / str(number))
        (folder / "cs336_basics" / mutant.file).write_text(mutant.text, "utf-8")
        jobs.append(Job(name=str(number), folder=str(folder)))
    outcomes = run_warm(jobs, FIXTURES)
    console = Console(stderr=True)
    shown = track(outcomes, "running mutants", total=len(jobs), console=console)
    return {outcome.name: outcome for outcome in shown}


def survivors(found: list[Mutant], outcomes: Mapping[str, Outcome]) -> list[Mutant]:
    """The mutants that earn every point."""
    return [mutant for i, mutant in enumerate(found) if _survives(outcomes[str(i)])]


def _survives(outcome: Outcome) -> bool:
    result = outcome.run.result
    return result is not None and all(task.complete for task in result.tasks)


def _change(before: str, after: str) -> str:
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return "\n".join(f"{line[0]} {line[2:].strip()}" for line in lines if line[0] in "+-")


def main() -> None:
    """Make and judge every mutant; exit 1 where a survivor is not explained."""
    console = Console(highlight=False)
    found = list(mutants())
    with TemporaryDirectory(prefix="mutants-", dir=quick_folder()) as scratch:
        alive = survivors(found, judge(found, Path(scratch)))
    known = msgspec.toml.decode(SURVIVORS.read_bytes(), type=_Survivors).equivalent
    explained = {(entry.file, entry.change.strip()) for entry in known}
    holes = [mutant for mutant in alive if (mutant.file, mutant.change) not in explained]
    for mutant in holes:
        console.print(f"{mutant.file}: survives {mutant.operator}\n{mutant.change}", markup=False)
    counted = len(found) - (len(alive) - len(holes))
    share = (counted - len(holes)) / counted
    console.print(
        f"{len(found)} mutants · {len(alive) - len(holes)} mean the same (see {SURVIVORS.name}) · "
        f"{counted - len(holes)} of {counted} others killed ({share:.1%})"
    )
    sys.exit(0 if share >= LEAST_KILLED else 1)


if __name__ == "__main__":
    main()
