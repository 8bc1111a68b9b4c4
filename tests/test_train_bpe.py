"""Training of a byte-pair encoding: the most frequent pair in pre-tokens is merged."""

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
    """Return lines of several scripts and lengths, with special tokens and white space."""
    gaps = ("\n", "\n\n  ", " \n\n\n", f"\n{END}\n")
    lines = (LINES[i * i % 6][: 5 + i % 31] + gaps[i % 4] for i in range(number))
    return "".join(lines).encode()


@task("train_bpe")
def test_train_bpe_matches_saved_merges(adapters, cases):
    """In each step, the most frequent pair of tokens becomes a new token."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_ties_go_to_the_greater_pair(adapters, cases):
    """Of pairs with equal counts, the one whose tuple of bytes is greatest is merged."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_pairs_that_overlap_all_count(adapters, cases):
    """Overlapping pairs all count: `aaaa` contains `a a` three times, and becomes `aa aa`."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_special_tokens_end_documents(adapters, cases):
    """The bytes of a special token are not counted, and no pair extends across it."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_merges_stay_inside_pre_tokens(adapters, cases):
    """GPT-2's pattern splits the text into pre-tokens, and no merge joins two of them."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_bytes_are_taken_as_they_are(adapters, cases):
    """Line ends, accents, capitals and white space of the file are not changed."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_bytes_of_any_script(adapters, cases):
    """Characters of several bytes are merged byte by byte."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_training_ends_early_or_late(adapters, cases):
    """The vocabulary has vocab_size tokens, including bytes and special tokens."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_the_vocabulary_holds_every_token(adapters):
    """`vocab` maps 0, 1, … to the single bytes, the special tokens and the merged tokens."""
    specials = [END, "<|pad|>"]
    arguments = {"input_path": File(many_lines(60)), "vocab_size": 300, "special_tokens": specials}
    output = adapters.run_train_bpe(**arguments)
    check(
        isinstance(output, tuple) and len(output) == 2,
        "`run_train_bpe` does not return a tuple (vocab, merges)",
    )
    vocab, merges = output
    check(type(vocab) is dict, f"`vocab` is a {type(vocab).__name__}, expected a dict")
    check(type(merges) is list, f"`merges` is a {type(merges).__name__}, expected a list")
    check_equal(sorted(vocab), list(range(300)), "the ids in `vocab` are not 0 to 299")
    bad = next((v for v in vocab.values() if not isinstance(v, bytes)), None)
    check(bad is None, f"`vocab` contains the token {bad!r}, expected only bytes")
    made = [one + other for one, other in merges]
    expected = {*(bytes([i]) for i in range(256)), *made, *(s.encode() for s in specials)}
    missing = sorted(expected - set(vocab.values()))
    check(not missing, f"these tokens are missing in `vocab`: {missing[:3]}")
    check(
        len(merges) == 42,
        f"there are {len(merges)} merges, expected 300 - 256 bytes - 2 special tokens = 42",
    )


@ours
@task("train_bpe")
def test_training_ends_when_no_pair_is_left(adapters, cases):
    """Training ends when no pair is left, even with fewer tokens than vocab_size."""
    cases.check(adapters.probing("bpe_training"))


@ours
@task("train_bpe")
def test_a_special_token_twice_in_the_list(adapters):
    """A special token that is listed twice gets one id."""
    arguments = {"input_path": File(b"ab ab"), "vocab_size": 258, "special_tokens": [END, END]}
    output = adapters.probe("bpe_training", **arguments)
    check_equal(
        output["other tokens"].count(END.encode()),
        1,
        f"the number of ids of {END} in the vocabulary is wrong",
    )
    check_equal(
        output["merges"], [(b"a", b"b")], "the merges are wrong if a special token is listed twice"
    )


@ours
@task("train_bpe")
def test_bytes_that_are_no_utf8(adapters):
    """Bytes that are not valid UTF-8 are merged like others, not dropped or replaced."""
    content = b"\xff\xfe" * 2 + b" \xff\xfe" * 4 + b" a\xc3\n\xe5\xb1\n"
    arguments = {"input_path": File(content), "vocab_size": 258}
    output = adapters.probe("bpe_training", **arguments)
    expected = [(b"\xff", b"\xfe"), (b" ", b"\xff\xfe")]
    check_equal(output["merges"], expected, "the merges of invalid bytes are wrong")


@ours
@task("train_bpe")
def test_a_vocabulary_without_room(adapters):
    """A vocab_size below 256 plus the number of special tokens is an error."""
    why = "vocab_size is 256, and 256 bytes and one special token need 257"
    arguments = {"input_path": File(b"tea"), "vocab_size": 256, "special_tokens": [END]}
    adapters.run_train_bpe.error(why, **arguments)


@ours
@task("train_bpe")
def test_any_number_of_processes(adapters):
    """The result is the same for any num_processes, wherever the file is divided."""
    content = many_lines(300) + f"x{END}".encode() * 300
    arguments = {"input_path": File(content), "vocab_size": 1000, "special_tokens": [END]}
    one = adapters.probe("bpe_training", **arguments, options={"num_processes": 1})
    several = adapters.probe("bpe_training", **arguments, options={"num_processes": 7})
    check_equal(several, one, "num_processes=7 gives another result than num_processes=1")


@ours
@task("train_bpe")
def test_processes_where_no_document_ends(adapters):
    """The result is the same for any num_processes, also in a file without special tokens."""
    content = many_lines(300).replace(END.encode(), b"don't  \n\n don't") + b"na\xc3\xafve" * 99
    arguments = {"input_path": File(content), "vocab_size": 1000}
    one = adapters.probe("bpe_training", **arguments, options={"num_processes": 1})
    several = adapters.probe("bpe_training", **arguments, options={"num_processes": 5})
    check_equal(several, one, "num_processes=5 gives another result than num_processes=1")


@ours
@task("train_bpe")
def test_a_merge_touches_few_words(adapters):
    """A merge updates the counts of pairs only for words that contain the merged pair."""
    words = ["".join(letters) for letters in product("abcd", repeat=5)]
    file = File(" ".join(words).encode())
    few, many = adapters.probe("bpe_training_work", input_path=file, vocab_sizes=[336, 356])
    lines = (many - few) / 20
    check(
        lines < 2 * len(words),
        f"after 80 merges, another merge runs {{:.0f}} lines of Python for {len(words)} words, "
        "though it changes only few of them",
        lines,
    )
