"""Parameters of the models, and which drones have them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from crazyflow_ros.compat.crazyflow import utils
from crazyflow_ros.compat.crazyflow.drones import Drone
from crazyflow_ros.drones import load_drone, load_model
from crazyflow_ros.dynamics import Dynamics

__all__ = [
    "Dynamics",
    "load_fn_params",
    "load_params",
    "parametrize",
    "supported_drones",
    "supported_dynamics",
    "supports",
]

_MEASURED = (
    *("mass", "gravity_vec", "J", "L", "prop_inertia", "rpm2thrust", "rpm2torque"),
    *("mixing_matrix", "drag_matrix", "rotor_dyn_coef", "thrust_min", "thrust_max"),
)
_BODY = ("mass", "gravity_vec", "J")


def supports(rotor_dynamics: bool = True) -> Callable[[Any], Any]:
    """Return a decorator that notes whether a function of dynamics has the speeds of rotors."""

    def noted(function: Any) -> Any:
        function.__dynamics_features__ = {"rotor_dynamics": rotor_dynamics}
        return function

    return noted


def load_params(dynamics: str, drone: str, xp: Any = None, device: Any = None) -> dict[str, Any]:
    """Return the parameters of a drone in a model, as arrays of `xp`.

    Raises:
        ValueError: There is no such model or drone.
        KeyError: The drone has no figures of the model.
    """
    if (dynamics := Dynamics(dynamics)) not in supported_dynamics(drone):
        raise KeyError(f"Drone `{drone}` not found in {dynamics}/params.toml")
    figures = load_drone(drone)
    names = _MEASURED if dynamics.has_rotors else _BODY
    params = {name: figures[name] for name in names}
    if not dynamics.has_rotors:
        params |= load_model(drone, dynamics)
    params["J_inv"] = np.linalg.inv(params["J"])
    as_lists = {name: np.squeeze(value).tolist() for name, value in params.items()}
    loaded: dict[str, Any] = utils.to_xp(as_lists, xp=xp, device=device)
    return loaded


def load_fn_params(
    fn: Callable[..., Any], drone: str, xp: Any = None, device: Any = None
) -> dict[str, Any]:
    """Return the parameters of a drone that a function of the module of a model accepts."""
    assert callable(fn), f"Expected a function, got {type(fn)}"
    dynamics = fn.__module__.removesuffix(".dynamics").rpartition(".")[2]
    return utils.filter_to_signature(load_params(dynamics, drone, xp=xp, device=device), fn)


def parametrize(
    fn: Callable[..., Any], drone: str, xp: Any = None, device: Any = None
) -> partial[Any]:
    """Return a function of the module of a model with the parameters of a drone."""
    return utils.parametrize(fn, drone, load_fn_params, xp=xp, device=device)


def supported_drones(dynamics: str) -> tuple[Drone, ...]:
    """Return the drones that have figures of a model."""
    return tuple(drone for drone in Drone if Dynamics(dynamics) in supported_dynamics(drone))


def supported_dynamics(drone: str) -> tuple[Dynamics, ...]:
    """Return the models of which a drone has figures. Also `hb_x500` has `first_principles`."""

    def known(dynamics: Dynamics) -> bool:
        try:
            dynamics.params.figures(Drone(drone))
        except ValueError:
            return False
        return True

    Drone(drone)
    return tuple(filter(known, Dynamics))
