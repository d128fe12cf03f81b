"""What moves in the world besides drones, in topics that exist only where something does.

/tf: map -> the frame of each body, also of those that other bodies carry.

~/world/odometry: poses in the map frame and twists in the axes of the body, of all bodies in one
message. ~/world/joint_states: hinges and slides that have names. ~/world/cables: the spatial
tendons as lines. Displays get the first and the last one of them in ~/display/world, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import mujoco
from geometry_msgs.msg import Point, Transform, Twist
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.cdr import XYZ, below
from crazyflow_ros.ros.messages.numeric_message import NumericMessage, elements
from crazyflow_ros.ros.optional_features import if_installed, is_on
from crazyflow_ros.ros.topics.display import DisplayTopics
from crazyflow_ros.ros.topics.drone_states import StateMessage, paths_of_odometry
from crazyflow_ros.ros.topics.state_topics import ALL, STATE_QOS, Addressed, StateSender, Suits
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene.bodies import Bodies
from crazyflow_ros.scene.moving_frames import MovingFrames

with if_installed("tf"):
    from crazyflow_ros.ros.topics import tf

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_RATES = ("tf", "swarm")
_DISPLAYED = ("world/odometry", "world/cables")


class WorldTopics:
    """Adds the topics when bodies begin to move in the world, and removes them with the bodies."""

    def __init__(self, simulator: Host, display: DisplayTopics) -> None:
        self._simulator, self._display = simulator, display
        self._has_tf = is_on("tf", simulator.log)
        rates = {name: getattr(simulator.parameters.publish_rates, name) for name in _RATES}
        self._senders = {
            name: StateSender(simulator, rate, f"publish_rates.{name}", _nothing)
            for name, rate in rates.items()
            if rate
        }
        self._topics: set[str] = set()
        self._model: mujoco.MjModel | None = None
        self._is_empty = True
        self._look()
        simulator.regular_calls.add(self._look)

    def _look(self) -> None:
        """Follow the model, in the executor's thread."""
        model = self._simulator.physics.mirror.model
        if model is self._model:
            return
        self._model, was_empty = model, self._is_empty
        frames = MovingFrames(model)  # of the physics thread
        messages = messages_of_world(frames)
        self._is_empty = not messages
        if was_empty and self._is_empty:
            return
        self._show("swarm", {f"~/{name}": message for name, message in messages.items()}, frames)
        if self._has_tf:
            edges = [tf.Edge(frame_ids.MAP, name) for name in frames.names]
            moving = tf.moving(edges, lambda snapshot: frames.poses(_bodies(snapshot))[1:])
            self._show("tf", {tf.TOPIC: moving} if edges else {}, frames)
        frames = MovingFrames(model)  # of this thread
        messages = messages_of_world(frames)
        shown = {name: messages[name] for name in _DISPLAYED if name in messages}
        self._display.show_world(shown, _suits(frames))
        self._simulator.listeners.look()

    def _show(self, rate: str, messages: Mapping[str, StateMessage], frames: MovingFrames) -> None:
        """Replace the topics of a rate."""
        sender, listeners = self._senders.get(rate), self._simulator.listeners
        if sender is None:
            return
        sender.begin(_suits(frames))
        for topic, message in messages.items():
            publisher = listeners.create_publisher(message.kind, topic, STATE_QOS)
            layout = message.layout([ALL])
            sender.put((topic, message.kind), Addressed({topic: publisher}, layout, message.values))
        if rate == "swarm":
            for topic in self._topics.difference(messages):
                listeners.remove(topic)
            self._topics = {*messages}


def messages_of_world(frames: MovingFrames) -> dict[str, StateMessage]:
    """Return the messages by their topics, without the name of the node; none without bodies."""
    messages: dict[str, StateMessage] = {}
    if frames.names:
        messages["world/odometry"] = _odometry(frames)
    if frames.joint_names:
        messages["world/joint_states"] = _joint_states(frames)
    if len(frames.cable_rgba):
        messages["world/cables"] = _cables(frames)
    return messages


def paths_of_cables(n_points: int) -> list[str]:
    """Return the paths of all numbers in a message of the cables."""
    return [path for point in elements("points", n_points) for path in below(point, XYZ)]


def _odometry(frames: MovingFrames) -> StateMessage:
    message = MultiDOFJointState(
        header=Header(frame_id=frame_ids.MAP),
        joint_names=list(frames.names),
        transforms=[Transform() for _ in frames.names],
        twist=[Twist() for _ in frames.names],
    )
    return NumericMessage[Snapshot](
        lambda _: message,
        paths_of_odometry(len(frames.names)),
        lambda snapshot: (
            *frames.poses(_bodies(snapshot))[1:],
            *frames.twists(_bodies(snapshot)),
        ),
    )


def _joint_states(frames: MovingFrames) -> StateMessage:
    n, names = len(frames.joint_names), list(frames.joint_names)
    zeros = [0.0] * n
    message = JointState(name=names, position=zeros, velocity=zeros, effort=zeros)
    return NumericMessage[Snapshot](
        lambda _: message,
        [elements(array, n) for array in ("position", "velocity", "effort")],
        lambda snapshot: frames.joints(_bodies(snapshot)),
    )


def _cables(frames: MovingFrames) -> StateMessage:
    message = Marker(ns="cables", type=Marker.LINE_LIST, action=Marker.ADD)
    message.header.frame_id, message.pose.orientation.w = frame_ids.MAP, 1.0
    message.scale.x = frames.cable_width
    for r, g, b, a in frames.cable_rgba.tolist():
        message.points += [Point(), Point()]
        message.colors += [ColorRGBA(r=r, g=g, b=b, a=a)] * 2
    return NumericMessage[Snapshot](
        lambda _: message,
        [paths_of_cables(len(message.points))],
        lambda snapshot: (frames.cables(_bodies(snapshot)),),
    )


def _suits(frames: MovingFrames) -> Suits:
    """Return whether a state has these bodies."""
    return lambda snapshot: snapshot.bodies is not None and frames.are_of(snapshot.bodies)


def _nothing(_: Snapshot) -> bool:
    return False


def _bodies(snapshot: Snapshot) -> Bodies:
    assert snapshot.bodies is not None  # else `_suits` is false
    return snapshot.bodies
