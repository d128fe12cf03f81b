"""The door through which others fly the drones: parameters `door` and `ros2_control.mode`.

Behind it may be processes of an autopilot, `autopilot.build`, and a gamepad, the topic joy.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sensor_msgs.msg import Joy

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.checks.throttled_logger import ThrottledLogger
from crazyflow_ros.drones import rotors_of
from crazyflow_ros.estimation import Estimator
from crazyflow_ros.lockstep.layout import Entry
from crazyflow_ros.lockstep.link import SharedMemoryLink
from crazyflow_ros.lockstep.robots import parts_of
from crazyflow_ros.lockstep.states import CarriedReadings
from crazyflow_ros.ros.controllers.rotor_commands import TopicSource
from crazyflow_ros.ros.guarded_node import GuardedNode
from crazyflow_ros.ros.parameters.declaration import declare
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.runtime import Door, SimulationConfig
from crazyflow_ros.runtime.door import TakesGamepad
from crazyflow_ros.runtime.door_settings import (
    Autopilots,
    AutopilotStart,
    DoorContext,
    DoorSettings,
    StartsAutopilots,
    door_settings,
)
from crazyflow_ros.scene import build_spec, read_scene

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host
    from crazyflow_ros.ros.sensors.devices import SensorFile


class OpenedDoor(NamedTuple):
    """A door, and what is behind it."""

    door: Door | None
    """None if all drones are flown by topics and services."""
    autopilots: Autopilots | None = None
    """Its processes, not yet started; None if others start them."""


def opened_door(
    node: GuardedNode,
    parameters: Parameters,
    config: SimulationConfig,
    sensors: SensorFile | None = None,
) -> OpenedDoor:
    """Open the door that the parameters ask for.

    Args:
        node: The node, on which the parameters of the door are declared.
        parameters: Parameters of the simulator.
        config: Configuration of its simulation.
        sensors: Sensors of the drones.

    Raises:
        ParameterError: There is no such door, it cannot be opened, or there is no build of its
            autopilot.
    """
    p = parameters
    if not p.door:
        return OpenedDoor(_ros2_control(node, p, config, sensors))
    try:
        cls = door_settings(p.door)
    except ValueError as error:
        raise ParameterError("door", str(error)) from None
    settings = declare(node, cls, prefix=f"{p.door}.")
    autopilots = _prepared_autopilots(settings, p, config, node.log)
    try:
        door = settings.open(DoorContext.of(config, p.by_door, node.log))
    except OSError as error:
        raise ParameterError("door", f"{p.door} cannot be opened: {error}") from None
    return OpenedDoor(door, autopilots)


def _ros2_control(
    node: GuardedNode,
    parameters: Parameters,
    config: SimulationConfig,
    sensors: SensorFile | None,
) -> Door | None:
    p, control = parameters, parameters.ros2_control
    if control.mode == "off":
        return None
    if control.mode == "topic":
        return TopicSource(
            p.by_door,
            freq=p.freq,
            rate=control.rate,
            on_loss=control.on_loss,
            logger=node.log,
            n_rotors=len(rotors_of(p.drone_model)),
        )
    full_name = node.get_fully_qualified_name()
    return SharedMemoryLink(
        control.shared_memory or full_name.strip("/").replace("/", "."),
        p.by_door,
        drone_model=p.drone_model,
        freq=p.freq,
        rate=control.rate,
        lock_step=control.mode == "lock_step",
        controller=p.controller,
        range_rate=p.publish_rates.range,
        timeout=control.timeout,
        on_loss=control.on_loss,
        parts=_robots(config),
        carried=_carried(node, p, sensors),
        logger=node.log,
    )


def _carried(
    node: GuardedNode, parameters: Parameters, sensors: SensorFile | None
) -> CarriedReadings | None:
    """Return the sensors of the file behind the door, if there are any."""
    p, estimates = parameters, parameters.estimator != Estimator.none
    if sensors is None and not estimates:
        return None
    from crazyflow_ros.ros.controllers.carried_sensors import CarriedSensors  # with all kinds

    rate = p.ros2_control.rate
    carried = CarriedSensors(sensors, p.by_door, p.freq, rate, estimates=estimates)
    if carried.left_out:
        names = ", ".join(dict.fromkeys(carried.left_out))
        node.log.info(f"sensors that controllers of ros2_control cannot read: {names}")
    return carried if carried.entries else None


def _robots(config: SimulationConfig) -> list[Entry]:
    """Return the joints and sensors of robots in the world.

    Raises:
        ParameterError: There is no such world.
    """
    try:
        scene = read_scene(config.scene)
        drones = scene.drones or ("cf0",)  # those that hold something there
        spec = build_spec(config.drone_model, drones, scene=scene)
        return parts_of(spec.compile())
    except ValueError as error:
        raise ParameterError("scene", str(error)) from None


def _prepared_autopilots(
    settings: DoorSettings, parameters: Parameters, config: SimulationConfig, log: ThrottledLogger
) -> Autopilots | None:
    """Return the processes of the autopilot, still to be started; None without a build.

    Raises:
        ParameterError: The door has no autopilot that can be started, or there is no build of it.
    """
    p, given = parameters, parameters.autopilot
    if not given.build:
        return None
    if not isinstance(settings, StartsAutopilots):
        text = f"nothing, because the door {p.door} starts no autopilot"
        raise ParameterError("autopilot.build", text, given.build)
    folders = Path(given.build).expanduser(), Path(given.work or f"{p.door}_work").expanduser()
    start = AutopilotStart(*folders, config, p.by_door, log, given.wipe)
    try:
        return settings.autopilots(start)
    except (ValueError, OSError) as error:
        raise ParameterError("autopilot.build", str(error)) from None


def add_gamepad(simulator: Host, door: object) -> None:
    """Subscribe to joy: the newest message of joy_node moves the sticks of a door."""
    if isinstance(door, TakesGamepad):
        take = door.take_gamepad
        simulator.create_subscription(
            Joy, "joy", lambda message: take(message.axes, message.buttons), 1
        )
