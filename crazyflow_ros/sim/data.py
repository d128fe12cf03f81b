"""The state of a simulation: `SimData`, one immutable JAX pytree.

Shapes: N worlds, M drones per world. Units are SI, rotor speeds RPM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import Array

from crazyflow_ros.control import Control, Controller, PowerDistribution
from crazyflow_ros.drones import rotors_of
from crazyflow_ros.drones.deck_optics import DeckSurface
from crazyflow_ros.drones.rotors import QUADROTOR
from crazyflow_ros.dynamics import Dynamics, check_rotors
from crazyflow_ros.dynamics.components import BodyDerivative, BodyState, split, stack
from crazyflow_ros.dynamics.rigid_body import RigidBody, of_each
from crazyflow_ros.estimation import Estimator, Positioning
from crazyflow_ros.estimation.estimate import Estimate
from crazyflow_ros.scene.conditions import GRAVITY, STANDARD, Conditions
from crazyflow_ros.scene.frames import grid_2d
from crazyflow_ros.sim.conditioned import conditioned, hover_thrust
from crazyflow_ros.sim.controls import SimControls, filled
from crazyflow_ros.sim.payload import Payload
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
    """(N, M, n) RPM of n rotors; in the models so_rpy_rotor and so_rpy_rotor_drag, four copies of
    the collective thrust in N."""

    @staticmethod
    def create(
        n_worlds: int, n_drones: int, n_rotors: int = QUADROTOR, floor: float = 0.0
    ) -> SimState:
        """Return drones at rest and level, side by side on a grid of 1 m, at a height [m]."""
        shape = (n_worlds, n_drones)
        zeros, places = filled(shape, 3), grid_2d(n_drones)
        return SimState(
            pos=filled(shape, np.pad(places, ((0, 0), (0, 1)), constant_values=floor)),
            quat=filled(shape, [0, 0, 0, 1]),
            vel=zeros,
            ang_vel=zeros,
            force=zeros,
            torque=zeros,
            rotor_vel=filled(shape, n_rotors),
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
    """Time derivative of `SimState`, in `Sim.data` that of the present states.

    The functions of `build_step_fn` and `build_reset_fn` leave it as it is unless asked.
    """

    vel: Array
    """(N, M, 3) m/s, world frame."""
    ang_vel: Array
    """(N, M, 3) rad/s, body frame."""
    acc: Array
    """(N, M, 3) m/s^2, world frame."""
    ang_acc: Array
    """(N, M, 3) rad/s^2, body frame."""
    rotor_acc: Array
    """(N, M, n) RPM/s, or N/s as in `SimState`."""

    @staticmethod
    def create(n_worlds: int, n_drones: int, n_rotors: int = QUADROTOR) -> SimStateDeriv:
        """Return derivatives of zero."""
        shape = n_worlds, n_drones
        zeros = filled(shape, 3)
        return SimStateDeriv(zeros, zeros, zeros, zeros, filled(shape, n_rotors))

    @staticmethod
    def from_components(derivative: BodyDerivative) -> SimStateDeriv:
        """Convert component arrays of shape (N, M)."""
        return SimStateDeriv(**{k: stack(v) for k, v in derivative._asdict().items()})


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
    payload: Payload | None
    """Slung loads; None if the drones carry nothing."""

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
        conditions: Conditions = STANDARD,
    ) -> SimData:
        """Return initial data.

        `control_freqs` holds the levels that the control mode uses; drones with `positioning` fly
        on an estimate.

        Raises:
            ValueError: Drones differ in the number of rotors, or the model has no such drones.
        """
        has_rotors, n_rotors = dynamics.has_rotors, len(rotors_of(drone))
        check_rotors(dynamics, drone)
        params = of_each(dynamics.params.create, drone)
        hover = hover_thrust(params, conditions, has_rotors=has_rotors) if true_mass else None
        controls = SimControls.create(
            n_worlds,
            n_drones,
            drone,
            control_freqs,
            controller,
            mode=control,
            power_distribution=power_distribution,
            hover_thrust=hover,
            is_fitted=not has_rotors,
            conditions=conditions,
        )
        data = SimData(
            states=SimState.create(n_worlds, n_drones, n_rotors, conditions.floor or 0.0),
            states_deriv=SimStateDeriv.create(n_worlds, n_drones, n_rotors),
            controls=controls,
            params=conditioned(params, conditions, has_rotors=has_rotors),
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
            else estimator.estimate.create(n_worlds, n_drones, positioning, freq, seed).replace(
                **_known_to_filter(conditions)
            ),
            payload=None,
        )
        return _with_own_buffers(data)


def _known_to_filter(conditions: Conditions) -> dict[str, Any]:
    """Return the fields of an `Estimate` that differ from the standard ones."""
    known: dict[str, Any] = {"surface": DeckSurface(*conditions.surface)}
    if conditions.gravity != GRAVITY:
        known["gravity"] = -conditions.balanced[2]
    return known | ({"floor": conditions.ground} if conditions.floor != 0 else {})


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
        ValueError: The type has double precision, and JAX uses single precision.
    """
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise ValueError(
            "the simulation was built in double precision, so use it within "
            "jax.enable_x64(True), too: here JAX computes in float32"
        )
