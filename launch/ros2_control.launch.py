"""Start the simulator and controller managers that fly its drones.

    ros2 launch crazyflow_ros ros2_control.launch.py drones:=[cf0,cf1] controller:=position

In lock-step, the default `mode`, the physics waits in each control period for the controllers'
commands. Drones are held where they are until a controller commands them. `managers:=each` starts
one manager per drone in a namespace named after the drone, in which controllers are called
`position` instead of `cf0_position`.

Robots of the world, of which `robots` is the URDF, share the manager of all drones, or have one in
the namespace `robots` if each drone has its own.

All arguments of `sim.launch.py` are passed to the simulator.
"""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from ament_index_python.resources import has_resource
from launch import Action, LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessExit, OnProcessIO
from launch.events.process import ProcessIO
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node

from crazyflow_ros.drones import DEFAULT_DRONE, rotors_of
from crazyflow_ros.resources import resource
from crazyflow_ros.ros.launch_nodes import described, require
from crazyflow_ros.ros.launch_support import READY, drone_names, read_nodes

TEMPLATE = "cf0"  # the drone in the file of controllers
ROTORS = [f"{TEMPLATE}_rotor{i}" for i in range(4)]  # there
TOPIC_PLUGINS = ("joint_state_topic_hardware_interface", "cm_topic_hardware_component")
BROADCASTERS = ("imu_broadcaster", "pose_broadcaster", "range_broadcaster")


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; `sim.launch.py` and `_start` start the nodes."""
    return described(
        __file__,
        [
            DeclareLaunchArgument(
                "n_drones", default_value="1", description="Number of drones, named cf0, cf1, ..."
            ),
            DeclareLaunchArgument(
                "managers",
                default_value="one",
                choices=["one", "each"],
                description="One controller manager for all drones, or one for each drone in a "
                "namespace named after it",
            ),
            DeclareLaunchArgument(
                "mode",
                default_value="lock_step",
                choices=["lock_step", "free_running", "topic"],
                description="Whether physics and controllers wait for each other; with topic they "
                "do not, and stock plugins connect them",
            ),
            DeclareLaunchArgument(
                "rate",
                default_value="100",
                description="Update rate of the controller managers [Hz]; must divide freq",
            ),
            DeclareLaunchArgument(
                "controller",
                default_value="rotor_velocity",
                description="Controller of each drone: rotor_velocity, attitude, velocity, "
                "position, or another one in controllers_file",
            ),
            DeclareLaunchArgument(
                "controllers_file",
                default_value=str(resource("config", "controllers.yaml")),
                description="YAML file with the controllers of drone cf0, copied for each drone",
            ),
            DeclareLaunchArgument(
                "robots",
                default_value="",
                description="URDF file of robots in the scene, or name of one in urdf_mjcf",
            ),
            DeclareLaunchArgument(
                "robots_controllers_file",
                default_value=str(resource("config", "robots.yaml")),
                description="YAML file with the controllers of the robots, which are all started",
            ),
            OpaqueFunction(function=_configure),
            OpaqueFunction(function=_start),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(str(resource("launch", "sim.launch.py")))
            ),
        ],
    )


def _configure(context: LaunchContext) -> None:
    """Check the arguments and derive those of `sim.launch.py`."""
    given = context.launch_configurations
    _check_controller(given["controller"], _read_controllers(given["controllers_file"]))
    derived = {"ros2_control.mode": given["mode"], "ros2_control.rate": given["rate"]}
    if given["robots"]:
        derived["ros2_control.robots"] = given["robots"]
        _robot_controllers(given["robots_controllers_file"])
    if given["managers"] == "each":  # their joint_state_broadcasters publish a topic of that name
        derived["publish_rates.joint_states"] = "0"
    for name, value in derived.items():
        if given.get(name) and given[name] != value:
            raise ValueError(
                f"{name}: expected {value!r}, which follows from the other arguments, got "
                f"{given[name]!r}"
            )
        given[name] = value
    given["publish_rates.clock"] = given.get("publish_rates.clock") or given["rate"]
    # The manager would wait for ever for hardware or controllers that are not there.
    nodes = [_read_controllers(given["controllers_file"])]
    wanted = {"joint_state_broadcaster", *_wanted(given, nodes[0])}
    if given["robots"]:
        nodes.append(_robot_controllers(given["robots_controllers_file"]))
        wanted.update(_types(nodes[1]))
    types = [kind for each in nodes for name, kind in _types(each).items() if name in wanted]
    plugins = TOPIC_PLUGINS if given["mode"] == "topic" else ()
    require("controller_manager", *plugins, *sorted({kind.split("/")[0] for kind in types}))
    if not plugins and not has_resource("hardware_interface__pluginlib__plugin", "crazyflow_ros"):
        raise RuntimeError(
            "crazyflow_ros was built without its plugin for ros2_control: install ros2_control "
            "(rosdep install --from-paths src --ignore-src), then run "
            "colcon build --packages-select crazyflow_ros --cmake-force-configure, "
            "or pass mode:=topic"
        )


def _start(context: LaunchContext) -> list[Action]:
    """Start the managers once the simulator is ready.

    By then it has published its description; before, the managers would log its absence each
    second.
    """
    given, seen, rest = dict(context.launch_configurations), False, ""

    def look(event: ProcessIO) -> list[Action] | None:
        nonlocal seen, rest
        rest += event.text.decode(errors="replace")
        if seen or READY not in rest:
            rest = rest[-len(READY) :]  # the text may arrive in two parts
            return None
        seen = True
        return _managers(given)

    def is_simulator(action: Action) -> bool:
        return isinstance(action, Node) and action.node_executable == "simulator"

    handler = OnProcessIO(target_action=is_simulator, on_stdout=look, on_stderr=look)
    return [RegisterEventHandler(handler)]


def _managers(given: dict[str, str]) -> list[Action]:
    """Return the managers; the simulator has already validated drones and rate."""
    drones = drone_names(given)
    rotors = rotors_of(given.get("drone_model") or DEFAULT_DRONE)
    controllers = _with_rotors(_read_controllers(given["controllers_file"]), len(rotors))
    wanted = _wanted(given, controllers)
    rate, folder = int(given["rate"]), Path(tempfile.mkdtemp(prefix="crazyflow_ros_"))
    namespace, robots = given.get("namespace", "").strip("/"), given["robots"]
    of_robots = _robot_controllers(given["robots_controllers_file"]) if robots else {}
    if given["managers"] == "one":
        return [*_manager(controllers, wanted, drones, rate, folder, namespace, of_robots)]
    pairs = [
        _manager(controllers, wanted, [drone], rate, folder, namespace, alone=True)
        for drone in drones
    ]
    if robots:
        pairs.append(_manager_of_robots(of_robots, rate, folder, namespace))
    managers, spawners = zip(*pairs, strict=True)
    # Run them in sequence: only one spawner of a user works at a time, and others time out.
    waiting = [
        RegisterEventHandler(OnProcessExit(target_action=former, on_exit=[spawner]))
        for former, spawner in pairwise(spawners)
    ]
    return [*managers, *waiting, spawners[0]]


def _manager(
    controllers: dict[str, Any],
    wanted: list[str],
    drones: list[str],
    rate: int,
    folder: Path,
    namespace: str,
    of_robots: dict[str, Any] | None = None,
    alone: bool = False,
) -> tuple[Node, Node]:
    """Return a controller manager and the spawner of its controllers, with those of robots.

    One that is alone with its drone is in the drone's namespace and takes the `robot_description`
    there, otherwise that of all drones.
    """
    file = folder / f"{drones[0] if alone else 'controllers'}.yaml"
    file.write_text(_for_drones(controllers, drones, rate, alone, of_robots))
    description = f"{namespace}/crazyflow/robot_description".strip("/")
    if alone:
        namespace = f"{namespace}/{drones[0]}".strip("/")
    manager = Node(
        package="controller_manager",
        # Without a name: a name would keep use_sim_time from the nodes of the hardware.
        executable="ros2_control_node",
        namespace=namespace,
        parameters=[str(file), {"use_sim_time": True}],
        remappings=[] if alone else [("robot_description", f"/{description}")],
        output="screen",
        on_exit=Shutdown(),
    )
    names = [_name(template, drone, alone) for drone in drones for template in wanted]
    names += _types(of_robots or {})
    spawner = Node(
        package="controller_manager",
        executable="spawner",
        namespace=namespace,
        # Some levels are claimed by several controllers: one alone would be refused.
        arguments=["--activate-as-group", "joint_state_broadcaster", *names],
        output="screen",
    )
    return manager, spawner


def _manager_of_robots(
    controllers: dict[str, Any], rate: int, folder: Path, namespace: str
) -> tuple[Node, Node]:
    """Return a controller manager of robots, and the spawner of all its controllers."""
    file, nodes = folder / "robots.yaml", {**controllers}
    nodes["controller_manager"]["ros__parameters"]["update_rate"] = rate
    file.write_text(yaml.safe_dump({"/**": nodes}))
    namespace = f"{namespace}/robots".strip("/")
    manager = Node(
        package="controller_manager",
        executable="ros2_control_node",
        namespace=namespace,
        parameters=[str(file), {"use_sim_time": True}],
        output="screen",
        on_exit=Shutdown(),
    )
    spawner = Node(
        package="controller_manager",
        executable="spawner",
        namespace=namespace,
        arguments=["--activate-as-group", *_types(controllers)],
        output="screen",
    )
    return manager, spawner


def _robot_controllers(path: str) -> dict[str, Any]:
    """Read the nodes of the file of robots by name."""
    nodes = _read_controllers(path, "robots_controllers_file")
    if not _types(nodes):
        raise ValueError(f"robots_controllers_file: {path!r} has no controllers")
    return nodes


def _wanted(given: dict[str, str], controllers: dict[str, Any]) -> list[str]:
    """Return the controllers of the template's drone that are started."""
    broadcasters = [f"{TEMPLATE}_{name}" for name in BROADCASTERS]
    return broadcasters + _chain(f"{TEMPLATE}_{given['controller']}", controllers)


