"""The configuration of crazyswarm2: robots and their types; and our parameters for it. No ROS.

A robot's own settings take precedence over those of its type, and these over those of all robots.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.checks.plain_values import ParameterError, Spec
from crazyflow_ros.checks.yaml_files import leaves
from crazyflow_ros.control import Controller
from crazyflow_ros.crazyflie.supervisor_states import BRUSHLESS_MODEL
from crazyflow_ros.crazyswarm.log_configuration import STEPS, LogTopic, log_topics
from crazyflow_ros.crazyswarm.tree import (
    POSES_DEADLINE,
    POSES_FRAME,
    Tree,
    get,
    merge,
    table,
)
from crazyflow_ros.drones import DEFAULT_DRONE, Drone
from crazyflow_ros.drones.parameter import own_drone

Number = int | float

CONTROLLER = "stabilizer.controller"
"""The firmware's parameter that selects the controller."""
_TYPES = {
    "cf2": DEFAULT_DRONE,
    "cf20": DEFAULT_DRONE,
    "cf21": DEFAULT_DRONE,
    "cf21_mocap_deck": DEFAULT_DRONE,
    "cf21_single_marker": DEFAULT_DRONE,
    "cf21plus": "cf2x_P250",
    "cf21_thrust_upgrade": "cf2x_T350",
    "cf21B": BRUSHLESS_MODEL,
    "cf21bl": BRUSHLESS_MODEL,
    "cf_brushless": BRUSHLESS_MODEL,
    "default": DEFAULT_DRONE,
    "default_single_marker": DEFAULT_DRONE,
    **{str(name): str(name) for name in Drone},
}
"""Drones by the names of robot types in crazyswarm2's and Bitcraze's files."""
_KEY = "drone_model"
_NO_CONTROLLER = "none"  # drones of crazyswarm2's simulator then jump from setpoint to setpoint
_TRACKED = ("vendor", "librigidbodytracker")  # kinds of tracking by motion capture
_WORLD = "world"
_DEFAULT_DEADLINE = 100.0  # Hz


@dataclass(frozen=True)
class Robot:
    """An enabled robot, which is simulated as a drone."""

    name: str
    uri: str
    """Address; its last byte, in hexadecimal, is the number of the Crazyflie."""
    drone_model: str
    """Drone model of this package; empty until it is chosen for a type with a name of its own."""
    initial_position: tuple[float, float, float]
    """m; z = 0 is on the floor."""
    settings: RobotSettings


@dataclass(frozen=True)
class RobotSettings:
    """Settings of a robot, of a type or of all robots."""

    reference_frame: str
    log_topics: tuple[LogTopic, ...]
    firmware_params: Mapping[str, Number]
    """Values by full name of the parameter."""
    is_tracked: bool
    """Whether motion capture tracks the robot."""


