"""Gains of the controllers that can be changed in flight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.control.modes import Controller

_PID = ("kp", "ki", "kd", "kff")
GAINS: dict[Controller, dict[str, int]] = {
    Controller.mellinger: {
        **dict.fromkeys(("state.kp", "state.kd", "state.ki", "state.int_err_max"), 3),
        **dict.fromkeys(("state.mass", "state.mass_thrust"), 1),
        **dict.fromkeys(("attitude.kR", "attitude.kw", "attitude.ki_m", "attitude.kd_omega"), 3),
        "attitude.int_err_max": 3,
    },
    Controller.pid: {
        **{f"state.{prefix}{gain}": 3 for prefix in ("", "vel_") for gain in _PID},
        "state.vel_max": 3,
        "state.tilt_max": 2,
        **dict.fromkeys(("state.thrust_base", "state.thrust_min"), 1),
        **{f"attitude.{prefix}{gain}": 3 for prefix in ("", "rate_") for gain in _PID},
    },
    Controller.indi: {
        **dict.fromkeys(("state.kp", "state.kd", "attitude.kR", "attitude.kw"), 3),
        "state.tilt_max": 1,
    },
    Controller.brescianini: {
        **dict.fromkeys(("state.tau", "state.zeta"), 3),
        **dict.fromkeys(("state.fairness", "attitude.tau"), 1),
    },
}
"""Sizes of parameters by stage and name, as in `load_params` of the controllers, in SI units."""

Tuned = Mapping[str, Mapping[str, Any]]
"""Gains of a drone by controller and name, as JSON values."""

_TIMES = ("state.tau", "attitude.tau")  # by which the controller divides
_LARGEST = limits.Limit(1e7, "")
_SHORTEST = 1e-3  # s


def check_gain(controller: Controller, name: str, value: ArrayLike) -> np.ndarray:
    """Return a gain as an array.

    Raises:
        ValueError: The controller has no such gain, or the value has another size, is not finite,
            is far too large, or is not positive for a time constant.
    """
    sizes = GAINS.get(controller, {})
    if name not in sizes:
        raise ValueError(f"{controller}: {limits.unknown('gain', name, sizes)}")
    checked = limits.vector(name, np.ravel(value), (sizes[name],), _LARGEST)
    if name in _TIMES and (checked < _SHORTEST).any():
        raise ValueError(f"{name} must be {_SHORTEST:g} s or longer, got {checked.tolist()}")
    return checked
