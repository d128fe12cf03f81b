"""`launch/ros2_control.launch.py` and `config/controllers.yaml` under the real `launch`."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import yaml
from launching import Launcher, description, visit

from crazyflow_ros.resources import resource
from crazyflow_ros.ros.launch_support import READY

CONTROLLERS = resource("config", "controllers.yaml")
FILE = "ros2_control.launch.py"
BROADCASTERS = ["imu_broadcaster", "pose_broadcaster", "range_broadcaster"]
CHAIN = ["velocity", "position"]  # the second commands the first
ORDER = {"simulator": 0, "ros2_control_node": 1, "spawner": 2}


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launcher:
    return Launcher(FILE, tmp_path, monkeypatch)


def test_controllers_are_repeated_for_each_drone() -> None:
    launch_file = runpy.run_path(str(resource("launch", FILE)))
    controllers = launch_file["_read_controllers"](str(CONTROLLERS))
    text = launch_file["_for_drones"](controllers, ["alpha", "beta"], 500, alone=False)
    nodes = yaml.safe_load(text)["/**"]
    manager = nodes["controller_manager"]["ros__parameters"]
    assert manager["update_rate"] == 500
    assert {"joint_state_broadcaster", "alpha_position", "beta_position"} <= manager.keys()
    joints = nodes["beta_rotor_velocity"]["ros__parameters"]["joints"]
    assert joints == [f"beta_rotor{i}" for i in range(4)]
    joints = nodes["joint_state_broadcaster"]["ros__parameters"]["joints"]
    assert joints == [f"{drone}_rotor{i}" for drone in ("alpha", "beta") for i in range(4)]
    assert "cf0" not in text and "&id" not in text  # rcl reads no YAML aliases


def test_controllers_take_all_rotors_of_a_hexacopter() -> None:
    launch_file = runpy.run_path(str(resource("launch", FILE)))
    controllers = launch_file["_read_controllers"](str(CONTROLLERS))
    controllers = launch_file["_with_rotors"](controllers, 6)
    for name in ("cf0_rotor_velocity", "joint_state_broadcaster"):
        joints = controllers[name]["ros__parameters"]["joints"]
        assert joints == [f"cf0_rotor{i}" for i in range(6)]


@pytest.mark.parametrize(("alone", "velocity"), [(False, "alpha_velocity"), (True, "velocity")])
def test_chained_controllers_find_each_other(alone: bool, velocity: str) -> None:
    launch_file = runpy.run_path(str(resource("launch", FILE)))
    controllers = launch_file["_read_controllers"](str(CONTROLLERS))
    text = launch_file["_for_drones"](controllers, ["alpha"], 500, alone=alone)
    nodes = yaml.safe_load(text)["/**"]
    position = nodes[velocity.replace("velocity", "position")]["ros__parameters"]
    assert position["dof_names"] == [f"{velocity}/alpha_{axis}" for axis in "xyz"]
    assert list(position["gains"]) == position["dof_names"]
    taken = nodes[velocity]["ros__parameters"]["dof_names"]
    assert position["reference_and_state_dof_names"] == taken


def test_one_manager_takes_all_drones(launched: Launcher) -> None:
    processes = launched(3, n_drones="2", controller="position", mode="free_running", rate="250")
    simulator, manager, spawner = sorted(processes, key=lambda process: ORDER[process.executable])
    given = simulator.parameters
    assert given["drones"] == ["cf0", "cf1"]
    assert given["ros2_control.mode"] == "free_running"
    assert given["ros2_control.rate"] == given["publish_rates.clock"] == 250
    assert "publish_rates.joint_states" not in given
    assert manager.namespace == "/"
    assert "robot_description:=/crazyflow/robot_description" in manager.command
    assert manager.parameters["use_sim_time"] is True
    assert spawner.arguments == [
        "--activate-as-group",
        "joint_state_broadcaster",
        *(f"{drone}_{name}" for drone in ("cf0", "cf1") for name in (*BROADCASTERS, *CHAIN)),
    ]


@pytest.mark.parametrize("managers", ["one", "each"])
def test_robots_have_the_manager_of_the_drones_or_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, managers: str
) -> None:
    launched = Launcher("robots.launch.py", tmp_path, monkeypatch)
    processes = launched(3 if managers == "one" else 5, managers=managers, controller="position")
    (simulator,) = (p for p in processes if p.executable == "simulator")
    given = {name: simulator.parameters[name] for name in ("scene", "ros2_control.robots")}
    assert given == {"scene": "robots", "ros2_control.robots": "robots"}
    place = "/" if managers == "one" else "/robots"
    spawner, manager = (
        next(p for p in processes if (p.executable, p.namespace) == (name, place))
        for name in ("spawner", "ros2_control_node")
    )
    robots = ["robot_states", "rover_imu_broadcaster", "rover_drive", "arm_trajectory"]
    assert spawner.arguments[-4:] == robots
    described = any("robot_description:=/crazyflow/" in word for word in manager.command)
    assert described == (managers == "one")


def test_controllers_that_share_a_level_are_activated_together(
    launched: Launcher, tmp_path: Path
) -> None:
    """Each alone would claim a part of a level, which the hardware refuses."""
    nodes = yaml.safe_load(CONTROLLERS.read_text())["/**"]
    pid = "pid_controller/PidController"
    shared = {"cf0_lift": ("thrust", "cf0_z"), "cf0_tilt": ("pitch", "cf0_x")}
    for name, (command, axis) in shared.items():
        nodes["controller_manager"]["ros__parameters"][name] = {"type": pid}
        dofs = {"dof_names": ["cf0_body"], "reference_and_state_dof_names": [axis]}
        nodes[name] = {"ros__parameters": {**dofs, "command_interface": command}}
    nodes["controller_manager"]["ros__parameters"]["cf0_course"] = {"type": pid}
    nodes["cf0_course"] = {"ros__parameters": {"dof_names": ["cf0_lift/cf0_z", "cf0_tilt/cf0_x"]}}
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump({"/**": nodes}))
    processes = launched(3, controllers_file=str(file), controller="course", drones="[kite]")
    (spawner,) = (process for process in processes if process.executable == "spawner")
    first, *names = spawner.arguments
    assert first == "--activate-as-group"
    assert names[-3:] == ["kite_lift", "kite_tilt", "kite_course"]


def test_a_clock_of_its_own_is_kept(launched: Launcher) -> None:
    """The simulator checks it: without lock-step it may be faster than the manager."""
    processes = launched(3, mode="free_running", **{"publish_rates.clock": "500"})
    (given,) = (p.parameters for p in processes if p.executable == "simulator")
    assert (given["publish_rates.clock"], given["ros2_control.rate"]) == (500, 100)


def test_each_drone_has_a_manager_in_its_namespace(launched: Launcher) -> None:
    processes = launched(5, drones="[a,b]", managers="each", controller="attitude")
    by_name = {f"{p.executable} {p.namespace}": p for p in processes}
    assert by_name["simulator /"].parameters["publish_rates.joint_states"] == 0
    for drone in ("a", "b"):
        manager, spawner = (
            by_name[f"{name} /{drone}"] for name in ("ros2_control_node", "spawner")
        )
        assert not any("robot_description" in word for word in manager.command)
        declared = manager.parameters["controller_manager"]["ros__parameters"]
        assert declared["attitude"]["type"].startswith("forward_command_controller/")
        assert manager.parameters["attitude"]["ros__parameters"]["joint"] == f"{drone}_body"
        names = ["joint_state_broadcaster", *BROADCASTERS, "attitude"]
        assert spawner.arguments == ["--activate-as-group", *names]


@pytest.mark.parametrize(
    ("managers", "place", "description"),
    [
        ("one", "/sim", "robot_description:=/sim/crazyflow/robot_description"),
        ("each", "/sim/a", ""),
    ],
)
def test_managers_are_in_the_namespace_of_the_simulator(
    launched: Launcher, managers: str, place: str, description: str
) -> None:
    processes = launched(3, drones="[a]", namespace="sim", managers=managers)
    namespaces = {process.executable: process.namespace for process in processes}
    assert namespaces == {"simulator": "/sim", "ros2_control_node": place, "spawner": place}
    (manager,) = (p for p in processes if p.executable == "ros2_control_node")
    assert [word for word in manager.command if "robot_description" in word] == (
        [description] if description else []
    )


def test_managers_wait_for_the_description(
    launched: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulator publishes it before it is ready: without, a manager complains each second."""
    simulator = tmp_path / "lib" / "crazyflow_ros" / "simulator"
    said = tmp_path / "said"
    simulator.write_text(f"#!/bin/sh\nsleep 1\ntouch {said}\necho '[INFO] {READY}' >&2\nsleep 60\n")
    manager = tmp_path / "lib" / "controller_manager" / "ros2_control_node"
    early = tmp_path / "early"
    manager.write_text(f"#!/bin/sh\ntest -e {said} || touch {early}\nexec sleep 60\n")
    processes = launched(3)
    assert {process.executable for process in processes} == set(ORDER)
    assert not early.exists()


