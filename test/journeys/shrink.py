"""Cuts a walk that fails short: to the fewest steps after which the same thing fails.

Hypothesis would shrink, too, but it tries hundreds of examples, and gives up on one that does not
fail each time. Here each try starts processes, and the worst failures are races. So steps are plain
values that can be left out wherever they no longer fit, and the tries are counted in minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from journeys.step import Broken, Step
from journeys.time_steps import Begin

TRIES = 2
"""A walk that does not fail in so many tries counts as good, though it may be a race."""

Attempt = Callable[[Sequence[Step]], Broken | None]
"""Walks, and returns what failed."""


class Shrinking:
    """Looks for the shortest walk that fails in the same way.

    Args:
        what: Kind of the failure.
        attempt: Walks.
        minutes: Of wall time to look for.
        told: Hears of each shorter walk.
    """

    def __init__(
        self, what: str, attempt: Attempt, minutes: float, told: Callable[[str], object] = print
    ) -> None:
        self._what, self._attempt, self._told = what, attempt, told
        self._deadline = time.monotonic() + 60 * minutes

    def shortest(self, steps: Sequence[Step]) -> list[Step]:
        """The shortest walk that was found, which may be the given one."""
        best = list(steps)
        begins = [i for i, step in enumerate(best) if isinstance(step, Begin)]
        for begin in reversed(begins[1:]):  # the last life alone, then the last two
            if self._fails(best[begin:]):
                best = best[begin:]
                break
        size = max(1, len(best) // 2)
        while True:
            shorter = next(filter(self._fails, _without(best, size)), None)
            if shorter is not None:
                best = shorter
                self._told(f"{len(best)} steps fail, too")
            elif size > 1:
                size = (size + 1) // 2
            else:
                break
            size = min(size, max(1, len(best) // 2))
            if self._is_over:
                return best
        while (plainer := next(filter(self._fails, _plainer(best)), None)) is not None:
            best = plainer
        return best

    @property
    def _is_over(self) -> bool:
        return time.monotonic() > self._deadline

    def _fails(self, steps: list[Step]) -> bool:
        for _ in range(TRIES):
            if self._is_over:
                return False
            failure = self._attempt(steps)
            if failure is not None and failure.what == self._what:
                return True
        return False


def _without(steps: list[Step], size: int) -> Iterator[list[Step]]:
    """The walks that lack some steps in a row, the latest first; a walk begins with `Begin`."""
    for end in range(len(steps), 1, -size):
        yield steps[: max(1, end - size)] + steps[end:]


def _plainer(steps: list[Step]) -> Iterator[list[Step]]:
    """The walks with a simulator that begins with less."""
    for i, step in enumerate(steps):
        if isinstance(step, Begin):
            for life in step.life.plainer():
                yield [*steps[:i], Begin(life, step.ends), *steps[i + 1 :]]
