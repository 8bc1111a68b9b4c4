"""The training loop and its program: steps, seeds, checkpoints, validation and files."""

import math

import torch
import torch.nn.functional as F

from tests.harness import ours, task
from tests.harness.compare import check, check_close, check_equal
from tests.harness.recipes import Array, Folder

LM = "cs336_basics.transformer:TransformerLM"
MAIN = "cs336_basics.train:main"
CONFIG = {
    "vocab_size": 50,
    "context_length": 5,
    "d_model": 8,
    "num_layers": 1,
    "num_heads": 2,
    "d_ff": 12,
    "steps": 3,
    "batch_size": 4,
    "seed": 7,
    "max_learning_rate": 0.02,
    "min_learning_rate": 0.004,
    "warmup_iters": 1,
    "cosine_cycle_iters": 3,
    "beta1": 0.8,
    "beta2": 0.9,
    "eps": 1e-8,
    "weight_decay": 0.5,
    "max_l2_norm": 0.81,
    "validate_every": 2,
    "validation_batches": 2,
    "checkpoint_every": 2,
    "device": "cpu",
}
HELD_OUT = {"validation_tokens": 10}
# Every token occurs once, so a token determines its position and the next token.
IDS = torch.randperm(50, generator=torch.Generator().manual_seed(1))


def runs_of(adapters, *runs, ids=None):
    """Run the training loop; each run has options of the probe and changes of `CONFIG`."""
    how = ("resume", "stop_at", "tokens", "noise")
    told = [
        {name: run[name] for name in how if name in run}
        | {"config": CONFIG | {name: run[name] for name in run if name not in how}}
        for run in runs
    ]
    data = Array(IDS, "int64") if ids is None else ids
    return adapters.probe("training_runs", symbol=LM, token_ids=data, runs=told)


def batches_of(run):
    """Return the ids of every training batch."""
    return [call["ids"] for call in run["calls"] if call["gradients"]]


def path_of(run):
    """Return the weights before every step and the saved weights, `(steps + 1, weights)`."""
    check(run["saved"] is not None, "out_dir contains no checkpoint.pt")
    return torch.stack([c["weights"] for c in run["calls"] if c["gradients"]] + [run["saved"]])


def column(metrics, name, steps):
    """Return the measurements `name` of all steps, after a check that all are logged."""
    logged = list(range(1, steps + 1))
    check_equal(sorted(metrics), logged, f"in a run of {steps} steps, the logged steps are wrong")
    lacking = [step for step in logged if name not in metrics[step]]
    check(not lacking, f"`{name}` is missing at step {lacking[:1]}")
    return torch.tensor([metrics[step][name] for step in logged], dtype=torch.float64)


def sameness(run):
    """Return the results that are equal in equal runs, bit for bit."""
    return {"measurements": run["metrics"], "metrics.csv": run["csv"]}


def check_same_batches(run, other, why):
    """Check that two runs trained on the same ids."""
    check_equal([b.tolist() for b in run], [b.tolist() for b in other], why)


def schedule(config):
    """Return the learning rate of every step."""
    low, high = config["min_learning_rate"], config["max_learning_rate"]
    start, end = config["warmup_iters"], config["cosine_cycle_iters"]

    def rate(step):
        if step < start:
            return high * step / start
        wave = 1 + math.cos(math.pi * min(1, (step - start) / max(1, end - start)))
        return low + wave / 2 * (high - low)

    rates = [rate(step) for step in range(1, config["steps"] + 1)]
    return torch.tensor(rates, dtype=torch.float64)


def next_of(ids):
    """Return the token after each token in the data."""
    following = torch.full((50,), -1)
    following[IDS[:-1]] = IDS[1:]
    return following[ids]


def check_windows(batch, size=4):
    """Check that a batch has the right shape, and that its rows are windows of the data."""
    check_equal(tuple(batch.shape), (size, 5), "the shape of a training batch is wrong")
    check(
        batch.min() >= 0 and batch.max() < 50,
        "a training batch contains ids that are not in the data",
    )
    check_equal(
        batch[:, 1:].tolist(),
        next_of(batch[:, :-1]).tolist(),
        "a row of a training batch is not a window of the data",
    )


