"""The page of the command line has the commands that there are, with what they do."""

from __future__ import annotations

import re
import shlex

import pytest
from paths import ROOT

from crazyflow_ros.client.command_line.command import SimulatorCommand
from crazyflow_ros.client.command_line.command_list import find, groups

PAGE = (ROOT / "docs" / "guides" / "command_line.md").read_text()
CALLED = re.compile(r"^ {4}\.venv/bin/python -m crazyflow_ros (?!--)(.+?)(?:  +#.*)?$", re.M)
LINES = [
    (file.name, line)
    for file in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    for line in CALLED.findall(file.read_text())
]


def test_the_table_has_all_commands() -> None:
    rows = re.findall(r"^\| `([a-z0-9_ -]+)` \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [(one.name, one.text) for group in groups().values() for one in group]


@pytest.mark.parametrize(("page", "line"), LINES)
def test_commands_of_the_pages_are_understood(page: str, line: str) -> None:
    command, rest = find(shlex.split(line))
    if isinstance(command, SimulatorCommand):
        command.parser().parse_intermixed_args(rest)


def test_there_are_commands_in_the_pages() -> None:
    assert len(LINES) > 10
