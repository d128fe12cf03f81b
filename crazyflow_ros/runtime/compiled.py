"""One world of a `Sim` as a function call of some 20 us: packed state, parameters as constants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.control import Control
from crazyflow_ros.dynamics.collision import obstacle_contact
from crazyflow_ros.dynamics.contact import Force, floor_contact
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.kernels import one_kernel, separate_kernels
from crazyflow_ros.runtime.config import SimulationConfig
from crazyflow_ros.runtime.isolation import OUT_OF_SERVICE, HoldableControls, make_holdable
from crazyflow_ros.runtime.levels import Level, LevelControls, follow_levels
from crazyflow_ros.scene.frames import world_to_body
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.packing import MovingLeaves, Vectors

Leaves = dict[str, np.ndarray]
"""What changes from tick to tick, by path in `SimData`; drones are on the second of three axes."""

LOST = 29
"""Column of the output that tells drones that got lost in this stretch, see `isolation`."""

_LONGEST_OUTPUT = 512  # rows per call


class CompiledWorld:
    """The compiled function that advances all drones, and the form its state has.

    Attributes:
        n_drones: How many.
        freq: Ticks per second.
        control: What commands mean.
        control_period: Ticks between two runs of the outermost controller.
        has_rotors: The model has rotors that turn.
        max_stretches: Into how many parts the ticks of a call may be divided.
    """

    def __init__(self, config: SimulationConfig, n_drones: int, *, levels: bool = False) -> None:
        """Build the simulation; it is compiled when it is called for the first time.

        Args:
            config: What is simulated; the control mode does not count with `levels`.
            n_drones: How many.
            levels: Each drone is commanded at a `Level` of its own.

        Raises:
            ValueError: The configuration names something that does not exist, or a rate that does
                not divide `freq`.
        """
        self._sim = Sim(
            n_drones=n_drones,
            drone=config.drone_model,
            dynamics=config.dynamics,
            control=Control.rotor_vel if levels else config.control,
            integrator=config.integrator,
            freq=config.freq,
            state_freq=config.state_freq,
            attitude_freq=config.attitude_freq,
            body_rate_freq=config.body_rate_freq,
            force_torque_freq=config.force_torque_freq,
            scene=config.scene,
            forces=contact_forces(config.drone_model, config.freq),
            rng_key=config.seed,
            true_mass=config.true_mass,
        )
        self._levels = levels
        if levels:
            follow_levels(self._sim, config)
        make_holdable(self._sim)
        self._step = self._sim.build_step_fn()
        self.has_rotors = self._sim.dynamics.has_rotors
        self.n_drones, self.freq, self.control = n_drones, config.freq, self._sim.control
        self.control_period = self.freq // self._sim.control_freq
        self.max_stretches = max(1, min(_LONGEST_OUTPUT // n_drones, 16))
        inputs = jnp.asarray(self.inputs())
        step = partial(self._step_with_inputs, inputs=inputs, phase=0, n_ticks=1)
        # Fixed leaves, the parameters among them, enter the compiled function as constants.
        self._split = MovingLeaves(step, self._sim.data)
        self._fixed = self._split.fixed(self._sim.data)
        self._pack = jax.jit(self._split.pack)
        self.advance = jax.jit(one_kernel(self._advance_packed), donate_argnums=0)
        """From packed state, inputs, what `counts` gives and obstacles (or None) to the state and,
        for the end of each stretch, (max_stretches, M, 30): position, attitude, velocity, angular
        velocity, both accelerations, velocity and specific force in body axes, rotor speeds in RPM,
        `LOST`."""

    def counts(self, tick: int, stretches: Sequence[int]) -> np.ndarray:
        """From which tick to go on, and the numbers of ticks, at most `max_stretches`."""
        counts = np.zeros(2 + self.max_stretches, np.int32)
        # Every period divides freq, and this never overflows.
        counts[0], counts[1], counts[2 : 2 + len(stretches)] = (
            tick % self.freq,
            len(stretches),
            stretches,
        )
        return counts

    def inputs(self) -> np.ndarray:
        """Zeros for command, armed or level, and wrench, shape (M, k + 7).

        One array for all, because handing one over takes longer than a tick.
        """
        shape = (self.n_drones, self.control.sizes[0] + 7)
        return np.zeros(shape, self._sim.data.states.pos.dtype)

    def fresh(self) -> Leaves:
        """The state of drones side by side, with fresh controllers."""
        return self._moving_leaves(self._sim.data)

    def unpack(self, vectors: Vectors) -> Leaves:
        """The state, as copies to change."""
        arrays = [x if _is_key(x) else np.asarray(x) for x in vectors]
        return self._moving_leaves(self._split.unpack(tuple(arrays), self._fixed))  # type: ignore[arg-type]

    def pack(self, leaves: Leaves) -> Vectors:
        """Inverse of `unpack`."""
        paths, treedef = jax.tree.flatten_with_path(self._sim.data)
        data = jax.tree.unflatten(treedef, [_like(x, leaves.get(_name(path))) for path, x in paths])
        vectors: Vectors = self._pack(data)
        return vectors

    def _moving_leaves(self, data: SimData) -> Leaves:
        paths = zip(jax.tree.leaves_with_path(data), self._split.moves)
        return {
            _name(path): np.array(jax.random.key_data(x) if _is_key(x) else x)
            for (path, x), moves in paths
            if moves
        }

    def _is_held(self, armed: Array) -> Array:
        return armed <= Level.held if self._levels else armed < 0

    def _step_with_inputs(
        self,
        data: SimData,
        inputs: Array,
        phase: Array | int,
        n_ticks: Array | int,
        obstacles: Obstacles | None = None,
    ) -> SimData:
        params, controls, k = data.params, data.controls, self.control.sizes[0]
        command, armed, wrench = (
            inputs[None, :, :k],
            inputs[None, :, k : k + 1],
            inputs[None, :, k + 1 :],
        )
        assert isinstance(controls, HoldableControls)
        if isinstance(controls, LevelControls):
            controls = controls.told(command, armed)
        elif self.control is Control.rotor_vel:
            controls = controls.replace(rotor_vel=command, held=self._is_held(armed))
        else:
            level = getattr(controls, self.control).replace(cmd=command)
            controls = controls.replace(**{self.control.value: level}, held=self._is_held(armed))
        data = data.replace(
            states=data.states.replace(force=wrench[..., :3], torque=wrench[..., 3:]),
            controls=controls.replace(armed=armed > 0),
            params=params.replace(obstacles=obstacles),
            core=data.core.replace(steps=jnp.full_like(data.core.steps, phase)),
        )
        return self._step(data, n_ticks).replace(params=params)

    def _advance_packed(
        self, vectors: Vectors, inputs: Array, counts: Array, obstacles: Obstacles | None
    ) -> tuple[Vectors, Array]:
        k = self.control.sizes[0]

        def stretch(i: Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
            vectors, phase, armed, outputs = carry
            told, n_ticks = inputs.at[:, k : k + 1].set(armed), counts[2 + i]
            with separate_kernels(n_ticks > -1):
                data = self._split.unpack(vectors, self._fixed)
                data = self._step_with_inputs(data, told, phase, n_ticks, obstacles)
            controls = data.controls
            assert isinstance(controls, HoldableControls)
            lost = (controls.held & ~self._is_held(armed[None]))[0]
            output = jnp.concatenate([*self._readings(data), lost.astype(inputs.dtype)], axis=-1)
            return (
                self._split.pack(data),
                phase + n_ticks,
                jnp.where(lost, OUT_OF_SERVICE, armed),
                outputs.at[i].set(output),
            )

        outputs = jnp.zeros((self.max_stretches, self.n_drones, LOST + 1), inputs.dtype)
        carry = (vectors, counts[0], inputs[:, k : k + 1], outputs)
        vectors, _, _, outputs = jax.lax.fori_loop(0, counts[1], stretch, carry)
        return vectors, outputs

    def _readings(self, data: SimData) -> list[Array]:
        """All but the last column of the output."""
        states, rate, controls = data.states, data.states_deriv, data.controls
        assert isinstance(controls, HoldableControls)
        moves = ~controls.held
        acc, ang_acc = (jnp.where(moves & jnp.isfinite(x), x, 0) for x in (rate.acc, rate.ang_acc))
        readings = [
            *(states.pos, states.quat, states.vel, states.ang_vel),
            *(acc, ang_acc),
            world_to_body(states.quat, states.vel),
            world_to_body(states.quat, acc - data.params.gravity_vec),
            states.rotor_vel if self.has_rotors else jnp.zeros_like(states.rotor_vel),
        ]
        return [x[0] for x in readings]


def contact_forces(drone_model: str, freq: float) -> tuple[Force, ...]:
    """What the drones of the runtime collide with. Each other they fly through."""
    return tuple(f(drone_model, freq) for f in (floor_contact, obstacle_contact))


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _is_key(array: Any) -> bool:
    return bool(jnp.issubdtype(array.dtype, jax.dtypes.prng_key))


def _like(template: Any, value: np.ndarray | None) -> Any:
    """A leaf with another value, if there is one."""
    if value is None:
        return template
    return jax.random.wrap_key_data(jnp.asarray(value)) if _is_key(template) else value
