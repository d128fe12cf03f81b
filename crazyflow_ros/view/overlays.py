"""Plans and goals, thrust and wind, drawn over the scene."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import viser
from nav_msgs.msg import Path

from crazyflow_ros.drones import load_drone
from crazyflow_ros.scene.frames import body_to_world
from crazyflow_ros.view.drawing import MOST_NAMES, color_of
from crazyflow_ros.view.follower import Follower, Inbox
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.shown import Shown

_THRUST, _WIND = (240, 170, 30), (90, 200, 255)  # colours
_HOVER = 0.12  # m, length of an arrow whose thrust balances the weight
_METRES_PER_SPEED = 0.1  # m for 1 m/s of wind
_GOAL_RADIUS = 0.025  # m
_GRAVITY = 9.81
_RPM = 60 / (2 * np.pi)  # 1 rad/s
_ABOVE = np.array([0.0, 0.0, 0.25])  # m, position of the wind's arrow relative to the drone


class Overlays:
    """Draws the overlays, and subscribes to plans only while they are shown.

    Args:
        server: The page's server.
        shown: The switches, to which those of the overlays are added.
        follower: The connection to the simulator.
    """

    def __init__(self, server: viser.ViserServer, shown: Shown, follower: Follower) -> None:
        self._server, self._follower = server, follower
        self._has_plans = shown.add("Plans and goals", is_on=True)
        self._has_thrust = shown.add("Thrust", is_on=False)
        self._has_wind = shown.add("Wind", is_on=True, hint="The mean wind at the selected drone")
        self._drones: tuple[str, ...] = ()
        self._plans: Inbox | None = None
        self._drawn: dict[str, list[Any]] = {}
        self._arrows: dict[str, Any] = {}

    def show(self, frame: Frame, drone: str) -> None:
        """Draw the overlays that are switched on; the wind only at `drone`."""
        self._show_plans(frame)
        self._show_thrust(frame)
        self._show_wind(frame, drone)

    def _show_plans(self, frame: Frame) -> None:
        """Draw the planned paths of the drones, and their goals."""
        drones = frame.names[:MOST_NAMES] if self._has_plans.value else ()
        if drones != self._drones:
            self._drones = drones
            self._listen({self._follower.topic(f"{drone}/plan"): Path for drone in drones})
        if self._plans is None:
            return
        for number, topic in enumerate(self._plans.topics):
            message = self._plans.take(topic)
            if message is not None:
                self._draw_plan(topic, message, color_of(number))

    def _listen(self, topics: dict[str, Any]) -> None:
        for topic in tuple(self._drawn):
            self._erase(topic)
        if self._plans is not None:
            self._follower.hang_up(self._plans)
        self._plans = self._follower.listen(topics) if topics else None

    def _erase(self, topic: str) -> None:
        for handle in self._drawn.pop(topic, ()):
            handle.remove()

    def _draw_plan(self, topic: str, path: Path, color: tuple[int, int, int]) -> None:
        self._erase(topic)
        places = [pose.pose.position for pose in path.poses]
        points = np.array([(p.x, p.y, p.z) for p in places], np.float32)
        if len(points) < 2 or not np.isfinite(points).all():
            return
        scene, segments = self._server.scene, np.stack([points[:-1], points[1:]], axis=1)
        self._drawn[topic] = [
            scene.add_line_segments(
                f"/plans{topic}", segments[::2], color, thickness=1.5, thickness_units="screen"
            ),
            scene.add_icosphere(
                f"/goals{topic}", _GOAL_RADIUS, color, position=points[-1], opacity=0.8
            ),
        ]

    def _show_thrust(self, frame: Frame) -> None:
        """Draw an arrow along the thrust of each drone."""
        arrows = np.zeros((0, 2, 3))
        if self._has_thrust.value and (model := self._follower.parameters.get("drone_model")):
            lengths = _HOVER * _thrust(frame.rotor_speed, model) / _weight(model)
            along = np.stack([0 * lengths, 0 * lengths, lengths], axis=-1)
            ends = frame.position + body_to_world(frame.attitude, along)
            arrows = np.stack([frame.position, ends], axis=1)[lengths > 0.01]
        self._draw_arrows("thrust", arrows, _THRUST)

    def _show_wind(self, frame: Frame, drone: str) -> None:
        """Draw the mean wind over a drone."""
        wind = np.array(self._follower.parameters.get("wind") or np.zeros(3))
        arrows = np.zeros((0, 2, 3))
        if self._has_wind.value and wind.any() and drone in frame.names:
            start = frame.position[frame.names.index(drone)] + _ABOVE
            arrows = np.stack([start, start + _METRES_PER_SPEED * wind])[None]
        self._draw_arrows("wind", arrows, _WIND)

    def _draw_arrows(self, name: str, arrows: np.ndarray, color: tuple[int, int, int]) -> None:
        handle = self._arrows.get(name)
        if handle is not None and len(arrows) == len(handle.points):
            handle.points = arrows.astype(np.float32)
            return
        if handle is not None:
            self._arrows.pop(name).remove()
        if len(arrows):
            self._arrows[name] = self._server.scene.add_arrows(
                f"/{name}", arrows, color, shaft_radius=0.004, head_radius=0.01, head_length=0.02
            )


def _thrust(rotor_speed: np.ndarray, model: str) -> np.ndarray:
    """Return the thrust of all rotors (M,) [N] at speeds (M, 4) [rad/s]."""
    return np.polynomial.Polynomial(_figures(model)["rpm2thrust"])(rotor_speed * _RPM).sum(axis=-1)


def _weight(model: str) -> float:
    return float(_figures(model)["mass"]) * _GRAVITY


@cache
def _figures(model: str) -> dict[str, Any]:
    return dict(load_drone(model))
