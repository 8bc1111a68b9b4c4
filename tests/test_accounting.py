"""Resource accounting: parameters and operations of a configuration."""

from tests.harness import ours, task


@ours
@task("count_parameters")
def test_parameters_of_configurations(adapters, cases):
    """Every trained number counts once, in a tiny model and in one of the size of GPT-2."""
    cases.check(adapters.count_parameters)


@ours
@task("count_flops")
def test_flops_of_configurations(adapters, cases):
    """A product of m × k and k × n matrices costs 2 m k n; only matrix products count."""
    cases.check(adapters.count_flops)
