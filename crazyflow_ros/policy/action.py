"""Actions: four numbers from -1 to 1, and the command that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, pi

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.checks.enum_members import member
from crazyflow_ros.control import Control
from crazyflow_ros.drones import AnyDrone, load_drone, resolve
from crazyflow_ros.dynamics import Dynamics, first_principles

SIZE = 4
"""Numbers of an action."""

Four = tuple[float, float, float, float]


@dataclass(frozen=True)
class Action:
    """A pure function from actions to commands of a control mode: `offset` + `scale` * action.

    Raises:
        ValueError: The control mode is `state`, or a number is not finite.
    """

    control: Control
    """Control mode of the command; any but `state`."""
    offset: Four
    """Command for an action of 0, in the units of `Control`."""
    scale: Four
    """Change of the command as the action rises from 0 to 1."""

    def __post_init__(self) -> None:
        if self.control is Control.state:
            raise ValueError("actions are 4 numbers, but setpoints of control mode state are 16")
        for name in ("offset", "scale"):
            values = getattr(self, name)
            if len(values) != SIZE or not all(map(isfinite, values)):
                raise ValueError(f"{name} of an action must be 4 finite numbers, got {values}")

    @classmethod
    def of(
        cls,
        drone: AnyDrone,
        control: str = "attitude",
        *,
        dynamics: str = "first_principles",
        max_tilt: float = 0.5,
        max_rate: float = 10.0,
        thrust_range: float = 0.6,
    ) -> Action:
        """Return the usual actions of a drone.

        - attitude: roll and pitch up to `max_tilt`, yaw up to half a turn, and thrust;
        - body_rate: rates up to `max_rate`, and thrust;
        - force_torque: thrust, and the torques of rotors that differ by up to `thrust_range` of
          their hover thrust;
        - rotor_vel: each rotor from its slowest to its fastest speed.

        Thrust differs from the hover thrust by at most the fraction `thrust_range`.

        Args:
            drone: A `Drone`, or the path of a drone's folder.
            control: A `Control`, except `state`.
            dynamics: A `Dynamics`, which gives the hover thrust.
            max_tilt: rad, below pi / 2.
            max_rate: rad/s.
            thrust_range: Above 0, at most 1.

        Raises:
            ValueError: There is no such drone, control mode or dynamics, or a number is out of
                range.
        """
        if not 0 < max_tilt < pi / 2:
            raise ValueError(f"max_tilt must be between 0 and pi / 2, got {max_tilt}")
        if not 0 < max_rate < float("inf"):
            raise ValueError(f"max_rate must be positive, got {max_rate}")
        if not 0 < thrust_range <= 1:
            raise ValueError(f"thrust_range must be from 0 to 1, got {thrust_range}")
        mode, drone = member(Control, control), resolve(drone)
        # With NumPy, because JAX would compile a function for each operation.
        params = jax.tree.map(np.asarray, member(Dynamics, dynamics).params.create(drone))
        hover = float(params.hover_thrust[0])
        lift = thrust_range * hover
        match mode:
            case Control.attitude:
                return cls(mode, (0.0, 0.0, 0.0, hover), (max_tilt, max_tilt, pi, lift))
            case Control.body_rate:
                return cls(mode, (0.0, 0.0, 0.0, hover), (max_rate, max_rate, max_rate, lift))
            case Control.force_torque:
                figures, share = load_drone(drone), hover / 4
                k0, k1, k2 = figures["rpm2thrust"]
                rpm = (-k1 + np.sqrt(k1**2 - 4 * k2 * (k0 - share))) / (2 * k2)
                drag = float(np.polyval(figures["rpm2torque"][::-1], rpm))
                tilting, turning = figures["L"] * lift, lift * (drag / share)
                return cls(mode, (hover, 0.0, 0.0, 0.0), (lift, tilting, tilting, turning))
            case _:
                params = first_principles.Params.create(drone)
                slowest, fastest = params.rotor_vel_limits.tolist()
                offset, scale = (fastest + slowest) / 2, (fastest - slowest) / 2
                return cls(mode, (offset,) * 4, (scale,) * 4)

    def __call__(self, action: Array) -> Array:
        """Return the command of an action; numbers beyond -1 to 1 are clipped, NaN stays NaN.

        Args:
            action: (..., 4).

        Returns:
            (..., 4), in the units of `Control`.
        """
        offset, scale = (jnp.asarray(x, action.dtype) for x in (self.offset, self.scale))
        return jnp.clip(action, -1, 1) * scale + offset
