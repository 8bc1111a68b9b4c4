"""The pytest plugin: it adds options, selects tests, opens the submission and prints the score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import msgspec
import pytest
import torch

from tests.harness import terminal
from tests.harness.bridge import Adapters, Bridge
from tests.harness.cases import Cases
from tests.harness.devices import demand
from tests.harness.diagnosis import Evidence, Hints, explain
from tests.harness.errors import Finding, HarnessError, SubmissionError, WrongAnswer
from tests.harness.fingerprints import Seen
from tests.harness.fixtures import FIXTURES, Fixtures
from tests.harness.in_process import InProcess
from tests.harness.results import Failure, State, SuiteResult, TestResult
from tests.harness.rubric import Rubric, Task, read_rubric
from tests.harness.scoring import Scoreboard
from tests.harness.submission import Submission, first_line, locate
from tests.harness.words import failure_lines


class Suite:
    """One run of the suite on one submission.

    Args:
        config: pytest's configuration, with the options of the command line.

    Raises:
        HarnessError: an option, the rubric or the fixture folder can't be used.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.rubric: Rubric = read_rubric()
        names = [name for given in config.getoption("task") for name in given.split(",")]
        self.chosen: tuple[str, ...] = tuple(self.rubric.task(name).id for name in names)
        self.scoreboard = Scoreboard(self.rubric, self.chosen)
        self.evidence: defaultdict[str, Evidence] = defaultdict(Evidence)
        self.shaken: list[defaultdict[str, Evidence]] = []
        """The evidence with noise, which imitates other processors: one item for each seed."""
        self.hints: Hints = config.getoption("hints")
        self.fixtures = Fixtures(Path(config.getoption("cases") or FIXTURES))
        self.folder = Path(config.getoption("submission") or config.rootpath)
        self.device: str = config.getoption("device")
        demand(self.device)
        self.seed = ""
        """The seed of the inputs that tests draw: a grader sets it; a student's run uses ""."""
        self.bridge: Bridge | None = None
        self.problem: str | None = None
        """The reason why the submission could not be graded; None if there is none."""

    def open(self, connect: Callable[[Submission, str], Bridge] = InProcess) -> None:
        """Import the submission; if that fails, set `problem`.

        Args:
            connect: makes the bridge to a submission; its second argument is the inputs' device.
        """
        torch.set_num_threads(1)  # the tensors are so small that more threads are slower
        try:
            self.bridge = connect(locate(self.folder), self.device)
        except SubmissionError as error:
            self.problem = str(error)

    def start_over(self, fixtures: Fixtures) -> None:
        """Discard all results, and use other saved cases from now on."""
        self.fixtures = fixtures
        self.scoreboard = Scoreboard(self.rubric, self.chosen)
        self.evidence = defaultdict(Evidence)
        self.shake(len(self.shaken))

    def shake(self, seeds: int) -> None:
        """Compare every answer again with noise, once for each of `seeds` seeds."""
        self.shaken = [defaultdict(Evidence) for _ in range(seeds)]

    def adapters(self, task: Task) -> Adapters:
        """Return the interface through which the tests of a task call the submission."""
        if self.bridge is None:
            raise SubmissionError("the submission was not opened")
        self.bridge.begin(task.id)
        return Adapters(self.bridge, self.rubric, task)

    def cases(self, task: Task, test: str) -> Cases:
        """Return the saved cases of a test."""
        return self.fixtures.cases(task.id, test, len(self.shaken))

    def result(self) -> SuiteResult:
        """Return the results so far, with diagnoses."""
        layout = self.bridge.layout if self.bridge else "ours"
        result = self.scoreboard.result(layout)
        failing = [task.id for task in result.tasks if task.state.failed]
        signatures = {task_id: self.fixtures.signatures(task_id) for task_id in failing}
        return explain(result, self.evidence, signatures, self.rubric, self.hints)

    def record(self, item: pytest.Item, task_id: str, error: BaseException | None) -> TestResult:
        """Record the result of a test, and its outcomes as evidence.

        Args:
            item: the test.
            task_id: the id of its task.
            error: the exception that ended the test; None if it passed.
        """
        public = self.bridge is not None and self.bridge.layout == "public"
        ours = task_id in self.rubric.bonus or bool(item.get_closest_marker("ours"))
        counted, state = not (public and ours), _state(error)
        if state is State.NOT_STARTED and not counted:
            state = State.NOT_OFFERED
        result = TestResult(
            name=test_name(item),
            state=state,
            counted=counted,
            failure=None if error is None else _failure(item, error),
        )
        self.scoreboard.record(task_id, result)
        if result.state in (State.NOT_STARTED, State.NOT_OFFERED):
            return result
        self._see(task_id, item, result, error)
        return result

    def _see(
        self, task_id: str, item: pytest.Item, result: TestResult, error: BaseException | None
    ) -> None:
        """Record the outcomes of a test as evidence, without noise and with each seed of noise."""
        cases = getattr(item, "funcargs", {}).get("cases")
        if isinstance(cases, Cases):
            for evidence, found in zip(
                (self.evidence, *self.shaken), (cases.seen, *cases.shaken), strict=True
            ):
                for case, seen in found.items():
                    evidence[task_id].see(result.name, case, seen)
            return
        finding = error if isinstance(error, Finding) else None
        if finding is None and error is not None and result.failure is not None:
            finding = WrongAnswer(result.failure.headline)
        self.evidence[task_id].see(result.name, "", finding.seen if finding else Seen())
        for number, evidence in enumerate(self.shaken):
            seen = finding.shaken(f"{number}/{result.name}") if finding else Seen()
            evidence[task_id].see(result.name, "", seen)

    def fails(self, task_id: str, result: TestResult) -> bool:
        """Return whether a test that did not pass makes the run fail.

        A test that does not count never makes the run fail. A bonus task that is not started does
        so only if `--task` names it.
        """
        if not result.counted or result.state is State.NOT_OFFERED:
            return False
        begun = result.state is not State.NOT_STARTED
        return begun or task_id not in self.rubric.bonus or task_id in self.chosen


