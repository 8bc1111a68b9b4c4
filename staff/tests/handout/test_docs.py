"""The documents: their paths, links, commands and quoted excerpts must exist."""

import fnmatch
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from staff.catalogue.patches import load_alternates, load_mistakes
from staff.cli import app
from staff.figures.architecture import ANSWER, CASE
from staff.paths import ROOT, TESTS
from tests.harness.rubric import read_rubric

PAGES = {
    str(file.relative_to(ROOT)): file.read_text("utf-8")
    for file in (
        *sorted((ROOT / "docs").glob("*.md")),
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
    )
}
EVERY_PAGE = pytest.mark.parametrize("page", PAGES)
ELSEWHERE = ("build/", "grades/", "tests/adapters.py", "report.md", "report.txt")
"""Paths that commands write, or that only submissions in the public layout have."""
BLOCK = re.compile(r"(?:<!-- from (\S+) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TARGETS = re.findall(r"^([a-z.]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
PYTEST_OPTIONS = {
    "--tb",
    *re.findall(r'"(--\w+)"', (TESTS / "harness" / "plugin.py").read_text("utf-8")),
}


def spans(text: str) -> list[str]:
    """Return the texts between backticks, outside of code blocks."""
    return re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))


@cache
def everything() -> tuple[set[str], set[str]]:
    """Return the paths of all files and folders in the repository, and all file names."""
    paths: set[str] = set()
    names: set[str] = set()
    for folder, inner, files in os.walk(ROOT):
        inner[:] = [n for n in inner if n[0] != "." and n not in ("build", "grades", "__pycache__")]
        paths.update((Path(folder) / name).relative_to(ROOT).as_posix() for name in inner + files)
        names.update(files)
    return paths, names


def missing_paths(text: str) -> Iterator[str]:
    """Yield paths of a text that the repository lacks; `<stem>` matches any name."""
    paths, names = everything()
    for span in spans(text):
        path = re.sub(r"<\w+>", "*", span).rstrip("/")
        if not re.fullmatch(r"[\w.*/-]+", path) or span.startswith(ELSEWHERE):
            continue
        known = paths if "/" in span else names
        named = "/" in span or path.endswith((".py", ".toml", ".md", ".txt"))
        if named and not fnmatch.filter(known, path):
            yield span


def missing_links(text: str, page: Path) -> Iterator[str]:
    """Yield links of a page whose file or heading doesn't exist."""
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, heading = target.partition("#")
        file = (page.parent / name) if name else page
        if target.startswith("http"):
            continue
        if not file.exists() or (heading and heading not in headings(file.read_text("utf-8"))):
            yield target


