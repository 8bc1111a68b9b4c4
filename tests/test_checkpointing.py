"""Checkpoints: a run that was stopped can continue as if it had not been stopped."""

from tests.harness import ours, task
from tests.harness.compare import check, check_close, check_equal

PLACES = ("path", "pathlib", "file", "memory")


@task("checkpointing")
def test_weights_come_back(adapters):
    """Loading restores the parameters and buffers of the model, bit for bit."""
    for dtype in ("float32", "float64", "bfloat16"):
        seen = adapters.probe("resumed_run", place="path", iteration=3, dtype=dtype, stop=1)
        why = f"a {dtype} model comes back changed"
        check_close(seen["loaded"]["model"], seen["saved"]["model"], why, limit=0.0)


@task("checkpointing")
def test_optimizer_comes_back(adapters):
    """Loading restores the state and the settings of the optimizer."""
    seen = adapters.probe("resumed_run", place="path", iteration=3)
    found, expected = seen["loaded"]["optimizer"], seen["saved"]["optimizer"]
    check(len(found) > 0, "the new optimizer has no state: its moments start at zero again")
    check_close(found, expected, "the optimizer's state comes back changed", limit=0.0)
    check_equal(seen["settings"], {"lr": 0.1, "momentum": 0.9}, "the settings come back changed")


@task("checkpointing")
def test_iteration_comes_back(adapters):
    """`load_checkpoint` returns the saved iteration, also 0 and large numbers."""
    for iteration in (0, 1, 999, 123_456):
        seen = adapters.probe("resumed_run", place="path", iteration=iteration, stop=1)
        check_equal(seen["iteration"], iteration, f"iteration {iteration} comes back changed")


@task("checkpointing")
def test_paths_and_open_files(adapters):
    """A checkpoint may be written to a path, an open file, or memory."""
    for place in PLACES:
        seen = adapters.probe("resumed_run", place=place, iteration=5, stop=1)
        why = f"through a {place} the model comes back changed"
        check_close(seen["loaded"]["model"], seen["saved"]["model"], why, limit=0.0)
        check_equal(seen["iteration"], 5, f"through a {place} the iteration comes back changed")


@task("checkpointing")
def test_resumed_run_is_the_same(adapters):
    """A run that was stopped and resumed ends as a run without a stop, bit for bit."""
    seen = adapters.probe("resumed_run", place="path", iteration=4, stop=4)
    for part in ("model", "optimizer"):
        why = f"four steps after the checkpoint, the {part} of the resumed run is another"
        check_close(seen["resumed"][part], seen["straight"][part], why, limit=0.0)


@task("checkpointing")
def test_wrong_models_are_refused(adapters):
    """Loading a checkpoint of another model or another optimizer is an error."""
    for kind in ("wider", "deeper", "shallower", "renamed", "groups"):
        seen = adapters.probe("refused_load", kind=kind)
        what = "an optimizer of two groups" if kind == "groups" else f"a {kind} model"
        check(seen["error"], f"no error was raised, though {what} was given")


@ours
@task("checkpointing")
def test_refused_loads_change_nothing(adapters):
    """If a checkpoint does not fit, neither the model nor the optimizer changes."""
    for kind in ("wider", "deeper", "shallower", "renamed", "groups"):
        seen = adapters.probe("refused_load", kind=kind)
        for part in ("model", "optimizer"):
            why = f"refused ({kind}), but the {part} was changed"
            check_close(seen["after"][part], seen["before"][part], why, limit=0.0)


@ours
@task("checkpointing")
def test_wrapped_models(adapters):
    """A checkpoint of a wrapped model can be loaded into the bare model, and vice versa."""
    failed = [
        f"{direction} {wrapper}"
        for wrapper in ("DistributedDataParallel", "torch.compile")
        for direction in adapters.probe("wrapped", wrapper=wrapper)
    ]
    check(not failed, f"the weights don't come through: {', '.join(failed)}")


@ours
@task("checkpointing")
def test_files_run_no_code(adapters):
    """A checkpoint holds only tensors and numbers; loading a file runs no code in it."""
    seen = adapters.probe("loading_code")
    check(seen["holds_objects"] is None, f"the file holds objects: {seen['holds_objects']}")
    check(not seen["ran"], "a file with code in it was loaded, and the code has run")


@ours
@task("checkpointing")
def test_old_checkpoint_stays_until_the_new_one_is_whole(adapters):
    """A kill at any moment leaves either the old file or the new one, complete."""
    seen = adapters.probe("replacing")
    why = "saving writes over the old checkpoint: an error on the way leaves neither"
    check(seen["kept"] or seen["old_bytes_kept"], why)
    check(seen["kept"], "an error on the way of saving leaves no checkpoint, the old one is gone")
    check(seen["old_bytes_kept"], "the new checkpoint is written over the bytes of the old one")
    check_equal(seen["left_over"], [], "beside the checkpoint, saving leaves other files")
