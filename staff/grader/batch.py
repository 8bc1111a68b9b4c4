"""A stopped batch can be continued: no grade is lost, and no submission is graded twice.

While a batch runs, `batch.json` in its folder records how it grades. A submission counts as graded
if its `grade.json` is complete and records the same settings, sandbox and digest of the submission.
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
    """The folder of the given cases; empty if the cases are fresh."""
    sandbox: str
    """The name of the backend that confines the submissions."""

    def kept(self, out: Path, name: str, digest: str) -> Grade | None:
        """Return the grade that a submission got before this batch was stopped, or None.

        A submission that could not be graded is tried again, since the cause may be the same that
        stopped the batch.

        Args:
            out: the folder of the batch.
            name: the name of the submission.
            digest: the digest of the submission; see `digest_of`.
        """
        try:
            grade = read_grade(out / name / "grade.json")
        except (OSError, msgspec.MsgspecError):
            return None
        mine = (digest, self.sandbox, self.settings)
        same = (grade.digest, grade.sandbox, grade.settings) == mine
        return grade if grade.graded and same else None


def begin(out: Path, wanted: Batch) -> tuple[Batch, bool]:
    """Begin a batch in a folder, or continue the one that was stopped there.

    Args:
        out: the folder.
        wanted: how to grade; if its cases are fresh and it has no seed, a seed is drawn.

    Returns:
        The batch, and whether it continues a stopped one.
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
    """Remove the record of a finished batch, so that the next one in its folder begins anew."""
    (out / FILE).unlink(missing_ok=True)


def digest_of(intake: Intake) -> str:
    """Return a digest of the files that are graded; equal files have equal digests."""
    digest = hashlib.sha256()
    for name in sorted(intake.taken):
        content = (intake.folder / name).read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
    return digest.hexdigest()[:32]