class SwarmConfiguration:
    """The configuration of all robots.

    Args:
        tree: The content of crazyflies.yaml and of the server's parameters.
        real: Names of robots that others fly, in reality.

    Raises:
        ParameterError: A value is missing or not allowed; the message names it.
    """

    def __init__(self, tree: Tree, real: Sequence[str] = ()) -> None:
        self._tree = tree
        version = tree.get("fileversion", 0)
        if type(version) not in (int, float):
            raise ParameterError("fileversion", "a number", version)
        self._has_frames = version >= 3
        robots, types = table(tree, "robots"), table(tree, "robot_types")
        self._assumed: dict[str, str] = {}
        found = tuple(
            self._robot(name, table(robots, name, "robots."), types)
            for name in robots
            if name not in real
            and get(robots, name, "enabled", bool, "robots.")
            and self._connects(table(robots, name, "robots."), types)
        )
        if not found:
            known = ", ".join(sorted(robots)) or "none"
            raise ParameterError("robots", f"no robot has enabled: true; there are {known}")
        self.robots = tuple(self._with_model(robot, found) for robot in found)
        """Enabled robots, in the order of the file."""
        self.real: dict[str, tuple[float, float, float]] = {}
        """Where robots start that are real, m."""
        for name in real:
            if name not in robots:
                raise ParameterError("real.drones", unknown("robot", name, robots))
            self.real[name] = _position(f"robots.{name}", table(robots, name, "robots."))
        models = {robot.drone_model: robot.name for robot in self.robots}
        if len(models) > 1:
            kinds = ", ".join(f"{name} is a {model}" for model, name in models.items())
            raise ParameterError("robots", f"all must be of one drone model, but {kinds}")

    @property
    def controller(self) -> Controller:
        """The controller of all robots: that of crazyswarm2's simulator, or else the firmware's.

        Raises:
            ParameterError: There is no such controller, or the robots have different ones.
        """
        given = self._sim_controller
        return self._firmware_controller if given in (None, _NO_CONTROLLER) else Controller(given)

    @property
    def notes(self) -> Sequence[str]:
        """Notes on this configuration for the user."""
        return [*self._notes_on_types, *self._notes_on_controllers]

    @property
    def _notes_on_types(self) -> Sequence[str]:
        kinds = sorted(self._assumed)
        if not kinds:
            return []
        models = ", ".join(f"{kind} as {self._assumed[kind]}" for kind in kinds)
        choose = f"to choose another, add an entry {_KEY} to the type: {' | '.join(Drone)}"
        return [f"types with names of their own are simulated: {models}; {choose}"]

    @property
    def _notes_on_controllers(self) -> Sequence[str]:
        given, flies = self._sim_controller, self.controller
        if given == _NO_CONTROLLER:
            return [f"sim.controller is none, but drones need one: they fly with {flies}"]
        others = {r.settings.firmware_params.get(CONTROLLER, 0) for r in self.robots}
        others -= {0, flies.number}
        if given is not None and others:
            numbers = ", ".join(f"{number:g}" for number in sorted(others))
            return [
                f"drones fly with sim.controller, {flies}: "
                f"firmware_params.{CONTROLLER}, {numbers}, is for real drones"
            ]
        return []

    @cached_property
    def _sim_controller(self) -> str | None:
        given = table(self._tree, "sim").get("controller")
        known = (*(controller.value for controller in Controller), _NO_CONTROLLER)
        if given is not None and given not in known:
            raise ParameterError("sim.controller", unknown("controller", given, known))
        return given

    @cached_property
    def _firmware_controller(self) -> Controller:
        default = Controller.default
        found = {r.settings.firmware_params.get(CONTROLLER, 0) for r in self.robots}
        try:
            (number,) = found
            return Controller.of_number(number) if number else default
        except ValueError as error:
            numbers = ", ".join(f"{number:g}" for number in sorted(found))
            text = f"must be the same for all robots, got {numbers}"
            raise ParameterError(
                f"firmware_params.{CONTROLLER}", text if len(found) > 1 else str(error)
            ) from None

    def settings(self, drone: str) -> RobotSettings:
        """Return the settings of a drone; those of all robots if it was spawned later."""
        return self._settings_by_name.get(drone, self._of_others)

    @cached_property
    def poses_rate(self) -> float:
        """Rate of motion capture [Hz]."""
        rate = self._tree.get(POSES_DEADLINE, _DEFAULT_DEADLINE)
        if type(rate) not in (int, float) or not 1 <= rate <= 1000:
            raise ParameterError(POSES_DEADLINE, "a number from 1 to 1000 Hz", rate)
        return float(rate)

    @property
    def poses_frame(self) -> str:
        """Frame of motion capture."""
        frame = self._tree.get(POSES_FRAME, _WORLD)
        if not isinstance(frame, str) or not frame:
            raise ParameterError(POSES_FRAME, "the name of a frame", frame)
        return frame

    @cached_property
    def statistics_period(self) -> float:
        """Time between two messages about the connections [s]; 0 if there are none."""
        warnings = table(self._tree, "warnings")
        if not table(warnings, "communication", "warnings.").get("publish_stats", False):
            return 0.0
        frequency = warnings.get("frequency", 1.0)
        if type(frequency) not in (int, float) or not 0 < frequency <= STEPS:
            expected = f"a number above 0, up to {STEPS} Hz"
            raise ParameterError("warnings.frequency", expected, frequency)
        return 1 / frequency

    @cached_property
    def _settings_by_name(self) -> dict[str, RobotSettings]:
        return {robot.name: robot.settings for robot in self.robots}

    @cached_property
    def _of_others(self) -> RobotSettings:
        return self._settings([("all", table(self._tree, "all"))])

    @staticmethod
    def _connects(robot: Tree, types: Tree) -> bool:
        """Return whether a robot is a Crazyflie; other objects are only tracked."""
        kind = types.get(str(robot.get("type")), {})
        return not isinstance(kind, Mapping) or kind.get("connection") in (None, "crazyflie")

    def _robot(self, name: str, robot: Tree, types: Tree) -> Robot:
        where = f"robots.{name}"
        kind = get(robot, "", "type", str, where)
        layers = [
            ("all", table(self._tree, "all")),
            (f"robot_types.{kind}", table(types, kind, "robot_types.")),
            (where, robot),
        ]
        model = _drone_model(where, kind, layers, types)
        if not model:
            self._assumed[kind] = ""
        uri = get(robot, "", "uri", str, where)
        return Robot(name, uri, model, _position(where, robot), self._settings(layers))

    def _with_model(self, robot: Robot, robots: Sequence[Robot]) -> Robot:
        """Return a robot with a drone model: its own, or else that of the others, or the usual."""
        if robot.drone_model:
            return robot
        others = {other.drone_model for other in robots if other.drone_model}
        model = others.pop() if len(others) == 1 else DEFAULT_DRONE
        self._assumed = dict.fromkeys(self._assumed, model)
        return replace(robot, drone_model=model)

    def _settings(self, layers: list[tuple[str, Tree]]) -> RobotSettings:
        """Merge the settings of all robots, of a type and of a robot."""
        frame, tracking = _WORLD, ""
        parameters: dict[str, Number] = {}
        logging: dict[str, Any] = {}
        for where, layer in layers:
            if self._has_frames:
                frame = layer.get("reference_frame", frame)
            capture = table(layer, "motion_capture", where + ".")
            if type(capture.get("enabled")) is bool:  # before fileversion 3
                tracking = _TRACKED[0] if capture["enabled"] else ""
            tracking = capture.get("tracking", tracking)
            for name, value in leaves(table(layer, "firmware_params", where + ".")):
                if type(value) not in (int, float) or not math.isfinite(value):
                    expected = "a finite number"
                    raise ParameterError(f"{where}.firmware_params.{name}", expected, value)
                parameters[name] = value
            merge(logging, table(layer, "firmware_logging", where + "."))
        if not isinstance(frame, str) or not frame:
            raise ParameterError("reference_frame", "the name of a frame", frame)
        topics = log_topics(logging) if logging.get("enabled", False) else ()
        return RobotSettings(frame, topics, parameters, tracking in _TRACKED)


