"""The loop of the physics thread: ticks in step with wall time, and requests between them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from crazyflow_ros.runtime.door import DoorGuard
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.preparation import Preparation
from crazyflow_ros.runtime.requests import InvalidState, Requests
from crazyflow_ros.runtime.schedule import Pacer
from crazyflow_ros.runtime.simulation import Simulation
from crazyflow_ros.runtime.steps import StepQueue, Steps
from crazyflow_ros.runtime.turns import Turns

T = TypeVar("T")

_IDLE_CHECK = 0.5  # s, after which a waiting thread checks for work without having been woken
_TURN_CHECK = 0.1  # s, the same while other simulators have to answer
_ENDED = "the simulation has ended"


class Loop:
    """The thread that advances a simulation, and owns its state.

    One compiled call computes all ticks between two due events.

    Args:
        simulation: The simulation to advance.
        show: Publishes the first state; called once, in the thread.
        pacer: The schedule of the ticks.
        door: Through which others fly the drones; None if the users of the thread do.
        health: Records failures, and watches the thread.
        paused: Whether time stands still initially.

    Attributes:
        pacer: As given.
        preparation: Makes changes that take long to prepare.
        turns: Asked before time goes on; None if nobody else has a say. Set before the start.
        paused: Time stands still.
        failed: The exception that ended the thread, if one did.
        failure_callbacks: Called with that exception.
    """

    def __init__(
        self,
        simulation: Simulation,
        show: Callable[[], None],
        pacer: Pacer,
        door: DoorGuard | None,
        health: Health,
        *,
        paused: bool,
    ) -> None:
        self._simulation, self._show, self._door = simulation, show, door
        self._health, self.pacer, self.paused = health, pacer, paused
        self._held = ""  # why time must not run
        self.turns: Turns | None = None
        self.failed: BaseException | None = None
        self.failure_callbacks: list[Callable[[BaseException], None]] = []
        self._steps = StepQueue()
        self._requests = Requests(health.note_failure)
        self.preparation = Preparation(self.ask)
        self._thread = threading.Thread(target=self._main, name="physics", daemon=True)

    # From any thread.

    @property
    def started(self) -> bool:
        """Whether the thread runs, or has run."""
        return self._thread.ident is not None

    def start(self) -> None:
        """Start the thread."""
        self._health.start()
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """End the thread. Open requests fail.

        Raises:
            TimeoutError: The thread did not end within `timeout` [s].
        """
        self._requests.stop()
        self._interrupt_door()
        if not self.started:
            self._close()
            return
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the physics thread did not end within {timeout} s")

    def ask(self, action: Callable[[], T]) -> Future[T]:
        """Carry out `action` between two ticks; the future has its result."""
        future = self._requests.ask(action)
        self._interrupt_door()
        return future

    def enqueue(self, steps: Steps) -> None:
        """Carry out steps after those that were requested before."""
        self._requests.put(lambda: self._add(steps), steps)
        self._interrupt_door()

    @property
    def busy(self) -> bool:
        """Whether requests, or changes that take long to prepare, are under way."""
        return self._requests.open or bool(self.preparation.under_way())

    # In the physics thread, called by requests.

    @property
    def stepping(self) -> bool:
        """Whether steps are under way."""
        return self._steps.current() is not None

    def pause(self) -> None:
        """Stop time, and abort steps under way."""
        self._steps.abort("the simulation was paused")
        self._set_paused(True)
        self.pacer.pause()

    def resume(self) -> None:
        """Let time run, and abort steps under way.

        Raises:
            InvalidState: `hold` forbids it.
        """
        if self._held:
            raise InvalidState(self._held)
        self._steps.abort("the simulation was resumed")
        self._set_paused(False)
        self._anchor()

    def hold(self, reason: str) -> None:
        """Pause, and refuse to resume and to step for a reason; an empty one allows both again."""
        if reason:
            self._steps.abort(reason)
            self.pause()
        self._held = reason

    def drop(self, steps: Steps) -> None:
        """Cancel steps, if they are not done."""
        self._steps.drop(steps)

    def jump(self, reason: str) -> None:
        """Record that the state, and perhaps the tick, has changed; steps are aborted."""
        self._steps.abort(reason)
        self.pacer.restart(self._simulation.snapshot.tick)

    def set_factor(self, factor: float) -> None:
        """Change the real-time factor."""
        self.pacer.factor = factor
        self._anchor()

    # The thread itself.

    def _main(self) -> None:
        try:
            self._show()
            self._anchor()
            if self._door is not None:
                self._door.set_paused(self.paused)
            health = self._health
            while not self._requests.stopping:
                health.doing, health.beats = "a request", health.beats + 1
                self._requests.serve()
                if steps := self._steps.current():
                    self._advance_steps(steps)
                elif self.paused:
                    if self.turns is not None:
                        self.turns.turn(due=False, paused=True)
                    health.doing = ""
                    self._requests.sleep(_IDLE_CHECK)
                else:
                    self._advance()
        except BaseException as error:
            self.failed = error
            for callback in self.failure_callbacks:
                callback(error)
        finally:
            self._steps.abort(_ENDED)
            self._requests.close(_ENDED)
            self._health.stop()
            self._close()

    def _close(self) -> None:
        self.preparation.close(_ENDED)
        if self._door is not None:
            self._door.close()
        if self.turns is not None:
            self.turns.close()

    def _advance(self) -> None:
        simulation = self._simulation
        wait = self.pacer.wait(simulation.next_event()) if self.pacer.factor else 0.0
        if wait > 0:
            if self.turns is not None:
                self.turns.turn(due=False, paused=False)
            self._health.doing = ""
            # At a small factor the next event may be hours away, longer than a thread can wait.
            if not self._requests.sleep(min(wait, _IDLE_CHECK)) or wait > _IDLE_CHECK:
                return
        if self._may_advance():
            n_ticks = simulation.advance(self.pacer.due())
            self.pacer.done(simulation.snapshot.tick, n_ticks)

    def _advance_steps(self, steps: Steps) -> None:
        if not self._may_advance():
            return
        n_ticks = self._simulation.advance(math.inf, steps.left)
        steps.ticks_done += n_ticks
        if steps.progress is not None:
            self._health.call("progress of a step", steps.progress, steps.ticks_done)
        self._steps.settle(self._simulation.snapshot)

    def _may_advance(self) -> bool:
        """Collect all that the next ticks depend on; return False if it is not there yet."""
        if self.turns is not None and not self.turns.turn(due=True, paused=False):
            self._health.doing = f"waiting for {self.turns.waiting_for}"
            self._requests.sleep(_TURN_CHECK)
            return False
        return self._simulation.collect(self._requests.pending)

    def _add(self, steps: Steps) -> None:
        if self._held:
            steps.set_exception(InvalidState(self._held))
        elif not self.paused:
            steps.set_exception(InvalidState("the simulation is not paused"))
        else:
            self._steps.add(steps)

    def _set_paused(self, paused: bool) -> None:
        self.paused = paused
        if self._door is not None:
            self._door.set_paused(paused)

    def _interrupt_door(self) -> None:
        if self._door is not None:
            self._door.interrupt()

    def _anchor(self) -> None:
        self.pacer.anchor(self._simulation.snapshot.tick)
