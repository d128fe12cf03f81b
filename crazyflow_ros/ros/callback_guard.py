"""Checks on all messages and requests of the node before their callbacks run.

Messages and requests that are too large are refused unread. An exception from a callback becomes a
warning or an error response: otherwise it would leave rclpy's executor.
"""

from __future__ import annotations

import array
import inspect
import traceback
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
from rcl_interfaces.msg import SetParametersResult
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.throttled_logger import Logger, ThrottledLogger
from crazyflow_ros.ros.memory_limit import advice
from crazyflow_ros.ros.messages.serialisation import type_name
from crazyflow_ros.runtime import InvalidState

SERVICE_QOS = QoSProfile(depth=1000)
"""Queue for pending calls; rclpy's default loses the eleventh."""

_HEADER = 4  # bytes of a serialised message before its fields
_DESCRIPTIONS = ("resource_string",)  # fields that hold descriptions of worlds and objects
_REFUSALS = (InvalidState, ValueError, TimeoutError, CancelledError, OSError, MemoryError)


class Refusal(ValueError):
    """A refused request.

    Attributes:
        code: Result code of the service or of `simulation_interfaces/msg/Result`.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class CallbackGuard:
    """A guard around callbacks, which logs what it refuses.

    Attributes:
        refused: Number of messages and requests refused so far.
        failed: Number of callbacks that raised anything other than a refusal so far.
    """

    def __init__(self, logger: Logger) -> None:
        self._logger = ThrottledLogger.of(logger)
        self.refused = self.failed = 0

    def on_message(
        self, callback: Callable[[Any], object], kind: Any, topic: str
    ) -> Callable[[bytes], None]:
        """Wrap a callback for serialised messages; messages that are too large are refused.

        Args:
            callback: Receives the message; may raise ValueError to refuse it.
            kind: Type of the messages.
            topic: Name of the topic.
        """

        def receive(data: bytes) -> None:
            try:
                callback(_read(data, kind))
            except Exception as error:
                self._logger.warning(f"{topic} is ignored: {self.explain(error, topic)}")

        return receive

    def on_request(
        self, callback: Callable[[Any, Any], Any], name: str
    ) -> Callable[[Any, Any], Awaitable[Any]]:
        """Wrap a service callback so that the service always responds.

        Args:
            callback: Receives request and response; may be a coroutine. It fills in the response,
                returns a success message, or raises an exception whose text becomes the response.
            name: Name of the service.
        """

        async def answer(request: Any, response: Any) -> Any:
            try:
                check_request(request)
                returned = callback(request, response)
                if inspect.isawaitable(returned):
                    returned = await returned
                return _succeed(response, returned)
            except Exception as error:
                text = self.explain(error, name)
                if not _refuse(request, response, text, getattr(error, "code", None)):
                    # The response cannot carry the reason.
                    self._logger.warning(f"{name} is refused: {text}")
                return response

        return answer

    def on_timer(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Wrap a timer callback; exceptions are logged."""

        def call() -> None:
            try:
                callback()
            except Exception as error:
                self._report(getattr(callback, "__qualname__", repr(callback)), error)

        return call

    def explain(self, error: Exception, what: str) -> str:
        """Count an exception and return its text; log it unless it is a refusal."""
        if isinstance(error, _REFUSALS):
            self.refused += 1
        else:
            self._report(what, error)
        return (str(error) or type(error).__name__) + advice(error)

    def _report(self, what: str, error: Exception) -> None:
        self.failed += 1
        trace = "".join(traceback.format_exception(error))
        self._logger.error(f"{what} failed; the simulator continues\n{trace}")


def check_request(request: Any) -> None:
    """Refuse a request with strings or lists that are too long.

    Raises:
        ValueError: A field is too long; the message names it.
    """
    left = limits.REQUEST_ELEMENTS

    def check(name: str, value: Any) -> None:
        nonlocal left
        if isinstance(value, str):
            field = name.rpartition(".")[2]
            if field in _DESCRIPTIONS:
                if len(value) > limits.DESCRIPTION_BYTES:
                    expected = f"at most {limits.DESCRIPTION_BYTES} characters"
                    raise ValueError(f"{name}: expected {expected}, got {len(value)}")
            elif len(value) > limits.TEXT_LENGTH:
                expected = f"at most {limits.TEXT_LENGTH} characters"
                raise ValueError(f"{name}: expected {expected}, got {limits.shown(value)!r}")
        elif isinstance(value, Sequence | array.array | np.ndarray):
            left -= len(value)
            if left < 0:
                expected = f"at most {limits.REQUEST_ELEMENTS} elements in all lists"
                raise ValueError(f"{name}: expected {expected}, got {len(value)} here")
            if len(value) and not isinstance(value, bytes | array.array | np.ndarray):
                for i, element in enumerate(value):
                    check(f"{name}[{i}]", element)
        elif hasattr(value, "get_fields_and_field_types"):
            for field in value.get_fields_and_field_types():
                check(f"{name}.{field}" if name else field, getattr(value, field))

    check("", request)


def _read(data: bytes, kind: Any) -> Any:
    """Return a message.

    Raises:
        ValueError: The bytes are too many, or none of its type.
    """
    if len(data) > limits.MESSAGE_BYTES:
        expected = f"at most {limits.MESSAGE_BYTES} bytes"
        raise ValueError(f"expected {expected}, got {len(data)}")
    cause: Exception | None = None
    if len(data) > _HEADER:  # or Fast CDR might read on, whatever is behind it in memory
        try:
            return deserialize_message(data, kind)
        except MemoryError:
            raise
        except Exception as error:  # rclpy has no public class for it
            cause = error
    expected = f"expected a {type_name(kind)}"
    raise ValueError(f"{expected}, got {len(data)} bytes that are none") from cause


def _succeed(response: Any, returned: Any) -> Any:
    """Return the response; a string returned by the callback becomes its message."""
    if isinstance(returned, str):
        response.success, response.message = True, returned
        return response
    return response if returned is None else returned


def _refuse(request: Any, response: Any, text: str, code: int | None) -> bool:
    """Write a refusal into a response; return False if its type has no field for it."""
    if hasattr(response, "success") and hasattr(response, "message"):
        response.success, response.message = False, text
    elif isinstance(getattr(response, "result", None), SetParametersResult):
        response.result = SetParametersResult(successful=False, reason=text)
    elif hasattr(getattr(response, "result", None), "error_message"):
        result = response.result
        result.result = result.RESULT_OPERATION_FAILED if code is None else code
        result.error_message = text
    elif hasattr(request, "parameters") and hasattr(response, "results"):
        # Parameters before the one that failed are set and have their results.
        missing = len(request.parameters) - len(response.results)
        refused = SetParametersResult(successful=False, reason=text)
        response.results = [*response.results, *[refused] * missing]
    else:
        return False
    return True
