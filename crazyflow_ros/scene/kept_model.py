"""The model of a scene with many drones, kept in a file that the next start loads.

MuJoCo takes seconds to read and compile a thousand drones, and a tenth of a second to load them.
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections.abc import Sequence
from xml.etree import ElementTree as ET

import mujoco
import numpy as np

from crazyflow_ros.drones import resolve
from crazyflow_ros.scene.assembly import build_spec
from crazyflow_ros.scene.description import Description
from crazyflow_ros.scene.drone_mjcf import load_drawing
from crazyflow_ros.xla import compiled_files

_MANY = 64  # drones, below which compiling takes some 0.1 s


def kept_model(
    drone_model: str, names: Sequence[str], scene: Description, poses: np.ndarray
) -> mujoco.MjModel:
    """Return `build_spec(...).compile()`; for many drones, from a file of an earlier start.

    Args:
        drone_model: As for `build_spec`, like the other arguments.
        names: Names of the drones.
        scene: The scene.
        poses: (M, 7) initial poses.

    Raises:
        ValueError: The scene does not compile with these drones.
    """

    def compiled() -> mujoco.MjModel:
        return build_spec(drone_model, names, scene=scene, poses=poses).compile()

    if len(names) < _MANY or compiled_files.opened() is None:
        return compiled()
    found: bytes = compiled_files.traced(
        lambda: zlib.compress(pickle.dumps(compiled()), level=1),
        *("model", mujoco.mj_versionString(), _drawing(drone_model), tuple(names)),
        *(scene.format, scene.digest, hashlib.sha256(poses.tobytes()).digest()),
    )
    model: mujoco.MjModel = pickle.loads(zlib.decompress(found))
    return model


def _drawing(drone_model: str) -> bytes:
    """Return a digest of the drawing of a drone with its figures."""
    drawing = load_drawing(resolve(drone_model))
    digest = hashlib.sha256(ET.tostring(drawing.mjcf))
    for name in sorted(drawing.assets):
        digest.update(name.encode() + hashlib.sha256(drawing.assets[name]).digest())
    return digest.digest()
