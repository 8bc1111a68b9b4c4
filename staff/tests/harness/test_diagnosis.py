"""A mistake is named when it alone explains everything that was seen, and not otherwise."""

import pytest
import torch
from msgspec.structs import replace

from tests.harness.diagnosis import Evidence, explain, same_text, suspects
from tests.harness.fingerprints import Seen, directions_of, fits
from tests.harness.fixtures import MistakeEntry, Signature
from tests.harness.pictures import picture_of
from tests.harness.results import State, SuiteResult, TaskResult, TestResult
from tests.harness.rubric import read_rubric

ERROR = torch.linspace(-1, 2, 40)


def value(error):
    """A wrong answer with this error."""
    return Seen(kind="value", off=directions_of(error), error=100.0)


def signature(name, task="rmsnorm", texts=None, **cases):
    """A known mistake that gives `cases` (names are cases of one test)."""
    entry = MistakeEntry(id=name, task=task, sentence=f"of {name}", nudge="Why?", texts=texts or {})
    return Signature(mistake=entry, cases={("test_a", case): seen for case, seen in cases.items()})


def evidence(texts=None, **cases):
    """What the tests saw."""
    return Evidence({("test_a", case): seen for case, seen in cases.items()}, texts or {})


def names(found):
    """Ids of suspects."""
    return [s.mistake.id for s in found]


def test_a_fingerprint_forgives_rounding():
    """Rounding in the student's arithmetic must not hide a known mistake."""
    assert fits(value(ERROR + 1e-6 * torch.randn(40)), value(ERROR))


def test_a_fingerprint_tells_a_tenth():
    """An answer that is off by a tenth more is another mistake."""
    assert not fits(value(ERROR * 1.1), value(ERROR))


def test_fingerprints_of_other_kinds_differ():
    """NaN, a shape or an exception never fits a plain wrong value."""
    assert not fits(Seen(kind="raises", detail="x raised TypeError"), value(ERROR))
    assert not fits(
        Seen(kind="raises", detail="x raised TypeError"),
        Seen(kind="raises", detail="x raised IndexError"),
    )


def test_the_only_mistake_that_fits():
    """One fits all failing cases and no passing one: it is the suspect."""
    known = [signature("a", one=value(ERROR)), signature("b", one=value(-ERROR))]
    assert names(suspects(evidence(one=value(ERROR), two=Seen()), known)) == ["a"]


def test_a_passing_case_acquits():
    """A mistake that would show where the student is right is not the cause."""
    known = [signature("a", one=value(ERROR), two=value(ERROR))]
    assert suspects(evidence(one=value(ERROR), two=Seen()), known) == []


def test_texts_decide_between_equals():
    """Two mistakes with the same numbers are told apart by the tests without saved cases."""
    known = [
        signature("a", texts={"test_p": "saved with the model: ['cos']"}, one=value(ERROR)),
        signature("b", one=value(ERROR)),
    ]
    seen = evidence({"test_p": "saved with the model: ['cos']"}, one=value(ERROR))
    assert names(suspects(seen, known)) == ["a"]
    assert names(suspects(evidence({"test_p": ""}, one=value(ERROR)), known)) == ["b"]


def test_texts_alone():
    """Where no case fails, the failing properties must match exactly."""
    known = [signature("a", texts={"test_p": "two equal calls give unlike answers"})]
    seen = {"test_p": "two equal calls give unlike answers", "test_q": ""}
    assert names(suspects(evidence(seen), known)) == ["a"]
    assert suspects(evidence({**seen, "test_q": "no gradient"}), known) == []
    assert suspects(evidence({"test_p": "", "test_q": ""}), known) == []


def test_same_text_compares_numbers():
    """Numbers in a text may differ by rounding, not by more."""
    assert same_text("std 0.0502, not 0.0471", "std 0.0501, not 0.0471")
    assert not same_text("std 0.0502", "std 0.0471")
    assert not same_text("1 of 2", "1 of 2 cases")


def result_of(**failing):
    """A suite result in which `rmsnorm` and `transformer_block` fail or pass as told."""
    tasks = []
    for task in read_rubric().tasks:
        state = State.WRONG if task.id in failing else State.PASSED
        test = TestResult(
            name="test_a", state=state, lines=("got 1", "case"), clue=failing.get(task.id)
        )
        tasks.append(
            TaskResult(
                id=task.id, title=task.title, part=1, handout=task.handout, earned=0.0,
                possible=task.points, state=state, tests=(test,),
            )
        )  # fmt: skip
    return SuiteResult(layout="ours", earned=0.0, possible=30.0, tasks=tuple(tasks))


def with_picture(task, picture):
    """The task, its only test with a picture."""
    return replace(task, tests=(replace(task.tests[0], picture=picture),))


def explained(task, failing, seen, known, hints="full"):
    """The lines of a task's test after diagnosis."""
    found = explain(result_of(**failing), seen, known, read_rubric(), hints)
    return next(t for t in found.tasks if t.id == task)


KNOWN = {"rmsnorm": [signature("slip", one=value(ERROR))]}
SEEN = {"rmsnorm": evidence(one=value(ERROR))}


def test_how_much_is_said():
    """An instructor who asks for less must not have the mistake named."""
    lines = {h: explained("rmsnorm", {"rmsnorm": None}, SEEN, KNOWN, h).tests[0].lines for h in
             ("off", "nudge", "full")}  # fmt: skip
    assert lines["off"] == ("got 1", "case")
    assert lines["nudge"] == ("Ask yourself: Why?", "got 1", "case")
    assert lines["full"][0] == "This is what comes out when of slip."


