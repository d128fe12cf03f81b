"""`DroneEnv`: worlds of one drone; subclasses say what is observed and rewarded."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jax import Array

from crazyflow_ros.compat.crazyflow.drones import Drone
from crazyflow_ros.compat.crazyflow.dynamics.core import load_params
from crazyflow_ros.compat.crazyflow.sim.pipeline import append_fn
from crazyflow_ros.compat.crazyflow.sim.sim import Sim
from crazyflow_ros.compat.crazyflow.utils import leaf_replace
from crazyflow_ros.control import Control
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.sim.data import SimData

__all__ = ["DroneEnv", "action_space"]


def action_space(control_type: str, dynamics: str, drone: str) -> Box:
    """Return the commands of a control mode.

    Raises:
        ValueError: Environments do not have that mode.
    """
    if control_type == Control.force_torque:
        return Box(-1.0, 1.0, shape=(6,))
    if control_type != Control.attitude:
        raise ValueError(f"Invalid control type {control_type}")
    params, turn = load_params(dynamics, drone), [np.pi / 2] * 3
    low, high = (4 * float(params[name]) for name in ("thrust_min", "thrust_max"))
    return Box(np.array([*np.negative(turn), low], np.float32), np.array([*turn, high], np.float32))


def randomized(
    data: SimData,
    default_data: SimData,
    mask: Array | None,
    pmin: Any = (-1.0, -1.0, 1.0),
    pmax: Any = (1.0, 1.0, 2.0),
    vmin: Any = -1.0,
    vmax: Any = 1.0,
) -> SimData:
    """Draw positions [m] and velocities [m/s] between limits; a stage of a reset."""
    del default_data
    key, *keys = jax.random.split(data.core.rng_key, 3)
    shape = data.states.pos.shape
    pos = jax.random.uniform(keys[0], shape, minval=jnp.asarray(pmin), maxval=jnp.asarray(pmax))
    vel = jax.random.uniform(keys[1], shape, minval=jnp.asarray(vmin), maxval=jnp.asarray(vmax))
    states = leaf_replace(data.states, mask, pos=pos, vel=vel)
    return data.replace(states=states, core=data.core.replace(rng_key=key))


class DroneEnv(VectorEnv[dict[str, Array], Array, Array]):
    """Worlds of one drone, whose actions are attitudes and thrusts.

    A subclass gives the `reward`, and may replace `obs`, `terminated`, `truncated` and `_reset`. An
    episode that has ended begins again in the next step. A class with `pure=True`
    (`class Mine(DroneEnv, pure=True)`) promises that these methods read and write nothing but
    arrays of JAX that are attributes, and `sim.data`; then a step is one compiled function.
    """

    _pure: ClassVar[bool] = False

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        *,
        num_envs: int = 1,
        max_episode_time: float = 10.0,
        dynamics: str = Dynamics.so_rpy,
        drone: str = Drone.cf2x_L250,
        freq: int = 500,
        device: str = "cpu",
        reset_randomization: Callable[[SimData, SimData, Array | None], SimData] | None = None,
    ) -> None:
        """Build the worlds.

        Args:
            num_envs: Number of worlds.
            max_episode_time: Time at which episodes are cut, s.
            dynamics: The model.
            drone: The drone.
            freq: Actions per second.
            device: Platform of the JAX device.
            reset_randomization: Stage of the reset that draws states; None for `randomized`.
        """
        self.num_envs, self.freq, self.max_episode_time = num_envs, freq, max_episode_time
        self.device = jax.devices(device)[0]
        self.sim = Sim(n_worlds=num_envs, drone=drone, device=device, dynamics=dynamics)
        if self.sim.freq % freq:
            warnings.warn(
                "Simulation frequency should be a multiple of env frequency.", stacklevel=2
            )
        stage = self._reset_randomization if reset_randomization is None else reset_randomization
        append_fn(self.sim.reset_pipeline, stage, name="reset_randomization")
        self.sim.build_reset_fn()
        self.n_substeps = self.sim.freq // freq
        self._marked_for_reset = jnp.zeros(num_envs, bool, device=self.device)
        self.single_action_space = action_space(self.sim.control, self.sim.dynamics, drone)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._observe(pos=3, quat=4, vel=3, ang_vel=3)
        self._program: tuple[Any, Any] = (None, None)

    def __init_subclass__(cls, pure: bool = False) -> None:
        """Keep the promise, which subclasses do not inherit."""
        super().__init_subclass__()
        cls._pure = pure

    _reset_randomization = staticmethod(randomized)

    def _observe(self, **sizes: int) -> None:
        """Add parts of observations, by name and size."""
        known = getattr(self, "single_observation_space", None)
        parts = dict(known.spaces) if isinstance(known, Dict) else {}
        parts |= {name: Box(-np.inf, np.inf, (n,)) for name, n in sizes.items()}
        self.single_observation_space = Dict(parts)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def step(self, action: Any) -> tuple[dict[str, Array], Array, Array, Array, dict[str, Any]]:
        """Apply actions until the next ones are due, and reset worlds that had ended before."""
        if not self._pure:
            return (*self._stepped(action), {})
        sim = self.sim
        # What is a constant of the compiled function.
        fixed = (sim._step, sim._reset, self.n_substeps, self.max_episode_time)
        if self._program[0] != fixed:
            self._program = (fixed, jax.jit(self._traced))
        state, results = self._program[1](self._state, sim.default_data, jnp.asarray(action))
        self._state = state
        return (*results, {})

    @property
    def _state(self) -> dict[str, Any]:
        """All that a step changes, by name."""
        arrays = {name: x for name, x in vars(self).items() if isinstance(x, Array)}
        return arrays | {"data": self.sim.data}

    @_state.setter
    def _state(self, state: dict[str, Any]) -> None:
        vars(self).update({name: x for name, x in state.items() if name != "data"})
        self.sim.data = state["data"]

    def _traced(self, state: Any, default_data: SimData, action: Array) -> Any:
        now, default = self._state, self.sim.default_data
        self._state, self.sim.default_data = state, default_data
        try:
            results = self._stepped(action)
            return self._state, results
        finally:
            self._state, self.sim.default_data = now, default

    def _stepped(self, action: Any) -> tuple[dict[str, Array], Array, Array, Array]:
        low, high = self.action_space.low, self.action_space.high  # type: ignore[attr-defined]
        cmd = jnp.clip(jnp.asarray(action), low, high).reshape(self.num_envs, 1, -1)
        getattr(self.sim, f"{self.sim.control}_control")(cmd)
        self.sim.step(self.n_substeps)
        self._reset(mask=self._marked_for_reset)
        terminated, truncated = self.terminated(), self.truncated()
        self._marked_for_reset = terminated | truncated
        return self.obs(), self.reward(), terminated, truncated

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Begin all episodes."""
        super().reset(seed=seed)
        if seed is not None:
            self.sim.seed(seed)
        self._reset(options=options)
        self._marked_for_reset = jnp.zeros_like(self._marked_for_reset)
        return self.obs(), {}

    def render(self) -> Any:
        """Show the first world."""
        return self.sim.render()

    def close(self, **_: Any) -> None:
        """Free the renderers."""
        self.sim.close()

    def _reset(self, mask: Array | None = None, options: dict[str, Any] | None = None) -> None:
        del options
        self.sim.reset(mask=mask)

    def reward(self) -> Array:
        """Return the rewards (N,)."""
        raise NotImplementedError

    def terminated(self) -> Array:
        """Return which episodes have failed, (N,) bool: the drone is below the floor."""
        return self._terminated(self.sim.data.states.pos)

    def truncated(self) -> Array:
        """Return which episodes have lasted their time, (N,) bool."""
        return self._truncated(self.sim.time[..., 0], self.max_episode_time)

    @staticmethod
    @jax.jit
    def _terminated(pos: Array) -> Array:
        return pos[:, 0, 2] < 0

    @staticmethod
    @jax.jit
    def _truncated(time: Array, max_episode_time: float) -> Array:
        return time >= max_episode_time

    def obs(self) -> dict[str, Array]:
        """Return what is observed, by name: (N, k)."""
        states = self.sim.data.states
        return {name: getattr(states, name)[:, 0] for name in ("pos", "quat", "vel", "ang_vel")}


within = partial(partial, randomized)
"""Return the stage `randomized` with other limits."""
