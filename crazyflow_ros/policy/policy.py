"""A policy: a network with everything that is needed to fly a drone with it."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.control import Control
from crazyflow_ros.dynamics.components import heading, split, stack
from crazyflow_ros.policy.action import SIZE, Action
from crazyflow_ros.policy.network import Network, Product, matrix_product
from crazyflow_ros.policy.observation import Motion, Observation, turned
from crazyflow_ros.xla.struct import Struct, static_field


class PolicyState(NamedTuple):
    """State of a policy between actions. Leading axes are a batch of drones."""

    observation: Array
    """(..., n) frames that the next observation contains again, not normalised; zeros at first."""
    action: Array
    """(..., 4) previous action, -1 to 1; zeros at the start."""
    memory: Array
    """(..., k) of the recurrent layers."""


class Policy(Struct):
    """A network with its observation and action; a pytree of weights."""

    network: Network
    mean: Array
    """(n,) subtracted from observations."""
    std: Array
    """(n,) by which observations are then divided."""
    observation: Observation = static_field()
    action: Action = static_field()
    freq: int = static_field()
    """Actions per second."""
    drone: str = static_field()
    """Model of the drone that the policy was trained to fly."""
    dynamics: str = static_field()
    """Dynamics with which the policy was trained, empty if unknown."""
    about: str = static_field()
    """Remark of the author."""

    def initial_state(self, lead: tuple[int, ...] = ()) -> PolicyState:
        """Return the state at the start.

        Args:
            lead: Shape of the batch of drones.
        """
        memory, dtype = self.network.memory, self.mean.dtype
        return PolicyState(
            observation=jnp.zeros((*lead, self.observation.repeated_size), dtype),
            action=jnp.zeros((*lead, SIZE), dtype),
            memory=jnp.broadcast_to(memory, (*lead, memory.size)),
        )

    def act(
        self,
        state: PolicyState,
        motion: Motion,
        product: Product = matrix_product,
        picture: Array | None = None,
        told: Array | None = None,
    ) -> tuple[PolicyState, Array]:
        """Choose a command.

        Args:
            state: State from `initial_state` or from the previous call.
            motion: The current motion; its field `action` is ignored.
            product: Multiplies inputs by weights.
            picture: Current picture, if the observation has an `eye`, see `Eye.seen`.
            told: Current numbers that only an environment knows, see `Observation.told`.

        Returns:
            The new state, and the command (..., 4) of the control mode of `action`. The command is
            NaN if the network's output is NaN.

        Raises:
            ValueError: A picture or what is told is missing, or not expected.
        """
        motion = motion._replace(action=state.action)
        seen = self.observation(motion, state.observation, picture, told)
        output, memory = self.network((seen - self.mean) / self.std, state.memory, product)
        action = jnp.clip(output, -1, 1)
        repeated = seen[..., : self.observation.repeated_size]
        return PolicyState(repeated, action, memory), self.action(action)

    def act_towards(
        self,
        state: PolicyState,
        motion: Motion,
        heading_quat: Array,
        product: Product = matrix_product,
        picture: Array | None = None,
    ) -> tuple[PolicyState, Array]:
        """Choose a command that also turns the drone to a heading.

        The policy sees the world in level axes whose x axis points along that heading, so that it
        acts as for a heading of zero.

        Args:
            state: As in `act`.
            motion: As in `act`.
            heading_quat: (..., 4) xyzw, of which only the heading matters. East if the attitude has
                none.
            product: As in `act`.
            picture: As in `act`.

        Returns:
            As for `act`.
        """
        cos, sin, _ = heading(split(heading_quat))  # type: ignore[arg-type]
        state, command = self.act(state, turned(motion, cos, sin), product, picture)
        if self.action.control is Control.attitude:
            roll, pitch, yaw, thrust = split(command)
            command = stack((roll, pitch, yaw + jnp.arctan2(sin, cos), thrust))
        return state, command
