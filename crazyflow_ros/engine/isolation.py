"""Drones that are held, some of them because their state is no longer one of a drone.

Each drone is a lane of its own in all arithmetic, so that what is not a number in one of them never
reaches another. Here a drone that is lost stays what it was before the tick in which it got lost.
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
from crazyflow_ros.sim.data import SimControls

OUT_OF_SERVICE = -1
"""In place of `armed` or of a level: the drone is held, and follows nothing."""

# What no drone does, by far. What is not a number is the largest of all, and never below.
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
    """(N, M, 1) bool: the drone is kept where it is, at rest, and its rotors keep their speed."""


def _is_sane(state: BodyState, controls: SimControls) -> Array:
    """Which drones have a state that a drone can have, and finite controls, shape (N, M)."""
    parts = [jnp.abs(x) / _LIMITS[name] for name, xs in state._asdict().items() for x in xs]
    leaves = [x for x in jax.tree.leaves(controls) if x.ndim == state.pos[0].ndim + 1]
    numbers = [y for x in leaves if jnp.issubdtype(x.dtype, jnp.floating) for y in split(x)]
    # What is not finite makes every sum so.
    return (reduce(jnp.maximum, parts) < 1) & jnp.isfinite(reduce(jnp.add, numbers))


def keep_held(data: SimData, before: BodyState) -> SimData:
    """Data after a tick, with drones that are held where they were.

    One that gets lost is held from now on, and its rotors stop.
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
    """Let the drones of a simulation be held."""
    controls = sim.data.controls
    if not isinstance(controls, HoldableControls):
        values = {field.name: getattr(controls, field.name) for field in fields(controls)}
        held = jnp.asarray(np.zeros((sim.n_worlds, sim.n_drones, 1), bool))
        sim.data = sim.data.replace(controls=HoldableControls(**values, held=held))
