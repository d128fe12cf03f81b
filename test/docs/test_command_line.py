"""Commands in the pages are understood; test_reference_pages.py looks at their list."""

from __future__ import annotations

import re
import shlex

import pytest
from paths import ROOT

from crazyflow_ros.client.command_line.command import SimulatorCommand
from crazyflow_ros.client.command_line.command_list import find

CALLED = re.compile(r"^ {4}\.venv/bin/python -m crazyflow_ros (?!--)(.+?)(?:  +#.*)?$", re.M)
LINES = [
    (file.name, line)
    for file in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    for line in CALLED.findall(file.read_text())
]


@pytest.mark.parametrize(("page", "line"), LINES)
def test_commands_of_the_pages_are_understood(page: str, line: str) -> None:
    command, rest = find(shlex.split(line))
    if isinstance(command, SimulatorCommand):
        command.parser().parse_intermixed_args(rest)


def test_there_are_commands_in_the_pages() -> None:
    assert len(LINES) > 10
