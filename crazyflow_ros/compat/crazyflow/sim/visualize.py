"""Lines, points, capsules and colours in pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from crazyflow_ros.sim import visualize
from crazyflow_ros.sim.sim import Sim
from crazyflow_ros.sim.visualize import change_material, draw_capsule, draw_points

__all__ = ["change_material", "draw_capsule", "draw_line", "draw_points"]


def draw_line(
    sim: Sim, points: Any, rgba: Any = None, start_size: float = 3.0, end_size: float = 3.0
) -> None:
    """Draw a line through points (n, 3), see `sim.visualize`; a single point draws nothing."""
    if np.shape(points)[:1] != (1,):
        visualize.draw_line(sim, points, rgba, start_size, end_size)
