"""Pre-tokenisation: text is split into pre-tokens, and no merge joins bytes of two pre-tokens.

A text contains the same pre-token many times. Training counts the pre-tokens first, and then works
on each different one only once. This makes training fast enough for a laptop.
"""

import os
from collections import Counter
from collections.abc import Sequence


def pretokens(text: str) -> list[str]:
    r"""Split text without special tokens into pre-tokens; joined, they are the text again.

    The pre-tokens are the successive matches of GPT-2's pattern (Radford et al. 2019):
    `'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`. The `regex` package
    supports the classes `\p{L}` and `\p{N}` of letters and numbers; `re` does not.
    """
    raise NotImplementedError("train_bpe: handout §4.2")


def words(text: str) -> list[str]:
    """Split text without special tokens into words; joined, they are the text again.

    A word is a run of visible characters with all white space before it. Its pre-tokens do not
    depend on the text around it. A text repeats its words often, so results for words can be
    cached.
    """
    raise NotImplementedError("train_bpe: handout §4.2")


class Splitter:
    """Splits text at special tokens, and finds other indices at which a text may be split.

    Args:
        special_tokens: strings that are one token each; a document ends at each of them.

    Attributes:
        longest: number of characters of the longest special token; 0 if there is none.

    Raises:
        ValueError: a special token is empty.
    """

    longest: int

    def __init__(self, special_tokens: Sequence[str] = ()) -> None:
        raise NotImplementedError("train_bpe: handout §4.2")

    def split(self, text: str) -> list[str]:
        """Split a text into documents and special tokens, which alternate.

        The first and the last item are documents; a document may be empty. Special tokens are
        searched from left to right. If several begin at the same index, the longest is taken.
        """
        raise NotImplementedError("train_bpe: handout §4.2")

    def last_cut(self, text: str, start: int = 0) -> int:
        """Find the last index at which `text` may be split, whatever text follows.

        The two sides, processed separately, have the same documents, special tokens and pre-tokens
        as together.

        Args:
            text: any text.
            start: the smallest allowed index; the text before it is still used as context.

        Returns:
            The index; 0 if there is none.
        """
        raise NotImplementedError("train_bpe: handout §4.2")


def count_pretokens(
    input_path: str | os.PathLike[str],
    special_tokens: Sequence[str] = (),
    num_processes: int | None = None,
) -> Counter[bytes]:
    """Count the pre-tokens of a file; special tokens are not counted.

    The bytes of the file are not normalised: line ends are kept, and a byte that is not valid UTF-8
    counts as a separate symbol. The file is read in pieces, so the memory depends on the number of
    different pre-tokens, not on the size of the file. The counts do not depend on the number of
    processes.

    Args:
        input_path: a text file in UTF-8.
        special_tokens: strings at which documents end.
        num_processes: number of shares of the work; there are no more processes than cores. None
            means one share for each core, or fewer for a small file. The processes are spawned, so
            a program that uses several must have its main part under
            `if __name__ == "__main__":`.
    """
    raise NotImplementedError("train_bpe: handout §4.2")
