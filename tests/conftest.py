"""The pytest fixtures of the suite."""

import zlib

import pytest

from tests.harness.bridge import Adapters
from tests.harness.cases import Cases
from tests.harness.draw import TorchDraw
from tests.harness.plugin import SUITE, task_of, test_name


@pytest.fixture
def adapters(request: pytest.FixtureRequest) -> Adapters:
    """Return the interface through which the test calls the submission."""
    suite = request.config.stash[SUITE]
    return suite.adapters(suite.rubric.task(str(task_of(request.node))))


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> Cases:
    """Return the saved cases of the test."""
    suite = request.config.stash[SUITE]
    task = suite.rubric.task(str(task_of(request.node)))
    return suite.cases(task, test_name(request.node))


@pytest.fixture
def draw(request: pytest.FixtureRequest) -> TorchDraw:
    """Return a source of random inputs; its seed depends only on the suite's seed and the test."""
    suite = request.config.stash[SUITE]
    return TorchDraw(zlib.crc32(f"{suite.seed}{request.node.name}".encode()))
