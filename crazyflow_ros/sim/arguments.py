"""Checks of the arguments of `Sim`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from crazyflow_ros.control import Control
from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.drones import AnyDrone, resolve
from crazyflow_ros.dynamics.forces.external import DroneContact, DroneForce, External
from crazyflow_ros.dynamics.obstacles import Obstacles

MOST_STEPS = 2**31 - 1
"""Ticks of one step, which counts them in 32 bits."""


def whole(name: str, value: Any) -> int:
    """A number of things.

    Args:
        name: Its name in the error message.
        value: The number; 2.0 is as good as 2.

    Raises:
        ValueError: It is not a whole number, or below 1.
    """
    try:
        number = int(value)
        is_whole = bool(number == value)
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole:
        raise ValueError(f"{name} has to be a whole number, got {value!r}")
    if number < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return number


def steps_of(n_steps: Any) -> int:
    """A number of ticks that a step can have.

    Raises:
        ValueError: It is not a whole number from 1 to `MOST_STEPS`.
    """
    if type(n_steps) is not int or n_steps < 1:
        n_steps = whole("n_steps", n_steps)
    if n_steps > MOST_STEPS:
        raise ValueError(f"n_steps must be at most {MOST_STEPS}, got {n_steps}")
    return n_steps


def models_of(drone: AnyDrone | Sequence[AnyDrone], n_drones: int | None) -> tuple[str, ...]:
    """The model of each drone of a world.

    Args:
        drone: Name of one model, or path of its folder; or one for each drone.
        n_drones: How many drones; None is as many as `drone` names.

    Raises:
        ValueError: There is no such model, or it is another number of them.
    """
    if isinstance(drone, str | os.PathLike):
        return (resolve(drone),) * (1 if n_drones is None else whole("n_drones", n_drones))
    if not isinstance(drone, Iterable):
        raise ValueError(f"drone has to be a name, or one for each drone, got {drone!r}")
    models = tuple(resolve(name) for name in drone)
    n_drones = whole("n_drones", len(models) if n_drones is None else n_drones)
    if len(models) != n_drones:
        raise ValueError(f"drone names {len(models)} drones, but n_drones is {n_drones}")
    return models


def rates_of(used: Iterable[Control], rates: dict[Control, int], freq: int) -> dict[Control, int]:
    """Select the rates [Hz] of the controllers in use, which have to divide `freq`.

    Raises:
        ValueError: One of them does not, or another one is not positive.
    """
    for level, rate in rates.items():
        if level in used:
            ticks_per_period(freq, rate, f"{level}_freq")
        else:
            whole(f"{level}_freq", rate)
    return {level: rates[level] for level in used}


def check_obstacles(obstacles: Any, forces: Iterable[External]) -> None:
    """Refuse obstacles that would not stop anything.

    Raises:
        ValueError: They are something else, or no force can know of them.
    """
    if obstacles is None:
        return
    if not isinstance(obstacles, Obstacles):
        raise ValueError(f"obstacles have to be Obstacles, got {obstacles!r}")
    # A function of the user's may read the obstacles, too.
    made = (DroneForce, DroneContact)
    if all(isinstance(force, made) and force.name != "obstacle_contact" for force in forces):
        raise ValueError(
            "obstacles without obstacle_contact in forces: drones would fly through them"
        )


def forces_of(forces: Any, models: tuple[str, ...], freq: int) -> tuple[External, ...]:
    """External influences that were made for these drones and this step frequency.

    Raises:
        ValueError: They are not functions, or were made for others.
    """
    if not isinstance(forces, Sequence) or not all(map(callable, forces)):
        raise ValueError(f"forces have to be a tuple of functions, got {forces!r}")
    for force in forces:
        if isinstance(force, DroneForce | DroneContact):
            force.check(models, freq)
    return tuple(forces)
