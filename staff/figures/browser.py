"""Chromium shows a page: `screenshot` takes a picture of it, `size_of` measures it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FRAME = """<!doctype html><meta charset="utf-8"><style>body {{ margin: 0 }}</style>
<iframe style="border: 0; width: {width}px; height: {height}px" src="{page}"></iframe>{script}"""
_MEASURE = """<script>onload = () => {
  const it = document.querySelector("iframe").contentDocument.documentElement;
  document.title = `${it.scrollWidth} × ${it.scrollHeight}`;
}</script>"""


def chromium() -> str | None:
    """Return the path of the browser, or None if none is installed."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def screenshot(
    page: Path, picture: Path, width: int, height: int, *, dark: bool = False, section: str = ""
) -> None:
    """Take a picture of a page.

    Args:
        page: an HTML file.
        picture: the PNG that is written.
        width: the width of the window, in pixels.
        height: the height of the window, in pixels.
        dark: whether the browser prefers dark colours.
        section: the id of the element at the top of the picture; if empty, the page's top.

    Raises:
        FileNotFoundError: no browser is installed.
        subprocess.CalledProcessError: the browser failed.
    """
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    size = f"--window-size={max(width, 500)},{height}"
    with TemporaryDirectory() as folder:
        frame = _framed(page, Path(folder), width, height, section=section)
        _run(frame, scheme, size, f"--screenshot={picture}")


def size_of(page: Path, width: int) -> tuple[int, int]:
    """Measure the width and height of a page, in pixels, in a window that is `width` pixels wide.

    Raises:
        FileNotFoundError: no browser is installed.
        subprocess.CalledProcessError: the browser failed.
    """
    with TemporaryDirectory() as folder:
        frame = _framed(page, Path(folder), width, 1000, script=_MEASURE)
        document = _run(frame, "--allow-file-access-from-files", "--dump-dom")
    title = document.partition("<title>")[2].partition("</title>")[0]
    measured, _, height = title.partition(" × ")
    return int(measured), int(height)


def _framed(
    page: Path, folder: Path, width: int, height: int, *, section: str = "", script: str = ""
) -> Path:
    """Write a page that shows `page` in a frame: a window can't be as narrow as a phone."""
    frame = folder / "frame.html"
    source = f"{page.resolve().as_uri()}#{section}"
    frame.write_text(_FRAME.format(width=width, height=height, page=source, script=script), "utf-8")
    return frame


def _run(page: Path, *options: str) -> str:
    browser = chromium()
    if browser is None:
        raise FileNotFoundError("no Chromium is installed; on Debian: apt install chromium")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    profile = f"--user-data-dir={page.parent / 'profile'}"
    done = subprocess.run(
        [*command, profile, *options, page.as_uri()], capture_output=True, timeout=60, check=True
    )
    return done.stdout.decode("utf-8", "replace")
