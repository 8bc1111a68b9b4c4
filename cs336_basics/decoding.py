"""Decoding: the model generates text, one token after the other."""

from collections.abc import Callable

from jaxtyping import Float, Int
from torch import Tensor, nn

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
    raise NotImplementedError("decoding: handout §3.8")


def next_token_logits(model: nn.Module, context_length: int) -> NextLogits:
    """Turn a language model into a `next_logits` function for `decode`.

    The returned function takes ids on any device, calls the model with the last `context_length`
    of them, and returns the logits at the last position, without gradients.

    Args:
        model: maps ids `(batch, seq)` to logits `(batch, seq, vocab_size)`.
        context_length: length of the longest sequence that the model accepts.
    """
    raise NotImplementedError("decoding: handout §3.8")
