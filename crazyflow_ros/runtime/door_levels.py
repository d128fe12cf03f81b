"""Commands of a door at their levels, as its drones can follow them, also where these stand."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.control import Controller
from crazyflow_ros.drones import load_drone
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.levels import Level, resolve
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.flight.tumbling import SLOW, TOUCHES
from crazyflow_ros.runtime.door import DoorGuard
from crazyflow_ros.runtime.door_goals import DoorGoals
from crazyflow_ros.runtime.drone_commands import DroneCommands
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.scene import frames
from crazyflow_ros.scene.drone_mjcf import max_rotor_speed

_CLIMB_NS = 300_000_000  # after standing, in which a drone keeps its heading
_NEVER = -_CLIMB_NS
_TURNING = {Level.attitude, Level.body_rate, Level.acceleration, Level.goal}
_LOOKS = 10  # in a second, for saturated motors
_SATURATED = 0.99  # of the highest speed of a rotor
_LONG_NS = 2_000_000_000  # for which motors are saturated before the log says so


class DoorLevels:
    """Converts commands to those that the controllers follow.

    What a drone stands on blocks its turns. With `PowerDistribution.capped`, a controller that asks
    for a turn nevertheless gives up the thrust that would end the block, and winds up. The firmware
    restarts its controllers while there is no thrust, and its take-off keeps the heading that the
    drone has. So does this: commanded tilts and rates apply once a drone has left what it stood on,
    those in yaw once it has climbed for a moment.

    Args:
        config: Configuration of the simulation.
        door: The door.
        commands: Has the rules of the present world.
        health: Logs what happens.
    """

    def __init__(
        self, config: SimulationConfig, door: DoorGuard, commands: DroneCommands, health: Health
    ) -> None:
        figures = load_drone(config.drone_model)
        self._mass, self._commands, self._warn = figures["mass"], commands, health.warn
        self._door, n_drones = door, len(door.drones)
        self._goals = DoorGoals(config, config.freq // door.period, n_drones, commands, health)
        # As in the firmware, it takes roll and pitch about the present heading.
        self._tilts_ahead = config.controller == Controller.pid
        self._look_period = max(1, config.freq // (_LOOKS * door.period)) * door.period
        self._fast = _SATURATED * max_rotor_speed(figures)
        self._stood = np.full(n_drones, _NEVER)  # when each drone last stood [ns]
        self._last = _NEVER  # when one did
        self._heading = np.zeros(n_drones)  # then [rad]
        self._began = np.zeros(n_drones, int)  # of saturation while standing [ns]; 0: none
        self._told = np.zeros(n_drones, bool)

    def resolve(self, now: Snapshot, command: np.ndarray, level: np.ndarray) -> None:
        """Convert commands to rotor speeds, attitudes or body rates, in place.

        Args:
            now: State of all drones.
            command: (M, 4 or more) numbers, see `Level`.
            level: (M,) levels.
        """
        kinds, looks = set(level.tolist()), now.tick % self._look_period == 0
        if Level.goal in kinds or self._goals.flown:
            self._goals.resolve(now, self._door.rows(now.names), command, level)
        if Level.held in kinds:
            self._stood[level == Level.held] = _NEVER
        if not (turns := kinds & _TURNING) and not looks:
            return
        now, time_ns, gravity = self._door.own(now), now.time_ns, self._commands.rules.gravity
        stands = now.contact[:, 2] > TOUCHES * self._mass * gravity
        if is_down := bool(stands.any()):
            stands &= np.abs(now.vel[:, 2]) < SLOW
            known = frames.rpy(now.known.quat)
            self._stood[stands], self._heading[stands] = time_ns, known[stands, 2]
            self._last = time_ns
        if turns and 0 <= time_ns - self._last < _CLIMB_NS:
            climbs = (self._stood > time_ns - _CLIMB_NS) & (self._stood <= time_ns)
            for kind, yaw in ((Level.attitude, 2), (Level.acceleration, 3)):
                command[climbs & (level == kind), yaw] = self._heading[climbs & (level == kind)]
            command[climbs & (level == Level.body_rate), 2] = 0.0
        if Level.acceleration in kinds:
            ahead = frames.yaw(now.known.quat) if self._tilts_ahead else None
            resolve(command, level, now.known.quat, self._mass, gravity, ahead)
        if turns and is_down:
            lies = stands & (level == Level.attitude)
            command[lies, :2] = known[lies, :2]
            command[stands & (level == Level.body_rate), :2] = 0.0
        if looks:
            self._look(now, stands & (now.rotor_vel.max(axis=1) > self._fast))

    def _look(self, now: Snapshot, saturated: np.ndarray) -> None:
        """Warn once of each drone that stands with saturated motors."""
        self._told &= saturated
        self._began[~saturated | (self._began > now.time_ns)] = 0
        self._began[saturated & (self._began == 0)] = now.time_ns
        late = saturated & ~self._told & (now.time_ns - self._began > _LONG_NS)
        for i in np.flatnonzero(late).tolist():
            self._told[i] = True
            self._warn(
                f"{now.names[i]} stands with saturated motors: it is too heavy, lies on its back, "
                "or something holds it"
            )
