"""The text of the handout, for tests that compute its numbers again."""

from staff.paths import ROOT

MARKDOWN = (ROOT / "handout.md").read_text("utf-8")
ON_ONE_LINE = " ".join(MARKDOWN.split())
"""The text of the handout with a space in place of each line break."""


def printed(*texts: str) -> None:
    """Assert that the handout contains each text; line breaks count as spaces."""
    missing = [text for text in texts if text not in ON_ONE_LINE]
    assert not missing, f"the handout doesn't say {missing}"
