"""BPE training, compared with a textbook version and with Hugging Face tokenizers."""

import contextlib
from pathlib import Path

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from cs336_basics.tokenizer import Tokenizer
from cs336_basics.train_bpe import train_bpe
from labs.stories import SEPARATOR
from staff.tests.solution.texts import read, training, write_stories


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A text of 30,000 characters of stories."""
    return read(write_stories(tmp_path_factory.mktemp("stories") / "stories.txt", 60_000))[:30_000]


def test_training_is_the_textbooks(text: str, tmp_path: Path) -> None:
    """Catches a merge that is not the greatest of the most frequent pairs."""
    small = tmp_path / "small.txt"
    small.write_text(text, encoding="utf-8", newline="")
    _, merges = train_bpe(small, 257 + 150, [SEPARATOR])
    assert merges == [max(best) for best in training(text, 150)]


def test_training_agrees_with_hugging_face(text: str, tmp_path: Path) -> None:
    """Catches a textbook version that doesn't count a merge of `tokenizers` as most frequent.

    `tokenizers` breaks ties in its own way, so its merges may differ after the first tie.
    """
    theirs = tokenizers.Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=257 + 100,
        special_tokens=[SEPARATOR],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator(text[:20_000].split(SEPARATOR), trainer)
    theirs.save(str(tmp_path / "tokenizer.json"))
    merges = Tokenizer.load_hugging_face(tmp_path / "tokenizer.json").merges
    assert len(merges) == 100
    steps = training(text[:20_000], 100)
    best = next(steps)
    for chosen in merges:
        assert chosen in best
        with pytest.raises(StopIteration) if chosen is merges[-1] else contextlib.nullcontext():
            best = steps.send(chosen)


def test_a_vocabulary_that_is_too_small(tmp_path: Path) -> None:
    """Catches an error without the smallest vocab_size, or a special token counted twice."""
    (tmp_path / "text").write_text("tea")
    with pytest.raises(ValueError, match="vocab_size is 256; bytes and special tokens need 257"):
        train_bpe(tmp_path / "text", 256, ["<e>", "<e>"])
