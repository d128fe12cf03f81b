"""What drones can do now: the thrust beyond their weight, and the speed that they can follow."""

from __future__ import annotations

from math import inf, radians, tan

import numpy as np

from crazyflow_ros.control import Controller
from crazyflow_ros.drones import has_battery, load_battery, load_controller
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.estimation import Estimator
from crazyflow_ros.flight.fleet_observation import Ability, FleetObservation
from crazyflow_ros.flight.plan import Rules

_FOLLOWED = 0.9  # of the speed to which a controller limits itself: the rest is for catching up
# Of drones with a Flow deck alone: a share of the accelerations, because the filter loses itself in
# steep tilts, and a speed [m/s], because it neglects drag, and the camera saturates near the floor.
# The firmware limits its position controller to the same speed (posCtlPid.xVelMax).
_DRIFTING, _DRIFTING_SPEED = 0.6, 1.0
_LEAST_SPARE = 0.005  # of the weight, where a drone cannot take off
_SLOWEST = 0.2  # m/s, in a wind against which the controller could not hold the drone
_GUSTS = 2.0  # standard deviations of the horizontal gusts, which are twice as strong as others


class Authority:
    """Computes what drones can do, with batteries, motors, wind and controllers.

    Args:
        config: Configuration of the simulation.
        engine: The drones, in the world for which to compute.
    """

    def __init__(self, config: SimulationConfig, engine: Engine) -> None:
        self._engine, conditions = engine, engine.world.conditions
        drone, estimates = config.drone_model, config.estimator != Estimator.none
        figures = conditions.figures(drone)
        self._share, fastest = 1.0, inf
        if estimates and config.positioning.drifts:
            self._share, fastest = _DRIFTING, config.flight.speed or _DRIFTING_SPEED
        self._most = 4 * float(figures["thrust_max"])
        self._weight = -float(figures["mass"] * figures["gravity_vec"][2])
        self._drag = np.abs(np.diag(figures["drag_matrix"]))
        # Speed through the air at which drag balances the tilt to which a controller limits itself.
        level = self._weight / drag if (drag := float(self._drag[:2].max())) else inf
        self._airspeed = {
            each: level * tan(radians(own["tilt_max"]))
            for each in Controller
            if "tilt_max" in (own := load_controller(drone, each, "state"))
        }
        most = load_controller(drone, Controller.pid, "state")["vel_max"]
        speed = Rules.of(drone, config.flight, conditions).envelope.speed
        self._fastest = {each: min(fastest, speed) if each.lag else fastest for each in Controller}
        pid = Controller.pid
        self._fastest[pid] = min(self._fastest[pid], _FOLLOWED * float(np.min(most)))
        self._lag = {each: each.lag for each in Controller}
        self._others_fastest = fastest  # of controllers of other packages
        cell = load_battery(drone) if has_battery(drone) else {"full": inf}
        self._full_speed = cell.get("full_speed", cell["full"])  # V

    def sight(self, now: Snapshot) -> FleetObservation:
        """Return what commanders and the supervisor see of the drones in a state of them."""
        return FleetObservation(
            now.time_ns,
            now.names,
            now.pos,
            now.quat,
            now.vel,
            now.contact,
            battery=now.battery,
            believed=now.believed and now.believed[:3],
            ability=self.of(now),
        )

    def of(self, snapshot: Snapshot) -> Ability:
        """Return what the present drones can do, in a state of them.

        Returns:
            The thrust in excess of hovering, as a share of that of an intact drone with a full
            battery in calm air, and the speed that the controller can follow. Both are less for
            drones without a source of their position.
        """
        engine = self._engine
        wind, controller = engine.wind, engine.world.controller
        lost = engine.motor_loss[engine.rows].max(axis=1)
        most = self._most * (1 - lost) ** 2  # of rotors that are all like the weakest
        if snapshot.battery is not None:
            speed = snapshot.battery[:, 0] / self._full_speed
            most = most * np.minimum(speed, 1.0) ** 2
        air = np.abs(wind.mean) + _GUSTS * wind.gust_intensity * np.array([2.0, 2.0, 1.0])
        holding = np.linalg.norm(self._drag * air + (0.0, 0.0, self._weight))
        spare = max(self._most - self._weight, _LEAST_SPARE * self._weight)
        share: np.ndarray = self._share * (most - holding) / spare
        fastest = self._fastest.get(controller, self._others_fastest)
        if controller in self._airspeed:
            upwind = self._airspeed[controller] - float(np.linalg.norm(wind.mean))
            fastest = min(fastest, max(_FOLLOWED * upwind, _SLOWEST))
        return Ability(np.clip(share, 0.0, 1.0), fastest, self._lag.get(controller, 0.0))
