"""The harness: it runs a submission, compares its answers, gives points and explains failures.

A test file imports two marks from here. `task` names the task of the rubric that a test belongs
to. `ours` marks a test of a promise that the public CS336 handout does not make.
"""

import pytest

task = pytest.mark.task
ours = pytest.mark.ours

__all__ = ["ours", "task"]
