"""A connection to a simulator over ROS, which may start before or after the page, or restart."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rcl_interfaces.srv import GetParameters
from rclpy.executors import ExternalShutdownException
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.task import Future as RosFuture
from sensor_msgs.msg import JointState, MultiDOFJointState
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

from crazyflow_ros.checks.throttled_logger import ThrottledLogger
from crazyflow_ros.client.connection import LATEST
from crazyflow_ros.client.service_calls import ServiceCall, ServiceCalls, request_of
from crazyflow_ros.client.session import Session
from crazyflow_ros.ros.discovery import published
from crazyflow_ros.ros.messages import STEADY, shapes_of, type_name, xyz, xyzw
from crazyflow_ros.ros.topics.display import DISPLAY
from crazyflow_ros.ros.topics.state_topics import LATCHED_QOS
from crazyflow_ros.scene.shapes import VisibleShape
from crazyflow_ros.view.frame import Frame, Looks, looks_of
from crazyflow_ros.view.messages import FrameReader

_ODOMETRY = f"{DISPLAY}/odometry"
_BODIES, _CABLES = "world/odometry", "world/cables"
_OTHERS = {"joint_states": JointState, _BODIES: MultiDOFJointState, _CABLES: Marker}
"""Other topics with what a frame shows, in the order of `FrameReader.read`."""
_PARAMETERS = "drone_model", "wind", "gust_intensity", "real_time_factor", "battery", "record"
_LOOK = 0.5  # s of wall time between two looks for the simulator
# s of wall time between two looks at the whole graph, of which one takes 30 ms with 100 drones.
_LOOK_AROUND, _LOOK_AROUND_RARELY = 1.0, 5.0
_DISCOVERY = 2.0  # s of wall time after which a service that was not found counts as missing
_SPIN_PERIOD = 0.2  # s, longest time until `close` is noticed
_MOST_CALLS = 16  # service calls at a time
_STATES = "/odometry"  # of all drones, under the simulator's name, and for displays below it


class SimulatorGraph(NamedTuple):
    """The simulators in the ROS graph at one instant."""

    starts: bool
    """Whether the node with the wanted name exists but does not publish states yet."""
    others: tuple[str, ...]
    """Full names of all other simulators."""


class Inbox:
    """The latest message of each subscribed topic.

    Args:
        follower: Subscribes in the thread of its node.
        qos: Quality of service of the subscriptions.

    Attributes:
        topics: Message types by topic.
    """

    def __init__(self, follower: Follower, qos: QoSProfile = LATEST) -> None:
        self._follower, self._qos = follower, qos
        self.topics: Mapping[str, Any] = {}
        self._subscriptions: list[Any] = []
        self._latest: dict[str, bytes] = {}

    def subscribe(self, topics: Mapping[str, Any]) -> None:
        """Replace the subscriptions by these topics, given with their types."""
        if topics == self.topics:
            return
        node = self._follower.node
        before, new, latest = self._subscriptions, list[Any](), dict[str, bytes]()
        self.topics, self._subscriptions, self._latest = topics, new, latest

        def work() -> None:
            for subscription in before:
                node.destroy_subscription(subscription)
            for topic, kind in topics.items():
                note = partial(latest.__setitem__, topic)
                new.append(node.create_subscription(kind, topic, note, self._qos, raw=True))

        self._follower.in_thread(work)

    def take(self, topic: str) -> Any | None:
        """Return the latest message of a topic if it has not been taken before."""
        content = self._latest.pop(topic, None)
        return None if content is None else deserialize_message(content, self.topics[topic])


class Follower:
    """A connection to the simulator with a given name, whether it runs or not.

    Its node runs in a thread. All methods are thread-safe.

    Args:
        name: Name of the simulator's node.
        namespace: Its namespace.

    Attributes:
        name: As given.
        domain: The ROS domain.
        node: The ROS node. Use it in the thread of `in_thread` only.
        is_there: Whether the simulator runs.
        parameters: Parameters of the simulator that the page shows, by name; empty without a
            simulator.
        world: The world without the drones, a new list after each change; None if unknown.
        looks: How the drones look; None if unknown.
        ended_ns: Simulated time at which the last simulator ended [ns]; None before the first end.
        graph: The simulators in the ROS graph.
        frames: Fixed frames: parent, position [m] and attitude (xyzw) in it, by the frame's name.
    """

    def __init__(self, name: str = "crazyflow", namespace: str = "/") -> None:
        self._session = Session(f"{name}_view", namespace)
        self.name, self.domain = name, self._session.domain
        self.node, self._executor = self._session.node, self._session.executor
        self._reader = FrameReader()
        self._odometry: bytes | None = None
        self._others: dict[str, bytes | None] = dict.fromkeys(_OTHERS)
        self._shown: Frame | None = None
        self.world: list[VisibleShape] | None = None
        self.looks: Looks | None = None
        self.parameters: dict[str, Any] = {}
        self._is_asking = False
        self.is_there = False
        self.ended_ns: int | None = None
        self.graph = SimulatorGraph(False, ())
        self._looked_around = -math.inf
        self._is_closing = False  # has ended, but its node is still in the graph
        self._calls = ServiceCalls(self.node, _DISCOVERY)
        self._under_way: set[ServiceCall] = set()
        self._lock = threading.Lock()  # guards what is used in both threads
        node, self._log = self.node, ThrottledLogger(self.node.get_logger())
        node.create_subscription(
            MultiDOFJointState, f"{name}/{_ODOMETRY}", self._note_odometry, LATEST, raw=True
        )
        for topic, kind in _OTHERS.items():
            note = partial(self._note_other, topic)
            node.create_subscription(kind, f"{name}/{DISPLAY}/{topic}", note, LATEST, raw=True)
        node.create_subscription(MarkerArray, f"{name}/scene", self._note_world, LATCHED_QOS)
        self.frames: dict[str, tuple[str, np.ndarray, np.ndarray]] = {}
        self._static: Any = None  # the subscription of the fixed frames
        node.create_timer(_LOOK, self._look, clock=STEADY)
        node.create_timer(_DISCOVERY / 20, self._calls.attend, clock=STEADY)
        self._thread = threading.Thread(target=self._main, name="follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the connection."""
        self.node.context.try_shutdown()
        self._thread.join(5.0)
        self._session.close()

    def frame(self) -> Frame | None:
        """Return the latest state of the drones; the same object while nothing has changed.

        It is None before the first message of the present simulator.
        """
        with self._lock:
            odometry, self._odometry = self._odometry, None
            if odometry is not None:
                self._shown = self._reader.read(odometry, *self._others.values())
            return self._shown

    def in_thread(self, work: Callable[[], Any]) -> None:
        """Run a function in the thread of the node."""
        self._executor.create_task(work)

    def topic(self, name: str) -> str:
        """Return the full name of a topic of the simulator."""
        return self.node.resolve_topic_name(name)

    def topics_of(self, drone: str) -> dict[str, str]:
        """Return the types of a drone's topics by their names without the drone's, sorted."""
        prefix = f"{self.topic(drone)}/" if drone else "-"
        return {
            topic.removeprefix(prefix): kinds[0]
            for topic, kinds in sorted(self.node.get_topic_names_and_types())
            if topic.startswith(prefix)
        }

    def call(self, kind: Any, name: str, timeout: float = 10.0, /, **request: Any) -> ServiceCall:
        """Call a service.

        Args:
            kind: Type of the service.
            name: Name of the service; ~ is replaced by the simulator's name.
            timeout: Wall time to wait for the answer [s].
            **request: Fields of the request.

        Raises:
            SimulationError: A field cannot have this value.
        """
        call = ServiceCall(name.replace("~", self.name, 1), timeout)
        message = request_of(kind, call.service, request)
        with self._lock:
            is_busy = len(self._under_way) >= _MOST_CALLS
            if not is_busy:
                self._under_way.add(call)
        if is_busy:
            call.fail(f"{call.service}: the simulator is busy, try again")
        else:
            call.add_done_callback(self._forget)
            self.in_thread(lambda: self._calls.start(call, kind, message))
        return call

    def _forget(self, call: Any) -> None:
        with self._lock:
            self._under_way.discard(call)

    def _main(self) -> None:
        while self.node.context.ok():
            try:
                self._executor.spin_until_future_complete(RosFuture(), _SPIN_PERIOD)
            except ExternalShutdownException:
                return
            except Exception as error:  # from a callback; its message is dropped
                self._log.warning(f"a message is left out: {error}")

    def _look(self) -> None:
        """Notice whether the simulator has started or ended."""
        was_there = self.is_there
        self.is_there = self.node.count_publishers(f"{self.name}/{_ODOMETRY}") > 0
        if was_there and not self.is_there:
            self._end()
        if self.is_there and self._static is None:
            self._look_for_frames()
        pause = _LOOK_AROUND_RARELY if self.is_there else _LOOK_AROUND
        if was_there != self.is_there or time.monotonic() > self._looked_around + pause:
            self._look_around()
        if not self.is_there:
            self.parameters = {}  # the next simulator may have others
            self._calls.fail("has no simulator")
        elif not self._is_asking:
            self._is_asking = True
            asked = self.call(GetParameters, "~/get_parameters", names=list(_PARAMETERS))
            asked.add_done_callback(self._note_parameters)

    def _end(self) -> None:
        """Note the time at which the simulator ended, and forget everything else about it."""
        last = self.frame()
        with self._lock:
            self.ended_ns = None if last is None else last.time_ns
            self._odometry = self._shown = None
            self._others = dict.fromkeys(_OTHERS)
        if self._static is not None:
            self.node.destroy_subscription(self._static)
            self._static = None
        self._is_closing = True

    def _look_for_frames(self) -> None:
        """Subscribe to the simulator's fixed frames; with several simulators, the topic differs."""
        for topic in published(self.node, self.name, type_name(TFMessage)):
            if topic.endswith("_static"):
                self._static = self.node.create_subscription(
                    TFMessage, topic, self._note_frames, LATCHED_QOS
                )

    def _look_around(self) -> None:
        """Find all simulators."""
        node, wanted = self.node, self.topic(self.name)
        running = {
            topic.removesuffix(_STATES).removesuffix(f"/{DISPLAY}")
            for topic, kinds in node.get_topic_names_and_types()
            # A page subscribes to topics of simulators that are not there.
            if topic.endswith(_STATES) and type_name(MultiDOFJointState) in kinds
            if node.count_publishers(topic)
        }
        names = {
            f"{space.rstrip('/')}/{name}" for name, space in node.get_node_names_and_namespaces()
        }
        self._looked_around = time.monotonic()
        starts = wanted in names and wanted not in running
        self._is_closing &= starts
        others = tuple(sorted(running & names - {wanted}))
        self.graph = SimulatorGraph(starts and not self._is_closing, others)

    def _note_parameters(self, answer: Future[Any]) -> None:
        self._is_asking = False  # and ask again at the next look
        if answer.exception() is not None:
            return
        values = map(parameter_value_to_python, answer.result().values)
        self.parameters = dict(zip(_PARAMETERS, values))
        try:
            self.looks = looks_of(self.parameters["drone_model"])
        except ValueError as error:
            self.node.get_logger().warning(f"the drones cannot be drawn: {error}", once=True)

    def _note_odometry(self, message: bytes) -> None:
        with self._lock:
            self._odometry = message

    def _note_other(self, topic: str, message: bytes) -> None:
        with self._lock:
            self._others[topic] = message

    def _note_frames(self, message: TFMessage) -> None:
        for edge in message.transforms:
            pose = xyz(edge.transform.translation), xyzw(edge.transform.rotation)
            self.frames[edge.child_frame_id] = edge.header.frame_id, *pose

    def _note_world(self, message: MarkerArray) -> None:
        with self._lock:  # what moved in the previous world may be gone
            self._others |= dict.fromkeys((_BODIES, _CABLES))
        self.world = shapes_of(message)
