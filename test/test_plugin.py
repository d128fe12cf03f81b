"""The plugin for ros2_control, as far as it can be seen without: its names."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from crazyflow_ros.hardware.interfaces import AXES, BODY, ROTORS, SENSORS

ROOT = Path(__file__).parents[1]
SOURCE = (ROOT / "hardware" / "src" / "interfaces.hpp").read_text()


def listed(array):
    (body,) = re.findall(rf"{array} = {{(.*?)}};", SOURCE, re.DOTALL)
    return re.findall(r'"([^"]+)"', body)


def test_the_plugin_has_the_interfaces_that_the_description_declares():
    components = (*ROTORS, *SENSORS, *AXES, BODY)
    states = [f"{c.suffix}/{name}" for c in components for name in c.states]
    commands = [f"{c.suffix}/{name}" for c in components for name in c.commands]
    assert sorted(listed("kStates")) == sorted(states)
    assert sorted(listed("kCommands")) == sorted(commands)


def test_the_plugin_is_exported_under_the_name_that_the_description_asks_for():
    library = ET.parse(ROOT / "hardware" / "crazyflow_system.xml").getroot()
    (plugin,) = library.findall("class")
    assert plugin.get("name") == "crazyflow_ros/CrazyflowSystem"
    assert (
        f"PLUGINLIB_EXPORT_CLASS({plugin.get('type')}, {plugin.get('base_class_type')})"
        in (ROOT / "hardware" / "src" / "crazyflow_system.cpp").read_text()
    )
    cmake = (ROOT / "CMakeLists.txt").read_text()
    assert f"add_library({library.get('path')} SHARED" in cmake
