"""The controllers, as modules with the same interface.

Each has a position controller, from state to attitude commands, and an attitude controller, from
attitude commands to force and torque. Both are pure functions. Their memory is a dictionary of
component arrays by name, in which zeros mean that the controller has not run yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from jax import Array

from crazyflow_ros.control.firmware_parameters import FirmwareParameters
from crazyflow_ros.control.memory import Memory
from crazyflow_ros.control.power_distribution import PowerDistribution
from crazyflow_ros.control.rate_axes import RateAxes
from crazyflow_ros.dynamics.components import BodyState, Vec3, Vec4

Params = dict[str, Array]


class Cascade(Protocol):
    """Contents of the module of a controller."""

    @property
    def POSITION_MEMORY(self) -> Mapping[str, int]:
        """Memory of the position controller: number of components by name."""

    @property
    def ATTITUDE_MEMORY(self) -> Mapping[str, int]:
        """Memory of the attitude controller, `RATES` among it: number of components by name."""

    @property
    def HAS_RATE_MODES(self) -> bool:
        """Whether roll and pitch can follow body rates; otherwise `rate_axes` have no effect."""

    @property
    def GAINS(self) -> Mapping[str, int]:
        """Sizes of the parameters that can be changed in flight, by `<stage>.<name>`.

        Parameters named `tau` are times by which the controller divides.
        """

    @property
    def PARAMETERS(self) -> FirmwareParameters:
        """The firmware's parameters that are gains of this controller."""

    def firmware_units(self, stage: str, drone: str) -> Mapping[str, np.ndarray]:
        """Return factors from the firmware's units to those of `load_params` by gain; others are 1.

        Args:
            stage: `state` or `attitude`.
            drone: Name of the drone, or path of its folder.
        """

    def load_params(self, stage: str, drone: str | Sequence[str], freq: int) -> Params:
        """Load the parameters of one stage, shared by all worlds.

        Args:
            stage: `state` or `attitude`.
            drone: Name of the drone, or path of its folder; or a sequence of these, whose
                parameters are then stacked.
            freq: Rate of the controller, Hz.

        Raises:
            ValueError: There is no such drone, it has no figures of the controller, or the rate is
                too low.
        """

    def true_to_mass(self, params: Params, hover_thrust: Array) -> Params:
        """Return parameters of the position controller for the drone's true weight.

        Args:
            params: `load_params("state", ...)`.
            hover_thrust: (..., 1) N, collective thrust that balances gravity.
        """

    def state2attitude(
        self,
        body: BodyState,
        setpoint: tuple[Vec3, Vec3, Vec3, Vec4],
        memory: Memory,
        dt: float,
        params: Params,
    ) -> tuple[Vec3, Array, Memory]:
        """Run the position controller.

        A module that follows the firmware's setpoints of other modes has `HAS_SETPOINT_MODES =
        True`, and this function a further argument `modes`, see `Modes`; None means states. With
        `FORGETS_WITH_MODE = True`, a change of mode resets the memory of both controllers.

        Args:
            body: Measured state.
            setpoint: Position, velocity, acceleration (world frame, SI) and attitude, of which only
                the yaw is used.
            memory: Arrays of `POSITION_MEMORY`.
            dt: Period of the controller, s; the one for which `params` were loaded.
            params: `load_params("state", ...)`.

        Returns:
            Roll, pitch and yaw [rad], collective thrust [N], the new memory.
        """

    def attitude2force_torque(
        self,
        body: BodyState,
        setpoint: tuple[Vec3, Vec3, Array],
        memory: Memory,
        dt: float,
        params: Params,
        rate_axes: RateAxes = None,
        armed: Array | None = None,
        distribution: PowerDistribution = PowerDistribution.default,
    ) -> tuple[Array, Vec3, Memory]:
        """Run the attitude and body rate controller.

        Args:
            body: Measured state.
            setpoint: Roll, pitch, yaw [rad], body rates [rad/s] and collective thrust [N].
            memory: Arrays of `ATTITUDE_MEMORY`.
            dt: Period of the controller, s; the one for which `params` were loaded.
            params: `load_params("attitude", ...)`.
            rate_axes: Whether roll and pitch follow the body rates instead of the angles.
            armed: Whether the drone is armed; if not, integrals stay zero. None means armed.
            distribution: How rotors limit a thrust and torque that they cannot give together; only
                Mellinger's controller uses this, as in Crazyflow.

        Returns:
            Collective thrust [N], torque about the body axes [N m], the new memory.
        """


CONTENTS = sorted(name for name in vars(Cascade) if not name.startswith("_"))
"""Names that the module of a controller must have."""
