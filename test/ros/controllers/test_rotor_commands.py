"""Commands of controllers from topics: which of them take effect."""

import logging
from types import SimpleNamespace
from typing import Any

import numpy as np

from crazyflow_ros.ros.controllers.rotor_commands import TopicSource
from crazyflow_ros.runtime import Level

SPEEDS = np.full(4, 1500.0)


def test_commands_are_taken_from_the_time_of_an_earlier_checkpoint_on() -> None:
    source = TopicSource(["cf0"], freq=500, rate=100, on_loss="hold", logger=logging.getLogger())
    nothing: Any = None

    def level_after(seconds: float) -> float:
        time_ns = round(seconds * 1e9)
        snapshot: Any = SimpleNamespace(time_ns=time_ns, epoch=0)
        source.show(snapshot, nothing)
        source.put(0, SPEEDS, time_ns)
        level = np.zeros(1)
        source.collect(snapshot, np.zeros((1, 4)), level, lambda: False)
        return float(level[0])

    assert level_after(100.0) == Level.rotor_velocity
    source.forget(np.array([0]))  # as when a checkpoint is loaded
    assert level_after(10.0) == Level.held  # it reacts to the state before
    assert level_after(10.01) == Level.rotor_velocity
