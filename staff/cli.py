"""The command line of instructors and graders: `cs336 …`."""

from __future__ import annotations

import codecs
import errno
import gc
import io
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from staff.grader.scratch.model import Policy
from staff.paths import ROOT, SOLUTION
from tests.harness.diagnosis import Hints
from tests.harness.errors import HarnessError
from tests.harness.fixtures import FIXTURES
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
    from staff.fixtures.draft import write_files
    from staff.fixtures.fresh import fresh_files
    from staff.grader.batch import Batch, begin, finish
    from staff.grader.reports import table, write_reports
    from staff.grader.run import Grading, grade_all, unique_names
    from staff.grader.sandbox import choose
    from staff.grader.workplace import workplace
    from tests.harness.devices import demand
    from tests.harness.fixtures import Fixtures

    missing = [path for path in submissions if not path.exists()]
    if missing:
        raise UsageError(f"there is no {missing[0]}; name folders, zips or tars that exist")
    rubric = read_rubric()
    for task in rubric.tasks:
        Fixtures(fixtures or FIXTURES).task(task.id)
    backend = choose(sandbox)
    demand(device)
    wanted = Batch(
        seed="" if fixtures else seed,
        cases=str(fixtures.resolve()) if fixtures else "",
        sandbox=backend.name,
        device=device,
        hints=hints,
        policy=scratch,
    )
    batch, goes_on = begin(out, wanted)
    if goes_on:
        console.print(f"going on with the batch that was stopped in {out}/", markup=False)
    order = unique_names(submissions)
    grades = {}
    with _Progress("grading") as progress, workplace() as place:
        cases, saved = fixtures, None
        if cases is None:
            progress.say("drawing fresh cases")
            cases, saved = place / "cases", FIXTURES
            cases.mkdir(0o700)  # the answers: for nobody else, whoever may enter the place
            files, stayed = fresh_files(FIXTURES, batch.seed)
            for case in stayed:
                console.print(f"no fresh case had room, the saved one stands: {case}", markup=False)
            write_files(files, cases)
        how = Grading(
            cases=cases,
            rubric=rubric,
            backend=backend,
            saved=saved,
            **batch.settings,
        )
        gc.freeze()  # what is loaded stays, and is no garbage to look for beside each submission
        for done in grade_all(submissions, how, lambda *found: batch.kept(out, *found)):
            write_reports(done, rubric, out / done.submission)
            grades[done.submission] = done
            progress.say("grading", len(grades), len(order))
    finish(out)
    console.print(table([grades[name] for name in order]))
    console.print(f"\nReports in {out}/ · open {out / order[-1] / 'report.html'}", markup=False)
    raise typer.Exit(0 if all(g.graded for g in grades.values()) else 1)


@app.command()
def examples(out: Out = Path("build/examples")) -> None:
    """Write the example submissions: stubs, a first week's work, the solution."""
    from staff.catalogue.examples import write_examples

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
    sample: Annotated[
        int, typer.Option(metavar="N", min=1, help="Measure one patch in N, keep the others.")
    ] = 1,
) -> None:
    """Draw the inputs, ask the oracle, hold the solution against it, and write the files."""
    from staff.fixtures.build import build_files
    from staff.fixtures.draft import write_files

    rubric = read_rubric()
    tasks = [rubric.task(name).id for name in task or ()]
    with _Progress("building") as progress:
        files = build_files(FIXTURES, seed, progress.say, tasks, sample)
    write_files(files, out)
    size = sum(len(content) for content in files.values())
    console.print(f"wrote {len(files)} files, {size / 1000:.0f} kB, to {out}/")


@app.command()
def audit(
    as_json: Annotated[bool, typer.Option("--json", help="Print the audit as JSON.")] = False,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the margins into an SVG.")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Run every test on every mistake, not a sample.")
    ] = False,
    part: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Only this part (repeatable).")
    ] = None,
    pairs: Annotated[
        int, typer.Option(metavar="N", help="Put N random pairs of mistakes together instead.")
    ] = 0,
    fixtures: Annotated[Path, typer.Option(metavar="DIR", help="The saved cases.")] = FIXTURES,
) -> None:
    """Run every mistake and every alternate through the suite; exit 1 if anything falls short."""
    from staff.audit.audit import audit as run_audit
    from staff.audit.figure import draw
    from staff.audit.pairs import audit_pairs
    from staff.audit.show import mistakes_table, totals

    if pairs:
        with _Progress("auditing") as progress:
            verdicts = audit_pairs(pairs, fixtures, progress.say)
        wrong = [(v, problem) for v in verdicts for problem in v.problems]
        if as_json:
            _write_json(verdicts)
        else:
            for verdict, problem in wrong:
                console.print(f"{verdict.first} with {verdict.second}: {problem}", markup=False)
            named = sum(bool(verdict.named) for verdict in verdicts)
            said = f"{len(verdicts)} pairs · {named} with a name · {len(wrong)} told wrongly"
            console.print(said)
        raise typer.Exit(1 if wrong else 0)
    with _Progress("auditing") as progress:
        rubric = read_rubric()
        tasks = [task.id for task in rubric.tasks if task.part in (part or ())]
        found = run_audit(rubric, fixtures, progress.say, whole=whole, tasks=tasks)
    if figure is not None:
        draw(found, figure)
    if as_json:
        _write_json(found)
    else:
        console.print(mistakes_table(found))
        console.print()
        for line in (*totals(found), *(f"falls short: {problem}" for problem in found.problems)):
            console.print(line, markup=False)
    raise typer.Exit(1 if found.problems else 0)


@fixtures_app.command()
def check(
    sample: Annotated[
        int, typer.Option(metavar="N", min=1, help="Measure one patch in N; all by default.")
    ] = 1,
) -> None:
    """Build anew in memory and compare; exit 1 if anything would change."""
    from staff.fixtures.diff import differences

    found = list(differences(FIXTURES, sample))
    for line in found:
        console.print(line, markup=False)
    if found:
        console.print(f"{len(found)} differences · run `cs336 fixtures build` to take them over")
        raise typer.Exit(1)
    console.print("fixtures in step with the oracle and the solution")


@fixtures_app.command()
def diff() -> None:
    """Say what a new build would change, and by how much."""
    from staff.fixtures.diff import differences

    found = list(differences(FIXTURES))
    for line in found or ["a new build would change nothing"]:
        console.print(line, markup=False)


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
