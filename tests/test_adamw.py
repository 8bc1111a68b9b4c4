"""AdamW: Adam's step for every parameter, with a separate weight decay."""

import torch

from tests.harness import ours, task
from tests.harness.compare import check, check_close, check_equal

USUAL = {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1}


def some(draw, count=6, shapes=((2, 3), (4,), (1, 2, 2))):
    """Return arguments of the AdamW probes, with gradients for `count` steps."""
    parameters = [draw.normal(*shape) for shape in shapes]
    gradients = [[draw.normal(*shape) for shape in shapes] for _ in range(count)]
    return {"parameters": parameters, "gradients": gradients, "settings": USUAL}


@task("adamw")
def test_first_step(adapters, cases):
    """Bias correction makes the first step move every value by lr, besides weight decay."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_adamw_matches_saved_tensors(adapters, cases):
    """All parameters are right after each of several steps."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_settings_are_used(adapters, cases):
    """lr, betas, eps and weight_decay are used as given, and not fixed to one value."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_parameters_without_gradient(adapters, cases):
    """A parameter whose grad is None is skipped: it gets no update and no weight decay."""
    cases.check(adapters.probing("adamw"))


@ours
@task("adamw")
def test_each_parameter_counts_its_steps(adapters, cases):
    """The bias correction of a parameter counts only the steps in which it had a gradient."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_lr_changes_on_the_way(adapters, cases):
    """lr is read from `param_groups` at every step, since a schedule changes it there."""
    cases.check(adapters.probing("adamw"))


@ours
@task("adamw")
def test_other_settings_change_on_the_way(adapters, cases):
    """betas, eps and weight_decay are read from `param_groups` at every step."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_groups_have_their_own_settings(adapters, cases):
    """Each group of parameters uses its own settings."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_thousands_of_steps(adapters, cases):
    """The parameters are still right after 2000 steps: rounding errors do not accumulate."""
    cases.check(adapters.probing("adamw"))


@task("adamw")
def test_decay_without_gradient(adapters):
    """With a zero gradient, a step multiplies the parameter by 1 - lr · weight_decay."""
    start, zero = torch.tensor([1.0, -2.0, 0.5]), torch.zeros(3)
    for lr, weight_decay in ((0.1, 0.1), (0.5, 0.3)):
        settings = {**USUAL, "lr": lr, "weight_decay": weight_decay}
        values = adapters.probe(
            "adamw", parameters=[start], gradients=[[zero]], settings=settings, steps=3
        )
        factor = (1 - lr * weight_decay) ** 3
        why = (
            f"with lr={lr}, weight_decay={weight_decay} and zero gradients, "
            f"three steps don't multiply the parameter by {factor:.4g}"
        )
        check_close(values[-1], start * factor, why)


@task("adamw")
def test_parameters_from_an_iterator(adapters, draw):
    """The parameters may come from a generator, such as `model.parameters()`."""
    arguments = some(draw)
    as_list = adapters.probe("adamw", **arguments)
    as_iterator = adapters.probe("adamw", **arguments, iterator=True)
    why = "an iterator of parameters gives another result than a list of them"
    check_close(as_iterator, as_list, why, limit=0.0)


@task("adamw")
def test_gradients_stay(adapters, draw):
    """`step` does not change the gradients."""
    arguments = some(draw, count=1)
    seen = adapters.probe("adamw_run", **arguments)
    for found, given in zip(seen["gradients"], arguments["gradients"][0], strict=True):
        check_close(found, given, "`step` changes the gradients", limit=0.0)


@task("adamw")
def test_closure(adapters):
    """`step(closure)` calls the closure once, before the update, and returns its loss."""
    seen = adapters.probe("adamw_closure", start=3.0, settings={**USUAL, "weight_decay": 0.0})
    calls = len(seen["with_gradients"])
    check(calls == 2, f"two calls of `step(closure)` call the closure {calls} times, expected 2")
    first, second = seen["losses"]
    check(first == 9.0, f"`step(closure)` returned {first}, expected the closure's loss, 9.0")
    check(second is not None, "the second `step(closure)` returned None, expected the loss")
    check(second < 9, "the second loss is {:g}, expected less than the first, 9", second)
    # Two steps of length 0.1, as long as the gradient keeps its sign and nearly its size.
    moved = 3.0 - seen["value"]
    why = "two steps with lr=0.1 move the parameter by {:.3g}, expected about 0.2"
    check(0.19 < moved < 0.21, why, moved)


@ours
@task("adamw")
def test_closure_may_compute_gradients(adapters):
    """Autograd is enabled while `step` runs the closure, so that it can call `backward`."""
    seen = adapters.probe("adamw_closure", start=3.0, settings=USUAL)
    check(all(seen["with_gradients"]), "autograd is disabled while `step` runs the closure")


@task("adamw")
def test_state_moves_to_another_optimizer(adapters, draw):
    """`state_dict` and `load_state_dict` transfer everything that later steps depend on."""
    seen = adapters.probe("adamw_restored", **some(draw), stop=3)
    why = "after `load_state_dict`, a new optimizer takes other steps than the first one"
    check_close(seen["restored"], seen["straight"], why, limit=0.0)


@ours
@task("adamw")
def test_bfloat16_parameters(adapters, draw):
    """bfloat16 parameters keep their dtype, and take the steps of float32 up to rounding."""
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
    why = "after 4 steps with lr=0.1, bfloat16 and float32 parameters differ by {:.2g}"
    check(worst < 0.06, f"{why}, and 0.06 is allowed", worst)


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
    why = "after `load_state_dict`, a new optimizer takes other steps than the first one"
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
    why = "ValueError is raised for the default settings, or for settings of 0"
    check_equal(adapters.probe("adamw_refusals", settings=good), [False] * 2, why)
