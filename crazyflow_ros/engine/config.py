"""Configuration of a simulation, and how fast it runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from crazyflow_ros.drones import DEFAULT_DRONE
from crazyflow_ros.estimation import Positioning
from crazyflow_ros.flight import FlightConfig

SLOWEST_FACTOR = 1e-6
"""The lowest real-time factor, simulated seconds per second. To stop the simulation, pause it."""
FASTEST_FACTOR = 1e6


@dataclass(frozen=True)
class SimulationConfig:
    """Configuration of a running simulation; fields named as arguments of `Sim` mean the same."""

    drone_model: str = DEFAULT_DRONE
    scene: str = "floor"
    dynamics: str = "first_principles"
    control: str = "state"
    controller: str = "mellinger"
    policy: str = ""
    """File of a policy that flies all drones in place of the controllers, see `policy.files`; empty
    for none. It needs control=state, whose commands are its goals, and replaces `state_freq`."""
    integrator: str = "euler"
    freq: int = 500
    state_freq: int = 100
    attitude_freq: int = 500
    body_rate_freq: int = 500
    force_torque_freq: int = 500
    true_mass: bool = False
    power_distribution: str = "capped"
    estimator: str = "none"
    positioning: Positioning = field(default_factory=Positioning)
    """Has an effect only with an estimator."""
    battery: bool = False
    """Whether rotors slow down as each drone's battery runs down, see `sim.actuation.Battery`; a
    reset recharges it."""
    wind: tuple[float, ...] = (0.0, 0.0, 0.0)
    """Wind at the start, see `disturbances.Wind`, as are the next two fields."""
    gust_intensity: float = 0.0
    gust_altitude: float = 6.0
    ground_effect: bool = False
    """Whether thrust increases near the floor, see `dynamics.forces.aerodynamics.ground_effect`."""
    downwash: bool = False
    """Whether the jets of drones push those below, see `dynamics.forces.aerodynamics.downwash`."""
    drone_collisions: bool = False
    """Whether drones collide with one another instead of passing through each other."""
    real_time_factor: float = 1.0
    """Simulated seconds per second; 0 runs as fast as possible."""
    start_paused: bool = False
    seed: int = 0
    max_drones: int = 0
    """Number of drones for which there is room without recompiling; 0 for the initial number."""
    watchdog_timeout: float = 5.0
    """Wall time without progress [s] after which the place where the thread hangs is reported."""
    initial_poses: np.ndarray | None = None
    """(M, 7) position [m] and attitude (xyzw) of each drone. None places them on the floor."""
    flight: FlightConfig = field(default_factory=FlightConfig)
    """How drones fly to commanded poses and velocities."""

    def compiled_part(self) -> SimulationConfig:
        """Return this configuration with defaults where no compiled code depends on it.

        Compiled code also depends on whether there are gusts at present, which the configuration
        alone does not determine.
        """
        default = SimulationConfig()
        return replace(self, **{name: getattr(default, name) for name in _NOT_COMPILED})


_NOT_COMPILED = (
    *("wind", "gust_intensity", "gust_altitude", "real_time_factor", "start_paused"),
    *("max_drones", "watchdog_timeout", "initial_poses", "flight"),
)


def check_real_time_factor(factor: float) -> float:
    """Return the factor as a float if the simulation can run at it.

    Raises:
        ValueError: It is neither 0 nor from `SLOWEST_FACTOR` to `FASTEST_FACTOR`.
    """
    if not (factor == 0 or SLOWEST_FACTOR <= factor <= FASTEST_FACTOR):
        expected = f"0 (as fast as possible) or from {SLOWEST_FACTOR:g} to {FASTEST_FACTOR:g}"
        raise ValueError(f"real_time_factor must be {expected}, got {factor:g}")
    return float(factor)
