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
from staff.reports import page
from staff.reports.page import _HERE
from staff.reports.shown import bounded
from staff.tests.support import grade_of, small_rubric, task_result
from tests.harness.pictures import picture_of
from tests.harness.results import State, TestResult

P, W, C, S = State.PASSED, State.WRONG, State.CRASHED, State.NOT_STARTED
RUBRIC = small_rubric()
FIRST, SECOND = RUBRIC.tasks
PICTURE = picture_of("batch 2", torch.zeros(2, 3), torch.arange(6.0).reshape(2, 3).double(), 1.0)
TOLD = ("This is what comes out when x.", "Ask yourself: Which `axis`?")
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

    def handle_starttag(self, tag, attrs):
        """Open a tag."""
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """Take down a tag without content."""
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        """Close the tag that was opened last."""
        assert self._open.pop() == tag

    def handle_data(self, data):
        """Take down a text, but not that of the head."""
        if self._open[-1:] not in (["style"], ["title"]) and data.strip():
            self.texts.append(" ".join(data.split()))


def failing(count=3, told=TOLD, first="got 1 at [0], expected 2", name="ada", frame="f.py:1 in f"):
    """A grade whose first task fails in every way that a page shows."""
    lines = (*told, first, f"  {frame}", "saved case: batch 2", "this test: Rows sum to one.")
    tests = tuple(
        TestResult(name=f"test_first_{i}", state=W, lines=lines, picture=PICTURE)
        for i in range(count)
    )
    task = task_result(FIRST, [W, P, P], tests=tests, told=told)
    return bounded(grade_of(task, task_result(SECOND, [S]), name=name))


def test_the_page_says_it_all() -> None:
    """Catches points, a next step, a message or a hint that does not reach the student."""
    texts = Document(page(failing(), RUBRIC)).texts
    for text in ("ada", "Two", "2", "of 4 points", "50 %", "Next", "pytest --task=first"):
        assert text in texts
    assert "Mend cs336_basics/first.py, then run" in texts
    for text in (TOLD[0], "Which", "axis", "got 1 at [0], expected 2", "f.py:1 in f"):
        assert text in texts
    assert {"saved case: batch 2", "Rows sum to one.", "test_first_0"} <= set(texts)
    assert {"got", "expected", "difference"} <= set(texts)
    assert {"First", "Second", "3 of 3 tests fail", "2 / 3", "0 / 1"} <= set(texts)
    assert texts.count(TOLD[0]) == 1


def test_a_page_of_a_right_submission() -> None:
    """Catches a page that goes on about mistakes, or sends on, when all is done."""
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
def test_what_a_student_writes_is_text(text) -> None:
    """Catches words of a submission that become tags, attributes or templates."""
    plain = Document(page(failing(first="`x`" if "`" in text else "x"), RUBRIC))
    words = failing(first=text, name=text, frame=text)
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
    policy = next(v for n, v in document.attributes if n == "content" and "default-src" in v)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    ids = [value for name, value in document.attributes if name == "id"]
    links = [value for name, value in document.attributes if name == "href"]
    assert len(ids) == len(set(ids))
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_many_failures_unfold() -> None:
    """Catches a wall of failures, and one that can't be read at all."""
    source = page(failing(count=8), RUBRIC)
    assert "5 more tests fail" in source
    assert source.count("<details>") == 1
    assert all(f"test_first_{i}" in source for i in range(8))
    assert "<details>" not in page(failing(count=3), RUBRIC)


def test_one_picture_for_one_cause() -> None:
    """Catches the same picture over and over, or none where every test has its own cause."""
    assert page(failing(count=8), RUBRIC).count("<figure") == 1
    assert page(failing(count=8, told=()), RUBRIC).count("<figure") == 3


def test_a_hint_keeps_the_numbers_back() -> None:
    """Catches expected numbers in the page of a student who is shown the places alone."""
    grade = failing()
    task = grade.run.result.tasks[0]
    bare = replace(PICTURE, got=None, expected=None)
    tests = tuple(replace(test, picture=bare) for test in task.tests)
    tasks = (replace(task, tests=tests), *grade.run.result.tasks[1:])
    source = page(
        replace(grade, run=replace(grade.run, result=replace(grade.run.result, tasks=tasks))),
        RUBRIC,
    )
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
def test_text_has_contrast(dark) -> None:
    """Catches a colour too near to what it stands on: WCAG AA asks for 4.5."""
    colours = _colours(dark)
    for text in ("ink", "soft", "good", "bad", "accent"):
        for ground in ("paper", "wash"):
            assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    levels = [f"{sign}{level}" for sign in "pn" for level in range(1, 6)]
    for ground in ("z", "strange", *levels):
        assert _contrast(colours["cell"], colours[ground]) >= 4.5, ground


def test_a_page_is_capped() -> None:
    """Catches a page that no phone can hold."""
    wide = picture_of("c", torch.zeros(40, 40), torch.randn(40, 40).double(), 1.0)
    lines = ("x" * 100_000,)
    tests = tuple(TestResult(name=f"t{i}", state=C, lines=lines, picture=wide) for i in range(500))
    source = page(bounded(grade_of(task_result(FIRST, [C] * 3, tests=tests))), RUBRIC)
    assert len(source.encode()) < 1_500_000


@in_browser
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_page_fits_the_window(width, tmp_path: Path) -> None:
    """Catches a page that must be moved sideways to be read."""
    file = tmp_path / "report.html"
    long = "x" * 300
    wide = picture_of("c", torch.zeros(40, 40), torch.randn(40, 40).double(), 1.0)
    grade = failing(first=long, frame=long, name=long)
    task = grade.run.result.tasks[0]
    task = replace(task, tests=(replace(task.tests[0], picture=wide), *task.tests[1:]))
    tasks = (task, *grade.run.result.tasks[1:])
    grade = replace(grade, run=replace(grade.run, result=replace(grade.run.result, tasks=tasks)))
    file.write_text(page(grade, RUBRIC), "utf-8")
    assert size_of(file, width)[0] == width


@in_browser
def test_the_page_is_light_or_dark(tmp_path: Path) -> None:
    """Catches a page that ignores what the reader's system asks for, or that stays blank."""
    file = tmp_path / "report.html"
    file.write_text(page(failing(), RUBRIC), "utf-8")
    for dark in (False, True):
        screenshot(file, tmp_path / "page.png", 600, 1800, dark=dark)
        with Image.open(tmp_path / "page.png") as shot:
            colours = {
                f"#{r:02x}{g:02x}{b:02x}" for _, (r, g, b) in shot.convert("RGB").getcolors(1 << 24)
            }
        palette = _colours(dark)
        assert {palette[name] for name in ("paper", "ink", "wash", "p5", "z")} <= colours
