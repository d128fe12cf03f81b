"""The table of files in docs/concepts/architecture.md is made from a trace, and not outdated."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
from paths import ROOT

command_path = import_module("docs.command_path")
Traces = tuple[dict[Path, dict[str, None]], dict[Path, dict[str, None]]]
IDLE = {"Loop._wait", "Requests.sleep"}  # which the thread may call before or after the trace


@pytest.fixture(scope="module")
def traces() -> Traces:
    """Functions by file, of the thread that commands and of the one that flies."""
    posted, taken_up = command_path.trace_pose()
    assert sys.getprofile() is None
    return posted, taken_up


def test_the_committed_tables_have_the_functions_that_are_called(traces: Traces) -> None:
    text = (
        (ROOT / "docs" / "concepts" / "architecture.md")
        .read_text()
        .partition(command_path.BEGIN)[2]
    )
    tables = text.partition(command_path.END)[0].split("The tick that takes it up")
    for table, trace in zip(tables, traces, strict=True):
        rows = re.findall(r"^\| \[(.+?)\]\(.*\| (`.+`) \|$", table, re.MULTILINE)
        written = {file: set(names.strip("`").split("`, `")) - IDLE for file, names in rows}
        called = {
            str(file): {name.replace(".<locals>", "") for name in names} - IDLE
            for file, names in trace.items()
        }
        assert written == called, "run python -m docs.command_path again"


def test_the_thread_that_flies_plans_by_few_functions(traces: Traces) -> None:
    posted, taken_up = ({name for names in trace.values() for name in names} for trace in traces)
    assert "PhysicsThread.command" in posted and "Pose.plan" not in posted
    assert "Pose.plan" in taken_up and "PhysicsThread.command" not in taken_up
    assert len(taken_up) <= 70 and len(traces[1]) <= 20
