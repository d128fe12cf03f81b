"""Depth images, where Crazyflow's programs look for them; an extension casts the rays."""

from crazyflow_ros.lazy import lazy

__getattr__ = lazy(
    __name__,
    {
        "build_render_depth_fn": "crazyflow_ros.raytracing.depth_images",
        "render_depth": "crazyflow_ros.raytracing.depth_images",
    },
)
