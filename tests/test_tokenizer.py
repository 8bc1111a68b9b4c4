"""The tokenizer: it encodes text, whole or in pieces, and decodes ids."""

import json

from tests.harness import ours, task
from tests.harness.compare import check, check_equal
from tests.harness.recipes import File

TOKENIZER = "cs336_basics.tokenizer:Tokenizer"
END = "<|endoftext|>"
MERGES = [
    (one.encode(), other.encode())
    for one, other in (
        ("h", "e"), (" ", "t"), (" t", "he"), ("i", "n"), ("e", "r"), ("l", "l"), ("o", "u"),
        ("m", "i"), ("mi", "ll"), ("mill", "er"), (" ", "a"), ("r", "e"), ("n", "d"), (" a", "nd"),
        ("e", "l"),
    )
]  # fmt: skip
TEXTS = [
    "The miller and the reed; don't they sing? They'll ring a bell.  \n\n  And 1234 more...",
    "naïve дом 山水 👩‍🌾❤️ e\u0301 ﬁ \ufeff \u2028\u00a0\r\n\t\x00\x1c\x85 _x_",
    "   \n \n",
    "a" * 300,
]


@task("tokenizer")
def test_encode_matches_saved_ids(adapters, cases):
    """Each pre-token becomes UTF-8 bytes, and the merges are applied to these."""
    cases.check(adapters.probing("bpe_encoding"))


@task("tokenizer")
def test_merges_are_made_in_order(adapters, cases):
    """Merges are applied in the order of training, not longest first and not leftmost first."""
    cases.check(adapters.probing("bpe_encoding"))


@task("tokenizer")
def test_merges_stay_inside_pre_tokens(adapters, cases):
    """The text is first split by GPT-2's pattern; no merge crosses a pre-token."""
    cases.check(adapters.probing("bpe_encoding"))


@task("tokenizer")
def test_text_is_not_changed(adapters, cases):
    """The text is not normalised: line ends, capitals and accents are encoded unchanged."""
    cases.check(adapters.probing("bpe_encoding"))


@task("tokenizer")
def test_special_tokens_stay_whole(adapters, cases):
    """A special token becomes one id at any position, and the text around it is encoded."""
    cases.check(adapters.probing("bpe_encoding"))


@task("tokenizer")
def test_the_longest_special_token_wins(adapters, cases):
    """If several special tokens begin at the same position, the longest is taken."""
    cases.check(adapters.probing("bpe_encoding"))


@task("tokenizer")
def test_ids_are_those_of_the_vocabulary(adapters, cases):
    """The ids are those of the vocabulary; the id of a byte need not be its value."""
    cases.check(adapters.probing("bpe_encoding"))


@task("tokenizer")
def test_special_tokens_are_appended(adapters, cases):
    """A special token that is not in the vocabulary gets the next id."""
    cases.check(adapters.probing("bpe_encoding"))


@ours
@task("tokenizer")
def test_the_callers_vocabulary_stays_as_it_was(adapters):
    """The tokenizer does not change the vocabulary, merges and special tokens of the caller."""
    before = {"text": f"the miller{END}", "merges": MERGES, "special_tokens": [END]}
    after = adapters.probe("bpe_arguments_after", **before)
    check(
        len(after["vocab"]) == 256 + len(MERGES),
        f"the caller's vocabulary of {256 + len(MERGES)} has {len(after['vocab'])} tokens now",
    )
    for name in ("merges", "special_tokens"):
        check_equal(after[name], before[name], f"the caller's {name} were changed")


@task("tokenizer")
def test_decoding_undoes_encoding(adapters, draw):
    """Decoding the ids of any text gives the same text, character by character."""
    drawn = [draw.integers(high, 40).tolist() for high in (128, 0xD800, 0x3000)]
    texts = [*TEXTS, *("".join(map(chr, points)) for points in drawn), f"tea \n{END}\n {END}{END}"]
    shared = {"merges": MERGES, "special_tokens": [END]}
    ids = adapters.probe("bpe_encoding", texts=texts, **shared)
    decoded = adapters.probe("bpe_decoding", ids=ids, **{**shared, "last": [END.encode()]})
    for before, after in zip(texts, decoded, strict=True):
        check_equal(after, before, "the decoded text is not the one that was encoded")


@task("tokenizer")
def test_decode_matches_saved_texts(adapters, cases):
    """The bytes of all tokens are joined before they are decoded; special tokens become text."""
    cases.check(adapters.probing("bpe_decoding"))


@task("tokenizer")
def test_malformed_bytes_become_replacement_characters(adapters, cases):
    """Bytes that are not valid UTF-8 become U+FFFD; they are not dropped and raise no error."""
    cases.check(adapters.probing("bpe_decoding"))


@ours
@task("tokenizer")
def test_unknown_ids_are_refused(adapters):
    """Decoding an id that is not in the vocabulary raises KeyError."""
    size = 256 + len(MERGES)
    for token_id in (size, -1):
        error = adapters.probe("bpe_decoding_error", ids=[104, token_id], merges=MERGES)
        check(error == "KeyError", f"id {token_id} of {size} raised {error}, expected KeyError")


@task("tokenizer")
def test_pieces_give_the_ids_of_the_whole(adapters, cases):
    """`encode_iterable` yields the ids of `encode`, wherever the pieces end."""
    cases.check(adapters.probing("bpe_pieces"))


@task("tokenizer")
def test_pieces_are_taken_as_needed(adapters):
    """`encode_iterable` yields its first id long before it has read all pieces."""
    pieces = ["The miller and ", f"the reed.{END}\n", "And they're singing,\n"] * 40
    arguments = {"pieces": pieces, "merges": MERGES, "special_tokens": [END]}
    taken = adapters.probe("bpe_pulls", **arguments)
    check(
        taken["first"] < 60,
        f"{taken['first']} of 120 pieces were taken before the first id came out",
    )


