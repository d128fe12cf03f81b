"""Configuration of a simulation, and how fast it runs."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.enum_members import OpenEnum
from crazyflow_ros.checks.plain_values import Names, Numbers, ParameterError, Spec
from crazyflow_ros.control import Control, Controller, PowerDistribution
from crazyflow_ros.control.rates import DEFAULT_RATE, DEFAULT_RATES
from crazyflow_ros.drones import DEFAULT_DRONE, Drone
from crazyflow_ros.drones.parameter import own_drone
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.forces import force_of
from crazyflow_ros.engine.disturbances import Wind, check_wind
from crazyflow_ros.estimation import Estimator, Positioning
from crazyflow_ros.flight import FlightConfig
from crazyflow_ros.sim.integrator import Integrator
from crazyflow_ros.sim.wind import ALTITUDES

SLOWEST_FACTOR = 1e-6
"""The lowest real-time factor, simulated seconds per second. To stop the simulation, pause it."""
FASTEST_FACTOR = 1e6
MAX_RATE = 100_000
"""Hz."""


def rate(what: str) -> Spec:
    """Return the specification of a rate that cannot be 0."""
    return Spec(f"Rate of {what} [Hz]; must divide freq", 1, MAX_RATE)


def _one_of(enum: type[OpenEnum], what: str) -> Spec:
    """Return the specification of a member of an enumeration, which packages may add to."""
    parameter = enum.__name__.lower()

    def added(name: str) -> str:
        if name not in (known := enum.known()):
            raise ParameterError(parameter, f"one of {', '.join(known)}", name)
        return name

    return Spec(
        f"{what}; or the name of one that an installed package has",
        choices=[*enum],
        otherwise=added,
    )


def _check_forces(parameter: str, names: Names) -> None:
    for name in names:
        try:
            force_of(name)
        except ValueError as error:
            raise ValueError(f"{parameter}: {error}") from None


@dataclass(frozen=True)
class SimulationOptions:
    """What users choose of a running simulation; fields named as arguments of `Sim` mean the same.

    The node's parameters of these names and the options of the Crazyflie program are these fields.
    """

    drone_model: Annotated[
        str,
        Spec(
            "Model of all drones, or the path of a folder with drone.toml and a drawing",
            choices=list(Drone),
            otherwise=own_drone,
        ),
    ] = DEFAULT_DRONE
    scene: Annotated[str, Spec("Name of a scene in urdf_mjcf, or path of an MJCF or URDF file")] = (
        "floor"
    )
    dynamics: Annotated[
        str, _one_of(Dynamics, "Dynamics model; so_rpy and its kin have no rotor speeds")
    ] = str(Dynamics.default)
    control: Annotated[str, Spec("Control mode of <drone>/command", choices=list(Control))] = str(
        Control.state
    )
    controller: Annotated[
        str,
        _one_of(Controller, "Position and attitude controller, as in the firmware"),
    ] = str(Controller.default)
    policy: Annotated[
        str,
        Spec(
            "Path of a file with a policy that flies all drones in place of the controllers; its "
            "goals come from cmd_pose and the other commands; empty: none"
        ),
    ] = ""
    """See `policy.load`. It needs control=state, and replaces `state_freq`."""
    integrator: Annotated[str, _one_of(Integrator, "Integration method")] = str(Integrator.default)
    freq: Annotated[int, Spec("Physics ticks per simulated second", 1, MAX_RATE)] = 500
    state_freq: Annotated[int, rate("the position controller")] = DEFAULT_RATES[Control.state]
    attitude_freq: Annotated[int, rate("the attitude controller")] = DEFAULT_RATE
    body_rate_freq: Annotated[int, rate("the body rate controller")] = DEFAULT_RATE
    force_torque_freq: Annotated[int, rate("the motor mixer")] = DEFAULT_RATE
    true_mass: Annotated[
        bool,
        Spec("The position controller uses the true mass instead of the firmware's value"),
    ] = False
    power_distribution: Annotated[
        str,
        Spec(
            "When rotors cannot give thrust and torque together: keep the torque, as the firmware "
            "(capped), or limit each rotor by itself, as Crazyflow (clipped)",
            choices=list(PowerDistribution),
        ),
    ] = str(PowerDistribution.capped)
    estimator: Annotated[
        str,
        _one_of(
            Estimator,
            "State that the controllers use: the true one, or the estimate of the firmware's "
            "Kalman filter, which measures with crazyflie.decks and mocap",
        ),
    ] = str(Estimator.default)
    battery: Annotated[
        bool,
        Spec(
            "Batteries discharge, and rotors lose speed as they run low; needs dynamics "
            "first_principles"
        ),
    ] = False
    """See `sim.Battery`; a reset recharges it."""
    randomize: Annotated[
        str,
        Spec(
            "Path of a YAML file of the parameters that each drone draws at its start and at its "
            "resets; empty: none"
        ),
    ] = ""
    """See `sim.randomizers`; only parameters of the dynamics can be drawn."""
    wind: Annotated[
        Numbers,
        Spec("Mean wind x, y, z in map [m/s], up to 30", read_only=False, check=check_wind),
    ] = (0.0, 0.0, 0.0)
    """Wind at the start, like the next two fields; see `disturbances.Wind`."""
    gust_intensity: Annotated[
        float,
        Spec(
            "Dryden gusts: standard deviation of the vertical component [m/s]",
            0,
            limits.GUST.most,
            read_only=False,
        ),
    ] = Wind.gust_intensity
    gust_altitude: Annotated[
        float,
        Spec(
            "Height above ground for which the gusts are computed [m]", *ALTITUDES, read_only=False
        ),
    ] = Wind.gust_altitude
    forces: Annotated[
        Names,
        Spec(
            "Further forces on the drones, by their names in installed packages",
            check=_check_forces,
        ),
    ] = ()
    """See `dynamics.forces.external.force_of`."""
    ground_effect: Annotated[bool, Spec("Rotors have more thrust near the floor")] = False
    """See `dynamics.forces.aerodynamics.ground_effect`."""
    downwash: Annotated[bool, Spec("Drones feel the downwash of drones above them")] = False
    """See `dynamics.forces.aerodynamics.downwash`."""
    drone_collisions: Annotated[
        bool, Spec("Drones collide with one another; if false, they fly through each other")
    ] = False
    real_time_factor: Annotated[
        float,
        Spec(
            "Simulated time over wall time; 0: as fast as possible, minimum 0.000001",
            0,
            FASTEST_FACTOR,
            read_only=False,
            least=SLOWEST_FACTOR,
        ),
    ] = 1.0
    start_paused: Annotated[
        bool, Spec("Time stands still until a client calls ~/pause with false")
    ] = False
    seed: Annotated[int, Spec("Seed of all random numbers", 0, 2**31 - 1)] = 0
    max_drones: Annotated[
        int,
        Spec(
            "Number of drones for which the physics is compiled; with more, it is compiled again; "
            "0: the number at the start",
            0,
            10_000,
        ),
    ] = 0
    watchdog_timeout: Annotated[
        float,
        Spec("Wall time without progress after which ~/status reports a hang [s]", 0.01, 3600),
    ] = 5.0
    flight: FlightConfig = field(default_factory=FlightConfig)
    """How drones fly to commanded poses and velocities."""


@dataclass(frozen=True)
class RealisticOptions(SimulationOptions):
    """The options with the effects that users expect, so the node and the programs enable them."""

    true_mass: bool = True
    ground_effect: bool = True
    downwash: bool = True


@dataclass(frozen=True)
class SimulationConfig(SimulationOptions):
    """Configuration of a running simulation."""

    positioning: Positioning = field(default_factory=Positioning)
    """Has an effect only with an estimator."""
    setpoint_modes: bool = False
    """Whether drones also follow setpoints of the modes of the firmware, see `SetpointMode`."""
    initial_poses: np.ndarray | None = None
    """(M, 7) position [m] and attitude (xyzw) of each drone. None places them on the floor."""

    @classmethod
    def of(cls, options: SimulationOptions, **others: Any) -> SimulationConfig:
        """Return the configuration with these options, except where `others` has other values."""
        names = [option.name for option in fields(SimulationOptions)]
        return cls(**({name: getattr(options, name) for name in names} | others))

    @property
    def is_own(self) -> bool:
        """Whether the physics uses no code of other packages."""
        return (
            Dynamics(self.dynamics).is_own
            and Controller(self.controller).is_own
            and Integrator(self.integrator).is_own
            and Estimator(self.estimator).is_own
            and not self.forces
        )

    @property
    def can_pass_setpoints_on(self) -> bool:
        """Whether `setpoint_modes` is possible: policies and other controllers know only states."""
        return not self.policy and Controller(self.controller).is_own

    def compiled_part(self) -> SimulationConfig:
        """Return this configuration with defaults where no compiled code depends on it.

        Compiled code also depends on whether there are gusts at present, which the configuration
        alone does not determine.
        """
        default = SimulationConfig()
        return replace(self, **{name: getattr(default, name) for name in _NOT_COMPILED})


_NOT_COMPILED = (
    *("wind", "gust_intensity", "gust_altitude", "real_time_factor", "start_paused"),
    *("max_drones", "watchdog_timeout", "initial_poses", "flight"),
)


def check_real_time_factor(factor: float) -> float:
    """Return the factor as a float if the simulation can run at it.

    Raises:
        ValueError: It is neither 0 nor from `SLOWEST_FACTOR` to `FASTEST_FACTOR`.
    """
    if not (factor == 0 or SLOWEST_FACTOR <= factor <= FASTEST_FACTOR):
        expected = f"0 (as fast as possible) or from {SLOWEST_FACTOR:g} to {FASTEST_FACTOR:g}"
        raise ValueError(f"real_time_factor must be {expected}, got {factor:g}")
    return float(factor)
