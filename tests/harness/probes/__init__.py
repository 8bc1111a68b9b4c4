"""Probes: functions from plain data to plain data that drive a submission's own objects.

A probe runs on the submission's side of the bridge and returns observations, never a verdict.
This package is loaded before the submission, and knows nothing of the tests. A probe that drives
what only the adapters offer takes their module as a first parameter, called `adapters`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import ModuleType

from tests.harness.plain import Plain
from tests.harness.probes import modules, tokenizer

PROBES: dict[str, Callable[..., Plain]] = {
    probe.__name__: probe
    for probe in (
        modules.written,
        modules.module,
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


def run_probe(name: str, adapters: ModuleType, arguments: Mapping[str, Plain]) -> Plain:
    """Run a probe on what is built from `arguments`, beside the submission."""
    probe = PROBES[name]
    if "adapters" in inspect.signature(probe).parameters:
        return probe(adapters, **arguments)
    return probe(**arguments)


__all__ = ["PROBES", "run_probe"]
