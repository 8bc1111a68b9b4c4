"""The tokenizer: it encodes a text, whole or piece by piece, and decodes ids."""

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
    """Each pre-token is split into bytes, and the bytes are merged."""
    cases.check(adapters.probing("bpe_encoding"))


@task("tokenizer")
def test_merges_are_made_in_order(adapters, cases):
    """Merges are applied in the order of training, not longest first or from left to right."""
    cases.check(adapters.probing("bpe_encoding"))


@task("tokenizer")
def test_merges_stay_inside_pre_tokens(adapters, cases):
    """GPT-2's pattern splits the text into pre-tokens, and no merge joins two of them."""
    cases.check(adapters.probing("bpe_encoding"))


@task("tokenizer")
def test_text_is_not_changed(adapters, cases):
    """Line ends, capitals and accents are encoded unchanged."""
    cases.check(adapters.probing("bpe_encoding"))


@task("tokenizer")
def test_special_tokens_stay_whole(adapters, cases):
    """A special token becomes one id anywhere in a text, and the text around it is encoded."""
    cases.check(adapters.probing("bpe_encoding"))


@task("tokenizer")
def test_the_longest_special_token_wins(adapters, cases):
    """If several special tokens begin at the same character, the longest one is used."""
    cases.check(adapters.probing("bpe_encoding"))


@task("tokenizer")
def test_ids_are_those_of_the_vocabulary(adapters, cases):
    """Ids come from the vocabulary: a byte's id may differ from its value."""
    cases.check(adapters.probing("bpe_encoding"))


@task("tokenizer")
def test_special_tokens_are_appended(adapters, cases):
    """A special token that is not in the vocabulary gets the next id."""
    cases.check(adapters.probing("bpe_encoding"))


@ours
@task("tokenizer")
def test_the_callers_vocabulary_stays_as_it_was(adapters):
    """Adding a special token does not change the vocabulary or the lists of the caller."""
    before = {"text": f"the miller{END}", "merges": MERGES, "special_tokens": [END]}
    after = adapters.probe("bpe_arguments_after", **before)
    check(
        len(after["vocab"]) == 256 + len(MERGES),
        f"the caller's vocab has {len(after['vocab'])} tokens, it had {256 + len(MERGES)}",
    )
    for name in ("merges", "special_tokens"):
        check_equal(after[name], before[name], f"the caller's list `{name}` was changed")


@task("tokenizer")
def test_decoding_undoes_encoding(adapters, draw):
    """Decoding the ids of any text returns the same text."""
    drawn = [draw.integers(high, 40).tolist() for high in (128, 0xD800, 0x3000)]
    texts = [*TEXTS, *("".join(map(chr, points)) for points in drawn), f"tea \n{END}\n {END}{END}"]
    shared = {"merges": MERGES, "special_tokens": [END]}
    ids = adapters.probe("bpe_encoding", texts=texts, **shared)
    decoded = adapters.probe("bpe_decoding", ids=ids, **{**shared, "last": [END.encode()]})
    for before, after in zip(texts, decoded, strict=True):
        check_equal(after, before, "the decoded text differs from the encoded text")


@task("tokenizer")
def test_decode_matches_saved_texts(adapters, cases):
    """The bytes of all tokens are joined, then decoded; special tokens become their text."""
    cases.check(adapters.probing("bpe_decoding"))


@task("tokenizer")
def test_malformed_bytes_become_replacement_characters(adapters, cases):
    """Bytes that are not valid UTF-8 become U+FFFD: they are not dropped and raise no error."""
    cases.check(adapters.probing("bpe_decoding"))


@ours
@task("tokenizer")
def test_unknown_ids_are_refused(adapters):
    """Decoding an id that is not in the vocabulary raises KeyError."""
    size = 256 + len(MERGES)
    for token_id in (size, -1):
        error = adapters.probe("bpe_decoding_error", ids=[104, token_id], merges=MERGES)
        check(
            error == "KeyError",
            f"id {token_id} with {size} tokens raised {error}, expected KeyError",
        )


@task("tokenizer")
def test_pieces_give_the_ids_of_the_whole(adapters, cases):
    """`encode_iterable` yields the same ids as `encode`, wherever the pieces of text end."""
    cases.check(adapters.probing("bpe_pieces"))


@task("tokenizer")
def test_pieces_are_taken_as_needed(adapters):
    """`encode_iterable` yields its first id after reading fewer than half of the pieces."""
    pieces = ["The miller and ", f"the reed.{END}\n", "And they're singing,\n"] * 40
    arguments = {"pieces": pieces, "merges": MERGES, "special_tokens": [END]}
    taken = adapters.probe("bpe_pulls", **arguments)
    check(
        taken["first"] < 60,
        f"`encode_iterable` read {taken['first']} of 120 pieces before its first id",
    )


