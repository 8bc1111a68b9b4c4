"""The tokenizer's time and memory, compared with Hugging Face `tokenizers` and `tiktoken`.

    python -m benchmarks.tokenizer               # 20 MB of stories, 10,000 tokens
    python -m benchmarks.tokenizer --large 1000  # how much memory it takes to encode 1 GB

All contenders get the same text. For encoding, all use the merges that the solution learned. Each
measurement runs in its own process, which may use all cores. The contenders take turns, and the
median time counts. Memory is measured in a separate run: the peak of the process and its children,
minus the memory that the process had just before it started the work.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
SOLUTION = ROOT / "staff" / "solution"
VOCAB_SIZE = 10_000
SPECIAL = "<|endoftext|>"
PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
REFERENCES = {
    "train_solution": ("train_hugging_face",),
    "encode_solution": ("encode_hugging_face", "encode_tiktoken"),
}
"""The contenders with which each task of the solution is compared."""
AIMS = {"train_solution": 3.0, "encode_solution": 5.0}
"""The largest ratio that the solution's time should have to a contender's."""
LARGE_AIM = 200
"""The memory in MB that encoding a file of any size should need at most."""


def train_solution(folder: Path) -> Callable[[], object]:
    """Train with the solution, in as many processes as it chooses."""
    from cs336_basics.tokenizer import Tokenizer
    from cs336_basics.train_bpe import train_bpe

    def run() -> None:
        vocab, merges = train_bpe(folder / "stories.txt", VOCAB_SIZE, [SPECIAL])
        Tokenizer(vocab, merges, [SPECIAL]).save_hugging_face(folder / "tokenizer.json")

    return run


def train_hugging_face(folder: Path) -> Callable[[], object]:
    """Train with `tokenizers`, on all cores."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=[SPECIAL],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return lambda: tokenizer.train([str(folder / "stories.txt")], trainer)


def encode_solution(folder: Path) -> Callable[[], object]:
    """Encode with the solution: one process, the text as one string, with an empty memo."""
    from cs336_basics.tokenizer import Tokenizer

    tokenizer, text = Tokenizer.load_hugging_face(folder / "tokenizer.json"), _text(folder)
    return lambda: tokenizer.encode(text)


def encode_hugging_face(folder: Path) -> Callable[[], object]:
    """Encode with `tokenizers`: all cores, story by story, as one long string takes far longer."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    stories = _text(folder).split(f"{SPECIAL}\n")
    return lambda: [e.ids for e in tokenizer.encode_batch_fast([s + SPECIAL for s in stories])]


def encode_tiktoken(folder: Path) -> Callable[[], object]:
    """Encode with `tiktoken`: the text as one string."""
    import tiktoken

    from cs336_basics.tokenizer import Tokenizer

    vocab = Tokenizer.load_hugging_face(folder / "tokenizer.json").vocab
    ranks = {token: i for i, token in vocab.items() if token != SPECIAL.encode()}
    encoding = tiktoken.Encoding(
        "stories", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={SPECIAL: len(ranks)}
    )
    text = _text(folder)
    return lambda: encoding.encode(text, allowed_special="all")


def encode_stream(folder: Path) -> Callable[[], object]:
    """Encode a file with the solution, line by line, and write the ids at once, two bytes each."""
    from cs336_basics.tokenizer import Tokenizer

    def run() -> None:
        tokenizer = Tokenizer.load_hugging_face(folder / "tokenizer.json")
        with (
            open(folder / "large.txt", encoding="utf-8", newline="") as text,
            open(os.devnull, "wb") as out,
        ):
            ids = tokenizer.encode_iterable(text)
            while block := array("H", islice(ids, 1 << 16)):
                block.tofile(out)

    return run


def main() -> None:
    """Measure, and print a table; exit with status 1 if an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=20, help="size of the text")
    parser.add_argument("--rounds", type=int, default=3, help="measured runs of each contender")
    parser.add_argument("--large", type=int, metavar="MB", help="only encode a file of this size")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _write_stories(folder / "stories.txt", chosen.megabytes)
        if chosen.large is None:
            sys.exit(0 if _compare(folder, chosen.megabytes, chosen.rounds) else 1)
        _measure("train_solution", folder)
        _write_stories(folder / "large.txt", chosen.large)
        seconds, memory = _measure("encode_stream", folder, watched=True)
        print(  # noqa: T201 - a program
            f"{chosen.large} MB in {seconds:.0f} s, {chosen.large / seconds:.1f} MB/s; "
            f"{memory:.0f} MB of memory beyond the imports (aim: {LARGE_AIM})"
        )
        sys.exit(0 if memory < LARGE_AIM else 1)


