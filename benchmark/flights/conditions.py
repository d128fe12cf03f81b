"""What drones fly with, and in: model, controller, estimator, battery, wind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crazyflow_ros.control import Controller
from crazyflow_ros.drones import Drone, load_controller, load_drone, rotors_of
from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.estimation import Estimator, Positioning
from crazyflow_ros.flight import FlightConfig
from crazyflow_ros.flight.plan import Rules
from crazyflow_ros.runtime import SimulationConfig

SPACING = 8.0
"""Distance between the starts of two drones [m], which pass through each other."""

_COLUMNS = 16
_MOST_WIND = {"none": 0.25, "mocap": 0.1, "flow": 0.05}  # drag over weight
_MOST_FOR_INDI = 0.1  # which tilts by 10 degrees at most
_POSITIONINGS = {
    "none": None,
    "flow": Positioning(),
    "mocap": Positioning(flow=False, range=False, motion_capture=True),
}
_FOLLOWED = 0.8  # of the speed to which a controller limits itself
_FASTEST_DRIFTING = 1.0  # m/s, of drones with a Flow deck
_CALM = 0.4  # share of the groups
_WITH_GUSTS = 0.5  # of those with wind


@dataclass(frozen=True)
class Conditions:
    """Conditions that all drones of a group share."""

    drone: str
    controller: str
    positioning: str = "none"
    """Source of the estimator's position: `flow` or `mocap`; `none`: the true state."""
    battery: bool = False
    wind: tuple[float, float] = (0.0, 0.0)
    """x and y, m/s."""
    gusts: float = 0.0
    """Standard deviation of the vertical gusts, m/s."""

    @classmethod
    def random(cls, rng: np.random.Generator) -> Conditions:
        """Draw conditions."""
        drone = str(rng.choice([each for each in Drone if not rotors_of(each).has_tables]))
        positioning = str(rng.choice([*_POSITIONINGS]))
        strength = 0.0 if rng.random() < _CALM else rng.uniform(0.0, most_wind(drone, positioning))
        angle = rng.uniform(-np.pi, np.pi)
        controller = str(rng.choice([*Controller]))
        strength = min(strength, most_wind(drone, positioning, controller))
        wind = float(strength * np.cos(angle)), float(strength * np.sin(angle))
        return cls(
            drone,
            controller,
            positioning,
            bool(rng.random() < 0.5),
            wind,
            0.1 * strength if rng.random() < _WITH_GUSTS else 0.0,
        )

    @property
    def drifts(self) -> bool:
        """Whether drones know their position from a Flow deck alone."""
        return self.positioning == "flow"

    @property
    def fastest(self) -> float:
        """Speed of streams and trajectories [m/s]: no more than the commander or PID allow."""
        most = Rules.of(self.drone, FlightConfig()).envelope.speed
        if self.controller == Controller.pid:
            figures = load_controller(self.drone, Controller.pid, "state")
            most = min(most, _FOLLOWED * float(np.min(figures["vel_max"])))
        return min(most, _FASTEST_DRIFTING) if self.drifts else most

    def config(self, n_drones: int, seed: int) -> SimulationConfig:
        """Return the configuration of a simulation of so many drones, side by side on the floor."""
        poses = np.zeros((n_drones, 7))
        poses[:, :2] = home(np.arange(n_drones))
        poses[:, 2], poses[:, 6] = rest_height(self.drone), 1.0
        config = SimulationConfig(
            drone_model=self.drone,
            controller=self.controller,
            battery=self.battery,
            wind=(*self.wind, 0.0),
            gust_intensity=self.gusts,
            true_mass=True,
            ground_effect=True,
            real_time_factor=0.0,
            start_paused=True,
            seed=seed,
            initial_poses=poses,
        )
        positioning = _POSITIONINGS[self.positioning]
        if positioning is None:
            return config
        return replace(config, estimator=Estimator.kalman, positioning=positioning)


def most_wind(drone: str, positioning: str, controller: str = Controller.mellinger) -> float:
    """Return the strongest wind in which a drone flies missions [m/s].

    There is less for drones that fly on an estimate: as the firmware's, the filter neglects drag,
    and takes that of a wind for a tilt. There is less for INDI, which limits its tilt.
    """
    figures = load_drone(drone)
    weight = -float(figures["mass"] * figures["gravity_vec"][2])
    most = _MOST_WIND[positioning]
    if controller == Controller.indi:
        most = min(most, _MOST_FOR_INDI)
    return most * weight / float(np.abs(np.diag(figures["drag_matrix"])).max())


def home(number: np.ndarray | int) -> np.ndarray:
    """Return x and y of the place where a drone starts, (..., 2) m: all are around the origin."""
    row, column = np.divmod(number, _COLUMNS)
    return SPACING * (np.stack((column, row), axis=-1) - (_COLUMNS - 1) / 2)


def described(conditions: Conditions) -> str:
    """Return conditions in a line."""
    parts: Sequence[str] = [
        conditions.drone,
        conditions.controller,
        "true state"
        if conditions.positioning == "none"
        else f"kalman with {conditions.positioning}",
        *(["battery"] if conditions.battery else []),
    ]
    speed = float(np.hypot(*conditions.wind))
    if speed:
        gusts = " with gusts" if conditions.gusts else ""
        parts = [*parts, f"wind {speed:.1f} m/s{gusts}"]
    return ", ".join(parts)
