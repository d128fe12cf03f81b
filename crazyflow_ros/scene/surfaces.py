"""What the optical sensors of the decks notice of the surfaces in a scene."""

from __future__ import annotations

import mujoco
import numpy as np

from crazyflow_ros.drones.deck_optics import ORDINARY, DeckSurface
from crazyflow_ros.scene.shapes import material_rgba, textures_of

_GREY = (0.5, 0.5, 0.5)  # MuJoCo's default colour, which says nothing
_DIM = 0.1  # reflectance below which a camera finds fewer features
_PLAIN = 0.3  # texture of a material of one colour
_MATT, _MIRROR = 0.1, 0.5  # reflectances of MuJoCo's materials that do not and wholly hide texture


def surfaces(model: mujoco.MjModel) -> np.ndarray:
    """Return reflectance and texture of each geom, (ngeom, 2), see `DeckSurface`.

    The reflectance is the mean of red, green and blue, for lack of one in the infrared. A material
    without an image has little texture, one that mirrors or shines has less, and a dark one, too. A
    geom without material and colour counts as ordinary.
    """
    made = [_material(model, material) for material in range(model.nmat)]
    rgb = np.clip(model.geom_rgba[:, :3], 0, 1).astype(float)
    says_nothing = np.isclose(rgb, _GREY).all(axis=1)[:, None]
    bright = rgb.mean(axis=1)
    bare = np.stack([bright, np.minimum(1.0, bright / _DIM)], axis=1).round(2)
    materials = np.array([*made, ORDINARY])[model.geom_matid]
    found: np.ndarray = np.where(
        model.geom_matid[:, None] >= 0, materials, np.where(says_nothing, ORDINARY, bare)
    )
    return found


def _material(model: mujoco.MjModel, material: int) -> DeckSurface:
    bright = float(material_rgba(model, material)[:3].mean())
    # MuJoCo's default for `specular` is 0.5.
    gloss = max(model.mat_reflectance[material], 2 * model.mat_specular[material] - 1)
    dull = 1 - np.clip((gloss - _MATT) / (_MIRROR - _MATT), 0.0, 1.0)
    features = 1.0 if textures_of(model, material) else _PLAIN
    texture = float(features * dull * min(1.0, bright / _DIM))
    return DeckSurface(round(bright, 2), round(texture, 2))
