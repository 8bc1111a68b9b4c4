"""Decoding: which tokens may be drawn, how often, and when a text ends.

The model is a `Scripted` table: it maps the last token to the logits of the next token.
"""

import math

import torch

from tests.harness import ours, task
from tests.harness.compare import check, check_close, check_equal
from tests.harness.properties import UNLIKE_ANSWERS
from tests.harness.recipes import Scripted

NEXT = "cs336_basics.decoding:next_token_logits"
DRAWS = 150


def logits_of(*probabilities):
    """Return a model that gives each token this probability, whatever the earlier tokens are."""
    row = torch.tensor(probabilities).log()
    return Scripted(row.expand(len(probabilities), -1).clone(), remembered=0)


def told(model, prompt=(0,), length=DRAWS, **settings):
    """Return arguments of `run_decode`."""
    usual = {"temperature": 1.0, "top_k": None, "top_p": None, "stop_token": None, "seed": 0}
    usual |= {"next_logits": model, "prompt": list(prompt), "max_new_tokens": length}
    return usual | settings


def check_frequencies(drawn, expected, why):
    """Check how often each token was drawn; correct draws fail once in ten million times."""
    strange = sorted(set(drawn) - {token for token, p in enumerate(expected) if p})
    check(not strange, f"{why}, a token of probability 0 was drawn: {strange[:1]}")
    for token, probability in enumerate(expected):
        low, high = bounds(len(drawn), probability, 1e-7 / len(expected))
        count = drawn.count(token)
        seen = f"{why}, token {token} is {{:.0f}} of {len(drawn)} tokens"
        check(low <= count <= high, f"{seen}, expected {low} to {high}", count)


def bounds(draws, probability, risk):
    """Return the lowest and highest likely count; others have a probability below `risk`."""
    if probability in (0, 1):
        return draws * probability, draws * probability
    successes = torch.arange(draws + 1, dtype=torch.float64)
    chances = torch.distributions.Binomial(draws, torch.tensor(probability).double())
    chances = chances.log_prob(successes).exp()
    low = int((chances.cumsum(0) < risk / 2).sum())
    return low, draws - int((chances.flip(0).cumsum(0) < risk / 2).sum())


@ours
@task("decoding")
def test_matches_saved_answers(adapters, cases):
    """If only one token is possible at each step, the answer is exactly the new tokens."""
    cases.check(adapters.run_decode)


@ours
@task("decoding")
def test_greedy_at_temperature_zero(adapters, cases):
    """At temperature 0 the most likely token is chosen, whatever top_k and top_p are."""
    cases.check(adapters.run_decode)


@ours
@task("decoding")
def test_length_and_stop_token(adapters, cases):
    """The answer has max_new_tokens tokens, or ends before the first stop token."""
    cases.check(adapters.run_decode)


@ours
@task("decoding")
def test_model_is_shown_everything(adapters, draw):
    """The model is called once for each new token, with the prompt and all new tokens so far."""
    script = Scripted(draw.normal(7, 7))
    arguments = told(script, prompt=[3, 1, 6], length=4)
    answer = adapters.run_decode.answer(arguments)
    written, shown = answer.output, answer.inputs["next_logits"]
    check(
        isinstance(written, list) and len(written) == 4,
        "the answer is not a list of max_new_tokens=4 ids",
    )
    expected = [[3, 1, 6, *written[:i]] for i in range(4)]
    check_equal(shown, expected, "the model does not get the prompt and the new tokens so far")
    check_equal(answer.inputs["prompt"], [3, 1, 6], "decoding changes the caller's prompt")


@ours
@task("decoding")
def test_temperature(adapters):
    """Logits are divided by the temperature before the softmax."""
    probabilities = [0.7, 0.2, 0.1]
    for temperature in (4.0, 0.25):
        powers = [p ** (1 / temperature) for p in probabilities]
        model = logits_of(*probabilities)
        drawn = adapters.run_decode(**told(model, temperature=temperature))
        expected = [power / sum(powers) for power in powers]
        check_frequencies(drawn, expected, f"at temperature {temperature:g}")


@ours
@task("decoding")
def test_top_k(adapters):
    """Only the top_k most likely tokens are drawn; a top_k above vocab_size excludes none."""
    model = logits_of(0.04, 0.7, 0.06, 0.2)
    drawn = adapters.run_decode(**told(model, top_k=2))
    check_frequencies(drawn, [0, 7 / 9, 0, 2 / 9], "with top_k=2")
    drawn = adapters.run_decode(**told(model, top_k=9))
    check_frequencies(drawn, [0.04, 0.7, 0.06, 0.2], "with top_k=9 and 4 tokens")


@ours
@task("decoding")
def test_top_p(adapters):
    """Only the smallest set of tokens whose probability reaches top_p is drawn."""
    probabilities = [0.13, 0.3, 0.16, 0.12, 0.15, 0.14]
    model = logits_of(*probabilities)
    for p, expected in (
        (0.45, [0, 0.3 / 0.46, 0.16 / 0.46, 0, 0, 0]),
        (0.25, [0, 1, 0, 0, 0, 0]),
        (1.0, probabilities),
    ):
        drawn = adapters.run_decode(**told(model, top_p=p))
        check_frequencies(drawn, expected, f"with probabilities {probabilities} and top_p={p}")


