"""Drones that hover, by the equations of motion alone, which compile fastest.

Most of a short training is compilation. `QuickHover` is the environment of the task `hover` without
the other features of an `Environment`, and compiles in two thirds of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from crazyflow_ros.drones import DEFAULT_DRONE, AnyDrone, resolve
from crazyflow_ros.dynamics import first_principles
from crazyflow_ros.dynamics.components import BodyDerivative, BodyState, no_wrench, split, stack
from crazyflow_ros.learn.batch import (
    NO_AXIS,
    Spread,
    Step,
    hover_action,
    name_of_cost,
    scale_of,
    varied,
)
from crazyflow_ros.learn.costs import Approach, Cost, square
from crazyflow_ros.policy.action import SIZE, Action
from crazyflow_ros.policy.observation import Motion, Observation
from crazyflow_ros.sim.arguments import whole
from crazyflow_ros.sim.integration import symplectic_euler
from crazyflow_ros.sim.worlds import each_of

_POS, _QUAT, _VEL, _RATES, _ROTORS = (
    slice(*x) for x in ((3,), (3, 7), (7, 10), (10, 13), (13, 17))
)
_BEGINNINGS = 256  # of each drone, one after the other
FARTHEST, FASTEST = 5.0, 40.0  # m, rad/s: further away or faster, a drone is lost


class QuickState(NamedTuple):
    """Motion of N drones."""

    body: Array
    """(N, 17): position, quaternion xyzw, velocity, body rates, rotor speeds, see `BodyState`."""
    action: Array
    """(N, 4) previous action."""
    episode: Array
    """() int32, index of the next beginning."""


class QuickDrones(NamedTuple):
    """Random quantities that are drawn once for N drones."""

    beginnings: Array
    """(_BEGINNINGS, N, 17) bodies at the beginnings of episodes, see `QuickState`."""
    params: first_principles.Params


class QuickHover:
    """N drones that hover at the origin, from any attitude, a `Batch`.

    A drone beyond `FARTHEST` or `FASTEST` has failed.
    """

    def __init__(
        self,
        n: int,
        parts: tuple[str, ...],
        drone: AnyDrone = DEFAULT_DRONE,
        freq: int = 50,
        cost: Cost = Approach(),  # noqa: B008, it cannot be changed
        mesh: Mesh | None = None,
    ) -> None:
        """Prepare the drones.

        Args:
            n: Number of drones.
            parts: Parts of the observation.
            drone: A `Drone`, or the path of a drone's folder.
            freq: Actions per second, each of which is one step of the integrator.
            cost: Cost of a step.
            mesh: Devices among which the drones are divided; None for one.

        Raises:
            ValueError: There is no such drone or part, a number is not positive, or the drones
                cannot be divided evenly.
        """
        self.mesh = mesh
        self.n = self.num_envs = each_of(whole("worlds", n), mesh, "worlds")
        self.dynamics = "first_principles"
        self.about: dict[str, Any] = {"task": "hover", "cost": name_of_cost(cost)}
        self.terms: tuple[str, ...] = ()
        self.told = 0
        self.drone, self.freq, self.has_cost, self._cost = resolve(drone), freq, True, cost
        self.observation = Observation.of(drone, parts)
        self.action = Action.of(drone, "rotor_vel")
        self.scale = scale_of(self.observation)
        self.hover_action = hover_action(drone, self.action)

    def begin(self, seed: int, spread: Spread, shards: Sequence[int] = (0,)) -> QuickState:
        """The other functions fly the drones that were drawn here last.

        Drones and beginnings are not part of the state, because the gradient stores the state of
        each step.
        """
        nominal = first_principles.Params.create(self.drone)
        limits = nominal.rotor_vel_limits.tolist()
        rngs, each = [np.random.default_rng([seed, 3, k]) for k in shards], self.n // len(shards)
        bodies = [_beginnings(rng, (_BEGINNINGS, each), *limits) for rng in rngs]
        beginnings: Any = np.concatenate(bodies, axis=1)
        self._drones = QuickDrones(beginnings, varied(nominal, (self.n,), seed, spread, shards))
        action: Any = np.zeros((self.n, SIZE), np.float32)
        return QuickState(beginnings[0], action, np.int32(1))  # type: ignore[arg-type]

    @property
    def drones(self) -> QuickDrones:
        return self._drones

    def with_drones(self, drones: QuickDrones) -> Self:
        new = copy(self)
        new._drones = drones
        return new

    def axes(self, state: QuickState, drones: QuickDrones) -> tuple[Any, Any]:
        del state
        nominal = jax.tree.leaves(first_principles.Params.create(self.drone))
        params, treedef = jax.tree.flatten(drones.params)
        pairs = zip(params, nominal, strict=True)
        varied = [NO_AXIS if jnp.shape(x) == jnp.shape(same) else 0 for x, same in pairs]
        of_state: Any = QuickState(0, 0, NO_AXIS)  # type: ignore[arg-type]
        return of_state, QuickDrones(1, jax.tree.unflatten(treedef, varied))  # type: ignore[arg-type]

    def observe(self, state: QuickState) -> Array:
        return self.observation(self._motion(state)) / self.scale

    def privileged(self, state: QuickState) -> Array:
        return jnp.zeros((self.n, 0), state.body.dtype)

    def step(self, state: QuickState, action: Array) -> tuple[QuickState, Step]:
        """Lost drones fly on until `ended` is called, which suits gradients better."""
        action = jnp.clip(action, -1, 1)
        x = split(state.body)
        body = BodyState(x[:3], x[3:7], x[7:10], x[10:13], x[13:])  # type: ignore[arg-type]
        command = split(self.action(action))

        def rate(body: BodyState) -> BodyDerivative:
            wrench = no_wrench(command[0])
            return first_principles.derivative(body, command, wrench, self._drones.params)

        flown = symplectic_euler(body, rate, 1 / self.freq)
        after = state._replace(body=stack(sum(flown, ())), action=action)
        cost, lost = self._cost(self._motion(state), self._motion(after)), self._lost(after)
        no = jnp.zeros_like(lost)
        return after, Step(cost, lost, lost, no, no, self.privileged(state))

    def ended(self, state: QuickState, worlds: Array) -> QuickState:
        """These drones and those that are lost begin an episode at once."""
        begins = (worlds | self._lost(state))[:, None]
        body = jnp.asarray(self._drones.beginnings)[state.episode % _BEGINNINGS]
        return state._replace(
            body=jnp.where(begins, body, state.body),
            action=jnp.where(begins, 0.0, state.action),
            episode=state.episode + 1,
        )

    def _lost(self, state: QuickState) -> Array:
        """Return which drones are too far or turn too fast to be of use, (N,) bool."""
        near = square(state.body[:, _POS]) < FARTHEST**2
        return ~(near & (square(state.body[:, _RATES]) < FASTEST**2))  # NaN, too

    def _motion(self, state: QuickState) -> Motion:
        body, zero = state.body, jnp.zeros((self.n, 3), state.body.dtype)
        return Motion(
            pos=body[:, _POS],
            quat=body[:, _QUAT],
            vel=body[:, _VEL],
            ang_vel=body[:, _RATES],
            rotor_vel=body[:, _ROTORS],
            goal=zero,
            goal_vel=zero,
            goal_acc=zero,
            action=state.action,
        )


def _beginnings(
    rng: np.random.Generator, shape: tuple[int, int], slowest: float, fastest: float
) -> np.ndarray:
    """Return bodies (*shape, 17) that begin episodes, with speeds of rotors in a range."""
    quat = rng.normal(size=(*shape, 4))
    body: np.ndarray = np.concatenate(
        [
            rng.uniform(-1, 1, (*shape, 3)),
            quat / np.linalg.norm(quat, axis=-1, keepdims=True),
            rng.uniform(-1, 1, (*shape, 3)),
            rng.uniform(-4, 4, (*shape, 3)),
            rng.uniform(slowest, fastest, (*shape, 4)),
        ],
        axis=-1,
    )
    return body.astype(np.float32)
