"""A program of ROS in simulated time: the simulation waits while it runs.

If the program has sent anything, it calls a service of the node before time runs. The node serves
it after all messages and requests that came before, and answers when it has published all messages
until the new time. The program calls it, too, when it is told that there are messages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from rosgraph_msgs.msg import Clock
from std_srvs.srv import Trigger

from crazyflow_ros.ros.service_answers import LOADING_TIMEOUT
from crazyflow_ros.runtime import InvalidState
from crazyflow_ros.scripts.in_script.simulated_time.channel import Advance, Endpoint, Reached
from crazyflow_ros.scripts.script import LockStep, Script, ScriptModule

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_SERVICE = "~/lock_step"
_FOLDER = Path(__file__).parent / "ros_in_script"
_DISCOVERY = 10.0  # s of wall time for a new publisher or subscription to be found
_LOOK = 2e-3  # s of wall time between two looks for it
_PATIENCE = 60.0  # s of wall time for the call of the service


class Published:
    """Records whether the node has published anything with subscribers, except for the clock."""

    def __init__(self) -> None:
        self._any = False

    def note(self, publisher: Any, _: bytes) -> None:
        """Note a message, from any thread."""
        if not self._any and publisher.get_subscription_count():
            self._any = publisher.msg_type is not Clock

    def take(self) -> bool:
        """Return whether anything was recorded since the last call."""
        found, self._any = self._any, False
        return found


class RosLockStep(LockStep):
    """Lets the time of a node's simulation run as far as a program of ROS asks for.

    Args:
        simulator: The node, all of whose other services exist.
        published: Notes its messages.
    """

    def __init__(self, simulator: Host, published: Published) -> None:
        super().__init__(simulator.physics, simulator.node.get_logger())
        self._simulator, self._published = simulator, published
        # Calls of the service; each ends with whether subscriptions may have changed.
        self._calls: SimpleQueue[Future[bool]] = SimpleQueue()
        self._sought: list[Endpoint] = []
        # The last one: a program that knows it knows all others of this node.
        simulator.create_service(Trigger, _SERVICE, self._call)

    async def _call(self, _: Trigger.Request, _response: Trigger.Response) -> str:
        """Let time run once. Everything that came before has been served."""
        call: Future[bool] = Future()
        self._calls.put(call)
        if await self._simulator.waiting.result(call, LOADING_TIMEOUT):
            self._simulator.listeners.look()
        return "time has run"

    # In the thread that serves the program.

    def run(self, script: Script) -> int:
        """Let a program run to its end, log where the drones are then, and return its exit code."""
        code, logger = script.run(self), self._simulator.node.get_logger()
        for text in self.summary():
            logger.info(text)
        return code

    def note(self, endpoint: Endpoint) -> None:
        """See `LockStep`."""
        self._sought.append(endpoint)

    def advance(self, asked: Advance, reply: Callable[[Reached], object]) -> None:
        """See `LockStep`.

        Raises:
            RuntimeError: The service was not called, or the simulation has failed.
        """

        def tell(reached: Reached) -> None:
            reply(reached._replace(published=self._published.take()))

        with suppress(InvalidState):  # which is met again when time is to run
            while self._run_to(asked.now_ns):
                pass  # the program may be ahead if nothing was published for a while
        if not asked.by_service:
            super().advance(asked, tell)
            return
        try:
            call = self._calls.get(timeout=_PATIENCE)
        except Empty:
            text = f"the program has not called {_SERVICE} for {_PATIENCE:g} s"
            raise RuntimeError(text) from None
        found = False
        try:
            found = self._find()
            super().advance(asked, tell)
        finally:
            call.set_result(found)

    def _find(self) -> bool:
        """Wait until all new endpoints are known here; return whether there were any."""
        sought, self._sought = self._sought, []
        late = time.monotonic() + _DISCOVERY
        for endpoint in sought:
            while not self._is_known(endpoint):
                if time.monotonic() > late:
                    kind = "publisher" if endpoint.publishes else "subscription"
                    self._simulator.node.get_logger().warning(
                        f"lock-step: the {kind} of {endpoint.topic} in {endpoint.node} was not "
                        f"found within {_DISCOVERY:g} s"
                    )
                    break
                time.sleep(_LOOK)
        return bool(sought)

    def _is_known(self, endpoint: Endpoint) -> bool:
        node = self._simulator.node
        find = node.get_subscriptions_info_by_topic
        if endpoint.publishes:
            find = node.get_publishers_info_by_topic
        names = endpoint.node, endpoint.namespace
        return any((at.node_name, at.node_namespace) == names for at in find(endpoint.topic))


class RosScript:
    """A program of ROS in simulated time; see `ros.process.TimedProgram`.

    Args:
        command: Program and arguments.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command, self._published = command, Published()
        self.note = self._published.note
        self._script: Script | None = None

    def start(self, simulator: Host) -> None:
        """Start it.

        Raises:
            OSError: It cannot be started.
        """
        self._lock_step = RosLockStep(simulator, self._published)
        service = simulator.resolve_service_name(_SERVICE)
        period = 1_000_000_000 // simulator.parameters.publish_rates.clock
        module = ScriptModule(_FOLDER, "simulated_ros", [service, period])
        logger = simulator.node.get_logger()
        self._script = Script(self._command, logger, extension=module)

    def run(self) -> int:
        """Let the started program run to its end, and return its exit code."""
        assert self._script is not None
        return self._lock_step.run(self._script)

    def stop(self) -> None:
        """End the program if it was started. From any thread."""
        if self._script is not None:
            self._script.stop()
