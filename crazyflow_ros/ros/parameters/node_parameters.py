"""Parameters of the node; `config/simulator.yaml` has the same names and defaults."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Annotated, NoReturn

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.plain_values import Names, Numbers, ParameterError, Spec, values_of
from crazyflow_ros.control import Control, Controller, PowerDistribution
from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.crazyflie.decks import DECKS
from crazyflow_ros.crazyflie.pilot import CFLIB_ADVICE
from crazyflow_ros.crazyflie.positioning import positioning
from crazyflow_ros.drones import DEFAULT_DRONE, Drone, has_battery
from crazyflow_ros.drones.parameter import own_drone
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.engine.config import FASTEST_FACTOR, SLOWEST_FACTOR
from crazyflow_ros.engine.disturbances import ALTITUDES, check_wind
from crazyflow_ros.engine.initial_poses import poses_of
from crazyflow_ros.estimation import Estimator, Positioning
from crazyflow_ros.flight import Advice, FlightConfig
from crazyflow_ros.lockstep.layout import NAME_RULE, is_name
from crazyflow_ros.ros.parameters.groups import (
    MAX_RATE,
    CrazyflieLink,
    FlightParameters,
    PublishRates,
    Ros2Control,
    rate,
)
from crazyflow_ros.ros.parameters.policy import usable_policy
from crazyflow_ros.runtime import SimulationConfig
from crazyflow_ros.scene import scene_path
from crazyflow_ros.sim import Integrator
from crazyflow_ros.sim.cascade import modes_of

_WITH_DRAG = (Dynamics.first_principles, Dynamics.so_rpy_rotor_drag)  # dynamics with wind


@dataclass(frozen=True)
class Parameters:
    """All parameters of the node."""

    drones: Annotated[Names, Spec("Names of the drones: letters, digits, underscores")] = ("cf0",)
    drone_model: Annotated[
        str,
        Spec(
            "Model of all drones, or the path of a folder with drone.toml and a drawing",
            choices=list(Drone),
            otherwise=own_drone,
        ),
    ] = DEFAULT_DRONE
    scene: Annotated[str, Spec("Name of a scene in urdf_mjcf, or path of an MJCF file")] = "floor"
    initial_poses: Annotated[
        Numbers,
        Spec(
            "For each drone x, y, z [m], and yaw [rad] or a quaternion x, y, z, w if it is not 0. "
            "Empty: on the floor, 1 m apart"
        ),
    ] = ()
    dynamics: Annotated[str, Spec("Dynamics model", choices=list(Dynamics))] = "first_principles"
    control: Annotated[str, Spec("Control mode of <drone>/command", choices=list(Control))] = (
        "state"
    )
    controller: Annotated[
        str,
        Spec("Position and attitude controller, as in the firmware", choices=list(Controller)),
    ] = "mellinger"
    policy: Annotated[
        str,
        Spec(
            "Path of a file with a policy that flies all drones in place of the controllers; its "
            "goals come from cmd_pose and the other commands; empty: none"
        ),
    ] = ""
    estimator: Annotated[
        str,
        Spec(
            "State that the controllers use: the true one, or the estimate of the firmware's "
            "Kalman filter, which measures with crazyflie.decks and mocap",
            choices=list(Estimator),
        ),
    ] = "none"
    mocap: Annotated[bool, Spec("The estimator also measures poses, as from motion capture")] = (
        False
    )
    integrator: Annotated[str, Spec("Integration method", choices=list(Integrator))] = "euler"
    freq: Annotated[int, Spec("Physics ticks per simulated second", 1, MAX_RATE)] = 500
    state_freq: Annotated[int, rate("the position controller")] = 100
    attitude_freq: Annotated[int, rate("the attitude controller")] = 500
    body_rate_freq: Annotated[int, rate("the body rate controller")] = 500
    force_torque_freq: Annotated[int, rate("the motor mixer")] = 500
    true_mass: Annotated[
        bool,
        Spec("The position controller knows the true mass; the firmware's value differs slightly"),
    ] = True
    power_distribution: Annotated[
        str,
        Spec(
            "When rotors cannot give thrust and torque together: keep the torque, as the firmware "
            "(capped), or limit each rotor by itself, as Crazyflow (clipped)",
            choices=list(PowerDistribution),
        ),
    ] = "capped"
    battery: Annotated[
        bool,
        Spec(
            "Batteries discharge, and rotors lose speed as they run low; needs dynamics "
            "first_principles"
        ),
    ] = False
    wind: Annotated[
        Numbers,
        Spec("Mean wind x, y, z in map [m/s], up to 30", read_only=False, check=check_wind),
    ] = (0.0, 0.0, 0.0)
    gust_intensity: Annotated[
        float,
        Spec(
            "Dryden gusts: standard deviation of the vertical component [m/s]",
            0,
            limits.GUST.most,
            read_only=False,
        ),
    ] = 0.0
    gust_altitude: Annotated[
        float, Spec("Height above ground in the gust model [m]", *ALTITUDES, read_only=False)
    ] = 6.0
    ground_effect: Annotated[bool, Spec("Rotors have more thrust near the floor")] = True
    downwash: Annotated[bool, Spec("Drones feel the downwash of drones above them")] = True
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
    start_paused: Annotated[bool, Spec("Start paused, until ~/pause is called with false")] = False
    step_ticks: Annotated[
        int,
        Spec(
            "Ticks of ~/step; 0: one period of the outermost controller",
            0,
            1_000_000,
            read_only=False,
        ),
    ] = 0
    named_poses: Annotated[
        str, Spec("Path of a YAML file with named poses, in addition to the sites of the scene")
    ] = ""
    sensors: Annotated[str, Spec("Path of a YAML file with sensors of the drones; empty: none")] = (
        ""
    )
    seed: Annotated[int, Spec("Seed of all random numbers", 0, 2**31 - 1)] = 0
    headless: Annotated[bool, Spec("Run without MuJoCo's viewer")] = True
    drone_collisions: Annotated[bool, Spec("Drones collide with one another")] = False
    max_drones: Annotated[
        int,
        Spec("Drones for which the physics is compiled; 0: the number at the start", 0, 10_000),
    ] = 0
    watchdog_timeout: Annotated[
        float,
        Spec("Wall time without progress after which ~/status reports a hang [s]", 0.01, 3600),
    ] = 5.0
    checkpoint: Annotated[
        str, Spec("File of ~/save_checkpoint and ~/load_checkpoint", read_only=False)
    ] = ""
    record: Annotated[
        str, Spec("New MCAP file to record all topics and commands to; empty: none")
    ] = ""
    record_wall_time: Annotated[
        bool, Spec("Times in the MCAP file begin at the wall time of the start; false: at 0")
    ] = False
    publish_rates: PublishRates = field(default_factory=PublishRates)
    flight: FlightParameters = field(default_factory=FlightParameters)
    ros2_control: Ros2Control = field(default_factory=Ros2Control)
    crazyflie: CrazyflieLink = field(default_factory=CrazyflieLink)

    def __post_init__(self) -> None:
        """Check combinations of parameters and the names of the drones.

        Raises:
            ValueError: A name is missing, invalid or duplicate; a rate does not divide `freq`, or
                that of the clock does not fit the controllers; or battery, rotor commands or wind
                are not supported by the dynamics or the drone model.
        """
        self._check_dynamics()
        self._check_controller()
        self._check_estimator()
        self._check_ros2_control()
        for deck in self.crazyflie.decks:
            if deck not in DECKS:
                raise ParameterError("crazyflie.decks", limits.unknown("deck", deck, DECKS))
        self._check_names()
        for name, hertz in values_of(self.publish_rates, "publish_rates.").items():
            if hertz:  # else the topic is off
                ticks_per_period(self.freq, hertz, name)

    def _refuse(self, name: str, need: str) -> NoReturn:
        raise ParameterError(name, f"{need}, got {getattr(self, name)!r}")

    def _check_dynamics(self) -> None:
        is_windy = any(self.wind) or self.gust_intensity > 0
        if is_windy and self.dynamics not in _WITH_DRAG:
            self._refuse("dynamics", f"wind needs {' or '.join(_WITH_DRAG)}")
        if self.battery:
            if self.dynamics != Dynamics.first_principles:
                self._refuse("dynamics", "a battery needs first_principles")
            if not has_battery(self.drone_model):
                self._refuse("drone_model", "a battery needs a table [battery] in drone.toml")

    def _check_controller(self) -> None:
        mode = self.ros2_control.mode
        if mode != "off" and self.controller != Controller.default:
            self._refuse("controller", f"ros2_control.mode {mode} needs {Controller.default}")
        modes = modes_of(Controller(self.controller), Dynamics(self.dynamics))
        if self.control not in modes:
            given = f"controller {self.controller} with dynamics {self.dynamics}"
            self._refuse("control", f"{given} needs {' or '.join(modes)}")

    def _check_estimator(self) -> None:
        if self.estimator == Estimator.none:
            return
        if (mode := self.ros2_control.mode) != "off":
            self._refuse("estimator", f"ros2_control.mode {mode} needs {Estimator.none}")
        try:
            self._positioning()
        except ValueError as error:
            raise ParameterError("crazyflie.anchors", str(error)) from None

    def _positioning(self) -> Positioning:
        """Return what the estimator measures its position with.

        Raises:
            ValueError: The anchors do not fit the decks.
        """
        link = self.crazyflie
        found = positioning(link.decks, link.anchors)
        return replace(found, motion_capture=self.mocap, external=link.port > 0)

    def _check_ros2_control(self) -> None:
        memory = self.ros2_control.shared_memory
        if memory and not is_name(memory):
            raise ParameterError("ros2_control.shared_memory", NAME_RULE, memory)
        mode, rate, clock = self.ros2_control.mode, self.ros2_control.rate, self.publish_rates.clock
        if mode != "off" and self.dynamics != Dynamics.first_principles:
            self._refuse("dynamics", f"ros2_control.mode {mode} needs first_principles")
        if mode != "off":  # before the clock, whose rate a launch file derives from it
            ticks_per_period(self.freq, rate, "ros2_control.rate")
        if mode == "lock_step" and clock != rate:
            # Otherwise the manager would miss a control tick that waits for it, or wake early.
            text = f"ros2_control.mode {mode} needs ros2_control.rate, {rate}, got {clock}"
            raise ParameterError("publish_rates.clock", text)
        if mode in ("free_running", "topic") and clock % rate:
            expected = f"a multiple of ros2_control.rate, {rate}"
            raise ParameterError("publish_rates.clock", expected, clock)

    def _check_names(self) -> None:
        if not self.drones:
            raise ParameterError("drones", "at least one name", list(self.drones))
        for name in self.drones:
            try:
                limits.drone_name(name)
            except ValueError as error:
                raise ValueError(f"drones: {error}") from None
            if self.drones.count(name) > 1:
                got = limits.shown(list(self.drones))
                raise ParameterError("drones", f"names must differ, got {got}")

    def compiled_for(self, config: SimulationConfig) -> tuple[object, ...]:
        """Return everything on which the compiled code depends, see `StartUp.compiling`."""
        room, gusts = (len(self.drones), self.max_drones), config.gust_intensity > 0
        return *room, gusts, self.ros2_control.mode, config.compiled_part()

    def simulation_config(self) -> SimulationConfig:
        """Return the configuration of the physics thread.

        Raises:
            ValueError: The initial poses do not fit the drones, the policy cannot fly them, or the
                scene does not exist.
        """
        scene_path(self.scene)  # which is known before anything is compiled
        own = {"initial_poses", "flight", "positioning"}
        shared = {f.name for f in fields(SimulationConfig)} - own
        values = {name: getattr(self, name) for name in shared}
        if self.estimator != Estimator.none:
            values["positioning"] = self._positioning()
        if self.policy:
            values["policy"] = usable_policy(
                self.policy,
                self.drone_model,
                freq=self.freq,
                control=self.control,
                dynamics=self.dynamics,
                source=self.ros2_control.mode,
            )
        call = "call {}/reset"
        if self.crazyflie.port:
            call += f", or {CFLIB_ADVICE.call}"
        values["flight"] = FlightConfig(**vars(self.flight), advice=Advice(call=call))
        poses = poses_of("initial_poses", self.initial_poses, len(self.drones))
        return SimulationConfig(**values, initial_poses=poses)
