"""Worlds divided among the cores of the CPU: the same flights, to the bit."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

import crazyflow_ros.envs  # noqa: F401  the names of its environments
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.compile import cores
from crazyflow_ros.sim.compile.cores import on_each_core, parts_of

N = 512

UseCores = Callable[[int], None]


@pytest.fixture
def use_cores(monkeypatch: pytest.MonkeyPatch) -> UseCores:
    """Set the number of cores, which divide smaller batches than usual."""
    monkeypatch.setattr(cores, "LEAST", 128)
    return lambda n: monkeypatch.setattr(cores, "n_cores", lambda: n)


def n_parts(sim: Sim) -> int:
    return len(sim._live._parts)


def leaves(sim: Sim) -> list[np.ndarray]:
    data = sim.data
    read = data.states, data.states_deriv, data.controls, data.core.steps
    return [np.asarray(x) for x in jax.tree.leaves(read)]


def test_worlds_are_divided_evenly_if_they_are_many(use_cores: UseCores) -> None:
    use_cores(4)
    assert parts_of(512, 1) == [slice(i, i + 128) for i in (0, 128, 256, 384)]
    assert parts_of(128, 4) == [slice(i, i + 32) for i in (0, 32, 64, 96)]
    assert parts_of(510, 1) == [slice(i, i + 170) for i in (0, 170, 340)]
    assert parts_of(255, 1) == [slice(0, 255)]  # too few
    assert parts_of(509, 1) == [slice(0, 509)]  # prime
    assert parts_of(1, 2000) == [slice(0, 1)]
    use_cores(1)
    assert parts_of(512, 1) == [slice(0, 512)]


def test_cores_fly_the_bits_of_one_core(use_cores: UseCores) -> None:
    """In state control, in which controllers remember something for each world."""
    command = np.linspace(1, 6, N, dtype=np.float32)[:, None, None].repeat(16, axis=2)

    def fly(n: int) -> list[list[np.ndarray]]:
        use_cores(n)
        sim, found = Sim(n_worlds=N, control="state"), []
        sim.state_control(command)
        sim.step(10)
        assert n_parts(sim) == n
        kept = sim.data  # further steps do not change what somebody holds
        before = leaves(sim)
        sim.step(3)
        found += [before, leaves(sim)]
        sim.state_control(jax.numpy.asarray(command[::-1]))
        sim.step(3)
        assert np.array_equal(kept.states.pos, before[0])
        sim.reset(np.arange(N) % 3 == 0)
        sim.step(5)
        found.append(leaves(sim))
        sim.data = sim.data.replace(states=kept.states)
        sim.step(5)
        found.append(leaves(sim))
        return found

    for one, two in zip(fly(1), fly(2), strict=True):
        assert all(np.array_equal(*pair) for pair in zip(one, two, strict=True))
        assert all(np.isfinite(array).all() for array in two)


@pytest.mark.parametrize(
    "autoreset", [pytest.param("next_step", marks=pytest.mark.soak), "same_step"]
)
def test_environments_give_the_results_of_one_core(use_cores: UseCores, autoreset: str) -> None:
    def fly(n: int) -> list[tuple[Any, ...]]:
        use_cores(n)
        options = {"max_episode_steps": 4, "autoreset": autoreset, "dynamics": "so_rpy"}
        env = gymnasium.make_vec("crazyflow_ros/Reach-v0", num_envs=N, **options)
        first, _ = env.reset(seed=1)
        env.action_space.seed(1)
        steps = [(first,), *(env.step(env.action_space.sample()) for _ in range(10))]
        assert n_parts(env.unwrapped.sim) == n
        return steps

    one, two = fly(1), fly(4)
    held = [np.array(x) for x in two[5][:4]]
    for a, b in zip(one, two, strict=True):
        assert all(np.array_equal(*pair) for pair in zip(a[:4], b[:4], strict=True))
    assert all(np.array_equal(*pair) for pair in zip(held, two[5]))
    with pytest.raises(ValueError, match="read-only"):
        two[-1][0][0] = 0
    assert any(step[3].any() for step in two[1:])


def test_the_precision_is_that_of_the_caller(use_cores: UseCores) -> None:
    use_cores(2)
    with jax.enable_x64(True):
        sim = Sim(n_worlds=N, control="rotor_vel")
        sim.rotor_vel_control(np.full((N, 1, 4), 1e4))
        sim.step(100)
        assert n_parts(sim) == 2
        t = 100 / sim.freq
        falls = np.asarray(sim.data.states.vel[..., 2])
        assert falls.dtype == np.float64 and np.ptp(falls) == 0 and -9.81 * t < falls[0, 0]
    with pytest.raises(ValueError, match="double precision"):
        sim.step()


def test_random_numbers_that_worlds_share_are_drawn_by_one_core(use_cores: UseCores) -> None:
    use_cores(2)

    def draw(data: Any) -> Any:
        key, subkey = jax.random.split(data.core.rng_key)
        pos = data.states.pos + jax.random.normal(subkey, data.states.pos.shape)
        return data.replace(
            core=data.core.replace(rng_key=key), states=data.states.replace(pos=pos)
        )

    sim = Sim(n_worlds=N, control="rotor_vel")
    sim.step_pipeline = (*sim.step_pipeline, draw)
    sim.step()
    assert n_parts(sim) == 1
    assert len(np.unique(sim.data.states.pos)) > 1000


def test_an_error_waits_until_all_parts_have_ended() -> None:
    raised, ended = threading.Event(), threading.Event()

    def part(i: int) -> None:
        if i == 0:
            raised.set()
            raise ValueError("of the first part")
        assert raised.wait(60)
        ended.set()

    with pytest.raises(ValueError, match="of the first part"):
        on_each_core(part, 2)
    assert ended.is_set()


IN_ANOTHER_PROCESS = f"""
import os, signal, threading
import numpy as np
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.compile import cores

# Threads are there after a fork.
cores.on_each_core(lambda i: None, 2)
child = os.fork()
cores.on_each_core(lambda i: None, 2)
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0

# An interrupted step loses nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells ignore for background jobs
for n_cores in (1, 2):
    cores.LEAST, cores.n_cores = 128, lambda: n_cores
    sim = Sim(n_worlds={N}, control="rotor_vel")
    sim.step()
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    interrupted = False
    try:
        for _ in range(100):
            sim.step(10_000)
    except KeyboardInterrupt:
        interrupted = True
    assert interrupted
    (ticks,) = np.unique(sim.data.core.steps)
    assert ticks % 10_000 == 1
    sim.step(2)
    assert (np.asarray(sim.data.core.steps) == ticks + 2).all()
    assert np.isfinite(sim.data.states.pos).all()
"""


def test_forks_have_their_threads_and_an_interrupted_step_loses_nothing() -> None:
    subprocess.run([sys.executable, "-c", IN_ANOTHER_PROCESS], check=True, timeout=240)
