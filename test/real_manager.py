"""The stock controller manager as a process of its own, and a simulator that it flies.

A module that imports this is skipped where ros2_control or our plugin is not installed.
"""

from __future__ import annotations

import os
import runpy
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from ros_client import TIMEOUT, Client, RosProcess, SimulatorProcess, time_ns

from crazyflow_ros.resources import resource

ament = pytest.importorskip("ament_index_python.packages", reason="ROS is not installed")


def installed(package: str, advice: str) -> Path:
    """Prefix of a package; without it, the module is skipped."""
    try:
        return Path(ament.get_package_prefix(package))
    except (ament.PackageNotFoundError, OSError):  # OSError: no index, for ROS is not sourced
        text = f"there is no {package} in the ament index: {advice}"
        pytest.skip(text, allow_module_level=True)


NODE = installed("controller_manager", "install ros2_control and ros2_controllers")
installed("pid_controller", "install ros2_controllers")
PREFIX = installed("crazyflow_ros", "build this package with colcon and source its setup file")
if not (PREFIX / "lib" / "libcrazyflow_system.so").exists():
    pytest.skip(f"{PREFIX} was built without ros2_control", allow_module_level=True)

from control_msgs.msg import DynamicJointState, MultiDOFCommand  # noqa: E402
from controller_manager_msgs.srv import (  # noqa: E402
    ConfigureController,
    ListControllers,
    ListHardwareInterfaces,
    LoadController,
    SetHardwareComponentState,
    SwitchController,
)
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from geometry_msgs.msg import PoseStamped  # noqa: E402
from lifecycle_msgs.msg import State  # noqa: E402

__all__ = [
    "ACCURACY", "CHAIN", "PREFIX", "DynamicJointState", "Flight", "Manager", "State",
    "controller_states", "flight", "memory_name", "positions_of",
]  # fmt: skip

_LAUNCH_FILE = runpy.run_path(str(resource("launch", "ros2_control.launch.py")))
_NUMBERS = count()
ACCURACY = 0.01  # m
CHAIN = ("velocity", "position")
BROADCASTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "cf0_compass_broadcaster": (
        "magnetometer_broadcaster/MagnetometerBroadcaster",
        {"sensor_name": "cf0_compass", "frame_id": "cf0/base_link"},
    ),
    "cf0_cell_broadcaster": (
        "battery_state_broadcaster/BatteryStateBroadcaster",
        {
            "batteries": ["cf0_cell"],
            "interfaces": {"cf0_cell": {"battery_current": True, "battery_percentage": True}},
        },
    ),
    "cf0_vicon_broadcaster": (
        "pose_broadcaster/PoseBroadcaster",
        {"pose_name": "cf0_vicon", "frame_id": "map"},
    ),
}
"""Of sensors that a drone may carry: type and parameters."""
_ARRIVAL = 60.0  # s, in which a drone is at its goal


def memory_name() -> str:
    """One that no other simulator on the machine has."""
    return f"test.{os.getpid()}.{next(_NUMBERS)}"


def _add(controllers: dict[str, Any], name: str, like: str, parameters: dict[str, Any]) -> None:
    """A controller of the type of another one."""
    types = controllers["controller_manager"]["ros__parameters"]
    types[name] = deepcopy(types[like])  # rcl reads no aliases
    controllers[name] = {"ros__parameters": parameters}


def controller_states(
    client: Client, namespace: str = "", timeout: float = TIMEOUT
) -> dict[str, str]:
    """State of each controller of a manager."""
    service = f"{namespace}/controller_manager/list_controllers"
    listed = client.call(ListControllers, service, timeout)
    return {controller.name: controller.state for controller in listed.controller}


def has_package(name: str) -> bool:
    """Whether a package of ROS is installed."""
    try:
        return bool(ament.get_package_prefix(name))
    except ament.PackageNotFoundError:
        return False


