"""The pages of parameters, commands and limits are what the code says."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from crazyflow_ros.checks import limits

pytest.importorskip("rclpy", reason="extensions and programs import it")
reference_pages = import_module("docs.reference_pages")

WRITTEN = reference_pages.pages()


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_the_page_is_up_to_date(page: reference_pages.Path) -> None:
    assert page.read_text() == WRITTEN[page], "run python -m docs.reference_pages"


def test_every_command_has_a_section() -> None:
    (text,) = (text for page, text in WRITTEN.items() if page.name == "commands.md")
    known = reference_pages.groups().values()
    assert re.findall("^### (.+)", text, re.M) == [one.name for group in known for one in group]
    assert "| `--duration SECONDS` | how long it takes in simulated time" in text
    assert "| `[recording]` | MCAP file to play" in text, "of a program"


def test_every_limit_has_a_row() -> None:
    (text,) = (text for page, text in WRITTEN.items() if page.name == "limits.md")
    for row in (
        f"| rotor velocity | {limits.ROTOR_VELOCITY.most:,.0f} rad/s |",
        f"| acceleration | {limits.ACCELERATION.most:,.0f} m/s² |",
        f"| Ticks of a request | {limits.STEPS:,} |",
        f"| Objects spawned in a world | {limits.OBJECTS:,} |",
    ):
        assert row in text
    inside = text.partition(reference_pages.BEGIN)[2].partition(reference_pages.END)[0]
    constants = [name for name in vars(limits) if re.fullmatch("[A-Z][A-Z_]+", name)]
    constants = [name for name in constants if name not in ("QUATERNION", "TYPE_CHECKING")]
    assert inside.count("\n|") == len(constants) + 4  # of the headers
