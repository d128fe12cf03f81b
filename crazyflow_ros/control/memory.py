"""Memory of controllers."""

from __future__ import annotations

from jax import Array

from crazyflow_ros.dynamics.components import Vec3
from crazyflow_ros.elementwise import where

Memory = dict[str, tuple[Array, ...]]
"""Component arrays of one shape by name."""

INTEGRAL = "integral"
"""Name of a position controller's integral of the position error in world axes [m s]."""
RATES = "rates"
"""Name of the body rates [rad/s] that an attitude controller desired in its last run."""


def unless_idle(
    armed: Array | None, thrust: Array, torque: Vec3, memory: Memory
) -> tuple[Vec3, Memory]:
    """Return torque and memory of an attitude controller, zeros where the drone is idle.

    Args:
        armed: Whether the drone is armed; None means armed. Without thrust, it is always idle.
        thrust: Commanded thrust [N].
        torque: Torque [N m].
        memory: New memory.
    """
    runs = thrust > 0 if armed is None else armed & (thrust > 0)
    x, y, z = (where(runs, t, 0.0) for t in torque)
    return (x, y, z), {
        name: tuple(where(runs, part, 0.0) for part in parts) for name, parts in memory.items()
    }
