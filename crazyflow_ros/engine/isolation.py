"""Holds drones, for example those whose state has become invalid.

Each drone has its own lane in all arithmetic, so that a NaN in one of them never reaches another.
A drone that is lost keeps the state from before the tick in which it was lost.
"""

from __future__ import annotations

from dataclasses import fields
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import BodyState, split
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.controls import SimControls

# Far beyond what drones reach. NaN propagates through the maximum, and is never below 1.
_LIMITS = {
    "pos": 1e6,  # m
    "quat": 2.0,
    "vel": 1e3,  # m/s
    "ang_vel": 1e3,  # rad/s
    "rotor_vel": 1e6,  # RPM
}


class HoldableControls(SimControls):
    """Controls of drones that can be held."""

    held: Array
    """(N, M, 1) bool: whether the drone is held at rest where it is, with its rotor speeds."""


def _is_sane(state: BodyState, controls: SimControls) -> Array:
    """Return which drones have a valid state and finite controls, shape (N, M)."""
    parts = [jnp.abs(x) / _LIMITS[name] for name, xs in state._asdict().items() for x in xs]
    leaves = [x for x in jax.tree.leaves(controls) if x.ndim == state.pos[0].ndim + 1]
    numbers = [y for x in leaves if jnp.issubdtype(x.dtype, jnp.floating) for y in split(x)]
    # A sum with a number that is not finite is not finite.
    return (reduce(jnp.maximum, parts) < 1) & jnp.isfinite(reduce(jnp.add, numbers))


def keep_held(data: SimData, before: BodyState) -> SimData:
    """Return the data after a tick, with held drones where they were.

    A drone that is lost is held from now on, and its rotors stop.
    """
    after, controls = data.states.components, data.controls
    assert isinstance(controls, HoldableControls)
    was_held = controls.held[..., 0]
    lost = ~was_held & ~_is_sane(after, controls)
    held = was_held | lost

    def kept(name: str) -> Any:
        pairs = zip(getattr(before, name), getattr(after, name))
        return tuple(jnp.where(held, old, new) for old, new in pairs)

    state = BodyState(
        pos=kept("pos"),
        quat=kept("quat"),
        vel=jax.tree.map(lambda x: jnp.where(held, 0, x), after.vel),
        ang_vel=jax.tree.map(lambda x: jnp.where(held, 0, x), after.ang_vel),
        rotor_vel=jax.tree.map(lambda x: jnp.where(lost, 0, x), kept("rotor_vel")),
    )
    return data.replace(
        states=data.states.with_components(state),
        controls=controls.replace(held=held[..., None]),
    )


def make_holdable(sim: Sim) -> None:
    """Change the controls of a simulation so that its drones can be held."""
    controls = sim.data.controls
    if not isinstance(controls, HoldableControls):
        values = {field.name: getattr(controls, field.name) for field in fields(controls)}
        held = jnp.asarray(np.zeros((sim.n_worlds, sim.n_drones, 1), bool))
        sim.data = sim.data.replace(controls=HoldableControls(**values, held=held))
