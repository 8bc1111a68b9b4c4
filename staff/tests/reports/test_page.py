"""The student's page: complete, safe whatever a student writes, readable for everybody."""

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from msgspec.structs import replace
from PIL import Image

from staff.figures.browser import chromium, screenshot, size_of
from staff.grader.grade import Grade
from staff.reports import page
from staff.reports.page import _HERE
from staff.reports.shown import bounded
from staff.tests.support import failure, grade_of, result_of, small_rubric, task_result
from tests.harness.pictures import picture_of
from tests.harness.results import CaseNote, Diagnosis, Frame, State, TaskResult, TestResult

P, W, C, S = State.PASSED, State.WRONG, State.CRASHED, State.NOT_STARTED
RUBRIC = small_rubric()
FIRST, SECOND = RUBRIC.tasks
SIX = torch.arange(6.0).reshape(2, 3).double()
PICTURE = picture_of("batch 2", torch.zeros(2, 3), SIX, 1.0)
WIDE = picture_of("c", torch.zeros(40, 40), torch.randn(40, 40).double(), 1.0)
SAID = "This is what comes out when x."
VOID = {"meta", "br", "img", "input", "link", "base"}
SHEET = (_HERE / "page.css").read_text("utf-8")
in_browser = pytest.mark.skipif(chromium() is None, reason="no Chromium; apt install chromium")


class Document(HTMLParser):
    """The tags, attributes and text of a page; it fails where a tag is not closed."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a tag."""
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record a tag that has no content."""
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        """Close the tag that was opened last."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Record a text, but not that of the head."""
        if self._open[-1:] not in (["style"], ["title"]) and data.strip():
            self.texts.append(" ".join(data.split()))


def failing(
    count: int = 3,
    first: str = "got 1 at [0], expected 2",
    name: str = "ada",
    source: str = "g(x)",
    *,
    explained: bool = True,
) -> Grade:
    """A grade whose first task fails in every way that a page shows."""
    why = failure(
        first,
        frames=(Frame("f.py", 1, "f", source),),
        case=CaseNote(name="batch 2", failing=1, total=1),
        promise="Rows sum to one.",
        clue="every value is zero",
        picture=PICTURE,
    )
    tests = tuple(TestResult(name=f"test_first_{i}", state=W, failure=why) for i in range(count))
    names = tuple(test.name for test in tests)
    cause = Diagnosis(tests=names, task="first", sentences=("x",), nudge="Which `axis`?")
    task = task_result(FIRST, [W, P, P], tests=tests, diagnoses=(cause,) if explained else ())
    return bounded(grade_of(task, task_result(SECOND, [S]), name=name))


def changed(grade: Grade, first: TaskResult) -> Grade:
    """The grade with another result of its first task."""
    result = result_of(grade)
    result = replace(result, tasks=(first, *result.tasks[1:]))
    return replace(grade, run=replace(grade.run, result=result))


def test_the_page_says_it_all() -> None:
    """Catches points, a next step, a message or a hint that does not reach the student."""
    texts = Document(page(failing(), RUBRIC)).texts
    for text in ("ada", "Two", "2", "of 4 points", "50 %", "Next", "pytest --task=first"):
        assert text in texts
    assert "Mend cs336_basics/first.py, then run" in texts
    for text in (SAID, "Which", "axis", "got 1 at [0], expected 2", "f.py:1 in f: g(x)"):
        assert text in texts
    assert {"saved case: batch 2", "Rows sum to one.", "test_first_0"} <= set(texts)
    assert {"got", "expected", "difference"} <= set(texts)
    assert {"First", "Second", "3 of 3 tests fail", "2 / 3", "0 / 1"} <= set(texts)
    assert texts.count(SAID) == 1


def test_a_clue_where_there_is_no_diagnosis() -> None:
    """Catches a clue beside a diagnosis of the same test, or one that is lost without any."""
    assert "every value is zero" not in page(failing(), RUBRIC)
    texts = Document(page(failing(explained=False), RUBRIC)).texts
    assert texts.count("a clue: every value is zero") == 3