def test_file_without_controllers_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("/**: {controller_manager: {ros__parameters: {update_rate: 100}}}")
    with pytest.raises(ValueError, match=r"none called cf0_\.\.\.\), got 'rotor_velocity'"):
        visit(FILE, controllers_file=str(file))
    file.write_text("controller_manager: {ros__parameters: {}}")
    with pytest.raises(ValueError, match=r"has no parameters of /\*\*/controller_manager"):
        visit(FILE, controllers_file=str(file))


def test_what_is_not_installed_is_named_at_once(
    launched: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))  # of the stand-ins alone
    index = tmp_path / "share/ament_index/resource_index"
    (index / "packages" / "pid_controller").unlink()
    with pytest.raises(RuntimeError, match=r"pid_controller is not installed: sudo apt install "):
        visit(FILE, controller="position")
    (index / "hardware_interface__pluginlib__plugin" / "crazyflow_ros").unlink()
    with pytest.raises(RuntimeError, match=r"built without its plugin .* --cmake-force-configure"):
        visit(FILE, controller="attitude")


def test_arguments_are_documented() -> None:
    declared = {a.name: a for a in description(FILE).get_launch_arguments()}
    assert all(a.description for a in declared.values())
    assert {"managers", "mode", "rate", "controller", "drones", "freq", "rviz"} <= declared.keys()
