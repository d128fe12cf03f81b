"""Requests to one drone: its power, gains and estimate, how it stands, and where it is led."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from math import inf
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.enum_members import member
from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.checks.plain_values import plain
from crazyflow_ros.control import Controller
from crazyflow_ros.control.gains import check_gain
from crazyflow_ros.drones import rotors_of
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.dynamics.forces.floor import contact_points
from crazyflow_ros.engine import interventions
from crazyflow_ros.engine.snapshot import SIZES, DroneState, Snapshot
from crazyflow_ros.flight import FlightState
from crazyflow_ros.flight.tumbling import SLOW, TOUCHES, TUMBLED, uprightness
from crazyflow_ros.runtime.lines_of_sight import LinesOfSight
from crazyflow_ros.runtime.news import Setting
from crazyflow_ros.runtime.requests import Requests
from crazyflow_ros.runtime.resets import ResetScope
from crazyflow_ros.runtime.roster import Roster
from crazyflow_ros.runtime.simulation import Simulation
from crazyflow_ros.scene.frames import quat_from_rpy, rotation_matrix, yaw

T = TypeVar("T")

_TURNS = 0.5  # rad/s, below which a drone that lies is at rest
_IN_THE_AIR = 0.05  # m above its height at rest, beyond which a led drone flies
_FLOW_SETTINGS = limits.Limit(1e3, "")  # two switches, and an error in counts
_FIGURE = limits.Limit(1e6, "")  # of numbers of beacons
_LEAST_STD, _MOST_STD = 1e-5, 1e3  # m or rad, of external poses


class DroneFirmware:
    """Requests to one drone, as a person or a radio makes them. Any thread may ask.

    All raise ValueError if there is no such drone; if it is removed meanwhile, the future does.

    Args:
        simulation: The simulation to change.
        requests: The queue of requests.
        roster: Holds the obstacles of the world.
    """

    def __init__(self, simulation: Simulation, requests: Requests, roster: Roster) -> None:
        self._simulation, self._requests, self._config = simulation, requests, simulation.config
        self._roster = roster
        self._engine, self._door = simulation.engine, simulation.door
        LinesOfSight.watch(simulation)

    def restart(self, name: str, *, charged: bool = False) -> Future[Snapshot]:
        """Switch a drone off and on where it is: all that its firmware knows begins anew.

        A drone that lies on its side or upside down is upright afterwards, as if set by a person.

        Args:
            name: Name of the drone.
            charged: Whether its battery is full afterwards; otherwise it keeps its charge.
        """

        def carry_out() -> Snapshot:
            simulation, now = self._simulation, self._simulation.snapshot
            row = now.names.index(name)
            fields = {field: getattr(now, field)[[row]] for field in SIZES} | self._righted(name)
            fields["rotor_vel"] = np.zeros_like(fields["rotor_vel"])
            simulation.drop_commands((name,))
            interventions.restart(self._engine, name, fields, charged=charged)
            simulation.refresh(now.tick)
            simulation.tell_reset(ResetScope.state, (name,), charged=charged)
            return simulation.snapshot

        return self._ask(name, carry_out)

    def set_upright(self, name: str, *, if_crashed: bool = False) -> Future[bool]:
        """Turn a drone that lies on its side or upside down upright, as a person would.

        Other drones, also those that still move, stay as they are; the result is then False.

        Args:
            name: Name of the drone.
            if_crashed: Turn it only in the state after a crash.
        """

        def carry_out() -> bool:
            state = self._simulation.commands.states.get(name)
            fields = self._righted(name)
            if not fields or (if_crashed and state is not FlightState.crashed):
                return False
            self._engine.put([name], fields)
            self._simulation.show()
            return True

        return self._ask(name, carry_out)

    def tune(self, name: str, controller: str, gains: Mapping[str, ArrayLike]) -> Future[Snapshot]:
        """Change gains of a drone; they last until it is reset, restarted or removed.

        Args:
            name: Name of the drone.
            controller: The `Controller` that the gains belong to; others are unaffected.
            gains: New values by name, see `Cascade.GAINS`.

        Raises:
            ValueError: No such controller or gain, or an impossible value.

        The future raises ValueError if a gain has no effect.
        """
        kind = member(Controller, controller)
        checked = {gain: check_gain(kind, gain, value) for gain, value in gains.items()}
        if self._door is not None and name in self._door.drones and not self._door.flies_all:
            raise ValueError(f"{name} obeys the door {self._door.name}, gains have no effect on it")

        def carry_out() -> Snapshot:
            self._engine.gains.tune(name, kind, checked)
            return self._told("tune", name=name, controller=kind.value, gains=checked)

        return self._ask(name, carry_out)

    def untune(self, name: str) -> Future[Snapshot]:
        """Give a drone the controllers' own gains again."""

        def carry_out() -> Snapshot:
            self._engine.gains.forget(name)
            return self._told("untune", name=name)

        return self._ask(name, carry_out)

    def restart_estimate(self, name: str, initial: ArrayLike) -> Future[Snapshot]:
        """Let the estimator of a drone start again.

        Args:
            name: Name of the drone.
            initial: (4,) initial estimate: position [m] and yaw [rad].

        Raises:
            ValueError: The drones have no estimators, or a number is impossible.
        """
        start = limits.vector("initial pose", initial, (4,), limits.POSITION)
        self._check_estimates()

        def carry_out() -> Snapshot:
            interventions.restart_estimate(self._engine, name, start)
            self._told("restart_estimate", name=name, initial=start)
            self._simulation.show()
            return self._simulation.snapshot

        return self._ask(name, carry_out)

    def halt(self, name: str, state: str, why: str = "") -> Future[Snapshot]:
        """Stop the rotors of a drone as its firmware did, see `DroneCommands.halt`.

        Raises:
            ValueError: There is no such drone or state.
        """
        known = FlightState(state)

        def carry_out() -> Snapshot:
            self._simulation.commands.halt(name, known, why)
            return self._simulation.snapshot

        return self._ask(name, carry_out)

    def tune_flow(self, name: str, settings: ArrayLike) -> Future[Snapshot]:
        """Change how the estimator of a drone uses its flow deck, until the drone is reset.

        Args:
            name: Name of the drone.
            settings: (3,) values of the firmware's `motion.disable`, `adaptive`, `flowStdFixed`.

        Raises:
            ValueError: The drones have no estimators, or a number is impossible.
        """
        values = limits.vector("settings of the flow deck", settings, (3,), _FLOW_SETTINGS)
        if values[2] <= 0:
            raise ValueError(f"motion.flowStdFixed must be positive, got {values[2]:g}")
        self._check_estimates()

        def carry_out() -> Snapshot:
            self._engine.set_leaves(name, {"estimate.flow_settings": values})
            return self._told("tune_flow", name=name, settings=values)

        return self._ask(name, carry_out)

    def set_beacons(self, name: str, column: str, values: ArrayLike) -> Future[Snapshot]:
        """Change what a drone's firmware knows of base stations and radio anchors.

        It lasts until the drone is reset or restarted.

        Args:
            name: Name of the drone.
            column: A name in `estimation.beacons.columns`.
            values: Its numbers.

        Raises:
            ValueError: The drone has no such numbers, or one is impossible.
        """
        from crazyflow_ros.estimation.beacons import columns  # which few simulations need

        self._check_estimates()
        known = columns(self._config.positioning)
        if column not in known:
            raise ValueError(unknown("number of beacons", column, known))
        own = known[column]
        numbers = limits.vector(column, np.atleast_1d(values), (own.stop - own.start,), _FIGURE)

        def carry_out() -> Snapshot:
            interventions.set_beacons(self._engine, name, column, numbers)
            return self._told("set_beacons", name=name, column=column, values=numbers)

        return self._ask(name, carry_out)

    def tell_pose(
        self, name: str, pos: ArrayLike, quat: ArrayLike | None, std: tuple[float, float]
    ) -> Future[Snapshot]:
        """Tell a drone where it is, as from motion capture.

        Args:
            name: Name of the drone.
            pos: (3,) position [m].
            quat: (4,) attitude xyzw; None if it is unknown.
            std: Standard deviations of position [m] and attitude [rad].

        Raises:
            ValueError: The drones have no estimators, or a number is impossible.
        """
        place = limits.vector("external position", pos, (3,), limits.POSITION)
        given = plain(quat)  # unchanged: `unit_quaternion` may round even a unit quaternion
        turn = np.zeros(4) if quat is None else limits.unit_quaternion("external attitude", quat)
        for error in std:
            if not _LEAST_STD <= error <= _MOST_STD:
                expected = f"from {_LEAST_STD:g} to {_MOST_STD:g}"
                raise ValueError(f"standard deviations must be {expected}, got {error:g}")
        self._check_estimates()
        if not self._config.positioning.external:
            raise ValueError("poses from outside need positioning.external=true from the start")

        def carry_out() -> Snapshot:
            interventions.tell_pose(self._engine, name, np.concatenate((place, turn)), std)
            return self._told("tell_pose", name=name, pos=place, quat=given, std=std)

        return self._ask(name, carry_out)

    def lead(
        self,
        name: str,
        pos: ArrayLike,
        quat: ArrayLike,
        vel: ArrayLike = (0.0, 0.0, 0.0),
        ang_vel: ArrayLike = (0.0, 0.0, 0.0),
    ) -> Future[Snapshot]:
        """Put a drone where a real one is: it stays there, and obeys no commands any more.

        Others see it with its velocities. In the air its rotors turn as in hovering flight.

        Args:
            name: Name of the drone.
            pos: (3,) centre of mass [m].
            quat: (4,) attitude xyzw.
            vel: (3,) m/s, world axes.
            ang_vel: (3,) rad/s, body axes.

        Raises:
            ValueError: A number is impossible.
        """
        state = DroneState(pos=pos, quat=quat, vel=vel, ang_vel=ang_vel).checked(name)
        model = self._config.drone_model
        rotors, rest = rotors_of(model), rest_height(model)
        told = {key: plain(value) for key, value in state.items()}

        def carry_out() -> Snapshot:
            weight = self._simulation.commands.rules.weight
            floor, z = self._engine.world.conditions.floor, state["pos"][2]
            (top,) = self._roster.surroundings.ground(state["pos"][None, :2])
            below = max((h for h in (top, floor) if h is not None and h < z), default=-inf)
            flies = z - below > rest + _IN_THE_AIR
            rotor_vel = rotors.hover_speeds(weight) * RPM * flies
            fields = {key: value[None] for key, value in {**state, "rotor_vel": rotor_vel}.items()}
            interventions.lead(self._engine, name, fields)
            return self._told("lead", name=name, **told)

        return self._ask(name, carry_out)

    def _ask(self, name: str, action: Callable[[], T]) -> Future[T]:
        self._simulation.known([name])

        def carry_out() -> T:
            self._simulation.known([name])
            return action()

        return self._requests.ask(carry_out)

    def _check_estimates(self) -> None:
        if self._simulation.snapshot.believed is None:
            raise ValueError("the drones know their true state; start with estimator=kalman")

    # In the physics thread.

    def _righted(self, name: str) -> dict[str, np.ndarray]:
        """Return the state of a drone that is set upright; empty unless it lies at rest."""
        now, weight = self._simulation.snapshot, self._simulation.commands.rules.weight
        row = now.names.index(name)
        quat, force = now.quat[row], np.abs(now.contact[row, :3]).max()
        rests = np.abs(now.vel[row]).max() < SLOW and np.abs(now.ang_vel[row]).max() < _TURNS
        if uprightness(quat) >= TUMBLED or not (force > TOUCHES * weight and rests):
            return {}
        # It keeps its heading, and stands on what it lay on.
        points = contact_points(self._config.drone_model)
        upright = quat_from_rpy(np.array([0.0, 0.0, float(yaw(quat))]))
        below, above = ((points @ rotation_matrix(q).T)[:, 2].min() for q in (quat, upright))
        pos = now.pos[row] + np.array([0.0, 0.0, below - above])
        moving = ("vel", "ang_vel", "rotor_vel")
        still = {name: np.zeros_like(getattr(now, name)[:1]) for name in moving}
        return {"pos": pos[None], "quat": upright[None], **still}

    def _told(self, request: str, **arguments: Any) -> Snapshot:
        """Tell others of a setting, and return the state."""
        self._simulation.news.on_setting.tell(Setting(request, arguments))
        return self._simulation.snapshot