@ours
@task("tokenizer")
def test_few_pieces_are_taken(adapters):
    """`encode_iterable` reads nothing until an id is requested, then at most two lines."""
    pieces = [f"The miller and the reed, line {i}\n" for i in range(40)]
    arguments = {"pieces": pieces, "merges": MERGES, "special_tokens": [END]}
    taken = adapters.probe("bpe_pulls", **arguments)
    why = f"`encode_iterable` read {taken['made']} lines before an id was requested, expected 0"
    check(taken["made"] == 0, why)
    why = f"`encode_iterable` read {taken['first']} lines before its first id, expected at most 2"
    check(taken["first"] <= 2, why)


@task("tokenizer")
def test_memory_stays_small(adapters):
    """`encode_iterable` keeps neither the whole text nor all ids in memory."""
    piece = "The miller and the reed sing, and the river is heard.\n" * 5 + END
    arguments = {"piece": piece, "merges": MERGES, "special_tokens": [END]}
    peak = adapters.probe("bpe_memory", times=240, **arguments)
    whole = 240 * len(piece)
    why = (
        f"`encode_iterable` used {{:.0f}} bytes at once for {whole} characters, expected under half"
    )
    check(peak < whole / 2, why, peak)


@ours
@task("tokenizer")
def test_work_grows_with_the_text(adapters):
    """The work of encoding grows in proportion to the text, whole or letter by letter."""
    sentence = "The miller and the reed sing, though nobody listens but owls. "
    texts = [sentence * 4, sentence * 48]
    for by_letter, how in ((False, "whole"), (True, "letter by letter")):
        few, many = adapters.probe(
            "bpe_encoding_work", texts=texts, merges=MERGES, by_letter=by_letter
        )
        why = f"encoding {len(texts[0])} characters, {how}, runs {{:.0f}} lines of Python; "
        check(many < 24 * few, why + "a text 12 times as long runs {:.0f}, too many", few, many)


@ours
@task("tokenizer")
def test_work_grows_with_the_word(adapters):
    """The work of encoding a single word grows in proportion to its length."""
    texts = ["miller" * 20, "miller" * 240]
    for by_letter, how in ((False, "whole"), (True, "letter by letter")):
        few, many = adapters.probe(
            "bpe_encoding_work", texts=texts, merges=MERGES, by_letter=by_letter
        )
        why = f"encoding a word of {len(texts[0])} letters, {how}, runs {{:.0f}} lines of Python; "
        check(many < 36 * few, why + "a word 12 times as long runs {:.0f}, too many", few, many)


@ours
@task("tokenizer")
def test_a_file_keeps_the_tokenizer(adapters):
    """`load` restores the tokenizer that `save` wrote, and the file is JSON."""
    check_file(adapters, ("save", "load"))


@ours
@task("tokenizer")
def test_a_hugging_face_file_keeps_the_tokenizer(adapters):
    """`load_hugging_face` restores what `save_hugging_face` wrote, in Hugging Face's format."""
    found = check_file(adapters, ("save_hugging_face", "load_hugging_face"))
    model = found.get("model", {})
    check(
        model.get("type") == "BPE",
        f"the model's type in the file is {model.get('type')!r}, expected 'BPE'",
    )
    check_equal(
        model["vocab"].get("Ġthe"),
        258,
        "the id of 'Ġthe', which is the token ' the', is wrong in the file",
    )
    stand_for_themselves = {*range(ord("!"), 0x7F), *range(ord("¡"), 0xAD), *range(ord("®"), 256)}
    others = iter(range(0x100, 0x200))
    for byte in range(256):
        letter = chr(byte if byte in stand_for_themselves else next(others))
        why = f"the id of {letter!r}, which is the byte {byte}, is wrong in the file"
        check_equal(model["vocab"].get(letter), byte, why)
    added = [token["content"] for token in found["added_tokens"]]
    check_equal(added, [END, "<e>"], "`added_tokens` in the file are not the special tokens")


@ours
@task("tokenizer")
def test_a_hugging_face_file_is_read(adapters):
    """`load_hugging_face` reads a file of another program, with other ids and merges."""
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
    check_equal(found, [[*(vocab[name] for name in names), 0]], "the ids are not those in the file")


def check_file(adapters, methods):
    """Write and read a tokenizer, compare its ids and texts, and return the file's content."""
    texts = [*TEXTS, f"the{END}<e> the <e>"]
    shared = {"symbol": TOKENIZER, "merges": MERGES, "special_tokens": [END, "<e>"]}
    seen = adapters.probe("bpe_files", methods=methods, texts=texts, **shared)
    check_equal(
        seen["after"], seen["before"], "the loaded tokenizer gives other ids than the saved one"
    )
    check_equal(
        seen["decoded"], texts, "the loaded tokenizer does not decode ids to the encoded texts"
    )
    return json.loads(seen["content"])
