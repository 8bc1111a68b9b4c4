"""Batches: random windows of the text, and the same windows one token further on."""

import torch

from tests.harness import ours, task
from tests.harness.compare import check, check_equal
from tests.harness.recipes import Array


def checked(x, y, batch_size, context_length):
    """Check the shape and dtype of inputs and targets, and return both."""
    for name, tensor in (("inputs", x), ("targets", y)):
        found = (tuple(tensor.shape), tensor.dtype)
        check_equal(found, ((batch_size, context_length), torch.int64), f"the {name} are wrong")
    return x, y


def drawn(adapters, values, batch_size, context_length, dtype="int64", mapped=False):
    """Draw one batch of the text `values`, with seeded generators, and return it."""
    seen = adapters.probe(
        "batches",
        dataset=Array(values, dtype, mapped),
        batch_size=batch_size,
        context_length=context_length,
        seed=0,
    )
    return checked(seen[0]["inputs"], seen[0]["targets"], batch_size, context_length)


@task("get_batch")
def test_windows_follow_the_text(adapters):
    """Inputs are windows of the text, and every target is the token after its input."""
    for context_length in (1, 7):
        values = torch.randperm(50, generator=torch.Generator().manual_seed(context_length))
        x, y = drawn(adapters, values, 40, context_length)
        places = torch.argsort(values)
        ahead = places[y] - places[x]
        check(
            bool((ahead == 1).all()),
            f"targets are {ahead.unique().tolist()} tokens after their inputs, not 1",
        )
        steps = places[x].diff(dim=1)
        check(bool((steps == 1).all()), "the tokens of a window do not follow each other")


@task("get_batch")
def test_every_window_is_drawn(adapters):
    """All windows are equally likely, the first and the last too; one may come twice."""
    x, _ = drawn(adapters, torch.arange(14), 4000, 4)
    counts = torch.bincount(x[:, 0], minlength=10).tolist()
    check(len(counts) == 10, f"a window starts at {len(counts) - 1}, with room for 0 to 9")
    never = [start for start, count in enumerate(counts) if not count]
    check(not never, f"of the starts 0 to 9 these are never drawn: {never}")
    # Each window comes 400 times on average, with standard deviation 19; six of these are allowed.
    odd = max(range(10), key=lambda start: abs(counts[start] - 400))
    why = f"of ten windows the one that starts at {odd} comes in {{:.1%}} of all draws, not in 10 %"
    check(abs(counts[odd] - 400) < 114, why, counts[odd] / 4000)


@task("get_batch")
def test_text_of_one_window(adapters):
    """A text of context_length + 1 tokens holds one window, which is drawn every time."""
    x, y = drawn(adapters, torch.arange(6), 5, 5)
    check_equal(x.tolist(), [[0, 1, 2, 3, 4]] * 5, "the only window is not drawn")
    check_equal(y.tolist(), [[1, 2, 3, 4, 5]] * 5, "the targets of the only window are wrong")


@task("get_batch")
def test_windows_are_independent(adapters):
    """The start of each window is drawn independently of the others."""
    arguments = {"dataset": Array(torch.arange(100_000), "int64"), "batch_size": 64}
    seen = adapters.probe("batches", **arguments, context_length=4, calls=3, seed=0)
    batches = [checked(each["inputs"], each["targets"], 64, 4)[0][:, 0] for each in seen]
    for starts in batches:
        distinct = len(starts.unique())
        check(distinct > 32, f"64 windows start at {distinct} different places of 100000")
        steps = starts.diff()
        check(len(steps.unique()) > 32, f"from window to window it is {steps[0]} tokens each time")
        check(bool((steps < 0).any()), "the windows of a batch stand in the order of the text")
    same = any(torch.equal(batches[0], other) for other in batches[1:])
    check(not same, "two batches hold the same windows")


@task("get_batch")
def test_large_ids(adapters):
    """Ids from 32768 to 65535 of a memory-mapped 16-bit file do not become negative."""
    values = torch.cat(
        [torch.arange(250, 260), torch.arange(32760, 32776), torch.arange(65500, 65536)]
    )
    x, y = drawn(adapters, values, 2000, 3, "uint16", mapped=True)
    seen = torch.cat([x, y]).unique().tolist()
    strange = [token for token in seen if token not in values.tolist()]
    check(not strange, f"ids that the file does not hold: {strange[:4]}")
    missing = [token for token in values.tolist() if token not in seen]
    check(not missing, f"2000 windows of a text of 62 tokens lack the ids {missing[:4]}")


@task("get_batch")
def test_ids_of_other_dtypes(adapters):
    """The batch is int64, whatever the integer dtype of the array is."""
    for dtype in ("uint8", "int32", "uint32"):
        x, y = drawn(adapters, torch.arange(60, 100), 5, 3, dtype)
        check(torch.equal(y, x + 1), f"targets of {dtype} ids are not the tokens after them")


@task("get_batch")
def test_device_is_used(adapters):
    """The batch is on the requested device; this test uses `meta` in place of a GPU."""
    dataset = Array(torch.arange(20), "int64")
    seen = adapters.probe("batches", dataset=dataset, batch_size=2, context_length=3, device="meta")
    expected = {"shape": (2, 3), "dtype": "torch.int64", "device": "meta"}
    for name, found in seen[0].items():
        where = "the CPU" if isinstance(found, torch.Tensor) else found["device"]
        check(where == "meta", f"device meta was asked for, and the {name} are on {where}")
        check_equal(found, expected, f"the {name} are wrong")


@ours
@task("get_batch")
def test_batches_repeat_with_the_seed(adapters):
    """The same seed of PyTorch's, numpy's and Python's generators gives the same batches."""
    arguments = {"dataset": Array(torch.arange(10_000), "int64"), "batch_size": 8}
    runs = [
        adapters.probe("batches", **arguments, context_length=3, calls=2, seed=seed)
        for seed in (5, 5, 6)
    ]
    starts = [[batch["inputs"][:, 0].tolist() for batch in run] for run in runs]
    check(starts[1] == starts[0], "the same seed gives other batches")
    check(starts[2] != starts[0], "another seed gives the same batches")
    check(starts[0][0] != starts[0][1], "the second batch is the first one again")


@ours
@task("get_batch")
def test_memory_does_not_grow_with_the_text(adapters):
    """Only the windows are read, since a file of tokens may be larger than memory."""
    dataset = Array(torch.arange(400_000) % 65536, "uint16", mapped=True)
    seen = adapters.probe("batch_memory", dataset=dataset, batch_size=4, context_length=8)
    check(
        seen["batch"] < seen["dataset"] / 4,
        "a batch of 4 × 8 tokens takes {:.2g} MB of memory, and the whole text has {:.2g} MB",
        seen["batch"] / 1e6,
        seen["dataset"] / 1e6,
    )


@ours
@task("get_batch")
def test_short_texts_are_refused(adapters):
    """A text that is too short for one window and its targets is an error."""
    for context_length in (6, 7):
        adapters.run_get_batch.error(
            f"6 tokens hold no window of {context_length} with its targets",
            dataset=Array(torch.arange(6), "int64"),
            batch_size=2,
            context_length=context_length,
            device="cpu",
        )
