"""Paths of the repository's main folders."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOLUTION = ROOT / "staff" / "solution"
TESTS = ROOT / "tests"
