"""The MuJoCo scene: assembly of drones and world, the mirror of the physics, frames."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crazyflow_ros.scene.assembly import build_spec, read_scene, scene_path, scenes, unweld
    from crazyflow_ros.scene.controls import Controls
    from crazyflow_ros.scene.mirror import Mirror, PhysicsRequests
    from crazyflow_ros.scene.renderers import RenderingUnavailable
    from crazyflow_ros.scene.state import MirrorState

__all__ = [
    "Controls",
    "Mirror",
    "MirrorState",
    "PhysicsRequests",
    "RenderingUnavailable",
    "build_spec",
    "read_scene",
    "scene_path",
    "scenes",
    "unweld",
]

_MODULES = {
    "Controls": "controls",
    "Mirror": "mirror",
    "MirrorState": "state",
    "PhysicsRequests": "mirror",
    "RenderingUnavailable": "renderers",
}


def __getattr__(name: str) -> Any:
    """Import a module when something of it is asked for: `frames` alone needs no MuJoCo."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'assembly')}"), name)
