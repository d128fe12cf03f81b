"""Lines, points, capsules and colours in pictures."""

from crazyflow_ros.sim.visualize import change_material, draw_capsule, draw_line, draw_points

__all__ = ["change_material", "draw_capsule", "draw_line", "draw_points"]
