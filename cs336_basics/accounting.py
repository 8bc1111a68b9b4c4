"""Resource accounting: what a configuration costs, before anything is built."""


def count_parameters(
    vocab_size: int, context_length: int, d_model: int, num_layers: int, num_heads: int, d_ff: int
) -> int:
    """Count the trainable parameters of `TransformerLM`.

    Each number is counted once: embedding and output projection are two tables, the gains of all
    norms count, there are no biases, and RoPE's tables are not trained.
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

    Only matrix products count, those of weights as well as `Q Kᵀ` and the product of attention
    weights with V. An `(m × k)` by `(k × n)` product takes `2 m k n`: a multiplication and an
    addition for each term. Attention computes all `sequence_length²` scores, also those that the
    causal mask hides. A look-up in the embedding is no product.
    """
    raise NotImplementedError("count_flops: handout §3.9")
