"""The models as functions of arrays, and their parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crazyflow_ros.compat.crazyflow.dynamics import (
    first_principles,
    so_rpy,
    so_rpy_rotor,
    so_rpy_rotor_drag,
)
from crazyflow_ros.compat.crazyflow.dynamics.core import (
    Dynamics,
    load_fn_params,
    load_params,
    parametrize,
    supported_drones,
    supported_dynamics,
)

__all__ = [
    "Dynamics",
    "available_dynamics",
    "dynamics_features",
    "load_fn_params",
    "load_params",
    "parametrize",
    "supported_drones",
    "supported_dynamics",
]

available_dynamics: dict[Dynamics, Callable[..., Any]] = {
    Dynamics.first_principles: first_principles.dynamics,
    Dynamics.so_rpy: so_rpy.dynamics,
    Dynamics.so_rpy_rotor: so_rpy_rotor.dynamics,
    Dynamics.so_rpy_rotor_drag: so_rpy_rotor_drag.dynamics,
}


def dynamics_features(dynamics: Any) -> dict[str, bool]:
    """Return which inputs a function of dynamics has, also with parameters: `rotor_dynamics`."""
    features: dict[str, bool] = getattr(dynamics, "func", dynamics).__dynamics_features__
    return features
