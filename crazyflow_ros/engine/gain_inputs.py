"""Gains, and parameters that drones draw, as arguments of the compiled function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from jax import Array

from crazyflow_ros.engine.form import gain_columns
from crazyflow_ros.sim.controls import SimControls
from crazyflow_ros.sim.data import SimData

Controls = TypeVar("Controls", bound=SimControls)
DRAWN = "params."
"""How the names of drawn parameters begin among those of gains."""


def found_gains(controls: SimControls) -> dict[str, np.ndarray]:
    """Return the gains of the position and attitude controller by name, see `Cascade`."""
    found = {}
    levels = {"state": controls.state, "attitude": controls.attitude}
    for stage, level in levels.items():
        if level is not None:
            for name in level.controller.cascade.GAINS:
                of, _, gain = name.partition(".")
                if of == stage:
                    found[name] = np.asarray(level.params[gain])
    return found


def with_gains(data: SimData, names: Mapping[str, np.ndarray], gains: Array) -> SimData:
    """Return data with other gains, and with other parameters, whose names begin with `DRAWN`.

    Args:
        data: Data of one world.
        names: The result of `found_gains`, and the parameters that are drawn.
        gains: (M, k) gains of each drone, side by side in the order of `names`.
    """
    params: dict[str, dict[str, Array]] = {}
    drawn: dict[str, Array] = {}
    for name, column in gain_columns(names).items():
        if name.startswith(DRAWN):
            values = gains[:, column].reshape(1, -1, *names[name].shape)
            drawn[name.removeprefix(DRAWN)] = values
            continue
        stage, _, gain = name.partition(".")
        values = gains[None, :, column]
        params.setdefault(stage, {})[gain] = values if names[name].ndim else values[..., 0]
    data = data.replace(controls=_with_params(data.controls, params))
    return data.replace(params=data.params.replace(**drawn)) if drawn else data


def with_params_of(controls: Controls, others: SimControls) -> Controls:
    """Return controls with the parameters of other controls."""
    levels = {stage: getattr(others, stage) for stage in ("state", "attitude")}
    return _with_params(controls, {s: level.params for s, level in levels.items() if level})


def _with_params(controls: Controls, params: Mapping[str, Mapping[str, Array]]) -> Controls:
    changed = {}
    for stage, new in params.items():
        level = getattr(controls, stage)
        changed[stage] = level.replace(params={**level.params, **new})
    return controls.replace(**changed)
