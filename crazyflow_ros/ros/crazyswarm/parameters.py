"""Parameters of the node `crazyflie_server` in addition to the simulator's and crazyswarm2's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from crazyflow_ros.checks.plain_values import Spec


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
