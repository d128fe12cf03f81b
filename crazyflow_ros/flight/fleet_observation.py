"""All drones at one instant, as their commanders and the supervisor see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from crazyflow_ros.flight.course import AXES, Reference
from crazyflow_ros.flight.plan import StartState
from crazyflow_ros.scene.frames import yaw


class Ability(NamedTuple):
    """What drones can do, with their rotors and their controllers."""

    authority: np.ndarray
    """(M,) share of their spare thrust that they have now."""
    fastest: float = inf
    """Speed that the controller can follow [m/s]."""
    lag: float = 0.0
    """Delay with which they follow a moving setpoint [s]."""


@dataclass(frozen=True)
class FleetObservation:
    """All drones at one instant, one row each: the true state, except for the estimates."""

    time_ns: int
    names: Sequence[str]
    pos: np.ndarray
    """(M, 3) m."""
    quat: np.ndarray
    """(M, 4) xyzw."""
    vel: np.ndarray
    """(M, 3) m/s, world frame."""
    contact: np.ndarray
    """(M, 6) force [N] and torque of all contacts."""
    battery: np.ndarray | None
    """(M, 3) voltage, current and charge drawn; None without batteries."""
    believed: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    """Estimated position, attitude and velocity; None if the drones know the true ones."""
    ability: Ability | None = None
    """What they can do now; None if nothing limits them."""

    @property
    def places(self) -> np.ndarray:
        """Where they are as far as they know, (M, 3) m."""
        return self.pos if self.believed is None else self.believed[0]

    @property
    def lag(self) -> float:
        """Delay with which the drones follow a moving setpoint [s]."""
        return 0.0 if self.ability is None else self.ability.lag

    def start(self, i: int) -> StartState:
        """Return the motion from which a drone plans: the estimate, if there is one."""
        at, quat, velocity = self.believed or (self.pos, self.quat, self.vel)
        pos, vel = np.zeros(AXES), np.zeros(AXES)
        pos[:3], vel[:3], pos[3] = at[i], velocity[i], float(yaw(quat[i]))
        motion, able = Reference(pos, vel, np.zeros(AXES)), self.ability
        share, fastest = (1.0, inf) if able is None else (float(able.authority[i]), able.fastest)
        return StartState(self.time_ns, motion, authority=share, fastest=fastest, quat=self.quat[i])
