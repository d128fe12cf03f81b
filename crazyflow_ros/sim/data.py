"""The state of a simulation: `SimData`, one immutable JAX pytree.

Shapes: N worlds, M drones per world. Units are SI, rotor speeds RPM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from crazyflow_ros.control import Control, Controller, PowerDistribution, mellinger
from crazyflow_ros.control.memory import INTEGRAL, RATES
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.components import BodyDerivative, BodyState, split, stack
from crazyflow_ros.dynamics.rigid_body import RigidBody, of_each
from crazyflow_ros.estimation import Estimator, Positioning
from crazyflow_ros.estimation.estimate import Estimate
from crazyflow_ros.scene.frames import grid_2d
from crazyflow_ros.xla.on_device import on_device, random_key
from crazyflow_ros.xla.struct import Struct, static_field


class SimState(Struct):
    """Kinematic state of the drones, and the external wrench on them."""

    pos: Array
    """(N, M, 3) centre of mass, world frame, m."""
    quat: Array
    """(N, M, 4) body to world, xyzw."""
    vel: Array
    """(N, M, 3) world frame, m/s."""
    ang_vel: Array
    """(N, M, 3) body frame, rad/s."""
    force: Array
    """(N, M, 3) external force on the centre of mass, world frame, N. Remains until changed."""
    torque: Array
    """(N, M, 3) external torque, world frame, N m. Remains until changed."""
    rotor_vel: Array
    """(N, M, 4) RPM; in the models so_rpy_rotor and so_rpy_rotor_drag, four copies of the
    collective thrust in N."""

    @staticmethod
    def create(n_worlds: int, n_drones: int) -> SimState:
        """Return drones at rest and level, side by side on a grid of 1 m."""
        shape = (n_worlds, n_drones)
        zeros = filled(shape, 3)
        return SimState(
            pos=filled(shape, np.pad(grid_2d(n_drones), ((0, 0), (0, 1)))),
            quat=filled(shape, [0, 0, 0, 1]),
            vel=zeros,
            ang_vel=zeros,
            force=zeros,
            torque=zeros,
            rotor_vel=filled(shape, 4),
        )

    @property
    def components(self) -> BodyState:
        """The state as tuples of component arrays of shape (N, M)."""
        fields = (self.pos, self.quat, self.vel, self.ang_vel, self.rotor_vel)
        return BodyState(*(split(field) for field in fields))  # type: ignore[arg-type]

    def with_components(self, state: BodyState) -> SimState:
        """Return a copy with the kinematic state of component arrays."""
        return self.replace(**{k: stack(v) for k, v in state._asdict().items()})


class SimStateDeriv(Struct):
    """Time derivative of `SimState`, evaluated at the end of a step or reset."""

    vel: Array
    """(N, M, 3) m/s, world frame."""
    ang_vel: Array
    """(N, M, 3) rad/s, body frame."""
    acc: Array
    """(N, M, 3) m/s^2, world frame."""
    ang_acc: Array
    """(N, M, 3) rad/s^2, body frame."""
    rotor_acc: Array
    """(N, M, 4) RPM/s, or N/s as in `SimState`."""

    @staticmethod
    def create(n_worlds: int, n_drones: int) -> SimStateDeriv:
        """Return derivatives of zero."""
        zeros = filled((n_worlds, n_drones), 3)
        return SimStateDeriv(zeros, zeros, zeros, zeros, filled((n_worlds, n_drones), 4))

    @staticmethod
    def from_components(derivative: BodyDerivative) -> SimStateDeriv:
        """Convert component arrays of shape (N, M)."""
        return SimStateDeriv(**{k: stack(v) for k, v in derivative._asdict().items()})


def _remembered(name: str) -> Any:
    """Return a property for a part of the memory, for users of Crazyflow's names."""
    return property(lambda self: self.memory[name])


class StateControl(Struct):
    """Command and memory of the position controller."""

    cmd: Array
    """(N, M, 16) latest command, see `Control.state`. It takes effect when the controller runs."""
    memory: dict[str, Array]
    """(N, M, k) by name; zeros before the controller has run, see the module of the controller."""
    params: dict[str, Array]
    freq: int = static_field()
    controller: Controller = static_field()

    pos_err_i = _remembered(INTEGRAL)
    """(N, M, 3) integral of the position error, m s; of Mellinger's controller."""

    @staticmethod
    def create(
        n_worlds: int,
        n_drones: int,
        drone: str | Sequence[str],
        freq: int,
        controller: Controller = Controller.default,
    ) -> StateControl:
        """Return a command to hover at the origin."""
        cascade, size = controller.cascade, (n_worlds, n_drones)
        cmd, memory = filled(size, [*[0] * 12, 1, 0, 0, 0]), _zeros(size, cascade.POSITION_MEMORY)
        params = cascade.load_params("state", drone, freq)
        return StateControl(cmd, memory, params, freq, controller)