def _types(nodes: dict[str, Any]) -> dict[str, str]:
    """Return the types of controllers, by name."""
    given = nodes.get("controller_manager", {}).get("ros__parameters", {})
    return {k: str(v["type"]) for k, v in given.items() if isinstance(v, dict) and "type" in v}


def _read_controllers(path: str, argument: str = "controllers_file") -> dict[str, Any]:
    """Read the nodes of the file by name."""
    nodes = read_nodes(argument, path).get("/**", {})
    manager = nodes.get("controller_manager")
    if not isinstance(manager, dict) or not isinstance(manager.get("ros__parameters"), dict):
        raise ValueError(f"{argument}: {path!r} has no parameters of /**/controller_manager")
    return nodes


def _with_rotors(value: Any, n_rotors: int) -> Any:
    """Return what has been read from the file, with lists of all rotors as long as drones need."""
    if isinstance(value, dict):
        return {key: _with_rotors(entry, n_rotors) for key, entry in value.items()}
    return [f"{TEMPLATE}_rotor{i}" for i in range(n_rotors)] if value == ROTORS else value


def _check_controller(name: str, controllers: dict[str, Any]) -> None:
    prefix = f"{TEMPLATE}_"
    declared = controllers["controller_manager"]["ros__parameters"]
    known = [key.removeprefix(prefix) for key in declared if key.startswith(prefix)]
    if name not in known:
        have = ", ".join(known) or f"none called {prefix}..."
        raise ValueError(f"controller: expected one in controllers_file ({have}), got {name!r}")


