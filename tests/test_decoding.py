"""Decoding: which tokens may come, how often, and when to stop.

The model of these tests is a table: row i holds the logits of the token after token i.
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
    """Make a model that gives the tokens these probabilities, whatever came before."""
    row = torch.tensor(probabilities).log()
    return Scripted(row.expand(len(probabilities), -1).clone(), remembered=0)


def told(model, prompt=(0,), length=DRAWS, **settings):
    """Make all arguments of `run_decode`; `settings` replace the usual ones."""
    usual = {"temperature": 1.0, "top_k": None, "top_p": None, "stop_token": None, "seed": 0}
    usual |= {"next_logits": model, "prompt": list(prompt), "max_new_tokens": length}
    return usual | settings


def check_frequencies(drawn, expected, why):
    """Check how often each token comes; a right answer fails once in ten million times."""
    strange = sorted(set(drawn) - {token for token, p in enumerate(expected) if p})
    check(not strange, f"{why}, token {strange[:1]} came, which should never come")
    for token, probability in enumerate(expected):
        low, high = bounds(len(drawn), probability, 1e-7 / len(expected))
        count = drawn.count(token)
        seen = f"{why}, token {token} came {{:.0f}} times in {len(drawn)}"
        check(low <= count <= high, f"{seen}, expected {low} to {high}", count)


def bounds(draws, probability, risk):
    """Return the smallest and largest allowed count; others have a probability below `risk`."""
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
    """The answer is the new tokens alone; these cases allow a single token at each step."""
    cases.check(adapters.run_decode)


@ours
@task("decoding")
def test_greedy_at_temperature_zero(adapters, cases):
    """At temperature 0 the likeliest token is taken, whatever the other settings are."""
    cases.check(adapters.run_decode)


@ours
@task("decoding")
def test_length_and_stop_token(adapters, cases):
    """The answer has `max_new_tokens` tokens, or ends before the stop token."""
    cases.check(adapters.run_decode)


@ours
@task("decoding")
def test_model_is_shown_everything(adapters, draw):
    """The model gets the prompt and all new tokens at each call, and no call is wasted."""
    script = Scripted(draw.normal(7, 7))
    arguments = told(script, prompt=[3, 1, 6], length=4)
    answer = adapters.run_decode.answer(arguments)
    written, shown = answer.output, answer.inputs["next_logits"]
    check(isinstance(written, list) and len(written) == 4, "max_new_tokens is 4: the answer isn't")
    expected = [[3, 1, 6, *written[:i]] for i in range(4)]
    check_equal(shown, expected, "the model is shown other ids than prompt and answer so far")
    check_equal(answer.inputs["prompt"], [3, 1, 6], "the caller's prompt is changed")


@ours
@task("decoding")
def test_temperature(adapters):
    """Logits are divided by the temperature: more than 1 flattens, less than 1 sharpens."""
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
    """Only the k likeliest tokens come, in the same proportions; k may exceed the vocabulary."""
    model = logits_of(0.04, 0.7, 0.06, 0.2)
    drawn = adapters.run_decode(**told(model, top_k=2))
    check_frequencies(drawn, [0, 7 / 9, 0, 2 / 9], "with top_k 2")
    drawn = adapters.run_decode(**told(model, top_k=9))
    check_frequencies(drawn, [0.04, 0.7, 0.06, 0.2], "with top_k 9 of 4 tokens")


@ours
@task("decoding")
def test_top_p(adapters):
    """Only the smallest set of tokens whose probability reaches p comes, in their proportions."""
    probabilities = [0.13, 0.3, 0.16, 0.12, 0.15, 0.14]
    model = logits_of(*probabilities)
    for p, expected in (
        (0.45, [0, 0.3 / 0.46, 0.16 / 0.46, 0, 0, 0]),
        (0.25, [0, 1, 0, 0, 0, 0]),
        (1.0, probabilities),
    ):
        drawn = adapters.run_decode(**told(model, top_p=p))
        check_frequencies(drawn, expected, f"probabilities {probabilities}, top_p {p}")


@ours
@task("decoding")
def test_settings_together(adapters):
    """The temperature is applied first, then top_k, then top_p to the tokens that are left."""
    model = logits_of(0.36, 0.25, 0.16, 0.09, 0.14)
    # The first two tokens have 0.78 together at temperature 0.5, and 0.61 at temperature 1.
    squares = [0.36**2, 0.25**2, 0.16**2, 0.09**2, 0.14**2]
    drawn = adapters.run_decode(**told(model, temperature=0.5, top_p=0.75))
    pair = [square / sum(squares[:2]) for square in squares[:2]]
    check_frequencies(drawn, [*pair, 0, 0, 0], "with temperature 0.5 and top_p 0.75")
    # The first two tokens have 0.79 of the probability of the three that are left, 0.61 of all.
    drawn = adapters.run_decode(**told(model, top_k=3, top_p=0.7))
    pair = [0.36 / 0.61, 0.25 / 0.61]
    check_frequencies(drawn, [*pair, 0, 0, 0], "with top_k 3 and top_p 0.7")
    # The first two tokens have 0.3 together. With both left, top_p 0.95 removes neither.
    model = logits_of(0.25, 0.05, *[0.7 / 30] * 30)
    drawn = adapters.run_decode(**told(model, top_k=2, top_p=0.95))
    check_frequencies(drawn, [5 / 6, 1 / 6, *[0] * 30], "with top_k 2 and top_p 0.95")


@ours
@task("decoding")
def test_rows_of_the_table(adapters):
    """The next token depends on the last one, also if the last one is token 0."""
    table = torch.full((3, 3), -math.inf)
    table[0, [0, 1]] = torch.tensor([0.8, 0.2]).log()
    table[1, 2] = table[2, 0] = 0.0
    drawn = adapters.run_decode(**told(Scripted(table)))
    pairs = list(zip([0, *drawn], drawn, strict=False))
    strange = [pair for pair in pairs if table[pair] == -math.inf]
    check(not strange, f"after token {strange[:1]} came one whose logit is -inf")
    after_zero = [token for last, token in pairs if last == 0]
    check_frequencies(after_zero, [0.8, 0.2, 0], "after token 0")


@ours
@task("decoding")
def test_stop_token_by_chance(adapters):
    """The answer ends before the first stop token, which is drawn like any other token."""
    model = logits_of(0.25, 0.25, 0.25, 0.25)
    written = adapters.run_decode(**told(model, length=200, stop_token=3))
    check(3 not in written, "the stop token stands in the answer")
    # A text is longer than 60 tokens once in 30 million times.
    length = len(written)
    check(length <= 60, f"{length} tokens without a stop token that comes in a quarter of draws")


@ours
@task("decoding")
def test_seed_of_decoding(adapters):
    """The same seed gives the same tokens; another seed, or no seed, gives others."""
    model = logits_of(*[0.125] * 8)

    def text(seed):
        return adapters.run_decode(**told(model, length=40, seed=seed))

    check_equal(text(5), text(5), UNLIKE_ANSWERS)
    check(text(5) != text(6), "two seeds write the same text")
    check(text(None) != text(None), "without a seed, two calls write the same text")


@ours
@task("decoding")
def test_next_token_logits(adapters, draw):
    """The model gets the last context_length ids; the logits are those of the last position."""
    table = draw.normal(9, 9)
    for ids in ([[4, 1, 7, 2, 8, 3]], [[5, 2]], [[1, 2, 3, 4], [5, 6, 7, 8]]):
        given = torch.tensor(ids)
        seen = adapters.probe("last_logits", symbol=NEXT, context_length=4, table=table, ids=given)
        shown = [call.tolist() for call in seen["shown"]]
        what = f"for {given.shape[1]} ids and a context of 4"
        check_equal(shown, [[row[-4:] for row in ids]], f"{what}, the model is shown other ids")
        why = f"{what}, the logits are not those of the last position"
        check_close(seen["logits"], table[given[:, -1]], why)
        check(not seen["requires_grad"], "the logits are part of a graph of gradients")


@ours
@task("decoding")
def test_settings_that_are_refused(adapters):
    """A setting with an impossible value is an error, and so is an empty prompt."""
    model = logits_of(0.5, 0.3, 0.2)
    for name, value in (("temperature", -1.0), ("top_k", 0), ("top_p", 0.0), ("top_p", 1.5)):
        adapters.run_decode.error(f"{name} is {value}", **told(model, length=3, **{name: value}))
    adapters.run_decode.error("the prompt is empty", **told(model, prompt=[], length=3))
