"""A mistake is named when it alone explains everything that was seen, and not otherwise."""

from collections.abc import Mapping, Sequence

import pytest
import torch
from msgspec.structs import replace
from torch import Tensor

from staff.tests.support import failure
from tests.harness.diagnosis import Evidence, Hints, explain, suspects
from tests.harness.fingerprints import FAR, Seen, directions_of
from tests.harness.fixtures import MistakeEntry, Signature
from tests.harness.pictures import picture_of
from tests.harness.results import Diagnosis, State, SuiteResult, TaskResult, TestResult
from tests.harness.rubric import Visibility, read_rubric

ERROR = torch.linspace(-50, 100, 40)
RIGHT = Seen()
Known = Mapping[str, Sequence[Signature]]


def value(error: Tensor) -> Seen:
    """A wrong answer with this error, in units of the tolerance."""
    return Seen(kind="value", off=directions_of(error), error=error.abs().max().item())


def says(why: str, *numbers: float) -> Seen:
    """A check that failed with this sentence and these numbers."""
    return Seen(kind="says", why=why, numbers=numbers, error=FAR)


def signature(
    name: str, task: str = "rmsnorm", tests: Mapping[str, Seen] | None = None, **cases: Seen
) -> Signature:
    """A known mistake that gives `cases` (names are cases of one test) and, elsewhere, `tests`."""
    entry = MistakeEntry(id=name, task=task, sentence=f"of {name}", nudge="Why?", tests={})
    seen = {("test_a", case): one for case, one in cases.items()}
    return Signature(
        mistake=entry, seen=seen | {(test, ""): one for test, one in (tests or {}).items()}
    )


def evidence(tests: Mapping[str, Seen] | None = None, **cases: Seen) -> Evidence:
    """What the tests saw: `cases` of one test, and `tests` without saved cases."""
    found = Evidence()
    for case, one in cases.items():
        found.see("test_a", case, one)
    for test, one in (tests or {}).items():
        found.see(test, "", one)
    return found


def names(found: Sequence[Signature]) -> list[str]:
    """Ids of suspects."""
    return [s.mistake.id for s in found]


def test_the_only_mistake_that_fits() -> None:
    """Catches a suspect that gives another answer than the one seen, or none that gives it."""
    known = [signature("a", one=value(ERROR)), signature("b", one=value(-ERROR))]
    assert names(suspects(evidence(one=value(ERROR), two=RIGHT), known)) == ["a"]


def test_a_passing_case_acquits() -> None:
    """Catches a suspect that would show in a case where the submission is right."""
    known = [signature("a", one=value(ERROR), two=value(ERROR))]
    assert suspects(evidence(one=value(ERROR), two=RIGHT), known) == []


def test_a_failing_case_that_a_mistake_does_not_reach() -> None:
    """Catches a suspect that explains one failing case and not the other."""
    known = [signature("a", one=value(ERROR))]
    assert suspects(evidence(one=value(ERROR), two=value(ERROR)), known) == []


def test_tests_without_cases_decide_between_equals() -> None:
    """Catches two mistakes with the same numbers that are not told apart by the other tests."""
    saved = says("saved with the model: ['cos']")
    known = [
        signature("a", tests={"test_p": saved}, one=value(ERROR)),
        signature("b", one=value(ERROR)),
    ]
    assert names(suspects(evidence({"test_p": saved}, one=value(ERROR)), known)) == ["a"]
    assert names(suspects(evidence({"test_p": RIGHT}, one=value(ERROR)), known)) == ["b"]


def test_tests_without_cases_veto_no_name() -> None:
    """Catches a name that is withheld because a test without saved cases fails differently."""
    known = [signature("a", tests={"test_p": says("x")}, one=value(ERROR))]
    assert names(suspects(evidence({"test_p": says("y")}, one=value(ERROR)), known)) == ["a"]


def test_tests_without_cases_alone() -> None:
    """Catches a suspect that explains some of the failing properties, or that explains none."""
    unlike = says("two equal calls give unlike answers")
    known = [signature("a", tests={"test_p": unlike})]
    assert names(suspects(evidence({"test_p": unlike, "test_q": RIGHT}), known)) == ["a"]
    assert suspects(evidence({"test_p": unlike, "test_q": says("no gradient")}), known) == []
    assert suspects(evidence({"test_p": RIGHT, "test_q": RIGHT}), known) == []


