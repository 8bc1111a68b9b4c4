"""Cross-entropy: minus the logarithm of the probability of the target class."""

import math

import torch
import torch.nn.functional as F

from tests.harness import ours, task
from tests.harness.compare import check, check_close
from tests.harness.properties import check_gradients, check_memory


@task("cross_entropy")
def test_cross_entropy_matches_saved_tensors(adapters, cases):
    """The loss is the mean over the batch, as one number."""
    cases.check(adapters.run_cross_entropy)


@task("cross_entropy")
def test_loss_of_large_logits(adapters, cases):
    """A target whose logit is 100 below the largest has a loss of 100, not infinity or NaN."""
    cases.check(adapters.run_cross_entropy)


@task("cross_entropy")
def test_sure_and_right(adapters, cases):
    """A model that is certain of the target class has a loss of nearly zero."""
    cases.check(adapters.run_cross_entropy)


@task("cross_entropy")
def test_loss_of_any_leading_axes(adapters, cases):
    """The logits may have any number of leading axes; the mean is over all targets."""
    cases.check(adapters.run_cross_entropy)


@task("cross_entropy")
def test_loss_of_equal_logits(adapters):
    """Equal logits have a loss of log(vocab_size), whatever the targets are."""
    for vocab_size in (2, 7, 1000):
        targets = torch.arange(4) % vocab_size
        loss = adapters.run_cross_entropy(inputs=torch.full((4, vocab_size), 3.0), targets=targets)
        why = f"equal logits for {vocab_size} classes don't give log({vocab_size})"
        check_close(loss, torch.tensor(math.log(vocab_size)), why)


@task("cross_entropy")
def test_shift_of_logits_changes_nothing(adapters, draw):
    """Adding one number to all logits of a row does not change the loss."""
    targets, shift = draw.integers(6, 5), torch.tensor([[0.0], [64.0], [-64.0], [128.0], [-128.0]])
    # Adding a number rounds the logits. Both sides use logits that were rounded in this way.
    rounded = (draw.normal(5, 6) + shift) - shift
    shifted = adapters.run_cross_entropy(inputs=rounded + shift, targets=targets)
    plain = adapters.run_cross_entropy(inputs=rounded, targets=targets)
    check_close(shifted, plain, "adding one number to all logits of a row changes the loss")


@task("cross_entropy")
def test_cross_entropy_memory(adapters, draw):
    """The loss is the same for non-contiguous logits and in a second call; no input changes."""
    arguments = {"inputs": draw.normal(4, 5), "targets": draw.integers(5, 4)}
    check_memory(adapters.run_cross_entropy, arguments, "inputs")


@ours
@task("cross_entropy")
def test_cross_entropy_gradient(adapters, draw):
    """The gradient is (softmax − one-hot) / number of targets."""
    for scale in (1.0, 50.0):
        targets = draw.integers(5, 4)
        check_gradients(
            adapters.run_cross_entropy,
            {"inputs": draw.normal(4, 5, scale=scale), "targets": targets},
            lambda inputs, targets=targets: F.cross_entropy(inputs, targets),
            "inputs",
        )


@ours
@task("cross_entropy")
def test_targets_outside_the_classes_are_refused(adapters, draw):
    """A target outside 0 to vocab_size - 1 is an error; it is not clamped, wrapped or ignored."""
    for target in (5, 6, -1, -100):
        why = f"vocab_size is 5 and a target is {target}"
        targets = torch.tensor([0, target, 2])
        adapters.run_cross_entropy.error(why, inputs=draw.normal(3, 5), targets=targets)


@ours
@task("cross_entropy")
def test_loss_of_half_precision(adapters, draw):
    """The loss of half-precision logits is computed and returned in float32."""
    targets = torch.cat([draw.integers(5, 30), torch.tensor([0])])
    logits = torch.cat([draw.normal(30, 5, scale=4.0), torch.tensor([[-4e4, 4e4, 0, 0, 0]])])
    for dtype in (torch.bfloat16, torch.float16):
        half = logits.to(dtype)
        loss = adapters.run_cross_entropy(inputs=half, targets=targets)
        expected = F.cross_entropy(half.double(), targets)
        check_close(
            loss,
            expected,
            f"the loss of {dtype} logits is not that of a computation in float32",
            dtype=torch.float32,
        )


@ours
@task("cross_entropy")
def test_loss_of_many_classes_in_half_precision(adapters):
    """The loss of 70000 equal float16 logits is 11.16, although their sum overflows float16."""
    logits = torch.zeros(2, 70000, dtype=torch.float16)
    loss = adapters.run_cross_entropy(inputs=logits, targets=torch.tensor([0, 69999]))
    check(isinstance(loss, torch.Tensor), "the loss is not a tensor")
    expected = math.log(70000)
    off = abs(float(loss) - expected)
    why = "70000 equal logits give a loss of {:.5g}, expected {:.5g}"
    check(off < 1e-4, why, float(loss), expected)
