"""The door through which others fly the drones: parameters `door` and `ros2_control.mode`."""

from __future__ import annotations

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.doors import DoorContext, door_settings
from crazyflow_ros.lockstep.link import SharedMemoryLink
from crazyflow_ros.ros.controllers.rotor_commands import TopicSource
from crazyflow_ros.ros.guarded_node import GuardedNode
from crazyflow_ros.ros.parameters.declaration import declare
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.runtime import Door


def opened_door(node: GuardedNode, parameters: Parameters) -> Door | None:
    """Open the door that the parameters ask for; None if topics and services fly the drones.

    Args:
        node: The node, on which the parameters of the door are declared.
        parameters: Parameters of the simulator.

    Raises:
        ParameterError: There is no such door, or it cannot be opened.
    """
    p = parameters
    if not p.door:
        return _ros2_control(node, p)
    try:
        cls = door_settings(p.door)
    except ValueError as error:
        raise ParameterError("door", str(error)) from None
    settings = declare(node, cls, prefix=f"{p.door}.")
    try:
        return settings.open(DoorContext(p.by_door, p.drone_model, p.freq, p.seed, node.log))
    except OSError as error:
        raise ParameterError("door", f"{p.door} cannot be opened: {error}") from None


def _ros2_control(node: GuardedNode, parameters: Parameters) -> Door | None:
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
        )
    full_name = node.get_fully_qualified_name()
    return SharedMemoryLink(
        control.shared_memory or full_name.strip("/").replace("/", "."),
        p.by_door,
        drone_model=p.drone_model,
        freq=p.freq,
        rate=control.rate,
        lock_step=control.mode == "lock_step",
        range_rate=p.publish_rates.range,
        timeout=control.timeout,
        on_loss=control.on_loss,
        logger=node.log,
    )
