"""The recorder of a node with the parameter `record`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.checks.plain_values import ParameterError, values_of

if TYPE_CHECKING:
    from crazyflow_ros.ros.parameters.node_parameters import Parameters
    from crazyflow_ros.ros.recording.recorder import Recorder
    from crazyflow_ros.throttled_logger import Logger


def new_recorder(parameters: Parameters, logger: Logger) -> Recorder:
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
        values = values_of(parameters)
        return Recorder(Path(path).expanduser(), values, logger, wall_time)
    except OSError as error:
        text = f"cannot create {shown_path(path)} ({error.strerror})"
        raise ParameterError("record", text) from None
