"""Decoding: the model writes, one token after the other."""

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
    """Continue a prompt with tokens drawn from `softmax(logits / temperature)`; return them alone.

    The answer holds neither the prompt nor the stop token. Three settings narrow the choice, each
    working on what the one before has left, with probabilities that sum to one again:
    `temperature`, then `top_k`, then `top_p` (Holtzman et al. 2020, section 3).

    Args:
        next_logits: gives the logits of the token that comes after each row of ids.
        prompt: the ids to go on from, at least one.
        max_new_tokens: the answer is no longer than this.
        temperature: below 1 sharpens the distribution, above 1 flattens it; at 0 the likeliest
            token is taken, whatever the other settings are.
        top_k: only the k likeliest tokens may come; None for all.
        top_p: only the smallest set of likeliest tokens whose probability reaches p may come, with
            0 < p ≤ 1; None for all.
        stop_token: where it would come, the answer ends; None for no such token.
        seed: the same seed draws the same tokens; None for other ones at every call.

    Raises:
        ValueError: the prompt is empty, or a setting has a value that makes no sense.
    """
    raise NotImplementedError("decoding: handout §3.8")


def next_token_logits(model: nn.Module, context_length: int) -> NextLogits:
    """Turn a language model into what `decode` asks for the logits of the next token.

    The function that is returned takes ids on any device, shows the model the last
    `context_length` of them, and gives the logits at the last position, without gradients.

    Args:
        model: maps ids `(batch, seq)` to logits `(batch, seq, vocab_size)`.
        context_length: the longest sequence that the model takes.
    """
    raise NotImplementedError("decoding: handout §3.8")
