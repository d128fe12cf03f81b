"""Drone parameters: the figures in `drones.toml`, as NumPy arrays."""

from __future__ import annotations

import tomllib
from copy import deepcopy
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from crazyflow_ros.members import member


class Drone(StrEnum):
    """Drones with identified parameters."""

    cf2x_L250 = "cf2x_L250"
    """Crazyflie 2.x with L250 motors, 32.8 g."""
    cf2x_P250 = "cf2x_P250"
    """Crazyflie 2.x with P250 motors, 31.8 g."""
    cf2x_T350 = "cf2x_T350"
    """Crazyflie 2.x with T350 motors, 37.9 g."""
    cf21B_500 = "cf21B_500"
    """Crazyflie 2.1 Brushless, 43.4 g."""
    hb_x500 = "hb_x500"
    """Holybro X500 V2, 2.28 kg."""
    default = cf21B_500


# Models whose figures are in tables of their own.
_FITTED = ("so_rpy", "so_rpy_rotor", "so_rpy_rotor_drag")


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("drones.toml").read_text())


def load_drone(drone: str) -> dict[str, Any]:
    """Read the figures of one drone.

    Args:
        drone: Name of the drone, a member of `Drone`.

    Returns:
        mass [kg], J (3, 3) [kg m^2], L [m], prop_inertia [kg m^2], thrust_min and thrust_max
        [N, one rotor], rpm2thrust (3,) [N], rpm2torque (3,) [N m], rotor_dyn_coef (4,),
        drag_matrix (3, 3) [N/(m/s)], mixing_matrix (3, 4), gravity_vec (3,) [m/s^2] and the table
        `geometry` [m] (rotor_radius, rotor_z, foot_z, hull_half_width).

    Raises:
        ValueError: There is no such drone.
    """
    tables = _tables()
    figures = deepcopy(tables[member(Drone, drone)])
    for model in _FITTED:
        figures.pop(model)
    principal_inertia, drag = figures.pop("J"), figures.pop("drag")
    return {
        **{key: np.array(v) if isinstance(v, list) else v for key, v in figures.items()},
        "J": np.diag(principal_inertia),
        "drag_matrix": np.diag(drag),
        "mixing_matrix": np.array(tables["mixing_matrix"]),
        "gravity_vec": np.array(tables["gravity_vec"]),
    }


def load_model(drone: str, model: str) -> dict[str, Any]:
    """Read what a fitted model needs of a drone, besides its mass and inertia.

    Args:
        drone: Name of the drone, a member of `Drone`.
        model: `so_rpy`, `so_rpy_rotor` or `so_rpy_rotor_drag`.

    Returns:
        acc_coef (1,) [N], cmd_f_coef (1,), rpy_coef (3,) [1/s^2], rpy_rates_coef (3,) [1/s],
        cmd_rpy_coef (3,) [1/s^2], thrust_min and thrust_max [N, one rotor]; of the later two models
        thrust_dyn_coef (1,) [1/s], of the last one drag_matrix (3, 3) [N/(m/s)].

    Raises:
        ValueError: There is no such drone.
    """
    figures = load_drone(drone)
    tables = _tables()[drone]
    fitted = {k: np.atleast_1d(v) for k, v in (tables["so_rpy"] | tables[model]).items()}
    names = ["thrust_min", "thrust_max"] + ["drag_matrix"] * (model == "so_rpy_rotor_drag")
    return fitted | {name: figures[name] for name in names}
