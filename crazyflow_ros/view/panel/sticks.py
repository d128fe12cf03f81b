"""Keys and gamepads of all tabs, and the commands that they and clicks send to one drone."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.qos import QoSProfile

from crazyflow_ros.ros.messages import STEADY, heading, point
from crazyflow_ros.view.access import is_number
from crazyflow_ros.view.follower import Follower

KEYS = (
    ("W S", "ahead, back"),
    ("A D", "left, right"),
    ("R F", "up, down"),
    ("Q E", "turn left, right"),
    ("space", "take off or land"),
)
"""What the keys do, as text for the user."""

_AXES = {
    "KeyW": (0, 1),
    "KeyS": (0, -1),
    "KeyA": (1, 1),
    "KeyD": (1, -1),
    "KeyR": (2, 1),
    "KeyF": (2, -1),
    "KeyQ": (3, 1),
    "KeyE": (3, -1),
}
_PERIOD = 0.05  # s of wall time between two velocities
_COMMAND = QoSProfile(depth=1)
_SWITCH = "Space"
_STALE = 0.5  # s of wall time without a message, after which a tab has let go
_MOST = 1.1  # of an axis; badly calibrated gamepads exceed 1
_CLIMB = 0.5  # of the horizontal speed
_TURN = 1.5  # rad/s

Directions = tuple[float, float, float, float]
"""Ahead, left, up and counter-clockwise, each from -1 to 1."""


@dataclass(frozen=True)
class StickVelocity:
    """The velocity that the sticks command, in the heading frame."""

    x: float
    """Ahead [m/s]."""
    y: float
    """To the left [m/s]."""
    z: float
    """Up [m/s]."""
    turn: float
    """Counter-clockwise [rad/s]."""


@dataclass
class _Tab:
    directions: Directions
    switch: bool
    time: float


class Sticks:
    """Keys and sticks held in the tabs; the tab that moved last flies. All methods are thread-safe.

    Args:
        clock: Returns the wall time [s].
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tabs: dict[int, _Tab] = {}
        self._switched = self._was_active = False
        self._lock = threading.Lock()

    def take(self, tab: int, content: Any) -> None:
        """Process a message of a tab, or None when the tab closes; ignore invalid messages."""
        if content is None:
            with self._lock:
                self._tabs.pop(tab, None)
            return
        try:
            directions, switch = _read(content)
        except ValueError:
            return
        with self._lock:
            before = self._tabs.pop(tab, None)  # so that the latest tab comes last
            self._switched |= switch and not (before and before.switch)
            self._tabs[tab] = _Tab(directions, switch, self._clock())

    def velocity(self, speed: float) -> StickVelocity | None:
        """Return the commanded velocity; None if no user flies the drone.

        It is zero once after all users have let go.

        Args:
            speed: Horizontal speed at full stick [m/s].
        """
        oldest = self._clock() - _STALE
        with self._lock:
            held = [tab for tab in self._tabs.values() if any(tab.directions)]
            active = [tab.directions for tab in held if tab.time > oldest]
            was_active, self._was_active = self._was_active, bool(active)
        if not active and not was_active:
            return None
        ahead, left, up, turn = active[-1] if active else (0.0, 0.0, 0.0, 0.0)
        across = speed / max(math.hypot(ahead, left), 1.0)
        return StickVelocity(across * ahead, across * left, _CLIMB * speed * up, _TURN * turn)

    @property
    def is_held(self) -> bool:
        """Whether a user holds a key or a stick."""
        oldest = self._clock() - _STALE
        with self._lock:
            return any(any(tab.directions) and tab.time > oldest for tab in self._tabs.values())

    def switched(self) -> bool:
        """Return whether the key for take-off and landing was pressed since the last call."""
        with self._lock:
            switched, self._switched = self._switched, False
            return switched


def _read(message: Any) -> tuple[Directions, bool]:
    """Return the directions of a message, and whether the switch is held.

    Raises:
        ValueError: It is not a message of the page's script.
    """
    if not isinstance(message, dict):
        raise ValueError(f"expected keys and axes, got {message!r}")
    directions = _of_axes(message.get("axes", []))
    keys = message.get("keys", [])
    if not isinstance(keys, list):
        raise ValueError(f"keys must be a list, got {keys!r}")
    for key in keys:
        if isinstance(key, str) and key in _AXES:
            axis, sign = _AXES[key]
            directions[axis] += sign
    ahead, left, up, turn = (min(max(value, -1.0), 1.0) for value in directions)
    return (ahead, left, up, turn), _SWITCH in keys


def _of_axes(axes: Any) -> list[float]:
    """Return the directions of a gamepad: height and heading left, place right (mode 2)."""
    if not isinstance(axes, list) or not all(is_number(axis, -_MOST, _MOST) for axis in axes[:4]):
        raise ValueError(f"axes must be a list of numbers from -1 to 1, got {axes!r}")
    if len(axes) < 4:
        return [0.0] * 4
    left_x, left_y, right_x, right_y = map(float, axes[:4])
    return [-right_y, -right_x, -left_y, -left_x]


class PanelPilot:
    """Publishes the commands for one drone at a time, in the thread of the node.

    Attributes:
        speed: Horizontal speed at full stick [m/s].
        uses_sticks: Whether keys and gamepads fly the drone.
    """

    def __init__(self, follower: Follower, sticks: Sticks) -> None:
        self._follower, self._sticks = follower, sticks
        self.speed, self.uses_sticks = 1.0, True
        self._drone = ""
        self._velocities: Any = None
        self._poses: Any = None
        follower.in_thread(lambda: follower.node.create_timer(_PERIOD, self._fly, clock=STEADY))

    def select(self, drone: str) -> None:
        """Command this drone from now on; none if the name is empty."""
        self._follower.in_thread(lambda: self._change(drone))

    def go_to(self, x: float, y: float, z: float, yaw: float) -> None:
        """Fly the drone to a position in the map [m] and a heading [rad], also from the floor."""
        pose = PoseStamped()
        pose.pose.position, pose.pose.orientation = point((x, y, z)), heading(yaw)
        self._follower.in_thread(lambda: self._poses is not None and self._poses.publish(pose))

    def _change(self, drone: str) -> None:
        node = self._follower.node
        for publisher in (self._velocities, self._poses):
            if publisher is not None:
                node.destroy_publisher(publisher)
        self._drone, self._velocities, self._poses = drone, None, None
        if drone:
            self._velocities = node.create_publisher(TwistStamped, f"{drone}/cmd_vel", _COMMAND)
            self._poses = node.create_publisher(PoseStamped, f"{drone}/cmd_pose", _COMMAND)

    def _fly(self) -> None:
        velocity = self._sticks.velocity(self.speed)
        if velocity is None or not self.uses_sticks or self._velocities is None:
            return
        message = TwistStamped()
        message.twist.linear.x, message.twist.linear.y = velocity.x, velocity.y
        message.twist.linear.z, message.twist.angular.z = velocity.z, velocity.turn
        self._velocities.publish(message)
