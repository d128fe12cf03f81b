"""An action server whose answers come no faster than clients take them.

A client of rclpy keeps only the last ten answers that it has not taken yet, and the middleware does
not tell the server: a client that sends many goals at once loses answers, and waits forever.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rclpy.action import ActionServer

from crazyflow_ros.runtime import InvalidState

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_AT_ONCE = 8  # answers on their way, of the ten that a client keeps
_TAKEN = 0.5  # s of wall time without requests after which an answer counts as taken
_LONGEST = 2.0  # s of wall time after which it does, even if requests come all the time
_MOST_WAITING = 500  # answers; further ones are sent at once
_TIMEOUT = 60.0  # s of wall time, far more than the last of them waits


class PacedActionServer(ActionServer):  # type: ignore[type-arg]  # rclpy before Kilted has none
    """An action server that paces its answers to goals, cancellations and requests for results.

    A client that waits for its answers is not delayed: its next request shows that it has taken
    the answer to the last one.

    Args:
        simulator: The node.
        kind: Type of the action.
        name: Its name.
        execute: Carries out a goal, and returns its result.
        options: Further ones of `rclpy.action.ActionServer`.
    """

    def __init__(
        self,
        simulator: Host,
        kind: Any,
        name: str,
        execute: Callable[[Any], Awaitable[Any]],
        **options: Any,
    ) -> None:
        self._simulator, self._carry_out = simulator, execute
        self._is_asked: dict[bytes, bool] = {}  # for the results of goals under way
        self._sent: deque[tuple[str, float]] = deque()  # kinds and times of answers on their way
        self._turns: deque[tuple[str, Future[None]]] = deque()
        self._asked = 0.0  # wall time of the last request
        self._is_due = False
        super().__init__(simulator.node, kind, name, self._carried_out, **options)

    async def execute(self, taken_data: Any) -> None:
        """Answer requests that have been taken, see `rclpy.waitable.Waitable`."""
        for kind in taken_data.keys() & {"goal", "cancel", "result"}:
            self._note(kind)
            _, request = taken_data[kind]
            if kind == "result" and (goal := bytes(request.goal_id.uuid)) in self._is_asked:
                self._is_asked[goal] = True
            else:
                await self._turn(kind)
        await super().execute(taken_data)

    async def _carried_out(self, goal: Any) -> Any:
        """Carry out a goal, and return the result when it may be sent."""
        key = bytes(goal.goal_id.uuid)
        self._is_asked[key] = False
        try:
            result = await self._carry_out(goal)
        finally:
            is_asked = self._is_asked.pop(key)
        if is_asked:
            await self._turn("result")
        return result

    def _note(self, kind: str) -> None:
        """Note a request: its client has taken an answer of another kind.

        While it sends, it may not look at answers.
        """
        self._asked = time.monotonic()
        for answer in self._sent:
            if answer[0] != kind:
                self._sent.remove(answer)
                self._give_turns()
                return

    async def _turn(self, kind: str) -> None:
        if len(self._turns) < _MOST_WAITING:
            turn: Future[None] = Future()
            self._turns.append((kind, turn))
            self._give_turns()
            with suppress(InvalidState, TimeoutError):  # too much is waiting already
                await self._simulator.waiting.result(turn, _TIMEOUT)

    def _give_turns(self) -> None:
        now = time.monotonic()
        while self._sent and self._taken() <= now:
            self._sent.popleft()
        while self._turns and len(self._sent) < _AT_ONCE:
            kind, turn = self._turns.popleft()
            self._sent.append((kind, now))
            if turn.set_running_or_notify_cancel():
                turn.set_result(None)
        if self._turns and not self._is_due:
            self._is_due = True
            self._simulator.regular_calls.once(self._taken() - now, self._continue)

    def _taken(self) -> float:
        """Return the wall time at which the oldest answer counts as taken."""
        _, sent = self._sent[0]
        return min(max(sent, self._asked) + _TAKEN, sent + _LONGEST)

    def _continue(self) -> None:
        self._is_due = False
        self._give_turns()
