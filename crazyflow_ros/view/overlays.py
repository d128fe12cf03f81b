"""Plans and goals, thrust and wind, drawn over the scene."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import viser

from crazyflow_ros.drones import load_drone
from crazyflow_ros.scene.frames import body_to_world
from crazyflow_ros.view.controls import PageControl, PageControls
from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.names import MOST_NAMES
from crazyflow_ros.view.plans import Plans, ShownPlan
from crazyflow_ros.view.shown import Shown
from crazyflow_ros.view.swarm import color_of

_THRUST, _WIND = (240, 170, 30), (90, 200, 255)  # colours
_HOVER = 0.12  # m, length of an arrow whose thrust balances the weight
_METRES_PER_SPEED = 0.1  # m for 1 m/s of wind
_GOAL_RADIUS = 0.025  # m
_GRAVITY = 9.81
_RPM = 60 / (2 * np.pi)  # 1 rad/s
_ABOVE = np.array([0.0, 0.0, 0.25])  # m, position of the wind's arrow relative to the drone


_figures = cache(load_drone)


class Overlays:
    """Draws the overlays.

    Args:
        server: The page's server.
        shown: The switches, to which that of the plans is added.
        follower: The connection to the simulator.
        plans: The plans of the drones.
        panel: The panel.
        forces: Its section for the switches of what acts on a drone.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        shown: Shown,
        follower: Follower,
        plans: Plans,
        panel: PageControls,
        forces: PageControl,
    ) -> None:
        self._server, self._follower, self._plans = server, follower, plans
        self._has_plans = shown.add("Plans and goals", is_on=True)
        with panel.inside(forces):
            self._has_thrust = panel.add(
                "switch", "Thrust", False, hint="Of all drones; 12 cm balance the weight"
            )
            self._has_wind = panel.add(
                "switch", "Wind", True, hint="The mean wind at the selected drone"
            )
        self._shown: dict[str, ShownPlan] = {}
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
        self._plans.use("overlays", drones)
        plans = {drone: self._plans.under_way.get(drone) for drone in drones}
        for drone in self._drawn.keys() - plans.keys():
            self._erase(drone)
        for number, (drone, plan) in enumerate(plans.items()):
            if plan is not self._shown.get(drone):
                self._erase(drone)
                if plan is not None:
                    self._draw_plan(drone, plan, color_of(number))

    def _erase(self, drone: str) -> None:
        self._shown.pop(drone, None)
        for handle in self._drawn.pop(drone, ()):
            handle.remove()

    def _draw_plan(self, drone: str, plan: ShownPlan, color: tuple[int, int, int]) -> None:
        points = plan.poses[:, :3].astype(np.float32)
        scene, segments = self._server.scene, np.stack([points[:-1], points[1:]], axis=1)
        self._shown[drone] = plan
        self._drawn[drone] = [
            scene.add_line_segments(
                f"/plans/{drone}",
                segments[::2],
                # Of each end, as other lines have them: a renderer compiles a single program.
                np.tile(np.array(color, np.uint8), (*segments[::2].shape[:2], 1)),
                thickness=1.5,
                thickness_units="screen",
            ),
            scene.add_icosphere(
                f"/goals/{drone}", _GOAL_RADIUS, color, position=points[-1], opacity=0.8
            ),
        ]

    def _show_thrust(self, frame: Frame) -> None:
        """Draw an arrow along the thrust of each drone."""
        arrows = np.zeros((0, 2, 3))
        if self._has_thrust.value and (model := self._follower.parameters.get("drone_model")):
            figures = _figures(model)
            thrust = np.polynomial.Polynomial(figures["rpm2thrust"])(frame.rotor_speed * _RPM)
            lengths = _HOVER * thrust.sum(axis=-1) / (float(figures["mass"]) * _GRAVITY)
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
