"""Pre-tokenisation: text is cut into words before bytes are merged, and no merge crosses a cut.

The same word stands in a text many times, so that training need only see each word once, with
its count. That is what makes a tokenizer trainable on a laptop.
"""

import os
from collections import Counter
from collections.abc import Sequence


def pretokens(text: str) -> list[str]:
    r"""Cut text that holds no special token into pre-tokens, which joined give the text again.

    They are the successive matches of GPT-2's pattern (Radford et al. 2019):
    `'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`. The `regex` package
    knows the classes of letters and numbers of all scripts; `re` doesn't.
    """
    raise NotImplementedError("train_bpe: handout §4.2")


def words(text: str) -> list[str]:
    """Cut text that holds no special token into words, which joined give the text again.

    A word is a run of visible characters with all white space before it. Its pre-tokens are the
    same alone as inside the text, and there are far fewer different words than there are words:
    what is worked out for one can be kept for the next.
    """
    raise NotImplementedError("train_bpe: handout §4.2")


class Splitter:
    """Splits text at special tokens, and tells where it may be cut elsewhere.

    Args:
        special_tokens: strings that are tokens as they stand, and end a document.

    Attributes:
        longest: number of characters of the longest special token; 0 if there is none.

    Raises:
        ValueError: a special token is empty.
    """

    longest: int

    def __init__(self, special_tokens: Sequence[str] = ()) -> None:
        raise NotImplementedError("train_bpe: handout §4.2")

    def split(self, text: str) -> list[str]:
        """Split into documents and special tokens by turns, documents (maybe empty) at both ends.

        Special tokens are found from left to right; of several that begin at the same place, the
        longest is taken.
        """
        raise NotImplementedError("train_bpe: handout §4.2")

    def last_cut(self, text: str, start: int = 0) -> int:
        """Find the last place to cut `text`, whatever may follow it.

        Both sides, taken by themselves, have the documents, special tokens and pre-tokens that
        they have together.

        Args:
            text: any text.
            start: the first place that is allowed; what stands before it is looked at all the same.

        Returns:
            The place, or 0 where there is none.
        """
        raise NotImplementedError("train_bpe: handout §4.2")


def count_pretokens(
    input_path: str | os.PathLike[str],
    special_tokens: Sequence[str] = (),
    num_processes: int | None = None,
) -> Counter[bytes]:
    """Count the pre-tokens of a file, none of which holds any part of a special token.

    The file's bytes are taken as they are: line ends stay, and a byte that is not valid UTF-8
    counts as a symbol of its own. The file is read in pieces, so that the memory needed depends on
    how many different pre-tokens there are, not on the size of the file. The counts don't depend
    on the number of processes.

    Args:
        input_path: a text file in UTF-8.
        special_tokens: strings at which documents end.
        num_processes: into how many shares the work is divided, each for a process of its own as
            far as there are cores; None for as many as there are cores, but fewer for a small file.
            The processes are started anew, so that a program which asks for several must have
            its main part under `if __name__ == "__main__":`.
    """
    raise NotImplementedError("train_bpe: handout §4.2")
