"""Extensions of a running simulation, which are there only when somebody asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crazyflow_ros.checks.throttled_logger import Logger
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.runtime.physics_thread import PhysicsThread

GROUP = "crazyflow_ros.extensions"
"""Group of the entry points."""


class Extension:
    """Settings of an extension: a dataclass that can be built without arguments.

    Its fields are `name: Annotated[type, Spec(...)] = default`, and in the node the parameters
    `<entry point>.<field>`. The node imports an extension, and has its parameters, when one of
    these is given at the start.
    """

    def configured(self, config: SimulationConfig, values: Mapping[str, Any]) -> SimulationConfig:
        """Return the configuration of the simulation, with what the extension needs.

        Args:
            config: The configuration.
            values: All parameters by name, also those of other extensions.

        Raises:
            ValueError: Two parameters do not go together; the message names one of them.
        """
        del values
        return config

    def physics(
        self, config: SimulationConfig, drones: Sequence[str], logger: Logger
    ) -> PhysicsThread | None:
        """Return a physics thread of another kind, or None for the usual one.

        If it has a method `owns`, users command only the drones for whose name it returns true.

        Args:
            config: The configuration.
            drones: Names of the drones.
            logger: For failures.

        Raises:
            ValueError: A setting is not usable.
            ModuleNotFoundError: A package is not installed.
        """

    def add(self, host: Any) -> None:
        """Add topics, services and whatever else, as a feature does.

        Args:
            host: The node, see `crazyflow_ros.ros.Host`.

        Raises:
            ValueError: A setting is not usable.
        """
