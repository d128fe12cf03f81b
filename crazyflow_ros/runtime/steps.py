"""Steps: numbers of ticks that are requested while time stands still."""

from __future__ import annotations

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

    def abort(self, reason: str) -> None:
        """Fail the future. Physics thread only."""
        text = f"step aborted: {reason}, after {self.ticks_done} of {self.ticks} ticks"
        self.set_exception(StepAborted(text))
