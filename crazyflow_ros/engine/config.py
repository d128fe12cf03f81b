"""What is simulated, and how fast."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from crazyflow_ros.drones import DEFAULT_DRONE
from crazyflow_ros.flight import FlightConfig

SLOWEST_FACTOR = 1e-6
"""Simulated seconds per second, the least but for standing still, which pausing does."""
FASTEST_FACTOR = 1e6


@dataclass(frozen=True)
class SimulationConfig:
    """Configuration of one running simulation; the arguments of `Sim` have its meaning there."""

    drone_model: str = DEFAULT_DRONE
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
    wind: tuple[float, ...] = (0.0, 0.0, 0.0)
    """At the start, see `disturbances.Wind`, as are the next two."""
    gust_intensity: float = 0.0
    gust_altitude: float = 6.0
    ground_effect: bool = False
    """Rotors have more thrust near the floor, see `dynamics.forces.aerodynamics.ground_effect`."""
    downwash: bool = False
    """Drones fly in the jets of those above them, see `dynamics.forces.aerodynamics.downwash`."""
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
    flight: FlightConfig = field(default_factory=FlightConfig)
    """How drones are led where they are told to fly."""


def check_real_time_factor(factor: float) -> float:
    """The factor as a float, if it is one to run at.

    Raises:
        ValueError: It is neither 0 nor from `SLOWEST_FACTOR` to `FASTEST_FACTOR`.
    """
    if not (factor == 0 or SLOWEST_FACTOR <= factor <= FASTEST_FACTOR):
        expected = f"0 (as fast as possible) or from {SLOWEST_FACTOR:g} to {FASTEST_FACTOR:g}"
        raise ValueError(f"real_time_factor must be {expected}, got {factor:g}")
    return float(factor)
