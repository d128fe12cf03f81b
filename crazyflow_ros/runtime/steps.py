"""Steps: numbers of ticks that are requested while time stands still."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.runtime.requests import InvalidState

Progress = Callable[[int], None]
"""Takes the number of ticks done so far, after each stretch of them. Physics thread."""


class StepAborted(InvalidState):
    """Steps were ended by a pause, a resume or a reset."""


class Steps(Future[Snapshot]):
    """Ticks under way; the result is the state after the last one.

    Attributes:
        ticks: Number of ticks requested.
        ticks_done: Number of ticks done; final once the future is done.
        progress: Called after each stretch.
    """

    def __init__(
        self, ticks: int, progress: Progress | None, cancel: Callable[[Steps], object]
    ) -> None:
        """Create steps, none of which is done.

        Args:
            ticks: At least 1.
            progress: Called after each stretch.
            cancel: Asks the physics thread to drop these steps.

        Raises:
            ValueError: `ticks` is less than 1.
        """
        super().__init__()
        if ticks < 1:
            raise ValueError(f"the number of ticks must be at least 1, got {ticks}")
        self.ticks, self.ticks_done, self.progress = ticks, 0, progress
        self._cancel = cancel

    @property
    def left(self) -> int:
        """Number of ticks that are not done yet."""
        return self.ticks - self.ticks_done

    def cancel(self) -> bool:
        """Drop the ticks that are not done yet. From any thread.

        The future is cancelled, and `ticks_done` final, as soon as the stretch under way is over;
        wait for it with `concurrent.futures.wait`.

        Returns:
            False if the future is done already.
        """
        if self.done():
            return False
        self._cancel(self)
        return True

    def drop(self) -> None:
        """Cancel the future. Physics thread only."""
        super().cancel()
        self.set_running_or_notify_cancel()


class StepQueue:
    """Steps in the order in which they were requested. For one thread."""

    def __init__(self) -> None:
        self._queue: deque[Steps] = deque()

    def add(self, steps: Steps) -> None:
        """Add steps after all others."""
        self._queue.append(steps)

    def drop(self, steps: Steps) -> None:
        """Cancel steps, if they are not done."""
        if steps in self._queue:
            self._queue.remove(steps)
            steps.drop()

    def current(self) -> Steps | None:
        """The steps under way."""
        return self._queue[0] if self._queue else None

    def settle(self, snapshot: Snapshot) -> None:
        """Complete the current steps, if no ticks are left."""
        if self._queue[0].left == 0:
            self._queue.popleft().set_result(snapshot)

    def abort(self, reason: str) -> None:
        """Fail all steps."""
        while self._queue:
            steps = self._queue.popleft()
            steps.set_exception(
                StepAborted(
                    f"step aborted: {reason}, after {steps.ticks_done} of {steps.ticks} ticks"
                )
            )
