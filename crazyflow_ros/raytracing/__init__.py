"""Pictures by rays: what the cameras of many worlds see, within compiled functions of JAX.

MuJoCo's renderers draw one world at a time, outside of compiled functions, and have no derivatives.
"""

from crazyflow_ros.raytracing.look import Appearance, Lights
from crazyflow_ros.raytracing.motions import Flow, Motions, Twists
from crazyflow_ros.raytracing.optics import Lens, Optics
from crazyflow_ros.raytracing.painter import Painter
from crazyflow_ros.raytracing.tracer import Frames, Hits, Tracer
from crazyflow_ros.sensors.camera_model import Chip, Distortion, DistortionModel, Shutter

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