@ours
@task("training_loop")
def test_steps_of_a_plain_loop(adapters):
    """Losses, gradient norms and weights equal those of a plain loop with PyTorch's functions."""
    changes = {"steps": 6, "warmup_iters": 2, "cosine_cycle_iters": 5}
    config = CONFIG | changes
    (run,) = runs_of(adapters, changes)
    batches, path = batches_of(run), path_of(run)
    check_equal(len(batches), 6, "a run of 6 steps has another number of training batches")
    for batch in batches:
        check_windows(batch)
    rates = column(run["metrics"], "learning_rate", 6)
    check_close(rates, schedule(config), "the learning rates are not those of the schedule")
    losses = column(run["metrics"], "train_loss", 6).float()
    norms = column(run["metrics"], "gradient_norm", 6).float()

    def plain(decay_first):
        return adapters.probe(
            "plain_loop",
            symbol=LM,
            config=config,
            weights=path[0],
            batches=[(x, next_of(x)) for x in batches],
            learning_rates=rates.tolist(),
            decay_first=decay_first,
        )

    either = [plain(decay_first=True), plain(decay_first=False)]
    expected = min(either, key=lambda loop: (loop["weights"] - path[-1]).abs().amax())
    check_close(losses[:1], expected["losses"][:1], "the train_loss of step 1 is wrong")
    why = "the gradient_norm of step 1 is wrong, and the loss of step 6 is {:.4g}"
    check_close(norms[:1], expected["norms"][:1], why, losses[-1])
    why = "are not those of a plain loop on the same batches"
    check_close(losses, expected["losses"], f"the losses {why}")
    check_close(norms, expected["norms"], f"the gradient norms {why}")
    check_close(path[-1], expected["weights"], f"the weights after 6 steps {why}", limit=10.0)


@ours
@task("training_loop")
def test_batches_are_random_windows(adapters):
    """Windows may start anywhere in the data, and each step draws new ones."""
    (run,) = runs_of(adapters, {"batch_size": 80})
    batches = batches_of(run)
    for batch in batches:
        check_windows(batch, size=80)
    place = torch.empty(50, dtype=torch.long)
    place[IDS] = torch.arange(50)
    starts = [place[batch[:, 0]].tolist() for batch in batches]
    # 240 draws leave out 0.2 of 45 windows on average, and 9 or more once in 10^13 times.
    missing = 45 - len({start for row in starts for start in row})
    check(
        missing <= 8, f"{missing} of 45 windows were never drawn in 240 draws, expected at most 8"
    )
    check(len({tuple(row) for row in starts}) == 3, "two steps have the same batch")


@ours
@task("training_loop")
def test_seed_decides_the_run(adapters):
    """Equal seeds give equal runs, bit for bit; different seeds give different runs."""
    (one,) = runs_of(adapters, {"noise": 1, "steps": 2})
    (again,) = runs_of(adapters, {"noise": 2, "steps": 2})
    (other,) = runs_of(adapters, {"seed": 8, "steps": 2})
    first, same, unlike = (batches_of(run) for run in (one, again, other))
    check_same_batches(same, first, "two runs with the same seed have different batches")
    why = "two runs with the same seed have different weights"
    check_close(path_of(again), path_of(one), why, limit=0.0)
    apart = (path_of(other)[0] - path_of(one)[0]).abs().amax()
    check(apart > 0.01, "two different seeds give the same initial weights")
    check(not torch.equal(unlike[0], first[0]), "two different seeds give the same first batch")


@ours
@task("training_loop")
def test_cosine_ends_with_the_run(adapters):
    """If cosine_cycle_iters is None, the learning rate reaches its minimum in the last step."""
    setting = {"steps": 4, "warmup_iters": 0, "cosine_cycle_iters": None}
    (run,) = runs_of(adapters, setting)
    expected = schedule(CONFIG | setting | {"cosine_cycle_iters": 4})
    why = "with steps=4 and cosine_cycle_iters=None, the learning rates are wrong"
    check_close(column(run["metrics"], "learning_rate", 4), expected, why)


@ours
@task("training_loop")
def test_checkpoint_holds_the_updated_weights(adapters):
    """A checkpoint contains the number of finished steps and the weights after them."""
    done, cut = runs_of(adapters, {}, {"stop_at": 3})
    path = path_of(done)
    check_equal(
        done["iteration"], 3, "after a run of 3 steps, the iteration in the checkpoint is wrong"
    )
    check(
        (path[3] - path[2]).abs().amax() > 1e-3,
        "the checkpoint does not contain the last update of the weights",
    )
    why = "with checkpoint_every=2, and stopped in step 3, "
    check_equal(cut["iteration"], 2, f"{why}the iteration in the checkpoint is wrong")
    check_close(
        cut["saved"],
        path[2],
        f"{why}the checkpoint does not contain the weights of step 2",
        limit=0.0,
    )


