"""One world of a `Sim` as a function call of some 20 us: packed state, parameters as constants.

JAX spends nearly all of this on arguments and results: some 10 us for each NumPy array, less for
its own arrays. So state and inputs share one array, in memory that both libraries read, and so do
state and results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.control import Control
from crazyflow_ros.dynamics.forces.aerodynamics import downwash, ground_effect
from crazyflow_ros.dynamics.forces.collisions import drone_contact, obstacle_contact
from crazyflow_ros.dynamics.forces.external import External
from crazyflow_ros.dynamics.forces.floor import floor_contact
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.air import GUSTS, WIND, Blow, counted, with_calm_wind, with_wind
from crazyflow_ros.engine.attitudes import control_state_or_attitude
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.isolation import OUT_OF_SERVICE, HoldableControls, make_holdable
from crazyflow_ros.engine.levels import Level, LevelControls, follow_levels
from crazyflow_ros.engine.memory import readable_by_jax
from crazyflow_ros.engine.ticks import holding_step
from crazyflow_ros.kernels import one_kernel, separate_kernels
from crazyflow_ros.scene.frames import world_to_body
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.actuation import CRAZYFLIE_BATTERY, WeakMotors
from crazyflow_ros.sim.compile.packing import MovingLeaves, Vectors
from crazyflow_ros.sim.leaves import layout, path_name
from crazyflow_ros.sim.pipeline import insert_before
from crazyflow_ros.sim.pipeline import replace as substitute
from crazyflow_ros.sim.stages import Stage
from crazyflow_ros.sim.wind import N_NUMBERS

Leaves = dict[str, np.ndarray]
"""Leaves that change from tick to tick, by path in `SimData`; drones are on the second of three
axes."""

SHARED = f"plugins.{GUSTS}"
"""Path of the leaf that all drones share although it has three axes; exists only with gusts."""

LOST = 29
"""Column of the output that marks drones that were lost in this stretch, see `isolation`."""
CONTACT = slice(LOST + 1, LOST + 7)
"""Columns of the output with the wrench of all contacts on each drone."""

_BESIDE_COMMAND = 11  # columns of the inputs: armed or level, wrench, loss of each motor
_LONGEST_OUTPUT = 512  # rows per call


@dataclass(frozen=True)
class Program:
    """A function compiled for obstacles of one layout."""

    layout: object
    """Layout of the obstacles, see `sim.leaves.layout`."""
    advance: Callable[..., Any]

    def is_for(self, obstacles: Obstacles | None) -> bool:
        """Return whether it works with these obstacles."""
        return self.layout == layout(obstacles)


class CompiledWorld:
    """The compiled function that advances all drones, and the form of its state.

    Attributes:
        n_drones: Number of drones.
        freq: Ticks per second.
        control: Meaning of commands.
        control_period: Ticks between two runs of the outermost controller.
        has_rotors: Whether the model has rotors that turn.
        max_stretches: Maximum number of stretches into which the ticks of a call are divided.
        feels_wind: Whether the model has drag.
        gusts: Whether the wind has gusts.
        inputs: Command, armed or level, wrench, and `WeakMotors.LOSS`, shape (M, k + 11), to write
            to; initially zeros.
        later: Commands of each stretch after the first, (`max_stretches`, M, k), to write to; the
            last row is unused.
        wind: `Dryden.numbers`, to write to.
        obstacles: Obstacles that the drones collide with, see `use`; initially None.
        present_program: Program in use; None before the first call.
    """

    def __init__(
        self,
        config: SimulationConfig,
        n_drones: int,
        *,
        levels: bool = False,
        gusts: bool = False,
    ) -> None:
        """Build the simulation; the first call compiles it.

        Args:
            config: Configuration; its control mode is ignored with `levels`.
            n_drones: Number of drones.
            levels: Command each drone at a `Level` of its own.
            gusts: The wind has gusts, which make a tick of a lone drone a third slower.

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
            forces=_forces(config, n_drones),
            rng_key=config.seed,
            true_mass=config.true_mass,
        )
        self._levels = levels
        if levels:
            follow_levels(self._sim, config)
        elif self._sim.control is Control.state:
            pipeline = self._sim.step_pipeline
            self._sim.step_pipeline = substitute(
                pipeline, "control_state", control_state_or_attitude
            )
        self._has_battery = config.battery
        self._n_columns = CONTACT.stop + 3 * config.battery
        self.has_rotors = self._sim.dynamics.has_rotors
        self.feels_wind, self.gusts = hasattr(self._sim.data.params, "wind"), gusts
        stages: list[Stage] = [
            *([CRAZYFLIE_BATTERY] if config.battery else []),
            *([WeakMotors()] if self.has_rotors else []),
            *([Blow()] if gusts else []),
        ]
        self._sim.step_pipeline = insert_before(self._sim.step_pipeline, "integrate", *stages)
        make_holdable(self._sim)
        self._step = holding_step(self._sim)
        self.n_drones, self.freq, self.control = n_drones, config.freq, self._sim.control
        self.control_period = self.freq // self._sim.control_freq
        self.max_stretches = max(1, min(_LONGEST_OUTPUT // n_drones, 16))
        dtype = self._sim.data.states.pos.dtype
        inputs = jnp.zeros((n_drones, self.control.sizes[0] + _BESIDE_COMMAND), dtype)
        wind = jnp.zeros(N_NUMBERS, dtype)

        def step(data: SimData) -> SimData:
            stepped = self._step_with_inputs(data, inputs, wind, phase=0, n_ticks=1)
            return self._without_inputs(stepped, data)

        # Fixed leaves, including the parameters, enter the compiled function as constants.
        self._split = MovingLeaves(step, self._sim.data)
        self._fixed = self._split.fixed(self._sim.data)
        self._pack = jax.jit(self._split.pack)
        vectors = self._pack(self._sim.data)
        self._numbers = [vector.dtype for vector in vectors].index(inputs.dtype)
        later = (self.max_stretches, n_drones, self.control.sizes[0])
        n_state, n_counts = vectors[self._numbers].size, 2 + self.max_stretches
        sizes = (n_state, inputs.size, n_counts, N_NUMBERS, math.prod(later))
        self._arguments, self._seen = readable_by_jax(sum(sizes), inputs.dtype)
        parts = np.split(self._arguments, np.cumsum(sizes)[:-1])
        self._state, input_part, self._counts, self.wind, later_part = parts
        self.inputs, self.later = input_part.reshape(inputs.shape), later_part.reshape(later)
        self._rest: Vectors = ()
        self.obstacles: Obstacles | None = None
        self.present_program: Program | None = None
        self.leaves = self.fresh()
        self._ndim = {path: leaf.ndim for path, leaf in self.fresh().items()}

    def is_compiled_for(self, obstacles: Obstacles | None) -> bool:
        """Return whether `use` compiles nothing for these obstacles."""
        return self.present_program is not None and self.present_program.is_for(obstacles)

    def program(self, obstacles: Obstacles | None) -> Program:
        """Return a compiled program for `use` with such obstacles. Thread-safe.

        A new program is called once, so that its first use takes no longer than others.

        Args:
            obstacles: Obstacles, or None.
        """
        present = self.present_program
        if present is not None and present.is_for(obstacles):
            return present
        made = self._compiled(obstacles)
        no_ticks = jnp.zeros(self._arguments.size, self._arguments.dtype)
        made.advance(no_ticks, self._rest, obstacles)
        return made

    def use(self, obstacles: Obstacles | None, program: Program | None = None) -> None:
        """Let the drones collide with obstacles.

        Args:
            obstacles: Obstacles, or None.
            program: Result of `program`. By default the present program is used if it is for
                obstacles of this layout; otherwise the next call compiles.
        """
        if program is not None:
            self.present_program = program
        elif not self.is_compiled_for(obstacles):
            self.present_program = None
        self.obstacles = obstacles

    def advance(self, tick: int, stretches: Sequence[int]) -> np.ndarray:
        """Advance by one or more stretches of ticks.

        Args:
            tick: The present tick.
            stretches: Ticks of each stretch, at most `max_stretches`; 0 only evaluates
                accelerations.

        Returns:
            Output at the end of each stretch, (n, M, 36): position, attitude, velocity, angular
            velocity, both accelerations, velocity and specific force in body axes, rotor speeds in
            RPM, `LOST`, `CONTACT`; with batteries three more columns, as in a snapshot.
        """
        if self.present_program is None:
            self.present_program = self._compiled(self.obstacles)
        counts, n = self._counts, len(stretches)
        counts[0], counts[1], counts[2 : 2 + n] = tick % counted(self.freq), n, stretches
        packed, self._rest = self.present_program.advance(self._seen, self._rest, self.obstacles)
        return self._rows(packed)[:n]

    # A function of its own for each program: JAX keeps compiled code as long as the function
    # exists.

    def _compiled(self, obstacles: Obstacles | None) -> Program:
        kernel = jax.jit(one_kernel(self._advance_packed))
        advance = kernel.lower(self._seen, self._rest, obstacles).compile()
        return Program(layout(obstacles), advance)

    def _rows(self, packed: Array) -> np.ndarray:
        """Store the state, and return the other results as rows."""
        results = np.asarray(packed)
        self._state[:] = results[: self._state.size]
        return results[self._state.size :].reshape(self.max_stretches, self.n_drones, -1)

    def is_own(self, path: str) -> bool:
        """Return whether each drone has its own part of a leaf, on the second of three axes."""
        return path != SHARED and self._ndim[path] == 3

    def fresh(self) -> Leaves:
        """Return the state of drones side by side, with reset controllers."""
        return self._moving_leaves(self._sim.data)

    @property
    def leaves(self) -> Leaves:
        """Copies of the state; assign changed ones to apply them."""
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
        """Return the vectors of all dtypes, in the order of the packing."""
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
        wind: Array,
        phase: Array | int,
        n_ticks: Array | int,
        obstacles: Obstacles | None = None,
    ) -> SimData:
        """Return the data after some ticks; wind and obstacles stay until `_without_inputs`."""
        params, controls = data.params, data.controls
        k = self.control.sizes[0]
        command, armed, wrench, loss = jnp.split(inputs[None], [k, k + 1, k + 7], axis=-1)
        assert isinstance(controls, HoldableControls)
        if isinstance(controls, LevelControls):
            controls = controls.with_commands(command, armed)
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
        if self.has_rotors:
            data = data.replace(plugins=data.plugins | {WeakMotors.LOSS: loss})
        if self.feels_wind:
            data = with_wind(data, wind) if self.gusts else with_calm_wind(data, wind)
        return self._step(data, n_ticks)

    @staticmethod
    def _without_inputs(data: SimData, before: SimData) -> SimData:
        """Return the data with the parameters and inputs of plugins that it had before a step."""
        given = {k: before.plugins[k] for k in before.plugins.keys() & {WIND, WeakMotors.LOSS}}
        return data.replace(params=before.params, plugins=data.plugins | given)

    def _advance_packed(
        self, arguments: Array, rest: Vectors, obstacles: Obstacles | None
    ) -> tuple[Array, Vectors]:
        k, n_state = self.control.sizes[0], self._state.size
        ends = np.cumsum([n_state, self.inputs.size, self._counts.size, self.wind.size])
        numbers, inputs, counts, wind, later = jnp.split(arguments, ends)
        inputs, counts = inputs.reshape(self.inputs.shape), counts.astype(jnp.int32)
        later = later.reshape(self.later.shape)

        def stretch(i: Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
            vectors, phase, given, results = carry
            n_ticks = counts[2 + i]
            with separate_kernels(n_ticks > -1):
                before = self._split.unpack(vectors, self._fixed)
                data = self._step_with_inputs(before, given, wind, phase, n_ticks, obstacles)
                contact = self._contact(data)  # with the wind, whose drag is no contact
                data = self._without_inputs(data, before)
            controls = data.controls
            assert isinstance(controls, HoldableControls)
            lost = (controls.held & ~self._is_held(given[None, :, k : k + 1]))[0]
            lost_column = lost.astype(inputs.dtype)
            readings = [*self._readings(data), lost_column, contact, *self._battery(data)]
            row = jnp.concatenate(readings, axis=-1)
            armed = jnp.where(lost, OUT_OF_SERVICE, given[:, k : k + 1])
            return (
                self._split.pack(data),
                phase + n_ticks,
                jnp.concatenate((later[i], armed, given[:, k + 1 :]), axis=-1),
                jax.lax.dynamic_update_slice(results, row.ravel(), (n_state + i * row.size,)),
            )

        n_rows = self.max_stretches * self.n_drones
        results = jnp.zeros(n_state + n_rows * self._n_columns, inputs.dtype)
        carry = (self._joined(numbers, rest), counts[0], inputs, results)
        vectors, _, _, results = jax.lax.fori_loop(0, counts[1], stretch, carry)
        numbers, rest = vectors[self._numbers], _without(vectors, self._numbers)
        return jax.lax.dynamic_update_slice(results, numbers, (0,)), rest

    def _readings(self, data: SimData) -> list[Array]:
        """Return the columns of the output before `LOST`."""
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

    def _contact(self, data: SimData) -> Array:
        """Return the columns `CONTACT`."""
        assert isinstance(data.controls, HoldableControls)
        wrench = self._sim.contact_wrench(data)
        return jnp.where(~data.controls.held & jnp.isfinite(wrench), wrench, 0)[0]

    def _battery(self, data: SimData) -> list[Array]:
        """Return the columns after `CONTACT`, if the drones have batteries."""
        if not self._has_battery:
            return []
        volts, current = CRAZYFLIE_BATTERY.under_load(data)
        return [volts[0, :, None], current[0, :, None], data.plugins["battery"][0]]


def _forces(config: SimulationConfig, n_drones: int) -> tuple[External, ...]:
    """Return all forces on the drones."""
    drone = config.drone_model
    return (
        *([ground_effect(drone)] if config.ground_effect else []),
        *([downwash(drone)] if config.downwash and n_drones > 1 else []),
        *contact_forces(drone, config.freq, drones=config.drone_collisions),
    )


def contact_forces(drone_model: str, freq: float, *, drones: bool) -> tuple[External, ...]:
    """Return the contact forces of the runtime; `drones` also includes contacts between drones.

    Contacts with things that cannot give way come last, and take precedence.
    """
    kinds = (*([drone_contact] if drones else []), obstacle_contact, floor_contact)
    return tuple(kind(drone_model, freq) for kind in kinds)


def _without(vectors: Vectors, i: int) -> Vectors:
    return vectors[:i] + vectors[i + 1 :]


def _is_key(array: Any) -> bool:
    return bool(jnp.issubdtype(array.dtype, jax.dtypes.prng_key))


def _like(template: Any, value: np.ndarray | None) -> Any:
    """Return a leaf with another value, if there is one."""
    if value is None:
        return template
    return jax.random.wrap_key_data(jnp.asarray(value)) if _is_key(template) else value
