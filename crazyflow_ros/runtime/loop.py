"""The loop of the physics thread: ticks in step with wall time, and requests between them."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Protocol

from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.runtime.preparation import Preparation
from crazyflow_ros.runtime.requests import InvalidState, Requests
from crazyflow_ros.runtime.schedule import Pacer
from crazyflow_ros.runtime.simulation import Simulation
from crazyflow_ros.runtime.steps import Steps

_IDLE_CHECK = 0.5  # s, after which a waiting thread checks for work without having been woken
_ENDED = "the simulation has ended"


class Driver(Protocol):
    """Advances a simulation once everything that its next ticks need is there. Physics thread.

    `Simulation` drives itself: it takes the posted commands, and waits for its door.
    """

    def advance(self, due: float, limit: float) -> int:
        """Advance to the next event, and perhaps to some more, and call their callbacks.

        Args:
            due: The tick up to which events are due.
            limit: Largest number of ticks, at least 1; after it, all callbacks are called.

        Returns:
            Number of ticks; 0 if something is missing, or a request has interrupted the wait for
            it. `advance` is called again after requests, and must not wait for longer than a
            fraction of a second, so that the watchdog sees that it does not hang.
        """

    def take_up(self) -> None:
        """Put posted commands into force from the present tick on, unless others decide on them."""

    def idle(self) -> None:
        """Called before the thread waits for a request or for the next tick to be due."""

    def close(self) -> None:
        """Close at the end of the simulation. From any thread, possibly more than once."""


class Loop:
    """The thread that advances a simulation, and owns its state.

    One compiled call computes all ticks between two due events.

    Args:
        simulation: The simulation to advance.
        requests: What other threads ask for.
        preparation: Those of their requests that take long to prepare.
        pacer: The schedule of the ticks.

    Attributes:
        driver: Decides when the simulation goes on; by default the simulation. Set before the
            start.
        requests: As given.
        pacer: As given.
        preparation: As given.
        paused: Time stands still.
        held: Why the simulation must not run; empty if it may.
        failed: The exception that ended the thread, if one did.
    """

    def __init__(
        self,
        simulation: Simulation,
        requests: Requests,
        preparation: Preparation,
        pacer: Pacer,
    ) -> None:
        self.requests, self.preparation, self.pacer = requests, preparation, pacer
        self._simulation, self._health = simulation, simulation.health
        self.paused = simulation.config.start_paused
        self.held = ""
        self.driver: Driver = simulation
        self.failed: BaseException | None = None
        self._steps: deque[Steps] = deque()  # the first ones are under way
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
        self.requests.stop()
        if not self.started:
            self._close()
            return
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the physics thread did not end within {timeout} s")

    def change(self, action: Callable[[], object]) -> Future[Snapshot]:
        """Carry out `action` between two ticks; the future has the state after it."""

        def carry_out() -> Snapshot:
            action()
            return self._simulation.snapshot

        return self.requests.ask(carry_out)

    def enqueue(self, steps: Steps) -> None:
        """Carry out steps after those that were requested before."""
        self.requests.put(partial(self._add, steps), steps)

    @property
    def busy(self) -> bool:
        """Whether requests, or changes that take long to prepare, are under way."""
        return self.requests.open or self.preparation.under_way

    # In the physics thread, called by requests.

    @property
    def stepping(self) -> bool:
        """Whether steps are under way."""
        return bool(self._steps)

    def pause(self) -> None:
        """Stop time, and abort steps under way."""
        self._abort_steps("the simulation was paused")
        self.paused = True
        self._simulation.set_paused(True)
        self.pacer.restart(self._simulation.snapshot.tick)

    def resume(self) -> None:
        """Let time run, and abort steps under way.

        Raises:
            InvalidState: `hold` forbids it.
        """
        if self.held:
            raise InvalidState(self.held)
        self._abort_steps("the simulation was resumed")
        self.paused = False
        self._simulation.set_paused(False)
        self.pacer.anchor(self._simulation.snapshot.tick)

    def hold(self, reason: str) -> None:
        """Pause, and refuse to resume or step, with a reason; an empty reason ends the refusal."""
        if reason:
            self._abort_steps(reason)
            self.pause()
        self.held = reason

    def drop(self, steps: Steps) -> None:
        """Cancel steps, if they are not done."""
        if steps in self._steps:
            self._steps.remove(steps)
            steps.drop()

    def jump(self, reason: str) -> None:
        """Record that the state, and perhaps the tick, has changed; steps are aborted."""
        self._abort_steps(reason)
        self.pacer.restart(self._simulation.snapshot.tick)

    def set_factor(self, factor: float) -> None:
        """Change the real-time factor."""
        self.pacer.factor = factor
        self.pacer.anchor(self._simulation.snapshot.tick)

    # The thread itself.

    def _main(self) -> None:
        health, requests = self._health, self.requests
        try:
            self._simulation.show()
            self.pacer.anchor(self._simulation.snapshot.tick)
            self._simulation.set_paused(self.paused)
            while not requests.stopping:
                health.doing, health.beats = "a request", health.beats + 1
                requests.serve()
                if self._steps:
                    self._advance_steps(self._steps[0])
                elif self.paused:
                    self._wait(_IDLE_CHECK)
                else:
                    self._advance()
        except BaseException as error:
            self.failed = error
            self._simulation.news.on_failure.tell(error)
        finally:
            self._abort_steps(_ENDED)
            requests.close(_ENDED)
            health.stop()
            self._close()

    def _close(self) -> None:
        self.preparation.close(_ENDED)
        self.driver.close()

    def _advance(self) -> None:
        simulation, pacer = self._simulation, self.pacer
        wait = pacer.wait(simulation.event_after(simulation.snapshot.tick)) if pacer.factor else 0.0
        # At a small factor the next event may be hours away, longer than a thread can wait.
        if wait > 0 and (not self._wait(min(wait, _IDLE_CHECK)) or wait > _IDLE_CHECK):
            return
        if n_ticks := self.driver.advance(pacer.due(), math.inf):
            pacer.done(simulation.snapshot.tick, n_ticks)

    def _advance_steps(self, steps: Steps) -> None:
        n_ticks = self.driver.advance(math.inf, steps.ticks - steps.ticks_done)
        if n_ticks == 0:
            return
        steps.ticks_done += n_ticks
        if steps.progress is not None:
            self._health.call("progress of a step", steps.progress, steps.ticks_done)
        if steps.ticks_done == steps.ticks:
            self._steps.popleft().set_result(self._simulation.snapshot)

    def _wait(self, timeout: float) -> bool:
        if self.driver is not self._simulation:
            self.driver.idle()
        self._health.doing = ""
        return self.requests.sleep(timeout)

    def _add(self, steps: Steps) -> None:
        if self.held:
            steps.set_exception(InvalidState(self.held))
        elif not self.paused:
            steps.set_exception(InvalidState("the simulation is not paused"))
        else:
            self._steps.append(steps)

    def _abort_steps(self, reason: str) -> None:
        while self._steps:
            self._steps.popleft().abort(reason)
