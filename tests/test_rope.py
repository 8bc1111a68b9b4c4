"""RoPE: adjacent pairs of features are rotated by an angle that grows with the position."""

import torch

from tests.harness import ours, task
from tests.harness.compare import check, check_close
from tests.harness.properties import (
    check_dtype_kept,
    check_memory,
    check_placed,
)

ROPE = "cs336_basics.rope:RotaryEmbedding"


def arguments_for(x, positions, max_seq_len=32):
    """Make arguments of `run_rope`."""
    return {
        "d_k": x.shape[-1],
        "theta": 10000.0,
        "max_seq_len": max_seq_len,
        "in_query_or_key": x,
        "token_positions": positions,
    }


@task("rope")
def test_matches_saved_tensors(adapters, cases):
    """Features 2k and 2k+1 are a pair; the first pair is rotated by one radian per position."""
    cases.check(adapters.run_rope)


@task("rope")
def test_positions_are_used(adapters, cases):
    """RoPE uses the given positions, which may have gaps, repeats and any order."""
    cases.check(adapters.run_rope)


@task("rope")
def test_positions_of_each_row(adapters, cases):
    """Positions may differ from row to row; their leading axes broadcast against the input's."""
    cases.check(adapters.run_rope)


@task("rope")
def test_theta_is_used(adapters, cases):
    """The base of the angles is the argument `theta`, not always 10000."""
    cases.check(adapters.run_rope)


@task("rope")
def test_far_positions(adapters, cases):
    """The angles of large positions are precise: half precision is not enough for them."""
    cases.check(adapters.run_rope)


@task("rope")
def test_position_zero_changes_nothing(adapters, draw):
    """A vector at position 0 does not change, since every angle is 0."""
    x = draw.normal(2, 3, 8)
    output = adapters.run_rope(**arguments_for(x, torch.zeros(3, dtype=torch.int64)))
    check_close(output, x, "position 0 is rotated")


@task("rope")
def test_rotation_keeps_norms(adapters, draw):
    """A rotation does not change the length of any pair."""
    x = draw.normal(2, 5, 8)
    output = adapters.run_rope(**arguments_for(x, torch.arange(7, 12)))
    check(getattr(output, "shape", None) == x.shape, "the shape is not that of the input")
    lengths = output.unflatten(-1, (4, 2)).norm(dim=-1)
    check_close(lengths, x.unflatten(-1, (4, 2)).norm(dim=-1), "pairs change their length")


@task("rope")
def test_scores_depend_on_distance_alone(adapters, draw):
    """The score of a query at m and a key at n depends only on m − n."""
    q, k = draw.normal(6, 8), draw.normal(6, 8)
    near = torch.arange(6)
    scores = [
        adapters.run_rope(**arguments_for(q, near + shift))
        @ adapters.run_rope(**arguments_for(k, near + shift)).T
        for shift in (0, 9)
    ]
    check_close(scores[1], scores[0], "scores change when both positions move by nine")


@task("rope")
def test_last_position_works(adapters, draw):
    """Position max_seq_len - 1, the last one of the tables, is rotated as in a longer table."""
    x = draw.normal(1, 4)
    roomy = adapters.run_rope(**arguments_for(x, torch.tensor([15]), max_seq_len=64))
    tight = adapters.run_rope(**arguments_for(x, torch.tensor([15]), max_seq_len=16))
    check_close(
        tight, roomy, "the last position of a table is rotated otherwise than in a longer table"
    )


@ours
@task("rope")
def test_positions_beyond_the_table_are_refused(adapters, draw):
    """A position of max_seq_len or more is an error; it is not clamped or wrapped around."""
    for beyond in (40, 16):
        arguments = arguments_for(draw.normal(2, 4), torch.tensor([0, beyond]), max_seq_len=16)
        adapters.run_rope.error(f"max_seq_len is 16 and a position is {beyond}", **arguments)


@task("rope")
def test_rope_memory(adapters, draw):
    """The memory layout does not change the answer, inputs do not change, and two calls agree."""
    arguments = arguments_for(draw.normal(3, 5, 6), torch.arange(5))
    check_memory(adapters.run_rope, arguments, "in_query_or_key")