def test_measured_numbers_are_compared() -> None:
    """Catches a sentence that fits with other numbers, or that must have the same last digit."""
    known = [signature("a", tests={"test_p": says("std {}, not 0.0471", 0.0502)})]

    def found(numbers: float) -> list[str]:
        return names(suspects(evidence({"test_p": says("std {}, not 0.0471", numbers)}), known))

    assert found(0.0501) == ["a"]
    assert found(0.0471) == []


def test_the_worst_of_several_outcomes_stays() -> None:
    """Catches a second run of a case, with more threads, that hides what the first one saw."""
    found = evidence(one=value(ERROR))
    found.see("test_a", "one", RIGHT)
    assert found.seen["test_a", "one"] == value(ERROR)
    found.see("test_a", "one", value(2 * ERROR))
    assert found.seen["test_a", "one"] == value(2 * ERROR)


def suite_of(**failing: str | None) -> SuiteResult:
    """A suite result in which the tasks named here fail, each with the clue given."""
    tasks = []
    for task in read_rubric().tasks:
        state = State.WRONG if task.id in failing else State.PASSED
        why = failure("got 1", clue=failing[task.id]) if task.id in failing else None
        test = TestResult(name="test_a", state=state, failure=why)
        tasks.append(
            TaskResult(
                id=task.id, title=task.title, part=1, handout=task.handout, earned=0.0,
                possible=task.points, state=state, tests=(test,),
            )
        )  # fmt: skip
    return SuiteResult(layout="ours", earned=0.0, possible=30.0, tasks=tuple(tasks))


def explained(
    task: str,
    failing: Mapping[str, str | None],
    seen: Mapping[str, Evidence],
    known: Known,
    hints: Hints = "full",
) -> TaskResult:
    """A task after diagnosis."""
    found = explain(suite_of(**failing), seen, known, read_rubric(), hints)
    return next(t for t in found.tasks if t.id == task)


FAILS: dict[str, str | None] = {"rmsnorm": None}
KNOWN: Known = {"rmsnorm": [signature("slip", one=value(ERROR))]}
SEEN = {"rmsnorm": evidence(one=value(ERROR))}
NAMED = Diagnosis(
    tests=("test_a",), task="rmsnorm", mistake="slip", sentences=("of slip",), nudge="Why?"
)
FIRST = Diagnosis(tests=("test_a",), task="rmsnorm")
"""What a task is told that calls rmsnorm, which fails too."""


@pytest.mark.parametrize(
    ("hints", "diagnosis"),
    [
        ("full", NAMED),
        ("nudge", replace(NAMED, sentences=())),
        ("off", replace(NAMED, sentences=(), nudge="")),
    ],
)
def test_how_much_is_said(hints: Hints, diagnosis: Diagnosis) -> None:
    """Catches a mistake that is named, or a question, though the instructor asked for less."""
    assert explained("rmsnorm", FAILS, SEEN, KNOWN, hints).diagnoses == (diagnosis,)


@pytest.mark.parametrize(("hints", "clue"), [("full", "zero"), ("nudge", None), ("off", None)])
def test_hints_keep_clues_back(hints: Hints, clue: str | None) -> None:
    """Catches a clue that is shown although the hints are `nudge` or `off`."""
    (test,) = explained("rmsnorm", {"rmsnorm": "zero"}, {}, {}, hints).tests
    assert test.failure == failure("got 1", clue=clue)


@pytest.mark.parametrize("hints", ["off", "nudge", "full"])
def test_how_much_a_picture_shows(hints: Hints) -> None:
    """Catches a picture that shows expected numbers although the hints are `nudge` or `off`."""
    whole = picture_of("case", torch.zeros(2, 2), torch.ones(2, 2), 1.0)
    assert whole is not None
    why = failure("got 1", picture=whole)
    drawn = TestResult(name="test_a", state=State.WRONG, failure=why)
    failing = suite_of(rmsnorm=None)
    tasks = tuple(replace(t, tests=(drawn,)) if t.id == "rmsnorm" else t for t in failing.tasks)
    found = explain(replace(failing, tasks=tasks), SEEN, KNOWN, read_rubric(), hints)
    (test,) = next(t for t in found.tasks if t.id == "rmsnorm").tests
    places = replace(whole, got=None, expected=None)
    assert test.failure is not None
    assert test.failure.picture == {"off": None, "nudge": places, "full": whole}[hints]


