"""Embedding: a look-up in a table with one row for each token."""

import torch

from tests.harness import ours, task
from tests.harness.compare import check_close
from tests.harness.properties import (
    check_memory,
    check_parameters,
    check_placed,
    check_truncated_normal,
    value_of,
)

EMBEDDING = "cs336_basics.embedding:Embedding"


@task("embedding")
def test_matches_saved_tensors(adapters, cases):
    """Each id is replaced by its row of the table; the ids may have any shape."""
    cases.check(adapters.run_embedding)


@task("embedding")
def test_rows_are_exact(adapters, draw):
    """The rows equal those of the table bit for bit, since a look-up computes nothing."""
    table, ids = draw.normal(9, 4, scale=100.0), draw.integers(9, 2, 6)
    arguments = {"vocab_size": 9, "d_model": 4, "weights": table, "token_ids": ids}
    rows = torch.stack([table[i] for i in ids.flatten().tolist()]).reshape(2, 6, 4)
    check_close(
        adapters.run_embedding(**arguments), rows, "the rows are not those of the table", limit=0.0
    )
    check_memory(adapters.run_embedding, arguments)


@ours
@task("embedding")
def test_ids_of_32_bits(adapters, draw):
    """Ids may be int32 as well as int64."""
    table, ids = draw.normal(9, 4), draw.integers(9, 2, 6)
    arguments = {"vocab_size": 9, "d_model": 4, "weights": table}
    wide = adapters.run_embedding(**arguments, token_ids=ids)
    narrow = adapters.run_embedding(**arguments, token_ids=ids.int())
    check_close(narrow, wide, "int32 ids give other rows than int64 ids", limit=0.0)


@ours
@task("embedding")
def test_unknown_ids_are_refused(adapters, draw):
    """An id outside the table is an error; it is not clamped to the last token."""
    for unknown in (1000, 9):
        adapters.run_embedding.error(
            f"the table has 9 rows and was asked for id {unknown}",
            vocab_size=9,
            d_model=4,
            weights=draw.normal(9, 4),
            token_ids=torch.tensor([[0, unknown]]),
        )


@ours
@task("embedding")
def test_embedding_module(adapters, draw):
    """The module has one trained parameter, `weight`, of shape (vocab_size, d_model)."""
    ids, cotangent = torch.tensor([2, 0, 2, 2]), draw.normal(4, 3)
    seen = adapters.probe(
        "module",
        symbol=EMBEDDING,
        arguments={"vocab_size": 5, "d_model": 3},
        inputs=[ids],
        cotangent=cotangent,
    )
    check_parameters(seen["parameters"], {"weight": (5, 3)})
    check_close(
        seen["output"], value_of(seen, "weight")[ids], "forward does not use `weight`", limit=0.0
    )
    gradient = torch.zeros(5, 3).index_add(0, ids, cotangent)
    check_close(seen["gradients"]["weight"], gradient, "the gradient of `weight` is wrong")


@ours
@task("embedding")
def test_embedding_starts_random(adapters):
    """The table starts with values of a normal of standard deviation 1, truncated at ±3."""
    arguments = {"vocab_size": 400, "d_model": 150}
    seen = adapters.probe("module", symbol=EMBEDDING, arguments=arguments, seed=2)
    check_truncated_normal(value_of(seen, "weight"), 1.0)


@ours
@task("embedding")
def test_embedding_device_and_dtype(adapters):
    """`device` and `dtype` reach the table."""
    arguments = {"vocab_size": 5, "d_model": 3}
    seen = adapters.probe(
        "module", symbol=EMBEDDING, arguments=arguments, device="meta", dtype="bfloat16"
    )
    check_placed(seen["parameters"], device="meta", dtype="bfloat16")