def _drone_model(where: str, kind: str, layers: list[tuple[str, Tree]], types: Tree) -> str:
    """Return the drone model of a robot, from the name of its type or an entry `drone_model`.

    It is empty if the user has given the type a name of his own, and no such entry.

    Raises:
        ParameterError: There is no such type, or no such model.
    """
    given = [layer[_KEY] for _, layer in layers if _KEY in layer]
    if given:
        model = given[-1]
        if model in list(Drone):
            return str(model)
        if not isinstance(model, str):
            raise ParameterError(f"{where}.{_KEY}", f"one of {', '.join(Drone)}", model)
        return own_drone(model)
    if kind not in _TYPES and kind not in types:
        other = f"others need an entry in robot_types, perhaps with {_KEY}: {' | '.join(Drone)}"
        known = dict.fromkeys((*types, *_TYPES))
        raise ParameterError(f"{where}.type", f"{unknown('type', kind, known)}; {other}")
    return _TYPES.get(kind, "")


def _position(where: str, robot: Tree) -> tuple[float, float, float]:
    given = robot.get("initial_position")
    is_list = isinstance(given, list | tuple)
    if not is_list or [type(x) in (int, float) for x in given] != 3 * [True]:  # type: ignore[union-attr]
        raise ParameterError(f"{where}.initial_position", "three numbers x, y, z [m]", given)
    x, y, z = map(float, given)  # type: ignore[arg-type]
    return x, y, z


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
    confusion: Annotated[
        float,
        Spec(
            "Distance below which it may take two drones for one another [m]; 0: never", 0.0, 10.0
        ),
    ] = 0.0
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
