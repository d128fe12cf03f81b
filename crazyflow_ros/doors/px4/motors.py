"""PX4's outputs and our rotors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crazyflow_ros.dynamics.first_principles import RPM, Params

ORDER = (0, 3, 1, 2)
"""Outputs of PX4's quadrotor X for our rotors front right, rear right, rear left, front left."""
_ROUNDING = 1e-3


class Motors:
    """Speed controllers and motors of a drone: speed is proportional to the output.

    An output of 1 gives the speed of the greatest thrust. So do PX4's own motor models in Gazebo;
    thrust grows about with the square of the output.

    Args:
        drone_model: Model of the drone.

    Attributes:
        fastest: Speed of an output of 1 [rad/s].
    """

    def __init__(self, drone_model: str) -> None:
        self.fastest = float(Params.figures(drone_model)["rotor_vel_limits"][1] * RPM)

    def speeds(self, controls: Sequence[float]) -> np.ndarray:
        """Return the speeds of our rotors [rad/s], shape (4,).

        Args:
            controls: PX4's outputs, of which the first four are used.

        Raises:
            ValueError: One of them is not from 0 to 1.
        """
        outputs = np.array(controls)[list(ORDER)]
        if not ((outputs >= -_ROUNDING) & (outputs <= 1 + _ROUNDING)).all():
            raise ValueError(f"outputs of motors must be from 0 to 1, got {list(controls[:4])}")
        return outputs.clip(0.0, 1.0) * self.fastest
