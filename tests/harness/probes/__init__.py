"""Probes: functions from plain data to plain data that drive a submission's own objects.

A probe runs in the process of the submission. It returns observations; a test judges them. This
package is imported before the submission, and it does not import the tests. A probe that needs the
adapters takes their module as its first parameter, called `adapters`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from tests.harness.plain import Plain
from tests.harness.probes import (
    checkpoints,
    kv_cache,
    modules,
    normalisation,
    parts,
    tokenizer,
    training,
    training_loop,
)

PROBES: dict[str, Callable[..., Plain]] = {
    probe.__name__: probe
    for probe in (
        modules.written,
        modules.module,
        parts.part,
        parts.part_gradient,
        normalisation.batch_norm_run,
        kv_cache.cache_steps,
        kv_cache.cached_logits,
        training.adamw,
        training.adamw_run,
        training.adamw_closure,
        training.adamw_restored,
        training.adamw_refusals,
        training.schedule,
        training.clipped,
        training.clipping,
        training.batches,
        training.batch_memory,
        checkpoints.resumed_run,
        checkpoints.refused_load,
        checkpoints.wrapped,
        checkpoints.loading_code,
        checkpoints.replacing,
        training_loop.training_runs,
        training_loop.plain_loop,
        training_loop.logits_of_weights,
        training_loop.training_program,
        training_loop.last_logits,
        tokenizer.bpe_training,
        tokenizer.bpe_encoding,
        tokenizer.bpe_pieces,
        tokenizer.bpe_decoding,
        tokenizer.bpe_decoding_error,
        tokenizer.bpe_arguments_after,
        tokenizer.bpe_pulls,
        tokenizer.bpe_memory,
        tokenizer.bpe_training_work,
        tokenizer.bpe_encoding_work,
        tokenizer.bpe_files,
        tokenizer.bpe_reading,
    )
}


def run_probe(name: str, adapters: Any, arguments: Mapping[str, Plain]) -> Plain:
    """Run a probe in the process of the submission.

    Args:
        name: the name of the probe.
        adapters: the adapters of the submission, for a probe that needs them.
        arguments: the keyword arguments of the probe, with all recipes built.
    """
    probe = PROBES[name]
    if "adapters" in inspect.signature(probe).parameters:
        return probe(adapters, **arguments)
    return probe(**arguments)


__all__ = ["PROBES", "run_probe"]
