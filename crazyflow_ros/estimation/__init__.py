"""State estimation in JAX: a drone's estimate of its state from the readings of its sensors."""

from crazyflow_ros.estimation.positioning import Estimator, Positioning

__all__ = ["Estimator", "Positioning"]
