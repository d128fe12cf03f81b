"""Parameters of the node."""

from crazyflow_ros.ros.parameters.parameter_files import file_text, parameters_of

__all__ = ["file_text", "parameters_of"]
