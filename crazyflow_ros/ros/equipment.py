"""How a simulator is assembled from its parameters, and what its features receive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.ros.extensions import all_values
from crazyflow_ros.ros.host import Host
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.runtime import Door, Extension, SimulationConfig

if TYPE_CHECKING:
    from crazyflow_ros.checks.throttled_logger import Logger
    from crazyflow_ros.ros.commands.command_topics import RecordCommand
    from crazyflow_ros.ros.recording.recorder import Recorder
    from crazyflow_ros.ros.sensors.devices import SensorFile


@dataclass(frozen=True)
class Equipment:
    """What exists before the features, besides the `Host`."""

    sensors: SensorFile | None
    """Sensors of the drones, or None."""
    door: Door | None
    """Lets other programs fly the drones, or None."""
    recorder: Recorder | None
    """Recorder of all published messages, or None."""
    record_command: RecordCommand | None
    """Records a message that commands a drone; None without a recorder."""
    extensions: tuple[Extension, ...] = ()
    """Those that are asked for."""


Features = Callable[[Host, Equipment], None]
"""Adds all features of a node, in the order in which the physics thread serves them."""


@dataclass(frozen=True)
class Blueprint:
    """What kind of simulator a node is, from its parameters."""

    parameters: Parameters
    config: SimulationConfig
    sensors: SensorFile | None
    features: Callable[[], Features]
    """Imports the features, in parallel with loading compiled code, which takes as long."""
    extensions: Mapping[str, Extension] = field(default_factory=dict)
    """Those that are asked for, by name."""


def sensors_of(parameters: Parameters) -> SensorFile | None:
    """Read the sensors of the drones, if there is a file of them.

    Raises:
        ParameterError: The file cannot be read, or a value is invalid.
    """
    if not parameters.sensors:
        return None
    from crazyflow_ros.ros.sensors import sensors_file  # with all kinds of sensors

    return sensors_file.read(parameters)


def new_recorder(
    parameters: Parameters, extensions: Mapping[str, Extension], logger: Logger
) -> Recorder:
    """Return a recorder to the file of the parameter `record`.

    Raises:
        ParameterError: The file cannot be created, or a package is missing.
    """
    path, wall_time = parameters.record, parameters.record_wall_time
    try:
        from crazyflow_ros.ros.recording.recorder import Recorder
    except ModuleNotFoundError as error:
        text = f"cannot write bags, because a package is missing ({error})"
        raise ParameterError("record", text) from None
    try:
        values = all_values(parameters, extensions)
        return Recorder(Path(path).expanduser(), values, logger, wall_time)
    except OSError as error:
        text = f"cannot create {shown_path(path)} ({error.strerror})"
        raise ParameterError("record", text) from None
