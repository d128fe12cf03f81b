"""The data of a simulation."""

from __future__ import annotations

from dataclasses import fields
from importlib.util import find_spec
from typing import Any

import jax

from crazyflow_ros.compat.crazyflow import staged_controls
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


def _register_with_flax() -> None:
    """Let `flax.serialization` store and restore data, as it does those of Crazyflow."""
    from flax import serialization

    def state_of(node: Any) -> dict[str, Any]:
        return {k: serialization.to_state_dict(getattr(node, k)) for k in arrays_of(node)}

    def restored(node: Any, state: dict[str, Any]) -> Any:
        return node.replace(
            **{
                k: serialization.from_state_dict(getattr(node, k), state[k], name=k)
                for k in arrays_of(node)
            }
        )

    def arrays_of(node: Any) -> list[str]:
        return [field.name for field in fields(node) if not field.metadata.get("static")]

    controllers = [getattr(staged_controls, f"Mellinger{k}Data") for k in _CONTROLLERS]
    models = [model.params for model in Dynamics]
    for kind in (SimData, SimState, SimStateDeriv, SimControls, SimCore, *controllers, *models):
        serialization.register_serialization_state(kind, state_of, restored, override=True)


_CONTROLLERS = ("State", "Attitude", "BodyRate", "ForceTorque")
if find_spec("flax") is not None:
    _register_with_flax()
