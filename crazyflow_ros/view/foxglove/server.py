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
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import rclpy
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future as RosFuture

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.plain_values import Names, ParameterError, Spec
from crazyflow_ros.end_signals import on_end
from crazyflow_ros.extras import extra
from crazyflow_ros.resources import resource
from crazyflow_ros.ros.executor import new_executor
from crazyflow_ros.ros.launch_support import READY
from crazyflow_ros.ros.middleware import configure_middleware
from crazyflow_ros.ros.parameters.declaration import ParameterNode, declare
from crazyflow_ros.ros.process import WRONG_USAGE
from crazyflow_ros.ros.recording.message_definitions import definition, type_of
from crazyflow_ros.ros.steady_clock import STEADY
from crazyflow_ros.sometimes import Sometimes
from crazyflow_ros.view.access import is_loopback, new_token
from crazyflow_ros.view.foxglove.guard import APPS, FoxgloveGuard, hidden_address

with extra("foxglove"):
    import foxglove
    from foxglove.websocket import Capability, ServerListener

    from crazyflow_ros.view.foxglove.assets import mesh
    from crazyflow_ros.view.foxglove.parameters import ParameterCache
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
_COMPLAINT = 500  # characters
_NICE = 5  # the physics has priority


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


class Bridge:
    """The node, the server, and what connects them.

    Args:
        node: The node.
        executor: Runs its callbacks.
        parameters: Parameter values of the node.

    Attributes:
        node: As given.
        context: Holds the server's channels.
        server: The server of the Foxglove SDK.
        topics: Topics for Foxglove.
        services: Services for Foxglove.
        parameters: Parameters for Foxglove.
        time_ns: Latest simulated time [ns]; None before the first.
        port: Port on which clients connect.

    Raises:
        OSError: The address or port cannot be used.
    """

    def __init__(self, node: Node, executor: Executor, parameters: FoxgloveParameters) -> None:
        self.node, self._executor = node, executor
        self.context = foxglove.Context()
        self.time_ns: int | None = None
        self._log = Sometimes(node.get_logger())
        self._schemas: dict[tuple[str, str], foxglove.Schema | None] = {}
        simulator = node.resolve_topic_name(parameters.simulator)
        share = resource("urdf_mjcf").parent
        address = hidden_address()
        self.server = foxglove.start_server(
            name=simulator,
            host=address,
            port=0,
            capabilities=[
                Capability.ClientPublish,
                Capability.Parameters,
                Capability.Services,
                Capability.Time,
            ],
            server_listener=_Listener(self),
            supported_encodings=[CDR],
            asset_handler=lambda uri: mesh(uri, share),
            context=self.context,
            playback_time_range=TIME_RANGE,
        )
        self.topics, self.client_topics = Topics(self), ClientTopics(self)
        self.services = Services(self)
        self.parameters = ParameterCache(self, simulator)
        self.playback = Playback(self, simulator)
        guard = FoxgloveGuard(
            parameters.address,
            parameters.port,
            (address, self.server.port),
            parameters.token,
            {*APPS, *parameters.origins},
            self._log.warning,
        )
        self.port = guard.port
        node.create_timer(_LOOK_PERIOD, self._look, clock=STEADY)

    def _look(self) -> None:
        """Follow the graph."""
        try:
            self.topics.update()
            self.services.update()
            self.parameters.update()
        except Exception as error:  # entities come and go while they are looked at
            self._log.error(f"reading the ROS graph failed, trying again: {error!r}")

    def begin_session(self) -> None:
        """Make clients discard what they show: time went back because the simulator restarted."""
        self.server.clear_session()
        self.parameters.forget()

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function in the executor's thread, from any thread."""
        self.run(function, *arguments)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function in the executor's thread, from any other; return a future."""
        result: Future[Any] = Future()

        def call() -> None:
            try:
                result.set_result(function(*arguments))
            except Exception as error:
                result.set_exception(error)
                self._log.error(f"{function.__qualname__} failed: {error!r}")

        self._executor.create_task(call)
        return result

    def complain(self, text: str) -> None:
        """Show and log why something is refused; what recurs is only logged."""
        text = limits.shown(text, _COMPLAINT)
        if self._log.warning(text):
            self.server.publish_status(text, foxglove.StatusLevel.Error)

    def schema_of(self, name: str, part: str = "") -> foxglove.Schema | None:
        """Return the definition of a type, or None if this machine does not have it.

        Args:
            name: Name of a type of messages or services.
            part: Request or Response, of a service.
        """
        if (name, part) not in self._schemas:
            try:
                kind = getattr(type_of(name), part) if part else type_of(name)
                full = f"{name}_{part}" if part else name
                text = definition(kind).encode()
                schema = foxglove.Schema(name=full, encoding="ros2msg", data=text)
            except (ValueError, ImportError, AttributeError, FileNotFoundError) as error:
                self.node.get_logger().warning(f"{name} cannot be shown: {error}")
                schema = None
            self._schemas[name, part] = schema
        return self._schemas[name, part]


