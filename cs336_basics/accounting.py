"""Resource accounting: the cost of a configuration, computed before a model is built."""


def count_parameters(
    vocab_size: int, context_length: int, d_model: int, num_layers: int, num_heads: int, d_ff: int
) -> int:
    """Count the trainable parameters of `TransformerLM`.

    The embedding and the output projection are two separate tables. The gains of all norms count.
    There are no biases, and RoPE's tables are not trained.
    """
    raise NotImplementedError("count_parameters: handout §3.9")


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
    raise NotImplementedError("count_flops: handout §3.9")