@ours
@task("decoding")
def test_settings_together(adapters):
    """The temperature is applied first, then top_k, then top_p to the remaining tokens."""
    model = logits_of(0.36, 0.25, 0.16, 0.09, 0.14)
    # The first two tokens have 0.78 together at temperature 0.5, and 0.61 at temperature 1.
    squares = [0.36**2, 0.25**2, 0.16**2, 0.09**2, 0.14**2]
    drawn = adapters.run_decode(**told(model, temperature=0.5, top_p=0.75))
    pair = [square / sum(squares[:2]) for square in squares[:2]]
    check_frequencies(drawn, [*pair, 0, 0, 0], "with temperature=0.5 and top_p=0.75")
    # The first two hold 0.79 of the three that are left, and 0.61 of all.
    drawn = adapters.run_decode(**told(model, top_k=3, top_p=0.7))
    pair = [0.36 / 0.61, 0.25 / 0.61]
    check_frequencies(drawn, [*pair, 0, 0, 0], "with top_k=3 and top_p=0.7")
    # The first two hold 0.3 of all, and keep their proportions where top_p takes none away.
    model = logits_of(0.25, 0.05, *[0.7 / 30] * 30)
    drawn = adapters.run_decode(**told(model, top_k=2, top_p=0.95))
    check_frequencies(drawn, [5 / 6, 1 / 6, *[0] * 30], "with top_k=2 and top_p=0.95")


@ours
@task("decoding")
def test_rows_of_the_table(adapters):
    """The next token depends on the last one, also if that is token 0."""
    table = torch.full((3, 3), -math.inf)
    table[0, [0, 1]] = torch.tensor([0.8, 0.2]).log()
    table[1, 2] = table[2, 0] = 0.0
    drawn = adapters.run_decode(**told(Scripted(table)))
    pairs = list(zip([0, *drawn], drawn, strict=False))
    strange = [pair for pair in pairs if table[pair] == -math.inf]
    check(not strange, f"(last, next) tokens were drawn although the logit is -inf: {strange[:1]}")
    after_zero = [token for last, token in pairs if last == 0]
    check_frequencies(after_zero, [0.8, 0.2, 0], "after token 0")


@ours
@task("decoding")
def test_stop_token_by_chance(adapters):
    """The first stop token that is drawn ends the text, and is not part of the answer."""
    model = logits_of(0.25, 0.25, 0.25, 0.25)
    written = adapters.run_decode(**told(model, length=200, stop_token=3))
    check(3 not in written, "the answer contains the stop token")
    # Longer than 60 is one text in 30 million.
    length = len(written)
    why = f"the answer has {length} tokens, but a stop token of probability 1/4 should end it"
    check(length <= 60, why)


@ours
@task("decoding")
def test_seed_of_decoding(adapters):
    """Equal seeds give equal texts; other seeds, or calls without a seed, give other texts."""
    model = logits_of(*[0.125] * 8)

    def text(seed):
        return adapters.run_decode(**told(model, length=40, seed=seed))

    check_equal(text(5), text(5), UNLIKE_ANSWERS)
    check(text(5) != text(6), "two different seeds give the same text")
    check(text(None) != text(None), "two calls without a seed give the same text")


@ours
@task("decoding")
def test_next_token_logits(adapters, draw):
    """The model gets the last context_length ids, and its logits at the last one are returned."""
    table = draw.normal(9, 9)
    for ids in ([[4, 1, 7, 2, 8, 3]], [[5, 2]], [[1, 2, 3, 4], [5, 6, 7, 8]]):
        given = torch.tensor(ids)
        seen = adapters.probe("last_logits", symbol=NEXT, context_length=4, table=table, ids=given)
        shown = [call.tolist() for call in seen["shown"]]
        what = f"with {given.shape[1]} ids and context_length=4"
        check_equal(
            shown, [[row[-4:] for row in ids]], f"{what}, the model does not get the last ids"
        )
        why = f"{what}, the logits are not those of the last position"
        check_close(seen["logits"], table[given[:, -1]], why)
        check(
            not seen["requires_grad"],
            "the logits require gradients, expected logits without an autograd graph",
        )


@ours
@task("decoding")
def test_settings_that_are_refused(adapters):
    """A temperature, top_k or top_p that is out of range, or an empty prompt, is an error."""
    model = logits_of(0.5, 0.3, 0.2)
    for name, value in (("temperature", -1.0), ("top_k", 0), ("top_p", 0.0), ("top_p", 1.5)):
        adapters.run_decode.error(f"{name} is {value}", **told(model, length=3, **{name: value}))
    adapters.run_decode.error("the prompt is empty", **told(model, prompt=[], length=3))