@pytest.mark.parametrize("hints", ["off", "nudge", "full"])
def test_how_much_a_picture_shows(hints):
    """A slice of expected numbers must not reach a student who is to see less than everything."""
    failing = result_of(rmsnorm=None)
    whole = picture_of("case", torch.zeros(2, 2), torch.ones(2, 2), 1.0)
    tasks = [with_picture(task, whole) if task.id == "rmsnorm" else task for task in failing.tasks]
    result = replace(failing, tasks=tuple(tasks))
    found = explain(result, SEEN, KNOWN, read_rubric(), hints)
    seen = next(t for t in found.tasks if t.id == "rmsnorm").tests[0].picture
    places = replace(whole, got=None, expected=None)
    assert seen == {"off": None, "nudge": places, "full": whole}[hints]


def test_what_is_told_of_a_task():
    """A report that says the cause once must know which lines are common to all tests."""
    task = explained("rmsnorm", {"rmsnorm": None}, SEEN, KNOWN)
    assert task.told == ("This is what comes out when of slip.", "Ask yourself: Why?")
    assert task.own_lines(task.tests[0]) == ("got 1", "case")
    cut = TestResult(name="t", state=State.WRONG, lines=("left out",))
    assert task.own_lines(cut) == ("left out",)
    assert explained("rmsnorm", {"rmsnorm": "every value is zero"}, {}, {}).told == ()


@pytest.mark.parametrize("visibility", ["hidden", "after_due_date", "after_published"])
def test_a_task_that_is_not_visible_is_not_told_of(visibility):
    """Catches a message of one task that gives away the result of another, which is hidden."""
    rubric = read_rubric()
    tasks = [replace(t, visibility=visibility) if t.id == "rmsnorm" else t for t in rubric.tasks]
    hidden = replace(rubric, tasks=tuple(tasks))
    known = {"transformer_block": [signature("slip", one=value(ERROR))]}
    seen = {"transformer_block": evidence(one=value(ERROR))}
    result = result_of(transformer_block=None, rmsnorm=None)
    found = explain(result, seen, known, hidden, "full")
    task = next(t for t in found.tasks if t.id == "transformer_block")
    assert (task.blames, task.known, task.told) == (None, None, ())


def test_the_cause_upstream():
    """A block that fails as it would with the student's rmsnorm says so, and names that task."""
    known = {"transformer_block": [signature("slip", one=value(ERROR))]}
    seen = {"transformer_block": evidence(one=value(ERROR))}
    failing = {"transformer_block": None, "rmsnorm": None}
    task = explained("transformer_block", failing, seen, known)
    assert task.blames == "rmsnorm"
    assert task.tests[0].lines[0] == "fails exactly as it would with your `rmsnorm`: of slip"


BLOCK = {"transformer_block": evidence(one=value(ERROR))}
BOTH = {"transformer_block": None, "rmsnorm": None}


def test_no_own_name_while_something_called_fails():
    """Two mistakes at once: what fails below may look like a mistake of this task, and isn't."""
    known = {"transformer_block": [signature("own", "transformer_block", one=value(ERROR))]}
    task = explained("transformer_block", BOTH, BLOCK, known)
    assert (task.known, task.blames) == (None, "rmsnorm")
    assert task.told == ("`rmsnorm`, which this task calls, fails too: mend that first",)


def test_an_own_name_beside_a_mistake_that_cannot_show_here():
    """A mistake below that is known, and known not to show here, takes no name away."""
    own = signature("own", "transformer_block", one=value(ERROR))
    shown = signature("shown", "rmsnorm", one=value(-ERROR))
    known = {**KNOWN, "transformer_block": [own, shown]}
    task = explained("transformer_block", BOTH, {**SEEN, **BLOCK}, known)
    assert (task.known, task.blames) == ("own", None)


def test_a_task_below_that_has_its_name_gets_no_other():
    """Two names for one task's failure can't both be true."""
    other = signature("other", "rmsnorm", one=value(ERROR))
    slip = signature("slip", "rmsnorm", one=value(-ERROR))
    known = {**KNOWN, "transformer_block": [other, slip]}
    task = explained("transformer_block", BOTH, {**SEEN, **BLOCK}, known)
    assert (task.known, task.blames) == (None, "rmsnorm")


def test_a_task_that_passes_is_not_blamed():
    """Numbers that an upstream mistake would give are no proof while its own task passes."""
    known = {"transformer_block": [signature("slip", one=value(ERROR))]}
    seen = {"transformer_block": evidence(one=value(ERROR))}
    task = explained("transformer_block", {"transformer_block": None}, seen, known)
    assert (task.blames, task.known) == (None, None)


def test_an_unknown_cause_upstream():
    """Where nothing fits, a failing task that this one calls is the first thing to mend."""
    failing = {"rmsnorm": None, "transformer_block": "every value is zero"}
    task = explained("transformer_block", failing, {}, {})
    assert task.tests[0].lines[0] == "`rmsnorm`, which this task calls, fails too: mend that first"


def test_a_clue_when_nothing_fits():
    """Without a name and without a cause upstream the numbers speak."""
    task = explained("rmsnorm", {"rmsnorm": "every value is zero"}, {}, {})
    assert task.tests[0].lines[0] == "a clue: every value is zero"
    assert task.known is None


def test_passing_tests_stay_silent():
    """A test that passed must not be given an explanation."""
    task = explained("linear", {"rmsnorm": None}, SEEN, KNOWN)
    assert task.tests[0].lines == ("got 1", "case")
