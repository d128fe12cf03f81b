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
from typing import TYPE_CHECKING, Any, NamedTuple

from rclpy.action import ActionServer

from crazyflow_ros.runtime import InvalidState

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_AT_ONCE = 8  # answers on their way, of the ten that a client keeps
_TAKEN = 0.5  # s of wall time without requests after which an answer counts as taken
_LONGEST = 2.0  # s of wall time after which it does, even if requests come all the time
_MOST_WAITING = 500  # answers; further ones are sent at once
_TIMEOUT = 60.0  # s of wall time, far more than the last of them waits


class _Answer(NamedTuple):
    kind: str
    """Of the request: goal, cancel or result."""
    goal: bytes
    time: float
    """Wall time at which it was sent, s."""


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
        self._sent: deque[_Answer] = deque()  # on their way
        self._turns: deque[tuple[str, bytes, Future[None]]] = deque()
        self._asked = 0.0  # wall time of the last request
        self._is_due = False
        super().__init__(simulator.node, kind, name, self._carried_out, **options)

    async def execute(self, taken_data: Any) -> None:
        """Answer requests that have been taken, see `rclpy.waitable.Waitable`."""
        for kind in taken_data.keys() & {"goal", "cancel", "result"}:
            _, request = taken_data[kind]
            asked = request.goal_info if kind == "cancel" else request
            goal = bytes(asked.goal_id.uuid)
            self._note(kind, goal)
            if kind == "result" and goal in self._is_asked:
                self._is_asked[goal] = True
            else:
                await self._turn(kind, goal)
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
            await self._turn("result", key)
        return result

    def _note(self, kind: str, goal: bytes) -> None:
        """Note a request, which may show that its client has taken answers.

        Who asks about a goal knows that it is accepted. Who sends the next goal after all other
        answers to one has waited for them. Else a client may send many requests at once, and look
        at no answer meanwhile.
        """
        self._asked = time.monotonic()
        goals = {answer.goal for answer in self._sent}
        waits = len(goals) == 1 and all(answer.kind != "goal" for answer in self._sent)
        if kind == "goal" and waits:
            self._sent.clear()
        elif kind != "goal":
            self._sent = deque(a for a in self._sent if a[:2] != ("goal", goal))
        self._give_turns()

    async def _turn(self, kind: str, goal: bytes) -> None:
        if len(self._turns) < _MOST_WAITING:
            turn: Future[None] = Future()
            self._turns.append((kind, goal, turn))
            self._give_turns()
            with suppress(InvalidState, TimeoutError):  # too much is waiting already
                await self._simulator.waiting.result(turn, _TIMEOUT)

    def _give_turns(self) -> None:
        now = time.monotonic()
        while self._sent and self._taken() <= now:
            self._sent.popleft()
        while self._turns and len(self._sent) < _AT_ONCE:
            kind, goal, turn = self._turns.popleft()
            self._sent.append(_Answer(kind, goal, now))
            if turn.set_running_or_notify_cancel():
                turn.set_result(None)
        if self._turns and not self._is_due:
            self._is_due = True
            self._simulator.regular_calls.once(self._taken() - now, self._continue)

    def _taken(self) -> float:
        """Return the wall time at which the oldest answer counts as taken."""
        sent = self._sent[0].time
        return min(max(sent, self._asked) + _TAKEN, sent + _LONGEST)

    def _continue(self) -> None:
        self._is_due = False
        self._give_turns()