def test_the_way_to_the_task_upstream() -> None:
    """Catches a student who isn't led from a task to the one that must be mended first."""
    upstream = Diagnosis(tests=("t",), task="first", mistake="x", sentences=("y",), nudge="Why?")
    tests = (TestResult(name="t", state=W, failure=failure("no")),)
    second = task_result(SECOND, [W], tests=tests, diagnoses=(upstream,))
    document = Document(page(grade_of(task_result(FIRST, [W, P, P]), second), RUBRIC))
    assert "Mend that first: pytest --task=first" in document.texts
    assert "Go to First" in document.texts
    assert ("href", "#first") in document.attributes
    assert "Why?" not in document.texts


def test_a_page_of_a_right_submission() -> None:
    """Catches a page that shows a failure or a next task where every point is earned."""
    texts = Document(page(grade_of(task_result(FIRST, [P] * 3)), RUBRIC)).texts
    assert "Every point is earned." in texts
    assert "Next" not in texts


def test_a_page_of_no_grade() -> None:
    """Catches a zero, or no reason, where nothing could be graded."""
    grade = grade_of(problem="SyntaxError in <b>.py")
    texts = Document(page(grade, RUBRIC)).texts
    assert "Could not be graded" in texts
    assert "SyntaxError in <b>.py" in texts
    assert not any("points" in text and "of" in text.split() for text in texts[:4])
    assert "0 %" not in texts


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "' onmouseover='alert(1)",
        "</style></title><svg onload=alert(1)>",
        "{{ 7 * 7 }}{% for x in y %}",
        "`<b>`",
        "\x00\x1b[31m\u202e\ud800",
        "&lt;b&gt;&#60;",
    ],
)
def test_what_a_student_writes_is_text(text: str) -> None:
    """Catches words of a submission that become tags, attributes or templates."""
    plain = Document(page(failing(first="`x`" if "`" in text else "x"), RUBRIC))
    words = failing(first=text, name=text, source=text)
    hostile = Document(page(words, RUBRIC))
    assert hostile.tags == plain.tags
    assert [name for name, _ in hostile.attributes] == [name for name, _ in plain.attributes]
    assert words.submission in hostile.texts
    assert f"{words.submission} · Two" in re.sub(r"\s+", " ", _unescaped_title(page(words, RUBRIC)))
    ungraded = page(bounded(grade_of(problem=text, name=text)), RUBRIC)
    assert Document(ungraded).tags == Document(page(grade_of(problem="x"), RUBRIC)).tags


def _unescaped_title(source: str) -> str:
    return html.unescape(source.partition("<title>")[2].partition("</title>")[0])


def test_the_page_needs_nothing_else() -> None:
    """Catches a script, a font or a picture that is loaded, which would also tell who reads."""
    source = page(failing(), RUBRIC)
    document = Document(source)
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(document.tags)
    assert not [name for name, _ in document.attributes if name.startswith("on")]
    assert not re.search(r"https?:|url\(|@import|src=", source)
    policy = next(v for n, v in document.attributes if n == "content" and v and "default-src" in v)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    ids = [value for name, value in document.attributes if name == "id"]
    links = [value for name, value in document.attributes if name == "href"]
    assert len(ids) == len(set(ids))
    assert links
    assert set(links) <= {f"#{it}" for it in ids}


def test_many_failures_unfold() -> None:
    """Catches a page that shows every failure at once, or that leaves some out."""
    source = page(failing(count=8), RUBRIC)
    assert "5 more tests fail" in source
    assert source.count("<details>") == 1
    assert all(f"test_first_{i}" in source for i in range(8))
    assert "<details>" not in page(failing(count=3), RUBRIC)


def test_one_picture_for_one_cause() -> None:
    """Catches the same picture for each test of one cause, or none where the causes differ."""
    assert page(failing(count=8), RUBRIC).count("<figure") == 1
    assert page(failing(count=8, explained=False), RUBRIC).count("<figure") == 3


