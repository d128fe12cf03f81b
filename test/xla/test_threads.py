"""Kernels for GPUs, computed here without one by JAX."""

import jax
import numpy as np
import pytest

from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.compile import blocks
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

    def interpreted(own, shared, *, cuda, default):
        computed.append(default)
        return cuda(own, shared)

    def interpreting(*args):
        return kernel(*args, interpret=True)

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax.lax, "platform_dependent", interpreted)
    monkeypatch.setattr(blocks, "has_kernels_of_threads", lambda: True)
    monkeypatch.setattr(threads, "kernel", interpreting)
    return computed


@pytest.mark.parametrize(("n_worlds", "n_drones"), [(WORLDS + 3, 1), (3, 2)])
def test_a_kernel_flies_as_blocks_do(n_worlds, n_drones, request):
    expected = flown(n_worlds, n_drones=n_drones)
    computed = request.getfixturevalue("on_gpu")
    states = flown(n_worlds, n_drones=n_drones)
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


def test_sums_over_worlds_are_left_to_others():
    own = [np.ones((2, 5, 1), np.float32)]

    def fn(own, shared):
        return [own[0]], [own[0][0].sum()]

    assert in_threads(fn, own, [], [0], lambda own, _: own) is None
