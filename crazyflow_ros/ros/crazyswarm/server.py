"""The node `crazyflie_server`: our simulator with the interface of crazyswarm2's server.

It is configured by crazyswarm2's own files, or by the same values as parameters, as crazyswarm2's
launch file passes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.checks.plain_values import ParameterError, Spec
from crazyflow_ros.dynamics.forces.floor import rest_height
from crazyflow_ros.estimation import Estimator
from crazyflow_ros.ros.crazyswarm import tree
from crazyflow_ros.ros.crazyswarm.configuration import BRUSHLESS, SwarmConfiguration
from crazyflow_ros.ros.crazyswarm.traffic import Traffic
from crazyflow_ros.ros.messages.tapped_publisher import Tap
from crazyflow_ros.ros.node import SimulatorNode
from crazyflow_ros.ros.parameters.declaration import declare
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.runtime import SimulationConfig

if TYPE_CHECKING:
    from crazyflow_ros.crazyflie.drone import Crazyflie

NODE = "crazyflie_server"

_NUMBER = 0xE7  # of a Crazyflie with the default address

# Our topics whose names crazyswarm2 uses for its own topics, or that it does not have.
_OFF = ("odom", "pose", "imu", "range", "joint_states")
_REPLACED = ("odom", "pose")
_IN_PLACE_OF = {
    "sensors.sensors_file": "crazyswarm.motion_capture",
    "topics.tf": "crazyswarm.transforms",
    "robot_description": "crazyswarm.robot_description",
    "commands.command_topics": "crazyswarm.command_topics",
}
_WITHOUT = ("commands.flight_services",)
# all/emergency comes last: clients take it as the sign that the server is ready.
_LAST = tuple(f"crazyswarm.{name}" for name in ("firmware", "log_topics", "traffic", "services"))


@dataclass(frozen=True)
class MotionCaptureParameters:
    """Frame, errors and source of the poses on /poses."""

    frame_id: Annotated[
        str, Spec("Frame of /poses; empty: that of motion_capture.yaml, or else world")
    ] = ""
    dropout: Annotated[float, Spec("Probability that a drone is missing", 0.0, 0.99)] = 0.0
    position_noise: Annotated[float, Spec("Standard deviation of a coordinate [m]", 0.0, 10.0)] = (
        0.0
    )
    attitude_noise: Annotated[
        float, Spec("Standard deviation of the rotation about an axis [rad]", 0.0, 1.0)
    ] = 0.0
    delay: Annotated[float, Spec("Age of the poses [s]", 0.0, 10.0)] = 0.0
    external: Annotated[
        bool, Spec("Another node publishes /poses, and the drones measure those")
    ] = False


@dataclass(frozen=True)
class ServerParameters:
    """Parameters of this node in addition to those of the simulator and of crazyswarm2."""

    crazyflies_yaml_file: Annotated[str, Spec("Path of crazyswarm2's crazyflies.yaml")] = ""
    server_yaml_file: Annotated[str, Spec("Path of crazyswarm2's server.yaml")] = ""
    motion_capture_yaml_file: Annotated[str, Spec("Path of crazyswarm2's motion_capture.yaml")] = ""
    motion_capture: MotionCaptureParameters = MotionCaptureParameters()


class CrazyswarmServer(SimulatorNode):
    """Node `crazyflie_server`.

    Attributes:
        settings: Parameters in addition to those of the simulator and of crazyswarm2.
        swarm: The robots and their settings.
        traffic: Counts the commands sent to the drones.
    """

    settings: ServerParameters
    swarm: SwarmConfiguration
    traffic: Traffic

    def __init__(self, tap: Tap | None = None) -> None:
        self.traffic = Traffic()
        super().__init__(NODE, tap)

    def _read_parameters(self) -> Parameters:
        self.settings = given = declare(self, ServerParameters, others=("",))
        files = (given.crazyflies_yaml_file, given.server_yaml_file)
        found = tree.read_files(*files, given.motion_capture_yaml_file)
        for name, value in tree.flattened(found):
            if not self.has_parameter(name):  # given parameters override the files
                self.declare_parameter(name, value)
        values = {name: p.value for name, p in self.get_parameters_by_prefix("").items()}
        self.swarm = SwarmConfiguration(tree.unflattened(values))
        for note in self.swarm.notes:
            self.get_logger().warning(note)
        names = [robot.name for robot in self.swarm.robots]
        known = (*vars(given), *tree.NAMES, *(f"{name}." for name in names))
        parameters = declare(self, Parameters, self._defaults(), known)
        if parameters.drones != tuple(names):
            robots = f"must be the robots that are enabled, {', '.join(names)}"
            got = shown(list(parameters.drones))
            raise ParameterError("drones", f"{robots}, got {got}")
        for rate in _REPLACED:
            if value := getattr(parameters.publish_rates, rate):
                text = f"must be 0, got {value}: set the rate of <drone>/{rate} in firmware_logging"
                raise ParameterError(f"publish_rates.{rate}", text)
        return parameters

    def _defaults(self) -> dict[str, Any]:
        """Return the defaults of the simulator's parameters."""
        robots = self.swarm.robots
        model = robots[0].drone_model
        poses: list[float] = []
        for robot in robots:
            x, y, z = robot.initial_position
            poses += [x, y, max(z, rest_height(model)), 0.0]
        return {
            "drones": [robot.name for robot in robots],
            "drone_model": model,
            "controller": str(self.swarm.controller),
            "initial_poses": poses,
            "mocap": not self.settings.motion_capture.external
            and any(robot.settings.is_tracked for robot in robots),
            "flight.auto_arm": model != BRUSHLESS,
            "flight.exact_durations": True,
            **{f"publish_rates.{name}": 0 for name in _OFF},
        }

    def _simulation_config(self) -> SimulationConfig:
        config = super()._simulation_config()
        if not self.settings.motion_capture.external or config.estimator == Estimator.none:
            return config
        return replace(config, positioning=replace(config.positioning, external=True))

    @property
    def _features(self) -> tuple[str, ...]:
        ours = [_IN_PLACE_OF.get(name, name) for name in super()._features if name not in _WITHOUT]
        return (*ours, *_LAST)

    def firmware(self, drone: str) -> Crazyflie:
        """Return the firmware of a drone."""
        uris = {robot.name: robot.uri for robot in self.swarm.robots}
        return self.fleet.get(drone, _number(uris.get(drone, "")))

    def _declare(self, feature: str) -> None:
        if feature not in _WITHOUT:
            super()._declare(_IN_PLACE_OF.get(feature, feature))


def _number(uri: str) -> int:
    """Return the number of a Crazyflie, the last byte of its address."""
    try:
        return int(uri[-2:], 16)
    except ValueError:
        return _NUMBER


def build(tap: Tap | None = None) -> CrazyswarmServer:
    """Build the node, see `SimulatorNode`."""
    return CrazyswarmServer(tap)
