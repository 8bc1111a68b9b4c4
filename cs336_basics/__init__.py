"""A Transformer language model, built from single tensors upwards."""
