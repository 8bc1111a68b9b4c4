"""Follow the shapes through a tiny model, from ids to logits.

    python -m labs.trace_shapes
    python -m labs.trace_shapes --hidden_size 96 --num_hidden_layers 3

The second command makes every hidden state 96 features wide and adds a block. The logits stay as
wide as the vocabulary. Guess each shape before you look. The picture shows what the blocks read
from the residual stream and what they add to it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from labs.drawing import write
from labs.program import LabError, parser, run, say
from labs.stream_diagram import Block, Part, stream_diagram

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Anatomy:
    """The dotted names of a model's submodules; those of a block are relative to the block."""

    embedding: str
    blocks: str
    attention_norm: str
    attention: str
    feed_forward_norm: str
    feed_forward: str
    final_norm: str
    head: str


@dataclass(frozen=True)
class Stop:
    """A named point in the model, and the shape of the tensor there."""

    name: str
    shape: Shape


TRANSFORMER_LM = Anatomy(
    "token_embeddings", "layers", "ln1", "attn", "ln2", "ffn", "ln_final", "lm_head"
)

CAUSAL_LM = replace(
    TRANSFORMER_LM,
    embedding="trunk.token_embeddings",
    blocks="trunk.layers",
    final_norm="trunk.ln_final",
)


def trace(model: nn.Module, anatomy: Anatomy, input_ids: Tensor) -> list[Stop]:
    """Run the model once, and record the shapes in the order in which they occur.

    Raises:
        LabError: the model lacks a submodule, or doesn't call it as a module.
    """
    table = _part(model, f"{anatomy.embedding}.weight")
    stops = [
        Stop("input_ids.shape", tuple(input_ids.shape)),
        Stop("embed_tokens.weight.shape", tuple(table.shape)),
    ]
    expected, hooks = len(stops), []

    def note(part: str, name: str, take: Callable[[Any, Any], Any]) -> None:
        nonlocal expected
        expected += 1

        def hook(
            _: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], outputs: Any
        ) -> None:
            stops.append(Stop(name, tuple(take((*inputs, *named.values()), outputs).shape)))

        def before(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
            hook(module, inputs, named, None)

        module = _part(model, part)
        if take is _input:
            hooks.append(module.register_forward_pre_hook(before, with_kwargs=True))
        else:
            hooks.append(module.register_forward_hook(hook, with_kwargs=True))

    blocks = len(_part(model, anatomy.blocks))
    note(f"{anatomy.blocks}.0", "after embedding (+ dropout)", _input)
    for number in range(blocks):
        block = f"{anatomy.blocks}.{number}"
        note(block, f"block {number} input", _input)
        note(f"{block}.{anatomy.attention_norm}", "  after input_layernorm", _output)
        note(f"{block}.{anatomy.attention}", "  self_attn output", _output)
        note(f"{block}.{anatomy.feed_forward_norm}", "  after attention residual add", _input)
        note(f"{block}.{anatomy.feed_forward}", "  mlp output", _output)
        note(block, f"block {number} output", _output)
    note(anatomy.head, "logits.shape", _output)
    try:
        with torch.no_grad():
            model(input_ids)
    finally:
        for hook in hooks:
            hook.remove()
    if len(stops) < expected:
        raise LabError(
            f"only {len(stops)} of {expected} shapes were recorded: call the submodules of your "
            "blocks as self.attn(x), not as self.attn.forward(x), which runs no hooks"
        )
    return stops


def lab(chosen: argparse.Namespace) -> None:
    """Trace the chosen model, and draw its stream."""
    torch.manual_seed(chosen.seed)
    shape = (chosen.batch_size, chosen.seq_len)
    input_ids = torch.randint(chosen.vocab_size, shape)
    model, anatomy = _MODELS[chosen.model](chosen)
    stops = trace(model, anatomy, input_ids)
    for stop in stops:
        say(f"{stop.name} = {stop.shape}")
    write(lambda: _diagram(model, anatomy, stops), chosen.out / "trace-shapes.svg")
    say(f"picture: {chosen.out / 'trace-shapes.svg'}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, and run the lab."""
    options = parser(__doc__ or "")
    options.add_argument(
        "--model",
        choices=_MODELS,
        default="transformer_lm",
        help="the model of §2.12 or that of §5.10 (default: transformer_lm)",
    )
    for name, default, text in (
        ("hidden_size", 64, "width of the residual stream"),
        ("num_hidden_layers", 2, "number of blocks"),
        ("num_attention_heads", 4, "number of heads, a divisor of hidden_size"),
        ("num_key_value_heads", 2, "number of key/value heads of causal_lm"),
        ("vocab_size", 6400, "number of tokens"),
        ("batch_size", 2, "number of sequences"),
        ("seq_len", 6, "tokens in a sequence"),
    ):
        options.add_argument(
            f"--{name}", type=int, default=default, metavar="N", help=f"{text} (default: {default})"
        )
    run(lab, options, arguments)


def _transformer_lm(chosen: argparse.Namespace) -> tuple[nn.Module, Anatomy]:
    from cs336_basics.transformer import TransformerLM

    model = TransformerLM(
        vocab_size=chosen.vocab_size,
        context_length=chosen.seq_len,
        d_model=chosen.hidden_size,
        num_layers=chosen.num_hidden_layers,
        num_heads=chosen.num_attention_heads,
        d_ff=_hidden_features(chosen.hidden_size),
        rope_theta=10_000.0,
    )
    return model, TRANSFORMER_LM


def _causal_lm(chosen: argparse.Namespace) -> tuple[nn.Module, Anatomy]:
    from cs336_basics.causal_lm import CausalLM, TransformerTrunk

    trunk = TransformerTrunk(
        vocab_size=chosen.vocab_size,
        context_length=chosen.seq_len,
        d_model=chosen.hidden_size,
        num_layers=chosen.num_hidden_layers,
        num_heads=chosen.num_attention_heads,
        num_kv_heads=chosen.num_key_value_heads,
        d_ff=_hidden_features(chosen.hidden_size),
        rope_theta=10_000.0,
    )
    return CausalLM(trunk), CAUSAL_LM


_MODELS: dict[str, Callable[[argparse.Namespace], tuple[nn.Module, Anatomy]]] = {
    "transformer_lm": _transformer_lm,
    "causal_lm": _causal_lm,
}


def _hidden_features(hidden_size: int) -> int:
    """Return eight thirds of the width, rounded up to a multiple of 64."""
    return -(-8 * hidden_size // 3 // 64) * 64


def _input(inputs: tuple[Any, ...], _: object) -> Any:
    return inputs[0]


def _output(_: object, outputs: Any) -> Any:
    return outputs[0] if isinstance(outputs, tuple) else outputs


def _part(model: nn.Module, name: str) -> Any:
    part: Any = model
    for step in name.split("."):
        try:
            part = part[int(step)] if step.isdigit() else getattr(part, step)
        except (AttributeError, IndexError):
            raise LabError(
                f"{type(model).__name__} has no {name}; name its submodules as the handout does"
            ) from None
    return part


def _diagram(model: nn.Module, anatomy: Anatomy, stops: Sequence[Stop]) -> Figure:
    def part(name: str, shape: Shape | None) -> Part:
        return Part(name.rpartition(".")[2], type(_part(model, name)).__name__, shape)

    shapes = [stop.shape for stop in stops]
    ids, table, embedded = shapes[:3]
    kind = type(_part(model, anatomy.embedding)).__name__
    blocks = []
    for number, first in enumerate(range(3, len(stops) - 1, 6)):
        name = f"{anatomy.blocks}.{number}"
        read, normed, attended, added, fed, out = shapes[first : first + 6]
        blocks.append(
            Block(
                name,
                (read, added, out),
                part(f"{name}.{anatomy.attention_norm}", normed),
                part(f"{name}.{anatomy.attention}", attended),
                part(f"{name}.{anatomy.feed_forward_norm}", added),
                part(f"{name}.{anatomy.feed_forward}", fed),
            )
        )
    ends = (
        Part("input_ids", "", ids),
        Part(anatomy.embedding.rpartition(".")[2], f"{kind} {table}", embedded),
        part(anatomy.final_norm, None),
        part(anatomy.head, shapes[-1]),
    )
    return stream_diagram(ends, blocks)


if __name__ == "__main__":
    main()
