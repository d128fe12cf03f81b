"""`BatchedWorlds`: the data of parallel worlds, and the functions that advance and reset them."""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

import jax
from jax import Array
from jax.typing import ArrayLike

from crazyflow_ros.control import Control
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.forces.external import External
from crazyflow_ros.sim import functional, motion
from crazyflow_ros.sim.arguments import mask_of, steps_of
from crazyflow_ros.sim.compile.live_data import LiveData
from crazyflow_ros.sim.compile.programs import Program, Stepping
from crazyflow_ros.sim.compile.stepping import (
    StepFn,
    count,
    tick_of,
)
from crazyflow_ros.sim.compile.ticks import Ending
from crazyflow_ros.sim.data import SimData, SimStateDeriv
from crazyflow_ros.sim.functional import seed_sim
from crazyflow_ros.sim.integrator import Integrator
from crazyflow_ros.sim.memories import Memories
from crazyflow_ros.sim.one_thread import OneThread
from crazyflow_ros.sim.randomize import ResetStage
from crazyflow_ros.sim.reset import ResetFn
from crazyflow_ros.sim.sim_kind import kind_of
from crazyflow_ros.sim.stages import Stage
from crazyflow_ros.sim.worlds import Worlds
from crazyflow_ros.xla.kernels import inlined


