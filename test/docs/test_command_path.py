"""The table of files in docs/architecture.md is made from a trace, and not outdated."""

from __future__ import annotations

import importlib.util
import re
import sys

from paths import ROOT

DOCS = ROOT / "docs"
spec = importlib.util.spec_from_file_location("command_path", DOCS / "command_path.py")
assert spec is not None and spec.loader is not None
command_path = importlib.util.module_from_spec(spec)
spec.loader.exec_module(command_path)


def test_the_committed_table_names_files_that_exist() -> None:
    text = (DOCS / "architecture.md").read_text().partition(command_path.BEGIN)[2]
    written, end, _ = text.partition(command_path.END)
    files = re.findall(r"^\| \[(.+?)\]\(", written, re.MULTILINE)
    assert end and len(files) > 10
    missing = [file for file in files if not (ROOT / "crazyflow_ros" / file).is_file()]
    assert not missing, "run python -m docs.command_path again"


def test_a_trace_has_the_thread_that_plans_and_not_the_one_that_commands() -> None:
    posted, taken_up = command_path.trace_pose()
    assert sys.getprofile() is None
    planned = {name for names in taken_up.values() for name in names}
    commanded = {name for names in posted.values() for name in names}
    assert "PhysicsThread.command" in commanded and "Pose.plan" not in commanded
    assert "Pose.plan" in planned and "PhysicsThread.command" not in planned
    assert len(command_path.table(taken_up).splitlines()) == 2 + len(taken_up)
