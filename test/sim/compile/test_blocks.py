"""Worlds in blocks: the same flights as world by world, whatever the stages are made of."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.control import Control
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.compile.ticks import Ticks

N, M = 301, 2  # five blocks of 61 worlds, of which the last is not full


def disturbed(sim: Sim) -> Sim:
    """Each drone in a state of its own."""
    rng, states = np.random.default_rng(0), sim.data.states
    pos = rng.normal(size=states.pos.shape) + np.array([0, 0, 50])
    sim.data = sim.data.replace(
        states=states.replace(
            pos=jnp.asarray(pos, states.pos.dtype),
            ang_vel=jnp.asarray(rng.normal(size=states.ang_vel.shape), states.pos.dtype),
        )
    )
    return sim


def world(data: SimData, flags: list[bool], i: int) -> SimData:
    leaves, treedef = jax.tree.flatten(data)
    own = [x[i : i + 1] if flag else x for x, flag in zip(leaves, flags)]
    data = jax.tree.unflatten(treedef, own)
    return data.replace(core=data.core.replace(n_worlds=1))


def assert_close(a: SimData, b: SimData) -> None:
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        if not jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5 * (1 + np.abs(y).max()))


@pytest.mark.parametrize("together", [True, False])
def test_packing_loses_nothing(together: bool) -> None:
    sim = disturbed(Sim(N, M, control="state"))
    owned = sim._worlds.owned(sim.data)
    ticks = Ticks(sim.step_pipeline[0], lambda _, data: data, sim.data, owned, together)
    unpacked = jax.jit(lambda data: ticks.unpack(ticks.pack(data)))(sim.data)
    leaves = jax.tree.leaves_with_path(sim.data)
    for i, leaf in unpacked.items():
        np.testing.assert_array_equal(leaf, leaves[i][1])
    names = {jax.tree_util.keystr(leaves[i][0]) for i in unpacked}
    assert {
        ".controls.state.memory['integral']",
        ".controls.attitude.cmd",
    } < names  # of the first stage
    assert ".controls.state.cmd" in names and ".states.pos" not in names


def fly(sim: Sim) -> SimData:
    command = np.random.default_rng(1).uniform(12_000, 20_000, (sim.n_worlds, M, 4))
    sim.step(2)
    sim.rotor_vel_control(command)  # on packed data
    sim.step(7)
    return sim.data


def test_blocks_fly_like_worlds_alone() -> None:
    sim = disturbed(Sim(N, M, control="rotor_vel"))
    start, flags = sim.data, sim._worlds.owned(sim.data)
    # Masses of their own: parameters with a world axis are cut into blocks, too.
    mass = start.params.mass * jnp.linspace(0.9, 1.1, N)[:, None, None]
    start = start.replace(params=start.params.replace(mass=mass))
    sim.data = start
    flown = fly(sim)
    command = np.asarray(flown.controls.rotor_vel)

    alone = Sim(1, M, control="rotor_vel")
    for i in (0, 60, 61, N - 1):
        data = world(start, flags, i)
        alone.data = data.replace(
            params=data.params.replace(mass=start.params.mass[i]),
            core=alone.data.core,
        )
        alone.step(2)
        alone.rotor_vel_control(command[i : i + 1])
        alone.step(7)
        expected = world(flown, flags, i)
        assert_close(alone.data.states, expected.states)


def matrix_product(data: SimData) -> SimData:
    turned = data.states.vel @ jnp.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1]])
    return data.replace(states=data.states.replace(vel=turned))


def random_wind(data: SimData) -> SimData:
    key, subkey = jax.random.split(data.core.rng_key)
    gust = jax.random.normal(subkey, data.states.force.shape)
    return data.replace(states=data.states.replace(force=gust), core=data.core.replace(rng_key=key))


def unread_key(data: SimData) -> SimData:
    jax.random.key_data(data.core.rng_key)
    return data


@pytest.mark.parametrize("stage", [matrix_product, random_wind, unread_key])
def test_any_stage_steps_as_if_called_one_after_the_other(
    stage: Callable[[SimData], SimData],
) -> None:
    sim = disturbed(Sim(3, M, control="rotor_vel"))
    sim.step_pipeline = (stage, *sim.step_pipeline)
    expected = sim.data
    for _ in range(3):
        for each in sim.step_pipeline:
            expected = each(expected)
    sim.step(3)
    assert_close(sim.data.states, expected.states)


def test_a_pipeline_may_leave_most_data_unread() -> None:
    sim = disturbed(Sim(N, M, control="rotor_vel"))
    sim.step_pipeline = (
        lambda data: data.replace(states=data.states.replace(pos=data.states.pos + 1)),
    )
    before = sim.data.states.pos
    sim.step(4)
    np.testing.assert_allclose(sim.data.states.pos, before + 4, rtol=1e-6)


# A state command goes through all controllers but that of body rates.
@pytest.mark.parametrize(
    ("control", "n_worlds"),
    [
        (Control.state, 130),
        (Control.rotor_vel, 130),
        pytest.param(Control.state, 1, marks=pytest.mark.soak),
        pytest.param(Control.body_rate, 130, marks=pytest.mark.soak),
    ],
)
def test_one_kernel_computes_what_the_stages_do(control: Control, n_worlds: int) -> None:
    sim = Sim(n_worlds, 1, control=control, integrator="rk4")
    getattr(sim, f"{control}_control")(
        np.random.default_rng(2).uniform(0.1, 0.4, (n_worlds, 1, control.sizes[0]))
    )
    expected = sim.data
    for _ in range(3):
        for stage in sim.step_pipeline:
            expected = jax.jit(stage)(expected)
    sim.step(3)
    assert_close(sim.data.states, expected.states)