def headings(text: str) -> set[str]:
    """Return the anchors that GitHub makes from a page's headings."""
    titles = re.findall(r"^#+ (.+)$", BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def commands(text: str) -> Iterator[list[str]]:
    """Yield the commands in code spans and shell blocks, each as a list of words."""
    shell = [body for _, language, body in BLOCK.findall(text) if language == "sh"]
    for line in (*spans(text), *"\n".join(shell).splitlines()):
        words = line.partition(" #")[0].split()
        if words:
            yield [words[0].removeprefix(".venv/bin/"), *words[1:]]


def wrong_commands(text: str) -> Iterator[str]:
    """Yield each command that has a wrong word, as `command: first wrong word`."""
    for first, *words in commands(text):
        wrong: list[str] = []
        if first == "cs336":
            wrong = list(wrong_words(typer.main.get_command(app), words))
        elif first == "make" and words:
            wrong = [word for word in words[:1] if word not in TARGETS]
        elif first == "pytest":
            options = [word.partition("=")[0] for word in words if word.startswith("--")]
            wrong = [option for option in options if option not in PYTEST_OPTIONS]
        elif first == "python" and words[:1] == ["-m"]:
            wrong = [name for name in words[1:2] if not module_exists(name)]
        yield from (f"{first}: {word}" for word in wrong[:1])


def wrong_words(command: Any, words: list[str]) -> Iterator[str]:
    """Yield subcommands and options that `cs336` doesn't have; `a|b` means either name."""
    for word in words:
        known = getattr(command, "commands", None)
        if word.startswith("--"):
            options = {option for parameter in command.params for option in parameter.opts}
            if word.partition("=")[0] not in {*options, "--help"}:
                yield word
        elif known:
            for name in word.split("|"):
                if name not in known:
                    yield name
            command = known.get(word.split("|")[0], command)


def module_exists(name: str) -> bool:
    """Return whether the name is `venv` or that of a module in the repository."""
    file = ROOT / f"{name.replace('.', '/')}.py"
    return file.is_file() or name == "venv"


def wrong_quotes(text: str) -> Iterator[str]:
    """Yield excerpts that name no file, or that the named file doesn't contain.

    A line `…` in an excerpt marks omitted lines.
    """
    for name, language, body in BLOCK.findall(text):
        if not name and language in ("python", "toml"):
            yield f"no file is named: {body.splitlines()[0]}"
        rest = (ROOT / name).read_text("utf-8") if name else ""
        for piece in re.split(r"^…\n", body, flags=re.MULTILINE) if name else ():
            if piece not in rest:
                yield f"{name}: {piece.splitlines()[0]}"
            rest = rest.partition(piece)[2]


@EVERY_PAGE
def test_paths_exist(page: str) -> None:
    """Catches a path in a document whose file was moved or removed."""
    assert not list(missing_paths(PAGES[page]))


@EVERY_PAGE
def test_links_lead_somewhere(page: str) -> None:
    """Catches a link to a file or a heading that doesn't exist."""
    assert not list(missing_links(PAGES[page], ROOT / page))


@EVERY_PAGE
def test_commands_exist(page: str) -> None:
    """Catches a document with a command, make target, option or module that doesn't exist."""
    assert not list(wrong_commands(PAGES[page]))


@EVERY_PAGE
def test_quotes_are_real(page: str) -> None:
    """Catches an excerpt that its file no longer contains, or that names no file."""
    assert not list(wrong_quotes(PAGES[page]))


def test_what_is_wrong_is_found() -> None:
    """Catches a check of the documents that accepts a wrong path, link, command or excerpt."""
    page = ROOT / "README.md"
    assert list(missing_paths("`staff/gone.py` `gone.py` `tests/test_<stem>.py`")) == [
        "staff/gone.py",
        "gone.py",
    ]
    assert list(missing_links("[a](gone.md) [b](#gone) [c](#students)", page)) == [
        "gone.md",
        "#gone",
    ]
    text = "`cs336 gone` `cs336 audit --gone` `cs336 fixtures build|gone` `make gone` `make test`"
    block = "```sh\n.venv/bin/pytest --gone  # why\npython -m labs.gone\n```\n"
    assert list(wrong_commands(f"{text}\n{block}")) == [
        *("cs336: gone", "cs336: --gone", "cs336: gone", "make: gone"),
        *("pytest: --gone", "python: labs.gone"),
    ]
    quote = "<!-- from pyproject.toml -->\n```toml\n[project]\n…\n[build-system]\n```\n"
    assert list(wrong_quotes(quote)) == ["pyproject.toml: [build-system]"]
    assert list(wrong_quotes("```python\nx = 1\n```\n")) == ["no file is named: x = 1"]


def test_the_worked_example_quotes_every_step() -> None:
    """Catches an excerpt of docs/adding-a-task.md without its `<!-- from … -->` mark."""
    quoted = {name for name, _, _ in BLOCK.findall(PAGES["docs/adding-a-task.md"]) if name}
    task = read_rubric().task("rmsnorm")
    for name in ("staff/fixtures/inputs", "staff/fixtures/oracle", "staff/solution/cs336_basics"):
        assert f"{name}/{task.stem}.py" in quoted
    assert {"tests/assignment.toml", "staff/solution/adapters.py"} <= quoted
    assert f"tests/test_{task.stem}.py" in quoted
    assert f"staff/catalogue/mistakes/{task.id}.toml" in quoted


def test_the_picture_shows_what_is_there() -> None:
    """Catches a box of the architecture picture whose file or folder doesn't exist."""
    assert not list(missing_paths(" ".join(f"`{box.path}`" for box in (*ANSWER, *CASE))))


def test_the_glossary_is_a_table_to_look_words_up_in() -> None:
    """Catches a glossary word that is repeated, out of order or without a file."""
    rows = re.findall(r"^\| (.+?) \| .+ \| `\S+` \|$", PAGES["docs/glossary.md"], re.MULTILINE)
    assert len(rows) == PAGES["docs/glossary.md"].count("\n| ") - 1
    assert rows == sorted(set(rows), key=str.lower)


def test_the_readme_counts_rightly() -> None:
    """Catches outdated numbers of mistakes, alternates and tasks in the README."""
    known = f"{len(load_mistakes()):,} known mistakes and {len(load_alternates())} right answers"
    readme, rubric = PAGES["README.md"].replace("\n", " "), read_rubric()
    assert known in " ".join(readme.split())
    assert (len(rubric.tasks) - len(rubric.bonus), len(rubric.bonus)) == (24, 12)
    assert "writes twenty-four small pieces" in readme
    assert "Twelve more pieces" in readme
