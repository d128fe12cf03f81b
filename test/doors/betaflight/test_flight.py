"""The real Betaflight flies: it arms, takes off, follows the sticks and lands."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import physics_helpers
import pytest
from betaflight_process import MISSING, BetaflightProcess, Radio, own_ports, program

from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.betaflight import Betaflight
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.scene.frames import rpy

pytestmark = pytest.mark.skipif(program() is None, reason=MISSING)
until = partial(physics_helpers.until, timeout=60.0)
HOVER = np.sqrt(2.28 * 9.81 / (4 * 12.13))  # output, for thrust is quadratic


class Pilot:
    """Holds a height with the throttle."""

    def __init__(self, physics: PhysicsThread) -> None:
        self._physics, self.height = physics, None

    height: float | None

    def throttle(self) -> float:
        if self.height is None:
            return 0.0
        now = self._physics.snapshot
        error, speed = self.height - now.pos[0, 2], now.vel[0, 2]
        return float(np.clip(HOVER + 0.2 * error - 0.25 * speed, 0.05, 0.95))


@pytest.fixture
def physics(caplog: pytest.LogCaptureFixture) -> Iterator[PhysicsThread]:
    caplog.set_level(logging.INFO)
    config = SimulationConfig.of(RealisticOptions(drone_model="hb_x500"))
    context = DoorContext.of(config, ["cf0"], logging.getLogger("betaflight"))
    with own_ports():
        physics = PhysicsThread(config, ["cf0"], Betaflight().open(context))
        yield physics
        physics.stop()
    assert physics.failed is None
    assert not physics.statistics().failures


def arm(physics: PhysicsThread, radio: Radio) -> None:
    """Move the switch until Betaflight is ready; before, it ignores the switch."""

    def idles() -> bool:
        return bool(physics.snapshot.rotor_vel.min() > 10.0)

    def within(seconds: float) -> bool:
        later = physics.snapshot.time_ns + seconds * 1e9
        until(lambda: idles() or physics.snapshot.time_ns > later, "the time")
        return idles()

    for _ in range(5):
        radio.arm = False
        within(5.0)
        radio.arm = True
        if within(1.0):
            return
    raise AssertionError("Betaflight does not arm")


def test_betaflight_takes_off_follows_the_sticks_and_lands(
    physics: PhysicsThread, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    betaflight, pilot = BetaflightProcess(tmp_path), Pilot(physics)
    radio = Radio(pilot.throttle)

    def angles() -> np.ndarray:
        return np.degrees(rpy(physics.snapshot.quat[0]))

    try:
        betaflight.configure("aux 0 0 0 1700 2100 0 0", "aux 1 1 1 900 2100 0 0")
        physics.start()
        said = lambda: [record.getMessage() for record in caplog.records]  # noqa: E731
        until(lambda: any("Betaflight answers" in text for text in said()), "its answer")
        later = physics.snapshot.time_ns + 2e9  # with sticks before, it never leaves its failsafe
        until(lambda: physics.snapshot.time_ns > later, "its start")
        radio.start()
        arm(physics, radio)
        pilot.height = 2.0
        until(lambda: abs(physics.snapshot.pos[0, 2] - 2.0) < 0.2, "its height")
        radio.roll = 0.4
        until(lambda: angles()[0] > 4.0, "a roll to the right")
        radio.roll = 0.0
        until(lambda: abs(angles()[0]) < 1.5, "a level attitude")
        radio.pitch = 0.4
        until(lambda: angles()[1] > 4.0, "a pitch forward")
        radio.pitch = 0.0
        until(lambda: abs(angles()[1]) < 1.5, "a level attitude")
        before = angles()[2]
        radio.yaw = 0.2
        until(lambda: (before - angles()[2]) % 360 > 20, "a turn to the right")
        radio.yaw = 0.0
        until(lambda: abs(physics.snapshot.ang_vel[0, 2]) < 0.1, "its end")
        assert abs(physics.snapshot.pos[0, 2] - 2.0) < 0.5
        pilot.height = 0.3
        until(lambda: physics.snapshot.pos[0, 2] < 0.5, "its descent")
        pilot.height = -0.5
        until(lambda: physics.snapshot.pos[0, 2] < 0.09, "its landing")
        pilot.height, radio.arm = None, False
        until(lambda: physics.snapshot.rotor_vel.max() < 1.0, "stopped rotors")
        assert np.abs(angles()[:2]).max() < 5.0
    finally:
        if radio.ident is not None:
            radio.end()
        betaflight.end()
    until(lambda: any("has not answered" in text for text in said()), "the message of its end")
