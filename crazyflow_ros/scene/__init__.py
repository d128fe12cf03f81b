"""The MuJoCo scene: assembly of drones and world, the mirror of the physics, frames.

Names are imported on first use: `frames` alone needs no MuJoCo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.scene.assembly import build_spec, read_scene, scene_path, scenes, unweld
    from crazyflow_ros.scene.collision_shapes import obstacles_of
    from crazyflow_ros.scene.conditions import Conditions
    from crazyflow_ros.scene.controls import Controls
    from crazyflow_ros.scene.mirror import Mirror, PhysicsRequests
    from crazyflow_ros.scene.mirror_state import MirrorState
    from crazyflow_ros.scene.renderers import RenderingUnavailable

__all__ = [
    "Conditions",
    "Controls",
    "Mirror",
    "MirrorState",
    "PhysicsRequests",
    "RenderingUnavailable",
    "build_spec",
    "obstacles_of",
    "read_scene",
    "scene_path",
    "scenes",
    "unweld",
]

__getattr__ = lazy(
    __name__,
    {
        "Conditions": "conditions",
        "Controls": "controls",
        "Mirror": "mirror",
        "MirrorState": "mirror_state",
        "PhysicsRequests": "mirror",
        "RenderingUnavailable": "renderers",
        "build_spec": "assembly",
        "obstacles_of": "collision_shapes",
        "read_scene": "assembly",
        "scene_path": "assembly",
        "scenes": "assembly",
        "unweld": "assembly",
    },
)

MODULES = (
    "assembly",
    "frames",
    "groups",
    "intrinsics",
    "moving_frames",
    "renderers",
    "shapes",
    "view",
)
"""Modules that extensions may import, with all their public names."""
