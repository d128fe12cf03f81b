"""Several hosts as an extension of the node: the parameters hosts.name and so on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.checks.throttled_logger import Logger
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.hosts.settings import Hosts
from crazyflow_ros.hosts.shared_thread import SharedThread
from crazyflow_ros.runtime import Extension, PhysicsThread

_ALONE = {"door": "", "ros2_control.mode": "off", "record": "", "crazyflie.port": 0}
"""Parameters that only a simulator may set that is alone, and what they are otherwise."""


@dataclass(frozen=True)
class SharedTime(Hosts, Extension):
    """The settings; without a name the simulator is alone."""

    def configured(self, config: SimulationConfig, values: Mapping[str, Any]) -> SimulationConfig:
        """See `Extension`."""
        if self.name:
            self.check(values["drones"])
            for name, unset in _ALONE.items():
                if (value := values.get(name, unset)) != unset:
                    raise ParameterError(name, f"{unset!r} with hosts.name", value)
        return config

    def physics(
        self, config: SimulationConfig, drones: Sequence[str], logger: Logger
    ) -> PhysicsThread | None:
        """See `Extension`."""
        if not self.name:
            return None
        return cast(PhysicsThread, SharedThread(config, drones, self, logger))
