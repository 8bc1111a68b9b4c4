"""Helpers shared by the adapters and the tests."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor


def weights_under(weights: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Keep the entries whose name starts with `prefix`, and take the prefix off their names."""
    return {
        name.removeprefix(prefix): weight
        for name, weight in weights.items()
        if name.startswith(prefix)
    }
