from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from crazyflow_ros.resources import resource
from crazyflow_ros.ros.rviz_files import expand
from crazyflow_ros.ros.sensors.sensors_file import load

TEMPLATE = resource("rviz", "crazyflow.rviz").read_text()


def groups(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    displays = config["Visualization Manager"]["Displays"]
    return {d["Name"]: d for d in displays if d["Class"] == "rviz_common/Group"}


def with_sensors(folder: Path, text: str, *namespace: str) -> dict[str, dict[str, Any]]:
    """Groups of the drones a and b, which have the sensors of a file."""
    (file := folder / "s.yaml").write_text(text)
    sensors = load(str(file), ["a", "b"], "cf2x_L250")
    return groups(yaml.safe_load(expand(TEMPLATE, ["a", "b"], *namespace or ("",), sensors)))


def test_stand_alone_config_is_the_expansion_for_four_drones() -> None:
    assert yaml.safe_load(expand(TEMPLATE, ["cf0", "cf1", "cf2", "cf3"])) == yaml.safe_load(
        TEMPLATE
    )


@pytest.mark.parametrize(("namespace", "root"), [("", ""), ("lab", "/lab"), ("/lab/", "/lab")])
def test_each_drone_has_model_trail_and_plan(namespace: str, root: str) -> None:
    drones = ["alpha"] + [f"cf{index}" for index in range(11)]
    config = yaml.safe_load(expand(TEMPLATE, drones, namespace))
    assert list(groups(config)) == drones
    for drone, group in groups(config).items():
        model, trail, plan = group["Displays"]
        assert model["Class"] == "rviz_default_plugins/RobotModel"
        assert model["Description Topic"]["Value"] == f"{root}/{drone}/robot_description"
        assert model["Description Topic"]["Durability Policy"] == "Transient Local"
        assert model["Description Topic"]["Reliability Policy"] == "Reliable"
        assert trail["Class"] == "rviz_default_plugins/Odometry"
        assert trail["Topic"]["Value"] == f"{root}/{drone}/odom"
        assert plan["Class"] == "rviz_default_plugins/Path"
        assert plan["Topic"]["Value"] == f"{root}/{drone}/plan"


def test_the_scene_is_that_of_the_simulator() -> None:
    for arguments, topic in (
        (("",), "/crazyflow/scene"),
        (("lab", None, "crazyflie_server"), "/lab/crazyflie_server/scene"),
    ):
        displays = yaml.safe_load(expand(TEMPLATE, ["a"], *arguments))["Visualization Manager"]
        (scene,) = [d for d in displays["Displays"] if d["Name"] == "Scene"]
        assert scene["Class"] == "rviz_default_plugins/MarkerArray"
        assert scene["Topic"]["Value"] == topic
        assert scene["Topic"]["Durability Policy"] == "Transient Local"


def test_the_tools_fly_the_first_drone() -> None:
    tools = yaml.safe_load(expand(TEMPLATE, ["a", "b"], "lab"))["Visualization Manager"]["Tools"]
    topics = {
        tool["Class"].split("/")[1]: tool["Topic"]["Value"] for tool in tools if "Topic" in tool
    }
    assert topics == {"SetGoal": "/lab/a/goal_pose", "PublishPoint": "/lab/a/clicked_point"}


def test_what_belongs_to_a_drone_has_its_color(tmp_path: Path) -> None:
    shown = with_sensors(tmp_path, "all: {scan: {type: lidar}, up: {type: range}}")
    colors = [
        {display["Color"] for display in group["Displays"] if "Color" in display}
        | {display["Shape"]["Color"] for display in group["Displays"] if "Shape" in display}
        for group in shown.values()
    ]
    assert [len(of_drone) for of_drone in colors] == [1, 1] and colors[0] != colors[1]


def test_panels_of_pictures_say_whose_they_are(tmp_path: Path) -> None:
    pictures = [
        display["Name"]
        for group in with_sensors(tmp_path, "all: {eye: {type: camera}}").values()
        for display in group["Displays"]
        if display["Class"] == "rviz_default_plugins/Image"
    ]
    assert pictures == ["a eye image_raw", "b eye image_raw"]


def test_shared_displays_stay() -> None:
    config = yaml.safe_load(expand(TEMPLATE, ["a"]))["Visualization Manager"]
    classes = [display["Class"] for display in config["Displays"]]
    assert classes[:2] == ["rviz_default_plugins/Grid", "rviz_default_plugins/TF"]
    assert config["Global Options"]["Fixed Frame"] == "map"


def test_sensors_are_shown(tmp_path: Path) -> None:
    text = (
        "all: {scan: {type: lidar}, baro: {type: barometer}}\n"
        "b: {cloud: {type: lidar, elevations: [0, 1]}, eye: {type: camera}, "
        "ring: {type: multiranger}, touch: {type: contact}, mocap: {type: motion_capture}}"
    )
    shown = {
        drone: {d["Topic"]["Value"]: d["Class"].split("/")[1] for d in group["Displays"][3:]}
        for drone, group in with_sensors(tmp_path, text, "lab").items()
    }
    assert shown["a"] == {"/lab/a/scan": "LaserScan", "/lab/a/scan/markers": "MarkerArray"}
    assert shown["b"]["/lab/b/cloud"] == "PointCloud2"
    assert shown["b"]["/lab/b/eye/image_raw"] == "Image"
    assert shown["b"]["/lab/b/ring/left"] == "Range" and shown["b"]["/lab/b/touch"] == "Wrench"
    assert shown["b"]["/lab/b/mocap"] == "Pose"


def test_template_without_a_drone_is_refused() -> None:
    with pytest.raises(ValueError, match="no display group"):
        expand("Visualization Manager: {Displays: []}", ["a"])
