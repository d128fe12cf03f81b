"""Parameters of the node; `config/simulator.yaml` has the same names and defaults."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.files import check_file_name
from crazyflow_ros.checks.plain_values import Names, Numbers, ParameterError, Spec, values_of
from crazyflow_ros.control import Control, Controller
from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.drones import has_battery
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.engine.initial_poses import poses_of
from crazyflow_ros.estimation import Estimator, Positioning
from crazyflow_ros.estimation.decks import positioning
from crazyflow_ros.estimation.positioning import MOST_DELAY
from crazyflow_ros.flight.plan import Advice
from crazyflow_ros.lockstep.layout import NAME_RULE, is_name
from crazyflow_ros.ros.parameters.parameter_groups import (
    AutopilotProcesses,
    Decks,
    Interfaces,
    PublishRates,
    Ros2Control,
)
from crazyflow_ros.runtime import SimulationConfig
from crazyflow_ros.scene import scene_path
from crazyflow_ros.sim.cascade import modes_of
from crazyflow_ros.sim.policies import policy_of


@dataclass(frozen=True)
class Parameters(RealisticOptions):
    """All parameters of the node."""

    drones: Annotated[Names, Spec("Names of the drones: letters, digits, underscores")] = ("cf0",)
    initial_poses: Annotated[
        Numbers,
        Spec(
            "For each drone x, y, z [m], and yaw [rad] or a quaternion x, y, z, w if it is not 0. "
            "Empty: on the floor, 1 m apart"
        ),
    ] = ()
    interfaces: Annotated[
        str,
        Spec(
            "When a drone has topics and services of its own. each: always; swarm: while another "
            "node publishes, subscribes or calls below its name; none: never",
            choices=list(Interfaces),
            read_only=False,
        ),
    ] = str(Interfaces.each)
    with_interfaces: Annotated[
        Names,
        Spec(
            "Drones that have topics and services of their own whatever `interfaces` says",
            read_only=False,
        ),
    ] = ()
    mocap: Annotated[bool, Spec("The estimator also measures poses, as from motion capture")] = (
        False
    )
    mocap_dropout: Annotated[
        float, Spec("Probability that the estimator misses a pose of motion capture", 0.0, 0.99)
    ] = 0.0
    mocap_delay: Annotated[
        float, Spec("Age of the poses of motion capture for the estimator [s]", 0.0, MOST_DELAY)
    ] = 0.0
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
    headless: Annotated[bool, Spec("Run without MuJoCo's viewer; false: open it")] = True
    memory_limit: Annotated[
        float,
        Spec(
            "Memory that the process may reserve [GiB]; 0: half of the machine's, from 2 to 8 GiB",
            0,
            1_000_000,
            least=1,
        ),
    ] = 0.0
    checkpoint: Annotated[
        str,
        Spec(
            "Name of the file of ~/save_checkpoint and ~/load_checkpoint, in checkpoint_folder",
            read_only=False,
            check=check_file_name,
        ),
    ] = ""
    checkpoint_folder: Annotated[
        str,
        Spec(
            "Folder of checkpoints; empty: crazyflow_ros/checkpoints in XDG_STATE_HOME, or else in "
            "~/.local/state"
        ),
    ] = ""
    world_folders: Annotated[
        Names,
        Spec(
            "Folders with worlds and objects that requests may name, beside those of ROS packages"
        ),
    ] = ()
    record: Annotated[
        str,
        Spec(
            "New MCAP file to record all topics and commands to, or, without a suffix, a folder of "
            "rosbag2; after each jump of time, another one with a number; empty: none"
        ),
    ] = ""
    record_wall_time: Annotated[
        bool, Spec("Times in the MCAP file begin at the wall time of the start; false: at 0")
    ] = False
    door: Annotated[
        str,
        Spec(
            "Name of the autopilot bridge through which other programs fly drones, such as px4; "
            "its parameters begin with that name and a dot; empty: none"
        ),
    ] = ""
    door_drones: Annotated[
        Names,
        Spec(
            "Drones that the autopilot bridge or ros2_control flies, in its order; topics and "
            "services fly the others. Empty: all, and then none can be added"
        ),
    ] = ()
    autopilot: AutopilotProcesses = field(default_factory=AutopilotProcesses)
    publish_rates: PublishRates = field(default_factory=PublishRates)
    ros2_control: Ros2Control = field(default_factory=Ros2Control)
    crazyflie: Decks = field(default_factory=Decks)

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
        self._check_names()
        for name, hertz in values_of(self.publish_rates, "publish_rates.").items():
            if hertz:  # else the topic is off
                ticks_per_period(self.freq, hertz, name)

    @property
    def flown_by(self) -> str:
        """The parameter by which other programs fly drones, and its value; empty if none do."""
        if self.door:
            return f"door {self.door}"
        mode = self.ros2_control.mode
        return "" if mode == "off" else f"ros2_control.mode {mode}"

    @property
    def by_door(self) -> tuple[str, ...]:
        """Names of the drones that other programs fly."""
        return (self.door_drones or self.drones) if self.flown_by else ()

    @property
    def shares_drones(self) -> bool:
        """Whether other programs fly only some of the drones."""
        return 0 < len(self.by_door) < len(self.drones)

    def _refuse(self, name: str, need: str) -> NoReturn:
        raise ParameterError(name, f"{need}, got {getattr(self, name)!r}")

    def _check_dynamics(self) -> None:
        is_windy, model = any(self.wind) or self.gust_intensity > 0, Dynamics(self.dynamics)
        if is_windy and not model.feels_wind:
            with_drag = (str(own) for own in Dynamics if own.feels_wind)
            self._refuse("dynamics", f"wind needs {' or '.join(with_drag)}")
        if self.battery:
            if not model.has_rotors:
                self._refuse("dynamics", "a battery needs first_principles")
            if not has_battery(self.drone_model):
                self._refuse("drone_model", "a battery needs a table [battery] in drone.toml")

    def _check_controller(self) -> None:
        if self.shares_drones:
            if self.control != Control.state:
                self._refuse("control", f"drones beside those of {self.flown_by} need state")
        elif (
            self.flown_by
            and self.ros2_control.mode not in ("lock_step", "free_running")
            and self.controller != Controller.default
        ):
            need = f"{self.flown_by} commands rotors, which no controller follows: it needs"
            self._refuse("controller", f"{need} {Controller.default}")
        modes = modes_of(Controller(self.controller), Dynamics(self.dynamics))
        if self.control not in modes:
            given = f"controller {self.controller} with dynamics {self.dynamics}"
            self._refuse("control", f"{given} needs {' or '.join(modes)}")

    def _check_estimator(self) -> None:
        if self.estimator == Estimator.none:
            return
        if self.flown_by and self.ros2_control.mode not in ("lock_step", "free_running"):
            self._refuse("estimator", f"{self.flown_by} needs {Estimator.none}")
        try:
            self._positioning()
        except ValueError as error:
            path = self.crazyflie.lighthouse
            name = "lighthouse" if path and str(error).startswith(path) else "anchors"
            raise ParameterError(f"crazyflie.{name}", str(error)) from None

    def _positioning(self) -> Positioning:
        """Return the position sensors of the estimator.

        Raises:
            ValueError: The anchors do not fit the decks.
        """
        own = self.crazyflie
        found = positioning(own.decks, own.anchors, own.ranging, own.lighthouse)
        return replace(
            found,
            motion_capture=self.mocap,
            capture_dropout=self.mocap_dropout,
            capture_delay=self.mocap_delay,
        )

    def _check_ros2_control(self) -> None:
        memory = self.ros2_control.shared_memory
        if memory and not is_name(memory):
            raise ParameterError("ros2_control.shared_memory", NAME_RULE, memory)
        mode, rate, clock = self.ros2_control.mode, self.ros2_control.rate, self.publish_rates.clock
        if self.flown_by and not Dynamics(self.dynamics).has_rotors:
            self._refuse("dynamics", f"{self.flown_by} needs first_principles")
        if mode != "off" and self.door:
            self._refuse("door", f"ros2_control.mode {mode} needs none")
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
        self._check_door_drones()

    def _check_door_drones(self) -> None:
        if self.door_drones and not self.flown_by:
            self._refuse("door_drones", "without door and ros2_control.mode it must be empty")
        for name in self.door_drones:
            if name not in self.drones:
                raise ParameterError("door_drones", limits.unknown("drone", name, self.drones))
            if self.door_drones.count(name) > 1:
                got = limits.shown(list(self.door_drones))
                raise ParameterError("door_drones", f"names must differ, got {got}")

    def compiled_for(self, config: SimulationConfig) -> tuple[object, ...]:
        """Return everything on which the compiled code depends, see `StartUp.compiling`."""
        room, gusts = (len(self.drones), self.max_drones), config.gust_intensity > 0
        return *room, gusts, len(self.by_door), config.compiled_part()

    def simulation_config(self) -> SimulationConfig:
        """Return the configuration of the physics thread.

        Raises:
            ValueError: The initial poses do not fit the drones, the policy cannot fly them, or the
                scene does not exist.
        """
        scene_path(self.scene)  # which is known before anything is compiled
        values: dict[str, Any] = {}
        if self.estimator != Estimator.none:
            values["positioning"] = self._positioning()
        if self.policy:
            values["policy"] = str(Path(self.policy).expanduser().absolute())
            policy = policy_of(values["policy"], self.drone_model)
            policy.check(self.freq, self.control, self.dynamics, self.flown_by)
        if self.randomize:
            values["randomize"] = str(Path(self.randomize).expanduser().absolute())
            from crazyflow_ros.engine.drawn_figures import stages_of  # with all of `Sim`

            stages_of(values["randomize"])  # which is known before anything is compiled
        flight = replace(self.flight, advice=Advice(call="call {}/reset"))
        poses = poses_of("initial_poses", self.initial_poses, len(self.drones))
        return SimulationConfig.of(self, **values, flight=flight, initial_poses=poses)
