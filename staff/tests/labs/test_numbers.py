"""The numbers in the labs' pictures, compared with independent computations."""

import math
import re
from pathlib import Path

import pytest
import torch

from cs336_basics import attention
from cs336_basics.transformer import TransformerBlock
from labs import attention_map, positions, residual_ablation, rope_distance, three_norms, words
from staff.paths import SOLUTION
from staff.tests.labs.running import RunLab
from staff.tests.support import submission


def test_three_norms(lab: RunLab) -> None:
    """Catches norms that differ from PyTorch's, or a wrong table of what a norm depends on."""
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    expected = {
        "BatchNorm": torch.nn.functional.batch_norm(x, None, None, training=True),
        "LayerNorm": torch.nn.functional.layer_norm(x, (3,)),
        "RMSNorm": torch.nn.functional.rms_norm(x, (3,), eps=1e-5),
    }
    example, _, dependence = lab("three_norms").split("\n\n")[:3]
    for name, y in expected.items():
        assert f"  {name:<14}" + "".join(f"{v:z8.3f}" for v in y.flatten().tolist()) in example
    moves = [[float(v) for v in line.split()[-3:]] for line in dependence.splitlines()[1:]]
    assert [[bool(move) for move in row] for row in moves] == [
        [True, False, False],
        [True, False, True],
        [True, False, False],
    ]


def test_random_tokens_need_all_three_norms() -> None:
    """Catches example data that one of the three norms would leave unchanged."""
    data = three_norms.random_tokens(20, 14, seed=0)
    assert data.square().mean(1).sqrt().max() > 4 * data.square().mean(1).sqrt().min()
    assert data.mean(1).std() > 0.3
    assert data.mean(0).std() > 0.3


def test_rope_distance(lab: RunLab) -> None:
    """Catches scores that depend on more than the distance, or a wrong layout conversion."""
    check, head, places = lab("rope_distance").split("\n\n")[:3]
    assert all(float(end) < 1e-5 for end in re.findall(r"difference (\S+)", check))
    backs, errors = zip(*re.findall(r"(\d+) tokens back   off by up to (\S+)", head), strict=True)
    assert backs[0] == backs[2] == "16"
    assert backs[1] != "16"
    assert float(errors[1]) > 0.1 > 1e-5 > float(errors[2])
    same, apart = [[float(end) for end in line.split()[-3::2]] for line in places.splitlines()[1:]]
    assert same == [1, 1]
    assert apart[1] - apart[0] > 0.5


def test_layouts_of_rope() -> None:
    """Catches exchanged names of the two RoPE layouts."""
    turns = rope_distance.layouts(4, 8)
    x = torch.tensor([1.0, 0.0, 0.0, 0.0])
    cos, sin = math.cos(1), math.sin(1)
    assert turns["adjacent"](x, 1).tolist() == pytest.approx([cos, sin, 0, 0], abs=1e-6)
    assert turns["half-split"](x, 1).tolist() == pytest.approx([cos, 0, sin, 0], abs=1e-6)


def test_positions() -> None:
    """Catches sinusoidal positions or rotary angles that differ from their formulas."""
    places = torch.arange(50, dtype=torch.float64)
    frequencies = 10_000.0 ** (-torch.arange(0, 16, 2, dtype=torch.float64) / 16)
    angles = torch.outer(places, frequencies)
    turns = positions.rotary_angles(50, 16).double()
    apart = (turns - angles / (2 * math.pi) + 0.5) % 1 - 0.5
    assert apart.abs().max() < 1e-6
    table = positions.sinusoidal_table(50, 16).double()
    assert (table[:, 0::2] - angles.sin()).abs().max() < 1e-6
    assert (table[:, 1::2] - angles.cos()).abs().max() < 1e-6


def test_attention_weights_are_those_of_the_model() -> None:
    """Catches recorded attention weights from which the output was not computed."""
    own = attention.scaled_dot_product_attention
    Q, K, V = torch.randn(3, 1, 2, 5, 4, generator=torch.Generator().manual_seed(0))
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    with attention_map.weights_noted() as noted:
        result = attention.scaled_dot_product_attention(Q, K, V, causal)
    scores = (Q @ K.mT / 2).masked_fill(~causal, -math.inf)
    torch.testing.assert_close(noted[0], scores.softmax(-1))
    torch.testing.assert_close(result, noted[0] @ V)
    assert attention.scaled_dot_product_attention is own


def test_habits_of_a_head() -> None:
    """Catches `habits` counting the first two queries, or a near key as `farthest_look`."""
    weights = torch.tensor(
        [
            [1.0, 0.0, 0.0, 0.0],
            [0.5, 0.5, 0.0, 0.0],
            [0.2, 0.5, 0.3, 0.0],
            [0.4, 0.3, 0.2, 0.1],
        ]
    )
    shares = attention_map.habits(weights)
    assert list(shares.values()) == pytest.approx([0.3, 0.35, 0.2])
    assert attention_map.farthest_look(weights) == (3, 1)


def test_an_attention_that_goes_another_way(lab: RunLab, tmp_path: Path) -> None:
    """Catches an empty picture if a layer doesn't call `scaled_dot_product_attention`."""
    file = "cs336_basics/attention.py"
    text = (SOLUTION / file).read_text("utf-8")
    text = text.replace("heads = scaled_dot_product_attention(", "heads = _mine(")
    text += "\n\n_mine = scaled_dot_product_attention\n"
    folder = submission(tmp_path / "it", {file: text})
    with pytest.raises(SystemExit, match="no attention weights were recorded"):
        lab("attention_map", of=folder)


def test_blocks_put_together_in_another_way() -> None:
    """Catches a block whose design differs from its name, such as `post-norm`."""
    block = TransformerBlock(16, 2, 24, 8, 10_000.0)
    x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
    designs = {
        name: residual_ablation.Rebuilt(block, h) for name, h in residual_ablation.DESIGNS.items()
    }
    torch.testing.assert_close(designs["pre-norm"](x), block(x))
    torch.nn.init.zeros_(block.get_parameter("attn.output_proj.weight"))
    torch.nn.init.zeros_(block.get_parameter("ffn.w2.weight"))
    torch.testing.assert_close(designs["pre-norm"](x), x)
    unit = torch.nn.functional.rms_norm(x, (16,), eps=1e-5)
    torch.testing.assert_close(designs["post-norm"](x), unit, atol=1e-4, rtol=1e-4)
    assert not designs["pre-norm, no residual"](x).any()
    assert not designs["post-norm, no residual"](x).any()


def test_words() -> None:
    """Catches punctuation joined to a word, or an unknown word with the id of a known word."""
    assert words.split('"I can\'t," she said.\n<|endoftext|>') == [
        *['"', "i", "can't", ",", '"', "she", "said", ".", "<|endoftext|>"]
    ]
    vocabulary, ids = words.story_words(20_000, 50, seed=3)
    assert len(vocabulary.words) == len(set(vocabulary.words)) == 50
    assert ids.max() == 49
    assert vocabulary.ids(["the", "zyzzyva"]).tolist() == [vocabulary.words.index("the"), 0]
