"""The simulated time for Foxglove, and its controls: play, pause and speed."""

from __future__ import annotations

import math
import time

from diagnostic_msgs.msg import DiagnosticArray
from foxglove.websocket import (
    PlaybackCommand,
    PlaybackControlRequest,
    PlaybackState,
    PlaybackStatus,
)
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from std_srvs.srv import SetBool

from crazyflow_ros.ros.messages import nanoseconds
from crazyflow_ros.view.foxglove.bridge import Bridge
from crazyflow_ros.view.foxglove.parameter_cache import ParameterCache
from crazyflow_ros.view.foxglove.services import Services

TIME_RANGE = 0, 24 * 3600 * 1_000_000_000
"""Times that Foxglove shows as the length of the simulation [ns], which has no end."""

_LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
_PERIOD = 1 / 60  # s of wall time between two time messages
_UNLIMITED = 1e6  # shown for a factor of 0 (as fast as possible); 0 would look paused
_SAME = 1e-3  # relative difference of equal speeds; clients send seven digits


class Playback:
    """Time, and the state of the simulation."""

    def __init__(
        self, bridge: Bridge, services: Services, parameters: ParameterCache, simulator: str
    ) -> None:
        self._bridge, self._simulator = bridge, simulator
        self._services, self._parameters = services, parameters
        self._paused, self._speed = False, 1.0
        self._sent, self._newest = 0.0, 0
        bridge.node.create_subscription(Clock, "/clock", self._note_time, _LATEST)
        status = f"{simulator}/status"
        bridge.node.create_subscription(DiagnosticArray, status, self._note_status, 1)

    def _note_time(self, message: Clock) -> None:
        now, before = nanoseconds(message.clock), self._bridge.time_ns
        self._bridge.time_ns = now
        if before is None or now < before:
            # Clients discard what they show: time went back because the simulator restarted.
            self._bridge.server.clear_session()
            self._parameters.forget()
        elif time.monotonic() - self._sent < _PERIOD:
            return
        self._sent = time.monotonic()
        self._bridge.server.broadcast_time(now)

    def _note_status(self, message: DiagnosticArray) -> None:
        if not message.status:
            return
        values = {pair.key: pair.value for pair in message.status[0].values}
        speed = float(values.get("requested_factor", 1.0)) or _UNLIMITED
        paused = values.get("paused") == "true"
        if (paused, speed) != (self._paused, self._speed):
            self._paused, self._speed = paused, speed
            self._bridge.server.broadcast_playback_state(self._state())

    def greet(self, client: int) -> None:
        """Send the state if the client is new, to all clients; older ones have lower numbers."""
        if client > self._newest:
            self._newest = client
            self._bridge.server.broadcast_playback_state(self._state())

    def take(self, request: PlaybackControlRequest) -> PlaybackState:
        """Pause, resume or change the speed, from a thread of the server; return the new state."""
        try:
            if request.seek_time is not None:
                self._bridge.complain("a simulation cannot go to another time; ~/reset starts anew")
            speed = float(f"{request.playback_speed:.7g}")  # from a float32
            if not 0 < speed < math.inf:
                raise ValueError(f"expected a speed above 0, got {speed}")
            if abs(speed - self._speed) > _SAME * self._speed:
                self._parameters.set_one("real_time_factor", speed)
                self._speed = speed
            self._pause(request.playback_command == PlaybackCommand.Pause)
        except (ValueError, TimeoutError) as error:
            self._bridge.complain(f"playback: {error}")
        return self._state()

    def _pause(self, paused: bool) -> None:
        request = SetBool.Request(data=paused)
        answer = self._services.call(f"{self._simulator}/pause", SetBool, request)
        if not answer.success:
            raise ValueError(answer.message)
        self._paused = paused

    def _state(self) -> PlaybackState:
        status = PlaybackStatus.Paused if self._paused else PlaybackStatus.Playing
        return PlaybackState(status, self._bridge.time_ns or 0, self._speed, False, None)
