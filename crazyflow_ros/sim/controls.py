"""The controls of a simulation: commands and controllers of each level, as JAX pytrees.

Shapes: N worlds, M drones per world. Units are SI, rotor speeds RPM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from crazyflow_ros.control import Control, Controller, PowerDistribution, mellinger
from crazyflow_ros.control.memory import INTEGRAL, RATES
from crazyflow_ros.drones import rotors_of
from crazyflow_ros.scene.conditions import STANDARD, Conditions
from crazyflow_ros.sim.conditioned import balancing
from crazyflow_ros.xla.on_device import on_device
from crazyflow_ros.xla.struct import Struct, static_field


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
    """(N, M, 2) 1 where roll or pitch follows `ang_vel_des` instead of an angle; None without
    such commands."""

    r_int_error = _remembered("r_int_error")
    """(N, M, 3) integral of the attitude error, s; like the next two, of Mellinger's controller."""
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
    """(N, M, n) commanded speeds of the n rotors, RPM."""
    rpy_thrust: Array | None
    """(N, M, 4) roll, pitch, yaw [rad] and collective thrust [N] that a fitted model follows."""
    actuators: Array
    """(N, M, n or 4) input of the dynamics in this tick: `rotor_vel` or `rpy_thrust` within
    limits."""
    armed: Array
    """(N, M, 1) bool: the rotors of an unarmed drone stop, whatever its command."""
    mode: Control = static_field()
    power_distribution: PowerDistribution = static_field()

    @staticmethod
    def create(
        n_worlds: int,
        n_drones: int,
        drone: str | Sequence[str],
        freqs: Mapping[Control, int],
        controller: Controller,
        *,
        mode: Control,
        power_distribution: PowerDistribution,
        hover_thrust: Any = None,
        is_fitted: bool = False,
        conditions: Conditions = STANDARD,
    ) -> SimControls:
        """Return initial controls.

        Args:
            n_worlds: Number of worlds.
            n_drones: Number of drones in each world.
            drone: A drone, or one for each drone of a world.
            freqs: Rates of the levels that the control mode uses [Hz].
            controller: Controller of position and attitude.
            mode: Meaning of commands.
            power_distribution: What the mixer does when the rotors cannot give thrust and torque.
            hover_thrust: Thrust [N] that the position controller adds against gravity, as in
                `params.hover_thrust`; None for the firmware's.
            is_fitted: Whether the model is a fitted one, which follows attitudes.
            conditions: Gravity, which position controllers balance.
        """
        size = n_worlds, n_drones
        create: dict[Control, Callable[..., Any]] = {
            Control.state: partial(StateControl.create, controller=controller),
            Control.attitude: partial(AttitudeControl.create, controller=controller),
            Control.body_rate: BodyRateControl.create,
            Control.force_torque: ForceTorqueControl.create,
        }
        levels = {
            str(level): make(*size, drone, freqs[level]) if level in freqs else None
            for level, make in create.items()
        }
        if (state := levels["state"]) is not None:
            own = balancing(state.params, conditions)
            if hover_thrust is not None:
                own = controller.cascade.true_to_mass(own, hover_thrust)
            levels["state"] = state.replace(params=own)
        n_rotors = len(rotors_of(drone))
        return SimControls(
            **levels,
            rotor_vel=filled(size, n_rotors),
            rpy_thrust=filled(size, 4) if is_fitted else None,
            actuators=filled(size, 4 if is_fitted else n_rotors),
            armed=on_device(np.ones((*size, 1), bool)),
            mode=mode,
            power_distribution=power_distribution,
        )


def filled(lead: tuple[int, int], values: int | ArrayLike) -> Array:
    """Return an array of shape (*lead, k) with `values` repeated, or with k = `values` zeros.

    Built with NumPy, because JAX would compile a function for each shape.
    """
    array = np.zeros(values) if isinstance(values, int) else np.asarray(values, float)
    return on_device(np.broadcast_to(array, (*lead, array.shape[-1])))


def _zeros(lead: tuple[int, int], memory: Mapping[str, int]) -> dict[str, Array]:
    return {name: filled(lead, k) for name, k in memory.items()}
