"""What surfaces and lights look like, as arrays that may differ between worlds."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.textures import TexturedGeoms
from crazyflow_ros.raytracing.unit_shapes import colors_of

_SPECULAR, _SHININESS = 0.5, 0.5
"""Of geoms without a material."""
_WITHOUT_LIGHTS = 0.3  # ambient light if there is no other
_SHININESS_UNIT = 128.0  # exponent of a shininess of 1


class Lights(NamedTuple):
    """Lights of W worlds, which is one if all worlds have the same; K lights, without headlight."""

    pos: Array
    """In the world [m], (W, K, 3)."""
    dir: Array
    """Unit vectors of where they shine, in the world, (W, K, 3)."""
    ambient: Array
    """Red, green, blue, (W, K, 3)."""
    diffuse: Array
    """(W, K, 3)."""
    specular: Array
    """(W, K, 3)."""
    attenuation: Array
    """Constant, linear and quadratic in the distance [1, 1/m, 1/m²], (W, K, 3)."""
    cutoff: Array
    """Half angle of the cone of a spot light [rad], (W, K)."""
    exponent: Array
    """Of the cosine of the angle from the middle of the cone, (W, K)."""
    directional: Array
    """1 for a light whose rays are parallel; its position says where its shadows start, (W, K)."""


class Appearance(NamedTuple):
    """Colours of W worlds, which is one if all worlds look the same."""

    color: Array
    """Red, green, blue and opacity of geoms, (W, ngeom, 4)."""
    emission: Array
    """(W, ngeom)."""
    specular: Array
    """(W, ngeom)."""
    shininess: Array
    """Exponent, (W, ngeom)."""
    pattern: Array
    """How the texture is repeated, see `TexturedGeoms.pattern`, (W, ngeom, 5)."""
    headlight: Array
    """Ambient, diffuse and specular light of the camera, (W, 3, 3)."""
    texture: Array
    """Number of the texture, -1 for none, (W, ngeom) int32."""
    lights: Lights


def look_of(model: mujoco.MjModel, textures: TexturedGeoms) -> Appearance:
    """Return the appearance of a scene, with one row for all worlds.

    Args:
        model: The scene.
        textures: How its textures are on geoms.
    """
    material = model.geom_matid
    values = {"emission": 0.0, "specular": _SPECULAR, "shininess": _SHININESS}
    surfaces = {
        name: np.append(getattr(model, f"mat_{name}"), default)[material].astype(float)
        for name, default in values.items()
    }
    surfaces["shininess"] *= _SHININESS_UNIT
    head = model.vis.headlight
    headlight = np.array([head.ambient, head.diffuse, head.specular]) * bool(head.active)
    lights = _lights_of(model)
    if not head.active and not drawn_lights(model).size:
        headlight[0] = _WITHOUT_LIGHTS
    single = {
        "color": colors_of(model), **surfaces, "pattern": textures.pattern, "headlight": headlight,
    }  # fmt: skip
    rows = {name: jnp.asarray(part[None], jnp.float32) for name, part in single.items()}
    return Appearance(texture=jnp.asarray(textures.texture[None]), lights=lights, **rows)


def _lights_of(model: mujoco.MjModel) -> Lights:
    """Return the directional lights and spot lights; MuJoCo draws no others."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_camlight(model, data)
    drawn = drawn_lights(model)
    if not drawn.size:  # a dark one, because compiled functions have no empty arguments
        x, z = np.eye(3)[[0, 2]]
        dark, off = np.zeros((1, 1, 3)), np.zeros((1, 1))
        fields = (dark, z[None, None], dark, dark, dark, x[None, None], off, off, off)
        return Lights(*(jnp.asarray(field, jnp.float32) for field in fields))
    far = model.light_type[drawn] == mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    # Directional lights are spot lights without a cone.
    attenuation = np.where(far[:, None], [1.0, 0.0, 0.0], model.light_attenuation[drawn])
    cutoff = np.where(far, np.pi, np.radians(model.light_cutoff[drawn]))
    fields = (
        data.light_xpos[drawn], data.light_xdir[drawn], model.light_ambient[drawn],
        model.light_diffuse[drawn], model.light_specular[drawn], attenuation, cutoff,
        np.where(far, 0.0, model.light_exponent[drawn]), far,
    )  # fmt: skip
    return Lights(*(jnp.asarray(field[None], jnp.float32) for field in fields))


def drawn_lights(model: mujoco.MjModel) -> np.ndarray:
    """Return the numbers of the lights that MuJoCo draws."""
    kinds = (mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, mujoco.mjtLightType.mjLIGHT_SPOT)
    return np.flatnonzero(model.light_active.astype(bool) & np.isin(model.light_type, kinds))
