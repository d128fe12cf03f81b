"""The node `crazyflie_server`: our simulator with the interface of crazyswarm2's server.

It is configured by crazyswarm2's own files, or by the same values as parameters, as crazyswarm2's
launch file passes them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.crazyflie.link_config import LinkConfig
from crazyflow_ros.crazyflie.supervisor_states import BRUSHLESS_MODEL
from crazyflow_ros.crazyswarm import tree
from crazyflow_ros.crazyswarm.link import LINK
from crazyflow_ros.crazyswarm.swarm_configuration import (
    MotionCaptureParameters,
    ServerParameters,
    SwarmConfiguration,
)
from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.estimation import MOST_DELAY, Estimator
from crazyflow_ros.ros.equipment import Blueprint, Features, sensors_of
from crazyflow_ros.ros.extensions import PREFIXES, configured, declared_extensions
from crazyflow_ros.ros.guarded_node import GuardedNode
from crazyflow_ros.ros.messages.tapped_publisher import Tap
from crazyflow_ros.ros.node import SimulatorNode
from crazyflow_ros.ros.optional_features import if_installed, is_on
from crazyflow_ros.ros.parameters.declaration import declare
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.parameters.parameter_groups import Interfaces
from crazyflow_ros.runtime import SimulationConfig

with if_installed("motion_capture"):
    from crazyflow_ros.crazyswarm.mocap_poses import with_poses

NODE = "crazyflie_server"

# Our topics whose names crazyswarm2 uses for its own topics, or that it does not have.
_OFF = ("odom", "pose", "imu", "range", "joint_states")
_REPLACED = ("odom", "pose")


def read(node: GuardedNode) -> Blueprint:
    """Read the parameters of the node, and crazyswarm2's files."""
    given = declare(node, ServerParameters, others=("",))
    files = (given.crazyflies_yaml_file, given.server_yaml_file)
    found = tree.read_files(*files, given.motion_capture_yaml_file)
    for name, value in tree.flattened(found):
        if not node.has_parameter(name):  # given parameters override the files
            node.declare_parameter(name, value)
    values = {name: p.value for name, p in node.get_parameters_by_prefix("").items()}
    real = [name for name in values.get("real.drones") or () if isinstance(name, str)]
    swarm, mocap = SwarmConfiguration(tree.unflattened(values), real), given.motion_capture
    for note in swarm.notes:
        node.get_logger().warning(note)
    names = [*(robot.name for robot in swarm.robots), *swarm.real]
    known = (*vars(given), *tree.NAMES, *(f"{name}." for name in names), *PREFIXES)
    parameters = declare(node, Parameters, _defaults(swarm, mocap), known)
    if parameters.drones != tuple(names):
        robots = f"must be the robots that are enabled or real, {', '.join(names)}"
        got = shown(list(parameters.drones))
        raise ParameterError("drones", f"{robots}, got {got}")
    for rate in _REPLACED:
        if value := getattr(parameters.publish_rates, rate):
            text = f"must be 0, got {value}: set the rate of <drone>/{rate} in firmware_logging"
            raise ParameterError(f"publish_rates.{rate}", text)
    if parameters.interfaces != Interfaces.each:
        text = f"must be {Interfaces.each}, which scripts of crazyswarm2 expect"
        raise ParameterError("interfaces", text, parameters.interfaces)
    if other := values.get("hosts.name"):
        raise ParameterError("hosts.name", "must be empty, this server is alone", other)
    extensions = declared_extensions(node, [f"{LINK}.port"])
    sensors = sensors_of(parameters)
    if is_on("motion_capture", node.log):
        sensors = with_poses(sensors, mocap, swarm, parameters)
    gentle = any(isinstance(each, LinkConfig) and each.gentle for each in extensions.values())
    config = configured(_simulation_config(parameters, mocap, gentle), parameters, extensions)
    features = partial(_features, swarm, mocap.external)
    return Blueprint(parameters, config, sensors, features, extensions)


def _defaults(swarm: SwarmConfiguration, mocap: MotionCaptureParameters) -> dict[str, Any]:
    """Return the defaults of the simulator's parameters."""
    robots = swarm.robots
    model = robots[0].drone_model
    poses: list[float] = []
    for x, y, z in (*(robot.initial_position for robot in robots), *swarm.real.values()):
        poses += [x, y, max(z, rest_height(model)), 0.0]
    return {
        "drones": [*(robot.name for robot in robots), *swarm.real],
        "drone_model": model,
        "controller": str(swarm.controller),
        "initial_poses": poses,
        "mocap": not mocap.external and any(robot.settings.is_tracked for robot in robots),
        "mocap_dropout": mocap.dropout,
        "mocap_delay": min(mocap.delay, MOST_DELAY),
        "flight.auto_arm": model != BRUSHLESS_MODEL,
        "flight.exact_durations": True,
        **{f"publish_rates.{name}": 0 for name in _OFF},
    }


def _simulation_config(
    parameters: Parameters, mocap: MotionCaptureParameters, gentle: bool
) -> SimulationConfig:
    config = parameters.simulation_config()
    config = replace(config, setpoint_modes=config.can_pass_setpoints_on and not gentle)
    if not mocap.external or config.estimator == Estimator.none:
        return config
    return replace(config, positioning=replace(config.positioning, external=True))


def _features(swarm: SwarmConfiguration, external_poses: bool) -> Features:
    from crazyflow_ros.crazyswarm.server_features import add_features

    return partial(add_features, swarm, external_poses)


def build(tap: Tap | None = None) -> SimulatorNode:
    """Build the node, see `SimulatorNode`."""
    return SimulatorNode(NODE, read, tap)