def test_a_hint_keeps_the_numbers_back() -> None:
    """Catches expected numbers in the page of a student who is shown the places alone."""
    grade = failing()
    task = result_of(grade).tasks[0]
    assert PICTURE is not None
    bare = failure("no", picture=replace(PICTURE, got=None, expected=None))
    tests = tuple(replace(test, failure=bare) for test in task.tests)
    source = page(changed(grade, replace(task, tests=tests)), RUBRIC)
    assert "where it differs" in Document(source).texts
    assert not {"expected", "4.00"} & set(Document(source).texts)


def test_a_page_for_those_who_do_not_see() -> None:
    """Catches a picture or a sign without words, and a page without a language or headings."""
    document = Document(page(failing(), RUBRIC))
    labels = [value for name, value in document.attributes if name == "aria-label"]
    assert "difference: 2 × 3 values, 5 of 6 values differ" in labels
    assert {"wrong", "not started"} <= set(labels)
    assert ("lang", "en") in document.attributes
    assert document.tags.count("h1") == 1
    assert document.tags.count("main") == 1


def _colours(dark: bool) -> dict[str, str]:
    light, _, rest = SHEET.partition("prefers-color-scheme: dark")
    palette = dict(re.findall(r"--(\w+): (#\w{6})", light))
    return palette | (
        dict(re.findall(r"--(\w+): (#\w{6})", rest.split("\n}\n")[0])) if dark else {}
    )


def _contrast(one: str, other: str) -> float:
    """Contrast of two colours as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_has_contrast(dark: bool) -> None:
    """Catches a text with less contrast to its ground than 4.5, which WCAG AA asks for."""
    colours = _colours(dark)
    for text in ("ink", "soft", "good", "bad", "accent"):
        for ground in ("paper", "wash"):
            assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    levels = [f"{sign}{level}" for sign in "pn" for level in range(1, 6)]
    for ground in ("z", "strange", *levels):
        assert _contrast(colours["cell"], colours[ground]) >= 4.5, ground


def test_a_page_is_capped() -> None:
    """Catches a page of many long messages that grows without a bound."""
    why = failure("x" * 100_000, picture=WIDE)
    tests = tuple(TestResult(name=f"t{i}", state=C, failure=why) for i in range(500))
    source = page(bounded(grade_of(task_result(FIRST, [C] * 3, tests=tests))), RUBRIC)
    assert len(source.encode()) < 1_500_000


@in_browser
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_page_fits_the_window(width: int, tmp_path: Path) -> None:
    """Catches a page that is wider than its window."""
    file = tmp_path / "report.html"
    long = "x" * 300
    grade = failing(first=long, source=long, name=long)
    task = result_of(grade).tasks[0]
    why = task.tests[0].failure
    assert why is not None
    first = replace(task.tests[0], failure=replace(why, picture=WIDE))
    wide = changed(grade, replace(task, tests=(first, *task.tests[1:])))
    file.write_text(page(wide, RUBRIC), "utf-8")
    assert size_of(file, width)[0] == width


@in_browser
def test_the_page_is_light_or_dark(tmp_path: Path) -> None:
    """Catches a page that ignores what the reader's system asks for, or that stays blank."""
    file = tmp_path / "report.html"
    file.write_text(page(failing(), RUBRIC), "utf-8")
    for dark in (False, True):
        screenshot(file, tmp_path / "page.png", 600, 1800, dark=dark)
        with Image.open(tmp_path / "page.png") as shot:
            pixels = shot.convert("RGB").getcolors(1 << 24)
        assert pixels is not None
        colours = {f"#{bytes(rgb).hex()}" for _, rgb in pixels if isinstance(rgb, tuple)}
        palette = _colours(dark)
        assert {palette[name] for name in ("paper", "ink", "wash", "p5", "z")} <= colours
