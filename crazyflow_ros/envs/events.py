"""Stages for an `EventTerm`, besides those that randomise, such as `randomize_vel` for a push."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.sim import SimData
from crazyflow_ros.sim.randomize import ResetStage, in_worlds


def gust(speed: float) -> ResetStage:
    """Let the wind blow level from any direction, at up to `speed` [m/s].

    Needs dynamics with `wind`.
    """

    def blow(data: SimData, _: SimData, mask: Array) -> SimData:
        key, subkey = jax.random.split(data.core.rng_key)
        share = jax.random.uniform(subkey, (data.core.n_worlds, 1, 2))
        angle, blows = 2 * jnp.pi * share[..., :1], speed * share[..., 1:]
        wind = blows * jnp.concatenate([jnp.cos(angle), jnp.sin(angle), 0 * angle], axis=-1)
        params: Any = data.params
        params = params.replace(wind=in_worlds(mask, wind, params.wind))
        return data.replace(params=params, core=data.core.replace(rng_key=key))

    return blow


def lose_rotor(share: float = 1.0) -> ResetStage:
    """Take a share of its thrust and drag torque from one rotor of each drone.

    Needs dynamics with `rpm2thrust` and `rpm2torque`.
    """

    def lose(data: SimData, _: SimData, mask: Array) -> SimData:
        key, subkey = jax.random.split(data.core.rng_key)
        lead, n = data.states.pos.shape[:2], data.states.rotor_vel.shape[-1]
        lost = jax.random.randint(subkey, (*lead, 1, 1), 0, n) == jnp.arange(n)[:, None]
        params: Any = data.params
        now = {name: getattr(params, name) for name in _OF_ROTORS}
        kept = 1 - share * lost
        changes = {name: in_worlds(mask, x * kept, x) for name, x in now.items()}
        core = data.core.replace(rng_key=key)
        return data.replace(params=params.replace(**changes), core=core)

    return lose


_OF_ROTORS = ("rpm2thrust", "rpm2torque")
