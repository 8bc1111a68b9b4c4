"""AdamW: Adam's step for every parameter, and weight decay beside it."""

import torch

from tests.harness import ours, task
from tests.harness.compare import check, check_close, check_equal

USUAL = {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1}


def some(draw, count=6, shapes=((2, 3), (4,), (1, 2, 2))):
    """Parameters, and gradients for `count` steps."""
    parameters = [draw.normal(*shape) for shape in shapes]
    gradients = [[draw.normal(*shape) for shape in shapes] for _ in range(count)]
    return {"parameters": parameters, "gradients": gradients, "settings": USUAL}


@task("adamw")
def test_first_step(adapters, cases):
    """The first step has the length lr for every number, since both moments are corrected."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_adamw_matches_saved_tensors(adapters, cases):
    """All parameters after each of several steps."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_settings_are_used(adapters, cases):
    """lr, betas, eps and weight_decay are arguments."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_parameters_without_gradient(adapters, cases):
    """A parameter whose grad is None is passed over, and does not decay."""
    cases.check(adapters.probing("adamw"))


@ours
@task("adamw")
def test_each_parameter_counts_its_steps(adapters, cases):
    """The corrections go by the number of steps that this parameter has taken."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_lr_changes_on_the_way(adapters, cases):
    """A schedule writes to param_groups, so lr is read there at every step."""
    cases.check(adapters.probing("adamw"))


@ours
@task("adamw")
def test_other_settings_change_on_the_way(adapters, cases):
    """So are betas, eps and weight_decay."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_groups_have_their_own_settings(adapters, cases):
    """Parameters come in groups, and each may have settings of its own."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_thousands_of_steps(adapters, cases):
    """After 2000 steps the corrections are gone, and rounding has not piled up."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_decay_without_gradient(adapters):
    """Where the gradient is zero, only the decay is left: a factor of 1 - lr · weight_decay."""
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
    """The parameters may come from a generator, as `model.parameters()` gives them."""
    arguments = some(draw)
    as_list = adapters.probe("adamw", **arguments)
    as_iterator = adapters.probe("adamw", **arguments, iterator=True)
    check_close(as_iterator, as_list, "an iterator of parameters gives another answer", limit=0.0)


@task("adamw")
def test_gradients_stay(adapters, draw):
    """A step reads the gradients and leaves them as they were."""
    arguments = some(draw, count=1)
    seen = adapters.probe("adamw_run", **arguments)
    for found, given in zip(seen["gradients"], arguments["gradients"][0], strict=True):
        check_close(found, given, "a step changes the gradients", limit=0.0)


@task("adamw")
def test_closure(adapters):
    """`step(closure)` calls it once before the step, and returns the loss it gave."""
    seen = adapters.probe("adamw_closure", start=3.0, settings={**USUAL, "weight_decay": 0.0})
    calls = len(seen["with_gradients"])
    check(calls == 2, f"two steps with a closure call it {calls} times")
    first, second = seen["losses"]
    check(first == 9.0, f"the loss is 9 and `step` returned {first}")
    check(second is not None, "the second step with a closure returned None, not the loss")
    check(second < 9, "the second loss is {:g}, after 9", second)
    # Two steps of length 0.1, as long as the gradient keeps its sign and nearly its size.
    moved = 3.0 - seen["value"]
    check(0.19 < moved < 0.21, "two steps with lr 0.1 move the parameter by {:.3g}", moved)


@ours
@task("adamw")
def test_closure_may_compute_gradients(adapters):
    """While the closure runs, gradients are recorded, though the step itself does without."""
    seen = adapters.probe("adamw_closure", start=3.0, settings=USUAL)
    check(all(seen["with_gradients"]), "gradients are not recorded while the closure runs")


@task("adamw")
def test_state_moves_to_another_optimizer(adapters, draw):
    """`state_dict` and `load_state_dict` carry all that later steps depend on."""
    seen = adapters.probe("adamw_restored", **some(draw), stop=3)
    why = "a new optimizer with the loaded state goes another way"
    check_close(seen["restored"], seen["straight"], why, limit=0.0)


@ours
@task("adamw")
def test_bfloat16_parameters(adapters, draw):
    """Parameters in bfloat16 stay so, and take the same steps within its three digits."""
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
    # Values below 2 are rounded by 1/256 at most, and so are they once more at each step.
    worst = (values - expected).abs().max().item()
    check(worst < 0.06, "bfloat16 parameters are {:.2g} off after four steps of 0.1", worst)


@ours
@task("adamw")
def test_state_round_trip_in_bfloat16(adapters, draw):
    """The state of bfloat16 parameters comes through `load_state_dict` bit for bit, too."""
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
    """A negative lr, eps or weight_decay, or a beta outside [0, 1), is a ValueError."""
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
