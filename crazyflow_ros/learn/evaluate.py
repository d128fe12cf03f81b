"""The flights of a policy in `Sim`: how many succeed, and how far from their goals they are."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.envs.beginning import ORIGIN
from crazyflow_ros.envs.environment import Environment
from crazyflow_ros.envs.gates import Race
from crazyflow_ros.envs.tasks import Task
from crazyflow_ros.policy.policy import Policy, PolicyState
from crazyflow_ros.sim import SimData

TOLERANCE = 0.05
"""Distance from the goal [m] that counts as near."""

_MOST = 1_000_000


class Evaluation(NamedTuple):
    """Flights, each until its episode ends or the time is up."""

    time: np.ndarray
    """(T,) s since the start."""
    error: np.ndarray
    """(T, N) m, distance of each flight from its goal; after its end, that at the end."""
    successes: np.ndarray
    """(N,) bool: the task was completed at the end of the flight."""
    gates: np.ndarray | None
    """(N,) gates that were passed, in a `Race`."""

    @property
    def success(self) -> float:
        """Share of the flights that complete their task."""
        return float(self.successes.mean())

    @property
    def near(self) -> float:
        """Share of the flights that end within `TOLERANCE` of their goal."""
        return float((self.error[-1] < TOLERANCE).mean())

    def __str__(self) -> str:
        n, seconds = self.error.shape[1], self.time[-1]
        result = f"{self.success:.1%} of {n} flights succeed within {seconds:g} s; "
        if self.gates is not None:
            return f"{result}gates passed: {self.gates.mean():.2f} on average"
        median, most, all_but_few = np.percentile(self.error[-1], [50, 95, 99])
        return (
            f"{result}{self.near:.1%} end within {100 * TOLERANCE:g} cm of the "
            f"goal, distance: median {100 * median:.1f} cm, 95 % {100 * most:.1f} cm, "
            f"99 % {100 * all_but_few:.1f} cm"
        )


def evaluate(
    policy: Policy,
    task: Task,
    starts: int = 1000,
    seconds: float | None = None,
    seed: int = 0,
    freq: int = 500,
) -> Evaluation:
    """Fly a policy from random starts of a task in `Sim`, with the nominal drone.

    Args:
        policy: The policy.
        task: What it has to do.
        starts: Number of flights.
        seconds: Their longest duration; None for that of the task's episodes.
        seed: Of the starts.
        freq: Physics ticks per second; the policy's rate must divide it.

    Raises:
        ValueError: A number is out of range.
    """
    seconds = task.seconds if seconds is None else seconds
    if not (type(starts) is int and 1 <= starts <= _MOST):
        raise ValueError(f"starts must be from 1 to {_MOST}, got {starts!r}")
    if not (type(seed) is int and seed >= 0):
        raise ValueError(f"seed must be an integer of at least 0, got {seed!r}")
    if not 1 / policy.freq <= seconds <= 600:
        raise ValueError(f"seconds must be from {1 / policy.freq:g} to 600, got {seconds}")
    ticks_per_period(freq, policy.freq, "the rate of the policy")
    env = Environment(
        starts,
        task,
        drone=policy.drone,
        freq=freq,
        action_freq=policy.freq,
        action=policy.action,
        autoreset="disabled",
    )

    def distance(state: SimData) -> Array:
        motion = env.motion(state)
        return jnp.linalg.norm(motion.goal - motion.pos, axis=-1)[:, 0]

    Flying = tuple[SimData, PolicyState, tuple[Array, ...]]

    def act(now: Flying, _: None) -> tuple[Flying, Array]:
        state, memory, (over, success, gates, error) = now
        motion = jax.tree.map(lambda x: x[:, 0], env.motion(state))
        memory, _command = policy.act(memory, motion)
        state, step = env.step(state, memory.action)
        found = (step.success, state.plugins[ORIGIN][:, 0, 0], distance(state))
        kept = [jnp.where(over, old, new) for old, new in zip((success, gates, error), found)]
        return (state, memory, (over | step.terminated, *kept)), kept[-1]

    state, _ = env.reset(jax.random.key(seed))
    no, zero = jnp.zeros(starts, bool), jnp.zeros(starts, state.states.pos.dtype)
    begin = (state, policy.initial_state((starts,)), (no, no, zero, zero))
    n = round(seconds * policy.freq)
    fly = jax.jit(lambda begin: jax.lax.scan(act, begin, None, length=n))
    (_, _, (_, success, gates, _)), error = fly(begin)
    count = np.asarray(gates) if isinstance(task, Race) else None
    time = (np.arange(n) + 1) / policy.freq
    return Evaluation(time, np.asarray(error), np.asarray(success), count)