class Manager(RosProcess):
    """A running `ros2_control_node` with the controllers of `config/controllers.yaml`.

    And with more: `all_states` publishes all state interfaces (while it runs, no controller that
    exports states can be stopped), `cf0_waiting_velocity` and `cf0_waiting_position` command
    nothing before they have been told where to be.

    Args:
        client: To call its services.
        folder: For its parameters.
        drones: Whose controllers it knows.
        rate: Its update rate, Hz.
        namespace: That of a drone, for one manager per drone, or of the robots.
        description: Topic of the robot's description, otherwise.
        robots: Whether it also has the controllers of `config/robots.yaml`.
        n_rotors: Number of rotors of a drone.
    """

    def __init__(
        self,
        client: Client,
        folder: Path,
        drones: Sequence[str],
        rate: int,
        namespace: str = "",
        description: str = "/crazyflow/robot_description",
        robots: bool = False,
        n_rotors: int = 4,
    ) -> None:
        self._client, self._namespace = client, namespace
        file = folder / f"controllers{next(_NUMBERS)}.yaml"
        controllers = _LAUNCH_FILE["_read_controllers"](str(resource("config", "controllers.yaml")))
        controllers = _LAUNCH_FILE["_with_rotors"](controllers, n_rotors)
        _add(controllers, "all_states", "joint_state_broadcaster", {"use_local_topics": True})
        rates = [f"{axis}_rate" for axis in ("roll", "pitch", "yaw")]
        rates = {"joint": "cf0_body", "interface_names": ["thrust", *rates]}
        _add(controllers, "cf0_rates", "cf0_attitude", rates)
        types = controllers["controller_manager"]["ros__parameters"]
        for name, (kind, parameters) in BROADCASTERS.items():
            _add(controllers, name, "cf0_imu_broadcaster", parameters)
            types[name]["type"] = kind
        for name in CHAIN:
            like = controllers[f"cf0_{name}"]["ros__parameters"]
            text = yaml.safe_dump(like).replace("cf0_velocity", "cf0_waiting_velocity")
            waiting = yaml.safe_load(text)
            waiting["set_current_state_as_first_setpoint"] = False
            _add(controllers, f"cf0_waiting_{name}", f"cf0_{name}", waiting)
        of_robots = None
        if robots:
            of_robots = _LAUNCH_FILE["_robot_controllers"](str(resource("config", "robots.yaml")))
        if drones:
            text = _LAUNCH_FILE["_for_drones"](
                controllers, drones, rate, bool(namespace), of_robots
            )
        else:
            text = yaml.safe_dump({"/**": of_robots})
        file.write_text(text)
        where = f"__ns:=/{namespace}" if namespace else f"robot_description:={description}"
        super().__init__(
            [
                str(NODE / "lib" / "controller_manager" / "ros2_control_node"),
                "--ros-args",
                *("--params-file", str(file)),
                *("-p", "use_sim_time:=true"),
                *("-r", where),
            ],
            client.domain,
        )

    def call(self, kind: Any, name: str, /, **request: Any) -> Any:
        """Response of one of its services."""
        return self._client.call(kind, f"{self._namespace}/controller_manager/{name}", **request)

    def load(self, *controllers: str) -> None:
        """Load and configure them."""
        for name in controllers:
            assert self.call(LoadController, "load_controller", name=name).ok, self.log
            assert self.call(ConfigureController, "configure_controller", name=name).ok, self.log

    def switch(self, start: Sequence[str] = (), stop: Sequence[str] = ()) -> bool:
        """Start and stop controllers, all or none; returns whether it was done."""
        return bool(
            self.call(
                SwitchController,
                "switch_controller",
                activate_controllers=list(start),
                deactivate_controllers=list(stop),
                strictness=SwitchController.Request.STRICT,
            ).ok
        )

    def start(self, *controllers: str) -> None:
        """Load them and let them run."""
        self.load(*controllers)
        assert self.switch(start=controllers), self.log

    def states(self) -> dict[str, str]:
        """Of its controllers."""
        return controller_states(self._client, self._namespace)

    def set_hardware(self, name: str, state: int) -> bool:
        """Take a component to a state of `lifecycle_msgs/State`; returns whether it is in that."""
        target = State(id=state)
        request = {"name": name, "target_state": target}
        answer = self.call(SetHardwareComponentState, "set_hardware_component_state", **request)
        return bool(answer.ok and answer.state.id == state)

    def interfaces(self) -> Any:
        """What its hardware has: `command_interfaces`, `state_interfaces`."""
        return self.call(ListHardwareInterfaces, "list_hardware_interfaces")


