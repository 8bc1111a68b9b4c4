"""Checkpoints: a run that was stopped continues as if it had not been stopped."""

from tests.harness import ours, task
from tests.harness.compare import check, check_close, check_equal

PLACES = {
    "path": "a path",
    "pathlib": "a `pathlib.Path`",
    "file": "an open file",
    "memory": "a `BytesIO`",
}
STRANGERS = {
    "wider": "a model with wider layers",
    "deeper": "a model with more layers",
    "shallower": "a model with fewer layers",
    "renamed": "a model with other names of parameters",
    "groups": "an optimizer with two groups",
}


@task("checkpointing")
def test_weights_come_back(adapters):
    """Loading restores the model's parameters and buffers bit for bit."""
    for dtype in ("float32", "float64", "bfloat16"):
        seen = adapters.probe("resumed_run", place="path", iteration=3, dtype=dtype, stop=1)
        why = f"loading does not restore the weights of a {dtype} model"
        check_close(seen["loaded"]["model"], seen["saved"]["model"], why, limit=0.0)


@task("checkpointing")
def test_optimizer_comes_back(adapters):
    """Loading restores the optimizer's state and settings."""
    seen = adapters.probe("resumed_run", place="path", iteration=3)
    found, expected = seen["loaded"]["optimizer"], seen["saved"]["optimizer"]
    check(len(found) > 0, "after loading, the optimizer has no state")
    check_close(found, expected, "loading does not restore the optimizer's state", limit=0.0)
    why = "loading does not restore the optimizer's settings"
    check_equal(seen["settings"], {"lr": 0.1, "momentum": 0.9}, why)


@task("checkpointing")
def test_iteration_comes_back(adapters):
    """Loading returns the saved iteration, also if it is 0 or large."""
    for iteration in (0, 1, 999, 123_456):
        seen = adapters.probe("resumed_run", place="path", iteration=iteration, stop=1)
        check_equal(
            seen["iteration"],
            iteration,
            f"loading does not return the saved iteration, {iteration}",
        )


@task("checkpointing")
def test_paths_and_open_files(adapters):
    """A checkpoint may be written to a path, an open file or a `BytesIO`."""
    for place, what in PLACES.items():
        seen = adapters.probe("resumed_run", place=place, iteration=5, stop=1)
        why = f"the model is not restored from {what}"
        check_close(seen["loaded"]["model"], seen["saved"]["model"], why, limit=0.0)
        check_equal(seen["iteration"], 5, f"the iteration is not restored from {what}")


@task("checkpointing")
def test_resumed_run_is_the_same(adapters):
    """A run that is stopped and resumed ends like an uninterrupted run, bit for bit."""
    seen = adapters.probe("resumed_run", place="path", iteration=4, stop=4)
    for part in ("model", "optimizer"):
        why = f"four steps after loading, the {part} differs from that of an uninterrupted run"
        check_close(seen["resumed"][part], seen["straight"][part], why, limit=0.0)


@task("checkpointing")
def test_wrong_models_are_refused(adapters):
    """Loading a checkpoint into a model or an optimizer that it does not fit is an error."""
    for kind, what in STRANGERS.items():
        seen = adapters.probe("refused_load", kind=kind)
        check(seen["error"], f"no error was raised, though the checkpoint does not fit {what}")


@ours
@task("checkpointing")
def test_refused_loads_change_nothing(adapters):
    """If a checkpoint does not fit, loading changes neither the model nor the optimizer."""
    for kind, what in STRANGERS.items():
        seen = adapters.probe("refused_load", kind=kind)
        for part in ("model", "optimizer"):
            why = f"the checkpoint does not fit {what}, but loading changes the {part}"
            check_close(seen["after"][part], seen["before"][part], why, limit=0.0)


@ours
@task("checkpointing")
def test_wrapped_models(adapters):
    """A checkpoint fits a model with and without torch.compile or DistributedDataParallel."""
    failed = [
        f"{direction} a model in {wrapper}"
        for wrapper in ("DistributedDataParallel", "torch.compile")
        for direction in adapters.probe("wrapped", wrapper=wrapper)
    ]
    check(not failed, f"the weights are not restored if {', or '.join(failed)}")


@ours
@task("checkpointing")
def test_files_run_no_code(adapters):
    """A checkpoint contains only tensors and plain data, and loading runs no code of a file."""
    seen = adapters.probe("loading_code")
    check(
        seen["holds_objects"] is None,
        f"the checkpoint contains other objects than tensors: {seen['holds_objects']}",
    )
    check(not seen["ran"], "loading a file that contains code has run the code")


@ours
@task("checkpointing")
def test_old_checkpoint_stays_until_the_new_one_is_whole(adapters):
    """If saving fails, the old checkpoint remains; after saving, there is no other file."""
    seen = adapters.probe("replacing")
    why = "saving overwrites the old checkpoint: an error in the middle leaves neither"
    check(seen["kept"] or seen["old_bytes_kept"], why)
    check(seen["kept"], "an error while saving leaves no checkpoint: the old one is gone")
    check(seen["old_bytes_kept"], "saving writes into the old file, instead of replacing it")
    check_equal(seen["left_over"], [], "saving leaves other files next to the checkpoint")
