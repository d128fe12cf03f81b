"""A stage of resets that draws drones as identification knows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.drones import AnyDrone
from crazyflow_ros.drones.uncertainty import ADDITIVE, FITS, Uncertainty, load_uncertainty
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.randomize import in_worlds
from crazyflow_ros.sim.shapes import OF_ROTORS

_MATRICES = ("J", "J_inv", "drag_matrix")  # of three axes
_ONE, _AXES = np.ones((1, 1)), np.eye(3)
_LEVEL_AND_YAW = np.array([[1, 1, 0], [0, 0, 1]])
_ACTS: dict[str, dict[str, Any]] = {
    "thrust": {"rpm2thrust": _ONE, "rpm2torque": _ONE},
    "J": {"J": _AXES, "J_inv": -_AXES},
    "drag_xy": {"drag_matrix": np.array([[1, 1, 0]])},
    "drag_z": {"drag_matrix": np.array([[0, 0, 1]])},
    "rotor_moment": {"rotor_moment": np.eye(2)},
    "thrust_offset": {"thrust_offset": _AXES},
    "motor_lag": {"rotor_dyn_coef": -_ONE},
    **{name: {name: _LEVEL_AND_YAW} for name in FITS["rotation"]},
    **{name: {name: _ONE} for name in ("cmd_f_coef", "thrust_dyn_coef")},
}
"""Parameters of dynamics that each figure acts on, with the matrix by which the logarithms of the
figure's numbers become those of the parameter's factors."""


def randomize_identified(drone: AnyDrone) -> IdentifiedDrone:
    """Draw the parameters of an identified drone, as uncertain as its identification is.

    Each drone of a reset world is one that could have flown as the recorded one did: factors of the
    nominal parameters are log-normal and correlated by `uncertainty.toml` of the drone's folder,
    and the offset of the thrust is normal. The controller uses the nominal drone.

    Args:
        drone: Path of the folder that `identify` has written.

    Raises:
        ValueError: There is no such drone, its folder has no uncertainty, or a wrong one. When it
            is assigned to a simulation: nothing that was identified acts on its dynamics.
    """
    return IdentifiedDrone(str(drone), load_uncertainty(drone))


@dataclass(frozen=True, eq=False)
class IdentifiedDrone:
    """A stage that draws parameters together, see `randomize_identified`."""

    drone: str
    uncertainty: dict[str, Uncertainty]
    """By the names of the fits."""

    def check(self, data: SimData) -> None:
        """Check that the stage changes the parameters of a simulation.

        Raises:
            ValueError: It does not.
        """
        if not self._matrices(data.params):
            known = sorted({name for part in self.uncertainty.values() for name in part.figures})
            raise ValueError(
                f"{self.drone}: nothing of what was identified is uncertain and acts on "
                f"{_model(data.params)}; identified are {', '.join(known)} of "
                f"{', '.join(self.uncertainty)}"
            )

    def __call__(self, data: SimData, default_data: SimData, mask: Array) -> SimData:
        """Draw the parameters in the worlds of the mask."""
        params, nominal = data.params, default_data.params
        matrices, dtype = self._matrices(params), data.states.pos.dtype
        key, subkey = jax.random.split(data.core.rng_key)
        numbers = len(next(iter(matrices.values())))
        shape = (data.core.n_worlds, data.core.n_drones, numbers, 1)
        normal, changes = jax.random.normal(subkey, shape, dtype), {}
        for name, matrix in matrices.items():
            # Not a product of matrices, which some devices compute with a few digits.
            drawn = (normal * jnp.asarray(matrix, dtype)).sum(axis=-2)
            new = _changed(name, getattr(nominal, name), drawn)
            changes[name] = in_worlds(mask, new, getattr(params, name))
        core = data.core.replace(rng_key=key)
        return data.replace(core=core, params=params.replace(**changes))

    def _matrices(self, params: Any) -> dict[str, np.ndarray]:
        """Return by parameters the matrices that make their changes of standard normal numbers."""
        # The drone's drag is that of the rigid body where both were fitted.
        names = [
            name for name in (_model(params), "rotation", "rigid_body") if name in self.uncertainty
        ]
        roots = [self.uncertainty[name].root().T for name in names]
        of_figures, at = dict[str, np.ndarray](), 0
        for name, root in zip(names, roots):
            rows = np.zeros((sum(map(len, roots)), len(root)))  # of the normal numbers of all fits
            rows[at : (at := at + len(root))] = root
            figures = self.uncertainty[name].figures
            ends = np.cumsum([FITS[name][figure] for figure in figures])
            of_figures |= zip(figures, np.split(rows, ends[:-1], axis=1))
        found: dict[str, np.ndarray] = {}
        for figure, rows in of_figures.items():
            for name, spread in _ACTS[figure].items():
                if rows.any() and getattr(params, name, None) is not None:
                    found[name] = found.get(name, 0) + rows @ spread
        return found


def _model(params: Any) -> str:
    """Return the name of the dynamics, or of those that they extend."""
    names = [str(model) for model in Dynamics if isinstance(params, model.params)]
    return names[-1] if names else type(params).__name__


def _changed(name: str, nominal: Array, drawn: Array) -> Array:
    """Return a parameter with changes (worlds, drones, n)."""
    if name == ADDITIVE:
        return nominal + drawn
    if name in _MATRICES:  # which keeps them symmetric and definite
        drawn = (drawn[..., :, None] + drawn[..., None, :]) / 2
    elif name in OF_ROTORS:
        drawn = drawn[..., None, :]
    return nominal * jnp.exp(drawn)
