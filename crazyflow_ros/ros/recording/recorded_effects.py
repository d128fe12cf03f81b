"""Recording of everything that affects the simulation: commands, forces, settings, changes.

Together with the parameters this determines a flight completely, see `replay`.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import QoSProfile
from std_msgs.msg import String

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.checks.plain_values import plain
from crazyflow_ros.engine.disturbances import from_disturbance
from crazyflow_ros.flight import Setpoint
from crazyflow_ros.flight.setpoint_values import from_setpoint
from crazyflow_ros.ros.messages.cdr import XYZ
from crazyflow_ros.ros.messages.frame_ids import MAP
from crazyflow_ros.ros.messages.serialisation import deserialised, serialised
from crazyflow_ros.ros.messages.times import NS
from crazyflow_ros.ros.recording.episode_file import Channel
from crazyflow_ros.ros.recording.recorded_scenes import RecordedScenes
from crazyflow_ros.ros.recording.recorder import Recorder
from crazyflow_ros.runtime import (
    Checkpoint,
    Disturbance,
    PhysicsThread,
    ResetEvent,
    ResetScope,
    Setting,
    Snapshot,
)

WRENCH, CHANGES = "external_wrench", "~/changes"
"""Topics that exist only in the file: `<drone>/external_wrench`, and one of the node."""

STATE = ("pos", "quat", "vel", "ang_vel", "rotor_angle", "rotor_vel")
"""Fields of `MirrorState` in a change."""

_MOST_VALUES = 2_000_000  # in a change; 10,000 drones have 200,000
_QOS = QoSProfile(depth=1)
_MAX_POSTED = 16  # pending commands of a drone; only the latest takes effect


class RecordedEffects:
    """Recorder of commands and changes when they take effect, in the physics thread.

    Args:
        recorder: The recorder; from now on it uses simulation time.
        physics: The simulation, not yet started.
        full_name: Returns the full name of a topic.
    """

    def __init__(
        self, recorder: Recorder, physics: PhysicsThread, full_name: Callable[[str], str]
    ) -> None:
        self._recorder, self._physics, self._full_name = recorder, physics, full_name
        self._channels: dict[str, Channel] = {}
        self._pending: dict[str, deque[tuple[Setpoint, str, Any]]] = {}
        self._acting: dict[str, np.ndarray] = {}
        self._pushed: dict[str, list[float]] = {}
        self._scenes = RecordedScenes(physics.world.scene)
        self._obstacles: dict[str, Any] | None = None
        recorder.time_ns = lambda: physics.snapshot.time_ns
        physics.news.on_command(self._note_command)
        physics.news.on_wrench(self._note_wrenches)
        physics.news.on_body_wrench(self._note_body_wrenches)
        self._reset: ResetEvent | None = None
        self._epoch = 0
        physics.news.on_change(self._note_change)
        physics.news.on_reset(self._note_reset)
        physics.news.on_restore(self._note_restore)
        self._disturbance: Disturbance | None = None
        physics.news.on_disturbance(self._note_disturbance)
        physics.news.on_setting(self._note_setting)

    def record_command(self, drone: str, topic: str, message: Any, setpoint: Setpoint) -> None:
        """Record a message when its setpoint takes effect; call it before the setpoint is posted.

        Args:
            drone: Name of the drone.
            topic: Name of the topic, below that of the drone.
            message: The message.
            setpoint: What the drone is commanded.
        """
        pending = self._pending.setdefault(drone, deque(maxlen=_MAX_POSTED))
        pending.append((setpoint, f"{drone}/{topic}", message))

    def _note_command(self, name: str, setpoint: Setpoint, _tick: int) -> None:
        """Record the message of a command, or a change if the command came from a service."""
        pending = self._pending.get(name, deque())
        if not any(posted is setpoint for posted, _, _ in list(pending)):
            command = {"drone": name, "setpoint": from_setpoint(setpoint)}
            self._put_change({"command": command})
            return
        while pending:
            posted, topic, message = pending.popleft()
            if posted is setpoint:  # otherwise a later command replaced it before the next tick
                self._put(topic, message)
                return

    def _note_wrenches(self, now: Snapshot, wrenches: np.ndarray) -> None:
        for name, wrench in zip(now.names, wrenches):
            if not np.array_equal(wrench, self._acting.get(name, np.zeros(6))):
                self._note_wrench(now, name, wrench)

    def _note_wrench(self, now: Snapshot, name: str, wrench: np.ndarray) -> None:
        self._put(f"{name}/{WRENCH}", _message(now, wrench))
        self._acting[name] = wrench

    def _note_body_wrenches(self, _now: Snapshot, wrenches: Mapping[str, np.ndarray]) -> None:
        pushed = {name: wrench.tolist() for name, wrench in wrenches.items()}
        if pushed != self._pushed:
            self._pushed = pushed
            self._put_change({"pushed": pushed})

    def _note_reset(self, event: ResetEvent) -> None:
        if ResetScope.state in event.scope:
            for name in event.drones:
                if self._acting.get(name, np.zeros(6)).any():
                    self._note_wrench(event.snapshot, name, np.zeros(6))
            if event.snapshot.epoch != self._epoch:  # of all, which ends forces on bodies, too
                self._pushed = {}
        self._reset = event  # recorded with the next state

    def _note_disturbance(self, disturbance: Disturbance) -> None:
        self._disturbance = disturbance  # recorded with the next state

    def _note_setting(self, setting: Setting) -> None:
        self._put_change({"request": setting.request, "arguments": plain(setting.arguments)})

    def _note_change(self, now: Snapshot) -> None:
        change: dict[str, Any] = {"names": now.names}
        if self._reset is not None:
            change["reset"] = [part.name for part in self._reset.scope]
            change["drones"] = self._reset.drones if now.epoch == self._epoch else None
            change["charged"] = self._reset.charged
        if self._disturbance is not None:
            change["disturbance"] = from_disturbance(self._disturbance)
        change["state"] = {field: getattr(now, field).tolist() for field in STATE}
        if now.bodies is not None:
            change["bodies"] = {
                "signature": now.bodies.signature,
                "state": now.bodies.state.tolist(),
            }
        if scene := self._scenes.change(self._physics.world.scene):
            change["scene"] = scene
        obstacles = self._physics.world.obstacles
        values = None if obstacles is None else plain(vars(obstacles))
        if values != self._obstacles:
            self._obstacles = change["obstacles"] = values
        self._put_change(change)
        self._reset, self._disturbance, self._epoch = None, None, now.epoch
        for name in self._acting.keys() - set(now.names):
            del self._acting[name]

    def _note_restore(self, checkpoint: Checkpoint) -> None:
        # Recorded before any message with the restored time. Forces follow with the next tick.
        content = Checkpoint(checkpoint.arrays, {**checkpoint.about, "wrenches": []}).to_bytes()
        self._put_change({"checkpoint": b64encode(content).decode()})
        self._recorder.expect_jump(checkpoint.about["tick"] * NS // self._physics.freq)
        self._acting.clear()
        self._pushed = {}

    def _put_change(self, change: dict[str, Any]) -> None:
        self._put(CHANGES, String(data=json.dumps(change)))

    def _put(self, topic: str, message: Any) -> None:
        if topic not in self._channels:
            self._channels[topic] = Channel(self._full_name(topic), type(message), _QOS)
        self._recorder.put(self._channels[topic], serialised(message))


def change_of(payload: bytes) -> dict[str, Any]:
    """Return the change that a message of `CHANGES` in a file describes.

    Raises:
        ValueError: It describes none, or is too large.
    """
    text = deserialised(payload, String).data
    if (n := sum(map(text.count, ",[{"))) > _MOST_VALUES:
        raise ValueError(f"a change of {n} values, expected at most {_MOST_VALUES}")
    try:
        change = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"a change is nested too deeply: {error}") from None
    if not isinstance(change, dict):
        raise ValueError(f"a change must be a dictionary, got {shown(change)}")
    return change


def _message(now: Snapshot, wrench: np.ndarray) -> WrenchStamped:
    message = WrenchStamped()
    message.header.frame_id = MAP
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(now.time_ns, NS)
    for field, values in (("force", wrench[:3]), ("torque", wrench[3:])):
        for axis, value in zip(XYZ, values.tolist()):
            setattr(getattr(message.wrench, field), axis, value)
    return message
