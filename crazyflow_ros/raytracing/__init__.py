"""Pictures by rays: what the cameras of many worlds see, within compiled functions of JAX.

MuJoCo's renderers draw one world at a time, outside of compiled functions, and have no derivatives.
"""

from crazyflow_ros.raytracing.distortion import Distortion, DistortionModel
from crazyflow_ros.raytracing.exposure import Chip, Shutter
from crazyflow_ros.raytracing.look import Appearance, Lights
from crazyflow_ros.raytracing.optics import Lens, Optics
from crazyflow_ros.raytracing.painter import Painter
from crazyflow_ros.raytracing.picture_flow import Flow, Motions, Twists
from crazyflow_ros.raytracing.tracer import Frames, Hits, Tracer

__all__ = [
    "Appearance",
    "Chip",
    "Distortion",
    "DistortionModel",
    "Flow",
    "Frames",
    "Hits",
    "Lens",
    "Lights",
    "Motions",
    "Optics",
    "Painter",
    "Shutter",
    "Tracer",
    "Twists",
]
