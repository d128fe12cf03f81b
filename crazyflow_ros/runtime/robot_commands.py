"""Commands of the robots in the world: of joints that have actuators."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future

import mujoco
import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.engine.robot_joints import N_NUMBERS, RobotJoints
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.runtime.news import Setting
from crazyflow_ros.runtime.requests import Requests
from crazyflow_ros.runtime.simulation import Simulation
from crazyflow_ros.scene.robot_parts import LARGEST, Joint, Mode, joints_of

_UNITS = ("rad or m", "rad/s or m/s", "N m or N")


class RobotCommands:
    """Sets the controls of actuators by the joints that they move. Any thread may ask.

    Args:
        simulation: The simulation.
        requests: The queue of requests.
    """

    def __init__(self, simulation: Simulation, requests: Requests) -> None:
        self._simulation, self._requests = simulation, requests
        self._joints: tuple[mujoco.MjModel | None, dict[str, Joint]] = None, {}

    def command_joints(
        self,
        position: Mapping[str, float] | None = None,
        velocity: Mapping[str, float] | None = None,
        effort: Mapping[str, float] | None = None,
    ) -> Future[Snapshot]:
        """Command joints from the next tick on, until the next command or a reset.

        Args:
            position: Positions [rad or m] by the joints' names.
            velocity: Velocities [rad/s or m/s].
            effort: Torques or forces [N m or N].

        Raises:
            ValueError: There is no such joint with an actuator of that kind, or a value is too
                large; nothing changes.
        """
        joints = self._known()
        modes, values = np.zeros(len(joints), int), np.zeros((len(joints), N_NUMBERS))
        wanted = {Mode.position: position, Mode.velocity: velocity, Mode.effort: effort}
        given = {mode: dict(commands) for mode, commands in wanted.items() if commands}
        for mode, commands in given.items():
            for name, value in commands.items():
                row, place = _row(joints, name, mode), mode.bit_length() - 1
                modes[row] |= mode
                limit = limits.Limit(LARGEST[place], _UNITS[place])
                values[row, place] = limits.number(f"{mode.name} of {name}", value, limit)
        arguments = {str(mode.name): commands for mode, commands in given.items()}

        def carry_out() -> Snapshot:
            bodies = self._simulation.engine.bodies
            if bodies is not None:
                RobotJoints(bodies, list(joints), ()).command(modes, values)
            self._simulation.news.on_setting.tell(Setting("command_joints", arguments))
            return self._simulation.snapshot

        return self._requests.ask(carry_out)

    def _known(self) -> dict[str, Joint]:
        """Return the joints with actuators of the present world by name."""
        model = self._simulation.mirror.model
        of, joints = self._joints
        if model is not of:
            joints = {joint.name: joint for joint in joints_of(model) if joint.actuators}
            self._joints = model, joints  # one assignment, as several threads call this
        return joints


def _row(joints: Mapping[str, Joint], name: str, mode: Mode) -> int:
    """Return the number of a joint that has an actuator for a mode."""
    if name not in joints:
        raise ValueError(limits.unknown("joint with an actuator", name, joints))
    if mode not in (has := joints[name].modes):
        expected = " and ".join(str(one.name) for one in Mode if one in has)
        raise ValueError(f"the actuators of {name} take {expected}, got {mode.name}")
    return list(joints).index(name)
