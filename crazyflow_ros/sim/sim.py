"""`Sim`: batched quadrotor simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from crazyflow_ros.control import Control
from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.dynamics import Drone, Dynamics
from crazyflow_ros.dynamics.contact import Force
from crazyflow_ros.dynamics.obstacles import SLOT_AXES, Obstacles
from crazyflow_ros.sim import functional, stages
from crazyflow_ros.sim.blocks import Arrays, Blocks, Packed
from crazyflow_ros.sim.data import SimData, SimStateDeriv
from crazyflow_ros.sim.integrators import Integrator
from crazyflow_ros.sim.packing import changed_leaves, repeat, traced
from crazyflow_ros.sim.randomize import ResetStage
from crazyflow_ros.sim.scene import SimScene, sync_sim2mjx
from crazyflow_ros.sim.stages import Remembering, Stage

# On the CPU XLA uses half of what the widest vectors hold.
_COMPILER_OPTIONS = {"xla_cpu_prefer_vector_width": 512}

StepFn = Callable[[SimData, Array | int], SimData]


class Sim(SimScene):
    """Quadrotors in parallel worlds, stepped as one compiled function.

    Attributes:
        step_pipeline: The stages of a tick, in order. Assign a changed tuple to change the physics,
            see `pipeline`.
        reset_pipeline: Stages that run after the state has been reset.
        forces: External influences that every evaluation of the dynamics adds up; given once.
        default_data: What a reset goes back to.
    """

    default_data: SimData

    def __init__(
        self,
        n_worlds: int = 1,
        n_drones: int | None = None,
        drone: str | Sequence[str] = Drone.default,
        dynamics: str = Dynamics.default,
        control: str = Control.default,
        integrator: str = Integrator.default,
        freq: int = 500,
        state_freq: int = 100,
        attitude_freq: int = 500,
        body_rate_freq: int = 500,
        force_torque_freq: int = 500,
        scene: str = "floor",
        forces: tuple[Force, ...] | None = None,
        rng_key: int = 0,
        true_mass: bool = False,
        obstacles: Obstacles | None = None,
    ) -> None:
        """Build a simulation.

        Args:
            n_worlds: Independent worlds.
            n_drones: Drones in each world: 1, or as many as `drone` names.
            drone: A `Drone`, or one for each drone of a world.
            dynamics: A `Dynamics`.
            control: A `Control`, what commands mean.
            integrator: An `Integrator`.
            freq: Physics ticks per second.
            state_freq: Rate of the position controller, Hz. Like the other rates it has to divide
                `freq`.
            attitude_freq: Rate of the attitude controller, Hz.
            body_rate_freq: Rate of the body rate controller, Hz.
            force_torque_freq: Rate of the motor mixer, Hz.
            scene: Name or path of the MJCF that the drones are put into.
            forces: External influences, e.g. `floor_contact(drone, freq)`. With None there are
                none, and the floor stops drones as Crazyflow's does.
            rng_key: Seed of `data.core.rng_key`.
            true_mass: Let the position controller know what thrust carries the drone, so that it
                hovers at the height commanded; the firmware's own idea of it leaves an error.
            obstacles: `data.params.obstacles`, which `obstacle_contact` in `forces` lets drones
                collide with.

        Raises:
            ValueError: An argument is out of range; the message names it.
        """
        names = (drone,) if isinstance(drone, str) else tuple(drone)
        models = tuple(_member(Drone, name) for name in names)
        if n_drones is None:
            n_drones = len(models)
        for name, value in (("n_worlds", n_worlds), ("n_drones", n_drones), ("freq", freq)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if not isinstance(drone, str) and len(models) != n_drones:
            raise ValueError(f"drone names {len(models)} drones, but n_drones is {n_drones}")
        self.drone: Drone | tuple[Drone, ...] = models[0] if isinstance(drone, str) else models
        self.dynamics = _member(Dynamics, dynamics)
        self.control = _member(Control, control)
        self.integrator = _member(Integrator, integrator)
        self.n_worlds, self.n_drones, self.freq = n_worlds, n_drones, freq
        self.forces: tuple[Force, ...] = forces or ()
        rates = {
            Control.state: state_freq,
            Control.attitude: attitude_freq,
            Control.body_rate: body_rate_freq,
            Control.force_torque: force_torque_freq,
        }
        controllers = stages.control_stages(self.dynamics, self.control)
        used = _levels(self.control, self.dynamics)
        for level in used:
            ticks_per_period(freq, rates[level], f"{level}_freq")

        self._step_pipeline = (
            *controllers,
            stages.integration(self.integrator, self.forces),
            stages.increment_steps,
            *(() if forces is not None else (stages.clip_floor_pos,)),
        )
        self._reset_pipeline: tuple[ResetStage, ...] = ()
        self._data = SimData.create(
            n_worlds,
            n_drones,
            drone=self.drone,
            dynamics=self.dynamics,
            control=self.control,
            freq=freq,
            control_freqs={level: rates[level] for level in used},
            seed=rng_key,
            true_mass=true_mass,
        )
        params = self._data.params.replace(obstacles=obstacles)
        self._data = self._data.replace(params=params)
        self._packed: Packed | None = None
        mixed = not isinstance(self.drone, str)
        self._figure_ndim = {
            path: x.ndim - mixed
            for path, x in jax.tree.leaves_with_path(self._data)
            if not _is_per_world(path)
        }
        self._step: _PackedStep | None = None
        self._steps: dict[object, _PackedStep] = {}
        self._reset: Callable[[SimData, SimData, Array | None], SimData] | None = None
        self.build_default_data()
        super().__init__(scene)

    @property
    def data(self) -> SimData:
        """The present data. Assign to change it."""
        if self._packed is not None:
            assert self._step is not None
            self._data = self._step.unpack(self._packed)
            self._packed = None
        return self._data

    @data.setter
    def data(self, data: SimData) -> None:
        synced = data.core.mjx_synced
        if not isinstance(synced, jax.core.Tracer) and bool(synced):
            data = data.replace(core=data.core.replace(mjx_synced=jnp.array(False)))
        self._data, self._packed = data, None

    @property
    def step_pipeline(self) -> tuple[Stage, ...]:
        """The stages of a tick."""
        return self._step_pipeline

    @step_pipeline.setter
    def step_pipeline(self, pipeline: tuple[Stage, ...]) -> None:
        self._data, self._packed = self.data, None  # still with the step that is thrown away
        for stage in pipeline:
            if isinstance(stage, Remembering) and stage not in self._step_pipeline:
                self._data = stage.begin(self._data)
                self.default_data = stage.begin(self.default_data)
        self._step_pipeline, self._steps = tuple(pipeline), {}

    @property
    def reset_pipeline(self) -> tuple[ResetStage, ...]:
        """The stages after a reset."""
        return self._reset_pipeline

    @reset_pipeline.setter
    def reset_pipeline(self, pipeline: tuple[ResetStage, ...]) -> None:
        self._reset_pipeline, self._reset = tuple(pipeline), None

    def step(self, n_steps: int = 1) -> None:
        """Advance all worlds by `n_steps` ticks. A new count does not compile anew."""
        if n_steps < 1:
            raise ValueError(f"n_steps must be at least 1, got {n_steps}")
        if self._packed is None or self._step is None:
            layout = _layout(self._data)
            if layout not in self._steps:
                self._steps[layout] = _PackedStep(
                    self._tick_fn(), self.derivative, self._data, self._has_world_axis(self._data)
                )
            self._step = self._steps[layout]
            self._packed = self._step.pack(self._data)
        self._packed = self._step(self._packed, n_steps)

    def reset(self, mask: ArrayLike | None = None) -> None:
        """Take worlds back to `default_data`.

        Args:
            mask: (n_worlds,) bool, the worlds to reset; all of them if None.
        """
        if mask is not None and np.shape(mask) != (self.n_worlds,):
            raise ValueError(f"mask has the shape ({self.n_worlds},), got {np.shape(mask)}")
        if self._reset is None:
            self._reset = self.build_reset_fn()
        worlds = None if mask is None else jnp.asarray(mask, bool)
        self.data = self._reset(self.data, self.default_data, worlds)

    def state_control(self, cmd: ArrayLike) -> None:
        """See `functional.state_control`."""
        self._command(Control.state, cmd)

    def attitude_control(self, cmd: ArrayLike) -> None:
        """See `functional.attitude_control`."""
        self._command(Control.attitude, cmd)

    def body_rate_control(self, cmd: ArrayLike) -> None:
        """See `functional.body_rate_control`."""
        self._command(Control.body_rate, cmd)

    def force_torque_control(self, cmd: ArrayLike) -> None:
        """See `functional.force_torque_control`."""
        self._command(Control.force_torque, cmd)

    def rotor_vel_control(self, cmd: ArrayLike) -> None:
        """See `functional.rotor_vel_control`."""
        self._command(Control.rotor_vel, cmd)

    def _command(self, control: Control, cmd: ArrayLike) -> None:
        if self._packed is None:
            setter = getattr(functional, f"{control}_control")
            self._data = setter(self._data, cmd)
        else:
            assert self._step is not None
            value = functional.checked_command(self._data, control, cmd)
            self._packed = self._step.command(self._packed, value=value)

    def seed(self, seed: int) -> None:
        """Set `data.core.rng_key`."""
        data = self.data
        self.data = data.replace(core=data.core.replace(rng_key=jax.random.key(seed)))

    @property
    def time(self) -> Array:
        """(N, 1) s since the last reset."""
        return self.data.core.steps / self.freq

    @property
    def control_freq(self) -> int:
        """Rate at which commands take effect, Hz."""
        if self.control is Control.rotor_vel:
            return self.freq
        return int(getattr(self.data.controls, self.control).freq)

    @property
    def controllable(self) -> Array:
        """See `functional.controllable`."""
        return functional.controllable(self.data)

    def build_default_data(self) -> SimData:
        """Make the present data those that a reset goes back to."""
        self.default_data = self.data
        return self.default_data

    def derivative(self, data: SimData) -> SimStateDeriv:
        """Time derivative of `data.states` under the commands in force."""
        rate = stages.derivative(data, data.states.components, self.forces)
        return SimStateDeriv.from_components(rate)

    def _pure_step_fn(self) -> StepFn:
        """The present pipeline as a pure function, not compiled."""
        tick, derivative = self._tick_fn(), self.derivative

        def step(data: SimData, n_steps: Array | int = 1) -> SimData:
            if isinstance(n_steps, int):  # a loop that can be differentiated
                data = repeat(tick, data, n_steps, changed_leaves(traced(tick, data)))
            else:
                blocks = Blocks(tick, data, self._has_world_axis(data))
                data = blocks.unpack(blocks.advance(blocks.pack(data), n_steps))
            return _not_synced(data.replace(states_deriv=derivative(data)))

        return step

    def _tick_fn(self) -> Callable[[SimData], SimData]:
        pipeline = self._step_pipeline

        def tick(data: SimData) -> SimData:
            for stage in pipeline:
                data = stage(data)
            return data

        return tick

    def _has_world_axis(self, data: SimData) -> list[bool]:
        """For each leaf: is its first axis that of the worlds? Parameters may have one, too.

        Raises:
            ValueError: The leading axes of a parameter are neither of drones nor of worlds.
        """
        sizes, flags = (self.n_worlds, self.n_drones), []
        for path, leaf in jax.tree.leaves_with_path(data):
            figure_ndim = self._figure_ndim.get(path, _obstacle_ndim(path, leaf))
            lead = leaf.shape[: leaf.ndim - figure_ndim]
            if len(lead) > 2 or any(n not in (1, size) for n, size in zip(lead[::-1], sizes[::-1])):
                name = jax.tree_util.keystr(path, simple=True, separator=".")
                raise ValueError(
                    f"{name} has the leading axes {lead}, expected (n_drones,) or "
                    f"(n_worlds, n_drones) = {sizes}, or 1 instead of them"
                )
            own = len(lead) == 2 and lead[0] == self.n_worlds
            flags.append(own or _is_per_world(path))
        return flags

    def build_step_fn(self) -> StepFn:
        """The present pipeline as a pure function of data and number of ticks.

        Called as it is it is compiled, once for all counts. Inside `jax.jit`, `jax.vmap` or
        `jax.grad` it becomes part of the transformed function; `jax.grad` needs the count to be an
        int.
        """
        pure = self._pure_step_fn()
        compiled = jax.jit(pure)

        def step(data: SimData, n_steps: Array | int = 1) -> SimData:
            traced = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(data))
            return (pure if traced else compiled)(data, n_steps)

        return step

    def build_reset_fn(self) -> Callable[[SimData, SimData, Array | None], SimData]:
        """The reset pipeline as a pure, compiled function of data, default data and mask."""
        pipeline = self._reset_pipeline

        @jax.jit
        def reset(data: SimData, default_data: SimData, mask: Array | None = None) -> SimData:
            key = data.core.rng_key
            if mask is None:
                data = default_data
            else:

                def restore(own: bool, now: Array, default: Array) -> Array:
                    worlds = mask.reshape(-1, *[1] * (now.ndim - 1))
                    return jnp.where(worlds, default, now) if own else now

                own = jax.tree.unflatten(jax.tree.structure(data), self._has_world_axis(data))
                data = jax.tree.map(restore, own, data, default_data)
            data = data.replace(core=data.core.replace(rng_key=key))
            for stage in pipeline:
                data = stage(data, default_data, mask)
            return _not_synced(data.replace(states_deriv=self.derivative(data)))

        return reset


E = TypeVar("E", bound=StrEnum)


def _layout(data: SimData) -> object:
    """What a compiled step depends on: structure, shapes and dtypes."""
    leaves, treedef = jax.tree.flatten(data)
    return treedef, tuple((x.shape, x.dtype) for x in leaves)


class _PackedStep:
    """A compiled step on packed data."""

    def __init__(
        self,
        tick: Callable[[SimData], SimData],
        derivative: Callable[[SimData], SimStateDeriv],
        data: SimData,
        has_world_axis: list[bool],
    ) -> None:
        blocks = Blocks(tick, data, has_world_axis)

        @jax.jit
        def unpack(packed: Packed) -> SimData:
            data = blocks.unpack(packed)
            return _not_synced(data.replace(states_deriv=derivative(data)))

        @partial(jax.jit, donate_argnums=0, compiler_options=_COMPILER_OPTIONS)
        def advance(moving: Arrays, fixed: Arrays, n_steps: Array) -> Arrays:
            return blocks.advance(Packed(moving, fixed), n_steps).moving

        self.pack, self.unpack, self._advance = jax.jit(blocks.pack), unpack, advance
        stored = functional.stored_command(data)
        self.command = partial(
            blocks.replace, leaf=next(i for i, x in enumerate(jax.tree.leaves(data)) if x is stored)
        )

    def __call__(self, packed: Packed, n_steps: int) -> Packed:
        return packed._replace(moving=self._advance(*packed, n_steps))


def _not_synced(data: SimData) -> SimData:
    """The MJX data no longer show the state."""
    core = data.core
    return data.replace(core=core.replace(mjx_synced=jnp.zeros_like(core.mjx_synced)))


def _levels(control: Control, dynamics: Dynamics) -> tuple[Control, ...]:
    """The control levels with a rate of their own that a mode runs through."""
    if not dynamics.has_rotors:
        return (Control.state, Control.attitude)[control is Control.attitude :]
    chain = {
        Control.state: (Control.state, Control.attitude, Control.force_torque),
        Control.attitude: (Control.attitude, Control.force_torque),
        Control.body_rate: (Control.body_rate, Control.force_torque),
        Control.force_torque: (Control.force_torque,),
        Control.rotor_vel: (),
    }
    return chain[control]


def _member(enum: type[E], value: str) -> E:
    try:
        return enum(value)
    except ValueError:
        names = ", ".join(enum)
        raise ValueError(f"unknown {enum.__name__.lower()} {value!r}, have {names}") from None


def _obstacle_ndim(path: tuple[object, ...], leaf: Array) -> int:
    """Axes of an array of `Obstacles` without leading ones; all of them of any other array."""
    names = [getattr(key, "name", "") for key in path]
    return -int(getattr(SLOT_AXES, names[-1])) if "obstacles" in names else leaf.ndim


def _is_per_world(path: tuple[object, ...]) -> bool:
    """Does the leaf always have a world axis?"""
    names = [getattr(key, "name", "") for key in path]
    if names[0] == "core":
        return names[1] == "steps"
    return "params" not in names


__all__ = ["Sim", "sync_sim2mjx"]
