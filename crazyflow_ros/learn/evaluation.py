"""Flights of a policy in `Sim`: how many succeed, and how close they come to their goals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.envs.beginning import ORIGIN
from crazyflow_ros.envs.environment import Environment
from crazyflow_ros.envs.episodes import OBSERVATION
from crazyflow_ros.envs.gates import Race
from crazyflow_ros.envs.task import Task
from crazyflow_ros.learn.division import meet, others_answer, whole_array
from crazyflow_ros.policy.policy import Policy, PolicyState
from crazyflow_ros.sim import SimData
from crazyflow_ros.sim.worlds import each_of, inferring, put
from crazyflow_ros.xla import compiled_files
from crazyflow_ros.xla.on_device import random_key

TOLERANCE = 0.05
"""Distance from the goal [m] that counts as near."""

_MOST = 1_000_000


class Evaluation(NamedTuple):
    """Results of flights, each of which lasts until its episode ends or the time is up."""

    time: np.ndarray
    """(T,) s since the start."""
    error: np.ndarray
    """(T, N) m, distance of the drone, or of its load, from the goal; constant after the end of a
    flight. With several drones in a world, here and below that of the worst."""
    slip: np.ndarray
    """(T, N) m/s, speed relative to the goal; likewise."""
    tilt: np.ndarray
    """(T, N) rad, angle between the z axis of the drone and the vertical; likewise."""
    successes: np.ndarray
    """(N,) bool: the task was completed at the end of the flight."""
    gates: np.ndarray | None
    """(N,) number of gates passed, in a `Race`."""

    @property
    def success(self) -> float:
        """Fraction of the flights that complete their task."""
        return float(self.successes.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of `success`.

        Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22.
        """
        n, p, z = len(self.successes), self.success, 1.959964
        centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        return float(max(centre - half, 0)), float(min(centre + half, 1))

    @property
    def near(self) -> float:
        """Fraction of the flights that end within `TOLERANCE` of their goal."""
        return float((self.error[-1] < TOLERANCE).mean())

    def __str__(self) -> str:
        n, seconds = self.error.shape[1], self.time[-1]
        low, high = (100 * x for x in self.interval)
        rate = f"{self.success:.1%} (95 % interval {low:.1f} to {high:.1f})"
        result = f"{rate} of {n} flights succeed within {seconds:g} s; "
        if self.gates is not None:
            return f"{result}gates passed: {self.gates.mean():.2f} on average"
        ends: dict[str, Any] = {
            "distance, cm": 100 * self.error[-1],
            "speed relative to the goal, m/s": self.slip[-1],
            "tilt, degrees": np.degrees(self.tilt[-1]),
        }
        numbers = ""
        for name, end in ends.items():
            median, most, all_but_few = np.percentile(end, [50, 95, 99])
            shares = f"median {median:.3g}, 95 % {most:.3g}, 99 % {all_but_few:.3g}"
            numbers += f"\n  {name}: {shares}"
        near = f"{self.near:.1%} end within {100 * TOLERANCE:g} cm of the goal"
        return f"{result}{near}; at the end{numbers}"


def evaluate(
    policy: Policy,
    task: Task,
    starts: int = 1000,
    seconds: float | None = None,
    seed: int = 0,
    freq: int = 500,
    mesh: Mesh | None = None,
    what: Sequence[object] = (),
    **options: Any,
) -> Evaluation:
    """Fly a policy from random starts of a task in `Sim`, by default with the nominal drone.

    Args:
        policy: The policy.
        task: The task to complete.
        starts: Number of flights.
        seconds: Longest duration of a flight [s]; None for that of the task's episodes.
        seed: Seed of the starts.
        freq: Physics ticks per second; the policy's rate must divide it.
        mesh: Devices among which the flights are divided; None for one. With several processes, all
            must make the same call, and get all results.
        what: See `train`; the policy need not be among them.
        **options: Further options of the environment, see `Configuration`, such as `randomizers`
            or `n_drones`.

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
    each = each_of(starts, mesh, "starts")
    env = Environment(
        each,
        task,
        drone=policy.drone,
        freq=freq,
        action_freq=policy.freq,
        action=policy.action,
        autoreset="disabled",
        eye=policy.observation.eye,
        **options,
    )

    def seen(state: SimData) -> tuple[Array, Array, Array]:
        motion = env.motion(state)
        pos = motion.pos if motion.load is None else motion.load
        vel = motion.vel if motion.load_vel is None else motion.load_vel
        distance = jnp.linalg.norm(motion.goal - pos, axis=-1)
        slip = jnp.linalg.norm(motion.goal_vel - vel, axis=-1)
        level = jnp.sqrt((motion.quat[..., :2] ** 2).sum(axis=-1))  # sine of half the tilt
        tilt = 2 * jnp.arcsin(jnp.minimum(level, 1))
        return distance.max(axis=1), slip.max(axis=1), tilt.max(axis=1)

    Flying = tuple[SimData, PolicyState, tuple[Array, ...]]

    def begun(policy: Policy, key: Array) -> Flying:
        state, _ = env.reset(key)
        no, zero = jnp.zeros(each, bool), jnp.zeros(each, state.states.pos.dtype)
        return state, policy.initial_state((each, m)), (no, no, *[zero] * 4)

    def flown(policy: Policy, keys: Array) -> tuple[Array, Array, tuple[Array, ...]]:
        def act(now: Flying, _: None) -> tuple[Flying, tuple[Array, ...]]:
            state, memory, (over, *before) = now
            picture = None if env.eyes is None else env.eyes(state)
            told = None
            if env.observation.told:
                told = state.plugins[OBSERVATION][..., env.observation.motion_size :]
            memory, _command = policy.act(memory, env.motion(state), picture=picture, told=told)
            state, step = env.step(state, memory.action if m > 1 else memory.action[:, 0])
            found = (step.success, state.plugins[ORIGIN][:, 0, 0], *seen(state))
            kept = [jnp.where(over, old, new) for old, new in zip(before, found)]
            return (state, memory, (over | step.terminated, *kept)), tuple(kept[2:])

        (_, _, (_, success, gates, *_)), numbers = jax.lax.scan(act, begun(policy, keys), length=n)
        return success, gates, numbers

    n, m, key = round(seconds * policy.freq), env.config.n_drones, random_key(seed)
    if mesh is None:
        # Weights are arguments, so that another policy of the same layers needs no new code.
        arguments = policy.replace(about=""), key
        fly = compiled_files.compiled(lambda: flown, arguments, *what)
        success, gates, numbers = fly(*arguments)
    else:
        mesh = inferring(mesh)
        worlds, later = PartitionSpec(mesh.axis_names), PartitionSpec(None, mesh.axis_names)
        mapped = jax.shard_map(
            partial(flown, policy),
            mesh=mesh,
            in_specs=worlds,
            out_specs=(worlds, worlds, later),
            check_vma=False,
        )
        # Each start is that of a single device.
        keys = put(jax.random.split(key, starts), NamedSharding(mesh, worlds))
        meet()
        with others_answer():
            success, gates, numbers = jax.jit(mapped)(keys)
    count = whole_array(gates) if isinstance(task, Race) else None
    time = (np.arange(n) + 1) / policy.freq
    error, slip, tilt = map(whole_array, numbers)
    return Evaluation(time, error, slip, tilt, whole_array(success), count)