class AttitudeControl(Struct):
    """Command and memory of the attitude controller."""

    cmd: Array
    """(N, M, 4) latest command, see `Control.attitude`."""
    ang_vel_des: Array
    """(N, M, 3) desired body rates, rad/s; not zero only if the position controller sets them."""
    memory: dict[str, Array]
    """(N, M, k) by name; zeros before the controller has run, see the module of the controller."""
    params: dict[str, Array]
    freq: int = static_field()
    controller: Controller = static_field()
    rate_axes: Array | None = None
    """(N, M, 2) 1 where roll or pitch follows `ang_vel_des` instead of an angle; None if none
    does."""

    r_int_error = _remembered("r_int_error")
    """(N, M, 3) integral of the attitude error, s; as the next two of Mellinger's controller."""
    prev_ang_vel = _remembered("prev_ang_vel")
    """(N, M, 3) body rates at the controller's last run, rad/s."""
    prev_ang_vel_des = _remembered(RATES)
    """(N, M, 3) desired body rates at the controller's last run, rad/s."""

    @staticmethod
    def create(
        n_worlds: int,
        n_drones: int,
        drone: str | Sequence[str],
        freq: int,
        controller: Controller = Controller.default,
    ) -> AttitudeControl:
        """Return a command for a level attitude without thrust."""
        cascade, size = controller.cascade, (n_worlds, n_drones)
        memory, params = (
            _zeros(size, cascade.ATTITUDE_MEMORY),
            cascade.load_params("attitude", drone, freq),
        )
        return AttitudeControl(filled(size, 4), filled(size, 3), memory, params, freq, controller)


class BodyRateControl(Struct):
    """Command and memory of the body rate controller, which is Mellinger's attitude controller."""

    cmd: Array
    """(N, M, 4) latest command, see `Control.body_rate`."""
    memory: dict[str, Array]
    """(N, M, k) by name, see `mellinger`."""
    params: dict[str, Array]
    freq: int = static_field()

    r_int_error = _remembered("r_int_error")
    """As in `AttitudeControl`."""
    prev_ang_vel = _remembered("prev_ang_vel")
    prev_ang_vel_des = _remembered(RATES)

    @staticmethod
    def create(
        n_worlds: int, n_drones: int, drone: str | Sequence[str], freq: int
    ) -> BodyRateControl:
        """Return a command without rotation and thrust."""
        size = n_worlds, n_drones
        memory = _zeros(size, mellinger.ATTITUDE_MEMORY)
        return BodyRateControl(
            filled(size, 4), memory, mellinger.load_params("attitude", drone), freq
        )


class ForceTorqueControl(Struct):
    """Command of the motor mixer."""

    cmd: Array
    """(N, M, 4) latest command, see `Control.force_torque`."""
    params: dict[str, Array]
    freq: int = static_field()

    @staticmethod
    def create(
        n_worlds: int, n_drones: int, drone: str | Sequence[str], freq: int
    ) -> ForceTorqueControl:
        """Return a command without thrust."""
        cmd = filled((n_worlds, n_drones), 4)
        return ForceTorqueControl(cmd, mellinger.load_params("force_torque", drone), freq)


class SimControls(Struct):
    """Commands and controllers. Levels that the control mode does not use are None."""

    state: StateControl | None
    attitude: AttitudeControl | None
    body_rate: BodyRateControl | None
    force_torque: ForceTorqueControl | None
    rotor_vel: Array
    """(N, M, 4) commanded rotor speeds, RPM."""
    rpy_thrust: Array | None
    """(N, M, 4) roll, pitch, yaw [rad] and collective thrust [N] that a fitted model follows."""
    actuators: Array
    """(N, M, 4) input of the dynamics in this tick: `rotor_vel` or `rpy_thrust` within limits."""
    armed: Array
    """(N, M, 1) bool: the rotors of an unarmed drone stop, whatever its command."""
    mode: Control = static_field()
    power_distribution: PowerDistribution = static_field()


class SimCore(Struct):
    """Bookkeeping of the simulation."""

    steps: Array
    """(N, 1) ticks since the last reset."""
    drone_mocap_ids: Array
    """(M,) MuJoCo mocap ids of the drones."""
    rng_key: Array
    """JAX random key; a reset does not restore it."""
    mjx_synced: Array
    """bool: whether the MJX data show the present state."""
    freq: int = static_field()
    """Physics ticks per second."""
    n_worlds: int = static_field()
    n_drones: int = static_field()