SUITE = pytest.StashKey[Suite]()


def task_of(item: pytest.Item) -> str | None:
    """Return the id of the task that a test belongs to; None if the test is not graded."""
    mark = item.get_closest_marker("task")
    return mark.args[0] if mark else None


def test_name(item: pytest.Item) -> str:
    """Return the name of a test function, without its parameters."""
    return getattr(item, "originalname", item.name)


test_name.__test__ = False  # type: ignore[attr-defined]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the suite."""
    group = parser.getgroup("cs336", "the graded suite")
    group.addoption(
        "--submission", metavar="DIR", help="folder of the submission (default: the root)"
    )
    group.addoption(
        "--task", metavar="ID", action="append", default=[], help="run this task only (repeatable)"
    )
    group.addoption("--device", default="cpu", help="device of the inputs: cpu, cuda or mps")
    group.addoption(
        "--cases", metavar="DIR", help="folder of saved cases (default: tests/fixtures)"
    )
    group.addoption(
        "--hints",
        choices=["off", "nudge", "full"],
        default="full",
        help="a failure shows the numbers (off), a question too (nudge), or the mistake too (full)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the two marks, and read the rubric and the manifest of the fixtures."""
    config.addinivalue_line("markers", "task(id): the task of the rubric that a test belongs to")
    config.addinivalue_line("markers", "ours: a test of a promise that only our handout makes")
    try:
        config.stash[SUITE] = Suite(config)
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Check that the rubric lists every graded test, and keep the tests of the chosen tasks."""
    suite = config.stash[SUITE]
    listed = {(task.id, test) for task in suite.rubric.tasks for test in task.tests}
    for item in items:
        task_id = task_of(item)
        if task_id is not None and (task_id, test_name(item)) not in listed:
            raise pytest.UsageError(
                f"{item.nodeid} is not listed under {task_id!r} in assignment.toml"
            )
    if suite.chosen:
        dropped = [item for item in items if task_of(item) not in suite.chosen]
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if task_of(item) in suite.chosen]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Read the fixtures that the tests need, so that a damaged file stops the run at once."""
    suite = session.config.stash[SUITE]
    try:
        for item in session.items:
            task_id = task_of(item)
            if task_id is not None and "cases" in getattr(item, "fixturenames", ()):
                suite.fixtures.cases(task_id, test_name(item))
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Import the submission before the first test; if that fails, run no test."""
    suite = session.config.stash[SUITE]
    if session.config.option.collectonly or not any(task_of(item) for item in session.items):
        return None
    suite.open()
    if suite.problem is None:
        return None
    session.testsfailed = 1
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record the result of a graded test, and write its failure into pytest's report."""
    report = yield
    task_id = task_of(item)
    if task_id is None or (call.when != "call" and call.excinfo is None):
        return report
    suite = item.config.stash[SUITE]
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, HarnessError):
        pytest.exit(str(error), returncode=pytest.ExitCode.INTERNAL_ERROR)
    result = suite.record(item, task_id, error)
    report.user_properties.append(("state", result.state.value))
    if error is not None and not suite.fails(task_id, result):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, result.failure.headline if result.failure else "")
    elif result.failure is not None and item.config.option.tbstyle == "no":
        report.longrepr = "\n".join(failure_lines(result.failure))
    return report


def pytest_report_teststatus(
    report: pytest.TestReport,
) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Show a test that is not started as a circle, not as a failure."""
    if ("state", State.NOT_STARTED.value) in report.user_properties:
        return "not started", "o", ("NOT STARTED", {"yellow": True})
    return None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the failures, the table of points and the next step."""
    suite = config.stash[SUITE]
    if config.option.collectonly:
        return
    for text, colour in _summary(suite):
        line = text if _supports_unicode(terminalreporter) else terminal.as_ascii(text)
        terminalreporter.write_line(line, **({colour: True} if colour else {}))


def _summary(suite: Suite) -> Iterator[terminal.Line]:
    yield "", None
    if suite.problem is not None:
        yield f"Could not be graded: {suite.problem}", "red"
    elif suite.bridge is not None:
        result = suite.result()
        yield from terminal.failures(result, suite.rubric, everything=bool(suite.chosen))
        yield from terminal.table(result, suite.rubric)
        yield terminal.next_step(result, suite.rubric), None


def _supports_unicode(reporter: pytest.TerminalReporter) -> bool:
    encoding = getattr(reporter._tw._file, "encoding", None) or "ascii"  # noqa: SLF001 - pytest has no public name
    return encoding.lower().replace("-", "").startswith("utf")


def _state(error: BaseException | None) -> State:
    if error is None:
        return State.PASSED
    return error.state if isinstance(error, Finding) else State.WRONG


def _failure(item: pytest.Item, error: BaseException) -> Failure:
    """Describe why a test failed, with the first line of its docstring as the promise."""
    doc = (getattr(item, "obj", None).__doc__ or "").strip().partition("\n")[0]
    if isinstance(error, Finding):
        promise = doc if isinstance(error, WrongAnswer) else ""
        return msgspec.structs.replace(error.failure, promise=promise)
    if isinstance(error, AssertionError):
        headline, *details = str(error).splitlines() or ["the test fails"]
        return Failure(headline=headline, details=tuple(details), promise=doc)
    text = f"{type(error).__name__}: {first_line(error)}"
    return Failure(headline=f"the test could not use what came back: {text}")
