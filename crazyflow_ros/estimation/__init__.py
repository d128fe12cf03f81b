"""State estimation in JAX: what a drone believes, from what its sensors tell."""

from crazyflow_ros.estimation.config import Estimator, Positioning

__all__ = ["Estimator", "Positioning"]
