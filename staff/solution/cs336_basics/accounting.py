"""Resource accounting: the cost of a configuration, computed before a model is built."""


def count_parameters(
    vocab_size: int, context_length: int, d_model: int, num_layers: int, num_heads: int, d_ff: int
) -> int:
    """Count the trainable parameters of `TransformerLM`.

    The embedding and the output projection are two separate tables. The gains of all norms count.
    There are no biases, and RoPE's tables are not trained.
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

    Only matrix products count: those with weights, `Q Kᵀ`, and the product of the attention weights
    and V. An `(m × k)` by `(k × n)` product takes `2 m k n` operations: a multiplication and an
    addition for each term. Attention computes all `sequence_length²` scores, also those that the
    causal mask hides. A look-up in the embedding is not a matrix product.
    """
    tokens = batch_size * sequence_length
    projections = 4 * 2 * tokens * d_model**2
    scores_and_mix = 2 * 2 * tokens * sequence_length * d_model
    feed_forward = 3 * 2 * tokens * d_model * d_ff
    head = 2 * tokens * d_model * vocab_size
    return num_layers * (projections + scores_and_mix + feed_forward) + head
