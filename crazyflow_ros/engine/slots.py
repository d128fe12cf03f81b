"""The slots of drones in a compiled world. Many drones fill blocks, see `Blocks`."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.dynamics.forces.jets import FEW, TOGETHER
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.estimation import Estimator
from crazyflow_ros.sim.integrator import Integrator

BLOCK = 32
"""Drones in a block."""
_LAYER = 20.0  # m


def slots_for(n_drones: int) -> int:
    """Return the number of slots to compile for: many drones fill whole blocks."""
    return n_drones if n_drones <= FEW else -(-n_drones // BLOCK) * BLOCK


def is_divided(config: SimulationConfig, n_drones: int, *, by_door: int, gusts: bool) -> bool:
    """Return whether drones are computed block by block.

    Random numbers, a door that flies some of the drones, networks, forces of other packages and
    intermediate states of an integrator need all drones at once.
    """
    return (
        n_drones > FEW
        and n_drones % BLOCK == 0
        and by_door in (0, n_drones)
        and not (gusts or config.policy or config.forces)
        and config.estimator == Estimator.none
        and config.integrator in (Integrator.euler, Integrator.symplectic_euler)
    )


def neighbours_together(pos: np.ndarray) -> np.ndarray:
    """Return drones at (M, 3) in an order in which neighbours follow each other, and its inverse.

    The drones are sorted into strips of about the same number, and within a strip along y. Layers
    of height are separate only if they are far apart.

    Returns:
        (2, M) integers.
    """
    n_drones = len(pos)
    x, y, z = pos.T
    layer = np.floor(z / _LAYER)
    rank = np.empty(n_drones, int)
    rank[np.lexsort((x, layer))] = np.arange(n_drones)
    strip = rank // int(np.sqrt(n_drones * TOGETHER))
    order = np.lexsort((y, strip))
    inverse = np.empty_like(order)
    inverse[order] = np.arange(n_drones)
    return np.stack((order, inverse))
