"""The command line of instructors and graders: `cs336 …`."""

from __future__ import annotations

import codecs
import errno
import io
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from staff.files import write_whole
from staff.grader.scratch.model import Policy
from staff.paths import ROOT, SOLUTION
from tests.harness.diagnosis import Hints
from tests.harness.errors import HarnessError
from tests.harness.fixtures import FIXTURES, MANIFEST
from tests.harness.rubric import read_rubric
from tests.harness.terminal import as_ascii

app = typer.Typer(
    help="Grade submissions, and keep the assignment in step with its solution.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
fixtures_app = typer.Typer(help="The saved cases that the tests read.", no_args_is_help=True)
app.add_typer(fixtures_app, name="fixtures")

console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to write.")]


@app.command()
def grade(
    submissions: Annotated[
        list[Path], typer.Argument(metavar="SUBMISSION…", help="Folders, zips or tars.")
    ],
    out: Out = Path("grades"),
    fixtures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Grade on these cases, not on fresh ones.")
    ] = None,
    seed: Annotated[str, typer.Option(help="Seed of the fresh cases; grade.json records it.")] = "",
    sandbox: Annotated[
        str, typer.Option(help="auto, namespaces, bwrap, landlock, process, or mock for none.")
    ] = "auto",
    device: Annotated[str, typer.Option(help="Where inputs are put: cpu, cuda or mps.")] = "cpu",
    hints: Annotated[
        Hints,
        typer.Option(help="How much a failure says: the numbers, a question too, the mistake too."),
    ] = "full",
    scratch: Annotated[
        Policy,
        typer.Option(help="What isn't from scratch: reported, without points, or not looked for."),
    ] = "report",
) -> None:
    """Grade submissions, each in a sandbox of its own, and write a report for each.

    The cases are drawn anew for every batch, so that answers which were written down in advance
    earn nothing. A batch that was stopped goes on where it was when it is started again.

    Exit status: 0 if every submission was graded, 1 if some could not be, 2 for wrong use.
    """
    from staff.grader.grade import Settings
    from staff.grading import Listener, grade_batch
    from staff.reports import table

    settings = Settings(seed=seed, device=device, hints=hints, policy=scratch)
    with _Progress("grading") as progress:
        listener = Listener(lambda line: console.print(line, markup=False), progress.say)
        grades = grade_batch(submissions, out, settings, sandbox, fixtures, listener)
    console.print(table(grades))
    last = out / grades[-1].submission / "report.html"
    console.print(f"\nReports in {out}/ · open {last}", markup=False)
    raise typer.Exit(0 if all(grade.graded for grade in grades) else 1)


@app.command()
def examples(out: Out = Path("build/examples")) -> None:
    """Write the example submissions: stubs, a first week's work, the solution."""
    from staff.release.examples import write_examples

    for folder in write_examples(out):
        console.print(f"wrote {folder}/")


@app.command()
def stubs(
    check: Annotated[
        bool, typer.Option("--check", help="Only compare; exit 1 on a difference.")
    ] = False,
) -> None:
    """Cut the stubs of the repository's root from the solution."""
    from staff.release.stubs import cut, out_of_step, write

    texts = cut(SOLUTION, read_rubric())
    stale = out_of_step(texts, ROOT)
    if check and stale:
        console.print(f"out of step with the solution: {', '.join(stale)} · run `cs336 stubs`")
        raise typer.Exit(1)
    if stale:
        write(texts, ROOT)
        for name in set(stale) - texts.keys():
            (ROOT / name).unlink()
    console.print(f"stubs in step with the solution: {len(texts)} files, {len(stale)} rewritten")


@fixtures_app.command()
def build(
    out: Out = FIXTURES,
    seed: Annotated[str, typer.Option(help="Seed of the inputs.")] = "2026",
    task: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only this task (repeatable).")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every task, also those that are in step.")
    ] = False,
    sample: Annotated[
        int, typer.Option(metavar="N", min=1, help="Measure one patch in N, keep the others.")
    ] = 1,
) -> None:
    """Draw the inputs, ask the oracle, hold the solution against it, and write the files.

    Without --task or --all, the files are built whose sources have changed.
    """
    from staff.fixtures.build import build_files, stale_tasks
    from staff.fixtures.draft import write_files

    rubric = read_rubric()
    tasks = [rubric.task(name).id for name in task or ()]
    if not tasks and not everything:
        tasks = list(stale_tasks(out))
        if not tasks:
            console.print("every file is in step with its sources; --all builds them all the same")
            return
        console.print(f"{len(tasks)} of {len(rubric.tasks)} files are stale: {', '.join(tasks)}")
    with _Progress("building") as progress:
        reference = out if (out / MANIFEST).is_file() else FIXTURES
        files = build_files(reference, seed, progress.say, tasks, sample, into=out)
    write_files(files, out)
    size = sum(len(content) for content in files.values())
    console.print(f"wrote {len(files)} files, {size / 1000:.0f} kB, to {out}/")


@fixtures_app.command()
def check(
    sample: Annotated[
        int, typer.Option(metavar="N", min=1, help="Measure one patch in N; all by default.")
    ] = 1,
) -> None:
    """Build anew in memory and compare; exit 1 if anything would change."""
    found = _differences(sample)
    if found:
        console.print(f"{len(found)} differences · run `cs336 fixtures build` to take them over")
        raise typer.Exit(1)
    console.print("fixtures in step with the oracle and the solution")


