"""One world of a `Sim` as a function call of some 20 us: packed state, parameters as constants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.control import Control
from crazyflow_ros.dynamics.contact import floor_contact, rest_height
from crazyflow_ros.dynamics.first_principles import RPM
from crazyflow_ros.kernels import one_kernel, separate_kernels
from crazyflow_ros.runtime.config import SimulationConfig
from crazyflow_ros.runtime.levels import Level, LevelControls, follow_levels
from crazyflow_ros.runtime.snapshot import Snapshot
from crazyflow_ros.scene import MirrorState
from crazyflow_ros.scene.frames import world_to_body
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.packing import MovingLeaves, Vectors


class Engine:
    """The drones' state, and the compiled function that advances it. For one thread.

    Attributes:
        command: (M, k) command of each drone, in the form of the control mode, or of its level.
        armed: (M,) 0 or 1, an unarmed drone's rotors stop; or the drone's `Level`.
        wrench: (M, 6) external force [N] and torque [N m] on the centre of mass, world frame.
    """

    def __init__(
        self, config: SimulationConfig, names: Sequence[str], *, levels: bool = False
    ) -> None:
        """Build the simulation.

        Args:
            config: What is simulated; the control mode does not count with `levels`.
            names: Of the drones.
            levels: Each drone is commanded at a `Level` of its own.

        Raises:
            ValueError: The configuration names something that does not exist, or a rate that does
                not divide `freq`.
        """
        self._names, n_drones = tuple(names), len(names)
        self._rows = {name: i for i, name in enumerate(names)}
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
            forces=(floor_contact(config.drone_model, config.freq),),
            rng_key=config.seed,
        )
        if levels:
            follow_levels(self._sim, config)
        self._has_rotors = self._sim.dynamics.has_rotors
        self._step = self._sim.build_step_fn()
        self.freq, self.control = config.freq, self._sim.control
        self.control_period = self.freq // self._sim.control_freq
        """Ticks between two runs of the outermost controller."""
        self.initial_poses = self._checked_poses(config, n_drones)
        """(M, 7) position and attitude (xyzw) after the start."""
        # One array for all inputs: handing one over takes longer than a tick.
        k = self.control.sizes[0]
        self._inputs = np.zeros((n_drones, k + 7), self._sim.data.states.pos.dtype)
        self.command, self.armed = self._inputs[:, :k], self._inputs[:, k]
        self.wrench = self._inputs[:, k + 1 :]

        step = partial(self._step_with_inputs, inputs=jnp.asarray(self._inputs), phase=0, n_ticks=1)
        split = MovingLeaves(step, self._sim.data)
        # Fixed leaves, the parameters among them, enter the compiled function as constants.
        self._split, self._fixed = split, split.fixed(self._sim.data)
        self._pack = jax.jit(split.pack)
        self._advance = jax.jit(one_kernel(self._advance_packed), donate_argnums=0)
        self._vectors: Vectors = ()
        self._initial = self._at_rest(self.initial_poses)
        self.reset()

    def reset(self) -> None:
        """Back to the initial state, with fresh controllers, unarmed and without forces."""
        self._inputs[:] = 0
        self.set_state(self._initial, fresh_controllers=True)

    def set_state(self, state: MirrorState, *, fresh_controllers: bool = False) -> None:
        """Go on from a state; its time and accelerations are not used.

        Args:
            state: Of all drones.
            fresh_controllers: Forget what the controllers have integrated, too.
        """
        data = (
            self._sim.data if fresh_controllers else self._split.unpack(self._vectors, self._fixed)
        )
        states = data.states.replace(
            **{
                name: jnp.asarray(getattr(state, name), data.states.pos.dtype)[None]
                for name in ("pos", "quat", "vel", "ang_vel")
            },
        )
        if self._has_rotors:
            rotor_vel = jnp.asarray(state.rotor_vel / RPM, data.states.pos.dtype)[None]
            states = states.replace(rotor_vel=rotor_vel)
        self._vectors = self._pack(data.replace(states=states))
        self._rotor_angle = np.array(state.rotor_angle, float)
        self._rotor_vel = np.array(state.rotor_vel, float)

    def capture_initial_state(self, state: MirrorState) -> None:
        """Make a state the one that `reset` goes back to."""
        self._initial = state

    def tell(self, name: str, command: np.ndarray) -> None:
        """Give a drone a command, in the form of the control mode, and arm it."""
        row = self._rows[name]
        self.command[row], self.armed[row] = command, True

    def advance(self, tick: int, n_ticks: int, epoch: int) -> Snapshot:
        """Advance by `n_ticks` from `tick`; 0 only evaluates the accelerations.

        Returns:
            The state after the last tick.
        """
        phase = tick % self.freq  # every period divides freq, and this never overflows
        count = np.array((phase, n_ticks), np.int32)
        self._vectors, output = self._advance(self._vectors, self._inputs, count)
        columns = np.asarray(output, float)
        rotor_vel = columns[:, 22:] * RPM
        angle = self._rotor_angle + (self._rotor_vel + rotor_vel) * (n_ticks / self.freq / 2)
        self._rotor_angle, self._rotor_vel = angle % (2 * np.pi), rotor_vel
        tick += n_ticks
        return Snapshot(
            names=self._names,
            time_ns=tick * 1_000_000_000 // self.freq,
            pos=columns[:, :3],
            quat=columns[:, 3:7],
            vel=columns[:, 7:10],
            ang_vel=columns[:, 10:13],
            acc=columns[:, 13:16],
            ang_acc=columns[:, 16:19],
            body_vel=columns[:, 19:22],
            rotor_angle=self._rotor_angle,
            rotor_vel=rotor_vel,
            tick=tick,
            epoch=epoch,
        )

    def _step_with_inputs(
        self,
        data: SimData,
        inputs: Array,
        phase: Array | int,
        n_ticks: Array | int,
    ) -> SimData:
        controls, k = data.controls, self.control.sizes[0]
        command, armed, wrench = (
            inputs[None, :, :k],
            inputs[None, :, k : k + 1],
            inputs[None, :, k + 1 :],
        )
        if isinstance(controls, LevelControls):
            controls = controls.told(command, armed)
        elif self.control is Control.rotor_vel:
            controls = controls.replace(rotor_vel=command)
        else:
            level = getattr(controls, self.control).replace(cmd=command)
            controls = controls.replace(**{self.control.value: level})
        data = data.replace(
            states=data.states.replace(force=wrench[..., :3], torque=wrench[..., 3:]),
            controls=controls.replace(armed=armed > 0),
            core=data.core.replace(steps=jnp.full_like(data.core.steps, phase)),
        )
        return self._step(data, n_ticks)

    def _advance_packed(
        self, vectors: Vectors, inputs: Array, count: Array
    ) -> tuple[Vectors, Array]:
        with separate_kernels(count[1] > -1):
            data = self._split.unpack(vectors, self._fixed)
            data = self._step_with_inputs(data, inputs, count[0], count[1])
        states, rate = data.states, data.states_deriv
        if isinstance(data.controls, LevelControls):
            held = data.controls.level == Level.held
            rate = jax.tree.map(lambda x: jnp.where(held, 0, x), rate)
        kinematics = [states.pos, states.quat, states.vel, states.ang_vel]
        body_vel = world_to_body(states.quat, states.vel)
        rotor_vel = states.rotor_vel if self._has_rotors else jnp.zeros_like(states.rotor_vel)
        outputs = [*kinematics, rate.acc, rate.ang_acc, body_vel, rotor_vel]
        return self._split.pack(data), jnp.concatenate([x[0] for x in outputs], axis=-1)

    def _at_rest(self, poses: np.ndarray) -> MirrorState:
        three, four = np.zeros((len(poses), 3)), np.zeros((len(poses), 4))
        pos, quat = poses[:, :3], poses[:, 3:]
        return MirrorState(0, pos, quat, three, three, three, three, four, four)

    def _checked_poses(self, config: SimulationConfig, n_drones: int) -> np.ndarray:
        if config.initial_poses is None:
            states = self._sim.data.states
            poses = np.concatenate([states.pos[0], states.quat[0]], axis=-1, dtype=float)
            poses[:, 2] = rest_height(config.drone_model, config.freq)
            return poses
        poses = np.array(config.initial_poses, float)
        if poses.shape != (n_drones, 7):
            raise ValueError(f"initial_poses has the shape ({n_drones}, 7), got {poses.shape}")
        norm = np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
        if not np.isfinite(poses).all() or (norm == 0).any():
            raise ValueError(f"initial_poses must be finite with attitudes, got {poses.tolist()}")
        poses[:, 3:] /= norm
        return poses
