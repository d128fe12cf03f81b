"""Flights for learning: drones that fly to goals, as pure functions of arrays.

A policy is learned in seconds only if the program that trains it compiles in seconds. These flights
therefore consist of the equations of motion alone, with one step of an integrator for each action.
`evaluate` then flies the policy in `Sim`, which knows more and takes longer to compile.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, tau
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.drones import resolve
from crazyflow_ros.dynamics import first_principles
from crazyflow_ros.dynamics.components import BodyDerivative, BodyState, no_wrench, split, stack
from crazyflow_ros.policy.action import SIZE, Action
from crazyflow_ros.policy.observation import PARTS, Motion, Observation
from crazyflow_ros.sim.integration import symplectic_euler

SEEN = {
    "body_position_error": 1.0,
    "body_velocity_error": 2.0,
    "rotation": 1.0,
    "body_rates": 8.0,
    "previous_action": 1.0,
}
"""Parts of the observations, and the numbers by which they are divided."""

APPROACH = 3.7
"""Velocity of an approach over the distance, near the goal, 1/s."""
BRAKING = 1.3
"""The fastest approach is `APPROACH` over the root of this [1/m^2]."""

_POS, _QUAT, _VEL, _RATES, _ROTORS = (
    slice(*x) for x in ((3,), (3, 7), (7, 10), (10, 13), (13, 17))
)


@dataclass(frozen=True)
class Task:
    """A goal that stands still, or that moves along a figure eight."""

    name: str = "hover"
    """`hover` or `figure_eight`."""
    period: float = 5.0
    """Duration of an eight, s."""
    size: tuple[float, float] = (1.0, 0.5)
    """Half the length and half the width of an eight, m."""

    def __post_init__(self) -> None:
        """Check the task.

        Raises:
            ValueError: There is no such task, or a number is out of range.
        """
        if self.name not in ("hover", "figure_eight"):
            raise ValueError(f"unknown task {self.name!r}, have hover, figure_eight")
        if not (isfinite(self.period) and self.period > 0):
            raise ValueError(f"period must be above 0 s, got {self.period}")

    def goal(self, time: Array) -> tuple[Array, Array]:
        """Return position [m] and velocity [m/s] of the goal, (..., 3), at a time (...) [s]."""
        if self.name == "hover":
            zero = jnp.zeros((*jnp.shape(time), 3))
            return zero, zero
        (a, b), w = self.size, tau / self.period
        zero = jnp.zeros_like(time)
        angle = w * time
        pos = (a * jnp.sin(angle), b * jnp.sin(2 * angle), zero)
        vel = (a * w * jnp.cos(angle), 2 * b * w * jnp.cos(2 * angle), zero)
        return jnp.stack(pos, axis=-1), jnp.stack(vel, axis=-1)


@dataclass(frozen=True)
class Start:
    """Random beginnings, relative to the goal: any attitude, and uniform up to these figures."""

    pos: float = 1.0
    """m, in each axis."""
    vel: float = 1.0
    """m/s, in each axis."""
    rates: float = 4.0
    """rad/s, in each axis."""


@dataclass(frozen=True)
class Spread:
    """Ranges of the factors by which drones in training differ from the nominal one."""

    thrust: tuple[float, float] = (0.87, 1.5)
    """Of the thrust of all rotors, over the weight."""
    inertia: tuple[float, float] = (0.8, 1.2)
    yaw: tuple[float, float] = (0.7, 6.0)
    """Of the drag torque of the rotors, of which models differ most."""
    rotor: tuple[float, float] = (0.8, 2.5)
    """Of the quickness of the rotors."""


class State(NamedTuple):
    """Motion of N drones, and what their episodes know."""

    body: Array
    """(N, 17): position, quaternion xyzw, velocity, body rates, rotor speeds, see `BodyState`."""
    action: Array
    """(N, 4) previous action."""
    time: Array
    """(N,) s of the goal."""


class Flights:
    """N drones that differ, and their task.

    Attributes:
        observation: Composition of observations.
        action: Meaning of actions: rotor speeds.
        scale: (size,) numbers by which observations are divided.
    """

    def __init__(
        self, n: int, task: Task, drone: str, freq: int, seed: int, spread: Spread | None
    ) -> None:
        """Draw the drones.

        Args:
            n: Number of drones.
            task: Their task.
            drone: A `Drone`, or the path of a drone's folder.
            freq: Actions per second.
            seed: Seed of the drones' parameters.
            spread: How much they differ; None for nominal ones.
        """
        self.n, self.task, self.freq, self.drone = n, task, freq, resolve(drone)
        self.observation = Observation.of(drone, tuple(SEEN))
        self.action = Action.of(drone, "rotor_vel")
        sizes = [PARTS[part].size for part in SEEN]
        self.scale = np.repeat(np.array(list(SEEN.values()), np.float32), sizes)
        nominal = first_principles.Params.create(self.drone)
        self._limits = np.asarray(nominal.rotor_vel_limits)
        self._params = nominal if spread is None else _varied(nominal, n, seed, spread)
        hover = -float(nominal.mass[0] * nominal.gravity_vec[2]) / 4
        k0, k1, k2 = np.asarray(nominal.rpm2thrust[0], float)
        speed = (-k1 + np.sqrt(k1**2 - 4 * k2 * (k0 - hover))) / (2 * k2)
        self.hover_action = (speed - self.action.offset[0]) / self.action.scale[0]

    def begin(self, rng: np.random.Generator, start: Start, lead: tuple[int, ...] = ()) -> State:
        """Return random beginnings, arrays of NumPy with leading axes `lead`."""
        shape = (*lead, self.n)
        time: Any = rng.uniform(0, self.task.period, shape).astype(np.float32)
        quat = rng.normal(size=(*shape, 4))
        quat /= np.linalg.norm(quat, axis=-1, keepdims=True)
        goal, goal_vel = (np.asarray(x) for x in self.task.goal(time))
        body: Any = np.concatenate(
            [
                goal + rng.uniform(-start.pos, start.pos, (*shape, 3)),
                quat,
                goal_vel + rng.uniform(-start.vel, start.vel, (*shape, 3)),
                rng.uniform(-start.rates, start.rates, (*shape, 3)),
                rng.uniform(self._limits[0], self._limits[1], (*shape, 4)),
            ],
            axis=-1,
        )
        action: Any = np.zeros((*shape, SIZE), np.float32)
        return State(body.astype(np.float32), action, time)

    def observe(self, state: State) -> Array:
        """Return observations, divided by `scale`: (N, size)."""
        body = state.body
        goal, goal_vel = self.task.goal(state.time)
        motion = Motion(
            pos=body[:, _POS],
            quat=body[:, _QUAT],
            vel=body[:, _VEL],
            ang_vel=body[:, _RATES],
            rotor_vel=body[:, _ROTORS],
            goal=goal,
            goal_vel=goal_vel,
            action=state.action,
        )
        return self.observation(motion) / self.scale

    def step(self, state: State, action: Array) -> State:
        """Return the state after an action (N, 4)."""
        x = split(state.body)
        body = BodyState(x[:3], x[3:7], x[7:10], x[10:13], x[13:])  # type: ignore[arg-type]
        command = split(self.action(action))

        def rate(body: BodyState) -> BodyDerivative:
            wrench = no_wrench(command[0])
            return first_principles.derivative(body, command, wrench, self._params)  # type: ignore[arg-type]

        body = symplectic_euler(body, rate, 1 / self.freq)
        return State(stack(sum(body, ())), action, state.time + 1 / self.freq)

    def cost(self, before: State, after: State) -> Array:
        """Return the cost of a step, (N,)."""
        goal, goal_vel = self.task.goal(after.time)
        error, rates = after.body[:, _POS] - goal, after.body[:, _RATES]
        # The velocity of an approach: without it, a short horizon would not reward haste.
        approach = -APPROACH * error / jnp.sqrt(1 + _square(error) * BRAKING)[:, None]
        slip = after.body[:, _VEL] - goal_vel - approach
        y, z = after.body[:, 4], after.body[:, 5]
        return (
            _smooth_norm(error, 0.02)
            + 0.4 * _smooth_norm(slip, 0.1)
            + 0.001 * _square(rates)
            + 0.02 * 2 * (y * y + z * z)  # 1 - cosine between the body's x axis and east
            + 0.01 * _square(after.action - before.action)
        )

    def lost(self, state: State) -> Array:
        """Return which drones are too far or turn too fast to be of use, (N,) bool."""
        error = state.body[:, _POS] - self.task.goal(state.time)[0]
        ok = (_square(error) < 5.0**2) & (_square(state.body[:, _RATES]) < 40.0**2)
        return ~ok  # NaN, too


def _square(x: Array) -> Array:
    return (x * x).sum(axis=-1)


def _smooth_norm(x: Array, width: float) -> Array:
    """Return the length of vectors, quadratic below `width`."""
    return jnp.sqrt(_square(x) + width**2) - width


def _varied(
    nominal: first_principles.Params, n: int, seed: int, spread: Spread
) -> first_principles.Params:
    """Return parameters of N drones, whose factors are uniform in logarithm."""
    rng = np.random.default_rng([seed, 1])

    def factor(limits: tuple[float, float], ndim: int) -> np.ndarray:
        low, high = np.log(limits)
        return np.exp(rng.uniform(low, high, (n, *[1] * ndim))).astype(np.float32)

    p = {name: np.asarray(getattr(nominal, name)) for name in ("J", "J_inv", "rpm2thrust")}
    inertia = factor(spread.inertia, 2)
    changes = {
        "J": p["J"] * inertia,
        "J_inv": p["J_inv"] / inertia,
        "rpm2thrust": p["rpm2thrust"] * factor(spread.thrust, 2),
        "rpm2torque": np.asarray(nominal.rpm2torque) * factor(spread.yaw, 2),
        "rotor_dyn_coef": np.asarray(nominal.rotor_dyn_coef) * factor(spread.rotor, 2),
    }
    return nominal.replace(**{name: jnp.asarray(x) for name, x in changes.items()})
