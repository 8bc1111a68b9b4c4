"""Resource accounting: what a configuration costs, before anything is built."""


def count_parameters(
    vocab_size: int, context_length: int, d_model: int, num_layers: int, num_heads: int, d_ff: int
) -> int:
    """Count the trainable parameters of `TransformerLM`.

    Each number is counted once: embedding and output projection are two tables, the gains of all
    norms count, there are no biases, and RoPE's tables are not trained.
    """
    attention = 4 * d_model**2
    feed_forward = 3 * d_model * d_ff
    norms = 2 * d_model
    return 2 * vocab_size * d_model + num_layers * (attention + feed_forward + norms) + d_model


def count_flops(
    vocab_size: int,
    context_length: int,
    d_model: int,
    num_layers: int,
    num_heads: int,
    d_ff: int,
    batch_size: int,
    sequence_length: int,
) -> int:
    """Count the floating-point operations of one forward pass of `TransformerLM`.

    Only matrix products count, those of weights as well as `Q Kᵀ` and the product of attention
    weights with V. An `(m × k)` by `(k × n)` product takes `2 m k n`: a multiplication and an
    addition for each term. Attention computes all `sequence_length²` scores, also those that the
    causal mask hides. A look-up in the embedding is no product.
    """
    tokens = batch_size * sequence_length
    projections = 4 * 2 * tokens * d_model**2
    scores_and_mix = 2 * 2 * tokens * sequence_length * d_model
    feed_forward = 3 * 2 * tokens * d_model * d_ff
    head = 2 * tokens * d_model * vocab_size
    return num_layers * (projections + scores_and_mix + feed_forward) + head
