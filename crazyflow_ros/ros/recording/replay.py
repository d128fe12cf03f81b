"""Replay of a recorded flight from its parameters and commands, with a comparison of all states.

    ros2 run crazyflow_ros replay flight.mcap

On the same machine all states are equal bit for bit.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState

from crazyflow_ros.checks.limits import shown, unknown
from crazyflow_ros.checks.mcap_file import in_bag
from crazyflow_ros.checks.plain_values import ParameterError, from_values, values_of
from crazyflow_ros.checks.program_end import in_words
from crazyflow_ros.engine.disturbances import to_disturbance
from crazyflow_ros.flight import FirmwareSetpoint, Setpoint
from crazyflow_ros.flight.setpoint_values import to_setpoint
from crazyflow_ros.ros.commands.setpoint_messages import commands
from crazyflow_ros.ros.extensions import configured, from_all_values
from crazyflow_ros.ros.messages.geometry import xyz, xyzw
from crazyflow_ros.ros.messages.serialisation import deserialised
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.recording.recorded_effects import CHANGES, STATE, WRENCH, change_of
from crazyflow_ros.ros.recording.recorded_messages import (
    Head,
    ReplayError,
    is_complete,
    recorded_messages,
)
from crazyflow_ros.ros.recording.recorded_scenes import ReplayedWorld
from crazyflow_ros.runtime import Checkpoint, PhysicsThread, ResetScope, TimedWrench
from crazyflow_ros.runtime.overseers import RecordedOverseers
from crazyflow_ros.scene import MirrorState
from crazyflow_ros.scene.bodies import Bodies
from crazyflow_ros.xla.start_up import StartUp

_TIMEOUT = 600.0  # s of wall time for one step
_GAP = 60  # s that are flown at once
_REASON = 300  # characters
_PART_OF = dict.fromkeys(
    ("halt", "tune", "untune", "tune_flow", "restart_estimate", "set_beacons", "tell_pose", "lead"),
    "firmware",
) | {
    "set_controller": "world",
    "attach": "world",
    "detach": "world",
    "capture_initial_state": "state",
    "command_joints": "robots",
}
"""The part of the physics thread that has a method, for each `Setting`."""
_FROM_ODOMETRY = ("pos", "quat", "body_vel", "ang_vel")
_FROM_JOINTS = ("rotor_angle", "rotor_vel")


@dataclass
class Report:
    """Result of a replay."""

    ticks: int = 0
    """Last tick."""
    commands: int = 0
    """Number of commands."""
    states: int = 0
    """Number of compared states, one per drone and tick."""
    difference: str = ""
    """The first difference, or an empty string."""


def replay(path: Path, info: Callable[[str], object] = lambda _: None) -> Report:
    """Replay a recording until its end or the first difference.

    Args:
        path: The file.
        info: Receives a message before something that takes long.

    Raises:
        ReplayError: The file is not a recording of this simulator, or lacks its commands.
        OSError: A file cannot be read.
        ValueError: It is not a regular file.
    """
    files = [in_bag(path)]
    messages = recorded_messages(files)
    head = next(messages, None)
    if not isinstance(head, Head) or not isinstance(head.parameters, dict):
        raise ReplayError("not a recording of this simulator: it has no parameters")
    flight = _Flight(head, StartUp.of_cache(info), info)
    try:
        for topic, time_ns, payload in messages:
            try:
                flight.take(topic, time_ns, payload)
            except Exception as error:  # a damaged message may contain anything
                place = f"{shown(topic)} at {time_ns * 1e-9:.3f} s"
                reason = str(error)[:_REASON] or type(error).__name__
                text = f"a recorded message cannot be replayed: {place}: {reason}"
                raise ReplayError(text) from error
            if flight.report.difference:
                break
        else:
            flight.compare(ends_early=not is_complete(files[-1]))
    finally:
        flight.close()
    return flight.report


class _Flight:
    """A simulation that takes up recorded messages, and compares its states with theirs.

    Args:
        head: What the recording says of itself. Parameters that it lacks get default values.
        start_up: What is compiled.
        info: Receives a message before something that takes long.
    """

    def __init__(self, head: Head, start_up: StartUp, info: Callable[[str], object]) -> None:
        defaults, self._writer = values_of(Parameters()), head.writer
        if lacking := ", ".join(sorted(defaults.keys() - head.parameters.keys())):
            info(f"the recording lacks parameters, which get their default values: {lacking}")
        values = defaults | head.parameters | {"checkpoint": ""}  # once a path
        try:
            parameters, extensions = from_all_values(values)
        except ParameterError as error:
            by = self._writer and f"{self._writer}; "
            raise ReplayError(f"{by}recorded with different parameters: {error}") from None
        if parameters.flown_by:
            raise ReplayError(f"the commands of {parameters.flown_by} are not recorded")
        paused = {"start_paused": True, "real_time_factor": 0.0}
        parameters = from_values(Parameters, values_of(parameters) | paused)
        try:
            config = configured(parameters.simulation_config(), parameters, extensions)
            with start_up.compiling(*parameters.compiled_for(config)):
                self.physics = PhysicsThread(config, parameters.drones)
            # The grouping of ticks affects the integration of rotor angles.
            rates = {config.freq // period for period in head.periods}
            for rate in sorted({*values_of(parameters.publish_rates).values(), *rates} - {0}):
                self.physics.every(rate, lambda _: None, "a recorded rate", observes=True)
        except ValueError as error:
            text = f"recorded with a setup that is not available here: {error}"
            raise ReplayError(text) from None
        if config.setpoint_modes:
            self.physics.simulation.hand_over(RecordedOverseers())
        self.physics.start()
        self._world = ReplayedWorld(self.physics, _TIMEOUT)
        self.report, self._info = Report(), info
        self._commands = commands(self.physics.control, parameters.drone_model)
        self._recorded: dict[tuple[str, str], np.ndarray] = {}
        self._tick = self.physics.snapshot.tick

    def close(self) -> None:
        """End the simulation."""
        self.physics.stop()
        self._world.close()

    def take(self, topic: str, time_ns: int, payload: bytes) -> None:
        """Apply a message at its tick, or keep it for the comparison."""
        *_, drone, name = topic.split("/")
        is_change = topic.endswith(CHANGES.removeprefix("~"))
        if not is_change and name not in (*self._commands, WRENCH, "odom", "joint_states"):
            return  # other topics come from other threads, and time may have jumped
        tick = -(-time_ns * self.physics.freq // 1_000_000_000)
        if tick != self._tick:
            self._tick = tick
            self.compare()
            self._go_on(tick)
        if is_change:
            self._change(change_of(payload))
        elif drone in self.physics.snapshot.names:
            self._take_of(drone, name, payload)

    def _go_on(self, tick: int) -> None:
        """Resume time, unless the next message is the one that made it jump back."""
        now, freq = self.physics.snapshot.tick, self.physics.freq
        if tick - now > _GAP * freq:
            self._info(f"nothing is recorded from {now / freq:.0f} s to {tick / freq:.0f} s")
        while now < tick:  # to whole seconds, to which all periods add up
            now = min(tick, (now // freq + _GAP) * freq)
            self.physics.step(now - self.physics.snapshot.tick).result(_TIMEOUT)

    def _command(self, drone: str, setpoint: Setpoint) -> None:
        if isinstance(setpoint, FirmwareSetpoint) and not self.physics.config.setpoint_modes:
            told = "setpoints of crazyflie_server are replayed only with crazyflie.gentle:=true"
            raise ReplayError(told)
        # Applied at once, so that neither of two commands of the same tick is dropped.
        self.physics.fly({drone: setpoint}).result(_TIMEOUT)
        self.report.commands += 1

    def _take_of(self, drone: str, name: str, payload: bytes) -> None:
        if name in self._commands:
            command = self._commands[name]
            self._command(drone, command.convert(deserialised(payload, command.type), drone))
        elif name == WRENCH:
            message = deserialised(payload, WrenchStamped).wrench
            wrench = TimedWrench(xyz(message.force), xyz(message.torque), math.inf)
            key = ("replay", drone)
            if np.any(wrench.force) or np.any(wrench.torque):
                self.physics.apply_wrench(drone, wrench, key)
            else:
                self.physics.end_wrench(key)
        elif name == "odom":
            odometry = deserialised(payload, Odometry)
            pose, twist = odometry.pose.pose, odometry.twist.twist
            values = xyz(pose.position), xyzw(pose.orientation), xyz(twist.linear)
            for field, value in zip(_FROM_ODOMETRY, (*values, xyz(twist.angular))):
                self._recorded[drone, field] = value
        else:
            joints = deserialised(payload, JointState)
            for field, value in zip(_FROM_JOINTS, (joints.position, joints.velocity)):
                self._recorded[drone, field] = np.array(value)

    def compare(self, *, ends_early: bool = False) -> None:
        """Compare the state with the latest recorded state of this tick.

        Args:
            ends_early: The recording was cut off here: the change between the two may be missing.
        """
        if ends_early:
            self._settle()
            self._recorded.clear()
        for (drone, field), expected in self._recorded.items():
            found = self._found(drone, field)
            if not np.array_equal(found, expected) and not self.report.difference:
                where = f"tick {self.physics.snapshot.tick}, {field} of {drone}"
                difference = f"{where}: {expected.tolist()} became {found.tolist()}"
                self.report.difference = difference + (self._writer and f"; {self._writer}")
        self.report.states += len({drone for drone, _ in self._recorded})
        self.report.ticks = self.physics.snapshot.tick
        self._recorded.clear()

    def _settle(self) -> None:
        """Discard recorded states that equal the present one, before a change: none need follow."""
        differ = {
            drone
            for (drone, field), expected in self._recorded.items()
            if not np.array_equal(self._found(drone, field), expected)
        }
        self.report.states += len({drone for drone, _ in self._recorded} - differ)
        self._recorded = {k: values for k, values in self._recorded.items() if k[0] in differ}

    def _found(self, drone: str, field: str) -> np.ndarray:
        snapshot = self.physics.snapshot
        return np.asarray(getattr(snapshot, field)[snapshot.names.index(drone)])

    def _change(self, change: dict[str, Any]) -> None:
        if "command" in change:
            self._command(change["command"]["drone"], to_setpoint(change["command"]["setpoint"]))
            return
        if "request" in change:
            self._request(change["request"], change["arguments"])
            return
        if "pushed" in change:
            self._world.push(change["pushed"])
            return
        if "checkpoint" in change:
            self.compare()
            checkpoint = Checkpoint.load(BytesIO(b64decode(change["checkpoint"])))
            self._tick = self.physics.state.restore(checkpoint).result(_TIMEOUT).tick
            return
        self._settle()
        names = tuple(change["names"])
        state = {field: np.array(change["state"][field]) for field in STATE}
        if change.get("charged") is not None:
            (name,) = change["drones"]
            self.physics.firmware.restart(name, charged=change["charged"]).result(_TIMEOUT)
        elif "reset" in change:
            scope = ResetScope(0)
            for part in change["reset"]:
                scope |= ResetScope[part]
            self.physics.state.reset(scope, change["drones"]).result(_TIMEOUT)
        else:
            self._change_drones(names, np.hstack((state["pos"], state["quat"])))
        if names != (here := self.physics.snapshot.names):
            raise ValueError(f"drones are {', '.join(here)}, not {', '.join(names)}")
        self._world.change(change)
        if "disturbance" in change:
            disturbance = to_disturbance(change["disturbance"])
            self.physics.world.disturb(disturbance).result(_TIMEOUT)
        # What is left of the states recorded before the change is that of after it.
        self._recorded = {k: values for k, values in self._recorded.items() if k[0] in names}
        now = self.physics.snapshot
        bodies, same = self._bodies(now.bodies, change.get("bodies"))
        if same and all(np.array_equal(getattr(now, k), value) for k, value in state.items()):
            return
        zeros = np.zeros((len(names), 3))
        moved = MirrorState(time_ns=0, acc=zeros, ang_acc=zeros, bodies=bodies, **state)
        self.physics.state.edit_state(lambda: lambda _: moved).result(_TIMEOUT)

    @staticmethod
    def _bodies(now: Bodies | None, kept: dict[str, Any] | None) -> tuple[Bodies | None, bool]:
        """Return the recorded state of the bodies that move, and whether it is the present one.

        Raises:
            ValueError: They are not those of this world.
        """
        if (now and now.signature) != (kept and kept["signature"]):
            raise ValueError("it has other objects that move than this world")
        if now is None or kept is None:
            return None, True
        state = np.array(kept["state"])
        if state.shape != now.state.shape:
            raise ValueError(f"a state of bodies has {now.state.size} numbers, got {state.size}")
        return replace(now, state=state), np.array_equal(state, now.state)

    def _request(self, name: str, arguments: dict[str, Any]) -> None:
        if name not in _PART_OF:
            raise ValueError(unknown("request", name, _PART_OF))
        part = getattr(self.physics, _PART_OF[name])
        getattr(part, name)(**arguments).result(_TIMEOUT)

    def _change_drones(self, names: tuple[str, ...], poses: np.ndarray) -> None:
        world, before = self.physics.world, self.physics.snapshot.names
        for name in set(before).difference(names):
            world.despawn(name).result(_TIMEOUT)
        for name, pose in zip(names, poses):
            if name not in before:
                world.spawn(name, pose).result(_TIMEOUT)


def main() -> None:
    """Replay the given file; exit with 1 if states differ, 2 if it cannot be replayed."""
    try:
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def run(words: Sequence[str], program: str = "replay") -> int:
    """Replay a file, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog=program, description="Replay a recorded flight and compare all states."
    )
    parser.add_argument("file", type=Path, help="MCAP file written with the parameter record")
    path = parser.parse_args(words).file
    from crazyflow_ros.xla.compiled_files import open_cache

    def say(text: str) -> None:
        print(f"replay: {text}", file=sys.stderr, flush=True)

    cache = open_cache(say)
    try:
        report = replay(path, say)
    except (ReplayError, OSError, ValueError) as error:
        say(f"{path}: {error}" if isinstance(error, ReplayError) else in_words(error))
        return 2
    cache.close()
    print(f"{report.ticks} ticks, {report.commands} commands, {report.states} states compared")
    if report.difference:
        print(report.difference)
        return 1
    print("bit for bit the same" if report.states else "no states to compare")
    return 0


if __name__ == "__main__":
    main()
