"""Depth images."""

from crazyflow_ros.raytracing.depth_images import build_render_depth_fn, render_depth

__all__ = ["build_render_depth_fn", "render_depth"]
