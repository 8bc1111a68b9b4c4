"""The labs: what they print, what they say on stubs, and the numbers behind their pictures."""

import importlib
import math
import re
import subprocess
import sys

import pytest
import torch

from labs import attention_map, positions, residual_ablation, rope_distance, three_norms, words
from labs.drawing import write
from staff.paths import ROOT, SOLUTION
from staff.tests.support import clean_imports, submission

LABS = {
    "trace_shapes": "transformer_lm",
    "three_norms": "batch_norm",
    "rope_distance": "rope",
    "positions": "sinusoidal_positions",
    "attention_map": "transformer_lm",
    "residual_ablation": "transformer_lm",
    "kv_cache_speed": "causal_lm",
}
"""Each lab, and the task that it names first where nothing is written."""

QUICK = {
    "attention_map": ["--steps=2", "--bytes=20000"],
    "residual_ablation": ["--steps=2", "--layers=2"],
    "kv_cache_speed": ["--longest=32", "--tokens=2", "--hidden_size=32", "--layers=1"],
}

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


@pytest.fixture
def lab(tmp_path, capsys):
    """Runs a lab in this process; gives what it printed."""

    def run(name, *options, of=SOLUTION):
        with clean_imports():
            main = importlib.import_module(f"labs.{name}").main
            main([*QUICK.get(name, []), f"--submission={of}", f"--out={tmp_path}", *options])
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("name", LABS)
def test_each_lab_writes_its_picture(name, lab, tmp_path):
    """Every lab runs on the solution, and the picture that it names is an SVG."""
    file = tmp_path / f"{name.replace('_', '-')}.svg"
    assert lab(name).endswith(f"picture: {file}\n")
    assert "<svg" in file.read_text("utf-8")


@pytest.mark.parametrize(("name", "task"), LABS.items())
def test_on_stubs_it_says_what_to_write(name, task, lab):
    """One line instead of a traceback: the task, its file, its section, the command."""
    with pytest.raises(SystemExit) as end:
        lab(name, of=ROOT)
    assert re.fullmatch(
        rf"{task} isn't written yet: write cs336_basics/\w+\.py \(handout §\d\.\d+\), then  "
        rf"pytest --task={task}",
        end.value.code,
    )


