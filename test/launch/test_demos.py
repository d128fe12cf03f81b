"""`launch/demo_*.launch.py` under the real `launch`: what they start, and what they say then."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml
from launching import Launcher

from crazyflow_ros.resources import resource

DEMOS = sorted(path.name for path in resource("launch").glob("demo_*.launch.py"))
STARTED = {"demo_1": 3, "demo_2": 9, "demo_3": 3, "demo_4": 3}
"""Simulator, managers and spawners."""
TOLD = {"demo_1": 1, "demo_2": 4, "demo_3": 3, "demo_4": 2}
"""Topics that are published at first."""


@pytest.mark.parametrize("file", DEMOS)
def test_commands_follow_once_controllers_run(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = file[:6]
    launched = Launcher(file, tmp_path, monkeypatch)
    ros2 = tmp_path / "bin" / "ros2"
    ros2.parent.mkdir()
    ros2.write_text("#!/bin/sh\nexec sleep 60\n")
    ros2.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ros2.parent}:{os.environ['PATH']}")
    processes = launched(STARTED[name] + TOLD[name])
    first, told = processes[: STARTED[name]], processes[STARTED[name] :]
    assert "ros2" not in {p.executable for p in first}
    assert {p.executable for p in told} == {"ros2"}
    started = {word for p in first if p.executable == "spawner" for word in p.arguments}
    for process in told:
        *words, topic, kind, content = process.command[1:]
        assert words[:4] == ["topic", "pub", "-w", "1"]
        assert re.fullmatch(r"\w+_msgs/msg/\w+", kind) and yaml.safe_load(content)
        controller = topic.split("/")[-2]  # of one of the controllers that were started
        assert controller in started, (topic, started)


def test_nothing_follows_controllers_that_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched = Launcher(DEMOS[0], tmp_path, monkeypatch)
    spawner = tmp_path / "lib" / "controller_manager" / "spawner"
    spawner.write_text("#!/bin/sh\nexit 1\n")
    assert [p.executable for p in launched(9)][-1] == "spawner"  # it ends by itself
