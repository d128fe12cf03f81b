"""The executor of the node."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from rclpy.context import Context
from rclpy.executors import ConditionReachedException, SingleThreadedExecutor, TimeoutException
from rclpy.subscription import Subscription
from rclpy.timer import Timer

_SHARE = 0.1  # of the thread's time, for the wait sets of all entities while some topics are busy
_BUSY = 1.0  # s, within which a busy topic has another message
_LONGEST = 0.1  # s of wall time, after which a new timer is noticed
_JOIN = 1.0  # s


class ServingExecutor(SingleThreadedExecutor):
    """Runs one callback at a time, and continues with all others after any failure.

    rclpy builds a wait set of all entities before each wait, which takes 13 us for each of them: of
    the topics and services of a hundred drones, 30 ms of the interpreter's lock. Therefore:

    - Timers have a thread of their own, which wakes up without a wait set.
    - While messages arrive in quick succession, it waits for their topics only, and spends a tenth
      of the time on all other entities. It does not do so for service calls, which would always
      overtake messages that were sent before.

    Executors of rclpy never serve a service again once taking a request has failed, for example for
    lack of memory.

    Args:
        fail: Called with the exception that ends the thread of the timers; callbacks of timers must
            not raise any.
        context: As in rclpy.
    """

    def __init__(
        self, fail: Callable[[BaseException], object], *, context: Context | None = None
    ) -> None:
        super().__init__(context=context)
        self._fail = fail
        self._turn = threading.Lock()  # held while a callback runs
        self._heard: dict[Any, float] = {}  # when a topic had its last message
        self._busy: set[Any] = set()
        self._looks_at_all, self._all_due, self._pause = True, 0.0, 0.0
        self._round_began = 0.0
        self._ends: Callable[[], bool] = lambda: False
        self._ended = threading.Event()
        self._timers = threading.Thread(target=self._run_timers, name="timers", daemon=True)
        self._timers.start()

    def can_execute(self, entity: Any) -> bool:
        """Return whether to wait for an entity now; the calling thread is not serving it."""
        if isinstance(entity, Timer) or not (self._looks_at_all or entity in self._busy):
            return False
        group = entity.callback_group
        return group is not None and bool(group.can_execute(entity))

    def serve(self, seconds: float, ends: Callable[[], bool]) -> None:
        """Run the next callback.

        Args:
            seconds: Wall time for which to wait for it.
            ends: Returns, after `wake`, whether to stop waiting.

        Raises:
            MemoryError: There is no memory for what has arrived.
            Exception: The callback or rclpy has raised it.
        """
        self._ends, self._round_began = ends, 0.0
        timeout = seconds if self._looks_at_all else self._pause
        try:
            callback, entity, _ = self.wait_for_ready_callbacks(timeout, condition=self._breaks_off)
        except (TimeoutException, ConditionReachedException):
            self._looks_at_all = self._all_are_due()
            return
        if self._looks_at_all and self._round_began:
            self._look_at_all_again_after(time.thread_time() - self._round_began)
        self._note(entity)
        with self._turn:
            callback()
        error = callback.exception()
        if error is None:
            return
        group = getattr(entity, "callback_group", None)
        if group is not None and not group.can_execute(entity):
            group.ending_execution(entity)
        cause = error.__cause__  # of a SystemError
        raise cause if isinstance(cause, MemoryError) else error

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Stop the timers, and what rclpy's executor stops."""
        self._ended.set()
        if threading.current_thread() is not self._timers:
            self._timers.join(_JOIN)
        return bool(super().shutdown(timeout_sec))

    def _breaks_off(self) -> bool:
        """Return to rclpy, which asks before it builds a wait set, whether to stop instead."""
        if self._ends() or self._all_are_due() != self._looks_at_all:
            return True
        self._round_began = time.thread_time()
        return False

    def _all_are_due(self) -> bool:
        return not self._busy or time.monotonic() >= self._all_due

    def _look_at_all_again_after(self, cost: float) -> None:
        """Wait for the busy topics alone for a while, after a wait set that took some time [s]."""
        now = time.monotonic()
        self._pause = cost / _SHARE
        self._all_due = now + self._pause
        self._heard = {topic: at for topic, at in self._heard.items() if at > now - _BUSY}
        self._busy &= self._heard.keys()

    def _note(self, entity: Any) -> None:
        if isinstance(entity, Subscription):
            if entity in self._heard:
                self._busy.add(entity)
            self._heard[entity] = time.monotonic()

    def _run_timers(self) -> None:
        try:
            wait = _LONGEST
            while not self._ended.wait(wait):
                wait = _LONGEST
                for timer in [timer for node in self.get_nodes() for timer in node.timers]:
                    callback: Any = timer.callback
                    with self._turn:
                        if timer.is_ready():
                            timer.reset()
                            callback()
                        left = timer.time_until_next_call()
                    if left is not None:  # it is not cancelled
                        wait = min(wait, max(0.0, left * 1e-9))
        except BaseException as error:
            self._fail(error)
