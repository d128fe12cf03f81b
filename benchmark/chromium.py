"""A Chromium without a window, for benchmarks, tests and the pictures of the docs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
"""Programs that are looked for."""
_ARGUMENTS = (  # to draw without a graphics card
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)


def find_chromium() -> str | None:
    """Return the path of the browser; None: there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """Start the browser, each tab of which is a page of Playwright's, and end it.

    Raises:
        FileNotFoundError: There is none.
        ModuleNotFoundError: Playwright is not installed.
    """
    from playwright.sync_api import sync_playwright

    path = find_chromium()
    if path is None:
        raise FileNotFoundError(f"none of {', '.join(NAMES)} is installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()
