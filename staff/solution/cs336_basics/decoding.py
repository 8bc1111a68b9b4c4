"""Decoding: the model generates text, one token after the other."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from cs336_basics.softmax import softmax

NextLogits = Callable[[Int[Tensor, "batch seq"]], Float[Tensor, "batch vocab_size"]]


def decode(
    next_logits: NextLogits,
    prompt: list[int],
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop_token: int | None = None,
    seed: int | None = None,
) -> list[int]:
    """Continue a prompt with tokens drawn from `softmax(logits / temperature)`; return the tokens.

    The answer contains neither the prompt nor the stop token. `temperature` is applied first, then
    `top_k`, then `top_p`. After each of them, the probabilities of the remaining tokens are scaled
    so that they sum to one (Holtzman et al. 2020, section 3).

    Args:
        next_logits: returns the logits of the token after each row of ids.
        prompt: the ids to continue, at least one.
        max_new_tokens: the largest number of new tokens.
        temperature: below 1 sharpens the distribution, above 1 flattens it; at 0 the likeliest
            token is taken, whatever the other settings are.
        top_k: only the k likeliest tokens may come; None means all tokens.
        top_p: only the smallest set of likeliest tokens whose probability reaches p may come, with
            0 < p ≤ 1; None means all tokens.
        stop_token: the answer ends before this token; None means no such token.
        seed: the same seed draws the same tokens; None draws other tokens at every call.

    Raises:
        ValueError: the prompt is empty, or a setting is outside its range.
    """
    if not prompt:
        raise ValueError("the prompt is empty; begin with one token at least")
    if temperature < 0:
        raise ValueError(f"temperature must be 0 or more; it is {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be 1 or more; it is {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1; it is {top_p}")
    generator = torch.Generator()
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed)
    ids = torch.tensor([prompt])
    for _ in range(max_new_tokens):
        logits = next_logits(ids)[0].detach().cpu()
        token = _choose(logits, temperature, top_k, top_p, generator)
        if token == stop_token:
            break
        ids = torch.cat([ids, torch.tensor([[token]])], dim=1)
    return ids[0, len(prompt) :].tolist()


def next_token_logits(model: nn.Module, context_length: int) -> NextLogits:
    """Turn a language model into a `next_logits` function for `decode`.

    The returned function takes ids on any device, calls the model with the last `context_length`
    of them, and returns the logits at the last position, without gradients.

    Args:
        model: maps ids `(batch, seq)` to logits `(batch, seq, vocab_size)`.
        context_length: length of the longest sequence that the model accepts.
    """

    @torch.no_grad()
    def next_logits(token_ids: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch vocab_size"]:
        device = next((p.device for p in model.parameters()), token_ids.device)
        return model(token_ids[:, -context_length:].to(device))[:, -1]

    return next_logits


def _choose(
    logits: Float[Tensor, " vocab_size"],
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    generator: torch.Generator,
) -> int:
    if temperature == 0:
        return int(logits.argmax())
    probabilities = softmax(logits.double() / temperature, dim=-1)
    probabilities, tokens = probabilities.sort(descending=True)
    probabilities, tokens = probabilities[:top_k], tokens[:top_k]
    if top_p is not None:
        probabilities = probabilities / probabilities.sum()
        reached_before = probabilities.cumsum(-1) - probabilities
        probabilities = probabilities[reached_before < top_p]
    return int(tokens[torch.multinomial(probabilities, 1, generator=generator)])
