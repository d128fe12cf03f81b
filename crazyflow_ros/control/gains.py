"""Gains of the controllers that can be changed in flight."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros import limits
from crazyflow_ros.control.modes import Controller

GAINS: dict[Controller, dict[str, int]] = {
    Controller.mellinger: {
        **dict.fromkeys(("state.kp", "state.kd", "state.ki", "state.int_err_max"), 3),
        **dict.fromkeys(("state.mass", "state.mass_thrust"), 1),
        **dict.fromkeys(("attitude.kR", "attitude.kw", "attitude.ki_m", "attitude.kd_omega"), 3),
        "attitude.int_err_max": 3,
    },
    Controller.pid: {
        **dict.fromkeys(("state.kp", "state.ki", "state.vel_max"), 3),
        **dict.fromkeys(("state.vel_kp", "state.vel_ki"), 3),
        **dict.fromkeys(("state.thrust_base", "state.thrust_min"), 1),
        **dict.fromkeys(("attitude.kp", "attitude.ki", "attitude.kd"), 3),
        **dict.fromkeys(("attitude.rate_kp", "attitude.rate_ki", "attitude.rate_kd"), 3),
    },
}
"""Sizes of parameters by stage and name, as in `load_params` of the controllers, in SI units."""
_LARGEST = limits.Limit(1e7, "")


def check_gain(controller: Controller, name: str, value: ArrayLike) -> np.ndarray:
    """Return a gain as an array.

    Raises:
        ValueError: The controller has no such gain, or it has another size, or is not finite, or
            far too great.
    """
    sizes = GAINS.get(controller, {})
    if name not in sizes:
        known = ", ".join(sizes) or "none"
        raise ValueError(f"{controller} has no gain {name!r} that can be changed, have {known}")
    return limits.vector(name, np.ravel(value), (sizes[name],), _LARGEST)