class SimData(Struct):
    """Everything that a step reads or changes."""

    states: SimState
    states_deriv: SimStateDeriv
    controls: SimControls
    params: RigidBody
    core: SimCore
    plugins: dict[str, Array]
    """Memory of custom stages, by name: arrays (N, M, ...) or (N, 1, ...)."""
    estimate: Estimate | None
    """Estimates of the drones' states; None if the controllers know the true states."""

    @staticmethod
    def create(
        n_worlds: int,
        n_drones: int,
        *,
        drone: str | Sequence[str],
        dynamics: Dynamics,
        control: Control,
        controller: Controller,
        power_distribution: PowerDistribution,
        freq: int,
        control_freqs: dict[Control, int],
        seed: int,
        true_mass: bool,
        estimator: Estimator,
        positioning: Positioning | None,
    ) -> SimData:
        """Return initial data.

        `control_freqs` holds the levels that the control mode uses; drones with `positioning` fly
        on an estimate.
        """
        params = of_each(dynamics.params.create, drone)
        create: dict[Control, Callable[..., Any]] = {
            Control.state: partial(StateControl.create, controller=controller),
            Control.attitude: partial(AttitudeControl.create, controller=controller),
            Control.body_rate: BodyRateControl.create,
            Control.force_torque: ForceTorqueControl.create,
        }
        levels = {
            str(level): make(n_worlds, n_drones, drone, control_freqs[level])
            if level in control_freqs
            else None
            for level, make in create.items()
        }
        if true_mass and (state := levels["state"]) is not None:
            own = controller.cascade.true_to_mass(state.params, params.hover_thrust)
            levels["state"] = state.replace(params=own)
        data = SimData(
            states=SimState.create(n_worlds, n_drones),
            states_deriv=SimStateDeriv.create(n_worlds, n_drones),
            controls=SimControls(
                **levels,
                rotor_vel=filled((n_worlds, n_drones), 4),
                rpy_thrust=None if dynamics.has_rotors else filled((n_worlds, n_drones), 4),
                actuators=filled((n_worlds, n_drones), 4),
                armed=on_device(np.ones((n_worlds, n_drones, 1), bool)),
                mode=control,
                power_distribution=power_distribution,
            ),
            params=params,
            core=SimCore(
                steps=on_device(np.zeros((n_worlds, 1), np.int32)),
                drone_mocap_ids=on_device(np.arange(n_drones, dtype=np.int32)),
                rng_key=random_key(seed),
                mjx_synced=on_device(False),
                freq=freq,
                n_worlds=n_worlds,
                n_drones=n_drones,
            ),
            plugins={},
            estimate=None
            if positioning is None
            else estimator.estimate.create(n_worlds, n_drones, positioning, freq, seed),
        )
        return _with_own_buffers(data)


def _with_own_buffers(data: SimData) -> SimData:
    """Return data in which no two arrays are the same, so that they can be donated to XLA."""
    seen: set[int] = set()

    def own(leaf: Array) -> Array:
        if id(leaf) in seen:
            return on_device(np.asarray(leaf))
        seen.add(id(leaf))
        return leaf

    return jax.tree.map(own, data)


def check_precision(data: SimData) -> None:
    """Check that JAX computes in the precision of the data.

    Raises:
        ValueError: The data have double precision, and JAX uses single precision.
    """
    if isinstance(data.states.pos, Array):  # JAX converts arrays of NumPy
        check_dtype(data.states.pos.dtype)


def check_dtype(dtype: np.dtype) -> None:
    """Check that JAX computes with a type of numbers.

    Raises:
        ValueError: It is of double precision, and JAX uses single precision.
    """
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise ValueError(
            "the simulation was built in double precision, so use it within "
            "jax.enable_x64(True), too: here JAX computes in float32"
        )


def filled(lead: tuple[int, int], values: int | ArrayLike) -> Array:
    """Return an array of shape (*lead, k) with `values` repeated, or with k = `values` zeros.

    Built with NumPy, because JAX would compile a function for each shape.
    """
    array = np.zeros(values) if isinstance(values, int) else np.asarray(values, float)
    return on_device(np.broadcast_to(array, (*lead, array.shape[-1])))


def _zeros(lead: tuple[int, int], memory: Mapping[str, int]) -> dict[str, Array]:
    return {name: filled(lead, k) for name, k in memory.items()}
