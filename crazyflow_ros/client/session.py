"""A node of a script, which runs its callbacks while the script waits."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import rclpy
from rclpy.context import Context
from rclpy.executors import ShutdownException, SingleThreadedExecutor, TimeoutException
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.validate_namespace import validate_namespace

from crazyflow_ros.client.errors import SimulationError
from crazyflow_ros.client.service_calls import ANSWER, ServiceCall, ServiceCalls, request_of

SLICE = 0.05  # s of wall time between two checks
PATIENCE = 3.0  # s of wall time to wait before the log says so

_ROS = "--ros-args"
_MOST_DUE = 200  # callbacks in one go, where they become due faster than they run


class Session:
    """A node in a context of its own. It runs callbacks only while one of its methods waits.

    Args:
        name: Name of the node.
        namespace: Its namespace.
        domain: ROS domain; by default that of the environment.
        check: Called again and again while a method waits. It may raise an error to end the wait,
            for example because the process of the simulator has ended.

    Attributes:
        node: The node.
        executor: Runs its callbacks. A thread may spin it, in place of the methods that wait.

    Raises:
        SimulationError: A name is not valid, or ROS cannot start, for example because of a wrong
            ROS_DOMAIN_ID.
    """

    def __init__(
        self,
        name: str,
        namespace: str = "/",
        *,
        domain: int | None = None,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        self._context, self._check = Context(), check
        try:
            # Other words of the program, such as view:=true, are its own.
            words = sys.argv[sys.argv.index(_ROS) :] if _ROS in sys.argv else []
            rclpy.init(
                args=words,
                context=self._context,
                domain_id=domain,
                signal_handler_options=SignalHandlerOptions.NO,
            )
            validate_namespace(f"/{namespace.strip('/')}")
            self.node = Node(
                name,
                namespace=namespace,
                context=self._context,
                use_global_arguments=False,
                start_parameter_services=False,
            )
        except Exception as error:  # rclpy has no public base class for a wrong environment
            self._context.try_shutdown()
            raise SimulationError(one_line(error)) from None
        self.executor = SingleThreadedExecutor(context=self._context)
        self.executor.add_node(self.node)
        self._calls = ServiceCalls(self.node)
        self._is_busy = False  # whether a callback has run since the executor looked

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave ROS."""
        self.executor.shutdown()
        self.node.destroy_node()
        self._context.try_shutdown()

    @property
    def domain(self) -> int:
        """The ROS domain."""
        return int(self._context.get_domain_id())

    def call(self, kind: Any, name: str, /, timeout: float = ANSWER, **request: Any) -> Any:
        """Call a service, and return its response.

        Args:
            kind: Type of the service.
            name: Name of the service.
            timeout: Wall time to wait for the service, and again for its response [s].
            **request: Fields of the request.

        Raises:
            SimulationError: The service does not exist or does not respond, or a field cannot have
                this value.
        """
        return self.result(self.call_async(kind, name, timeout, **request))

    def call_async(
        self, kind: Any, name: str, /, timeout: float = ANSWER, **request: Any
    ) -> ServiceCall:
        """Call a service, and return at once; see `call` and `result`."""
        return self.send_request(kind, name, request_of(kind, name, request), timeout)

    def send_request(
        self, kind: Any, name: str, request: Any, timeout: float = ANSWER
    ) -> ServiceCall:
        """Send a request to a service, and return at once; see `call` and `result`."""
        call = ServiceCall(name, timeout)
        self._calls.start(call, kind, request)
        return call

    def result(self, call: ServiceCall) -> Any:
        """Wait for the response of a service, and return it.

        Raises:
            SimulationError: See `call`.
        """
        self.wait(lambda: call.is_sent or call.done(), call.problem, call.timeout)
        self.wait(call.done, call.problem, call.timeout)
        self.spin(0.0)  # an executor serves topics and services in no order of time
        return call.result()

    def wait(self, condition: Callable[[], Any], what: str, timeout: float = ANSWER) -> Any:
        """Run callbacks until a condition holds, and return its value; the log tells of long waits.

        Args:
            condition: The condition.
            what: Message of the error.
            timeout: Wall time to wait [s].

        Raises:
            SimulationError: It did not hold in time.
        """
        begin, told = time.monotonic(), False
        while not (value := condition()):
            waited = time.monotonic() - begin
            if waited > timeout:
                raise SimulationError(f"{what}, waited {timeout:g} s")
            if waited > PATIENCE and not told:
                self.node.get_logger().info(f"{what} yet; waiting for at most {timeout:g} s")
                told = True
            self._spin_once(SLICE)
        return value

    def spin(self, seconds: float) -> None:
        """Run callbacks that are due, or the first one that becomes due within a time [s]."""
        is_due, left = self._spin_once(seconds), _MOST_DUE
        while is_due and (left := left - 1):
            is_due = self._spin_once(0.0)

    def spin_for(self, seconds: float) -> None:
        """Run callbacks for a wall time [s]."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._spin_once(min(left, SLICE))

    def _spin_once(self, seconds: float) -> bool:
        """Run one callback, and return whether one became due within a time [s]."""
        has_run = self._run_callback(0.0) or (seconds > 0 and self._run_callback(seconds))
        self._calls.attend()
        self._check()
        return has_run

    def _run_callback(self, seconds: float) -> bool:
        """Run one callback that becomes due within a time [s], if one does.

        The executor continues through all due callbacks only if the time stays the same. Otherwise
        it would start over and, if many are due, always run the same ones.
        """
        while True:
            try:
                callback, _, _ = self.executor.wait_for_ready_callbacks(seconds)
            except ShutdownException:
                return False
            except TimeoutException:
                if not self._is_busy:
                    return False
                self._is_busy = False  # after all that was due; more may be, meanwhile
            else:
                self._is_busy = True
                callback()
                callback.result()  # which may raise
                return True


def one_line(error: Exception) -> str:
    """Return rclpy's error about a name in one line; its own text has three."""
    return " ".join(str(error).split()).removesuffix(" ^")
