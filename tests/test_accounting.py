"""Resource accounting: the parameters and operations of a configuration."""

from tests.harness import ours, task


@ours
@task("count_parameters")
def test_parameters_of_configurations(adapters, cases):
    """The count includes every trained number, from a tiny model to the size of GPT-2."""
    cases.check(adapters.count_parameters)


@ours
@task("count_flops")
def test_flops_of_configurations(adapters, cases):
    """The count is 2 m k n for each (m, k) × (k, n) product of a forward pass, and no more."""
    cases.check(adapters.count_flops)
