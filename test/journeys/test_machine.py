"""What walks consist of: steps in files, the shortest walk that fails, lines of the log."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from journeys.lives import Life
from journeys.log import unexpected
from journeys.model import Model
from journeys.shrink import Shrinking
from journeys.step import KINDS, Broken, Step, load, save
from journeys.time_steps import Advance, Begin, Pass

LINE = "[{}] [1795875479.149601000] [crazyflow]: {}"


def test_each_kind_of_step_comes_back_from_a_file(tmp_path: Path) -> None:
    rng, model = random.Random(0), Model(Life(n_drones=3).drones(), objects={"hut"})
    model.drones["cf1"].airborne = model.drones["cf2"].streamed = True
    steps = [step for kind in KINDS.values() for _ in range(9) if (step := kind.draw(model, rng))]
    assert {type(step) for step in steps} == set(KINDS.values())
    save(tmp_path / "some.walk", steps)
    assert load(tmp_path / "some.walk") == steps


def test_the_shortest_walk_has_what_fails_and_nothing_else() -> None:
    """A failure that needs three steps in order, in the last of two lives, with one sensor."""
    rng = random.Random(1)
    guilty = [Pass(float(i)) for i in (100, 101, 102)]
    life = Life(variant="pid", world="room", records=True, sensors=("depth", "imu"))
    walk: list[Step] = [Begin(Life()), *[Advance(i, "own") for i in range(20)], Begin(life)]
    others: list[Step] = [Advance(100 + i, "own") for i in range(50)]
    for place, step in zip(sorted(rng.sample(range(50), 3)), guilty):
        others.insert(place, step)
    tries = 0

    def attempt(steps: Sequence[Step]) -> Broken | None:
        nonlocal tries
        tries += 1
        begins = [step for step in steps if isinstance(step, Begin)]
        is_there = [step for step in steps if step in guilty] == guilty
        if is_there and "depth" in begins[-1].life.sensors:
            return Broken("the camera is silent")
        return Broken("something else") if rng.random() < 0.1 else None

    shortest = Shrinking("the camera is silent", attempt, 1.0, lambda _: None).shortest(
        [*walk, *others]
    )
    assert shortest == [Begin(Life(n_drones=1, sensors=("depth",))), *guilty]
    assert tries < 400


def test_a_race_is_tried_again_and_a_walk_that_never_fails_again_stays() -> None:
    walk = [Begin(Life(n_drones=1)), *[Pass(float(i)) for i in range(4)]]
    outcomes = iter([None, Broken("died")])
    found = Shrinking("died", lambda _: next(outcomes, None), 1.0, lambda _: None).shortest(walk)
    assert found == walk[:3]
    assert Shrinking("died", lambda _: None, 1.0).shortest(walk) == walk


def test_lines_of_the_log_need_a_reason() -> None:
    assert not unexpected(LINE.format("INFO", "ready: 1 x cf2x_L250"))
    assert not unexpected(LINE.format("WARN", "compiling for wind with gusts, time goes on"))
    assert unexpected(LINE.format("WARN", "cf0: crashed"))
    assert not unexpected(LINE.format("WARN", "cf0: crashed"), lambda text: text == "cf0: crashed")
    repeated = LINE.format("WARN", "cf0: crashed (3 more in the last 5 s)")
    assert not unexpected(repeated, lambda text: text == "cf0: crashed")
    assert unexpected(LINE.format("ERROR", "cf0: crashed"), lambda _: True)
    assert unexpected("Traceback (most recent call last):")
