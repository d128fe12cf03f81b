"""The data of a simulation."""

from __future__ import annotations

from typing import Any

import jax

from crazyflow_ros.compat.crazyflow.staged_controls import ControlData
from crazyflow_ros.control import Control
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.sim.controls import SimControls
from crazyflow_ros.sim.data import SimCore, SimData, SimState, SimStateDeriv

__all__ = [
    "Control",
    "ControlData",
    "SimControls",
    "SimCore",
    "SimData",
    "SimParams",
    "SimState",
    "SimStateDeriv",
]


class SimParams:
    """Parameters of drones; each model has a class of its own."""

    @staticmethod
    def create(dynamics: str, drone: str, device: Any = None) -> Any:
        """Return the parameters of a drone."""
        return jax.device_put(Dynamics(dynamics).params.create(drone), device)
