"""BPE training: pre-tokens are counted, and the most frequent pair is merged repeatedly."""

from itertools import product

from tests.harness import ours, task
from tests.harness.compare import check, check_equal
from tests.harness.recipes import File

END = "<|endoftext|>"
LINES = (
    "Der Müller läuft über die Brücke.",
    "Мельник считает мешки: 12, 13, 14.",
    "粉屋は朝、山の水を見る。花、花、花！",
    "They're baking bread\twith 3 eggs, aren't they?  ",
    "👩‍🌾🦊 ❤️❤️  \r\n",
    "δώδεκα\u00a0μύλοι",
)


def many_lines(number):
    """Make lines in several scripts and of different lengths, with special tokens between some."""
    gaps = ("\n", "\n\n  ", " \n\n\n", f"\n{END}\n")
    lines = (LINES[i * i % 6][: 5 + i % 31] + gaps[i % 4] for i in range(number))
    return "".join(lines).encode()


@task("train_bpe")
def test_train_bpe_matches_saved_merges(adapters, cases):
    """Each merge takes the most frequent pair; documents end at special tokens."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_ties_go_to_the_greater_pair(adapters, cases):
    """If several pairs have the greatest count, the greatest tuple of bytes is merged."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_pairs_that_overlap_all_count(adapters, cases):
    """Overlapping pairs all count: `aaaa` holds `aa` three times, and becomes `aa aa`."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_special_tokens_end_documents(adapters, cases):
    """Special tokens are not counted, and no pair crosses them."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_merges_stay_inside_pre_tokens(adapters, cases):
    """The text is first split by GPT-2's pattern; no merge crosses a pre-token."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_bytes_are_taken_as_they_are(adapters, cases):
    """The bytes are not normalised: line ends, accents and capitals are counted unchanged."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_bytes_of_any_script(adapters, cases):
    """Characters of several bytes are merged from their single bytes."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_training_ends_early_or_late(adapters, cases):
    """The vocabulary has `vocab_size` tokens, including single bytes and special tokens."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_the_vocabulary_holds_every_token(adapters):
    """The vocabulary maps 0, 1, … to all single bytes, special tokens and merged tokens."""
    specials = [END, "<|pad|>"]
    arguments = {"input_path": File(many_lines(60)), "vocab_size": 300, "special_tokens": specials}
    output = adapters.run_train_bpe(**arguments)
    check(isinstance(output, tuple) and len(output) == 2, "it gives no pair (vocab, merges)")
    vocab, merges = output
    check(type(vocab) is dict, f"the vocabulary is a {type(vocab).__name__}, and no dict")
    check(type(merges) is list, f"the merges are a {type(merges).__name__}, and no list")
    check_equal(sorted(vocab), list(range(300)), "the ids are not 0 to 299")
    bad = next((v for v in vocab.values() if not isinstance(v, bytes)), None)
    check(bad is None, f"the token {bad!r} is no bytes")
    made = [one + other for one, other in merges]
    expected = {*(bytes([i]) for i in range(256)), *made, *(s.encode() for s in specials)}
    missing = sorted(expected - set(vocab.values()))
    check(not missing, f"the vocabulary lacks {missing[:3]}")
    check(
        len(merges) == 42, f"300 tokens are 256 bytes, 2 special ones and 42 merges: {len(merges)}"
    )


@ours
@task("train_bpe")
def test_training_ends_when_no_pair_is_left(adapters, cases):
    """Training ends early if no pair is left to merge."""
    cases.check(adapters.probing("bpe_training"))


@ours
@task("train_bpe")
def test_a_special_token_twice_in_the_list(adapters):
    """A special token that is listed twice gets one id."""
    arguments = {"input_path": File(b"ab ab"), "vocab_size": 258, "special_tokens": [END, END]}
    output = adapters.probe("bpe_training", **arguments)
    check_equal(output["other tokens"].count(END.encode()), 1, f"{END} stands several times")
    check_equal(output["merges"], [(b"a", b"b")], "the second one takes the place of a merge")


@ours
@task("train_bpe")
def test_bytes_that_are_no_utf8(adapters):
    """Bytes that are not valid UTF-8 are neither dropped nor replaced; they count as symbols."""
    content = b"\xff\xfe" * 2 + b" \xff\xfe" * 4 + b" a\xc3\n\xe5\xb1\n"
    arguments = {"input_path": File(content), "vocab_size": 258}
    output = adapters.probe("bpe_training", **arguments)
    expected = [(b"\xff", b"\xfe"), (b" ", b"\xff\xfe")]
    check_equal(output["merges"], expected, "the merges of invalid bytes are wrong")


@ours
@task("train_bpe")
def test_a_vocabulary_without_room(adapters):
    """A `vocab_size` below 256 plus the number of special tokens is an error."""
    why = "256 bytes and one special token are more than 256 tokens"
    arguments = {"input_path": File(b"tea"), "vocab_size": 256, "special_tokens": [END]}
    adapters.run_train_bpe.error(why, **arguments)


@ours
@task("train_bpe")
def test_any_number_of_processes(adapters):
    """The number of processes, and so the division of the file, does not change the result."""
    content = many_lines(300) + f"x{END}".encode() * 300
    arguments = {"input_path": File(content), "vocab_size": 1000, "special_tokens": [END]}
    one = adapters.probe("bpe_training", **arguments, options={"num_processes": 1})
    several = adapters.probe("bpe_training", **arguments, options={"num_processes": 7})
    check_equal(several, one, "7 processes give another result than one")


@ours
@task("train_bpe")
def test_processes_where_no_document_ends(adapters):
    """A file without special tokens is divided only between pre-tokens."""
    content = many_lines(300).replace(END.encode(), b"don't  \n\n don't") + b"na\xc3\xafve" * 99
    arguments = {"input_path": File(content), "vocab_size": 1000}
    one = adapters.probe("bpe_training", **arguments, options={"num_processes": 1})
    several = adapters.probe("bpe_training", **arguments, options={"num_processes": 5})
    check_equal(several, one, "5 processes give another result than one")


@ours
@task("train_bpe")
def test_a_merge_touches_few_words(adapters):
    """A merge updates the counts of pairs only in words that hold the merged pair."""
    words = ["".join(letters) for letters in product("abcd", repeat=5)]
    file = File(" ".join(words).encode())
    few, many = adapters.probe("bpe_training_work", input_path=file, vocab_sizes=[336, 356])
    lines = (many - few) / 20
    check(
        lines < 2 * len(words),
        f"after 80 merges, one more runs {{:.0f}} lines of Python for {len(words)} words, "
        "few of which it changes",
        lines,
    )
