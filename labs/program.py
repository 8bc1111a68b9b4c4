"""Program: what all labs share as programs, namely options, the choice of the submission, exits.

A lab imports from `cs336_basics` inside its functions, because the options decide which package
of that name is used.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.harness.errors import HarnessError
from tests.harness.loading import put_first
from tests.harness.rubric import read_rubric
from tests.harness.submission import PACKAGE, Submission, locate

Lab = Callable[[argparse.Namespace], None]


class LabError(Exception):
    """A lab can't continue; its text is one line that says why and what to do."""


def parser(text: str) -> argparse.ArgumentParser:
    """Make a parser with the options of all labs; `text` is the lab's docstring."""
    options = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--submission",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the folder whose cs336_basics is used (default: the current folder)",
    )
    options.add_argument(
        "--out",
        type=Path,
        default=Path("build/labs"),
        metavar="DIR",
        help="the folder for the picture (default: build/labs)",
    )
    options.add_argument(
        "--seed", type=int, default=0, help="seed of all random numbers (default: 0)"
    )
    return options


def run(lab: Lab, options: argparse.ArgumentParser, arguments: Sequence[str] | None) -> None:
    """Read the options and run the lab on the submission that they name.

    The exit status is 1, with one line, if the needed code isn't written yet or the lab can't
    continue, and 2 for wrong options. An error in the submission's code ends in a traceback.
    """
    chosen = options.parse_args(arguments)
    try:
        submission = locate(chosen.submission)
    except HarnessError as error:
        options.error(str(error))
    put_first(submission)
    chosen.out.mkdir(parents=True, exist_ok=True)
    try:
        lab(chosen)
    except LabError as error:
        raise SystemExit(str(error)) from None
    except (NotImplementedError, ImportError) as error:
        missing = _missing(error, submission)
        if missing is None:
            raise
        raise SystemExit(missing) from None


def say(text: str = "") -> None:
    """Print a line; characters that the terminal can't show become question marks."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(f"{text.encode(encoding, 'replace').decode(encoding)}\n")
    sys.stdout.flush()


def _missing(error: Exception, submission: Submission) -> str | None:
    """Return a line that names the code to write first, or None if no code is missing."""
    tasks = read_rubric().tasks
    if isinstance(error, ImportError):
        module = error.name or ""
        if module.partition(".")[0] != PACKAGE:
            return None
        name = re.search(r"cannot import name '(\w+)'", str(error))
        wanted = f"{module}:{name[1] if name else ''}"
        task = next((t for t in tasks if any(s.startswith(wanted) for s in t.symbols)), None)
        if task is None and name:
            return None
        what = f"{module.replace('.', '/')}.py"
    else:
        frames = submission.frames(error)
        if not frames:
            return None
        task = next((t for t in tasks if str(error).startswith(f"{t.id}: handout")), None)
        what = f"{frames[-1].function} in {frames[-1].file}"
    if task is None:
        return f"{what} isn't written yet"
    return (
        f"{task.id} isn't written yet: write {task.files[0]} (handout §{task.handout}), "
        f"then  pytest --task={task.id}"
    )