class _Listener(ServerListener):
    """Handles requests of clients, in threads of the server."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def on_subscribe(self, client: Client, channel: ChannelView) -> None:
        self._bridge.playback.greet(client.id)
        self._bridge.call_soon(self._bridge.topics.follow, channel.topic)

    def on_unsubscribe(self, _client: Client, channel: ChannelView) -> None:
        self._bridge.call_soon(self._bridge.topics.leave, channel.topic)

    def on_client_advertise(self, client: Client, channel: ClientChannel) -> None:
        self._bridge.client_topics.advertise(client, channel)

    def on_client_unadvertise(self, client: Client, client_channel_id: int) -> None:
        self._bridge.client_topics.unadvertise(client, client_channel_id)

    def on_message_data(self, client: Client, client_channel_id: int, data: bytes) -> None:
        self._bridge.client_topics.receive(client, client_channel_id, data)

    def on_get_parameters(
        self, _client: Client, param_names: list[str], _request_id: str | None = None
    ) -> list[foxglove.Parameter]:
        return self._bridge.parameters.shown(param_names)

    def on_set_parameters(
        self, _client: Client, parameters: list[foxglove.Parameter], _request_id: str | None = None
    ) -> list[foxglove.Parameter]:
        return self._bridge.parameters.set(parameters)

    def on_playback_control_request(
        self, playback_control_request: PlaybackControlRequest
    ) -> PlaybackState:
        return self._bridge.playback.take(playback_control_request)


def main() -> NoReturn:
    """Serve until a signal; exit with 2 if a parameter has an invalid value."""
    ended = threading.Event()
    on_end(ended.set)
    os.nice(_NICE)
    configure_middleware()
    try:
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        executor = new_executor()
        node = ParameterNode("foxglove", start_parameter_services=False)
        executor.add_node(node)
        bridge = _bridge(node, executor)
    except Exception as error:  # rclpy has no public base class for argument errors
        print(f"foxglove: {error}", file=sys.stderr)
        sys.exit(WRONG_USAGE)
    while not ended.is_set():
        try:
            executor.spin_until_future_complete(RosFuture(), _SPIN_PERIOD)
        except InvalidHandle:
            pass  # an entity was destroyed while one of its events was queued
        except Exception as error:  # from a callback, because a message may contain anything
            bridge.complain(f"a message is ignored: {error!r}")
    # Publishers write to a subscriber that just vanishes until its lease ends, and are slow then.
    executor.shutdown()
    node.destroy_node()
    sys.stdout.flush()
    sys.stderr.flush()
    # A regular exit would wait for clients that do not read, and for responses of services.
    os._exit(0)


def _bridge(node: ParameterNode, executor: Executor) -> Bridge:
    """Start the server, and log how to connect.

    Raises:
        ParameterError: A parameter has an unusable value.
    """
    parameters = declare(node, FoxgloveParameters)
    if not (parameters.token or is_loopback(parameters.address)):
        parameters = replace(parameters, token=new_token())
    try:
        bridge = Bridge(node, executor, parameters)
    except OSError as error:
        place = f"{parameters.address}:{parameters.port}"
        text = f"cannot listen on {place} ({error.strerror})"
        raise ParameterError("port", text) from None
    query = f"/?token={parameters.token}" if parameters.token else ""
    node.get_logger().info(f"{READY}ws://{parameters.address}:{bridge.port}{query}")
    return bridge
