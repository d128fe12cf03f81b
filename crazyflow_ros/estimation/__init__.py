"""State estimation in JAX: a drone's estimate of its state from the readings of its sensors."""

from crazyflow_ros.estimation.estimator import Estimator
from crazyflow_ros.estimation.positioning import Positioning

__all__ = ["Estimator", "Positioning"]

MODULES = ("below", "decks", "estimate", "instrument_readings", "kalman")
"""Modules that extensions may import, with all their public names."""
