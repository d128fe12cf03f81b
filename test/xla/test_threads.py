"""Kernels for GPUs, computed here without one by JAX."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.envs import Environment, Hover
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.compile import advance, blocks, packed_step
from crazyflow_ros.xla import threads
from crazyflow_ros.xla.threads import WORLDS, in_threads, kernel


def flown(n_worlds, **options):
    sim = Sim(n_worlds, drone="cf2x_L250", dynamics="so_rpy", control="attitude", **options)
    spread = np.random.default_rng(0).normal(size=(n_worlds, sim.n_drones, 4))
    sim.attitude_control([0.05, -0.03, 0.1, 0.33] + 0.02 * spread)
    sim.step(25)
    return sim.data.states


@pytest.fixture
def on_gpu(monkeypatch):
    """Let steps compute their kernels, and return how many they have computed."""
    computed = []

    def interpreting(*args):
        computed.append(args)
        return kernel(*args, interpret=True)

    monkeypatch.setattr(packed_step, "_shared", {})  # steps for which nothing was computed
    monkeypatch.setitem(advance.RUNS, "cpu", blocks.in_threads_or_at_once)
    monkeypatch.setattr(threads, "kernel", interpreting)
    return computed


def test_a_kernel_flies_as_blocks_do(request):
    expected = flown(WORLDS + 3)
    computed = request.getfixturevalue("on_gpu")
    states = flown(WORLDS + 3)
    assert computed
    for name in ("pos", "quat", "vel", "ang_vel"):
        right = np.asarray(getattr(expected, name))
        np.testing.assert_allclose(getattr(states, name), right, rtol=2e-5, atol=1e-5)


def test_a_step_that_is_no_plain_arithmetic_or_too_large_is_computed_at_once(on_gpu, monkeypatch):
    of_scan = flown(3, integrator="rk4")
    monkeypatch.setattr(threads, "_MOST_OPERATIONS", 100)
    too_large = flown(3)
    assert not on_gpu
    np.testing.assert_allclose(of_scan.pos, too_large.pos, atol=1e-4)


def test_drones_and_types_keep_their_places(monkeypatch):
    n = 2 * WORLDS + 1
    x = np.random.default_rng(0).normal(size=(3, n, 2)).astype(np.float32)
    flags, counts = x[:1] > 0, np.arange(n, dtype=np.int32).reshape(1, n, 1)

    def fn(own, shared):
        (a, b, c), (flag,), (count,) = own
        moved = jnp.where(flag, a[:, ::-1] + shared[0][1], b * c)
        return [(moved, c, a), (~flag,), (count + 1,)], []

    given = [jnp.asarray(array) for array in (x, flags, counts)]
    scale = jnp.array([2.0, 3.0])
    monkeypatch.setattr(threads, "kernel", partial(kernel, interpret=True))
    results = in_threads(fn, given, [scale], [0, 1, None])
    expected = [jnp.stack(rows) for rows in fn([tuple(a) for a in given], [scale])[0]]
    for result, right in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, right)


def test_sums_over_worlds_are_left_to_others():
    own = [np.ones((2, 5, 1), np.float32)]

    def fn(own, shared):
        return [own[0]], [own[0][0].sum()]

    assert in_threads(fn, own, [], [0]) is None


def lowered_for_cuda(fn, *args):
    text = jax.jit(fn).trace(*args).lower(lowering_platforms=("cuda",)).as_text()
    assert "xla_cpu" not in text and "callback" not in text
    return text


def test_the_form_of_a_kernel_follows_the_platform_that_is_compiled_for():
    """On this machine, whether it has a GPU or not."""
    n, triton = 5 * blocks.LANES, "custom_call @__gpu$xla.gpu.triton"
    sim = Sim(n, dynamics="so_rpy", control="attitude")
    of_threads = lowered_for_cuda(sim.build_step_fn(), sim.data, np.int32(7))
    assert of_threads.count(triton) == 1
    assert "stablehlo.while" not in of_threads
    block = f"tensor<1x{blocks.LANES}x1xf32>"
    assert block not in of_threads
    # What a thread cannot compute is a loop of ticks, each of all worlds at once.
    sim = Sim(n, dynamics="so_rpy", control="attitude", integrator="rk4")
    at_once = lowered_for_cuda(sim.build_step_fn(), sim.data, np.int32(7))
    assert triton not in at_once and block not in at_once
    assert "stablehlo.while" in at_once
    on_cpu = jax.jit(sim.build_step_fn()).lower(sim.data, np.int32(7)).as_text()
    assert block in on_cpu and "xla_cpu" in on_cpu


def test_a_step_of_an_environment_for_cuda_has_no_kernel_of_the_cpu():
    env = Environment(2 * blocks.LANES, Hover(), freq=100)
    state = env.before_episodes(jax.random.key(0))
    lowered_for_cuda(env.step, state, np.zeros((env.num_envs, 4), np.float32))