def _chain(name: str, controllers: dict[str, Any]) -> list[str]:
    """Return a controller preceded by the controllers that it commands."""
    text = str(controllers.get(name))
    commanded = [other for other in controllers if other != name and f"{other}/" in text]
    return [*(link for other in commanded for link in _chain(other, controllers)), name]


def _for_drones(
    controllers: dict[str, Any],
    drones: list[str],
    rate: int,
    alone: bool,
    of_robots: dict[str, Any] | None = None,
) -> str:
    """Return the controllers as YAML, with the entries of the template's drone for each drone.

    Args:
        controllers: Controllers of the template's drone.
        drones: Names of the drones.
        rate: Update rate of the manager [Hz].
        alone: Whether to omit the drone's name from the controllers' names, for one drone with its
            own namespace.
        of_robots: Controllers of robots, which the manager also has.
    """
    nodes = _repeated(controllers, drones, alone)
    for name, node in (of_robots or {}).items():
        parameters = {**nodes.get(name, {}).get("ros__parameters", {}), **node["ros__parameters"]}
        nodes[name] = {"ros__parameters": parameters}
    nodes["controller_manager"]["ros__parameters"]["update_rate"] = rate
    text = yaml.safe_dump({"/**": nodes})
    if alone:  # references to other controllers begin with their names
        for name in controllers:
            own = _name(name, drones[0], alone)
            text = text.replace(f"{name.replace(TEMPLATE, drones[0], 1)}/", f"{own}/")
    return text


def _repeated(entries: dict[str, Any], drones: list[str], alone: bool) -> dict[str, Any]:
    """Copy entries of the template's drone for each drone, also in lists of other entries."""
    repeated: dict[str, Any] = {}
    for key, value in entries.items():
        if key.startswith(f"{TEMPLATE}_"):
            for drone in drones:
                repeated[_name(key, drone, alone)] = _of(drone, value)
        elif isinstance(value, dict):
            repeated[key] = _repeated(value, drones, alone)
        elif isinstance(value, list) and TEMPLATE in str(value):
            repeated[key] = [item for drone in drones for item in _of(drone, value)]
        else:
            repeated[key] = value
    return repeated


def _of(drone: str, value: Any) -> Any:
    """Convert a value of the template's drone to another drone."""
    return yaml.safe_load(yaml.safe_dump(value).replace(TEMPLATE, drone))


def _name(template: str, drone: str, alone: bool) -> str:
    """Return the name of a controller in the manager of the drone."""
    return template.removeprefix(f"{TEMPLATE}_") if alone else template.replace(TEMPLATE, drone, 1)