def _compare(folder: Path, megabytes: int, rounds: int) -> bool:
    names = ["train_solution", "train_hugging_face"]
    names += ["encode_solution", "encode_hugging_face", "encode_tiktoken"]
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            seconds[name].append(_measure(name, folder)[0])
    memory = {name: _measure(name, folder, watched=True)[1] for name in names}
    median = {name: statistics.median(taken) for name, taken in seconds.items()}
    title = f"{megabytes} MB of stories, {VOCAB_SIZE} tokens, {os.cpu_count()} cores"
    table = Table(
        "",
        "seconds",
        "MB/s",
        "MB of memory",
        "time ÷ theirs",
        "aim",
        "memory ÷ theirs",
        title=title,
    )
    good = True
    for name in names:
        others = REFERENCES.get(name, ())
        ratios = [median[name] / median[other] for other in others]
        good &= all(ratio <= AIMS[name] for ratio in ratios)
        table.add_row(
            name,
            f"{median[name]:.2f}",
            f"{megabytes / median[name]:.1f}",
            f"{memory[name]:.0f}",
            ", ".join(f"{ratio:.2f} × {o}" for ratio, o in zip(ratios, others, strict=True)),
            f"≤ {AIMS[name]:g}" if others else "",
            ", ".join(f"{memory[name] / memory[other]:.2f}" for other in others),
        )
    Console(width=140).print(table)
    return good


def _measure(name: str, folder: Path, *, watched: bool = False) -> tuple[float, float]:
    """Run one contender in its own process; return its seconds and its memory in MB.

    The memory is only measured if `watched` is true, since watching takes time.
    """
    # Python searches the working folder first, so that `cs336_basics` is the solution's package.
    program = "import sys; from benchmarks.tokenizer import run_one; run_one(*sys.argv[1:])"
    command = [sys.executable, "-c", program, name, str(folder)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "true"}
    with subprocess.Popen(
        command,
        cwd=SOLUTION,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdin
        assert running.stdout
        assert running.stdout.readline() == "ready\n", f"{name} did not start"
        before = most = _memory(running.pid)
        running.stdin.write("go\n")
        running.stdin.flush()
        while watched and running.poll() is None:
            most = max(most, _memory(running.pid))
            time.sleep(0.01)
        seconds = running.stdout.readline()
    return float(seconds), (most - before) / 1e6


def _memory(pid: int) -> int:
    """Return the resident memory of a process and its children, in bytes."""
    try:
        process = psutil.Process(pid)
        return sum(p.memory_info().rss for p in (process, *process.children(recursive=True)))
    except psutil.Error:
        return 0


def run_one(name: str, folder: str) -> None:
    """Prepare one contender, wait for a line of input, run, and print the seconds.

    Each measured process runs this function.
    """
    run: Callable[[], object] = globals()[name](Path(folder))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    start = time.perf_counter()
    result = run()
    sys.stdout.write(f"{time.perf_counter() - start}\n")
    sys.stdout.flush()
    del result
    os._exit(0)  # skip the clean-up, which is not measured


def _text(folder: Path) -> str:
    return (folder / "stories.txt").read_bytes().decode()


def _write_stories(path: Path, megabytes: int) -> None:
    from labs.stories import text_of

    text: Iterable[str] = text_of(megabytes * 1_000_000, seed=1)
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.writelines(text)


if __name__ == "__main__":
    main()
