"""One world of a `Sim` as a function call of some 20 us: packed state, parameters as constants.

Nearly all of these is JAX taking arguments and making results: some 10 us for each NumPy array,
less for one of its own. So state and inputs are one array, in memory that both read, and so are
state and results.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.control import Control
from crazyflow_ros.dynamics.collision import drone_contact, obstacle_contact
from crazyflow_ros.dynamics.contact import Force, floor_contact
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.kernels import one_kernel, separate_kernels
from crazyflow_ros.runtime.command_source import Exchange
from crazyflow_ros.runtime.config import SimulationConfig
from crazyflow_ros.runtime.isolation import OUT_OF_SERVICE, HoldableControls, make_holdable
from crazyflow_ros.runtime.levels import Level, LevelControls, follow_levels
from crazyflow_ros.scene.frames import world_to_body
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.actuation import CRAZYFLIE_BATTERY
from crazyflow_ros.sim.packing import MovingLeaves, Vectors, path_name
from crazyflow_ros.sim.pipeline import insert_before

Leaves = dict[str, np.ndarray]
"""What changes from tick to tick, by path in `SimData`; drones are on the second of three axes."""

LOST = 29
"""Column of the output that tells drones that got lost in this stretch, see `isolation`."""

_LONGEST_OUTPUT = 512  # rows per call
_ALIGNMENT = 64  # bytes; XLA on the CPU copies what is not


class CompiledWorld:
    """The compiled function that advances all drones, and the form its state has.

    Attributes:
        n_drones: How many.
        freq: Ticks per second.
        control: What commands mean.
        control_period: Ticks between two runs of the outermost controller.
        has_rotors: The model has rotors that turn.
        max_stretches: Into how many parts the ticks of a call may be divided.
        exchange: With which `follow` works, if there is one; it needs a CPU.
        inputs: Command, armed or level, and wrench, shape (M, k + 7), to write into; first zeros.
    """

    def __init__(
        self,
        config: SimulationConfig,
        n_drones: int,
        *,
        levels: bool = False,
        exchange: Exchange | None = None,
    ) -> None:
        """Build the simulation; it is compiled when it is called for the first time.

        Args:
            config: What is simulated; the control mode does not count with `levels`.
            n_drones: How many.
            levels: Each drone is commanded at a `Level` of its own.
            exchange: For `follow`.

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
            forces=contact_forces(config.drone_model, config.freq, drones=config.drone_collisions),
            rng_key=config.seed,
            true_mass=config.true_mass,
        )
        self._levels = levels
        if levels:
            follow_levels(self._sim, config)
        self._has_battery = config.battery
        self._n_columns = LOST + 1 + 3 * config.battery
        if config.battery:
            stages = insert_before(self._sim.step_pipeline, "integrate", CRAZYFLIE_BATTERY)
            self._sim.step_pipeline = stages
        make_holdable(self._sim)
        self._step = self._sim.build_step_fn()
        self.has_rotors = self._sim.dynamics.has_rotors
        self.n_drones, self.freq, self.control = n_drones, config.freq, self._sim.control
        self.control_period = self.freq // self._sim.control_freq
        self.max_stretches = max(1, min(_LONGEST_OUTPUT // n_drones, 16))
        inputs = jnp.zeros((n_drones, self.control.sizes[0] + 7), self._sim.data.states.pos.dtype)
        step = partial(self._step_with_inputs, inputs=inputs, phase=0, n_ticks=1)
        # Fixed leaves, the parameters among them, enter the compiled function as constants.
        self._split = MovingLeaves(step, self._sim.data)
        self._fixed = self._split.fixed(self._sim.data)
        self._pack = jax.jit(self._split.pack)
        vectors = self._pack(self._sim.data)
        self._numbers = [vector.dtype for vector in vectors].index(inputs.dtype)
        sizes = (vectors[self._numbers].size, inputs.size, 2 + self.max_stretches)
        self._arguments, self._seen = _readable_by_jax(sum(sizes), inputs.dtype)
        self._state, told, self._counts = np.split(self._arguments, np.cumsum(sizes)[:-1])
        self.inputs = told.reshape(inputs.shape)
        self._rest: Vectors = ()
        self._kernel = one_kernel(self._advance_packed)
        self._advance, self._follow = jax.jit(self._kernel), jax.jit(self._follow_packed)
        self.exchange = exchange if jax.default_backend() == "cpu" else None
        self._address = None if exchange is None else jnp.asarray(exchange.address)
        self.leaves = self.fresh()

    def advance(
        self, tick: int, stretches: Sequence[int], obstacles: Obstacles | None
    ) -> np.ndarray:
        """Advance by some ticks, and some more.

        Args:
            tick: The present one.
            stretches: Numbers of ticks, at most `max_stretches`; 0 only evaluates accelerations.
            obstacles: What the drones collide with; with another number of slots it compiles.

        Returns:
            For the end of each stretch, (n, M, 30): position, attitude, velocity, angular velocity,
            both accelerations, velocity and specific force in body axes, rotor speeds in RPM,
            `LOST`; with batteries three more, as in a snapshot.
        """
        counts, n = self._counts, len(stretches)
        # Every period divides freq, and this never becomes too large to be exact.
        counts[0], counts[1], counts[2 : 2 + n] = tick % self.freq, n, stretches
        packed, self._rest = self._advance(self._seen, self._rest, obstacles)
        return self._rows(packed)[:n]

    def follow(self, tick: int, n_ticks: int, obstacles: Obstacles | None) -> np.ndarray:
        """Advance by control periods of `n_ticks`, for as long as the exchange goes on.

        Returns:
            The rows of `advance` for the end of the last period, (M, 30).
        """
        self._counts[:3] = tick % self.freq, 1, n_ticks
        packed, self._rest = self._follow(self._seen, self._rest, obstacles, self._address)
        return self._rows(packed)[0]

    def _rows(self, packed: Array) -> np.ndarray:
        """Keep the state; the rest are rows."""
        results = np.asarray(packed)
        self._state[:] = results[: self._state.size]
        return results[self._state.size :].reshape(self.max_stretches, self.n_drones, -1)

    def fresh(self) -> Leaves:
        """The state of drones side by side, with fresh controllers."""
        return self._moving_leaves(self._sim.data)

    @property
    def leaves(self) -> Leaves:
        """The state, as copies to change."""
        rest = [x if _is_key(x) else np.asarray(x) for x in self._rest]
        vectors = self._joined(self._state, rest)
        return self._moving_leaves(self._split.unpack(vectors, self._fixed))

    @leaves.setter
    def leaves(self, leaves: Leaves) -> None:
        paths, treedef = jax.tree.flatten_with_path(self._sim.data)
        data = jax.tree.unflatten(
            treedef, [_like(x, leaves.get(path_name(path))) for path, x in paths]
        )
        vectors = list(self._pack(data))
        self._state[:] = vectors.pop(self._numbers)
        self._rest = tuple(vectors)

    def _joined(self, numbers: Any, rest: Sequence[Any]) -> Vectors:
        """Vectors of all dtypes, in the order of the packing."""
        return (*rest[: self._numbers], numbers, *rest[self._numbers :])

    def _moving_leaves(self, data: SimData) -> Leaves:
        paths = zip(jax.tree.leaves_with_path(data), self._split.moves)
        return {
            path_name(path): np.array(jax.random.key_data(x) if _is_key(x) else x)
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
        self, arguments: Array, rest: Vectors, obstacles: Obstacles | None
    ) -> tuple[Array, Vectors]:
        k, n_state = self.control.sizes[0], self._state.size
        numbers, inputs = arguments[:n_state], arguments[n_state : -self._counts.size]
        inputs = inputs.reshape(self.inputs.shape)
        counts = arguments[-self._counts.size :].astype(jnp.int32)

        def stretch(i: Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
            vectors, phase, armed, results = carry
            told, n_ticks = inputs.at[:, k : k + 1].set(armed), counts[2 + i]
            with separate_kernels(n_ticks > -1):
                data = self._split.unpack(vectors, self._fixed)
                data = self._step_with_inputs(data, told, phase, n_ticks, obstacles)
            controls = data.controls
            assert isinstance(controls, HoldableControls)
            lost = (controls.held & ~self._is_held(armed[None]))[0]
            readings = [*self._readings(data), lost.astype(inputs.dtype), *self._battery(data)]
            row = jnp.concatenate(readings, axis=-1)
            return (
                self._split.pack(data),
                phase + n_ticks,
                jnp.where(lost, OUT_OF_SERVICE, armed),
                jax.lax.dynamic_update_slice(results, row.ravel(), (n_state + i * row.size,)),
            )

        n_rows = self.max_stretches * self.n_drones
        results = jnp.zeros(n_state + n_rows * self._n_columns, inputs.dtype)
        carry = (self._joined(numbers, rest), counts[0], inputs[:, k : k + 1], results)
        vectors, _, _, results = jax.lax.fori_loop(0, counts[1], stretch, carry)
        numbers, rest = vectors[self._numbers], _without(vectors, self._numbers)
        return jax.lax.dynamic_update_slice(results, numbers, (0,)), rest

    def _follow_packed(
        self, arguments: Array, rest: Vectors, obstacles: Obstacles | None, address: Array
    ) -> tuple[Array, Vectors]:
        assert self.exchange is not None
        exchange = partial(
            self.exchange.call,
            n_state=self._state.size,
            n_inputs=self.inputs.shape[1],
            n_columns=self._n_columns,
        )

        def period(carry: tuple[Any, ...]) -> tuple[Any, ...]:
            arguments, rest, _, _ = carry
            results, rest = self._kernel(arguments, rest, obstacles)
            arguments, goes_on = exchange(results, arguments, address)
            return arguments, rest, results, goes_on

        results, _ = jax.eval_shape(self._kernel, arguments, rest, obstacles)
        start = (arguments, rest, jnp.zeros(results.shape, results.dtype), jnp.array(True))
        _, rest, results, _ = jax.lax.while_loop(lambda carry: carry[3], period, start)
        return results, rest

    def _readings(self, data: SimData) -> list[Array]:
        """The columns of the output before `LOST`."""
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

    def _battery(self, data: SimData) -> list[Array]:
        """The columns of the output behind `LOST`, if the drones have batteries."""
        if not self._has_battery:
            return []
        volts, current = CRAZYFLIE_BATTERY.under_load(data)
        return [volts[0, :, None], current[0, :, None], data.plugins["battery"][0]]


def contact_forces(drone_model: str, freq: float, *, drones: bool) -> tuple[Force, ...]:
    """What the drones of the runtime collide with; `drones`: also one another."""
    kinds = (floor_contact, obstacle_contact, *([drone_contact] if drones else []))
    return tuple(kind(drone_model, freq) for kind in kinds)


def _readable_by_jax(size: int, dtype: np.dtype) -> tuple[np.ndarray, Array | np.ndarray]:
    """An array of zeros, and what hands its numbers of then to a compiled function.

    On the CPU that is a JAX array over the same memory: whoever writes must have awaited the last
    call. Elsewhere it is the array itself, of which JAX makes a copy in each call.
    """
    memory = np.zeros(size * dtype.itemsize + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array = memory[start : start + size * dtype.itemsize].view(dtype)
    if jax.default_backend() != "cpu":
        return array, array
    alias = jax.device_put(array, may_alias=True)
    same = alias.unsafe_buffer_pointer() == array.ctypes.data
    return array, alias if same else array


def _without(vectors: Vectors, i: int) -> Vectors:
    return vectors[:i] + vectors[i + 1 :]


def _is_key(array: Any) -> bool:
    return bool(jnp.issubdtype(array.dtype, jax.dtypes.prng_key))


def _like(template: Any, value: np.ndarray | None) -> Any:
    """A leaf with another value, if there is one."""
    if value is None:
        return template
    return jax.random.wrap_key_data(jnp.asarray(value)) if _is_key(template) else value
