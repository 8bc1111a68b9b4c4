"""General mutants: small mechanical changes to the solution, made by cosmic-ray.

The catalogue contains mistakes that people make. General mutants cover mistakes that nobody
thought of. The graded suite judges each mutant. If a mutant survives, either the suite has a gap,
or the mutant means the same as the original. In that case `mutants.toml` gives the reason.
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
"""The suite must kill this share of the mutants that don't mean the same as the original."""
SURVIVORS = Path(__file__).with_name("mutants.toml")
"""The list of mutants that mean the same as the original."""


@dataclass(frozen=True)
class Mutant:
    """A file of the solution with one change."""

    file: str
    operator: str
    """The operator of cosmic-ray that made the change."""
    text: str
    """The whole changed file."""
    before: str
    """The changed lines as they were, without indentation."""
    after: str
    """The changed lines as they are now, without indentation."""


class Equivalent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes of one file that mean the same as the original, and the reason why."""

    before: tuple[str, ...]
    """Lines of the file, without indentation; each may be changed by itself."""
    reason: str
    after: tuple[str, ...] = ()
    """What a line may become; if empty, anything that survives."""

    def explains(self, mutant: Mutant) -> bool:
        """Whether a mutant is one of these changes."""
        return mutant.before in self.before and (not self.after or mutant.after in self.after)


def mutants(files: Collection[str] = ()) -> Iterator[Mutant]:
    """Make every mutant of the solution's package.

    Equal results of different changes count once. Changes that affect only annotations or the text
    of an error don't count.

    Args:
        files: the names of the files to change; if empty, all files.
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
    """Change a file; return None if cosmic-ray can't, or if the result isn't valid Python."""
    try:
        text = mutate_code(source, operator, occurrence)
        ast.parse(text or "")
    # cosmic-ray fails on exceptions with a dotted name, and writes the invalid `not x := y`.
    except (AttributeError, SyntaxError):
        return None
    return text


def _meaning(source: str) -> str:
    """Return the code without its annotations and without the texts of its errors."""
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

    A mutant first runs the tests of the tasks in its own file. The whole suite then runs only on
    the mutants that pass these tests.
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
    """List the tasks that are written in each file of the package."""
    by_file: dict[str, dict[str, None]] = {}
    for task in rubric.tasks:
        for symbol in task.symbols:
            module = symbol.partition(":")[0]
            by_file.setdefault(f"{module.rpartition('.')[2]}.py", {})[task.id] = None
    return {file: tuple(tasks) for file, tasks in by_file.items()}


def _change(before: str, after: str) -> tuple[str, str]:
    """Return the lines that differ between two texts: those of the first, those of the second."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    removed, added = ([line[2:].strip() for line in lines if line[0] == sign] for sign in "-+")
    return "\n".join(removed), "\n".join(added)


def judge_mutants(files: Collection[str], progress: Progress) -> Section:
    """Make and judge the mutants of the solution's package.

    Args:
        files: the names of the files to change; if empty, all files.
        progress: is called with what is running, the number that is done, and the total.

    Raises:
        HarnessError: the solution has no such file, or the list of survivors is out of date.
    """
    listed = _listed()
    names = sorted(path.name for path in (SOLUTION / PACKAGE).glob("*.py"))
    if unknown := sorted(set(files) - set(names)):
        raise HarnessError(f"the solution has no file {unknown[0]}; it has: {', '.join(names)}")
    found = []
    for mutant in mutants(files):
        found.append(mutant)
        progress("mutants made", len(found), 0)
    with TemporaryDirectory(prefix="mutants-", dir=quick_folder()) as scratch:
        alive = survivors(found, Path(scratch), progress)
    gaps = [
        mutant
        for mutant in alive
        if not any(e.explains(mutant) for e in listed.get(Path(mutant.file).stem, ()))
    ]
    explained = len(alive) - len(gaps)
    return Section(
        name="mutants",
        promise="are killed",
        total=len(found) - explained,
        problems=tuple((f"{m.file}: {m.operator} #{i}", _shown(m)) for i, m in enumerate(gaps)),
        least=LEAST_KILLED,
        figures=(
            f"{explained} of {len(found)} mutants mean the same as the original "
            f"(see {SURVIVORS.name})",
        ),
    )


def _listed() -> dict[str, tuple[Equivalent, ...]]:
    """Read the list of survivors; every table must name a module, and every line must be in it."""
    listed = msgspec.toml.decode(SURVIVORS.read_bytes(), type=dict[str, tuple[Equivalent, ...]])
    for module, entries in listed.items():
        path = SOLUTION / PACKAGE / f"{module}.py"
        if not path.is_file():
            raise HarnessError(f"{SURVIVORS.name}: the solution has no module {module}")
        source = "\n".join(line.strip() for line in path.read_text("utf-8").splitlines())
        for before in (before for entry in entries for before in entry.before):
            if before.strip() not in source:
                raise HarnessError(
                    f"{SURVIVORS.name}: {module}.py no longer contains the line: {before.strip()}"
                )
    return listed


def _shown(mutant: Mutant) -> str:
    before, after = (text.replace("\n", " ⏎ ") for text in (mutant.before, mutant.after))
    return f"survives: {before} → {after}"
