"""Calls of `Sim`'s interface in any order, with any numbers: nothing becomes NaN or stale.

A few sequences; `pytest --hypothesis-profile=thorough` tries 10,000.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crazyflow_ros.sim import Sim

N, M = 2, 2
NUMBERS = st.one_of(
    st.sampled_from([0.0, -9.81, 1.0]),
    st.floats(-30, 30, width=32),
    st.floats(-1e9, 1e9, width=32),
    st.floats(width=32),
)


def numbers(*shape: int, values: st.SearchStrategy[float] = NUMBERS) -> st.SearchStrategy[Any]:
    size = int(np.prod(shape))
    flat = st.lists(values, min_size=size, max_size=size)
    return flat.map(lambda v: np.array(v, np.float32).reshape(shape))


MODERATE = st.floats(-3, 3, width=32)
CALLS = st.one_of(
    st.tuples(st.just("command"), numbers(N, M, 4)),
    st.tuples(st.just("command"), numbers(N, M, 13)),
    st.tuples(st.just("command"), numbers(N, M, 16)),
    st.tuples(st.just("step"), st.integers(-1, 60)),
    st.tuples(st.just("reset"), st.none() | st.lists(st.booleans(), min_size=1, max_size=3)),
    st.tuples(st.just("place"), numbers(N, M, 3, values=MODERATE)),
    st.tuples(st.just("push"), numbers(N, M, 3, values=MODERATE)),
    st.tuples(st.just("arm"), st.lists(st.booleans(), min_size=N * M, max_size=N * M)),
    st.tuples(st.just("contacts"), st.none()),
    st.tuples(st.just("seed"), st.integers(0, 9)),
)


@cache
def simulation(control: str) -> Sim:
    return Sim(N, M, control=control)


def call(sim: Sim, name: str, value: Any) -> None:
    """One call; raises ValueError if the simulation refuses it."""
    states = sim.data.states
    match name:
        case "command":
            getattr(sim, f"{sim.control}_control")(value)
        case "step" | "reset" | "seed":
            getattr(sim, name)(value)
        case "place":
            sim.data = sim.data.replace(states=states.replace(pos=jnp.asarray(value)))
        case "push":
            sim.data = sim.data.replace(states=states.replace(force=jnp.asarray(value) / 10))
        case "arm":
            armed = jnp.array(value).reshape(N, M, 1)
            sim.data = sim.data.replace(controls=sim.data.controls.replace(armed=armed))
        case "contacts":
            check_contacts(sim)


def check_contacts(sim: Sim) -> None:
    """Each drone's collision sphere against the floor and the other's."""
    touching, states = np.asarray(sim.contacts()), sim.data.states
    contact = sim.mjx_data._impl.contact
    sphere, model = [sim.mj_model.geom(f"col_sphere:{i}") for i in range(M)], sim.mj_model
    floor = [i for i in range(model.ngeom) if model.geom_type[i] == mujoco.mjtGeom.mjGEOM_PLANE]
    x, y, z, w = np.moveaxis(np.asarray(states.quat, float), -1, 0)
    up = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], -1)
    centre = np.asarray(states.pos, float) + up * sphere[0].pos[2]
    radius = sphere[0].size[0]
    for world in range(N):
        pairs = zip(contact.geom1[world], contact.geom2[world], touching[world])
        for first, second, seen in pairs:
            geoms = {int(first), int(second)}
            drones = [i for i in range(M) if sphere[i].id in geoms]
            if len(drones) == 2:
                gap = np.linalg.norm(centre[world, 0] - centre[world, 1]) - 2 * radius
            elif len(drones) == 1 and geoms & set(floor):
                gap = centre[world, drones[0], 2] - radius
            else:
                continue
            assert abs(gap) < 1e-4 or seen == (gap < 0), (world, geoms, gap)


@pytest.mark.parametrize("control", ["state", "force_torque"])
@given(calls=st.lists(CALLS, max_size=12))
def test_any_calls_leave_finite_numbers_and_fresh_contacts(
    control: str, calls: list[tuple[str, Any]]
) -> None:
    sim = simulation(control)
    sim.reset()
    for name, value in calls:
        before = jax.tree.leaves(sim.data.states)
        try:
            call(sim, name, value)
        except ValueError:
            after = jax.tree.leaves(sim.data.states)
            assert all((a == b).all() for a, b in zip(before, after))
        for leaf in jax.tree.leaves(sim.data):
            if jnp.issubdtype(leaf.dtype, jnp.floating):
                assert np.isfinite(leaf).all(), (name, value)
    sim.step()
    check_contacts(sim)
