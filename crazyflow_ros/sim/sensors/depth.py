"""Where Crazyflow's programs look for depth images; the rays that take them are an extension."""

from crazyflow_ros.lazy import lazy

__getattr__ = lazy(
    __name__,
    {
        "build_render_depth_fn": "crazyflow_ros.raytracing.depth_images",
        "render_depth": "crazyflow_ros.raytracing.depth_images",
    },
)
