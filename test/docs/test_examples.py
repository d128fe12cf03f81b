"""The Python in the documents runs as it is printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from images import need_images
from paths import ROOT

DOCS = ROOT / "docs"
PAGES = ["dynamics", "environments", "pipelines", "scale", "scene", "transformations"]


def test_tests_that_the_page_on_mjlab_names_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", (DOCS / "mjlab_tests.md").read_text()))
    there: set[str] = set()
    for file in Path(__file__).parents[1].rglob("test_*.py"):
        there.update(re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE))
    assert len(named) > 30
    assert sorted(named - there) == []


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All blocks of a page, one after the other as a reader would."""
    file = DOCS / f"{page}.md"
    if page == "scene":  # it has a picture
        need_images()
    text = file.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(file), "exec"), names)
    assert capsys.readouterr().out
