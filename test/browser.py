"""A Chromium without a window, as the people who open the page have one."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

NEEDED = "CRAZYFLOW_ROS_TEST_BROWSER"
"""Variable with which tests fail that would be skipped without a browser."""
PATIENCE = 60_000  # ms, a machine may be slow, busy and without a GPU
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = (
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)


def missing() -> str | None:
    """Say what a browser lacks; None: nothing."""
    if find_spec("playwright") is None:
        return "the Python package playwright is not installed"
    if not any(map(shutil.which, _NAMES)):
        return f"none of {', '.join(_NAMES)} is installed"
    return None


needs_browser = pytest.mark.skipif(
    missing() is not None and not os.environ.get(NEEDED), reason=f"no browser: {missing()}"
)


@contextmanager
def open_browser() -> Iterator[Any]:
    """A browser, of which each tab is a page of Playwright's."""
    reason = missing()
    assert reason is None, reason
    from playwright.sync_api import sync_playwright

    (path, *_) = filter(None, map(shutil.which, _NAMES))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A tab with the page.

    Args:
        browser: The browser.
        url: Address of the page.
        size: Width and height in pixels.

    Attributes:
        page: Playwright's.
        errors: What the page or its console called an error.
    """

    def __init__(self, browser: Any, url: str, size: tuple[int, int] = (480, 360)) -> None:
        self.size, self.errors = size, list[str]()
        self.page = browser.new_page(viewport={"width": size[0], "height": size[1]})
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(url)

    def _note(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def picture(self) -> np.ndarray:
        """What the scene looks like without what lies over it, (height, width, 3) from 0 to 255."""
        from PIL import Image

        content = self.page.locator("canvas[data-engine]").evaluate(
            "canvas => fetch(canvas.toDataURL()).then(r => r.blob()).then(b => b.arrayBuffer())"
            ".then(b => Array.from(new Uint8Array(b)))"
        )
        with Image.open(io.BytesIO(bytes(content))) as image:
            return np.asarray(image.convert("RGBA").resize(self.size), float)[..., :3]

    def close(self) -> None:
        """Close the tab."""
        self.page.close()
