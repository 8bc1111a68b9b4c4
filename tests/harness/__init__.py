"""What stands behind the tests: how they reach a submission, compare, count and explain.

A test file needs two marks from here: `task` says which task of the rubric a test belongs to,
and `ours` says that it tests a promise which the public CS336 handout does not make.
"""

import pytest

task = pytest.mark.task
ours = pytest.mark.ours

__all__ = ["ours", "task"]
