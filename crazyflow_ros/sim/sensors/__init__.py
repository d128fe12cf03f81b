"""Depth images of all worlds of a `Sim`; other sensors are in `crazyflow_ros.sensors`."""

from crazyflow_ros.sim.sensors.depth import build_render_depth_fn, render_depth

__all__ = ["build_render_depth_fn", "render_depth"]
