"""The lab `trace_shapes`: every line that it prints, for both models and several sizes."""

from pathlib import Path

import pytest

from staff.paths import SOLUTION
from staff.tests.labs.running import RunLab
from staff.tests.support import submission

TINY = """\
input_ids.shape = (2, 6)
embed_tokens.weight.shape = (6400, {width})
after embedding (+ dropout) = (2, 6, {width})
"""
BLOCK = """\
block {number} input = (2, 6, {width})
  after input_layernorm = (2, 6, {width})
  self_attn output = (2, 6, {width})
  after attention residual add = (2, 6, {width})
  mlp output = (2, 6, {width})
block {number} output = (2, 6, {width})
"""


@pytest.mark.parametrize("model", ["transformer_lm", "causal_lm"])
def test_both_models(model: str, lab: RunLab) -> None:
    """Catches a printed shape that is missing, wrong or out of order."""
    expected = TINY.format(width=64)
    expected += "".join(BLOCK.format(number=number, width=64) for number in range(2))
    expected += "logits.shape = (2, 6, 6400)\n"
    assert lab("trace_shapes", f"--model={model}").partition("picture")[0] == expected


def test_wider_and_deeper(lab: RunLab) -> None:
    """Catches shapes that ignore --hidden_size or --num_hidden_layers."""
    expected = TINY.format(width=96)
    expected += "".join(BLOCK.format(number=number, width=96) for number in range(3))
    expected += "logits.shape = (2, 6, 6400)\n"
    text = lab("trace_shapes", "--hidden_size", "96", "--num_hidden_layers", "3")
    assert text.partition("picture")[0] == expected


def test_a_block_that_no_hook_sees(lab: RunLab, tmp_path: Path) -> None:
    """Catches missing shapes that aren't reported if a block calls `attn.forward` directly."""
    file = "cs336_basics/transformer.py"
    text = (SOLUTION / file).read_text("utf-8").replace("self.attn(", "self.attn.forward(")
    folder = submission(tmp_path / "it", {file: text})
    with pytest.raises(SystemExit, match="only 14 of 16 shapes were recorded"):
        lab("trace_shapes", of=folder)
