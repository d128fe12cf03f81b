"""The flights of a policy in `Sim`: how many reach their goal, and how well they hold it."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.learn.flight import Flights, Start, Task
from crazyflow_ros.policy.observation import Motion
from crazyflow_ros.policy.policy import Policy, PolicyState
from crazyflow_ros.sim import Sim, SimData, functional

TOLERANCE = 0.05
"""Distance from the goal [m] at which a flight counts as successful."""

_HEIGHT = 20.0  # m, of the goal above the floor
_MOST = 1_000_000


class Evaluation(NamedTuple):
    """Distances from the goal."""

    time: np.ndarray
    """(T,) s since the start."""
    error: np.ndarray
    """(T, N) m, of each flight."""

    @property
    def success(self) -> float:
        """Share of the flights that end within `TOLERANCE`."""
        return float((self.error[-1] < TOLERANCE).mean())

    def __str__(self) -> str:
        median, most, all_but_few = np.percentile(self.error[-1], [50, 95, 99])
        return (
            f"{self.success:.1%} of {self.error.shape[1]} flights within {100 * TOLERANCE:g} cm "
            f"after {self.time[-1]:g} s; distance: median {100 * median:.1f} cm, "
            f"95 % {100 * most:.1f} cm, 99 % {100 * all_but_few:.1f} cm"
        )


def evaluate(
    policy: Policy,
    task: Task,
    starts: int = 1000,
    seconds: float = 5.0,
    seed: int = 0,
    start: Start | None = None,
    freq: int = 500,
) -> Evaluation:
    """Fly a policy from random starts in `Sim`, with the nominal drone.

    Args:
        policy: The policy.
        task: Where it has to fly.
        starts: Number of flights.
        seconds: Their duration.
        seed: Of the starts.
        start: What the starts are.
        freq: Physics ticks per second; the policy's rate must divide it.

    Raises:
        ValueError: A number is out of range.
    """
    if not (type(starts) is int and 1 <= starts <= _MOST):
        raise ValueError(f"starts must be from 1 to {_MOST}, got {starts!r}")
    if not (type(seed) is int and seed >= 0):
        raise ValueError(f"seed must be an integer of at least 0, got {seed!r}")
    if not 1 / policy.freq <= seconds <= 600:
        raise ValueError(f"seconds must be from {1 / policy.freq:g} to 600, got {seconds}")
    ticks = ticks_per_period(freq, policy.freq, "the rate of the policy")
    sim = Sim(starts, drone=policy.drone, control=policy.action.control, freq=freq)
    flights = Flights(starts, task, policy.drone, policy.freq, seed, None)
    first = flights.begin(np.random.default_rng([seed, 3]), start or Start())
    command = getattr(functional, f"{policy.action.control}_control")
    fly = sim.build_step_fn(derivative=False)
    up = jnp.array([0.0, 0.0, _HEIGHT])

    def goal(step: Array | int) -> tuple[Array, Array]:
        pos, vel = task.goal(first.time + step / policy.freq)
        return pos + up, vel

    def act(now: tuple[SimData, PolicyState], step: Array) -> tuple[object, Array]:
        data, memory = now
        s, (goal_pos, goal_vel) = data.states, goal(step)
        motion = Motion(
            pos=s.pos[:, 0],
            quat=s.quat[:, 0],
            vel=s.vel[:, 0],
            ang_vel=s.ang_vel[:, 0],
            rotor_vel=s.rotor_vel[:, 0],
            goal=goal_pos,
            goal_vel=goal_vel,
            action=memory.action,
        )
        memory, cmd = policy.act(memory, motion)
        data = fly(command(data, cmd[:, None]), ticks)
        return (data, memory), jnp.linalg.norm(data.states.pos[:, 0] - goal(step + 1)[0], axis=-1)

    x = jnp.asarray(first.body)[:, None]
    states = sim.data.states.replace(
        pos=x[..., :3] + up,
        quat=x[..., 3:7],
        vel=x[..., 7:10],
        ang_vel=x[..., 10:13],
        rotor_vel=x[..., 13:],
    )
    steps = jnp.arange(round(seconds * policy.freq))
    begin = (sim.data.replace(states=states), policy.initial_state((starts,)))
    error = jax.jit(lambda begin: jax.lax.scan(act, begin, steps)[1])(begin)
    return Evaluation((np.arange(len(steps)) + 1) / policy.freq, np.asarray(error))
