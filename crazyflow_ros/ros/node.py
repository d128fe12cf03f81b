"""The node `crazyflow`: the physics thread and the ROS features built on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.logging import get_logger
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.ros.controllers.command_source import command_source
from crazyflow_ros.ros.door import SERVICE_QOS, Door
from crazyflow_ros.ros.launch_support import READY
from crazyflow_ros.ros.listeners import Listeners
from crazyflow_ros.ros.messages.tapped_publisher import Tap, TappedPublisher
from crazyflow_ros.ros.other_nodes import OtherNodes
from crazyflow_ros.ros.parameters.declaration import ParameterNode, declare
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.parameters.policy import described
from crazyflow_ros.ros.recording.set_up import new_recorder, recorded_rotors
from crazyflow_ros.ros.regular_calls import PERIOD, RegularCalls
from crazyflow_ros.ros.sensors.devices import SensorFile
from crazyflow_ros.ros.services.answers import Answers
from crazyflow_ros.ros.services.retirement import Retirement
from crazyflow_ros.ros.services.waiting import Waiting
from crazyflow_ros.ros.steady_clock import STEADY
from crazyflow_ros.ros.topics.state_topics import StateSender
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.sometimes import Sometimes
from crazyflow_ros.worker import Worker
from crazyflow_ros.xla.start_up import StartUp, process_age

if TYPE_CHECKING:
    from crazyflow_ros.crazyflie.fleet import Fleet
    from crazyflow_ros.ros.parameters.wind import WindParameters
    from crazyflow_ros.ros.recording.recorded_effects import RecordedEffects
    from crazyflow_ros.ros.recording.recorder import Recorder
    from crazyflow_ros.ros.recording.rotor_transforms import RotorTransforms
    from crazyflow_ros.ros.sensors.sensor_threads import SensorThread
    from crazyflow_ros.ros.simulation_interfaces.server import Server
    from crazyflow_ros.ros.viewer import ViewerThread

# In the order in which the physics thread serves them: the clock first, then stamped messages.
_FEATURES = (
    "topics.clock",
    "topics.tf",
    "topics.states",
    "topics.display",
    "robot_description",
    "topics.status",
    "topics.reset_event",
    "topics.scene",
    "topics.plan",
    "commands.command_topics",
    "commands.flight_services",
    "crazyflie_link",
    "sensors.sensor_threads",
    "services.time_control",
    "services.disturbances",
    "parameters.wind",
    "services.checkpoint",
    "services.mujoco_ros2_control",
    "viewer",
    "simulation_interfaces",
    "silent_mistakes",
)
_ROWS = ("topics.tf", "topics.states")  # features whose messages have a row for each drone
_LAST_READINGS = 0.5  # s of wall time for sensors at the end
_MANY = 100  # drones; with as many, the middleware takes long to create topics and services
# With ros2_control.mode topic.
_TOPIC_FEATURES = ("controllers.topic_hardware", "controllers.topic_sensors")


class SimulatorNode(ParameterNode):
    """Node `crazyflow`.

    Args:
        name: Name of the node, unless it is remapped.
        tap: Called before each message is published, in any thread.

    Attributes:
        parameters: Parameter values at the start.
        drones: Names of the drones.
        sensor_file: Sensors of the drones.
        link: Link to the controllers if ros2_control commands the drones, else None.
        recorder: Recorder of all published messages if the parameter `record` is set, else None.
        recorded_effects: Recorder of commands and changes; None without a recorder.
        rotor_transforms: Recorder of the rotors' frames; None without a recorder.
        viewer: The viewer's window, or None.
        sensor_threads: Threads of the sensors.
        log: Its logger, which says the same thing only now and then.
        door: Guard of all callbacks.
        answers: Retries service responses until they are delivered.
        waiting: Lets service callbacks wait for the physics thread or the worker.
        worker: Thread for tasks that would block the executor, one after another.
        physics: The running simulation.
        on_quit: Ends the process; set by the owner of the node.
        regular_calls: Calls functions at intervals of wall time.
        listeners: Knows which topics have subscribers.
        other_nodes: Knows what other nodes publish and call.
        senders: Senders of the drones' state by rate [Hz].
        wind: Applies the wind parameters.
        world: Changes the world; None without the package simulation_interfaces.
        latched: Publishers of latched messages by topic.

    Raises:
        ValueError: A parameter has an invalid value; the message names the parameter and the
            allowed values.
    """

    wind: WindParameters
    world: Server | None = None
    recorder: Recorder | None = None  # needed while the base class creates its publishers
    sensor_threads: Sequence[SensorThread] = ()  # and when a parameter is refused

    def __init__(self, name: str = "crazyflow", tap: Tap | None = None) -> None:
        self._tap = tap
        self.log = Sometimes(get_logger(name))
        self.door = Door(self.log)  # rclpy's own services need these, too
        self.answers = Answers(self.call_later, self.log)
        self._retirement = Retirement(self.door, self.call_later, self.destroy_service)
        self.waiting = Waiting()
        self.worker = Worker("worker")
        super().__init__(name)
        # Its name includes the namespace; only the node's own logger writes to /rosout.
        self.log.logger = self.get_logger()
        self.parameters = self._read_parameters()
        self.drones = self.parameters.drones
        if (name := self.get_name()) in self.drones:
            raise ParameterError("drones", f"{name!r} is the name of this node")
        self._refuse_sim_time()
        p = self.parameters
        self.sensor_file = SensorFile((), p.drone_model)
        self._declare("sensors.sensors_file")
        config = self._simulation_config()
        self.link = command_source(p, self.get_fully_qualified_name(), self.log)
        if p.record:
            self.recorder = new_recorder(p, self.log)
        start_up = StartUp.of_cache(self.log.info)
        # XLA compiles and loads code without the interpreter's lock.
        importing = Thread(target=self._import_features, name="imports", daemon=True)
        importing.start()
        with start_up.compiling(*p.compiled_for(config)):
            self.physics = PhysicsThread(config, self.drones, self.link, self.log)
        importing.join()
        self.recorded_effects: RecordedEffects | None = None
        self.rotor_transforms: RotorTransforms | None = None
        if self.recorder is not None:
            from crazyflow_ros.ros.recording.recorded_effects import RecordedEffects

            effects = RecordedEffects(self.recorder, self.physics, self.resolve_topic_name)
            self.recorded_effects = effects
        self.viewer: ViewerThread | None = None
        self.on_quit: Callable[[], None] = lambda: None
        self.regular_calls = RegularCalls(self.door)
        self.listeners = Listeners(self)
        self.other_nodes = OtherNodes(self)
        self.senders: dict[int, StateSender] = {}
        self.latched: dict[str, Any] = {}
        self._per_drone: list[Callable[[str], None]] = []
        self._on_close: list[Callable[[], None]] = []
        # Services that add drones call it directly; a reset may also change the drones.
        self.regular_calls.add(self.follow_drones)
        if len(self.drones) >= _MANY:
            self.log.info(
                f"creating the topics and services of {len(self.drones)} drones: the middleware "
                "takes about half a minute for 200, and four times as long for twice as many"
            )
        for name in self._features:
            self._declare(name)
        self.create_timer(PERIOD, self.regular_calls.make)
        if self.recorder is not None:
            self.rotor_transforms = recorded_rotors(self, self.recorder)
        self.add_on_set_parameters_callback(self._check_changes)
        self.add_post_set_parameters_callback(self._apply_changes)

    @cached_property
    def fleet(self) -> Fleet:
        """The firmware of the drones, for the servers that present them as Crazyflies."""
        from crazyflow_ros.crazyflie.fleet import Fleet
        from crazyflow_ros.crazyflie.storage import Storage

        p, link = self.parameters, self.parameters.crazyflie
        try:
            storage = Storage(link.storage)
        except ValueError as error:
            raise ParameterError("crazyflie.storage", str(error)) from None
        return Fleet(self.physics, p.drone_model, link.decks, self.log, storage)

    def start(self) -> None:
        """Start the simulation and log that the node is ready."""
        self.listeners.look()
        if self.recorder is not None:
            self.recorder.start()
        self.physics.start()
        if file := self.physics.config.policy:
            self.log.info(described(file, self.parameters.drone_model))
        p, names = self.parameters, ", ".join(self.drones[:4])
        names += f" ... {self.drones[-1]}" if len(self.drones) > 4 else ""
        self.log.info(
            f"{READY}{len(self.drones)} x {p.drone_model} ({names}), "
            f"control={p.control}, {p.freq} Hz, real-time factor {p.real_time_factor:g}"
            f"{', paused' if p.start_paused else ''}, in {process_age():.1f} s"
        )

    def for_each_drone(self, add: Callable[[str], None]) -> None:
        """Call `add` for each drone, now and whenever a drone is added."""
        self._per_drone.append(add)
        for drone in self.drones:
            add(drone)

    def follow_drones(self) -> None:
        """Create and remove topics and services to match the present drones.

        Called in the executor's thread. After a change of drones, messages with a row for each
        drone are published only once this has run.
        """
        before, self.drones = self.drones, self.physics.names
        if before == self.drones:
            return
        for sender in self.senders.values():
            sender.begin()
        for feature in _ROWS:
            self._declare(feature)
        if self.rotor_transforms is not None:
            self.rotor_transforms.follow(self.drones)
        for drone in before:
            if drone not in self.drones:
                self._remove_entities(self.resolve_topic_name(f"{drone}/x")[:-1])
        for drone in self.drones:
            if drone not in before:
                for add in self._per_drone:
                    add(drone)
        self.listeners.look()

    def _remove_entities(self, prefix: str) -> None:
        """Destroy the topics and services whose names begin with a prefix."""
        self.listeners.forget(prefix)
        for publisher in [p for p in self.publishers if p.topic_name.startswith(prefix)]:
            self.destroy_publisher(publisher)
        for subscription in [s for s in self.subscriptions if s.topic_name.startswith(prefix)]:
            self.destroy_subscription(subscription)
        self._retirement.begin(s for s in self.services if s.service_name.startswith(prefix))
        # rclpy keeps a weak reference to every entity ever added to a group.
        for group in (self.default_callback_group, self.waiting.group):
            group.entities = {entity for entity in group.entities if entity() is not None}

    def on_close(self, close: Callable[[], None]) -> None:
        """Register a function to call when the node is closed."""
        self._on_close.append(close)

    def close(self, timeout: float) -> None:
        """Close the viewer and complete the recording, after everything else has stopped."""
        self.log.close()
        for close in self._on_close:
            close()
        if self.viewer is not None:
            self.viewer.close()
        if self.recorder is not None:
            self.recorder.close(timeout)

    def destroy_node(self) -> None:
        """Destroy the node, once the threads of the sensors no longer publish."""
        deadline = time.monotonic() + _LAST_READINGS
        for thread in self.sensor_threads:
            thread.end(max(0.0, deadline - time.monotonic()))
        super().destroy_node()

    def create_publisher(
        self,
        msg_type: Any,
        topic: str,
        qos_profile: QoSProfile | int,
        *,
        recorded: bool = True,
        **options: Any,
    ) -> Any:
        """Create a publisher; with a recorder its messages are recorded, unless told otherwise."""
        bare = super().create_publisher(msg_type, topic, qos_profile, **options)
        publisher = TappedPublisher.by(self._tap, bare)
        return self.recorder.tap(publisher) if self.recorder and recorded else publisher

    def create_subscription(
        self,
        msg_type: Any,
        topic: str,
        callback: Any,
        qos_profile: QoSProfile | int,
        **options: Any,
    ) -> Any:
        """Create a subscription whose callback may raise ValueError to refuse a message."""
        receive = self.door.on_message(callback, msg_type, topic)
        return super().create_subscription(
            msg_type, topic, receive, qos_profile, raw=True, **options
        )

    def create_service(
        self,
        srv_type: Any,
        srv_name: str,
        callback: Any,
        *,
        callback_group: Any = None,
        **options: Any,
    ) -> Any:
        """Create a service, see `Door.on_request`; others are served while its callback waits."""
        guarded = self.door.on_request(callback, srv_name)
        kept = self._retirement.end(self.resolve_service_name(srv_name), guarded)
        if kept is not None:
            return kept
        service = super().create_service(
            srv_type,
            srv_name,
            guarded,
            callback_group=self.waiting.group if callback_group is None else callback_group,
            **{"qos_profile": SERVICE_QOS, **options},
        )
        self.answers.ensure(service)
        return service

    def create_timer(
        self, timer_period_sec: float, callback: Any, *args: Any, **options: Any
    ) -> Any:
        """Create a timer of wall time; exceptions from its callback are logged."""
        guarded = self.door.on_timer(callback)
        given = {"clock": STEADY, **options}
        return super().create_timer(timer_period_sec, guarded, *args, **given)

    def call_later(self, delay: float, callback: Callable[[], object]) -> None:
        """Call a function once in the executor's thread after a delay of wall time [s]."""

        def call() -> None:
            # The EventsExecutor may call a timer once more that has been destroyed.
            if self.destroy_timer(timer):
                callback()

        timer = self.create_timer(delay, call)

    def _read_parameters(self) -> Parameters:
        """Declare all parameters, and read those of the simulation."""
        return declare(self, Parameters)

    def _simulation_config(self) -> SimulationConfig:
        return self.parameters.simulation_config()

    @property
    def _features(self) -> tuple[str, ...]:
        on_topics = self.parameters.ros2_control.mode == "topic"
        return (*_FEATURES, *(_TOPIC_FEATURES if on_topics else ()))

    def _import_features(self) -> None:
        for feature in self._features:
            with suppress(Exception):  # `_declare` meets the error again
                import_module(f"crazyflow_ros.ros.{feature}")

    def _declare(self, feature: str) -> None:
        """Declare a feature; warn if its message package is missing."""
        try:
            module = import_module(f"crazyflow_ros.ros.{feature}")
        except ModuleNotFoundError as missing:
            package = (missing.name or "").partition(".")[0]
            if not package.endswith(("_msgs", "_interfaces")):
                raise
            self.log.warning(
                f"{feature.rpartition('.')[2]} is off: the package {package} is missing. On a ROS "
                "machine, 'rosdep install --from-paths src --ignore-src' and 'colcon build' in the "
                "workspace add it; without ROS installed, 'python -m crazyflow_ros build-messages'"
            )
        else:
            module.declare(self)

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


def build(tap: Tap | None = None) -> SimulatorNode:
    """Build the node, see `SimulatorNode`."""
    return SimulatorNode(tap=tap)
