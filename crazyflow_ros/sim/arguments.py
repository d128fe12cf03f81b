"""Checks of the arguments of `Sim`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jax.typing import ArrayLike

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.control import Control
from crazyflow_ros.control.rates import DEFAULT_RATE, DEFAULT_RATES, ticks_per_period
from crazyflow_ros.drones import AnyDrone, resolve
from crazyflow_ros.dynamics import Dynamics, first_principles
from crazyflow_ros.dynamics.forces import force_of
from crazyflow_ros.dynamics.forces.external import DroneContact, DroneForce, External
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.dynamics.slung_load import SlungLoad
from crazyflow_ros.estimation import Estimator, Positioning
from crazyflow_ros.sim.integrator import Integrator

MAX_STEPS = 2**31 - 1
"""Maximum number of ticks of a step, which are counted in 32 bits."""


def whole(name: str, value: Any) -> int:
    """Return a count as an int.

    Args:
        name: Name of the count in the error message.
        value: The count; 2.0 is accepted as 2.

    Raises:
        ValueError: The count is not an integer, or is less than 1.
    """
    try:
        number = int(value)
        is_whole = bool(number == value)
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole:
        raise ValueError(f"{name} must be an integer, got {value!r}")
    if number < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return number


def steps_of(n_steps: Any) -> int:
    """Return the number of ticks of a step as an int.

    Raises:
        ValueError: `n_steps` is not an integer from 1 to `MAX_STEPS`.
    """
    if type(n_steps) is not int or n_steps < 1:
        n_steps = whole("n_steps", n_steps)
    if n_steps > MAX_STEPS:
        raise ValueError(f"n_steps must be at most {MAX_STEPS}, got {n_steps}")
    return n_steps


def mask_of(mask: ArrayLike, n_worlds: int, name: str = "mask") -> np.ndarray:
    """Return a mask of worlds, (n_worlds,) bool.

    Args:
        mask: The mask.
        n_worlds: Number of worlds.
        name: Name of the mask in the error message.

    Raises:
        ValueError: The mask has another shape or dtype.
    """
    mask = np.asarray(mask)
    if mask.shape != (n_worlds,):
        raise ValueError(f"{name} must have shape ({n_worlds},), got {mask.shape}")
    if mask.dtype != bool:
        raise ValueError(f"{name} holds a bool for each world, got {shown(mask)}")
    return mask


def models_of(drone: AnyDrone | Sequence[AnyDrone], n_drones: int | None) -> tuple[str, ...]:
    """Return the model of each drone of a world.

    Args:
        drone: Name of one model, or path of its folder; or one for each drone.
        n_drones: Number of drones; None for as many as `drone` names.

    Raises:
        ValueError: A model is unknown, or `drone` does not name `n_drones` drones.
    """
    if isinstance(drone, str | os.PathLike):
        return (resolve(drone),) * (1 if n_drones is None else whole("n_drones", n_drones))
    if not isinstance(drone, Iterable):
        raise ValueError(f"drone must be a name, or one for each drone, got {drone!r}")
    models = tuple(resolve(name) for name in drone)
    n_drones = whole("n_drones", len(models) if n_drones is None else n_drones)
    if len(models) != n_drones:
        raise ValueError(f"drone names {len(models)} drones, but n_drones is {n_drones}")
    return models


def rates_of(
    used: Iterable[Control], given: dict[Control, int | None], freq: int
) -> dict[Control, int]:
    """Return the rates [Hz] of the controllers in use, which must divide `freq`.

    None selects the default rate, or `freq` if that is lower.

    Raises:
        ValueError: A rate in use does not divide `freq`, or another rate is not positive.
    """
    rates = {
        level: min(DEFAULT_RATES.get(level, DEFAULT_RATE), freq) if rate is None else rate
        for level, rate in given.items()
    }
    for level, rate in rates.items():
        if level in used:
            ticks_per_period(freq, rate, f"{level}_freq")
        else:
            whole(f"{level}_freq", rate)
    return {level: rates[level] for level in used}


def positioning_of(estimator: Estimator, positioning: Positioning | None) -> Positioning | None:
    """Return the source of an estimator's position; None without an estimator.

    Raises:
        ValueError: `positioning` is given without an estimator.
    """
    if estimator is not Estimator.none:
        return Positioning() if positioning is None else positioning
    if positioning is not None:
        raise ValueError(f"positioning needs estimator=kalman, got {estimator}")
    return None


def check_mesh(mesh: Any, device: Any) -> None:
    """Check that a mesh is a JAX mesh, and the only argument that names devices.

    Raises:
        ValueError: `mesh` is something else, or `device` is given, too.
    """
    if mesh is not None and not hasattr(mesh, "devices"):
        raise ValueError(f"mesh must be a jax.sharding.Mesh, got {mesh!r}")
    if mesh is not None and device is not None:
        raise ValueError("mesh names the devices already, so device must be None")


def device_of(device: Any, array: jax.Array) -> jax.Device:
    """Return the device that an argument of `Sim` names.

    Args:
        device: A device, a platform for its first device, or None.
        array: An array on the device that None means.

    Raises:
        ValueError: There is no such device on this machine.
    """
    if device is None:
        (default,) = array.devices()
        return default
    if isinstance(device, jax.Device):
        return device
    try:
        first: jax.Device = jax.local_devices(backend=str(device))[0]
    except RuntimeError:
        have = sorted({d.platform for d in jax.devices()} | {"cpu"})
        text = f"device must be a jax.Device or a platform of this machine ({', '.join(have)})"
        raise ValueError(f"{text}, got {device!r}") from None
    return first


def check_obstacles(obstacles: Any, forces: Iterable[External]) -> None:
    """Check that obstacles have an effect.

    Raises:
        ValueError: The value is not `Obstacles`, or no force lets drones collide with them.
    """
    if obstacles is None:
        return
    if not isinstance(obstacles, Obstacles):
        raise ValueError(f"obstacles must be Obstacles, got {obstacles!r}")
    # Functions of the user may use the obstacles.
    made = (DroneForce, DroneContact)
    if all(isinstance(force, made) and force.name != "obstacle_contact" for force in forces):
        raise ValueError(
            "obstacles without obstacle_contact in forces: drones would fly through them"
        )


def check_payload(payload: Any, dynamics: Dynamics, integrator: Integrator) -> None:
    """Check that drones can carry a payload.

    Raises:
        ValueError: The value is not a `SlungLoad`, the dynamics are fitted to flights without, or
            the integrator is another than Euler's.
    """
    if not isinstance(payload, SlungLoad):
        raise ValueError(f"payload must be a SlungLoad, got {payload!r}")
    if not issubclass(dynamics.params, first_principles.Params):
        raise ValueError(f"payload needs dynamics=first_principles, got dynamics={dynamics}")
    if integrator not in (Integrator.euler, Integrator.symplectic_euler):
        known = f"{Integrator.euler} or {Integrator.symplectic_euler}"
        raise ValueError(f"payload needs integrator={known}, got integrator={integrator}")


def forces_of(forces: Any, models: tuple[str, ...], freq: int) -> tuple[External, ...]:
    """Return the external forces if they match these drones and this step frequency.

    Raises:
        ValueError: A force is neither a function nor the name of one, or is for other drones.
    """
    if isinstance(forces, str) or not isinstance(forces, Sequence):
        raise ValueError(f"forces must be a tuple of functions or names, got {forces!r}")
    built = [force_of(x)(models, freq) if isinstance(x, str) else x for x in forces]
    if not all(map(callable, built)):
        raise ValueError(f"forces must be a tuple of functions or names, got {forces!r}")
    for force in built:
        if isinstance(force, DroneForce | DroneContact):
            force.check(models, freq)
    return tuple(built)
