"""Goals of drones that a door flies: the commander's way there, and a position controller on it."""

from __future__ import annotations

from typing import Any

import numpy as np

from crazyflow_ros.control import Controller
from crazyflow_ros.dynamics.components import BodyState
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.levels import Level
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.flight import FlightState, Pose
from crazyflow_ros.flight.commander import Commander
from crazyflow_ros.flight.course import Reference
from crazyflow_ros.flight.plan import StartState
from crazyflow_ros.flight.setpoint import CLEARANCE
from crazyflow_ros.flight.tumbling import SLOW, TOUCHES, TUMBLED, uprightness
from crazyflow_ros.runtime.drone_commands import DroneCommands
from crazyflow_ros.runtime.health import Health

_LOST = 2.0  # m from its course, where a drone plans anew


class DoorGoals:
    """Flies drones of a door to goals: they take off, fly there within their bounds, and land.

    Args:
        config: Configuration of the simulation, with the position controller.
        rate: Control ticks per second.
        n_drones: Number of drones of the door.
        commands: Has the rules of the present world, and sees what drones can do.
        health: Logs what happens.

    Attributes:
        flown: Commanders of the drones on their way, by number.
    """

    def __init__(
        self,
        config: SimulationConfig,
        rate: int,
        n_drones: int,
        commands: DroneCommands,
        health: Health,
    ) -> None:
        self._config, self._rate, self._commands = config, rate, commands
        self._health, self._rules = health, commands.rules
        self.flown: dict[int, Commander] = {}
        self._goals = np.zeros((n_drones, 4))
        self._cascade = Controller(config.controller).cascade
        self._memory = {
            name: tuple(np.zeros(n_drones) for _ in range(size))
            for name, size in self._cascade.POSITION_MEMORY.items()
        }
        self._params: dict[str, Any] | None = None

    def resolve(
        self, now: Snapshot, rows: np.ndarray, command: np.ndarray, level: np.ndarray
    ) -> None:
        """Convert goals to attitudes, or to speeds of 0 once a drone has landed, in place.

        Args:
            now: State of all drones.
            rows: (M,) rows of the door's drones in it.
            command: (M, 4 or more) numbers, see `Level`.
            level: (M,) levels.
        """
        if self._rules is not self._commands.rules:  # those of another world
            self._rules, self.flown, self._params = self._commands.rules, {}, None
        goes = np.flatnonzero(level == Level.goal)
        self.flown = {i: self.flown[i] for i in goes.tolist() if i in self.flown}
        if not goes.size:
            return
        found = []
        for i in goes.tolist():
            row = int(rows[i])
            if (reference := self._aim(i, now, row, command[i, :4])) is not None:
                found.append((i, np.concatenate(reference)))
        command[goes], level[goes] = 0.0, Level.rotor_velocity
        if found:
            flies = np.array([i for i, _ in found])
            command[flies, :4] = self._follow(
                now, rows[flies], flies, np.array([at for _, at in found])
            )
            level[flies] = Level.attitude

    def _aim(self, i: int, now: Snapshot, row: int, goal: np.ndarray) -> Reference | None:
        """Let the commander of a drone know its goal, and the time; None once it stands."""

        def start() -> StartState:
            return self._commands.sight(now).start(row)

        name, is_new = now.names[row], i not in self.flown
        commander = self._begun(i, float(now.known.pos[row, 2])) if is_new else self.flown[i]
        if is_new or (self._goals[i] != goal).any():
            self._goals[i] = goal
            try:
                plan = commander.command(Pose(goal[:3], float(goal[3])), start())
            except ValueError as error:
                self._health.warn(f"{name} ignores a goal: {error}")
            else:
                if plan is not None and plan.note:
                    self._health.inform(f"{name} {plan.note}")
        if commander.order is not None and self._lies(now, row):
            why = "it lies tilted by more than 60 degrees"
            commander.stop(FlightState.crashed, why)
            self._health.warn(f"{name} has crashed: {why}; its rotors stop until it is reset")
        if text := commander.update(now.time_ns, start):
            self._health.warn(f"{name}: {text}")
        if commander.order is None:
            return None
        reference = commander.order.reference(now.time_ns)
        assert reference is not None  # a goal has a course
        if np.abs(reference.pos[:3] - now.known.pos[row]).max() > _LOST:  # it was put elsewhere
            commander.restart(start())
        return commander.order.reference(now.time_ns)

    def _lies(self, now: Snapshot, row: int) -> bool:
        """Return whether a drone rests on its side or its back."""
        touches = np.abs(now.contact[row, :3]).max() > TOUCHES * self._rules.weight
        rests = touches and np.abs(now.vel[row]).max() < SLOW
        return bool(rests and uprightness(now.quat[row]) < TUMBLED)

    def _begun(self, i: int, height: float) -> Commander:
        """Return the commander of a drone whose level this has just become."""
        self.flown[i] = commander = Commander(self._rules)
        if height > self._rules.rest_height + CLEARANCE:
            commander.state = FlightState.flying
        for parts in self._memory.values():
            for part in parts:
                part[i] = 0.0
        return commander

    def _follow(
        self, now: Snapshot, rows: np.ndarray, flies: np.ndarray, references: np.ndarray
    ) -> np.ndarray:
        """Return roll, pitch, yaw [rad] and thrust [N], (k, 4), of drones on their courses.

        Args:
            now: State of all drones.
            rows: (k,) rows of these drones in it.
            flies: (k,) their numbers among those of the door.
            references: (k, 12) see `Reference`.
        """
        known, motion = now.known, references.T
        rates, half = tuple(now.ang_vel[rows].T), motion[3] / 2
        body: Any = (*(tuple(x[rows].T) for x in (known.pos, known.quat, known.vel)), rates, rates)
        pos, vel, acc = motion[:3], motion[4:7], motion[8:11]
        quat = (0 * half, 0 * half, np.sin(half), np.cos(half))
        setpoint: Any = (*map(tuple, (pos, vel, acc + self._rules.drag[:, None] * vel)), quat)
        own: Any = {name: tuple(x[flies] for x in parts) for name, parts in self._memory.items()}
        rpy, thrust, memory = self._cascade.state2attitude(
            BodyState(*body), setpoint, own, 1 / self._rate, self._figures
        )
        for name, new in memory.items():
            for whole, part in zip(self._memory[name], new):
                whole[flies] = part
        return np.stack((*rpy, thrust), axis=1)

    @property
    def _figures(self) -> dict[str, Any]:
        """The parameters of the position controller in the present world."""
        if self._params is None:
            cascade = self._cascade
            params: dict[str, Any] = cascade.load_params(
                "state", self._config.drone_model, self._rate
            )
            if "gravity_vec" in params:
                params |= {"gravity_vec": np.array([0.0, 0.0, -self._rules.gravity])}
            if self._config.true_mass:
                weight: Any = np.array([self._rules.weight])
                params = cascade.true_to_mass(params, weight)
            self._params = {name: np.asarray(value, float) for name, value in params.items()}
        return self._params