def test_as_a_program_on_stubs(tmp_path):
    """Started at the root as a student does, it looks at the student's package: status 1."""
    command = [sys.executable, "-m", "labs.trace_shapes", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("transformer_lm isn't written yet: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", LABS)
def test_help(name, capsys):
    """It says what the lab shows, how it is started, and what each option is for."""
    module = importlib.import_module(f"labs.{name}")
    with pytest.raises(SystemExit) as end:
        module.main(["--help"])
    text = capsys.readouterr().out
    assert end.value.code == 0
    assert module.__doc__.strip() in text
    assert f"python -m labs.{name}" in text
    assert re.findall(r"--(submission|out|seed) ", text)


def test_a_folder_that_is_no_submission(lab, tmp_path, capsys):
    """Wrong use: status 2, and the folder is named."""
    with pytest.raises(SystemExit) as end:
        lab("positions", of=tmp_path / "nowhere")
    assert end.value.code == 2
    assert "nowhere is no folder" in capsys.readouterr().err


def test_a_module_that_is_missing(lab, tmp_path):
    """A submission without the file is told which one; another's doesn't stand in for it."""
    folder = submission(tmp_path / "it")
    (folder / "cs336_basics" / "rope.py").unlink()
    with pytest.raises(SystemExit, match=r"rope isn't written yet: write cs336_basics/rope\.py"):
        lab("rope_distance", of=folder)


def test_an_error_of_the_student_is_shown(lab, tmp_path):
    """What goes wrong in the student's code keeps its traceback."""
    folder = submission(tmp_path / "it", added={"cs336_basics/rope.py": "raise KeyError('mine')"})
    with pytest.raises(KeyError, match="mine"):
        lab("positions", of=folder)


@pytest.mark.parametrize("model", ["transformer_lm", "causal_lm"])
def test_trace_shapes(model, lab):
    """The lesson's lines, in its order, on both models."""
    expected = TINY.format(width=64)
    expected += "".join(BLOCK.format(number=number, width=64) for number in range(2))
    expected += "logits.shape = (2, 6, 6400)\n"
    assert lab("trace_shapes", f"--model={model}").partition("picture")[0] == expected


def test_trace_shapes_wider_and_deeper(lab):
    """The lesson's second experiment: 96 wide, three blocks, logits still 6400."""
    expected = TINY.format(width=96)
    expected += "".join(BLOCK.format(number=number, width=96) for number in range(3))
    expected += "logits.shape = (2, 6, 6400)\n"
    text = lab("trace_shapes", "--hidden_size", "96", "--num_hidden_layers", "3")
    assert text.partition("picture")[0] == expected


def test_trace_shapes_of_a_block_that_no_hook_sees(lab, tmp_path):
    """A part that isn't called as a module is explained, not skipped."""
    file = "cs336_basics/transformer.py"
    text = (SOLUTION / file).read_text("utf-8").replace("self.attn(", "self.attn.forward(")
    folder = submission(tmp_path / "it", {file: text})
    with pytest.raises(SystemExit, match="only 14 of 16 shapes were recorded"):
        lab("trace_shapes", of=folder)


def test_three_norms(lab):
    """The worked example as PyTorch computes it, and what a token's output depends on."""
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


def test_random_tokens_need_all_three_norms():
    """The data has what each norm takes away: unlike sizes, token means and feature means."""
    data = three_norms.random_tokens(20, 14, seed=0)
    assert data.square().mean(1).sqrt().max() > 4 * data.square().mean(1).sqrt().min()
    assert data.mean(1).std() > 0.3
    assert data.mean(0).std() > 0.3


def test_rope_distance(lab):
    """Equal distances give equal scores; the conversion mends what another layout breaks."""
    check, head, places = lab("rope_distance").split("\n\n")[:3]
    assert all(float(end) < 1e-5 for end in re.findall(r"difference (\S+)", check))
    backs, errors = zip(*re.findall(r"(\d+) tokens back   off by up to (\S+)", head), strict=True)
    assert backs[0] == backs[2] == "16"
    assert backs[1] != "16"
    assert float(errors[1]) > 0.1 > 1e-5 > float(errors[2])
    same, apart = [[float(end) for end in line.split()[-3::2]] for line in places.splitlines()[1:]]
    assert same == [1, 1]
    assert apart[1] - apart[0] > 0.5


def test_layouts_are_those_they_are_called():
    """At position 1 of four features: neighbours turn together, or halves do."""
    turns = rope_distance.layouts(4, 8)
    x = torch.tensor([1.0, 0.0, 0.0, 0.0])
    cos, sin = math.cos(1), math.sin(1)
    assert turns["adjacent"](x, 1).tolist() == pytest.approx([cos, sin, 0, 0], abs=1e-6)
    assert turns["half-split"](x, 1).tolist() == pytest.approx([cos, 0, sin, 0], abs=1e-6)


def test_positions():
    """Both tables as the formulas give them; angles in turns."""
    places = torch.arange(50, dtype=torch.float64)
    frequencies = 10_000.0 ** (-torch.arange(0, 16, 2, dtype=torch.float64) / 16)
    angles = torch.outer(places, frequencies)
    turns = positions.rotary_angles(50, 16).double()
    apart = (turns - angles / (2 * math.pi) + 0.5) % 1 - 0.5
    assert apart.abs().max() < 1e-6
    table = positions.sinusoidal_table(50, 16).double()
    assert (table[:, 0::2] - angles.sin()).abs().max() < 1e-6
    assert (table[:, 1::2] - angles.cos()).abs().max() < 1e-6


def test_attention_weights_are_the_models():
    """Noted weights are a softmax of the scores: causal, rows of one, and they make the output."""
    from cs336_basics import attention

    own = attention.scaled_dot_product_attention
    Q, K, V = torch.randn(3, 1, 2, 5, 4, generator=torch.Generator().manual_seed(0))
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    with attention_map.weights_noted() as noted:
        result = attention.scaled_dot_product_attention(Q, K, V, causal)
    scores = (Q @ K.mT / 2).masked_fill(~causal, -math.inf)
    torch.testing.assert_close(noted[0], scores.softmax(-1))
    torch.testing.assert_close(result, noted[0] @ V)
    assert attention.scaled_dot_product_attention is own


def test_habits_of_a_head():
    """Shares are means over the queries from the third on; the far look leaves near ones out."""
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


def test_an_attention_that_goes_another_way(lab, tmp_path):
    """Where the layer doesn't call the function, the lab says so."""
    file = "cs336_basics/attention.py"
    text = (SOLUTION / file).read_text("utf-8")
    text = text.replace("heads = scaled_dot_product_attention(", "heads = _mine(")
    text += "\n\n_mine = scaled_dot_product_attention\n"
    folder = submission(tmp_path / "it", {file: text})
    with pytest.raises(SystemExit, match="no attention weights were recorded"):
        lab("attention_map", of=folder)


def test_blocks_put_together_in_another_way():
    """Pre-norm is the block itself; without the sum, zeroed layers leave nothing."""
    from cs336_basics.transformer import TransformerBlock

    block = TransformerBlock(16, 2, 24, 8, 10_000.0)
    x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
    designs = {
        name: residual_ablation.Rebuilt(block, h) for name, h in residual_ablation.DESIGNS.items()
    }
    torch.testing.assert_close(designs["pre-norm"](x), block(x))
    torch.nn.init.zeros_(block.attn.output_proj.weight)
    torch.nn.init.zeros_(block.ffn.w2.weight)
    torch.testing.assert_close(designs["pre-norm"](x), x)
    unit = torch.nn.functional.rms_norm(x, (16,), eps=1e-5)
    torch.testing.assert_close(designs["post-norm"](x), unit, atol=1e-4, rtol=1e-4)
    assert not designs["pre-norm, no residual"](x).any()
    assert not designs["post-norm, no residual"](x).any()


def test_words():
    """Words, numbers and signs apart; a word that isn't known becomes the unknown one."""
    assert words.split('"I can\'t," she said.\n<|endoftext|>') == [
        *['"', "i", "can't", ",", '"', "she", "said", ".", "<|endoftext|>"]
    ]
    vocabulary, ids = words.story_words(20_000, 50, seed=3)
    assert len(vocabulary.words) == len(set(vocabulary.words)) == 50
    assert ids.max() == 49
    assert vocabulary.ids(["the", "zyzzyva"]).tolist() == [vocabulary.words.index("the"), 0]


def test_pictures_are_reproducible(tmp_path):
    """The same figure gives the same bytes, whatever a person's matplotlib looks like."""
    table, turns = torch.rand(2, 8, 8)
    for name in ("one.svg", "two.svg"):
        write(lambda: positions._picture(table, turns), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


@pytest.mark.parametrize("name", LABS)
def test_the_page_shows_each_lab(name):
    """docs/labs.md has a section for it, with the command and the picture."""
    section = (ROOT / "docs" / "labs.md").read_text("utf-8").partition(f"\n## {name}\n")[2]
    section = section.partition("\n## ")[0]
    assert f"python -m labs.{name}\n" in section
    (picture,) = re.findall(r"\]\((figures/labs/[a-z-]+\.svg)\)", section)
    assert (ROOT / "docs" / picture).is_file()


@pytest.mark.parametrize("name", LABS)
def test_the_handout_sends_readers_to_each_lab(name):
    """Catches a lab that nobody is told of where it belongs."""
    assert f"`python -m labs.{name}" in (ROOT / "handout.md").read_text("utf-8")
