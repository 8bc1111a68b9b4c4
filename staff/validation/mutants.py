"""General mutants: small random-looking changes to the solution, made by cosmic-ray.

The catalogue holds the mistakes that people make; these are the ones that nobody thought of.
Each mutant is judged by the graded suite. One that survives is either a hole in the suite or
means the same as the original, and then `mutation.toml` says why.
"""

from __future__ import annotations

import ast
import compileall
import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names

from staff.catalogue.edits import write_over
from staff.catalogue.patches import patched
from staff.files import quick_folder
from staff.paths import SOLUTION
from staff.runner.jobs import Job, run_jobs
from staff.validation import judge
from staff.validation.judge import Progress, Section
from tests.harness.errors import HarnessError
from tests.harness.fixtures import FIXTURES
from tests.harness.rubric import Rubric, read_rubric
from tests.harness.submission import PACKAGE

LEAST_KILLED = 0.98
"""Share of the mutants that don't mean the same as the original which must be killed."""
SURVIVORS = Path(__file__).with_name("mutants.toml")


@dataclass(frozen=True)
class Mutant:
    """One changed file of the solution."""

    file: str
    operator: str
    text: str
    before: str
    """The lines that are changed, without indentation."""
    after: str
    """What they become."""


class Equivalent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes that survive, and why they are no holes."""

    file: str
    before: tuple[str, ...]
    """The lines that are changed, without indentation: one place after the other."""
    reason: str
    after: tuple[str, ...] = ()
    """What they may become; where nothing stands, whatever survives."""

    def explains(self, mutant: Mutant) -> bool:
        """Whether a mutant is one of these changes."""
        here = mutant.file == self.file and mutant.before in self.before
        return here and (not self.after or mutant.after in self.after)


class _Survivors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    equivalent: tuple[Equivalent, ...] = ()


def mutants(files: Collection[str] = ()) -> Iterator[Mutant]:
    """Make every mutant of the solution's package, or of these files of it.

    Changes that come out alike count once, and changes to annotations or to the words of an
    error alone don't count.
    """
    for path in sorted((SOLUTION / PACKAGE).glob("*.py")):
        if files and path.name not in files:
            continue
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
                text = _mutated(source, operator_class(), occurrence)
                if text is not None and (meaning := _meaning(text)) not in seen:
                    seen.add(meaning)
                    yield Mutant(path.name, name, text, *_change(source, text))


def _mutated(source: str, operator: Operator, occurrence: int) -> str | None:
    """The changed file; None where cosmic-ray can't change it, or makes no Python of it."""
    try:
        text = mutate_code(source, operator, occurrence)
        ast.parse(text or "")
    except (AttributeError, SyntaxError):  # at an exception with a dotted name; at `not x := y`
        return None
    return text


def _meaning(source: str) -> str:
    """The code without its annotations and without the words of its errors."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args = []
    return ast.unparse(tree)


def survivors(found: list[Mutant], scratch: Path, progress: Progress) -> list[Mutant]:
    """Run the graded suite on every mutant; return those that earn every point.

    The tasks of its own file come first: the whole suite sees only what these let pass.
    """
    base = patched([], SOLUTION, scratch / "solution")
    compileall.compile_dir(base, quiet=2)
    alive = {str(number): mutant for number, mutant in enumerate(found)}
    for name, mutant in alive.items():
        folder = patched([], base, scratch / name, link=True)
        write_over(folder / PACKAGE / mutant.file, mutant.text)
    own = _tasks_by_file(read_rubric())
    for tasks, what in ((own, "their own tasks"), ({}, "everything")):
        jobs = [
            Job(name=name, folder=str(scratch / name), tasks=tasks.get(mutant.file, ()), seconds=60)
            for name, mutant in alive.items()
            if not tasks or mutant.file in tasks
        ]
        for number, outcome in enumerate(run_jobs(jobs, FIXTURES), start=1):
            if outcome.run.result is None or judge.of_right(outcome.run):
                del alive[outcome.name]
            progress(f"mutants on {what}", number, len(jobs))
    return list(alive.values())


def _tasks_by_file(rubric: Rubric) -> dict[str, tuple[str, ...]]:
    """The tasks that are written in a file of the package."""
    found: dict[str, dict[str, None]] = {}
    for task in rubric.tasks:
        for symbol in task.symbols:
            module = symbol.partition(":")[0]
            found.setdefault(f"{module.rpartition('.')[2]}.py", {})[task.id] = None
    return {file: tuple(tasks) for file, tasks in found.items()}


def _change(before: str, after: str) -> tuple[str, str]:
    """The lines that differ, as they are in the one and in the other."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    taken, put = ([line[2:].strip() for line in lines if line[0] == sign] for sign in "-+")
    return "\n".join(taken), "\n".join(put)


def judge_mutants(files: Collection[str], progress: Progress) -> Section:
    """Make and judge the mutants of the solution's package, or of these files of it.

    Raises:
        HarnessError: the solution has no such file.
    """
    names = sorted(path.name for path in (SOLUTION / PACKAGE).glob("*.py"))
    if unknown := sorted(set(files) - set(names)):
        raise HarnessError(f"the solution has no {unknown[0]}; there are: {', '.join(names)}")
    found = []
    for mutant in mutants(files):
        found.append(mutant)
        progress("mutants made", len(found), 0)
    with TemporaryDirectory(prefix="mutants-", dir=quick_folder()) as scratch:
        alive = survivors(found, Path(scratch), progress)
    known = msgspec.toml.decode(SURVIVORS.read_bytes(), type=_Survivors).equivalent
    holes = [mutant for mutant in alive if not any(entry.explains(mutant) for entry in known)]
    explained = len(alive) - len(holes)
    return Section(
        name="mutants",
        promise="are killed",
        total=len(found) - explained,
        problems=tuple((f"{m.file}: {m.operator} #{i}", _shown(m)) for i, m in enumerate(holes)),
        least=LEAST_KILLED,
        figures=(f"{explained} of {len(found)} mean the same (see {SURVIVORS.name})",),
    )


def _shown(mutant: Mutant) -> str:
    before, after = (text.replace("\n", " ⏎ ") for text in (mutant.before, mutant.after))
    return f"survives: {before} → {after}"
