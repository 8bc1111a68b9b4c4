"""The kinds of validation that `cs336 audit` can run, and their order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from staff.catalogue.patches import Patch, load_alternates, load_mistakes
from staff.files import quick_folder
from staff.validation import noise
from staff.validation.audit import Audit, audit
from staff.validation.frames import judge_frames
from staff.validation.judge import Progress, Section
from staff.validation.kills import judge_kills
from staff.validation.pairs import audit_pairs
from staff.validation.pairs import section as pairs_section
from staff.validation.sandboxed import judge_patches, judge_public
from staff.validation.tables import sections as audit_sections
from tests.harness.errors import HarnessError
from tests.harness.rubric import Rubric


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The kinds of validation that are to run."""

    audit: bool = False
    """Run every mistake and alternate through the suite, in process."""
    sandbox: bool = False
    """Run every mistake, alternate and submission in the public layout in the sandbox."""
    noise: int = 0
    """The number of seeds of noise; no fingerprint may change with one of them."""
    pairs: int = 0
    """The number of random pairs of mistakes."""
    kills: int = 0
    """The number of training runs that are killed and resumed."""
    frames: int = 0
    """The number of hostile frames that are sent to the grader."""
    mutants: bool = False
    """Run the suite on general mutants of the solution."""
    files: tuple[str, ...] = ()
    """The files of the solution that are mutated; if empty, all files."""
    whole: bool = False
    """Run every test on every patch, not only the tests of tasks that the patch can reach."""
    tasks: tuple[str, ...] = ()
    """The tasks whose patches are audited in process; if empty, all tasks."""


EVERYTHING = Plan(audit=True, sandbox=True, noise=noise.SEEDS, pairs=200, kills=50, frames=100_000)
"""All kinds but the mutants, which alone take an hour."""


def validate(
    plan: Plan, rubric: Rubric, cases: Path, progress: Progress
) -> Iterator[tuple[list[Section], Audit | None]]:
    """Run the kinds of validation that the plan names.

    Yields:
        The sections of each kind as soon as it is done, and the audit if it was one.

    Raises:
        HarnessError: the plan names the mutants, and cosmic-ray is not installed.
    """
    if plan.audit:
        found = audit(rubric, cases, progress, whole=plan.whole, tasks=plan.tasks)
        yield audit_sections(found), found
    if plan.sandbox:
        patches: list[Patch] = [*load_mistakes(), *load_alternates()]
        with TemporaryDirectory(prefix="proof-", dir=quick_folder()) as scratch:
            yield judge_patches(patches, rubric, Path(scratch), progress, whole=plan.whole), None
        progress("submissions in the public layout", 0, 0)
        yield [judge_public(rubric)], None
    if plan.noise:
        yield [noise.judge_noise(cases, progress, plan.noise)], None
    if plan.pairs:
        yield [pairs_section(audit_pairs(plan.pairs, cases, progress))], None
    if plan.kills:
        progress("training runs that are killed", 0, plan.kills)
        yield [judge_kills(plan.kills)], None
    if plan.frames:
        progress("hostile frames", 0, plan.frames)
        yield [judge_frames(plan.frames)], None
    if plan.mutants:
        try:
            from staff.validation.mutants import judge_mutants
        except ImportError as error:
            raise HarnessError(
                f"mutants need {error.name}, which is not installed: pip install -e '.[mutation]'"
            ) from error
        yield [judge_mutants(plan.files, progress)], None
