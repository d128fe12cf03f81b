"""The scene in MuJoCo: assembly of drones and world, the mirror of the physics, frames."""

from crazyflow_ros.scene.assembly import build_spec, unweld

__all__ = ["build_spec", "unweld"]
