"""Onboard control in JAX: control modes and the Mellinger cascade."""

from crazyflow_ros.control.modes import Control

__all__ = ["Control"]
