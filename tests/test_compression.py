"""Compression: bytes of a text for each of its tokens."""

from tests.harness import ours, task


@ours
@task("compression_ratio")
def test_bytes_for_each_token(adapters, cases):
    """UTF-8 bytes over the number of ids, whatever the ids are."""
    cases.check(adapters.run_compression_ratio)


@ours
@task("compression_ratio")
def test_no_tokens_no_ratio(adapters):
    """Without tokens there is no ratio: an error says so."""
    adapters.run_compression_ratio(text="a text", token_ids=[1])
    adapters.run_compression_ratio.error("there are no tokens", text="a text", token_ids=[])
