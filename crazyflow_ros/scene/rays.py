"""Limits of the rays of MJX."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

_PASSED = (
    mujoco.mjtGeom.mjGEOM_HFIELD,
    mujoco.mjtGeom.mjGEOM_CYLINDER,
    mujoco.mjtGeom.mjGEOM_SDF,
)
"""Types of geoms that rays of MJX silently pass through."""


def check_rays_hit(model: Any, meant: np.ndarray) -> None:
    """Check that the rays of MJX hit all geoms that they are meant to hit.

    Args:
        model: A model of MuJoCo or of MJX, which has no names.
        meant: (ngeom,) bool, the geoms that rays are meant to hit.

    Raises:
        ValueError: Rays would pass through some of them; the message names these.
    """
    passed = np.flatnonzero(meant & np.isin(model.geom_type, list(map(int, _PASSED))))
    if passed.size:
        named = isinstance(model, mujoco.MjModel)
        names = [(named and model.geom(int(i)).name) or f"number {i}" for i in passed]
        raise ValueError(
            f"MJX's rays pass through cylinders, height fields and SDFs: {', '.join(names)}. Leave "
            "their groups out, or use C MuJoCo"
        )
