"""The text of the handout, for tests that work its numbers out again."""

from staff.paths import ROOT

MARKDOWN = (ROOT / "handout.md").read_text("utf-8")
ON_ONE_LINE = " ".join(MARKDOWN.split())
"""The same without its line breaks."""


def printed(*texts: str) -> None:
    """Assert that the handout holds each text, wherever its lines break."""
    missing = [text for text in texts if text not in ON_ONE_LINE]
    assert not missing, f"the handout doesn't say {missing}"