class BatchedWorlds:
    """Parallel worlds of drones, without a scene: the part of a `Sim` that is stepped.

    Attributes:
        n_worlds: Number of worlds.
        n_drones: Number of drones in each world.
        freq: Physics ticks per second.
        control: Meaning of commands.
        dynamics: The model.
        integrator: Its integrator.
        forces: External forces that every evaluation of the dynamics adds; they cannot be changed.
        default_data: Data that a reset restores.
        device: The device of the data; None if a mesh divides the worlds among several.
    """

    def __init__(
        self,
        data: SimData,
        worlds: Worlds,
        dynamics: Dynamics,
        integrator: Integrator,
        forces: tuple[External, ...],
        is_clipped: bool,
        device: jax.Device | None,
    ) -> None:
        """Hold data, and choose the stages that advance them.

        Args:
            data: The first data.
            worlds: The worlds, and their devices.
            dynamics: The model.
            integrator: Its integrator.
            forces: External forces.
            is_clipped: Whether the floor stops drones as Crazyflow's does.
            device: The device of the data; None if there are several.

        Raises:
            ValueError: The model does not accept commands of the data's control mode.
        """
        self.n_worlds, self.n_drones = data.core.n_worlds, data.core.n_drones
        self.freq, self.control, self.device = data.core.freq, data.controls.mode, device
        self.dynamics, self.integrator, self.forces = dynamics, integrator, forces
        self._one_thread, self._worlds, self._memories = OneThread(), worlds, Memories()
        is_estimated = data.estimate is not None
        self._kind = kind = kind_of(
            dynamics, self.control, integrator, forces, is_estimated, is_clipped
        )
        self._step_pipeline, self._stepping = kind.pipeline, kind.stepping
        self._reset_pipeline: tuple[ResetStage, ...] = ()
        self._reset: ResetFn | None = None
        self._first = self.default_data = data
        self._live = LiveData(data, worlds, kind.compiled_rate(worlds))
        self._contact_wrench = inlined(partial(motion.contact_wrench, forces=forces))

    @property
    def data(self) -> SimData:
        """The present data. Assign to change it.

        Assignment checks shapes and dtypes. It does not check values, because reading them would
        wait for the device. NaN or a zero quaternion makes the state of its drone NaN.

        Raises:
            ValueError: A field has another shape or dtype; the message names the field.
        """
        with self._one_thread:
            return self._live.data

    @data.setter
    def data(self, data: SimData) -> None:
        with self._one_thread:
            self._live.data = data

    @property
    def step_pipeline(self) -> tuple[Stage, ...]:
        """The stages of a tick, in order. Assign a changed tuple to change the physics.

        See `pipeline`.
        """
        return self._step_pipeline

    @step_pipeline.setter
    def step_pipeline(self, pipeline: tuple[Stage, ...]) -> None:
        pipeline = tuple(pipeline)
        before = (self.data, self.default_data)
        self._memories, after = self._memories.following(pipeline, before)
        self.data, self.default_data = map(self._worlds.placed, after)
        self._live.forget_programs()
        self._step_pipeline, self._stepping = pipeline, Stepping(tick_of(pipeline))

    @property
    def reset_pipeline(self) -> tuple[ResetStage, ...]:
        """The stages that run after a reset, see `ResetStage`.

        Raises:
            ValueError: A stage has a function `check`, and it refuses the present `default_data`.
        """
        return self._reset_pipeline

    @reset_pipeline.setter
    def reset_pipeline(self, pipeline: tuple[ResetStage, ...]) -> None:
        pipeline = tuple(pipeline)
        for stage in pipeline:
            if check := getattr(stage, "check", None):
                check(self.default_data)
        self._reset_pipeline, self._reset = pipeline, None

    def step(self, n_steps: int = 1) -> None:
        """Advance all worlds by `n_steps` ticks. A new number of ticks does not recompile.

        Raises:
            ValueError: `n_steps` is not an integer from 1 to `MAX_STEPS`.
            RuntimeError: Another thread is working on this simulation.
        """
        n = count(steps_of(n_steps))
        with self._one_thread:
            self._live.run(self._stepping, n)

    def run(self, program: Program, *inputs: Any) -> Any:
        """Advance the data by a custom program, e.g. `Composed(fn)`, and return its results.

        Data stay packed while the same program runs, so this costs less than calling a compiled
        function of `data` and assigning its result.

        Args:
            program: Compiled when it runs for the first time.
            *inputs: Its arguments, pytrees of arrays.

        Raises:
            RuntimeError: Another thread is working on this simulation.
        """
        with self._one_thread:
            return self._live.run(program, *inputs)

    def reset(self, mask: ArrayLike | None = None) -> None:
        """Reset worlds to `default_data`.

        Args:
            mask: (n_worlds,) bool, the worlds to reset; None for all.

        Raises:
            ValueError: The mask has another shape or dtype.
        """
        if mask is not None:
            mask = self._worlds.placed_array(mask_of(mask, self.n_worlds))
        if self._reset is None:
            self._reset = self._kind.reset_fn(self._reset_pipeline, False, self._worlds)
        with self._one_thread:
            data, default = self._live.data, self.default_data
            if mask is None:  # then only the random numbers of the present data matter
                data = default.replace(core=data.core, estimate=data.estimate)
            data = data.replace(states_deriv=default.states_deriv)  # which no stage reads
            self._live.restart(self._reset(data, default, mask))

    def state_control(self, cmd: ArrayLike) -> None:
        """Command position, velocity, acceleration and yaw.

        Args:
            cmd: (N, M, 13 or 16), see `Control.state`.

        Raises:
            ValueError: Wrong control mode or shape, NaN or infinity, zero quaternion.
        """
        self._command(Control.state, cmd)

    def attitude_control(self, cmd: ArrayLike) -> None:
        """Command attitude and thrust: (N, M, 4), see `Control.attitude`.

        Raises like `state_control`.
        """
        self._command(Control.attitude, cmd)

    def body_rate_control(self, cmd: ArrayLike) -> None:
        """Command body rates and thrust: (N, M, 4), see `Control.body_rate`."""
        self._command(Control.body_rate, cmd)

    def force_torque_control(self, cmd: ArrayLike) -> None:
        """Command thrust and torques: (N, M, 4), see `Control.force_torque`."""
        self._command(Control.force_torque, cmd)

    def rotor_vel_control(self, cmd: ArrayLike) -> None:
        """Command the speeds of the n rotors: (N, M, n) RPM."""
        self._command(Control.rotor_vel, cmd)

    def _command(self, control: Control, cmd: ArrayLike) -> None:
        with self._one_thread:
            self._live.command(control, cmd)

    def __reduce__(self) -> NoReturn:
        """Raise TypeError: compiled functions and user functions cannot be pickled."""
        raise TypeError(
            "a Sim holds compiled functions and cannot be pickled or copied: build another one "
            "with the same arguments, and give it the data, e.g. jax.device_get(sim.data)"
        )

    def seed(self, seed: int) -> None:
        """Set `data.core.rng_key`, and the random numbers of estimates."""
        # Steps compile again for a key that is committed to a device beside other data.
        device = self.device if self.data.states.pos.committed else None
        self.data = seed_sim(self.data, seed, device)

    @property
    def time(self) -> Array:
        """(N, 1) time since the last reset, s."""
        return self.data.core.steps / self.freq

    @property
    def control_freq(self) -> int:
        """Rate at which commands take effect, Hz."""
        if self.control is Control.rotor_vel:
            return self.freq
        return int(getattr(self.data.controls, self.control).freq)

    @property
    def controllable(self) -> Array:
        """Whether a new command takes effect in the next tick of each world, (N, 1) bool."""
        return functional.controllable(self.data)

    def build_data(self) -> SimData:
        """Restore the data of a new simulation, except for the random key, and return them.

        Stages begin again with their initial memory.
        """
        data, core = self._first, self.data.core
        kept = {"rng_key": core.rng_key, "drone_mocap_ids": core.drone_mocap_ids}
        data = data.replace(core=data.core.replace(**kept))
        _, (data,) = Memories().following(self._step_pipeline, [data])
        self.data = self._worlds.placed(data)
        return self.data

    def build_default_data(self) -> SimData:
        """Make the present data the default data, which a reset restores."""
        self.default_data = self.data
        return self.default_data

    def derivative(self, data: SimData) -> SimStateDeriv:
        """Return the time derivative of `data.states` under the commands in force."""
        return self._kind.rate(data)

    def contact_wrench(self, data: SimData) -> Array:
        """Return the wrench of the contacts among `forces`, computed from `data.states_deriv`.

        Returns:
            (N, M, 6) force [N] and torque [N m] on the centre of mass, world frame.
        """
        return self._contact_wrench(data)

    def build_step_fn(self, derivative: bool = False, last: Ending | None = None) -> StepFn:
        """Return the present pipeline as a pure function of data and number of ticks.

        A plain call is compiled, once for all numbers of ticks. Inside `jax.jit`, `jax.vmap` or
        `jax.grad` the function becomes part of the transformed one; `jax.grad` needs an int as the
        number of ticks.

        Args:
            derivative: Whether to evaluate `states_deriv` at the end, which takes about as long as
                a tick. Otherwise these stay as they are given; `derivative` returns them.
            last: Function of the data before and after the ticks. It runs at the end and replaces
                the evaluation of `states_deriv`.
        """
        if last is None and derivative:
            last = self._kind.ending
        return self._kind.step_fn(self._stepping, last, self._worlds)

    def owned(self, data: SimData) -> list[bool]:
        """Return for each leaf of data whether its first axis is that of the worlds."""
        return self._worlds.owned(data)

    def build_reset_fn(self, derivative: bool = False) -> ResetFn:
        """Return the reset pipeline as a pure function of data, default data and mask.

        A plain call is compiled.

        Args:
            derivative: Whether to evaluate `states_deriv`, as in `build_step_fn`.
        """
        return self._kind.reset_fn(self._reset_pipeline, derivative, self._worlds)
