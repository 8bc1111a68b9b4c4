"""How long a training step of the solution takes, compared with Hugging Face transformers.

The solution comes in two forms: the textbook's, which people read and copy, and the fast one, with
all `fast-…` alternates of the catalogue.

All contenders train the same model: 4 layers, d_model 256, 8 heads, d_ff 688, a vocabulary of
10,000, on 16 sequences of 128 tokens. A step is forward, loss, backward, clipping and AdamW, in
float32.

Each contender runs in its own process. They take steps in turn, several times, so that a busy
moment of the machine slows down all of them; the fastest steps are compared. Peak memory is that of
the process, minus its memory before the first step.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from staff.catalogue.patches import load_alternates, patched
from staff.paths import ROOT, SOLUTION

VOCAB, CONTEXT, D_MODEL, LAYERS, HEADS, D_FF, BATCH = 10_000, 128, 256, 4, 8, 688, 16
LR, BETAS, WEIGHT_DECAY, MAX_NORM = 1e-3, (0.9, 0.95), 0.1, 1.0
BOUNDS = {"textbook": 1.10, "fast": 0.95}
"""The largest ratio that a step of each form should have to a step of the eager Llama."""

Step = Callable[[Tensor, Tensor], None]


def solution_step() -> Step:
    """Make a training step from the solution's own model, loss, clipping and optimizer."""
    from cs336_basics.adamw import AdamW
    from cs336_basics.cross_entropy import cross_entropy
    from cs336_basics.gradient_clipping import clip_gradients
    from cs336_basics.transformer import TransformerLM

    model = TransformerLM(VOCAB, CONTEXT, D_MODEL, LAYERS, HEADS, D_FF, rope_theta=10_000.0)
    optimizer = AdamW(model.parameters(), lr=LR, betas=BETAS, weight_decay=WEIGHT_DECAY)

    def step(x: Tensor, y: Tensor) -> None:
        loss = cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model.parameters(), MAX_NORM)
        optimizer.step()

    return step


def llama_step(attention: str) -> Step:
    """Make a training step of transformers' Llama, with PyTorch's loss, clipping and AdamW."""
    from transformers.models.llama.modeling_llama import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=D_MODEL,
        intermediate_size=D_FF,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
        attn_implementation=attention,
    )
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=BETAS, weight_decay=WEIGHT_DECAY)

    def step(x: Tensor, y: Tensor) -> None:
        logits = model(x, use_cache=False).logits
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()

    return step


CONTENDERS: dict[str, Callable[[], Step]] = {
    "textbook": solution_step,
    "fast": solution_step,
    "eager": lambda: llama_step("eager"),
    "sdpa": lambda: llama_step("sdpa"),
}


def serve(contender: str, threads: int) -> None:
    """Time one step for each line of standard input; write its seconds and the peak memory."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    step = CONTENDERS[contender]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ids = torch.randint(VOCAB, (BATCH, CONTEXT + 1))
    for _ in sys.stdin:
        start = time.perf_counter()
        step(ids[:, :-1], ids[:, 1:])
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        sys.stdout.write(json.dumps([seconds, peak * 1024]) + "\n")
        sys.stdout.flush()


def measure(rounds: int, threads: int) -> dict[str, tuple[float, float]]:
    """Let the contenders take steps in turn; return each one's fastest seconds and peak bytes."""
    arguments = ["-m", "benchmarks.training_step", "--threads", str(threads), "--serve"]
    with TemporaryDirectory(prefix="fast-") as scratch:
        fast = [patch for patch in load_alternates() if patch.id.startswith("fast-")]
        folders = {"fast": patched(fast, SOLUTION, Path(scratch) / "solution")}
        processes = {
            name: subprocess.Popen(
                [sys.executable, *arguments, name],
                cwd=folders.get(name, SOLUTION),  # so that this package is imported
                env={"PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "PASSIVE"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in CONTENDERS
        }
        return _in_turn(processes, rounds)


def _in_turn(
    processes: Mapping[str, subprocess.Popen[str]], rounds: int
) -> dict[str, tuple[float, float]]:
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in processes}
    for _ in range(rounds + 2):
        for name, process in processes.items():
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("step\n")
            process.stdin.flush()
            taken[name].append(tuple(json.loads(process.stdout.readline())))
    for process in processes.values():
        process.communicate()
    # The first two steps don't count: they fill caches and make the optimizer's state.
    return {name: (min(s for s, _ in t[2:]), t[-1][1]) for name, t in taken.items()}


def main() -> None:
    """Measure, and print a table; exit with status 1 if a ratio is above its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="measured steps of each contender")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--serve", choices=CONTENDERS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(chosen.serve, chosen.threads)
        return
    measured = measure(chosen.rounds, chosen.threads)
    table = Table("a training step", "ms", "÷ eager", "bound", "÷ sdpa", "peak MB", "÷ eager")
    missed = False
    eager, sdpa = measured["eager"], measured["sdpa"]
    for name, (seconds, peak) in measured.items():
        ratio = seconds / eager[0]
        missed |= ratio > BOUNDS.get(name, ratio)
        bound = f"≤ {BOUNDS[name]:.2f}" if name in BOUNDS else ""
        row = (f"{seconds * 1e3:.0f}", f"{ratio:.2f}", bound, f"{seconds / sdpa[0]:.2f}")
        table.add_row(name, *row, f"{peak / 1e6:.0f}", f"{peak / eager[1]:.2f}")
    Console().print(table)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
