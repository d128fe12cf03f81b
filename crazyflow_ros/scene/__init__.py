"""The MuJoCo scene: assembly of drones and world, the mirror of the physics, frames."""

from crazyflow_ros.scene.assembly import build_spec, scene_path, scenes, unweld
from crazyflow_ros.scene.controls import Controls
from crazyflow_ros.scene.mirror import Imu, Mirror, PhysicsRequests
from crazyflow_ros.scene.renderers import RenderingUnavailable
from crazyflow_ros.scene.state import MirrorState

__all__ = [
    "Controls",
    "Imu",
    "Mirror",
    "MirrorState",
    "PhysicsRequests",
    "RenderingUnavailable",
    "build_spec",
    "scene_path",
    "scenes",
    "unweld",
]