@ours
@task("rope")
def test_rope_gradient(adapters, draw):
    """The gradient is right: it is the cotangent, rotated back."""
    x, cotangent, positions = draw.normal(4, 6), draw.normal(4, 6), torch.arange(4) + 3
    arguments = arguments_for(x, positions)
    found = adapters.run_rope.answer(arguments, cotangent, ["in_query_or_key"]).gradients[
        "in_query_or_key"
    ]
    check(found is not None, "no gradient reaches the input: is something detached on the way?")
    forward_again = adapters.run_rope(**arguments_for(found, positions))
    check_close(
        forward_again, cotangent, "rotating the gradient forward does not give the cotangent back"
    )


@ours
@task("rope")
def test_rope_keeps_the_dtype(adapters, draw):
    """Half-precision inputs give an output of the same dtype."""
    check_dtype_kept(
        adapters.run_rope, arguments_for(draw.normal(2, 5, 8), torch.arange(5)), "in_query_or_key"
    )


@ours
@task("rope")
def test_half_precision_far_out(adapters, draw):
    """bfloat16 vectors are rotated by float32 angles: the error is small at large positions."""
    x, positions = draw.normal(6, 8), torch.tensor([301, 511, 700, 777, 900, 1023])
    exact = adapters.run_rope(**arguments_for(x.bfloat16().float(), positions, 1024))
    half = adapters.run_rope(**arguments_for(x.bfloat16(), positions, 1024))
    check(half.shape == exact.shape, "the shape is not that of the input")
    # bfloat16 frequencies would be wrong by 0.1 radian here, bfloat16 cosines by at most 0.01.
    worst = (half.float() - exact).abs().max() / x.abs().max()
    check(worst < 0.03, "the angles of bfloat16 inputs are not precise: {:.3f} off", worst)


@ours
@task("rope")
def test_double_precision(adapters, draw):
    """A float64 vector is rotated with float64 tables, to the precision of float64."""
    x, positions = draw.normal(4, 6).double(), torch.tensor([3, 100, 511, 1000])
    frequencies = 10000.0 ** (-torch.arange(0, 6, 2, dtype=torch.float64) / 6)
    angles = positions[:, None] * frequencies
    turned = torch.view_as_complex(x.reshape(4, 3, 2)) * torch.polar(
        torch.ones_like(angles), angles
    )
    output = adapters.run_rope(**arguments_for(x, positions, 1024))
    check_close(
        output,
        torch.view_as_real(turned).reshape(4, 6),
        "float64 in, and the answer is not right to the digits of float64",
        limit=1e-3,
    )


@ours
@task("rope")
def test_nothing_in_rope_is_learned_or_saved(adapters):
    """The tables are buffers, not parameters, and are not in the state dict."""
    seen = adapters.probe(
        "module", symbol=ROPE, arguments={"theta": 10000.0, "d_k": 8, "max_seq_len": 16}
    )
    check(not seen["parameters"], f"RoPE has parameters: {list(seen['parameters'])}")
    check(not seen["state"], f"RoPE's tables are saved with the model: {seen['state']}")
    check(
        bool(seen["buffers"]), "the tables are no buffers, so they stay behind when the model moves"
    )


@ours
@task("rope")
def test_rope_tables_are_precise(adapters):
    """The tables are on `device`, and are float32 even if the model is bfloat16."""
    arguments = {"theta": 10000.0, "d_k": 8, "max_seq_len": 16}
    seen = adapters.probe(
        "module", symbol=ROPE, arguments=arguments, device="meta", dtype="bfloat16"
    )
    check_placed(seen["buffers"], device="meta")
    low = [name for name, b in seen["buffers"].items() if b["dtype"] in ("bfloat16", "float16")]
    check(not low, f"tables in half precision: {', '.join(low)}")


@ours
@task("rope")
def test_odd_features_are_refused(adapters, draw):
    """An odd `d_k` is an error, since one feature would have no partner."""
    adapters.run_rope.error(
        "d_k is 5, which is odd", **arguments_for(draw.normal(2, 5), torch.arange(2))
    )
