"""Parameters of controllers, and the ticks in which controllers run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from jax import Array

from crazyflow_ros.compat.crazyflow import utils
from crazyflow_ros.control import Control, mellinger

__all__ = ["Control", "controllable", "load_fn_params", "load_params", "parametrize"]

STAGES = {
    "state2attitude": "state",
    "attitude2force_torque": "attitude",
    "body_rate2force_torque": "attitude",
    "force_torque2rotor_vel": "force_torque",
}


def load_params(
    controller: str, drone: str, xp: Any = None, device: Any = None
) -> dict[str, dict[str, Any]]:
    """Return the parameters of a drone for each function of a controller, as arrays of `xp`.

    Raises:
        KeyError: There is no such controller or drone.
    """
    if controller != "mellinger":
        raise KeyError(f"Controller `{controller}` not found")
    try:
        figures = {name: mellinger.load_figures(stage, drone) for name, stage in STAGES.items()}
    except ValueError as error:
        raise KeyError(str(error)) from None
    as_lists = {
        name: {k: v.tolist() for k, v in stage.items() if k != "idle_thrust"}
        for name, stage in figures.items()
    }
    loaded: dict[str, dict[str, Any]] = utils.to_xp(as_lists, xp=xp, device=device)
    return loaded


def load_fn_params(
    fn: Callable[..., Any], drone: str, xp: Any = None, device: Any = None
) -> dict[str, Any]:
    """Return the parameters of a drone that a function of `control.mellinger` accepts."""
    assert callable(fn), f"Expected a function, got {type(fn)}"
    return utils.filter_to_signature(
        load_params("mellinger", drone, xp=xp, device=device)[fn.__name__], fn
    )


def parametrize(
    fn: Callable[..., Any], drone: str, xp: Any = None, device: Any = None
) -> partial[Any]:
    """Return a function of `control.mellinger` with the parameters of a drone."""
    return utils.parametrize(fn, drone, load_fn_params, xp=xp, device=device)


def controllable(step: Array, freq: int, control_steps: Array, control_freq: int) -> Array:
    """Return whether a controller runs in the next tick of each world: (N, 1) bool.

    Args:
        step: (N, 1) ticks.
        freq: Ticks per second.
        control_steps: (N, 1) tick of its last run, or -1.
        control_freq: Its runs per second, which need not divide `freq`.
    """
    return (step - control_steps >= freq / control_freq) | (control_steps == -1)
