"""What launch files ask for beside `launch`, which is not needed here."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
import yaml
from paths import ROOT

from crazyflow_ros.resources import resource
from crazyflow_ros.ros.launch_support import refuse_unknown

FILE = str(ROOT / "launch" / "sim.launch.py")
KNOWN = ("n_drones", "drones", "dynamics")


def test_an_unknown_argument_is_refused_with_those_that_there_are() -> None:
    refuse_unknown(FILE, KNOWN, ["dynamics", "launch-prefix"])
    expected = (
        "sim.launch.py has no argument 'dynamic' (did you mean 'dynamics'?); "
        "it has drones, dynamics, n_drones. "
    )
    with pytest.raises(ValueError, match=re.escape(expected)):
        refuse_unknown(FILE, KNOWN, ["n_drones", "dynamic"])


def test_the_package_depends_on_all_that_its_launch_files_and_controllers_need() -> None:
    manifest = ET.parse(ROOT / "package.xml").getroot()
    needed = {element.text for kind in ("exec_depend", "depend") for element in manifest.iter(kind)}
    files = [*(ROOT / "launch").glob("*.launch.py"), ROOT / "crazyflow_ros/ros/launch_nodes.py"]
    started = {p for file in files for p in re.findall(r'package="(\w+)"', file.read_text())}
    assert {"controller_manager", "rviz2", "robot_state_publisher"} <= started
    nodes = yaml.safe_load(resource("config", "controllers.yaml").read_text())["/**"]
    types = nodes["controller_manager"]["ros__parameters"].values()
    controllers = {kind["type"].partition("/")[0] for kind in types if isinstance(kind, dict)}
    assert "pid_controller" in controllers
    assert started | controllers | {"xacro"} <= needed | {"crazyflow_ros"}
