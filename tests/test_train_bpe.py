"""Training a byte-pair encoding: pre-tokens are counted, the most frequent pair is merged."""

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
    """Lines in several scripts, of unlike length, with ends of documents and white space."""
    gaps = ("\n", "\n\n  ", " \n\n\n", f"\n{END}\n")
    lines = (LINES[i * i % 6][: 5 + i % 31] + gaps[i % 4] for i in range(number))
    return "".join(lines).encode()


@task("train_bpe")
def test_train_bpe_matches_saved_merges(adapters, cases):
    """The most frequent pair becomes a token, again and again; documents end at special tokens."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_ties_go_to_the_greater_pair(adapters, cases):
    """Of pairs with the same count, the one whose tuple of bytes is greatest comes first."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_pairs_that_overlap_all_count(adapters, cases):
    """`aaaa` holds `aa` three times, and becomes `aa aa`."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_special_tokens_end_documents(adapters, cases):
    """Nothing in a special token is counted, and no pair reaches across it."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_merges_stay_inside_pre_tokens(adapters, cases):
    """The text is first cut by GPT-2's pattern."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_bytes_are_taken_as_they_are(adapters, cases):
    """Line ends, accents, capitals and white space stay as the file has them."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_bytes_of_any_script(adapters, cases):
    """Characters of several bytes are learned byte by byte."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_training_ends_early_or_late(adapters, cases):
    """The vocabulary holds as many tokens as were asked for, bytes and special tokens included."""
    cases.check(adapters.probing("bpe_training"))


@task("train_bpe")
def test_the_vocabulary_holds_every_token(adapters):
    """It maps 0, 1, … to the single bytes, the special tokens and what the merges make."""
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
    """A small text fills no large vocabulary."""
    cases.check(adapters.probing("bpe_training"))


@ours
@task("train_bpe")
def test_a_special_token_twice_in_the_list(adapters):
    """It is one token."""
    arguments = {"input_path": File(b"ab ab"), "vocab_size": 258, "special_tokens": [END, END]}
    output = adapters.probe("bpe_training", **arguments)
    check_equal(output["other tokens"].count(END.encode()), 1, f"{END} stands several times")
    check_equal(output["merges"], [(b"a", b"b")], "the second one takes the place of a merge")


@ours
@task("train_bpe")
def test_bytes_that_are_no_utf8(adapters):
    """They are neither dropped nor replaced: each is a symbol like any other."""
    content = b"\xff\xfe" * 2 + b" \xff\xfe" * 4 + b" a\xc3\n\xe5\xb1\n"
    arguments = {"input_path": File(content), "vocab_size": 258}
    output = adapters.probe("bpe_training", **arguments)
    expected = [(b"\xff", b"\xfe"), (b" ", b"\xff\xfe")]
    check_equal(output["merges"], expected, "the merges of invalid bytes are wrong")


@ours
@task("train_bpe")
def test_a_vocabulary_without_room(adapters):
    """256 bytes and a special token need 257 ids."""
    why = "256 bytes and one special token are more than 256 tokens"
    arguments = {"input_path": File(b"tea"), "vocab_size": 256, "special_tokens": [END]}
    adapters.run_train_bpe.error(why, **arguments)


@ours
@task("train_bpe")
def test_any_number_of_processes(adapters):
    """Where the file is divided changes nothing, in the middle of a character or a document."""
    content = many_lines(300) + f"x{END}".encode() * 300
    arguments = {"input_path": File(content), "vocab_size": 1000, "special_tokens": [END]}
    one = adapters.probe("bpe_training", **arguments, options={"num_processes": 1})
    several = adapters.probe("bpe_training", **arguments, options={"num_processes": 7})
    check_equal(several, one, "7 processes give another result than one")


@ours
@task("train_bpe")
def test_processes_where_no_document_ends(adapters):
    """A file without special tokens is divided where no pre-token is cut, or not at all."""
    content = many_lines(300).replace(END.encode(), b"don't  \n\n don't") + b"na\xc3\xafve" * 99
    arguments = {"input_path": File(content), "vocab_size": 1000}
    one = adapters.probe("bpe_training", **arguments, options={"num_processes": 1})
    several = adapters.probe("bpe_training", **arguments, options={"num_processes": 5})
    check_equal(several, one, "5 processes give another result than one")


@ours
@task("train_bpe")
def test_a_merge_touches_few_words(adapters):
    """The counts of pairs are kept, and updated only in the words that hold the merged pair."""
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
