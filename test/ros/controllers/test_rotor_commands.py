"""Commands of controllers from topics: which of them the physics thread gets."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from crazyflow_ros.ros.controllers.rotor_commands import TopicSource
from crazyflow_ros.runtime import Level

SPEEDS = np.full(4, 1500.0)
NOTHING: Any = None


def source_of(on_loss: str = "hold", rate: int = 100) -> TopicSource:
    logger = logging.getLogger(__name__)
    return TopicSource(["cf0"], freq=500, rate=rate, on_loss=on_loss, logger=logger)


def told(source: TopicSource) -> tuple[float, list[float]]:
    """Level and numbers that the source has for the physics thread."""
    command, level = np.full((1, 4), np.nan), np.full(1, np.nan)
    assert source.collect(NOTHING, command, level, lambda: False)
    return float(level[0]), command[0].tolist()


def show(source: TopicSource, time_ns: int, epoch: int) -> None:
    snapshot: Any = SimpleNamespace(time_ns=time_ns, epoch=epoch)
    source.show(snapshot, NOTHING)


def test_command_that_answers_a_state_before_the_reset_is_dropped() -> None:
    source = source_of()
    source.put(0, SPEEDS, 500)
    assert told(source) == (Level.rotor_velocity, SPEEDS.tolist())
    show(source, 600, epoch=1)
    for stamp, level in ((600, Level.held), (601, Level.rotor_velocity)):
        source.put(0, SPEEDS, stamp)
        assert told(source)[0] == level
    show(source, 700, epoch=2)
    assert told(source)[0] == Level.held
    source.put(0, SPEEDS, 0)  # not known
    assert told(source)[0] == Level.rotor_velocity


def test_commands_are_taken_from_the_time_of_an_earlier_checkpoint_on() -> None:
    source = source_of()

    def level_after(seconds: float) -> float:
        time_ns = round(seconds * 1e9)
        show(source, time_ns, epoch=0)
        source.put(0, SPEEDS, time_ns)
        return told(source)[0]

    assert level_after(100.0) == Level.rotor_velocity
    source.forget(np.array([0]))  # as when a checkpoint is loaded
    assert level_after(10.0) == Level.held  # it reacts to the state before
    assert level_after(10.01) == Level.rotor_velocity


@pytest.mark.parametrize(
    ("on_loss", "level", "value"),
    [("hold", Level.held, 1500.0), ("keep", Level.rotor_velocity, 1500.0), ("stop", 1, 0.0)],
)
def test_loss(on_loss: str, level: int, value: float) -> None:
    source = source_of(on_loss)
    source.lose(0)
    assert told(source)[0] == Level.held  # never commanded
    source.put(0, SPEEDS, 0)
    assert source.status().attached == ("cf0",)
    source.put(0, np.full(4, np.nan), 0)
    assert told(source) == (level, [value] * 4)
    assert (source.status().attached, source.status().refused) == ((), 0)


def test_rate_has_to_divide_freq() -> None:
    with pytest.raises(ValueError, match=r"ros2_control\.rate must divide .* got 300"):
        source_of(rate=300)
