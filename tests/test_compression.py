"""Compression: the number of bytes of a text per token."""

from tests.harness import ours, task


@ours
@task("compression_ratio")
def test_bytes_for_each_token(adapters, cases):
    """The ratio is the number of UTF-8 bytes divided by the number of ids."""
    cases.check(adapters.run_compression_ratio)


@ours
@task("compression_ratio")
def test_no_tokens_no_ratio(adapters):
    """A ratio without any token is an error."""
    adapters.run_compression_ratio(text="a text", token_ids=[1])
    adapters.run_compression_ratio.error("there are no tokens", text="a text", token_ids=[])