@pytest.mark.parametrize("visibility", ["hidden", "after_due_date", "after_published"])
def test_a_task_that_is_not_visible_is_not_told_of(visibility: Visibility) -> None:
    """Catches a message of one task that gives away the result of another, which is hidden."""
    rubric = read_rubric()
    tasks = [replace(t, visibility=visibility) if t.id == "rmsnorm" else t for t in rubric.tasks]
    hidden = replace(rubric, tasks=tuple(tasks))
    known = {"transformer_block": [signature("slip", one=value(ERROR))]}
    result = suite_of(transformer_block=None, rmsnorm=None)
    found = explain(result, BLOCK, known, hidden, "full")
    task = next(t for t in found.tasks if t.id == "transformer_block")
    assert task.fails
    assert task.diagnoses == ()


BLOCK = {"transformer_block": evidence(one=value(ERROR))}
BOTH: dict[str, str | None] = {"transformer_block": None, "rmsnorm": None}


def test_the_cause_upstream() -> None:
    """Catches a block that fails as it would with the student's rmsnorm and doesn't say so."""
    known = {"transformer_block": [signature("slip", one=value(ERROR))]}
    task = explained("transformer_block", BOTH, BLOCK, known)
    assert task.diagnoses == (NAMED,)
    assert (task.blames, task.known) == ("rmsnorm", "slip")


def test_no_own_name_while_something_called_fails() -> None:
    """Catches a mistake of this task that is named though a task that it calls fails too."""
    known = {"transformer_block": [signature("own", "transformer_block", one=value(ERROR))]}
    task = explained("transformer_block", BOTH, BLOCK, known)
    assert task.diagnoses == (FIRST,)
    assert (task.known, task.blames) == (None, "rmsnorm")


def test_an_own_name_beside_a_mistake_that_cannot_show_here() -> None:
    """Catches a name that is withheld because of a known mistake that never shows in this task."""
    own = signature("own", "transformer_block", one=value(ERROR))
    shown = signature("shown", "rmsnorm", one=value(-ERROR))
    known: Known = {**KNOWN, "transformer_block": [own, shown]}
    task = explained("transformer_block", BOTH, {**SEEN, **BLOCK}, known)
    assert (task.known, task.blames) == ("own", None)


def test_a_task_below_that_has_its_name_gets_no_other() -> None:
    """Catches two names for the failure of one task, of which one must be false."""
    other = signature("other", "rmsnorm", one=value(ERROR))
    slip = signature("slip", "rmsnorm", one=value(-ERROR))
    known: Known = {**KNOWN, "transformer_block": [other, slip]}
    task = explained("transformer_block", BOTH, {**SEEN, **BLOCK}, known)
    assert task.diagnoses == (FIRST,)


def test_a_task_that_passes_is_not_blamed() -> None:
    """Catches blame for a task that passes its own tests, whatever the numbers look like."""
    known = {"transformer_block": [signature("slip", one=value(ERROR))]}
    task = explained("transformer_block", {"transformer_block": None}, BLOCK, known)
    assert task.diagnoses == ()


def test_an_unknown_cause_upstream() -> None:
    """Catches a block that is told nothing while a task that it calls fails for unknown reasons."""
    failing = {"rmsnorm": None, "transformer_block": "every value is zero"}
    assert explained("transformer_block", failing, {}, {}).diagnoses == (FIRST,)


def test_a_clue_when_nothing_fits() -> None:
    """Catches a clue that is lost where no mistake is known."""
    task = explained("rmsnorm", {"rmsnorm": "every value is zero"}, {}, {})
    assert task.diagnoses == ()
    assert task.tests[0].failure == failure("got 1", clue="every value is zero")


def test_several_mistakes_that_look_alike() -> None:
    """Catches one of several equal suspects that is named, and a list that is too long to help."""

    def found(count: int, hints: Hints = "full") -> tuple[Diagnosis, ...]:
        known: Known = {"rmsnorm": [signature(f"m{i}", one=value(ERROR)) for i in range(count)]}
        return explained("rmsnorm", FAILS, SEEN, known, hints).diagnoses

    alike = Diagnosis(tests=("test_a",), task="rmsnorm", sentences=("of m0", "of m1", "of m2"))
    assert found(3) == (alike,)
    assert found(4) == ()
    assert found(3, "nudge") == ()


def test_passing_tests_stay_silent() -> None:
    """Catches an explanation of a task that passed."""
    task = explained("linear", FAILS, SEEN, KNOWN)
    assert task.diagnoses == ()
    assert task.tests[0].failure is None
