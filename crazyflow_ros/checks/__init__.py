"""Checks of what comes in: numbers, texts, plain values, YAML, archives and files.

This package imports only NumPy and PyYAML, and its `__init__` nothing: programs begin with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.checks.plain_values import Spec

__all__ = ["Spec"]

__getattr__ = lazy(__name__, {"Spec": "plain_values"})

MODULES = (
    "archive",
    "compressed_quaternions",
    "confinement",
    "entry_points",
    "enum_members",
    "files",
    "limits",
    "mcap_file",
    "mcap_records",
    "plain_values",
    "program_end",
    "throttled_logger",
    "yaml_files",
)
"""Modules that extensions may import, with all their public names."""
