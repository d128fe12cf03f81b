"""The conditions in a world, as its author wrote them: gravity, air and floor.

Physics, controllers, planner, sensors and estimator all read them here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.control import Controller
from crazyflow_ros.drones import load_drone
from crazyflow_ros.drones.deck_optics import ORDINARY

if TYPE_CHECKING:
    import mujoco

GRAVITY = (0.0, 0.0, -9.81)
"""Gravity of MuJoCo's default, and of the drones' figures [m/s^2]."""
AIR = 1.225
"""Density of the air in which the drones' figures were measured [kg/m^3]."""
NO_FLOOR = -1e6
"""Height [m] that stands for a floor that does not exist."""

_ANY_RATE = 100  # Hz
_LEAST = 0.1  # m/s^2, the smallest gravity that controllers and planner balance
_DENSITIES = 0.005, 10.0  # kg/m^3, of gases in which drones may fly
_THIN = 1e-4  # Pa s; less, such as that of air, is part of the measured drag


@dataclass(frozen=True)
class Conditions:
    """Gravity, air and floor of a world."""

    gravity: tuple[float, float, float] = GRAVITY
    """(3,) m/s^2, world frame."""
    density: float = AIR
    """Of the air, kg/m^3."""
    wind: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """(3,) mean wind where nobody has set one, m/s, world frame."""
    floor: float | None = 0.0
    """Height of the floor, a level plane below which everything is solid [m]; None for none."""
    viscosity: float = 0.0
    """Of the air, Pa s; it has no effect on drones."""
    surface: tuple[float, float] = (ORDINARY.reflectance, ORDINARY.texture)
    """Reflectance and texture of the floor, see `DeckSurface`."""

    def compiled_part(self, *, estimates: bool) -> Conditions:
        """Return the conditions on which compiled code depends, with defaults for the others.

        Args:
            estimates: Whether drones fly on estimates, from what they see of the floor.
        """
        surface = self.surface if estimates else STANDARD.surface
        return Conditions(self.gravity, self.density, floor=self.floor, surface=surface)

    @property
    def ground(self) -> float:
        """Height of the floor [m], far below everything if there is none."""
        return NO_FLOOR if self.floor is None else self.floor

    @property
    def air(self) -> float:
        """Density of the air, as a share of `AIR`."""
        return self.density / AIR

    @property
    def balanced(self) -> tuple[float, float, float]:
        """(3,) gravity that controllers and planner balance: at least 0.1 m/s^2 downwards."""
        x, y, z = self.gravity
        return x, y, min(z, -_LEAST)

    def figures(self, drone: str) -> dict[str, Any]:
        """Return `load_drone(drone)` with gravity, thrust and drag as they are here.

        Raises:
            ValueError: There is no such drone.
        """
        known = load_drone(drone)
        if self.gravity == GRAVITY and self.density == AIR:
            return known
        by_air = ("thrust_min", "thrust_max", "drag_matrix")
        return {
            **known,
            **{name: self.air * known[name] for name in by_air},
            "gravity_vec": np.array(self.balanced),
        }

    def unheeded(
        self,
        drone: str,
        controller: Controller = Controller.default,
        *,
        has_rotors: bool = True,
        feels_wind: bool = True,
    ) -> Iterator[str]:
        """Yield what cannot be honoured in a simulation, one sentence each.

        Args:
            drone: The drone that flies there.
            controller: Its position controller.
            has_rotors: Whether its model computes thrust from the speeds of rotors.
            feels_wind: Whether its model has drag.
        """
        x, y, z = self.gravity
        if x or y or z > -_LEAST:
            yield (
                f"gravity is {limits.shown(list(self.gravity))} m/s^2: drones and sensors obey it, "
                f"but controllers and planner expect it downwards, at least {_LEAST:g} m/s^2"
            )
        if self.density != AIR and not has_rotors:
            yield (
                f"the air's density, {self.density:g} kg/m^3, has no effect: models fitted to "
                "flights only know that of the flights"
            )
        if any(self.wind) and not feels_wind:
            yield "the wind of the world has no effect: this model of drones has no drag"
        if self.viscosity > _THIN:
            yield (
                f"the viscosity of the medium, {self.viscosity:g} Pa s, has no effect: drones have "
                "the drag that was measured in air"
            )
        figures = self.figures(drone)
        weight = -figures["mass"] * figures["gravity_vec"][2]
        least, most = 4 * figures["thrust_min"], 4 * figures["thrust_max"]
        if controller is Controller.pid:
            own = controller.cascade.load_params("state", drone, _ANY_RATE)
            least = max(least, float(own["thrust_min"]))
        if weight < least:
            yield (
                f"a drone weighs {weight:.3g} N here, and in flight it has {least:.3g} N of thrust "
                f"or more, with the controller {controller}: it cannot hover or land"
            )
        elif weight > most:
            yield (
                f"a drone weighs {weight:.3g} N here, and its rotors give {most:.3g} N at most: "
                "it cannot take off"
            )


STANDARD = Conditions()
"""Gravity and air of the earth, and a floor at z = 0."""


def conditions_of(model: mujoco.MjModel) -> tuple[Conditions, tuple[str, ...]]:
    """Read the conditions in a compiled world, and what about them is impossible, one text each."""
    import mujoco  # here, because most users of `Sim` need no scene

    option, odd = model.opt, []
    density, (low, high) = float(option.density), _DENSITIES
    if density and not low <= density <= high:
        odd.append(
            f"the density of the medium, {density:g} kg/m^3, is not that of a gas ({low:g} to "
            f"{high:g}): drones fly in air of {AIR:g} kg/m^3"
        )
        density = 0.0
    x, y, z = option.wind.tolist()
    if np.linalg.norm((x, y, z)) > limits.WIND.most:
        odd.append(f"the wind of the world is stronger than {limits.WIND.most:g} m/s: it is calm")
        x = y = z = 0.0
    gravity = option.gravity.tolist()
    if option.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY:
        gravity = [0.0, 0.0, 0.0]
    floor, surface = _floor(model)
    found = Conditions(
        (gravity[0], gravity[1], gravity[2]),
        density or AIR,  # 0 is MuJoCo's default, in worlds that do not state it
        (x, y, z),
        floor,
        float(option.viscosity),
        surface,
    )
    return found, tuple(odd)


def _floor(model: mujoco.MjModel) -> tuple[float | None, tuple[float, float]]:
    """Return height [m] and surface of the highest level plane that drones collide with."""
    import mujoco

    from crazyflow_ros.scene.collision_shapes import are_level_planes
    from crazyflow_ros.scene.surfaces import surfaces

    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    planes = np.flatnonzero(are_level_planes(model, data))
    if not planes.size:
        return None, STANDARD.surface
    highest = planes[data.geom_xpos[planes, 2].argmax()]
    # Adding zero turns minus zero, which would be another floor for the cache, into zero.
    height = float(data.geom_xpos[highest, 2]) + 0.0
    reflectance, texture = surfaces(model)[highest].tolist()
    return height, (reflectance, texture)
