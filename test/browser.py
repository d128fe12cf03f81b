"""A Chromium without a window, as the people who open the page have one."""

from __future__ import annotations

import io
import os
from base64 import b64decode
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from benchmark.chromium import NAMES, find_chromium

NEEDED = "CRAZYFLOW_ROS_TEST_BROWSER"
"""Variable with which tests fail that would be skipped without a browser."""
PATIENCE = 60_000  # ms, a machine may be slow, busy and without a GPU


def missing() -> str | None:
    """Say what a browser lacks; None: nothing."""
    if find_spec("playwright") is None:
        return "the Python package playwright is not installed"
    if find_chromium() is None:
        return f"none of {', '.join(NAMES)} is installed"
    return None


needs_browser = pytest.mark.skipif(
    missing() is not None and not os.environ.get(NEEDED), reason=f"no browser: {missing()}"
)


class Tab:
    """A tab with the page.

    Args:
        browser: The browser.
        url: Address of the page.
        size: Width and height in pixels.
        options: Of the browser's tab, see `playwright.sync_api.Browser.new_page`.

    Attributes:
        page: Playwright's.
        errors: What the page or its console called an error.
    """

    def __init__(
        self, browser: Any, url: str, size: tuple[int, int] = (480, 360), **options: Any
    ) -> None:
        self.size, self.errors = size, list[str]()
        self.page = browser.new_page(viewport={"width": size[0], "height": size[1]}, **options)
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

        canvas = self.page.locator("canvas[data-engine]")
        content = b64decode(canvas.evaluate("canvas => canvas.toDataURL()").partition(",")[2])
        with Image.open(io.BytesIO(content)) as image:
            return np.asarray(image.convert("RGBA").resize(self.size), float)[..., :3]

    def input_of(self, label: str) -> Any:
        """The field of an input, which viser ties to its label by nothing but its place."""
        labels = self.page.get_by_text(label, exact=True)
        return labels.locator("xpath=ancestor::*[.//input][1]//input[not(@type='hidden')]")

    def close(self) -> None:
        """Close the tab."""
        self.page.close()
