"""Files of the package foundation-policy: RAPTOR, which flies any quadrotor.

Eschmann et al., "RAPTOR: A Foundation Policy for Quadrotor Control",
https://arxiv.org/abs/2509.11481. Its file is a checkpoint of RLtools in HDF5: layers one after the
other. It observes the position relative to the goal, the rotation matrix, the velocity, the body
rates and its previous action at 100 Hz, and commands rotors, numbered as here, between standstill
and full speed. In PX4, its authors clip the errors of position and velocity to 0.5 m and 1 m/s
(src/modules/mc_raptor); without that, it does not stop a fall that has become fast.
"""

from __future__ import annotations

import numpy as np

from crazyflow_ros.drones import AnyDrone, model_name, resolve
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.extras import require
from crazyflow_ros.policy.checked import ActionNumbers, Specification
from crazyflow_ros.policy.foreign import read_network
from crazyflow_ros.policy.network import Dense
from crazyflow_ros.policy.observation import Observation
from crazyflow_ros.policy.policy import Policy

FREQ = 100
"""Actions per second."""
_OBSERVATION = Observation(
    ("position_error", "rotation", "velocity_error", "body_rates", "previous_action"),
    largest_errors=(0.5, 1.0),
)
_NEGATED = [*range(3), *range(12, 15)]  # of the drone relative to the goal, not of the goal


def read(content: bytes, drone: AnyDrone | None) -> Policy:
    """Return the policy in the content of a file, for a drone.

    Raises:
        ValueError: It is another kind of file, or no drone is given.
        ModuleNotFoundError: h5py is not installed.
    """
    require("foundation")
    if drone is None:
        raise ValueError("it can fly any drone: name the drone that it flies")
    model = resolve(drone)
    layers, _ = read_network("rltools", content)
    first, *others = layers
    if not isinstance(first, Dense) or first.n_in != _OBSERVATION.size:
        raise ValueError(f"the first layer must be dense, with {_OBSERVATION.size} inputs")
    first = first.replace(weights=first.weights.at[:, np.array(_NEGATED)].multiply(-1))
    half = float(Params.create(model).rotor_vel_limits[1]) / 2
    action = ActionNumbers("rotor_vel", (half,) * 4, (half,) * 4)
    about = "foundation-policy"
    return Specification(_OBSERVATION, action, FREQ, model_name(model), about=about).policy(
        (first, *others)
    )
