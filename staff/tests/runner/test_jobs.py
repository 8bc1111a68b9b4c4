"""The warm way to run the suite: a child computes as it is told, or says that it can't."""

from staff.catalogue.subjects import Subject
from staff.fixtures.calibrate import on_lesser_units, on_this_processor, worst_errors
from staff.paths import SOLUTION
from staff.runner.jobs import Job, run_jobs
from tests.harness.fixtures import FIXTURES

TASK = "softmax"


def test_every_lesser_vector_unit_is_used() -> None:
    """Catches runs that all use the processor's best unit, so that limits are too narrow."""
    own = on_this_processor([Subject("solution", "solution", SOLUTION)], FIXTURES, [TASK])
    jobs = [*own, *on_lesser_units(own)]
    outcomes = list(run_jobs(jobs, FIXTURES))
    assert {outcome.capability for outcome in outcomes} == {job.capability for job in jobs}
    assert [outcome.run.problem for outcome in outcomes] == [None] * len(jobs)
    errors = worst_errors(outcomes)
    assert all(0 <= error < 1 for case in errors.values() for error in case.values())
    assert len(errors) == sum(map(len, outcomes[0].cases[TASK].values()))


def test_a_vector_unit_that_is_not_there_is_told() -> None:
    """Catches a run that silently takes another unit."""
    job = Job(name="x", folder=str(SOLUTION), tasks=(TASK,), capability="abacus")
    (outcome,) = run_jobs([job], FIXTURES)
    assert "not on abacus" in str(outcome.run.problem)
    assert not outcome.cases
