"""Gradient clipping: one factor scales all gradients if their common norm is too large."""

import torch

from tests.harness import ours, task
from tests.harness.compare import check, check_close

CLIP = "cs336_basics.gradient_clipping:clip_gradients"


@task("gradient_clipping")
def test_one_norm_for_all_gradients(adapters, cases):
    """The norm is that of all gradients together, and one factor scales all of them."""
    cases.check(adapters.probing("clipped"))


@task("gradient_clipping")
def test_norms_of_any_size(adapters, cases):
    """The factor is max_l2_norm / (norm + 1e-6), for small norms too."""
    cases.check(adapters.probing("clipped"))


@task("gradient_clipping")
def test_parameters_without_gradient(adapters, cases):
    """Parameters whose grad is None are skipped."""
    cases.check(adapters.probing("clipped"))


@task("gradient_clipping")
def test_short_gradients_stay(adapters, draw):
    """If the norm is not above the maximum, no gradient changes, not even by one bit."""
    gradients = [draw.normal(3, 4), draw.normal(5)]
    norm = torch.cat([g.flatten() for g in gradients]).norm().item()
    for room in (1.001, 2.0, 1000.0):
        seen = adapters.probe("clipping", gradients=gradients, max_l2_norm=room * norm)
        for found, given in zip(seen["gradients"], gradients, strict=True):
            why = "a norm of {:.3g} is changed though {:.3g} is allowed"
            check_close(found, given, why, norm, room * norm, limit=0.0)


@task("gradient_clipping")
def test_clipping_happens_in_place(adapters, draw):
    """The tensors in `.grad` are changed in place, not replaced; the parameters do not change."""
    gradients = [draw.normal(3, 4), draw.normal(5)]
    seen = adapters.probe("clipping", gradients=gradients, max_l2_norm=0.1)
    check(all(seen["in_place"]), "`.grad` is another tensor than before")
    check(bool((seen["values"] == 1).all()), "the parameters themselves were changed")


@task("gradient_clipping")
def test_clipping_of_an_iterator(adapters, draw):
    """The parameters may be an iterator, which can be read only once."""
    arguments = {"gradients": [draw.normal(3, 4), draw.normal(5)], "max_l2_norm": 0.5}
    as_list = adapters.probe("clipping", **arguments)["gradients"]
    as_iterator = adapters.probe("clipping", **arguments, iterator=True)["gradients"]
    for found, expected in zip(as_iterator, as_list, strict=True):
        norm = torch.cat([g.flatten() for g in as_iterator]).norm().item()
        why = "parameters from a generator: the norm is {:.3g} where 0.5 is allowed"
        check_close(found, expected, why, norm)


@ours
@task("gradient_clipping")
def test_frozen_parameters_do_not_count(adapters, draw):
    """The gradient of a frozen parameter is not part of the norm, and does not change."""
    stale, live = torch.full((4,), 100.0), draw.normal(8)
    norm = live.norm().item()
    arguments = {"gradients": [stale, live], "frozen": [0]}
    seen = adapters.probe("clipping", **arguments, max_l2_norm=2 * norm)
    why = "live gradients of norm {:.3g} are changed where {:.3g} is allowed"
    check_close(seen["gradients"][1], live, why, norm, 2 * norm, limit=0.0)
    seen = adapters.probe("clipping", **arguments, max_l2_norm=norm / 2)
    check_close(seen["gradients"][0], stale, "a frozen parameter's gradient is changed", limit=0.0)
    check_close(seen["gradients"][1], live / 2, "the live gradients are not halved", limit=2.0)


@ours
@task("gradient_clipping")
def test_nothing_to_clip(adapters):
    """If no parameter has a gradient, nothing happens, and no error is raised."""
    for gradients in ([None, None], []):
        adapters.probe("clipping", gradients=[*gradients, None], max_l2_norm=1.0)


@ours
@task("gradient_clipping")
def test_clipping_in_half_precision(adapters, draw):
    """Squares of half-precision gradients are summed in float32, since 300² overflows float16."""
    wide = draw.normal(40, scale=300.0)
    for dtype in (torch.float16, torch.bfloat16):
        half = wide.to(dtype)
        norm = half.double().norm()
        expected = half.double() / norm
        seen = adapters.probe("clipping", gradients=[half[:30], half[30:]], max_l2_norm=1.0)
        found = torch.cat(seen["gradients"])
        why = f"{dtype} gradients of norm {{:.4g}} are not clipped to 1"
        check_close(found, expected, why, norm, dtype=dtype, limit=2.0)


@ours
@task("gradient_clipping")
def test_norm_is_returned(adapters, draw):
    """`clip_gradients` returns the norm before clipping."""
    gradients = [draw.normal(3, 4), None, draw.normal(5)]
    norm = torch.cat([g.flatten() for g in gradients if g is not None]).norm()
    for max_l2_norm in (0.1, 1000.0):
        seen = adapters.probe("clipping", gradients=gradients, max_l2_norm=max_l2_norm, symbol=CLIP)
        check_close(seen["returned"], norm, "the norm is {:.4g} and another was returned", norm)
