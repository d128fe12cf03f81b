"""The Python in the documents runs as it is printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from images import need_images
from paths import ROOT

DOCS = ROOT / "docs"
DRAWING = ["cameras", "scene", "sensors", "visualise"]
PAGES = [
    "control",
    "dynamics",
    "environments",
    "estimation",
    "flight_logs",
    "identification",
    "moving_worlds",
    "mujoco_ros2_control",
    "pipelines",
    "policies",
    "scale",
    "training",
    "transformations",
    *DRAWING,
]

COMPILING = {"environments", "pipelines", "training"}
"""Pages whose examples compile for a minute and more: `make soak` runs them."""


def test_all_pages_with_examples_are_run() -> None:
    """Elsewhere: test_extend.py runs those of extend.md, test_app.py the app of crazyflie.md."""
    with_examples = {
        file.stem for file in DOCS.rglob("*.md") if "\n```python\n" in file.read_text()
    }
    assert with_examples - {"crazyflie", "extend"} == set(PAGES)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.soak if page in COMPILING else ()) for page in PAGES],
)
def test_examples_run(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All blocks of a page, one after the other as a reader would."""
    (file,) = DOCS.rglob(f"{page}.md")
    if page in DRAWING:
        need_images()
    monkeypatch.chdir(tmp_path)
    text = file.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(file), "exec"), names)
    assert capsys.readouterr().out
