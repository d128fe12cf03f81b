"""Parameters of the node."""

from crazyflow_ros.ros.parameters.parameter_files import file_text, parameters_of

__all__ = ["file_text", "parameters_of"]

MODULES = ("declaration", "node_parameters", "parameter_groups")
"""Modules that extensions may import, with all their public names."""
