"""State estimation in JAX: a drone's estimate of its state from the readings of its sensors."""

from crazyflow_ros.estimation.estimator import Estimator
from crazyflow_ros.estimation.positioning import MOST_DELAY, Positioning, Ranging

__all__ = ["MOST_DELAY", "Estimator", "Positioning", "Ranging"]

MODULES = (
    "base_stations",
    "beacons",
    "below",
    "decks",
    "estimate",
    "external_poses",
    "instrument_readings",
    "kalman",
    "light_planes",
    "lighthouse",
    "radio_anchors",
)
"""Modules that extensions may import, with all their public names."""
