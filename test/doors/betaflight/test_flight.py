"""The real Betaflight flies: it arms, takes off, follows sticks and gamepads, and lands."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import physics_helpers
import pytest
from betaflight_process import MISSING, BetaflightProcess, Radio, own_ports, program
from other_packages import EXAMPLES

from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.betaflight import Betaflight
from crazyflow_ros.doors.betaflight.betaflight_door import BetaflightDoor
from crazyflow_ros.drones import load_drone
from crazyflow_ros.engine.config import RealisticOptions
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.scene.frames import rpy

pytestmark = pytest.mark.skipif(program() is None, reason=MISSING)
until = partial(physics_helpers.until, timeout=60.0)
RACER = EXAMPLES / "15_racer"


class Pilot:
    """Holds a height with the throttle.

    Args:
        physics: The simulation.

    Attributes:
        height: That of the drone [m]; None: no throttle.
    """

    def __init__(self, physics: PhysicsThread) -> None:
        self._physics = physics
        self.height: float | None = None
        figures = load_drone(physics.config.drone_model)
        share = figures["mass"] * -figures["gravity_vec"][2] / (4 * figures["thrust_max"])
        self._hover = np.sqrt(share)  # output, for thrust is quadratic

    def throttle(self) -> float:
        if self.height is None:
            return 0.0
        now = self._physics.snapshot
        error, speed = self.height - now.pos[0, 2], now.vel[0, 2]
        return float(np.clip(self._hover + 0.2 * error - 0.25 * speed, 0.05, 0.95))


class Gamepad(threading.Thread):
    """A gamepad of which somebody moves the sticks.

    Args:
        door: The door that it flies.
        throttle: Returns the throttle, 0 to 1.

    Attributes:
        roll: Right stick to the right, -1 to 1.
        pitch: Right stick forward.
        arm: Whether the drone is to be armed: a button switches that.
    """

    def __init__(self, door: BetaflightDoor, throttle: Callable[[], float]) -> None:
        super().__init__(daemon=True)
        self._door, self._throttle = door, throttle
        self.roll = self.pitch = 0.0
        self.arm = self._on = False
        self._ends = threading.Event()

    def run(self) -> None:
        """Send 50 messages a second, as joy_node at most."""
        while not self._ends.wait(0.02):
            press, self._on = self.arm != self._on, self.arm
            axes = [0.0, self._throttle(), 0.0, -self.roll, self.pitch, 0.0]
            self._door.take_gamepad(axes, [0] * 7 + [int(press)])

    def end(self) -> None:
        """Unplug it."""
        self._ends.set()
        if self.ident is not None:
            self.join()


@contextmanager
def simulation(drone_model: str) -> Iterator[tuple[PhysicsThread, BetaflightDoor]]:
    config = SimulationConfig.of(RealisticOptions(drone_model=drone_model))
    context = DoorContext.of(config, ["cf0"], logging.getLogger("betaflight"))
    with own_ports():
        door = Betaflight().open(context)
        physics = PhysicsThread(config, ["cf0"], door)
        yield physics, door
        physics.stop()
    assert physics.failed is None
    assert not physics.statistics().failures


Simulation = tuple[PhysicsThread, BetaflightDoor]


@pytest.fixture
def hb_x500(caplog: pytest.LogCaptureFixture) -> Iterator[Simulation]:
    caplog.set_level(logging.INFO)
    with simulation("hb_x500") as opened:
        yield opened


def start(physics: PhysicsThread, door: BetaflightDoor, betaflight: BetaflightProcess) -> None:
    """Start the simulation, and Betaflight again if its loop does not run on a busy machine."""
    physics.start()
    for _ in range(5):
        later, answers = physics.snapshot.time_ns + 10e9, door.status().cycles + 500
        until(lambda: door.status().cycles > answers or physics.snapshot.time_ns > later, "time")  # noqa: B023
        if door.status().cycles > answers:
            return
        betaflight.restart()
    raise AssertionError("Betaflight does not answer")


def arm(physics: PhysicsThread, radio: Radio | Gamepad) -> None:
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
    hb_x500: Simulation, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    physics, door = hb_x500
    betaflight, pilot = BetaflightProcess(tmp_path), Pilot(physics)
    radio = Radio(pilot.throttle)

    def angles() -> np.ndarray:
        return np.degrees(rpy(physics.snapshot.quat[0]))

    try:
        betaflight.configure("aux 0 0 0 1700 2100 0 0", "aux 1 1 1 900 2100 0 0")
        start(physics, door, betaflight)  # with sticks before, it never leaves its failsafe
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
    said = lambda: [record.getMessage() for record in caplog.records]  # noqa: E731
    until(lambda: any("has not answered" in text for text in said()), "the message of its end")


def test_a_gamepad_flies_the_racer_and_without_it_the_rotors_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    betaflight = BetaflightProcess(tmp_path)
    try:
        betaflight.configure("aux 0 0 0 1700 2100 0 0", "aux 1 1 1 900 2100 0 0")
        with simulation(str(RACER)) as (physics, door):
            pilot = Pilot(physics)
            gamepad = Gamepad(door, pilot.throttle)
            now = lambda: physics.snapshot  # noqa: E731
            start(physics, door, betaflight)
            gamepad.start()
            arm(physics, gamepad)
            pilot.height = 3.0
            until(lambda: abs(now().pos[0, 2] - 3.0) < 0.3, "its height")
            gamepad.pitch = 0.7
            until(lambda: np.degrees(rpy(now().quat[0]))[1] > 20.0, "a pitch forward")
            until(lambda: now().body_vel[0, 0] > 6.0, "its speed")
            gamepad.pitch = -0.5
            until(lambda: now().body_vel[0, 0] < 1.0, "its end")
            gamepad.pitch, gamepad.roll = 0.0, 0.5
            until(lambda: np.degrees(rpy(now().quat[0]))[0] > 15.0, "a roll to the right")
            gamepad.roll, pilot.height = 0.0, 1.0
            until(lambda: now().pos[0, 2] < 1.3, "its descent")
            gamepad.end()
            until(lambda: now().rotor_vel.max() < 1.0, "stopped rotors")
        said = [record.getMessage() for record in caplog.records]
        assert any("the gamepad is silent" in text for text in said)
    finally:
        betaflight.end()
