"""Foxglove's server for a running simulator, in a separate process.

    ros2 run crazyflow_ros foxglove
    python -m crazyflow_ros.view.foxglove --ros-args -p port:=8765

It follows the ROS graph, whichever starts first and however often the simulator restarts, and
serves topics, parameters, services, time and playback control. It subscribes only to topics that a
client shows.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn
from urllib.parse import unquote

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future as RosFuture

from crazyflow_ros.checks.plain_values import Names, ParameterError, Spec
from crazyflow_ros.checks.program_end import on_end
from crazyflow_ros.extras import extra
from crazyflow_ros.resources import resource
from crazyflow_ros.ros.launch_support import READY
from crazyflow_ros.ros.messages import STEADY
from crazyflow_ros.ros.middleware import configure_middleware
from crazyflow_ros.ros.parameters.declaration import ParameterNode, declare
from crazyflow_ros.ros.process import WRONG_USAGE
from crazyflow_ros.view.access import is_loopback, new_token
from crazyflow_ros.view.foxglove.guard import APPS, FoxgloveGuard, hidden_address

with extra("foxglove"):
    import foxglove
    from foxglove.websocket import Capability, ServerListener

    from crazyflow_ros.view.foxglove.bridge import Bridge
    from crazyflow_ros.view.foxglove.parameter_cache import ParameterCache
    from crazyflow_ros.view.foxglove.playback import TIME_RANGE, Playback
    from crazyflow_ros.view.foxglove.services import Services
    from crazyflow_ros.view.foxglove.topics import CDR, ClientTopics, Topics

if TYPE_CHECKING:
    from foxglove.websocket import (
        ChannelView,
        Client,
        ClientChannel,
        PlaybackControlRequest,
        PlaybackState,
    )
    from rclpy.executors import Executor

_LOOK_PERIOD = 0.5  # s of wall time between two checks of the graph
_SPIN_PERIOD = 0.1  # s, longest time until a signal is noticed
_NICE = 5  # the physics has priority
_PREFIX = "package://crazyflow_ros/"
_MESHES = {".dae", ".glb", ".obj", ".stl"}


@dataclass(frozen=True)
class FoxgloveParameters:
    """Parameters of the node `foxglove`."""

    port: Annotated[int, Spec("TCP port of the server; 0: any", 0, 65535)] = 8765
    address: Annotated[
        str, Spec("Address to listen on; 0.0.0.0: all; other than loopback needs a token")
    ] = "127.0.0.1"
    token: Annotated[
        str, Spec("Expected from clients, as in ws://host:8765/?token=...; empty: made if needed")
    ] = ""
    origins: Annotated[
        Names, Spec("Pages that may connect, besides Foxglove's and those of this machine")
    ] = ()
    simulator: Annotated[str, Spec("Name of the simulator's node")] = "crazyflow"


class _Server(ServerListener):
    """The server, whose parts carry out the requests of clients.

    Args:
        node: The node.
        executor: Runs its callbacks.
        parameters: Parameter values of the node.

    Attributes:
        port: Port on which clients connect.

    Raises:
        OSError: The address or port cannot be used.
    """

    def __init__(self, node: Node, executor: Executor, parameters: FoxgloveParameters) -> None:
        simulator = node.resolve_topic_name(parameters.simulator)
        share = resource("urdf_mjcf").parent
        address = hidden_address()
        self.bridge = bridge = Bridge(
            node,
            executor,
            simulator,
            address,
            self,
            capabilities=[
                Capability.ClientPublish,
                Capability.Parameters,
                Capability.Services,
                Capability.Time,
            ],
            supported_encodings=[CDR],
            asset_handler=lambda uri: mesh(uri, share),
            playback_time_range=TIME_RANGE,
        )
        self._topics, self._client_topics = Topics(bridge), ClientTopics(bridge)
        self._services = Services(bridge)
        self._parameters = ParameterCache(bridge, self._services, simulator)
        self._playback = Playback(bridge, self._services, self._parameters, simulator)
        guard = FoxgloveGuard(  # only now clients can connect
            parameters.address,
            parameters.port,
            (address, bridge.server.port),
            parameters.token,
            {*APPS, *parameters.origins},
            bridge.log.warning,
        )
        self.port = guard.port
        node.create_timer(_LOOK_PERIOD, self._look, clock=STEADY)

    def _look(self) -> None:
        """Follow the graph."""
        try:
            self._topics.update()
            self._services.update()
            self._parameters.update()
        except Exception as error:  # entities come and go while they are looked at
            self.bridge.log.error(f"reading the ROS graph failed, trying again: {error!r}")

    # What clients ask for, in threads of the server.

    def on_subscribe(self, client: Client, channel: ChannelView) -> None:
        self._playback.greet(client.id)
        self.bridge.run(self._topics.follow, channel.topic)

    def on_unsubscribe(self, _client: Client, channel: ChannelView) -> None:
        self.bridge.run(self._topics.leave, channel.topic)

    def on_client_advertise(self, client: Client, channel: ClientChannel) -> None:
        self._client_topics.advertise(client, channel)

    def on_client_unadvertise(self, client: Client, client_channel_id: int) -> None:
        self._client_topics.unadvertise(client, client_channel_id)

    def on_message_data(self, client: Client, client_channel_id: int, data: bytes) -> None:
        self._client_topics.receive(client, client_channel_id, data)

    def on_get_parameters(
        self, _client: Client, param_names: list[str], _request_id: str | None = None
    ) -> list[foxglove.Parameter]:
        return self._parameters.shown(param_names)

    def on_set_parameters(
        self, _client: Client, parameters: list[foxglove.Parameter], _request_id: str | None = None
    ) -> list[foxglove.Parameter]:
        return self._parameters.set(parameters)

    def on_playback_control_request(
        self, playback_control_request: PlaybackControlRequest
    ) -> PlaybackState:
        return self._playback.take(playback_control_request)


def main() -> NoReturn:
    """Serve until a signal; exit with 2 if a parameter has an invalid value."""
    ended = threading.Event()
    on_end(ended.set)
    os.nice(_NICE)
    configure_middleware()
    try:
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        executor = SingleThreadedExecutor()
        node = ParameterNode("foxglove", start_parameter_services=False)
        executor.add_node(node)
        server = _served(node, executor)
    except Exception as error:  # rclpy has no public base class for argument errors
        print(f"foxglove: {error}", file=sys.stderr)
        sys.exit(WRONG_USAGE)
    while not ended.is_set():
        try:
            executor.spin_until_future_complete(RosFuture(), _SPIN_PERIOD)
        except Exception as error:  # from a callback, because a message may contain anything
            server.bridge.complain(f"a message is ignored: {error!r}")
    # Publishers write to a subscriber that just vanishes until its lease ends, and are slow then.
    executor.shutdown()
    node.destroy_node()
    sys.stdout.flush()
    sys.stderr.flush()
    # A regular exit would wait for clients that do not read, and for responses of services.
    os._exit(0)


def _served(node: ParameterNode, executor: Executor) -> _Server:
    """Start the server, and log how to connect.

    Raises:
        ParameterError: A parameter has an unusable value.
    """
    parameters = declare(node, FoxgloveParameters)
    if not (parameters.token or is_loopback(parameters.address)):
        parameters = replace(parameters, token=new_token())
    try:
        server = _Server(node, executor, parameters)
    except OSError as error:
        place = f"{parameters.address}:{parameters.port}"
        text = f"cannot listen on {place} ({error.strerror})"
        raise ParameterError("port", text) from None
    query = f"/?token={parameters.token}" if parameters.token else ""
    node.get_logger().info(f"{READY}ws://{parameters.address}:{server.port}{query}")
    return server


def mesh(uri: str, root: Path) -> bytes | None:
    """Return the content of a mesh of this package for Foxglove; None for any other file.

    Args:
        uri: For example "package://crazyflow_ros/urdf_mjcf/objects/gate.stl".
        root: Folder of the package's data.
    """
    if not uri.startswith(_PREFIX):
        return None
    with suppress(OSError, ValueError):  # no file can have this name
        file = (root / unquote(uri.removeprefix(_PREFIX))).resolve()
        is_ours = file.is_relative_to((root / "urdf_mjcf").resolve())
        if is_ours and file.suffix.lower() in _MESHES:
            return file.read_bytes()
    return None
