"""Answers of services, sent again while their client is not yet known to the middleware.

A client may call as soon as it has found the service. The service may find the client's reader for
the answer later, above all on a busy machine. rmw_fastrtps waits 100 ms for that and then drops the
answer, and rclpy only warns (https://github.com/ros2/rmw_fastrtps/issues/842): the client would
wait for ever.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rclpy.exceptions import InvalidHandle

from crazyflow_ros.runtime.health import Logger

_DROPPED = "failed to send response"  # how the warning of rclpy begins
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # s of wall time before each further attempt


class Answers:
    """Sends answers of services until they have been accepted.

    Args:
        delay: Calls a function after a time [s] in the thread of the executor.
        logger: Is told which answers are given up.

    Attributes:
        resent: How often an answer had to be sent again.
    """

    def __init__(
        self, delay: Callable[[float, Callable[[], object]], object], logger: Logger
    ) -> None:
        self._delay, self._logger = delay, logger
        self._is_sending = self._is_dropped = False
        self.resent = 0
        # Only by its warning does rclpy tell that it has dropped an answer.
        warnings.filterwarnings("always", _DROPPED, RuntimeWarning)
        self._show_others = warnings.showwarning
        warnings.showwarning = self._show

    def ensure(self, service: Any) -> None:
        """Have a service send its answers through here, in the thread of the executor."""
        send = service.send_response

        def attempt(response: Any, header: Any, n_attempts: int = 0) -> None:
            if self._is_accepted(send, response, header):
                return
            if n_attempts == len(_PAUSES):
                self._logger.warning(
                    f"an answer of {service.service_name} is given up: its client has not been "
                    f"found within {sum(_PAUSES):g} s"
                )
                return
            self.resent += 1
            self._delay(_PAUSES[n_attempts], lambda: attempt(response, header, n_attempts + 1))

        service.send_response = attempt

    def _is_accepted(self, send: Callable[[Any, Any], object], response: Any, header: Any) -> bool:
        """Send an answer; False if the middleware has dropped it."""
        self._is_sending, self._is_dropped = True, False
        try:
            send(response, header)
        except InvalidHandle:  # the service was destroyed meanwhile, with its drone
            return True
        finally:
            self._is_sending = False
        return not self._is_dropped

    def _show(self, message: Any, *rest: Any, **options: Any) -> None:
        """In place of `warnings.showwarning`."""
        if self._is_sending and str(message).startswith(_DROPPED):
            self._is_dropped = True
        else:
            self._show_others(message, *rest, **options)