@ours
@task("training_loop")
def test_resumed_run_is_the_undisturbed_one(adapters):
    """A run that is stopped in step 4 and resumed from step 2 ends like an uninterrupted run."""
    setting = {"steps": 5, "cosine_cycle_iters": 5, "validate_every": 1, **HELD_OUT}
    whole, _, resumed = runs_of(
        adapters, setting, {**setting, "stop_at": 4}, {**setting, "resume": True}
    )
    why = "of steps 3 to 5 of a resumed run differ from those of an uninterrupted run"
    check_same_batches(batches_of(resumed), batches_of(whole)[2:], f"the batches {why}")
    for name in ("learning_rate", "train_loss", "gradient_norm", "validation_loss"):
        found, right = (column(run["metrics"], name, 5) for run in (resumed, whole))
        check_close(
            found,
            right,
            f"resumed after step 2, `{name}` differs from that of an uninterrupted run",
            limit=0.0,
        )
    check_close(path_of(resumed), path_of(whole)[2:], f"the weights {why}", limit=0.0)
    check_equal(
        resumed["csv"],
        whole["csv"],
        "metrics.csv of a resumed run differs from that of an uninterrupted run",
    )


@ours
@task("training_loop")
def test_finished_run_is_not_trained_again(adapters):
    """Resuming a finished run returns its measurements and does no further step."""
    whole, again = runs_of(adapters, {"steps": 2}, {"steps": 2, "resume": True})
    check_equal(len(batches_of(again)), 0, "resuming a finished run takes further steps")
    check_equal(again["csv"], whole["csv"], "resuming a finished run changes metrics.csv")
    why = "resuming a finished run returns other measurements"
    check_equal(again["metrics"], whole["metrics"], why)
    check_close(
        again["saved"], whole["saved"], "resuming a finished run changes its weights", limit=0.0
    )


@ours
@task("training_loop")
def test_new_run_replaces_an_old_one(adapters):
    """A run without `resume` removes the results of an old run in the same out_dir."""
    (whole,) = runs_of(adapters, {})
    _, cut, resumed = runs_of(adapters, {"seed": 3, "steps": 2}, {"stop_at": 2}, {"resume": True})
    what = "a run that is started in an old out_dir and stopped in step 2"
    check_equal(cut["iteration"], None, f"{what} keeps the old checkpoint")
    check_equal(
        len(batches_of(resumed)), 3, f"{what} does not start with step 1 when it is resumed"
    )
    check_equal(
        sameness(resumed),
        sameness(whole),
        f"{what} and resumed, ends unlike a run in a new out_dir",
    )


@ours
@task("training_loop")
def test_validation_on_held_out_tokens(adapters):
    """validation_loss is that of held-out last tokens, after the step; training never uses them."""
    (run,) = runs_of(adapters, {"validation_tokens": 6, "steps": 5})
    held_out = IDS[-6:]
    trained = batches_of(run)
    leaked = sum(int(torch.isin(batch, held_out).sum()) for batch in trained)
    check(not leaked, f"{leaked} ids in training batches are held out for validation")
    check_equal(len(trained), 5, "in a run of 5 steps, the number of calls with gradients is wrong")
    looks = [call for call in run["calls"] if not call["gradients"]]
    check(looks, "the model is never called without gradients, so there is no validation")
    check(
        not any(call["training"] for call in looks),
        "a validation runs in training mode, expected evaluation mode",
    )
    modes = [call["training"] for call in run["calls"] if call["gradients"]]
    check(
        all(modes),
        f"step {modes.index(False) + 1 if False in modes else 0} runs in evaluation mode",
    )
    for call in looks:
        rows = {tuple(row) for row in call["ids"].tolist()}
        check_equal(
            rows,
            {tuple(held_out[:-1].tolist())},
            "a validation uses other ids than the held-out ones",
        )
    steps = [step for step, row in sorted(run["metrics"].items()) if "validation_loss" in row]
    why = "with validate_every=2 and steps=5, other steps have a validation_loss"
    check_equal(steps, [2, 4, 5], why)
    for step in steps:
        arguments = {"weights": path_of(run)[step], "ids": held_out[:-1].unsqueeze(0)}
        logits = adapters.probe("logits_of_weights", symbol=LM, config=CONFIG, **arguments)
        found = torch.tensor(run["metrics"][step]["validation_loss"])
        why = f"validation_loss of step {step} is not the loss of the weights after this step"
        check_close(found, F.cross_entropy(logits[0], held_out[1:]), why)


