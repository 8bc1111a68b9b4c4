"""How tests run a lab, and which labs there are."""

from pathlib import Path
from typing import Protocol

from staff.paths import SOLUTION

LABS = {
    "trace_shapes": "transformer_lm",
    "three_norms": "batch_norm",
    "rope_distance": "rope",
    "positions": "sinusoidal_positions",
    "attention_map": "transformer_lm",
    "residual_ablation": "transformer_lm",
    "kv_cache_speed": "causal_lm",
}
"""The task that each lab names first when it runs on stubs, under the lab's name."""
QUICK = {
    "attention_map": ["--steps=2", "--bytes=20000"],
    "residual_ablation": ["--steps=2", "--layers=2"],
    "kv_cache_speed": ["--longest=32", "--tokens=2", "--hidden_size=32", "--layers=1"],
}
"""Options that make a lab fast, under the lab's name."""


class RunLab(Protocol):
    """A function that runs a lab in this process and returns what the lab prints."""

    def __call__(self, name: str, *options: str, of: Path = SOLUTION) -> str:
        """Run the lab `name` with these options on the submission `of`."""
