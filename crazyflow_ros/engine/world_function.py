"""The function that advances all drones of a world, as JAX traces it.

Building it, and tracing it for its form, takes as long as importing JAX, so `CompiledWorld` does
neither if it finds the form and the compiled code of an earlier start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.control import Control, Controller
from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.drones import rotors_of
from crazyflow_ros.dynamics.forces import force_of
from crazyflow_ros.dynamics.forces.external import External
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.air import Blow, with_calm_wind, with_wind
from crazyflow_ros.engine.blocks import Blocks
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.drawn_figures import nominal
from crazyflow_ros.engine.form import WIND, Form, input_columns, output_columns, width
from crazyflow_ros.engine.gain_inputs import found_gains, with_gains, with_params_of
from crazyflow_ros.engine.holding_step import HoldingStep
from crazyflow_ros.engine.isolation import HoldableControls, make_holdable
from crazyflow_ros.engine.level_controls import LevelControls, follow_levels
from crazyflow_ros.engine.levels import OUT_OF_SERVICE, Level, levels_of
from crazyflow_ros.engine.readings import Readings
from crazyflow_ros.engine.slots import BLOCK, is_divided
from crazyflow_ros.estimation import Estimator, beacons
from crazyflow_ros.scene.conditions import Conditions
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.actuation import Battery, WeakMotors
from crazyflow_ros.sim.compile.packing import MovingLeaves, Vectors
from crazyflow_ros.sim.leaves import path_name
from crazyflow_ros.sim.pipeline import insert_before
from crazyflow_ros.sim.policies import policy_of
from crazyflow_ros.sim.stages import Stage
from crazyflow_ros.sim.wind import N_NUMBERS
from crazyflow_ros.xla.compiler import ONE_KERNEL, has_one_kernel, set_metadata
from crazyflow_ros.xla.kernels import one_kernel, separate_kernels
from crazyflow_ros.xla.on_device import default_platform


class WorldFunction:
    """One world of a `Sim` as a function of packed state and inputs, parameters as constants.

    Attributes:
        form: Its arguments and results.
    """

    def __init__(
        self,
        config: SimulationConfig,
        n_drones: int,
        *,
        by_door: int,
        gusts: bool,
        contacts: bool = True,
        conditions: Conditions,
    ) -> None:
        """Build the simulation, and trace it for its form; see `CompiledWorld`.

        Raises:
            ValueError: The configuration names something that does not exist, or a rate that does
                not divide `freq`, or does not allow a door to fly only some of the drones.
        """
        door_alone = by_door == n_drones
        policy = policy_of(config.policy, config.drone_model) if config.policy else None
        if policy is not None:
            if by_door:
                raise ValueError("drones that follow a policy have no individual levels")
            ticks_per_period(config.freq, policy.freq, "the rate of the policy")
        if by_door and not door_alone and config.control != Control.state:
            raise ValueError(
                f"drones beside those of a door need control=state, got {config.control}"
            )
        self._sim = sim = Sim(
            n_drones=n_drones,
            drone=config.drone_model,
            dynamics=config.dynamics,
            control=Control.rotor_vel if door_alone else config.control,
            controller=Controller.default if door_alone else config.controller,
            integrator=config.integrator,
            freq=config.freq,
            state_freq=config.state_freq if policy is None else policy.freq,
            attitude_freq=config.attitude_freq,
            body_rate_freq=config.body_rate_freq,
            force_torque_freq=config.force_torque_freq,
            scene=config.scene,
            forces=_forces(config, n_drones, contacts=contacts),
            rng_key=config.seed,
            true_mass=config.true_mass,
            power_distribution=config.power_distribution,
            estimator=config.estimator,
            positioning=None if config.estimator == Estimator.none else config.positioning,
            conditions=conditions,
        )
        self._by_door, self._gusts = by_door, gusts
        cell = Battery.of(config.drone_model) if config.battery else None
        self._readings = Readings(sim, cell)
        if policy is not None:
            policy.fly(sim)
        levels = levels_of(
            sim.control, policy=policy is not None, setpoint_modes=config.setpoint_modes
        )
        follow_levels(sim, config, levels, by_door)
        stages: list[Stage] = [
            *([cell] if cell else []),
            *([WeakMotors()] if sim.dynamics.has_rotors else []),
            *([Blow()] if gusts else []),
        ]
        sim.step_pipeline = insert_before(sim.step_pipeline, "integrate", *stages)
        make_holdable(sim)
        self.step = HoldingStep(sim)
        feels_wind = hasattr(sim.data.params, "wind")
        n_rotors = sim.data.states.rotor_vel.shape[-1]
        below = len(rotors_of(config.drone_model)) if config.ground_effect and not contacts else 0
        columns, dtype = input_columns(sim.control, n_rotors, below), sim.data.states.pos.dtype
        inputs, wind = np.zeros((n_drones, width(columns)), dtype), np.zeros(N_NUMBERS, dtype)
        self._gains = found_gains(sim.data.controls) | nominal(config, conditions)
        gains = np.zeros((n_drones, sum(gain.size for gain in self._gains.values())), dtype)

        def step(data: SimData) -> SimData:
            with _as_in_kernel():
                given = jnp.asarray(inputs), jnp.asarray(wind), jnp.asarray(gains)
                stepped, _ = self.step.step(self.with_inputs(data, *given, 0), 1)
                return self._without_inputs(stepped, data)

        self._has_rotors, self._feels_wind = sim.dynamics.has_rotors, feels_wind
        self._inputs = columns
        self._control = sim.control
        # Fixed leaves, including the parameters, enter the compiled function as constants.
        self.split = MovingLeaves(step, sim.data)
        self.fixed = self.split.fixed(sim.data)
        paths = zip(jax.tree.leaves_with_path(sim.data), self.split.moves)
        in_blocks = is_divided(config, n_drones, by_door=by_door, gusts=gusts)
        groups = {
            "battery": config.battery,
            "desired": sim.data.controls.state is not None,
            "believed": sim.data.estimate is not None,
        }
        heard = 0 if sim.data.estimate is None else beacons.heard(config.positioning).stop
        self.form = Form(
            initial={path_name(path): np.array(x) for (path, x), moves in paths if moves},
            n_drones=n_drones,
            control=sim.control,
            control_period=sim.freq // sim.control_freq,
            has_rotors=sim.dynamics.has_rotors,
            feels_wind=feels_wind,
            inputs=columns,
            outputs=output_columns(
                [k for k, is_there in groups.items() if is_there], n_rotors, heard
            ),
            gains=self._gains,
            has_order=in_blocks and (config.downwash or (contacts and config.drone_collisions)),
        )
        self.width = width(self.form.outputs)
        self._blocks: Blocks | None = None
        if in_blocks:
            alone = replace(config, downwash=False, drone_collisions=False)
            block = WorldFunction(
                *(alone, BLOCK),
                by_door=BLOCK if by_door else 0,
                gusts=False,
                contacts=contacts,
                conditions=conditions,
            )
            between = config if contacts else replace(config, drone_collisions=False)
            self._blocks = Blocks(block, self.form, sim.data, between)

    def new(self) -> Callable[..., Any]:
        """Return a new function, because JAX keeps compiled code as long as its function exists.

        Its arguments are the numbers, see `Form`, the other vectors of the state, and obstacles or
        None.
        """
        fn = self._advance_packed
        return one_kernel(fn) if _on_cpu() else fn

    def is_held(self, level: Array) -> Array:
        """Return which drones are held, for levels (N, M, 1)."""
        if not self._by_door:
            return level < Level.held
        if self._by_door == self._sim.n_drones:
            return level <= Level.held
        is_by_door = np.arange(self._sim.n_drones)[:, None] < self._by_door
        return jnp.where(is_by_door, level <= Level.held, level < Level.held)

    def with_inputs(
        self,
        data: SimData,
        inputs: Array,
        wind: Array,
        gains: Array,
        phase: Array | int,
        obstacles: Obstacles | None = None,
    ) -> SimData:
        """Return the data for a step; wind and obstacles stay until `_without_inputs`."""
        data = with_gains(data, self._gains, gains)
        params, controls = data.params, data.controls
        ends = [columns.stop for columns in self._inputs.values()]
        command, level, wrench, loss, *ground = jnp.split(inputs[None], ends[:-1], axis=-1)
        assert isinstance(controls, HoldableControls)
        if isinstance(controls, LevelControls):
            controls = controls.with_commands(command, level)
        elif self._control is Control.rotor_vel:
            controls = controls.replace(rotor_vel=command)
        else:
            commanded = getattr(controls, self._control).replace(cmd=command)
            controls = controls.replace(**{self._control.value: commanded})
        data = data.replace(
            states=data.states.replace(force=wrench[..., :3], torque=wrench[..., 3:]),
            controls=controls.replace(armed=level > Level.held, held=self.is_held(level)),
            params=params.replace(obstacles=obstacles, **({"ground": ground[0]} if ground else {})),
            core=data.core.replace(steps=jnp.full_like(data.core.steps, phase)),
        )
        if self._has_rotors:
            data = data.replace(plugins=data.plugins | {WeakMotors.LOSS: loss})
        if self._feels_wind:
            data = with_wind(data, wind) if self._gusts else with_calm_wind(data, wind)
        return data

    @staticmethod
    def _without_inputs(data: SimData, before: SimData) -> SimData:
        """Return the data with the parameters and inputs of plugins that it had before a step."""
        given = {k: before.plugins[k] for k in before.plugins.keys() & {WIND, WeakMotors.LOSS}}
        controls = with_params_of(data.controls, before.controls)
        return data.replace(params=before.params, plugins=data.plugins | given, controls=controls)

    def _advance_packed(
        self, arguments: Array, rest: Vectors, obstacles: Obstacles | None
    ) -> tuple[Array, Vectors]:
        form, column = self.form, self._inputs["level"]
        parts = form.parts(arguments)
        numbers, inputs, later = parts["state"], parts["inputs"], parts["later"]
        counts, n_state = parts["counts"].astype(jnp.int32), numbers.size

        def stretch(i: Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
            vectors, phase, given, results = carry
            n_ticks = counts[2 + i]
            now = vectors, given, parts["wind"], parts["gains"], phase, n_ticks, obstacles
            with separate_kernels(n_ticks > -1 if _on_cpu() else None):
                if self._blocks is None:
                    vectors, rows = self._advance(*now)
                else:
                    vectors, rows = self._blocks.advance(*now, parts.get("order"))
            stays = (rows[:, form.outputs["lost"]] > 0) | (given[:, column] < Level.held)
            level = jnp.where(stays, OUT_OF_SERVICE, later[i][:, column])
            return (
                vectors,
                phase + n_ticks,
                jnp.concatenate(
                    (later[i][:, : column.start], level, given[:, column.stop :]), axis=-1
                ),
                jax.lax.dynamic_update_slice(results, rows.ravel(), (n_state + i * rows.size,)),
            )

        n_rows = form.max_stretches * form.n_drones
        results = jnp.zeros(n_state + n_rows * self.width, inputs.dtype)
        carry = (form.joined(numbers, rest), counts[0], inputs, results)
        vectors, _, _, results = jax.lax.fori_loop(0, counts[1], stretch, carry)
        numbers, rest = form.parted(vectors)
        return jax.lax.dynamic_update_slice(results, numbers, (0,)), rest

    def _advance(
        self,
        vectors: Vectors,
        given: Array,
        wind: Array,
        gains: Array,
        phase: Array,
        n_ticks: Array,
        obstacles: Obstacles | None,
    ) -> tuple[Vectors, Array]:
        """Return state and rows of the output after some ticks."""
        before = self.split.unpack(vectors, self.fixed)
        data = self.with_inputs(before, given, wind, gains, phase, obstacles)
        data, impact = self.step.step(data, n_ticks)
        rows = self.rows(data, given, impact)
        return self.split.pack(self._without_inputs(data, before)), rows

    def rows(self, data: SimData, given: Array, impact: Array) -> Array:
        """Return rows of the output, (M, k).

        Args:
            data: State after a step.
            given: The inputs, (M, k).
            impact: The second result of `HoldingStep.step`.
        """
        controls, column = data.controls, self._inputs["level"]
        assert isinstance(controls, HoldableControls)
        lost = (controls.held & ~self.is_held(given[None, :, column]))[0]
        found = self._readings.columns(data) | {
            "lost": lost.astype(given.dtype),
            "impact": impact[0, :, None],
        }
        return jnp.concatenate([found[name] for name in self.form.outputs], axis=-1)


@contextmanager
def _as_in_kernel() -> Iterator[None]:
    """The context in which `one_kernel` traces, so that JAX reuses there what it traced here."""
    if not _on_cpu():
        yield
        return
    with ExitStack() as stack:
        if has_one_kernel():
            stack.enter_context(set_metadata(**ONE_KERNEL))
            stack.enter_context(set_metadata(**dict.fromkeys(ONE_KERNEL)))
        stack.enter_context(separate_kernels(jax.device_put(np.array(True))))
        yield


def _on_cpu() -> bool:
    return default_platform() == "cpu"


def _forces(config: SimulationConfig, n_drones: int, *, contacts: bool) -> tuple[External, ...]:
    """Return all forces on the drones."""
    names = (
        *(["ground_effect"] if config.ground_effect else []),
        *(["downwash"] if config.downwash and n_drones > 1 else []),
        *config.forces,
    )
    drone, freq = config.drone_model, config.freq
    built = (force_of(name)(drone, freq) for name in names)
    if not contacts:
        return tuple(built)
    return (*built, *contact_forces(drone, freq, drones=config.drone_collisions))


def contact_forces(drone_model: str, freq: float, *, drones: bool) -> tuple[External, ...]:
    """Return the contact forces of the runtime; `drones` also includes contacts between drones.

    Contacts with immovable objects come last, and take precedence.
    """
    names = (*(["drone_contact"] if drones else []), "obstacle_contact", "floor_contact")
    return tuple(force_of(name)(drone_model, freq) for name in names)
