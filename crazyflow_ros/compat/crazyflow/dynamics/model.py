"""The functions of the module of a model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from crazyflow_ros.compat import dynamics as functions
from crazyflow_ros.compat.crazyflow.dynamics.core import Dynamics, supports
from crazyflow_ros.compat.crazyflow.functions import with_parameters
from crazyflow_ros.dynamics import so_rpy
from crazyflow_ros.dynamics.components import quat_from_rpy, split, stack
from crazyflow_ros.elementwise import like, zeros_like

_BODY = ("mass", "gravity_vec", "J", "J_inv")
_FITTED = (*_BODY, "acc_coef", "cmd_f_coef", "rpy_coef", "rpy_rates_coef", "cmd_rpy_coef")
PARAMETERS = {
    Dynamics.first_principles: (
        *("mass", "L", "prop_inertia", "gravity_vec", "J", "J_inv", "rpm2thrust", "rpm2torque"),
        *("mixing_matrix", "drag_matrix", "rotor_dyn_coef"),
    ),
    Dynamics.so_rpy: _FITTED,
    Dynamics.so_rpy_rotor: (*_FITTED, "thrust_dyn_coef"),
    Dynamics.so_rpy_rotor_drag: (*_FITTED, "thrust_dyn_coef", "drag_matrix"),
}
"""Names of the parameters of the functions of each model."""


def further(model: Dynamics) -> dict[str, Any]:
    """Return the parameters that Crazyflow's model does not have: no wind, and unused limits."""
    limits = "rotor_vel_limits" if model.has_rotors else "thrust_limits"
    return {limits: np.zeros(2)} | ({"wind": np.zeros(3)} if model.feels_wind else {})


def dynamics_of(model: Dynamics, module: str) -> Any:
    """Return the function `dynamics` of a model; see `compat.dynamics.DynamicsFunction`.

    Parameters have the names that Crazyflow's have. `so_rpy` has no speeds of rotors.
    """
    sys.modules[f"{module}.dynamics"] = sys.modules[module]  # Crazyflow's name for the same
    own = getattr(functions, model)

    def dynamics(
        pos: Any,
        quat: Any,
        vel: Any,
        ang_vel: Any,
        cmd: Any,
        rotor_vel: Any = None,
        dist_f: Any = None,
        dist_t: Any = None,
        **params: Any,
    ) -> tuple[Any, ...]:
        arrays = (pos, quat, vel, ang_vel, cmd, rotor_vel, dist_f, dist_t)
        rates: tuple[Any, ...] = own(*arrays, **params)
        return rates

    def without_rotors(
        pos: Any,
        quat: Any,
        vel: Any,
        ang_vel: Any,
        cmd: Any,
        dist_f: Any = None,
        dist_t: Any = None,
        **params: Any,
    ) -> tuple[Any, ...]:
        return dynamics(pos, quat, vel, ang_vel, cmd, None, dist_f, dist_t, **params)[:4]

    return _made("dynamics", model, module, (dynamics, without_rotors), PARAMETERS[model])


def dynamics_euler_of(model: Dynamics, module: str) -> Any:
    """Return the function `dynamics_euler` of a fitted model, with roll, pitch and yaw as state."""
    own = getattr(functions, model)

    def dynamics_euler(
        pos: Any,
        rpy: Any,
        vel: Any,
        rpy_rates: Any,
        cmd: Any,
        rotor_vel: Any = None,
        **params: Any,
    ) -> tuple[Any, ...]:
        params |= {"J": np.eye(3), "J_inv": np.eye(3)}  # which only an external torque needs
        level = stack(quat_from_rpy(split(rpy)))  # type: ignore[arg-type]
        rates = own(pos, level, vel, zeros_like(vel), cmd, rotor_vel, **params)
        fields: Any = {name: like(value, pos) for name, value in params.items()}
        fitted = model.params(**fields)
        assert isinstance(fitted, so_rpy.Params)
        acc = so_rpy.rpy_acceleration(split(rpy), split(rpy_rates), split(cmd), fitted)  # type: ignore[arg-type]
        return vel, rpy_rates, rates[2], stack(acc), rates[4]

    def without_rotors(
        pos: Any, rpy: Any, vel: Any, rpy_rates: Any, cmd: Any, **params: Any
    ) -> tuple[Any, ...]:
        return dynamics_euler(pos, rpy, vel, rpy_rates, cmd, **params)[:4]

    names = [name for name in PARAMETERS[model] if name not in ("J", "J_inv")]
    return _made("dynamics_euler", model, module, (dynamics_euler, without_rotors), names)


def _made(
    name: str,
    model: Dynamics,
    module: str,
    kinds: tuple[Callable[..., Any], Callable[..., Any]],
    parameters: Any,
) -> Any:
    has_rotors = model is not Dynamics.so_rpy
    chosen = kinds[0] if has_rotors else kinds[1]
    function: Any = with_parameters(chosen, module, parameters, **further(model))
    function.__name__ = function.__qualname__ = name
    return supports(has_rotors)(function)