@fixtures_app.command()
def diff() -> None:
    """Say what a new build would change, and by how much."""
    if not _differences(sample=1):
        console.print("a new build would change nothing")


def _differences(sample: int) -> list[str]:
    from staff.fixtures.diff import differences

    with _Progress("comparing") as progress:
        found = list(differences(FIXTURES, sample, progress.say))
    for line in found:
        console.print(line, markup=False)
    return found


@app.command()
def audit(
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Every patch through the sandbox.")
    ] = False,
    noise: Annotated[
        int, typer.Option(metavar="SEEDS", help="Answers as other processors round them.")
    ] = 0,
    pairs: Annotated[int, typer.Option(metavar="N", help="N random pairs of mistakes.")] = 0,
    kills: Annotated[int, typer.Option(metavar="N", help="Kill and resume N training runs.")] = 0,
    frames: Annotated[int, typer.Option(metavar="N", help="Send the grader N odd frames.")] = 0,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="General mutants of the solution (an hour).")
    ] = False,
    file: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Mutate only this file (repeatable).")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All of these but the mutants.")
    ] = False,
    part: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Audit only this part (repeatable).")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Run every test on every mistake, not a sample.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the margins into an SVG.")
    ] = None,
    by_case: Annotated[
        bool, typer.Option("--by-case", help="Draw a row for each case, not for each task.")
    ] = False,
    proof: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result into a Markdown page.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    fixtures: Annotated[Path, typer.Option(metavar="DIR", help="The saved cases.")] = FIXTURES,
) -> None:
    """Prove that the suite catches what it should, and nothing else; exit 1 if it falls short.

    Without an option every mistake and every alternate runs through the suite in process.
    """
    from msgspec.structs import replace

    from staff.validation.margins import draw
    from staff.validation.proof import proof as page
    from staff.validation.tables import mistakes_table
    from staff.validation.validate import EVERYTHING, Plan, validate

    rubric = read_rubric()
    parts = {known.number for known in rubric.parts}
    if unknown := sorted(set(part or ()) - parts):
        raise UsageError(f"there is no part {unknown[0]}; there are {', '.join(map(str, parts))}")
    plan = Plan(
        sandbox=sandbox,
        noise=noise,
        pairs=pairs,
        kills=kills,
        frames=frames,
        mutants=mutants,
        files=tuple(file or ()),
        whole=whole,
        tasks=tuple(task.id for task in rubric.tasks if task.part in (part or ())),
    )
    if everything:
        plan = replace(EVERYTHING, whole=whole)
    elif not any((sandbox, noise, pairs, kills, frames, mutants)):
        plan = replace(plan, audit=True)
    sections = []
    found = None
    with _Progress("auditing") as progress:
        for done, audited in validate(plan, rubric, fixtures, progress.say):
            sections += done
            found = found or audited
    if figure is not None and found is not None:
        draw(found, figure, by_case=by_case)
    if proof is not None:
        write_whole(proof, page(sections).encode())
    if as_json:
        _write_json({"sections": sections, "audit": found})
    else:
        if found is not None and not everything:
            console.print(mistakes_table(found))
            console.print()
        for section in sections:
            for line in (str(section), *(f"  {figure}" for figure in section.figures)):
                console.print(line, markup=False)
            for subject, problem in section.problems:
                console.print(f"  falls short: {subject}: {problem}", markup=False)
    raise typer.Exit(0 if all(section.holds for section in sections) else 1)


def _write_json(found: object) -> None:
    """Write a result to standard output, as UTF-8 whatever the terminal has."""
    import msgspec

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")


class UsageError(HarnessError):
    """The command was called with something that can't be."""


def main() -> None:
    """Run the command line; an error of ours is one line and exit status 2."""
    codecs.register_error("cs336", _spelled_out)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="cs336")
    try:
        app()
    except (HarnessError, OSError) as error:
        said = _in_words(error) if isinstance(error, OSError) else str(error)
        Console(stderr=True, highlight=False).print(f"cs336: {said}", markup=False, soft_wrap=True)
        sys.exit(2)


def _in_words(error: OSError) -> str:
    """What the system refused, and where; files that we write are named by their writers."""
    where = error.filename or f"the temporary folder {tempfile.gettempdir()}"
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    rest = "; make room and start again: what is done is kept" if full else ""
    return f"{where}: {error.strerror or error}{rest}"


def _spelled_out(error: UnicodeError) -> tuple[str, int]:
    """Replace what the terminal's encoding lacks; an error handler for `codecs`."""
    assert isinstance(error, UnicodeEncodeError)
    return as_ascii(error.object[error.start : error.end]), error.end


class _Progress(Progress):
    """A progress line on the terminal; silent where there is none."""

    def __init__(self, what: str) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        console = Console(stderr=True)
        super().__init__(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._line = self.add_task(what, total=None)

    def say(self, what: str, done: int = 0, total: int = 0) -> None:
        """Say what is going on, and how much of it is done."""
        count = f" {done}/{total}" if total else ""
        self.update(self._line, description=f"{what}{count}")


if __name__ == "__main__":
    main()
