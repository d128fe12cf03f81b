"""Scripts in simulated time, while others reset, restore, pause, resume and hold the simulation."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from script_time import Log

from crazyflow_ros.runtime import InvalidState, StepAborted, Steps
from crazyflow_ros.scripts.in_script.simulated_time.channel import Advance, Reached
from crazyflow_ros.scripts.script import LockStep

FREQ = 300  # Hz, of which most ticks are no whole number of ns


@dataclass
class Physics:
    """A simulation that only counts ticks.

    Attributes:
        disturb: Each is called with one step, which it may fail.
    """

    tick: int = 1
    stepped: int = 0
    paused: bool = True
    held: str = ""
    failed: BaseException | None = None
    freq: int = FREQ
    disturb: list[Callable[[Steps], None]] = field(default_factory=list)

    @property
    def snapshot(self) -> SimpleNamespace:
        return SimpleNamespace(tick=self.tick, time_ns=self.tick * 10**9 // FREQ)

    def step(self, n_ticks: int) -> Steps:
        steps = Steps(n_ticks, None, lambda _: None)
        if self.disturb:
            self.disturb.pop(0)(steps)
        if self.held or not self.paused:
            steps.set_exception(InvalidState(self.held or "the simulation is not paused"))
        elif not steps.done():
            self.run(steps, steps.left)
            steps.set_result(self.snapshot)  # type: ignore[arg-type]
        return steps

    def run(self, steps: Steps, n_ticks: int) -> None:
        self.tick += n_ticks
        self.stepped += n_ticks
        steps.ticks_done += n_ticks

    def pause(self) -> Future[None]:
        self.paused = True
        future: Future[None] = Future()
        future.set_result(None)
        return future


def begin(physics: Physics) -> tuple[LockStep, list[str]]:
    log = Log()
    return LockStep(physics, log), log.lines  # type: ignore[arg-type]


def advance(lock_step: LockStep, seconds: float) -> list[Reached]:
    """Let the script wait; return the answers that it gets."""
    answers: list[Reached] = []
    until = lock_step.now + round(seconds * 1e9)
    while lock_step.now < until:
        lock_step.advance(Advance(lock_step.now, until), answers.append)
    assert lock_step.now == answers[-1].now_ns == until
    return answers


@pytest.mark.parametrize("tick", [1, 1000, 10**6])
def test_time_goes_on_from_a_jump_of_the_simulation(tick: int) -> None:
    physics = Physics(tick=7)
    lock_step, _ = begin(physics)
    advance(lock_step, 5.0)
    assert physics.stepped == 1500
    physics.tick = tick
    lock_step.advance(Advance(lock_step.now, lock_step.now), lambda _: None)
    assert physics.stepped == 1500
    advance(lock_step, 2.01)
    assert physics.stepped == 2103 and physics.tick == tick + 603
    assert next(lock_step.summary()).startswith("7.010 s of simulated time")


@pytest.mark.parametrize("tick", [None, 1, 5000])
@pytest.mark.parametrize("done", [0, 11])
def test_a_pause_or_a_jump_while_time_runs_ends_no_script(tick: int | None, done: int) -> None:
    physics = Physics()
    lock_step, said = begin(physics)

    def abort(steps: Steps) -> None:
        physics.run(steps, done)
        physics.tick = tick or physics.tick
        steps.set_exception(StepAborted("by somebody"))

    physics.disturb = [abort, abort]
    advance(lock_step, 3.0)
    assert physics.stepped == 900 and not said


def test_time_that_others_let_run_is_paused_and_is_none_of_the_script() -> None:
    physics = Physics()
    lock_step, said = begin(physics)
    advance(lock_step, 1.0)

    def resume(_: Steps) -> None:
        physics.paused = False
        physics.tick += 50

    physics.disturb = [resume]
    advance(lock_step, 1.0)
    assert physics.paused and physics.stepped == 600
    text = "lock-step: others let time run, which only the script may: it is paused again"
    assert said == [text]


def test_a_script_waits_while_time_is_held_and_is_told_why_once() -> None:
    physics = Physics()
    lock_step, said = begin(physics)

    def hold(why: str) -> Callable[[Steps], None]:
        return lambda _: setattr(physics, "held", why)

    physics.disturb = [*map(hold, ("loading", "loading", "no world", "")), lambda _: None]
    before = lock_step.now
    answers = advance(lock_step, 0.5)
    assert [answer.now_ns for answer in answers[:3]] == [before] * 3  # so that it may end meanwhile
    assert physics.stepped == 150
    heads = "lock-step: the script waits: "
    assert said == [f"{heads}loading", f"{heads}no world"]


def test_a_simulation_that_has_failed_ends_the_script() -> None:
    physics = Physics()
    lock_step, said = begin(physics)

    def fail(steps: Steps) -> None:
        physics.failed = ZeroDivisionError("in a tick")
        steps.set_exception(StepAborted("the simulation has ended"))

    physics.disturb = [fail]
    with pytest.raises(RuntimeError, match="the simulation has failed: ZeroDivisionError"):
        advance(lock_step, 1.0)
    assert not said


def test_a_simulation_that_was_stopped_ends_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    physics = Physics(held="the simulation has ended")
    lock_step, _ = begin(physics)
    refused: Future[None] = Future()
    refused.set_exception(InvalidState(physics.held))
    monkeypatch.setattr(physics, "pause", lambda: refused)
    with pytest.raises(RuntimeError, match="the simulation has ended"):
        advance(lock_step, 1.0)
