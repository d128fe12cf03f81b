"""A Chromium without a window, as the people who open the page have one."""

from __future__ import annotations

import io
import os
from base64 import b64decode
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from benchmark.chromium import NAMES, find_chromium

NEEDED = "CRAZYFLOW_ROS_TEST_BROWSER"
"""Variable with which tests fail that would be skipped without a browser."""
COARSE = "fixedDpr=0.1"
"""In the address of a page: its scene, which tests of the rest do not look at, is drawn faster."""
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


needs_axe = pytest.mark.skipif(
    find_spec("axe_playwright_python") is None and not os.environ.get(NEEDED),
    reason="the Python package axe-playwright-python, which brings axe-core, is not installed",
)
CONTRAST = "color-contrast"
"""The rule of axe-core that looks at colours."""
LEAST_CONTRAST = 4.5  # of WCAG 2, AA
ON_TOP = """element => {
    const {left, top, width, height} = element.getBoundingClientRect();
    const inside = left >= 0 && top >= 0 && left + width <= innerWidth;
    const hit = document.elementFromPoint(left + width / 2, top + height / 2);
    return inside && element.contains(hit);
}"""

BOXES_ON_TOP = f"""names => names.map(name => document.querySelector(name))
    .map(element => ({ON_TOP})(element) && element.getBoundingClientRect().toJSON())"""


def contrast(picture: np.ndarray, box: Mapping[str, float]) -> float:
    """The contrast (WCAG 2) of what is drawn on the most frequent colour within a box."""
    x, y, width, height = (round(box[side]) for side in ("x", "y", "width", "height"))
    pixels = picture[y : y + height, x : x + width].reshape(-1, 3)
    colors, counts = np.unique(pixels, axis=0, return_counts=True)
    share = np.array([*colors, colors[counts.argmax()]]) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    brighter, darker = np.maximum(luminance, luminance[-1]), np.minimum(luminance, luminance[-1])
    return float(((brighter + 0.05) / (darker + 0.05)).max())


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

    def screen(self) -> np.ndarray:
        """What the tab shows, (height, width, 3)."""
        from PIL import Image

        with Image.open(io.BytesIO(self.page.screenshot())) as image:
            return np.asarray(image.convert("RGB"))

    def barriers(self, *rules: str) -> list[str]:
        """What axe-core calls serious or critical, and texts without contrast; empty: nothing.

        Where axe-core does not know what is behind a text, the picture tells.

        Args:
            rules: Those of axe-core that are looked at; by default all.
        """
        from axe_playwright_python.sync_playwright import Axe

        wanted: dict[str, Any] = {"resultTypes": ["violations", "incomplete"]}
        if rules:
            wanted["runOnly"] = list(rules)
        found = Axe().run(self.page, options=wanted).response
        lines = [
            f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]
        unknown = [
            node
            for one in found["incomplete"]
            for node in (one["nodes"] if one["id"] == CONTRAST else ())
        ]
        if not unknown:
            return lines
        boxes = self.page.evaluate(BOXES_ON_TOP, [node["target"][0] for node in unknown])
        screen = self.screen()
        return lines + [
            f"contrast {contrast(screen, box):.2f}: {node['html'][:200]}"
            for node, box in zip(unknown, boxes)
            if box and contrast(screen, box) < LEAST_CONTRAST
        ]

    def input_of(self, label: str) -> Any:
        """The field of an input of the panel."""
        return self.page.get_by_label(label, exact=True).first

    def close(self) -> None:
        """Close the tab."""
        self.page.close()
