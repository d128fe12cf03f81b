"""The bodies of drones among those of a MuJoCo model, which are told by their names."""

from __future__ import annotations

import mujoco
import numpy as np

DRONE = "drone:"
"""Prefix of the names of the bodies of drones."""


def drones_in(model: mujoco.MjModel) -> dict[int, str]:
    """Return the names of the drones in a model by the numbers of their bodies."""
    roots = {
        body: model.body(body).name for body in np.flatnonzero(model.body_parentid == 0).tolist()
    }
    return {
        body: name.removeprefix(DRONE) for body, name in roots.items() if name.startswith(DRONE)
    }
