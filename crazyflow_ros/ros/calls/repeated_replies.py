"""Service responses, sent again while the middleware has not discovered the client.

A client may call a service as soon as it has discovered it. The service may discover the client's
response reader later, especially on a busy machine. rmw_fastrtps waits 100 ms for that and then
drops the response, and rclpy only warns (https://github.com/ros2/rmw_fastrtps/issues/842): the
client would wait forever.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rclpy.exceptions import InvalidHandle

from crazyflow_ros.throttled_logger import Logger

_DROPPED = "failed to send response"  # start of rclpy's warning
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # s of wall time before each further attempt


class Answers:
    """Sender that retries service responses until the middleware accepts them.

    Args:
        delay: Calls a function after a time [s] in the executor's thread.
        logger: Logger for responses that could not be delivered.

    Attributes:
        resent: Number of times that a response had to be sent again.
    """

    def __init__(
        self, delay: Callable[[float, Callable[[], object]], object], logger: Logger
    ) -> None:
        self._delay, self._logger = delay, logger
        self._is_sending = self._is_dropped = False
        self.resent = 0
        # A warning is the only sign that rclpy has dropped a response.
        warnings.filterwarnings("always", _DROPPED, RuntimeWarning)
        self._show_others = warnings.showwarning
        warnings.showwarning = self._show

    def ensure(self, service: Any) -> None:
        """Route the responses of a service through this sender, in the executor's thread."""
        send = service.send_response

        def attempt(response: Any, header: Any, n_attempts: int = 0) -> None:
            if self._is_accepted(send, response, header):
                return
            if n_attempts == len(_PAUSES):
                self._logger.warning(
                    f"a response of {service.service_name} is dropped: its client was not "
                    f"discovered within {sum(_PAUSES):g} s"
                )
                return
            self.resent += 1
            self._delay(_PAUSES[n_attempts], lambda: attempt(response, header, n_attempts + 1))

        service.send_response = attempt

    def _is_accepted(self, send: Callable[[Any, Any], object], response: Any, header: Any) -> bool:
        """Send a response; return False if the middleware dropped it."""
        self._is_sending, self._is_dropped = True, False
        try:
            send(response, header)
        except InvalidHandle:  # the service has been destroyed with its drone
            return True
        finally:
            self._is_sending = False
        return not self._is_dropped

    def _show(self, message: Any, *rest: Any, **options: Any) -> None:
        """Replace `warnings.showwarning`."""
        if self._is_sending and str(message).startswith(_DROPPED):
            self._is_dropped = True
        else:
            self._show_others(message, *rest, **options)
