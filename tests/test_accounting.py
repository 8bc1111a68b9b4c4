"""Resource accounting: parameters and operations of a configuration."""

from tests.harness import ours, task


@ours
@task("count_parameters")
def test_parameters_of_configurations(adapters, cases):
    """Every number that is trained, from a tiny model to one of the size of GPT-2."""
    cases.check(adapters.count_parameters)


@ours
@task("count_flops")
def test_flops_of_configurations(adapters, cases):
    """2 m k n for every matrix product of a forward pass, and for nothing else."""
    cases.check(adapters.count_flops)
