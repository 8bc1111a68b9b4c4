"""AdamW: Adam's step for every parameter, and decoupled weight decay."""

import torch

from tests.harness import ours, task
from tests.harness.compare import check, check_close, check_equal

USUAL = {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1}


def some(draw, count=6, shapes=((2, 3), (4,), (1, 2, 2))):
    """Draw parameters and gradients for `count` steps, as arguments of the AdamW probes."""
    parameters = [draw.normal(*shape) for shape in shapes]
    gradients = [[draw.normal(*shape) for shape in shapes] for _ in range(count)]
    return {"parameters": parameters, "gradients": gradients, "settings": USUAL}


@task("adamw")
def test_first_step(adapters, cases):
    """The first step moves every value by lr, since both moments are corrected for bias."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_adamw_matches_saved_tensors(adapters, cases):
    """All parameters have the expected values after each of several steps."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_settings_are_used(adapters, cases):
    """AdamW uses the lr, betas, eps and weight_decay that it is given."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_parameters_without_gradient(adapters, cases):
    """A parameter whose grad is None is skipped: it does not move, and it does not decay."""
    cases.check(adapters.probing("adamw"))


@ours
@task("adamw")
def test_each_parameter_counts_its_steps(adapters, cases):
    """The bias correction of a parameter uses the number of steps that this parameter has taken."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_lr_changes_on_the_way(adapters, cases):
    """AdamW reads lr from `param_groups` at every step, since a schedule changes it there."""
    cases.check(adapters.probing("adamw"))


@ours
@task("adamw")
def test_other_settings_change_on_the_way(adapters, cases):
    """AdamW reads betas, eps and weight_decay from `param_groups` at every step."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_groups_have_their_own_settings(adapters, cases):
    """Each group of parameters may have its own settings."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_thousands_of_steps(adapters, cases):
    """The parameters are right after 2000 steps too: rounding errors do not add up."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_decay_without_gradient(adapters):
    """If the gradient is zero, a step multiplies the parameter by 1 - lr · weight_decay."""
    start, zero = torch.tensor([1.0, -2.0, 0.5]), torch.zeros(3)
    for lr, weight_decay in ((0.1, 0.1), (0.5, 0.3)):
        settings = {**USUAL, "lr": lr, "weight_decay": weight_decay}
        values = adapters.probe(
            "adamw", parameters=[start], gradients=[[zero]], settings=settings, steps=3
        )
        factor = (1 - lr * weight_decay) ** 3
        why = f"lr {lr}, weight decay {weight_decay}: three steps don't shrink by {factor:.4g}"
        check_close(values[-1], start * factor, why)


@task("adamw")
def test_parameters_from_an_iterator(adapters, draw):
    """The parameters may be an iterator, such as the result of `model.parameters()`."""
    arguments = some(draw)
    as_list = adapters.probe("adamw", **arguments)
    as_iterator = adapters.probe("adamw", **arguments, iterator=True)
    check_close(as_iterator, as_list, "an iterator of parameters gives another answer", limit=0.0)


@task("adamw")
def test_gradients_stay(adapters, draw):
    """A step does not change the gradients."""
    arguments = some(draw, count=1)
    seen = adapters.probe("adamw_run", **arguments)
    for found, given in zip(seen["gradients"], arguments["gradients"][0], strict=True):
        check_close(found, given, "a step changes the gradients", limit=0.0)


@task("adamw")
def test_closure(adapters):
    """`step(closure)` calls the closure once, before the update, and returns its loss."""
    seen = adapters.probe("adamw_closure", start=3.0, settings={**USUAL, "weight_decay": 0.0})
    calls = len(seen["with_gradients"])
    check(calls == 2, f"two steps with a closure call it {calls} times")
    first, second = seen["losses"]
    check(first == 9.0, f"the loss is 9 and `step` returned {first}")
    check(second is not None, "the second step with a closure returned None, not the loss")
    check(second < 9, "the second loss is {:g}, after 9", second)
    # The gradient keeps its sign and nearly its size, so each of the two steps is 0.1 long.
    moved = 3.0 - seen["value"]
    check(0.19 < moved < 0.21, "two steps with lr 0.1 move the parameter by {:.3g}", moved)


@ours
@task("adamw")
def test_closure_may_compute_gradients(adapters):
    """Gradients are recorded while the closure runs, although the update itself needs none."""
    seen = adapters.probe("adamw_closure", start=3.0, settings=USUAL)
    check(all(seen["with_gradients"]), "gradients are not recorded while the closure runs")


@task("adamw")
def test_state_moves_to_another_optimizer(adapters, draw):
    """`state_dict` and `load_state_dict` transfer everything that later steps depend on."""
    seen = adapters.probe("adamw_restored", **some(draw), stop=3)
    why = "a new optimizer with the loaded state goes another way"
    check_close(seen["restored"], seen["straight"], why, limit=0.0)


@ours
@task("adamw")
def test_bfloat16_parameters(adapters, draw):
    """bfloat16 parameters keep their dtype, and follow the float32 values up to rounding."""
    arguments = some(draw, count=4)
    arguments["parameters"] = [p.clamp(-1, 1) for p in arguments["parameters"]]
    expected = adapters.probe("adamw_run", **arguments)["values"]
    half = {
        **arguments,
        "parameters": [p.bfloat16() for p in arguments["parameters"]],
        "gradients": [[g.bfloat16() for g in row] for row in arguments["gradients"]],
    }
    seen = adapters.probe("adamw_run", **half)
    check_equal(seen["dtypes"], ["bfloat16"] * 3, "bfloat16 parameters change their dtype")
    values = seen["values"].float()
    check(bool(values.isfinite().all()), "bfloat16 parameters become NaN or infinite")
    # Rounding moves a value below 2 by at most 1/256: once at the start, and once at each step.
    worst = (values - expected).abs().max().item()
    check(worst < 0.06, "bfloat16 parameters are {:.2g} off after four steps of 0.1", worst)


@ours
@task("adamw")
def test_state_round_trip_in_bfloat16(adapters, draw):
    """`load_state_dict` restores the state of bfloat16 parameters bit for bit."""
    arguments = some(draw)
    seen = adapters.probe(
        "adamw_restored",
        parameters=[p.bfloat16() for p in arguments["parameters"]],
        gradients=[[g.bfloat16() for g in row] for row in arguments["gradients"]],
        settings=USUAL,
        stop=3,
    )
    why = "a new optimizer with the loaded state goes another way"
    check_close(seen["restored"], seen["straight"], why, limit=0.0)


@ours
@task("adamw")
def test_bad_settings_are_refused(adapters):
    """A negative lr, eps or weight_decay, or a beta outside [0, 1), raises ValueError."""
    bad = [
        {"lr": -0.1},
        {"eps": -1e-8},
        {"weight_decay": -0.1},
        {"betas": (1.0, 0.9)},
        {"betas": (0.9, 1.0)},
        {"betas": (0.9, 1.5)},
        {"betas": (-0.1, 0.9)},
    ]
    refused = adapters.probe("adamw_refusals", settings=bad)
    taken = [settings for settings, no in zip(bad, refused, strict=True) if not no]
    check(not taken, f"no ValueError was raised for {taken}")
    good = [{}, {"lr": 0.0, "eps": 0.0, "weight_decay": 0.0, "betas": (0.0, 0.0)}]
    check_equal(adapters.probe("adamw_refusals", settings=good), [False] * 2, "zeros are refused")