@ours
@task("tokenizer")
def test_few_pieces_are_taken(adapters):
    """`encode_iterable` reads a piece only when it needs one: two lines for the first id."""
    pieces = [f"The miller and the reed, line {i}\n" for i in range(40)]
    arguments = {"pieces": pieces, "merges": MERGES, "special_tokens": [END]}
    taken = adapters.probe("bpe_pulls", **arguments)
    check(taken["made"] == 0, f"{taken['made']} pieces were taken before an id was asked for")
    check(taken["first"] <= 2, f"{taken['first']} lines were taken before the first id came out")


@task("tokenizer")
def test_memory_stays_small(adapters):
    """`encode_iterable` keeps neither the whole text nor all ids in memory."""
    piece = "The miller and the reed sing, and the river is heard.\n" * 5 + END
    arguments = {"piece": piece, "merges": MERGES, "special_tokens": [END]}
    peak = adapters.probe("bpe_memory", times=240, **arguments)
    whole = 240 * len(piece)
    why = f"{{:.0f}} bytes were in use at once for a text of {whole} characters"
    check(peak < whole / 2, why, peak)


@ours
@task("tokenizer")
def test_work_grows_with_the_text(adapters):
    """A text of 12 times the length takes about 12 times the work, whole or letter by letter."""
    sentence = "The miller and the reed sing, though nobody listens but owls. "
    texts = [sentence * 4, sentence * 48]
    for by_letter, how in ((False, "whole"), (True, "letter by letter")):
        few, many = adapters.probe(
            "bpe_encoding_work", texts=texts, merges=MERGES, by_letter=by_letter
        )
        why = f"a text of {len(texts[0])} characters, {how}, runs {{:.0f}} lines of Python; "
        check(many < 24 * few, why + "one 12 times as long runs {:.0f}", few, many)


@ours
@task("tokenizer")
def test_work_grows_with_the_word(adapters):
    """The work for a word grows about in proportion to its length."""
    texts = ["miller" * 20, "miller" * 240]
    for by_letter, how in ((False, "whole"), (True, "letter by letter")):
        few, many = adapters.probe(
            "bpe_encoding_work", texts=texts, merges=MERGES, by_letter=by_letter
        )
        why = f"a word of {len(texts[0])} letters, {how}, runs {{:.0f}} lines of Python; "
        check(many < 36 * few, why + "one 12 times as long runs {:.0f}", few, many)


@ours
@task("tokenizer")
def test_a_file_keeps_the_tokenizer(adapters):
    """`save` writes a JSON file, from which `load` makes a tokenizer with the same ids."""
    check_file(adapters, ("save", "load"))


@ours
@task("tokenizer")
def test_a_hugging_face_file_keeps_the_tokenizer(adapters):
    """`save_hugging_face` writes the `tokenizer.json` form, which `load_hugging_face` reads."""
    found = check_file(adapters, ("save_hugging_face", "load_hugging_face"))
    model = found.get("model", {})
    check(model.get("type") == "BPE", f"the model's type is {model.get('type')!r}")
    check_equal(model["vocab"].get("Ġthe"), 258, "the id of ' the' is wrong in the file")
    stand_for_themselves = {*range(ord("!"), 0x7F), *range(ord("¡"), 0xAD), *range(ord("®"), 256)}
    others = iter(range(0x100, 0x200))
    for byte in range(256):
        letter = chr(byte if byte in stand_for_themselves else next(others))
        told = f"byte {byte} is written as {letter!r}, whose id in the file is wrong"
        check_equal(model["vocab"].get(letter), byte, told)
    check_equal([t["content"] for t in found["added_tokens"]], [END, "<e>"], "the added tokens")


@ours
@task("tokenizer")
def test_a_hugging_face_file_is_read(adapters):
    """`load_hugging_face` reads files of other programs, with other ids and merges as texts."""
    letters = [chr(i) for i in range(33, 127)]
    vocab = {letter: i + 5 for i, letter in enumerate([*letters, "Ġ", "Ċ", "Ã", "©", "th", "Ġth"])}
    added = {"id": 0, "content": END, "special": True, "normalized": False}
    added |= {"single_word": False, "lstrip": False, "rstrip": False}
    before = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    content = {
        "version": "1.0",
        "added_tokens": [added],
        "normalizer": None,
        "pre_tokenizer": before,
        "decoder": before,
        "model": {"type": "BPE", "vocab": {**vocab, END: 0}, "merges": ["t h", "Ġ th"]},
    }
    file = File(json.dumps(content).encode(), ".json")
    arguments = {"symbol": TOKENIZER, "method": "load_hugging_face", "path": file}
    found = adapters.probe("bpe_reading", **arguments, texts=[f"that th\né{END}"])
    names = ["th", "a", "t", "Ġth", "Ċ", "Ã", "©"]
    check_equal(found, [[*(vocab[name] for name in names), 0]], "the ids of the file are not used")


def check_file(adapters, methods):
    """Write and read a tokenizer, compare the ids and texts, and return the content of the file."""
    texts = [*TEXTS, f"the{END}<e> the <e>"]
    shared = {"symbol": TOKENIZER, "merges": MERGES, "special_tokens": [END, "<e>"]}
    seen = adapters.probe("bpe_files", methods=methods, texts=texts, **shared)
    check_equal(seen["after"], seen["before"], "the tokenizer that was read gives other ids")
    check_equal(seen["decoded"], texts, "the tokenizer that was read gives other texts")
    return json.loads(seen["content"])
