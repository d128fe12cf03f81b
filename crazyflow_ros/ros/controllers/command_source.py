"""Controllers that command the drones instead of topics, see the parameter `ros2_control.mode`."""

from __future__ import annotations

from crazyflow_ros.lockstep.link import SharedMemoryLink
from crazyflow_ros.ros.controllers.rotor_commands import TopicSource
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.sometimes import Logger

Link = SharedMemoryLink | TopicSource


def command_source(parameters: Parameters, node: str, logger: Logger) -> Link | None:
    """Return the link to the controllers of ros2_control; None if they do not command the drones.

    Args:
        parameters: Parameters of the node.
        node: Fully qualified name of the node; the name of the shared memory is derived from it.
        logger: Reports lost controllers.
    """
    p, control = parameters, parameters.ros2_control
    if control.mode == "off":
        return None
    if control.mode == "topic":
        return TopicSource(
            p.drones,
            freq=p.freq,
            rate=control.rate,
            on_loss=control.on_loss,
            logger=logger,
        )
    return SharedMemoryLink(
        control.shared_memory or node.strip("/").replace("/", "."),
        p.drones,
        drone_model=p.drone_model,
        freq=p.freq,
        rate=control.rate,
        lock_step=control.mode == "lock_step",
        range_rate=p.publish_rates.range,
        timeout=control.timeout,
        on_loss=control.on_loss,
        logger=logger,
    )
