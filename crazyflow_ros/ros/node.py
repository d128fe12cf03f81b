"""The node `crazyflow`: the physics thread and the ROS features built on it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.utilities import get_rmw_implementation_identifier

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.ros.controllers.opened_door import opened_door
from crazyflow_ros.ros.drone_interfaces import DroneInterfaces
from crazyflow_ros.ros.equipment import Blueprint, Equipment, Features, new_recorder, sensors_of
from crazyflow_ros.ros.extensions import PREFIXES, configured, declared_extensions
from crazyflow_ros.ros.guarded_node import GuardedNode
from crazyflow_ros.ros.launch_support import READY
from crazyflow_ros.ros.listeners import Listeners
from crazyflow_ros.ros.memory_limit import MemoryWatch, limit_memory
from crazyflow_ros.ros.messages.tapped_publisher import Tap
from crazyflow_ros.ros.middleware import who_finds_it
from crazyflow_ros.ros.other_nodes import OtherNodes
from crazyflow_ros.ros.parameters.declaration import declare
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.parameters.parameter_groups import Interfaces
from crazyflow_ros.runtime import Door, PhysicsThread
from crazyflow_ros.runtime.worker import Worker
from crazyflow_ros.sim.policies import policy_of
from crazyflow_ros.xla.start_up import StartUp, process_age

if TYPE_CHECKING:
    from crazyflow_ros.ros.commands.command_topics import RecordCommand
    from crazyflow_ros.ros.recording.recorder import Recorder

S = TypeVar("S")

_LOOK_AT_MEMORY = 1.0  # s between two looks at how much there is
_MANY = 100  # drones, whose topics and services may take long to create


class SimulatorNode(GuardedNode):
    """A node with a simulation, the `Host` of its features.

    Args:
        name: Name of the node, unless it is remapped.
        read: Declares and reads the parameters; says what kind of simulator they make.
        tap: Called before each message is published, in any thread.

    Raises:
        ValueError: A parameter has an invalid value; the message names the parameter and the
            allowed values.
    """

    def __init__(
        self, name: str, read: Callable[[SimulatorNode], Blueprint], tap: Tap | None = None
    ) -> None:
        self.worker = Worker("worker")
        self.owns: Callable[[str], bool] = lambda _: True
        self.recorder: Recorder | None = None
        self._on_destroy: list[Callable[[], None]] = []  # needed when a parameter is refused
        super().__init__(name, tap)
        blueprint = read(self)
        self.parameters = p = blueprint.parameters
        limit_memory(p.memory_limit)
        self.drones = p.drones
        if (name := self.get_name()) in self.drones:
            raise ParameterError("drones", f"{name!r} is the name of this node")
        self._refuse_sim_time()
        door, self._autopilots = opened_door(self, p, blueprint.config, blueprint.sensors)
        if p.record:
            self.recorder = new_recorder(p, blueprint.extensions, self.log)
            self.record = self.recorder.tap
        self.physics, features = self._started_up(blueprint, door)
        self.on_quit: Callable[[], None] = lambda: None
        self.other_nodes = OtherNodes(self, self.regular_calls)
        self.listeners = Listeners(self, self.regular_calls, lambda: self.physics.paused)
        self._for_all_drones: list[Callable[[], None]] = []
        self._on_close: list[Callable[[], None]] = []
        self.interfaces = DroneInterfaces(self, Interfaces(p.interfaces), p.with_interfaces)
        # Services that add drones call it directly; a reset may also change the drones.
        self.regular_calls.add(self.follow_drones)
        self.regular_calls.add(MemoryWatch(self.log).look, _LOOK_AT_MEMORY)
        if len(self.interfaces.drones) >= _MANY:
            self.log.info(
                f"creating the topics and services of {len(self.drones)} drones; with "
                f"-p interfaces:={Interfaces.swarm} drones get their own when a node looks for them"
            )
        record_command = self._recorded_effects()
        extensions = tuple(blueprint.extensions.values())
        features(
            self, Equipment(blueprint.sensors, door, self.recorder, record_command, extensions)
        )
        if self.recorder is not None and p.publish_rates.joint_states:
            from crazyflow_ros.ros.recording.rotor_transforms import RotorTransforms

            RotorTransforms(self, self.recorder)
        self.add_on_set_parameters_callback(self._check_changes)
        self.add_post_set_parameters_callback(self._apply_changes)

    def _started_up(
        self, blueprint: Blueprint, door: Door | None
    ) -> tuple[PhysicsThread, Features]:
        """Compile or load the physics; import the features meanwhile.

        XLA compiles and loads code without the interpreter's lock.
        """
        p, config = blueprint.parameters, blueprint.config
        features: Future[Features] = Future()

        def load() -> None:
            try:
                features.set_result(blueprint.features())
            except BaseException as error:
                features.set_exception(error)

        Thread(target=load, name="imports", daemon=True).start()
        with StartUp.of_cache(self.log.info).compiling(*p.compiled_for(config)):
            for extension in blueprint.extensions.values():
                physics = extension.physics(config, p.drones, self.log)
                if physics is not None:
                    self.owns = getattr(physics, "owns", self.owns)
                    break
            else:
                physics = PhysicsThread(config, p.drones, door, self.log, p.by_door or None)
        return physics, features.result()

    def _recorded_effects(self) -> RecordCommand | None:
        """Record commands and changes, if the node records."""
        if self.recorder is None:
            return None
        from crazyflow_ros.ros.recording.recorded_effects import RecordedEffects

        effects = RecordedEffects(self.recorder, self.physics, self.resolve_topic_name)
        return effects.record_command

    @property
    def own_drones(self) -> tuple[str, ...]:
        """Those of `drones` that can have topics and services of their own."""
        present = self.physics.snapshot.names
        return tuple(name for name in present if name in self.drones and self.owns(name))

    @property
    def node(self) -> Node:
        """See `Host`."""
        return self

    def start(self) -> None:
        """Start the simulation and log that the node is ready."""
        self.listeners.look()
        if self.recorder is not None:
            self.recorder.start(self.physics.simulation.events.periods)
        self.physics.start()
        self._start_autopilots()
        if file := self.physics.config.policy:
            self.log.info(policy_of(file, self.parameters.drone_model).description)
        self.log.info(who_finds_it(get_rmw_implementation_identifier()))
        p, names = self.parameters, ", ".join(self.drones[:4])
        names += f" ... {self.drones[-1]}" if len(self.drones) > 4 else ""
        self.log.info(
            f"{READY}{len(self.drones)} x {p.drone_model} ({names}), "
            f"control={p.control}, {p.freq} Hz, real-time factor {p.real_time_factor:g}"
            f"{', paused' if p.start_paused else ''}, in {process_age():.1f} s"
        )

    def _start_autopilots(self) -> None:
        """Start the processes behind the door, in this thread, which they do not outlive."""
        if self._autopilots is None:
            return
        self.on_close(self._autopilots.close)
        try:
            for line in self._autopilots.start():
                self.log.info(line)
        except OSError as error:
            self.log.error(f"autopilot.build: {error}")

    def settings(self, cls: type[S], name: str) -> S:
        """See `Host`."""
        return declare(self, cls, prefix=f"{name}.")

    def for_each_drone(self, add: Callable[[str], None]) -> None:
        """See `Host`."""
        self.interfaces.for_each(add)

    def for_all_drones(self, add: Callable[[], None]) -> None:
        """See `Host`."""
        self._for_all_drones.append(add)
        add()

    def follow_drones(self) -> None:
        """Create and remove topics and services to match the present drones.

        Call it in the executor's thread. After a change of drones, messages with a row for each
        drone are published only after this.
        """
        before, self.drones = self.drones, self.physics.snapshot.names
        if before == self.drones:
            return
        for add in self._for_all_drones:
            add()
        self.interfaces.follow_drones()
        self.listeners.look()

    def on_close(self, close: Callable[[], None]) -> None:
        """See `Host`."""
        self._on_close.append(close)

    def on_destroy(self, end: Callable[[], None]) -> None:
        """See `Host`."""
        self._on_destroy.append(end)

    def close(self, timeout: float) -> None:
        """Close what features have opened and complete the recording, after all else has ended."""
        self.log.close()
        for close in self._on_close:
            close()
        if self.recorder is not None:
            self.recorder.close(timeout)

    def destroy_node(self) -> None:
        """Destroy the node, once the threads of the features no longer publish."""
        for end in self._on_destroy:
            end()
        super().destroy_node()

    def _refuse_sim_time(self) -> None:
        if self.get_parameter("use_sim_time").value:
            self.log.warning("use_sim_time is ignored: this node publishes the time")
            self.set_parameters([Parameter("use_sim_time", value=False)])

    def _check_changes(self, changes: list[Parameter[Any]]) -> SetParametersResult:
        for change in changes:
            reason = ""
            if change.name == "use_sim_time" and change.value:
                reason = "use_sim_time: this node publishes the time"
            elif change.name in vars(self.parameters):  # those in groups are read-only
                try:
                    if change.name == "with_interfaces":
                        self.interfaces.check(change.value)
                    replace(self.parameters, **{change.name: change.value})  # checks them together
                except ValueError as error:
                    reason = str(error)
            if reason:
                return SetParametersResult(successful=False, reason=reason)
        return SetParametersResult(successful=True)

    def _apply_changes(self, changes: list[Parameter[Any]]) -> None:
        for change in changes:
            if change.name == "real_time_factor":
                self.physics.set_real_time_factor(change.value)
            elif change.name == "interfaces":
                self.interfaces.rule = Interfaces(change.value)
            elif change.name == "with_interfaces":
                self.interfaces.always = frozenset(change.value)
        if {"interfaces", "with_interfaces"}.intersection(change.name for change in changes):
            self.interfaces.adapt()  # once: a drone that stays keeps its topics


def _read(node: SimulatorNode) -> Blueprint:
    parameters = declare(node, Parameters, others=PREFIXES)
    extensions = declared_extensions(node)
    config = configured(parameters.simulation_config(), parameters, extensions)
    return Blueprint(parameters, config, sensors_of(parameters), _features, extensions)


def _features() -> Features:
    from crazyflow_ros.ros.features import add_features

    return add_features


def build(tap: Tap | None = None) -> SimulatorNode:
    """Build the node, see `SimulatorNode`."""
    return SimulatorNode("crazyflow", _read, tap)
