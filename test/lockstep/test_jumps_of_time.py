"""A script in simulated time, while others reset, restore, step, pause and resume the simulation."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from crazyflow_ros.lockstep.in_script.simulated_time.channel import Advance, Reached
from crazyflow_ros.lockstep.script import LockStep
from crazyflow_ros.runtime import Steps

FREQ = 300  # Hz, of which no tick is a whole number of ns


@dataclass
class Physics:
    """A simulation that only counts ticks."""

    tick: int = 1
    stepped: int = 0
    failed: BaseException | None = None
    freq: int = FREQ

    @property
    def snapshot(self) -> SimpleNamespace:
        return SimpleNamespace(tick=self.tick, time_ns=self.tick * 10**9 // FREQ)

    def step(self, n_ticks: int) -> Steps:
        steps = Steps(n_ticks, None, lambda _: None)
        self._run(steps, n_ticks)
        steps.set_result(self.snapshot)  # type: ignore[arg-type]
        return steps

    def _run(self, steps: Steps, n_ticks: int) -> None:
        self.tick += n_ticks
        self.stepped += n_ticks
        steps.ticks_done += n_ticks


def advance(lock_step: LockStep, seconds: float) -> Reached:
    """Let the script wait."""
    answers: list[Reached] = []
    until = lock_step.now + round(seconds * 1e9)
    while lock_step.now < until:
        lock_step.advance(Advance(lock_step.now, until), answers.append)
    assert lock_step.now == answers[-1].now_ns == until
    return answers[-1]


@pytest.mark.parametrize("tick", [1, 1000, 10**6])
def test_time_goes_on_from_a_jump_of_the_simulation(tick: int) -> None:
    physics = Physics(tick=7)
    lock_step = LockStep(physics)  # type: ignore[arg-type]
    advance(lock_step, 5.0)
    assert physics.stepped == 1500
    physics.tick = tick
    lock_step.advance(Advance(lock_step.now, lock_step.now), lambda _: None)
    assert physics.stepped == 1500
    advance(lock_step, 2.01)
    assert physics.stepped == 2103 and physics.tick == tick + 603
    assert next(lock_step.summary()).startswith("7.010 s of simulated time")
