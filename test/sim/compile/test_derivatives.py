"""Derivatives and batches of a step: those of the same ticks in plain JAX, in double precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.functional import attitude_control

N, M, TICKS = 3, 2, 2
Flight = Callable[..., Array]


@pytest.fixture(scope="module")
def sim() -> Any:
    with jax.enable_x64(True):
        yield Sim(N, M, control="attitude", dynamics="so_rpy_rotor")


def flights(sim: Sim) -> tuple[Flight, Flight]:
    """The final positions as a function of command, mass and first position: ours and plain."""
    step, stages = sim.build_step_fn(), sim.step_pipeline

    def flight(advance: Callable[..., Any]) -> Flight:
        def fly(cmd: Array, mass: Array, pos: Array) -> Array:
            data = sim.data
            data = data.replace(
                params=data.params.replace(mass=mass),
                states=data.states.replace(pos=data.states.pos + pos),
            )
            return jnp.asarray(advance(attitude_control(data, cmd)).states.pos)

        return fly

    def plain(data: Any) -> Any:
        for _ in range(TICKS):
            for stage in stages:
                data = stage(data)
        return data

    return flight(lambda data: step(data, TICKS)), flight(plain)


def values(sim: Sim) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    cmd = rng.uniform(-0.2, 0.2, (N, M, 4)) + np.array([0, 0, 0, 0.3])
    return jnp.asarray(cmd), sim.data.params.mass * 1.1, jnp.asarray(rng.normal(size=(N, M, 3)))


def loss(fly: Flight) -> Flight:
    return lambda *args: (fly(*args) ** 2).sum()


def pulled(fly: Flight, at: tuple[Array, ...]) -> Any:
    return jax.grad(loss(fly), (0, 1, 2))(*at)


def in_scan(fly: Flight, at: tuple[Array, ...]) -> Any:
    cmd, mass, pos = at

    def final(cmd: Array) -> Array:
        last, _ = jax.lax.scan(lambda p, _: (fly(cmd, mass, p), None), pos, None, length=3)
        return (last**2).sum()

    return jax.grad(final)(cmd)


def many_commands(fly: Flight, at: tuple[Array, ...]) -> Any:
    cmd, mass, pos = at
    return jax.vmap(fly, (0, None, None))(jnp.stack([cmd, cmd * 1.1]), mass, pos)


def many_masses(fly: Flight, at: tuple[Array, ...]) -> Any:
    cmd, mass, pos = at
    return jax.vmap(fly, (None, 0, None))(cmd, jnp.stack([mass, mass * 1.1]), pos)


def many_gradients(fly: Flight, at: tuple[Array, ...]) -> Any:
    cmd, mass, pos = at
    return jax.vmap(jax.grad(loss(fly)), (0, None, None))(jnp.stack([cmd, cmd * 1.1]), mass, pos)


def forward_jacobian(fly: Flight, at: tuple[Array, ...]) -> Any:
    return jax.jacfwd(fly)(*at)


def second_derivative(fly: Flight, at: tuple[Array, ...]) -> Any:
    cmd, mass, pos = at
    return jax.hessian(lambda x: loss(fly)(cmd + x, mass, pos))(jnp.asarray(0.0))


def gradient_of_gradient(fly: Flight, at: tuple[Array, ...]) -> Any:
    cmd, mass, pos = at
    return jax.grad(jax.grad(lambda x: loss(fly)(cmd + x, mass, pos)))(jnp.asarray(0.0))


@pytest.mark.parametrize(
    "transformation",
    [
        pulled,
        in_scan,
        many_commands,
        many_masses,
        forward_jacobian,
        second_derivative,
        pytest.param(many_gradients, marks=pytest.mark.soak),
        pytest.param(gradient_of_gradient, marks=pytest.mark.soak),
    ],
)
def test_transformations_of_a_step_are_those_of_its_ticks(
    sim: Sim, transformation: Callable[[Flight, tuple[Array, ...]], Any]
) -> None:
    with jax.enable_x64(True):
        ours, plain = flights(sim)
        at = values(sim)
        computed, expected = (jax.jit(partial(transformation, f))(at) for f in (ours, plain))
        for a, b in zip(jax.tree.leaves(computed), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


def test_a_policy_that_acts_at_each_tick_has_the_gradient_of_its_ticks(sim: Sim) -> None:
    """Also by what a tick overwrites without reading it: the input of the dynamics."""
    with jax.enable_x64(True):
        step, stages, data = sim.build_step_fn(), sim.step_pipeline, sim.data

        def plain(data: Any, _: int) -> Any:
            for stage in stages:
                data = stage(data)
            return data

        def cost(advance: Callable[[Any, int], Any], gains: Array, first: Array) -> Array:
            def act(data: Any, _: None) -> tuple[Any, Array]:
                seen = jnp.concatenate([data.states.pos, data.states.vel], axis=-1)
                data = advance(attitude_control(data, hover + seen @ gains), 1)
                return data, (data.states.pos**2).sum() + (data.controls.actuators**3).sum()

            controls = data.controls.replace(actuators=first)
            after, costs = jax.lax.scan(act, data.replace(controls=controls), length=3)
            return costs.sum() + (after.states.rotor_vel**2).sum()

        hover, gains = values(sim)[0], jnp.full((6, 4), 0.01)
        at = gains, data.controls.actuators
        ours, expected = (jax.jit(jax.grad(partial(cost, fn), (0, 1)))(*at) for fn in (step, plain))
        for a, b in zip(ours, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        assert np.any(ours[0], axis=0).all() and not np.any(ours[1])
        none = jax.jit(step)(data, jnp.asarray(0))
        jax.tree.map(np.testing.assert_array_equal, none.controls, data.controls)


def gradient(n_worlds: int) -> Callable[[np.ndarray], Array]:
    """The gradient of the final speeds by the command, float32."""
    sim = Sim(n_worlds, control="attitude", dynamics="so_rpy")
    step, data = sim.build_step_fn(), sim.data
    fly = lambda cmd: step(attitude_control(data, cmd), 100).states.vel  # noqa: E731
    return jax.jit(jax.grad(lambda cmd: (fly(cmd) ** 2).sum()))


def test_blocks_have_the_gradient_of_each_world_alone() -> None:
    """257 worlds do not fill their blocks; data of 1,024 worlds are large constants."""
    of_one = gradient(1)
    for n_worlds in (257, 1024):
        cmd = np.zeros((n_worlds, 1, 4), np.float32) + np.array([0, 0, 0, 0.3], np.float32)
        cmd[:, 0, 0] = np.linspace(-0.3, 0.3, n_worlds)
        together = gradient(n_worlds)(cmd)
        for i in (0, n_worlds // 2, n_worlds - 1):
            expected = of_one(cmd[i : i + 1])
            np.testing.assert_allclose(together[i], expected[0], rtol=1e-4, atol=1e-6)


def test_a_gradient_over_a_number_of_ticks_that_is_not_known_is_refused() -> None:
    sim = Sim(1, control="attitude", dynamics="so_rpy")
    step = sim.build_step_fn()
    with pytest.raises(TypeError, match="needs a number of ticks that is known"):
        jax.grad(
            lambda x: step(
                sim.data.replace(states=sim.data.states.replace(pos=sim.data.states.pos + x)),
                jnp.asarray(3),
            ).states.pos.sum()
        )(0.0)


def test_a_gradient_of_a_step_lowers_for_a_gpu_without_kernels_of_the_cpu() -> None:
    sim = Sim(256, control="attitude", dynamics="so_rpy")
    step, data = sim.build_step_fn(), sim.data

    def loss(cmd: Array) -> Array:
        return step(attitude_control(data, cmd), 5).states.pos.sum()

    lowered = jax.jit(jax.grad(loss)).trace(jnp.zeros((256, 1, 4)))
    assert "xla_cpu" not in lowered.lower(lowering_platforms=("cuda",)).as_text()
