"""The dynamics models as functions of arrays of NumPy, torch and JAX, as in Crazyflow 0.4."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.drones.rotors import QUADROTOR
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.components import BodyState, Wrench, quat_rate, split, stack
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.elementwise import like

__all__ = [
    "DynamicsFunction",
    "first_principles",
    "parametrize",
    "so_rpy",
    "so_rpy_rotor",
    "so_rpy_rotor_drag",
]


class DynamicsFunction:
    """Time derivative of a drone's state.

    Args:
        model: The dynamics model.
    """

    def __init__(self, model: Dynamics) -> None:
        self.__name__ = str(model)
        self._model = model

    def figures(self, drone: str) -> dict[str, np.ndarray]:
        """Return the parameters of a drone by name, in double precision; see `Params` of the model.

        Args:
            drone: Name of a drone, or path of a drone's folder.

        Raises:
            ValueError: There is no such drone, or it has no figures of the model.
        """
        return self._model.params.figures(drone)

    def __call__(
        self,
        pos: Any,
        quat: Any,
        vel: Any,
        ang_vel: Any,
        cmd: Any,
        rotor_vel: Any = None,
        dist_f: Any = None,
        dist_t: Any = None,
        **params: Any,
    ) -> tuple[Any, Any, Any, Any, Any]:
        """Return the time derivative of the state, in arrays of the same library.

        The leading axes of all arrays are the same; those of parameters may have size 1 or be
        absent.

        Args:
            pos: (..., 3) m, world frame.
            quat: (..., 4) xyzw of unit norm, body to world.
            vel: (..., 3) m/s, world frame.
            ang_vel: (..., 3) rad/s, body frame.
            cmd: (..., n) command of the model: speeds of n rotors [RPM], or roll, pitch, yaw [rad],
                and collective thrust [N].
            rotor_vel: (..., n) RPM, or the thrust [N] four times; None: as commanded.
            dist_f: (..., 3) N, external force on the centre of mass, world frame.
            dist_t: (..., 3) N m, external torque, world frame.
            **params: All fields of the model's `Params`, see `parametrize`.

        Returns:
            Derivatives of pos, quat, vel, ang_vel and rotor_vel; the last one is None where
            `rotor_vel` is, or where the model has no state of the rotors.

        Raises:
            ValueError: The last axis of an array has another length.
            TypeError: A parameter is missing or unknown.
        """
        given = {"pos": (pos, 3), "quat": (quat, 4), "vel": (vel, 3), "ang_vel": (ang_vel, 3)}
        fields = {name: parts(name, array, size) for name, (array, size) in given.items()}
        model = self._model.params(
            **{name: _parameter(value, pos) for name, value in params.items()}
        )
        n_rotors = model.mixing_matrix.shape[-1] if isinstance(model, Params) else QUADROTOR
        command = parts("cmd", cmd, n_rotors)
        has_rotors = rotor_vel is not None and model.ROTOR_STATES > 0
        rotors = (
            parts("rotor_vel", rotor_vel, n_rotors) if has_rotors else model.settled_rotors(command)
        )
        nothing = (0.0 * fields["pos"][0],) * 3
        rate = model.derivative(
            BodyState(**fields, rotor_vel=rotors),
            command,
            Wrench(
                nothing if dist_f is None else parts("dist_f", dist_f, 3),
                nothing if dist_t is None else parts("dist_t", dist_t, 3),
            ),
        )
        return (
            vel,
            stack(quat_rate(fields["quat"], fields["ang_vel"])),
            stack(rate.acc),
            stack(rate.ang_acc),
            stack(rate.rotor_acc) if has_rotors else None,
        )


first_principles = DynamicsFunction(Dynamics.first_principles)
so_rpy = DynamicsFunction(Dynamics.so_rpy)
so_rpy_rotor = DynamicsFunction(Dynamics.so_rpy_rotor)
so_rpy_rotor_drag = DynamicsFunction(Dynamics.so_rpy_rotor_drag)


def parametrize(function: Any, drone: str, xp: Any = np, device: Any = None) -> partial[Any]:
    """Return a function with the parameters of a drone, which are in its attribute `keywords`.

    Args:
        function: A function of this module or of `crazyflow_ros.compat.control`.
        drone: Name of a drone, or path of a drone's folder.
        xp: Library of the parameters: `numpy`, `torch` or `jax.numpy`. They have its default
            precision.
        device: Device of the parameters, by default that of the library.

    Raises:
        ValueError: There is no such drone, or it lacks figures that the function needs.
    """
    figures = function.figures(drone)
    arrays = {name: xp.asarray(value.tolist(), device=device) for name, value in figures.items()}
    return partial(function, **arrays)


def _parameter(value: Any, array: Any) -> Any:
    """Return a parameter for calculations with an array; a number applies to all drones."""
    return like(np.array([value]) if isinstance(value, int | float) else value, array)


def parts(name: str, array: Any, size: int) -> Any:
    """Split an array along its last axis, whose length has to be `size`.

    Raises:
        ValueError: The axis has another length; the message has the name.
    """
    shape = getattr(array, "shape", None)
    if not shape or shape[-1] != size:
        text = shown(array) if shape is None else f"shape {tuple(shape)}"
        raise ValueError(f"{name} must be an array (..., {size}), got {text}")
    return split(array)
