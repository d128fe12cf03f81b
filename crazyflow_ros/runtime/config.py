"""What is simulated, and how fast."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SimulationConfig:
    """Configuration of one running simulation; the arguments of `Sim` have its meaning there."""

    drone_model: str = "cf2x_L250"
    scene: str = "floor"
    dynamics: str = "first_principles"
    control: str = "state"
    integrator: str = "euler"
    freq: int = 500
    state_freq: int = 100
    attitude_freq: int = 500
    body_rate_freq: int = 500
    force_torque_freq: int = 500
    true_mass: bool = False
    battery: bool = False
    """Rotors slow down as each drone's battery runs down, see `sim.actuation.Battery`; after a
    reset it is full."""
    drone_collisions: bool = False
    """Drones collide with one another, and do not fly through each other."""
    real_time_factor: float = 1.0
    """Simulated seconds per second; 0 runs as fast as it can."""
    start_paused: bool = False
    seed: int = 0
    max_drones: int = 0
    """For how many drones there is room without compiling anew; 0: for those of the start."""
    watchdog_timeout: float = 5.0
    """Without progress for so long [s of wall time] it is reported what the thread hangs in."""
    initial_poses: np.ndarray | None = None
    """(M, 7) position [m] and attitude (xyzw) of each drone. None stands them on the floor."""


def check_real_time_factor(factor: float) -> float:
    """The factor as a float, if it is one to run at.

    Raises:
        ValueError: Negative, NaN or infinite.
    """
    if not (math.isfinite(factor) and factor >= 0):
        raise ValueError(f"real_time_factor must be 0 (as fast as possible) or more, got {factor}")
    return float(factor)
