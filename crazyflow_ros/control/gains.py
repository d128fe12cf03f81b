"""Gains of the controllers that can be changed in flight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.control import Controller

Tuned = Mapping[str, Mapping[str, Any]]
"""Gains of a drone by controller and name, as JSON values."""

_TIME = "tau"  # name of a time constant, by which the controller divides
_LARGEST = limits.Limit(1e7, "")
_SHORTEST = 1e-3  # s


def check_gain(controller: Controller, name: str, value: ArrayLike) -> np.ndarray:
    """Return a gain as an array.

    Raises:
        ValueError: The controller has no such gain, or the value has another size, is not finite,
            is far too large, or is not positive for a time constant.
    """
    sizes = controller.cascade.GAINS
    if name not in sizes:
        raise ValueError(f"{controller}: {limits.unknown('gain', name, sizes)}")
    checked = limits.vector(name, np.ravel(value), (sizes[name],), _LARGEST)
    if name.endswith(f".{_TIME}") and (checked < _SHORTEST).any():
        raise ValueError(f"{name} must be {_SHORTEST:g} s or longer, got {checked.tolist()}")
    return checked
