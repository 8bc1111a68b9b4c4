"""A batch that was stopped goes on where it was: nothing is lost, and nothing graded twice.

While a batch runs, `batch.json` in its folder says how it grades. A grade counts as done when its
`grade.json` stands there whole, with the same seed, settings and submission.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

import msgspec

from staff.files import write_whole
from staff.grader.grade import Grade, Settings, read_grade
from staff.grader.intake import Intake

FILE = "batch.json"


class Batch(Settings, frozen=True, kw_only=True):
    """How the submissions of one batch are graded."""

    cases: str
    """The folder of the cases that were given; empty for fresh ones."""
    sandbox: str

    def kept(self, out: Path, name: str, digest: str) -> Grade | None:
        """The grade that this batch has given to a submission before it was stopped, if any.

        What could not be graded is tried again: the reason may be the one that stopped the batch.
        """
        try:
            grade = read_grade(out / name / "grade.json")
        except (OSError, msgspec.MsgspecError):
            return None
        mine = (digest, self.sandbox, self.settings)
        same = (grade.digest, grade.sandbox, grade.settings) == mine
        return grade if grade.graded and same else None


def begin(out: Path, wanted: Batch) -> tuple[Batch, bool]:
    """Begin a batch in a folder, or go on with one that was stopped there.

    Args:
        out: the folder.
        wanted: how to grade; fresh cases without a seed get one.

    Returns:
        the batch, and whether it goes on.
    """
    try:
        found = msgspec.json.decode((out / FILE).read_bytes(), type=Batch)
    except (OSError, msgspec.MsgspecError):
        found = None
    unseeded = not wanted.cases and not wanted.seed
    if found and found == (
        msgspec.structs.replace(wanted, seed=found.seed) if unseeded else wanted
    ):
        return found, True
    batch = msgspec.structs.replace(wanted, seed=secrets.token_hex(8)) if unseeded else wanted
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / FILE, msgspec.json.encode(batch) + b"\n")
    return batch, False


def finish(out: Path) -> None:
    """A batch is done: the next one in the same folder begins anew."""
    (out / FILE).unlink(missing_ok=True)


def digest_of(intake: Intake) -> str:
    """Tell submissions apart by what a grade needs of them."""
    digest = hashlib.sha256()
    for name in sorted(intake.taken):
        content = (intake.folder / name).read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
    return digest.hexdigest()[:32]
