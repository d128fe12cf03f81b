"""Service calls for users of the page, who are told about refusals."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from rclpy.parameter import Parameter

from crazyflow_ros.client.errors import SimulationError
from crazyflow_ros.client.service_calls import problem_of
from crazyflow_ros.ros.messages import type_of
from crazyflow_ros.view.controls import User
from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.panel.page_log import WARNING, Log

_MOST_WAITING = 32  # requests that have not been sent
# s of wall time after a message or an answer in which the simulator's log may tell its refusal. The
# log counts repetitions 5 s later, which are no refusals of later requests.
_REFUSAL = 1.0
# What the simulator's log says about services and topics, and about drones that refuse a pose.
_REFUSES, _IGNORES_POSE = ("is refused", "is ignored"), "ignores a pose"

Fields = Mapping[str, Any]
"""Fields of a request by their paths, such as `initial_pose.pose.position`."""


@dataclass
class _Request:
    user: User | None
    what: str
    kind: str
    name: str
    fields: Fields
    then: Callable[[Any], None] | None = None
    timeout: float = 10.0
    end_note: Callable[[], None] | None = None


class ServiceRequests:
    """Calls services for users; of several waiting requests, only the latest is sent.

    However fast users click, a service has one call at a time, and at most one in each `send`.

    Args:
        follower: The connection to the simulator.
        log: Receives the refusals.
        clock: Returns the wall time [s].
    """

    def __init__(
        self, follower: Follower, log: Log, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._follower, self._log, self._clock = follower, log, clock
        self._waiting: dict[str, _Request] = {}  # by the name of the service and the part
        self._under_way: set[str] = set()
        self._asked: dict[str, tuple[User | None, str, float]] = {}
        self._lock = threading.Lock()
        log.on_warning(self._note_warning)

    def ask(
        self,
        user: User | None,
        what: str,
        kind: str,
        name: str,
        fields: Fields | None = None,
        *,
        part: str = "",
        then: Callable[[Any], None] | None = None,
        timeout: float = 10.0,
    ) -> None:
        """Request a call of a service, without waiting.

        Args:
            user: Who is told about a refusal; if None, only the log is.
            what: Name of the request, for refusals; if empty, they are not shown.
            kind: Type of the service, such as `std_srvs/srv/SetBool`.
            name: Name of the service; ~ is replaced by the simulator's name.
            fields: Fields of the request.
            part: Distinguishes requests to the same service; a later request replaces one with
                the same part only.
            then: Receives the response if the service succeeded, in the thread of the node.
            timeout: Wall time to wait for the answer [s]; from 30 s on, the user is asked to wait.
        """
        key = f"{name} {part}"
        request = _Request(user, what, kind, name, fields or {}, then, timeout)
        with self._lock:
            is_full = len(self._waiting) >= _MOST_WAITING and key not in self._waiting
            if not is_full:
                self._waiting[key] = request
        if is_full:
            self._refuse(request, "the page is busy, try again")

    def set_parameter(self, user: User | None, what: str, name: str, value: Any) -> None:
        """Request that a parameter of the simulator be set, without waiting."""
        fields = {"parameters": [Parameter(name, value=value).to_parameter_msg()]}
        kind = "rcl_interfaces/srv/SetParameters"
        self.ask(user, what, kind, "~/set_parameters", fields, part=name)

    def expect_refusal(self, user: User | None, what: str, topic: str) -> None:
        """Tell a user if the simulator's log refuses a message on a topic."""
        with self._lock:
            self._asked[topic] = user, what, self._clock() + _REFUSAL

    def send(self) -> None:
        """Send the waiting requests. Call it periodically."""
        with self._lock:
            due = [key for key in self._waiting if key not in self._under_way]
            requests = {key: self._waiting.pop(key) for key in due}
            self._under_way.update(requests)
            now = self._clock()
            self._asked = {name: asked for name, asked in self._asked.items() if asked[2] > now}
        for key, request in requests.items():
            self._call(key, request)

    def _call(self, key: str, request: _Request) -> None:
        if request.timeout >= 30.0 and request.user is not None:
            request.end_note = request.user.tell(request.what, "under way", waits=True)
        with self._lock:
            self._asked[request.name] = request.user, request.what, math.inf
        future: Future[Any]
        try:
            kind, fields = _service(request.kind), _top_fields(request)
            future = self._follower.call(kind, request.name, request.timeout, **fields)
        except Exception as error:  # the page continues
            future = Future()
            future.set_exception(error)
        future.add_done_callback(partial(self._end, key, request))

    def _end(self, key: str, request: _Request, future: Future[Any]) -> None:
        with self._lock:
            self._under_way.discard(key)
            if request.name in self._asked:
                user, what, _ = self._asked[request.name]
                self._asked[request.name] = user, what, self._clock() + _REFUSAL
        if request.end_note is not None:
            request.end_note()
        error = future.exception()
        problem = str(error) if error is not None else problem_of(future.result())
        if problem:
            self._refuse(request, problem)
        elif request.then is not None:
            request.then(future.result())

    def _refuse(self, request: _Request, why: str) -> None:
        with self._lock:
            self._asked.pop(request.name, None)  # it is told once
        if not request.what:
            return
        if request.user is not None:
            request.user.tell(request.what, why)
        self._log.add(f"{request.what}: {why}", WARNING)

    def _note_warning(self, text: str) -> None:
        """Tell the user about a refusal that appears only in the simulator's log."""
        subject, _, why = text.partition(": ")
        name, _, verb = subject.partition(" ")
        if verb == _IGNORES_POSE:
            name = f"{name}/cmd_pose"
        elif verb not in _REFUSES:
            return
        with self._lock:
            asked = self._asked.pop(name, None)
        if asked is not None and asked[0] is not None:
            asked[0].tell(asked[1], why)


def _service(kind: str) -> Any:
    """Return the type of a service.

    Raises:
        SimulationError: Its package is not installed.
    """
    try:
        return type_of(kind)
    except ValueError:
        package = kind.partition("/")[0]
        raise SimulationError(f"the ROS package {package} is not installed") from None


def _top_fields(request: _Request) -> dict[str, Any]:
    """Return the top-level fields of a request, with nested fields put into their messages."""
    empty = _service(request.kind).Request()
    for path, value in request.fields.items():
        *parents, last = path.split(".")
        owner = empty
        for parent in parents:
            owner = getattr(owner, parent)
        setattr(owner, last, value)
    names = {path.partition(".")[0] for path in request.fields}
    return {name: getattr(empty, name) for name in names}