class Flight:
    """A simulator with ros2_control, and who looks at it."""

    def __init__(self, simulator: SimulatorProcess, client: Client) -> None:
        self.simulator, self.client = simulator, client

    def tell(self, goal: Sequence[float], drone: str = "cf0", topic: str = "") -> None:
        """Tell the position controller of a drone where to be."""
        publisher = self.client.publisher(MultiDOFCommand, topic or f"/{drone}_position/reference")
        publisher.publish(
            MultiDOFCommand(
                dof_names=[f"{drone}_{axis}" for axis in "xyz"],
                values=list(goal),
            )
        )
        assert publisher.wait_for_all_acked()

    def poses(self, seconds: float, drone: str = "cf0") -> list[PoseStamped]:
        """The simulator's poses of the drone in the next simulated time."""
        messages = self.client.collect(PoseStamped, f"/{drone}/pose")

        def done() -> bool:
            stamps = [time_ns(message.header.stamp) for message in messages[:1] + messages[-1:]]
            return bool(stamps) and stamps[-1] >= stamps[0] + round(seconds * 1e9)

        self.client.until(done, f"{seconds} s of simulated time", TIMEOUT + 5 * seconds)
        return list(messages)

    def positions(self, seconds: float, drone: str = "cf0") -> np.ndarray:
        """Positions of the drone in the next simulated time, shape (N, 3)."""
        return np.array([positions_of(message) for message in self.poses(seconds, drone)])

    def arrive(self, goal: Sequence[float], drone: str = "cf0") -> bool:
        """Whether the drone has been at its goal for some time."""
        return np.allclose(self.positions(1.0, drone), goal, atol=ACCURACY)

    def fly_to(self, goal: Sequence[float], drone: str = "cf0", topic: str = "") -> None:
        """Tell the position controller where to be until the drone is there, and stays there.

        More than once, for while it runs, pid_controller 5.17 may overwrite what it has just been
        told. On a busy machine it may hear of it late: simulated time does not wait for that.
        """
        deadline = time.monotonic() + _ARRIVAL
        self.tell(goal, drone, topic)
        while not self.arrive(goal, drone):
            at = self.positions(0.0, drone)[-1]
            assert time.monotonic() < deadline, f"{drone} has not arrived at {goal}, it is at {at}"
            self.tell(goal, drone, topic)

    def control(self) -> dict[str, int]:
        """Numbers of control cycles and timeouts, and of refused commands, in a new status."""
        (status,) = self.client.latest(DiagnosticArray, "/crazyflow/status").status
        values = {value.key: value.value for value in status.values}
        names = ("control_cycles", "control_timeouts", "refused_commands")
        return {name: int(values[name]) for name in names}


def positions_of(message: PoseStamped) -> tuple[float, float, float]:
    """Position in a pose [m]."""
    position = message.pose.position
    return position.x, position.y, position.z


@contextmanager
def flight(domain: int, drones: Sequence[str] = ("cf0",), **parameters: Any) -> Iterator[Flight]:
    """A simulator in lock-step, at a real-time factor of 0 if no other is given."""
    given = {
        "drones": f"[{','.join(drones)}]",
        "real_time_factor": 0.0,
        "ros2_control.mode": "lock_step",
        "ros2_control.shared_memory": memory_name(),
        "ros2_control.timeout": 10.0,  # a slow machine is no fault
        **parameters,
    }
    given["publish_rates.clock"] = given["ros2_control.rate"]
    arguments = [word for name, value in given.items() for word in ("-p", f"{name}:={value}")]
    with ExitStack() as stack:
        simulator = stack.enter_context(SimulatorProcess(domain, arguments))
        client = Client(domain)
        stack.callback(client.close)
        yield Flight(simulator, client)
        code, _ = simulator.end(signal.SIGINT)
        assert code == 0, simulator.log
