"""crazyswarm2's server as a process of its own, and its configuration, for tests and benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from ros_client import READY_TIMEOUT, RosProcess

SERVER = "crazyflie_server"
STATION = 0xE7
"""Number of the first Crazyflie, as in crazyswarm2's own file."""


def configuration(*robots: str, **everywhere: Any) -> dict[str, Any]:
    """A crazyflies.yaml as crazyswarm2 has it, with robots 0.4 m apart.

    Args:
        robots: Names; numbers in their addresses count down from `STATION`.
        everywhere: What is set for all.
    """
    logging = {"pose": {"frequency": 10}, "status": {"frequency": 1}}
    return {
        "fileversion": 3,
        "robots": {
            name: {
                "enabled": True,
                "uri": f"radio://0/80/2M/E7E7E7E7{STATION - i:02X}",
                "initial_position": [0.0, 0.4 * i, 0.0],
                "type": "cf21",
            }
            for i, name in enumerate(robots)
        },
        "robot_types": {
            "cf21": {
                "motion_capture": {"tracking": "librigidbodytracker"},
                "big_quad": False,
                "battery": {"voltage_warning": 3.8, "voltage_critical": 3.7},
            }
        },
        "all": {
            "firmware_logging": {"enabled": True, "default_topics": logging},
            "firmware_params": {
                "commander": {"enHighLevel": 1},
                "stabilizer": {"estimator": 2, "controller": 2},
                "locSrv": {"extPosStdDev": 1e-3, "extQuatStdDev": 0.5e-1},
            },
            "reference_frame": "world",
            "broadcasts": {"num_repeats": 15, "delay_between_repeats_ms": 1},
            **everywhere,
        },
    }


class ServerProcess(RosProcess):
    """A running server.

    Args:
        domain: ROS domain.
        folder: Where its configuration is written.
        content: The configuration.
        arguments: After `--ros-args`.
        patience: s that it may take until it is ready.
    """

    def __init__(
        self,
        domain: int,
        folder: Path,
        content: dict[str, Any],
        arguments: Sequence[str] = (),
        patience: float = READY_TIMEOUT,
    ) -> None:
        self._patience = patience
        path = folder / "crazyflies.yaml"
        path.write_text(yaml.safe_dump(content))
        super().__init__(
            [
                *(sys.executable, "-m", "crazyflow_ros", "crazyflie-server", "--ros-args"),
                *("-p", f"crazyflies_yaml_file:={path}", *arguments),
            ],
            domain,
        )

    def __enter__(self) -> ServerProcess:
        try:
            return self.wait_for("ready: ", self._patience)
        except AssertionError as error:
            self.__exit__(type(error), error, None)
            raise
