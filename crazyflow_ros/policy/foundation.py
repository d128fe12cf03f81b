"""Files of the package foundation-policy: RAPTOR, which flies any quadrotor.

Eschmann et al., "RAPTOR: A Foundation Policy for Quadrotor Control",
https://arxiv.org/abs/2509.11481. Its file is a checkpoint of RLtools in HDF5: layers one after the
other. It observes the position relative to the goal, the rotation matrix, the velocity, the body
rates and its previous action at 100 Hz, and commands rotors, numbered as here, between standstill
and full speed. In PX4, its authors clip the errors of position and velocity to 0.5 m and 1 m/s
(src/modules/mc_raptor); without that, it does not stop a fall that has become fast.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np

from crazyflow_ros.drones import AnyDrone, model_name, resolve
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.extras import extra
from crazyflow_ros.limits import unknown
from crazyflow_ros.policy.checked import (
    MOST_LAYERS,
    ActionNumbers,
    Specification,
    dense,
    gru,
)
from crazyflow_ros.policy.network import Dense, Gru
from crazyflow_ros.policy.observation import Observation
from crazyflow_ros.policy.policy import Policy

FREQ = 100
"""Actions per second."""
_OBSERVATION = Observation(
    ("position_error", "rotation", "velocity_error", "body_rates", "previous_action"),
    largest_errors=(0.5, 1.0),
)
_NEGATED = [*range(3), *range(12, 15)]  # of the drone relative to the goal, not of the goal
_MOST_NUMBERS = 1_000_000  # of an array
_GRU = {
    "input_weights": "weights_input",
    "hidden_weights": "weights_hidden",
    "input_bias": "biases_input",
    "hidden_bias": "biases_hidden",
    "initial": "initial_hidden_state",
}


def read(file: BinaryIO, drone: AnyDrone | None) -> Policy:
    """Return the policy of an open file, for a drone.

    Raises:
        ValueError: It is another kind of file, or no drone is given.
        ModuleNotFoundError: h5py is not installed.
    """
    with extra("foundation"):
        import h5py
    if drone is None:
        raise ValueError("it can fly any drone: name the drone that it flies")
    model = resolve(drone)
    try:
        with h5py.File(file, "r") as content:
            actor = content["actor"]
            groups = [actor["layers"][str(i)] for i in range(len(actor["layers"]))]
            layers = [_layer(i, group) for i, group in enumerate(groups[: MOST_LAYERS + 1])]
    except (KeyError, OSError, RuntimeError, AttributeError) as error:
        raise ValueError(f"it is not an RLtools checkpoint ({error})") from None
    first = layers[0] if layers else None
    if not isinstance(first, Dense) or first.n_in != _OBSERVATION.size:
        raise ValueError(f"the first layer must be dense, with {_OBSERVATION.size} inputs")
    layers[0] = first.replace(weights=first.weights.at[:, np.array(_NEGATED)].multiply(-1))
    half = float(Params.create(model).rotor_vel_limits[1]) / 2
    action = ActionNumbers("rotor_vel", (half,) * 4, (half,) * 4)
    about = "foundation-policy"
    return Specification(_OBSERVATION, action, FREQ, model_name(model), about=about).policy(
        tuple(layers)
    )


def _layer(i: int, group: Any) -> Dense | Gru:
    kind = group.attrs.get("type")
    if kind == "dense":
        weights, bias = (_array(group, name) for name in ("weights", "biases"))
        activation = str(group.attrs.get("activation_function")).lower()
        return dense(str(i), weights, bias.ravel(), activation)
    if kind == "gru":
        return gru(str(i), {own: _array(group, name) for own, name in _GRU.items()})
    raise ValueError(f"layer {i}: {unknown('kind', kind, ('dense', 'gru'))}")


def _array(group: Any, name: str) -> np.ndarray:
    stored = group[name]["parameters"]
    if stored.size > _MOST_NUMBERS or stored.dtype.kind != "f":
        raise ValueError(f"{name} must be at most {_MOST_NUMBERS} numbers, got {stored.size}")
    return np.asarray(stored[()])