@ours
@task("training_loop")
def test_validation_leaves_training_alone(adapters):
    """Validation does not change the training, and all validations use the same batches."""
    with_it, without = runs_of(adapters, {"validate_every": 1, **HELD_OUT}, {"tokens": 40})
    why = "a validation changes the training batches after it"
    check_same_batches(batches_of(with_it), batches_of(without), why)
    why = "a validation changes the weights of the steps after it"
    check_close(path_of(with_it), path_of(without), why, limit=0.0)
    looks = [call["ids"].tolist() for call in with_it["calls"] if not call["gradients"]]
    third = len(looks) // 3
    check_equal(looks[third:], looks[:third] * 2, "the validations of a run use different batches")


@ours
@task("training_loop")
def test_file_of_metrics(adapters):
    """metrics.csv has a row for each logged step, with all digits of the returned numbers."""
    setting = {"steps": 5, "log_every": 3, "validate_every": 2, **HELD_OUT}
    (run,) = runs_of(adapters, setting)
    logged = sorted(run["metrics"])
    check_equal(
        logged,
        [2, 3, 4, 5],
        "with steps=5, log_every=3 and validate_every=2, the logged steps are wrong",
    )
    check(run["csv"] is not None, "out_dir contains no metrics.csv")
    header, *lines = [line.split(",") for line in run["csv"].splitlines()]
    names = ["train_loss", "learning_rate", "gradient_norm", "validation_loss"]
    check_equal(header, ["step", *names], "the columns of metrics.csv are wrong")
    found = [
        (int(step), {name: float(cell) for name, cell in zip(names, cells, strict=False) if cell})
        for step, *cells in lines
    ]
    why = "the rows of metrics.csv differ from the returned measurements"
    check_equal(found, sorted(run["metrics"].items()), why)


@ours
@task("training_loop")
def test_memory_mapped_data(adapters):
    """Training on a memory-mapped uint16 file equals training on the same ids in memory."""
    (plain,) = runs_of(adapters, {"steps": 2, **HELD_OUT})
    mapped = Array(IDS, "uint16", mapped=True)
    (run,) = runs_of(adapters, {"steps": 2, **HELD_OUT}, ids=mapped)
    check_equal(
        sameness(run),
        sameness(plain),
        "a run on a memory-mapped uint16 file differs from one on int64 in memory",
    )


@ours
@task("training_loop")
def test_configurations_that_are_refused(adapters):
    """An unknown, missing or invalid field of the config, or too little data, is an error."""

    def refused(why, config, ids=IDS):
        arguments = {"token_ids": Array(ids, "int64"), "config": config}
        adapters.run_training.error(why, **arguments, out_dir=Folder(), resume=False)

    lacking = {name: value for name, value in CONFIG.items() if name != "d_ff"}
    refused("the configuration has an unknown field `stepz`", CONFIG | {"stepz": 3})
    refused("the configuration has no field `d_ff`", lacking)
    refused("steps is the string 'ten'", CONFIG | {"steps": "ten"})
    refused("steps is the string '3'", CONFIG | {"steps": "3"})
    refused("batch_size is 2.5", CONFIG | {"batch_size": 2.5})
    refused("batch_size is 0", CONFIG | {"batch_size": 0})
    refused("there are 5 tokens, and context_length=5 needs 6", CONFIG, ids=IDS[:5])
    refused(
        "validation_tokens is 5, and context_length=5 needs 6", CONFIG | {"validation_tokens": 5}
    )


@ours
@task("training_loop")
def test_program(adapters):
    """`python -m cs336_basics.train --config FILE` trains as configured in TOML or JSON."""
    setting = {"steps": 2, **HELD_OUT}
    (run,) = runs_of(adapters, setting)

    def program(form, **fields):
        config = {**CONFIG, **setting, "loss_curve": False, **fields}
        data = Array(IDS, "int64")
        arguments = {"symbol": MAIN, "token_ids": data, "config": config, "form": form}
        return adapters.probe("training_program", **arguments)

    for form, fields in (("toml", {}), ("json", {"data_dtype": "uint32"})):
        seen = program(form, **fields)
        check_equal(seen["status"], 0, f"with a .{form} file as config, the exit status is wrong")
        why = f"with a .{form} file as config, metrics.csv differs from that of `run_training`"
        check_equal(seen["csv"], run["csv"], why)
    wrong = program("toml", stepz=3)
    check_equal(wrong["status"], 2, "with an unknown field `stepz`, the exit status is wrong")
    said = wrong["said"].strip().splitlines()
    why = f"with an unknown field `stepz`, the program writes {len(said)} lines, expected one"
    check(len(said) == 1, why)
    check("stepz" in said[0], "the program's error message does not name the unknown field `stepz`")
