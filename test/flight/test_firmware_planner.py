"""Our high-level commander beside that of the Crazyflie's firmware, over random flights.

The firmware is built from a checkout, as a program to compare with: firmware/harness.c runs its own
task. It is built with double precision as well, so that its rounding does not hide differences.

What differs on purpose is left out: what is too fast for the drone, commands near the floor or to a
drone on it, and landing in motion, which begins with a jolt in the firmware.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from firmware_source import build, sources

from crazyflow_ros.flight import (
    FlightState,
    FlyTrajectory,
    GoTo,
    Land,
    PolynomialTrajectory,
    Setpoint,
    Spiral,
    Stop,
    Takeoff,
)
from crazyflow_ros.flight.commander import Commander
from crazyflow_ros.flight.course import Reference
from crazyflow_ros.flight.courses import state_commands
from crazyflow_ros.flight.envelope import Envelope
from crazyflow_ros.flight.plan import Rules, StartState

COMMANDS = 8  # of a flight
SAMPLES = 8  # of what follows a command
STANDING, LOW = 0.02, 0.3  # m, heights of drones on the floor and near it
UNBOUNDED = Rules(
    Envelope(*[1e9] * 9), STANDING, 0.3, np.zeros(3), 0.5, 0.5, True, exact_durations=True
)
QUANTITIES = ("position", "velocity", "acceleration", "yaw", "body rates")
# Bounds of the upright thrust and the tilt, within which body rates are well defined.
WEAKEST, STEEPEST = 4.0, np.radians(60.0)  # m/s^2
SHORTEST = 0.1  # s
NEAR = 20e-6  # s from the end of a piece, where rounding decides which one is in force

FOLDERS = (
    *("config", "modules/interface", "modules/interface/estimator", "hal/interface"),
    *("drivers/interface", "utils/interface", "utils/interface/lighthouse"),
)
SOURCES = ("planner", "pptraj", "pptraj_compressed", "crtp_commander_high_level")
ABSENT = ("FreeRTOS.h", "task.h", "semphr.h", "arm_math.h", "autoconf.h")  # host.h replaces them


class Firmware:
    """The firmware's commander, built with floats of single or double precision."""

    def __init__(self, source: Path, folder: Path, *, wide: bool) -> None:
        # Packets have to hold numbers of double precision.
        packets = (source / "modules/interface/crtp.h").read_text()
        (folder / "crtp.h").write_text(re.sub(r"(MAX_DATA_SIZE) 30\b", r"\1 62", packets))
        here = Path(__file__).with_name("firmware")
        self._library = build(
            source,
            here,
            folder,
            folders=FOLDERS,
            files=[f"modules/src/{name}" for name in SOURCES],
            absent=ABSENT,
            flags=["-DWIDE"] * wide,
        )
        self._now = ctypes.c_uint64.in_dll(self._library, "now_us")
        self._real = "d" if wide else "f"

    def command(self, form: str, *values: object) -> None:
        """Send a packet; its numbers `r` have the precision of the firmware."""
        packet = struct.pack("<" + form.replace("r", self._real), *values)
        assert self._library.command(packet, ctypes.c_size_t(len(packet))) == 0

    def upload(self, data: bytes, compressed: bool, n_pieces: int) -> None:
        """Store a trajectory as number 0."""
        write = self._library.crtpCommanderHighLevelWriteTrajectory
        assert write(ctypes.c_uint32(0), ctypes.c_uint32(len(data)), data)
        self.command("BBBBIB", 6, 0, 1, compressed, 0, n_pieces)

    def pieces(self, durations: np.ndarray, coefficients: np.ndarray) -> bytes:
        """The content of the trajectory memory."""
        rows = np.column_stack((coefficients.reshape(len(durations), -1), durations))
        return rows.astype(f"<{self._real}").tobytes()

    def at(self, time_us: int, standing: np.ndarray) -> np.ndarray | None:
        """Position, velocity, acceleration, yaw and body rates (13,); None if the motors stop."""
        self._now.value = time_us
        found = (ctypes.c_double * 13)()
        estimate = (ctypes.c_double * 4)(*standing[:3], np.degrees(standing[3]))
        if not self._library.setpoint(estimate, found):
            return None
        values = np.array(found)
        values[9:] = np.radians(values[9:])
        return values


class Flight:
    """One random flight of both commanders."""

    def __init__(self, firmware: Firmware, seed: int) -> None:
        self._firmware = firmware
        self._rng = np.random.default_rng(seed)
        self._ours = Commander(UNBOUNDED)
        self._now = 1000  # us
        # Where the drone is whenever its motors are off.
        self._standing = np.array([*self._near((0, 0), 1.0), STANDING, self._between(-3, 3)])
        firmware.command("BB", 3, 0)  # stops what the flight before has left
        self.deviations = np.zeros(len(QUANTITIES))

    def run(self) -> None:
        """Give commands at random times, and compare what follows each."""
        for _ in range(COMMANDS):
            self._compare()
            self._possible()()
            self._follow()

    def _possible(self) -> Callable[[], None]:
        """Choose a command that both follow in the same way."""
        order = self._ours.order
        if order is None:
            return self._take_off
        assert order.plan.course is not None
        if self._ours.state is FlightState.landing:
            return self._go_to if self._yes() else self._stop
        odds: dict[Callable[[], None], float] = {
            self._go_to: 6,
            self._spiral: 3,
            self._trajectory: 3,
            self._compressed: 3,
            self._stop: 0.3,
            self._land: 4,
        }
        if self._seconds < order.plan.course.end or self._reference[2] < 2 * LOW:
            del odds[self._land]
        shares = np.array(list(odds.values()))
        return list(odds)[self._rng.choice(len(odds), p=shares / shares.sum())]

    @property
    def _seconds(self) -> float:
        """Time since the setpoint in force began [s]."""
        assert self._ours.order is not None
        return self._ours.order.seconds(self._now * 1000)

    @property
    def _reference(self) -> np.ndarray:
        reference = None
        if self._ours.order is not None:
            reference = self._ours.order.reference(self._now * 1000)
        return self._standing if reference is None else reference.pos

    def _between(self, low: float, high: float) -> float:
        """A random number that single precision holds."""
        return float(np.float32(self._rng.uniform(low, high)))

    def _near(self, place: object, distance: float) -> np.ndarray:
        values = np.asarray(place, float)
        away = self._rng.uniform(-distance, distance, values.shape)
        return (values + away).astype(np.float32).astype(float)

    def _yes(self) -> bool:
        return bool(self._rng.random() < 0.5)

    def _give(self, setpoint: Setpoint, form: str, *values: object) -> None:
        """Send a command to both."""
        present = Reference.at_rest(self._standing[:3], self._standing[3])
        self._ours.command(setpoint, StartState(self._now * 1000, present, self._ours.state))
        self._firmware.command(form, *values)

    def _vertical(self, kind: type[Takeoff | Land], number: int, height: float, way: float) -> None:
        """Take off or land: to a height within a time, or at a velocity, maybe by a way."""
        yaw, keeps, relative = self._between(-3, 3), self._yes(), self._yes()
        heading = float("nan") if keeps else yaw
        if self._yes():
            duration = self._between(0.5, 3)
            setpoint = kind(height, duration, heading)
            self._give(setpoint, "BBrr?r", number, 0, height, yaw, keeps, duration)
            return
        change = way if relative else abs(height - self._reference[2])
        speed = self._between(0.5, 1) * min(1.0, np.float32(change) / SHORTEST)
        speed, height = float(np.float32(speed)), way if relative else height
        setpoint = kind(height, yaw=heading, velocity=speed, relative=relative)
        self._give(setpoint, "BBr?r?r", number + 2, 0, height, relative, yaw, keeps, speed)

    def _take_off(self) -> None:
        self._vertical(Takeoff, 7, self._between(0.4, 2), self._between(0.4, 2))

    def _land(self) -> None:
        highest = self._reference[2] - 2 * STANDING
        self._vertical(Land, 8, self._between(2 * STANDING, LOW), self._between(0.1, highest))

    def _stop(self) -> None:
        self._give(Stop(), "BB", 3, 0)

    def _go_to(self) -> None:
        relative, linear = self._yes(), self._yes()
        goal = np.append(self._near((0, 0), 2.0), self._between(0.4, 3.0))
        if relative:
            goal = (goal - self._reference[:3]).astype(np.float32).astype(float)
        yaw, duration = self._between(-3, 3), self._between(0.5, 4)
        setpoint = GoTo(goal, yaw, duration, relative, linear=linear)
        self._give(setpoint, "BBBBrrrrr", 12, 0, relative, linear, *goal, yaw, duration)

    def _spiral(self) -> None:
        angle, duration = self._between(-6.2, 6.2), self._between(1, 5)
        radii = self._between(0, 1), self._between(0, 1)
        ascent = float(np.float32(self._between(0.4, 3.0) - self._reference[2]))
        sideways, clockwise = self._yes(), self._yes()
        setpoint = Spiral(angle, *radii, ascent, duration, sideways, clockwise)
        values = (sideways, clockwise, angle, *radii, ascent, duration)
        self._give(setpoint, "BBBBrrrrr", 11, 0, *values)

    def _trajectory(self) -> None:
        n = int(self._rng.integers(1, 7))
        durations = self._near(np.full(n, 1.2), 0.8)
        coefficients = self._near(np.zeros((n, 4, 8)), 1.0) / 4.0 ** np.arange(8)
        backwards, relative, turned = self._yes(), self._yes(), self._yes()
        coefficients[:, :3, 0] /= 8
        if not relative:
            begin = coefficients[0, :, 0]
            if backwards:
                begin = coefficients[-1] @ durations[-1] ** np.arange(8)
            coefficients[:, :3, 0] += (self._reference - begin)[:3]
            coefficients = coefficients.astype(np.float32).astype(float)
        self._firmware.upload(self._firmware.pieces(durations, coefficients), False, n)
        trajectory = PolynomialTrajectory(durations, coefficients)
        scale = self._between(0.7, 2)
        setpoint = FlyTrajectory(trajectory, scale, backwards, relative, relative_yaw=turned)
        self._give(setpoint, "BBBBBBr", 13, 0, relative, turned, backwards, 0, scale)

    def _compressed(self) -> None:
        relative, at = self._yes(), np.round(self._near(np.zeros(4), 500)).astype(int)
        if not relative:
            at[:3] = np.round(self._reference[:3] * 1000)
        data = at.astype("<i2").tobytes()
        for _ in range(n := int(self._rng.integers(1, 7))):
            kinds = self._rng.integers(0, 4, 4)
            header = int(kinds @ (1, 4, 16, 64))
            data += struct.pack("<BH", header, int(self._rng.integers(400, 2000)))
            for axis, kind in enumerate(kinds):
                points = at[axis] + self._rng.integers(-400, 400, (0, 1, 3, 7)[kind])
                data += points.astype("<i2").tobytes()
                at[axis] = points[-1] if kind else at[axis]
        data += bytes(3)
        self._firmware.upload(data, True, n)
        setpoint = FlyTrajectory(PolynomialTrajectory.of_compressed(data), relative=relative)
        self._give(setpoint, "BBBBBBr", 13, 0, relative, False, False, 0, 1.0)

    def _follow(self) -> None:
        """Compare until the next command."""
        order, begin = self._ours.order, self._now
        course = None if order is None else order.plan.course
        lasts = 0.5 if course is None else course.end * self._rng.uniform(0.1, 1.4)
        for time in np.sort(self._rng.uniform(0.001, max(lasts, 0.05), SAMPLES)):
            if course is None or np.abs(course.times - time).min() > NEAR:
                self._now = begin + round(time * 1e6)
                self._compare()

    def _motion(self) -> StartState:
        """Where a drone is that follows its reference; asked only at the end of a landing."""
        order = self._ours.order
        reference = None if order is None else order.reference(self._now * 1000)
        assert reference is not None and self._ours.state is FlightState.landing
        return StartState(self._now * 1000, reference)

    def _compare(self) -> None:
        """Record the largest deviations at the present time; both have to fly, or neither."""
        self._ours.update(self._now * 1000, self._motion)
        theirs = self._firmware.at(self._now, self._standing)
        order = self._ours.order
        assert (theirs is None) == (order is None)
        if theirs is None or order is None:
            return
        assert order.plan.course is not None
        motion = order.plan.course.along(np.array([self._seconds]))
        rates = state_commands(motion, np.zeros(3))[0, 13:]
        ours = np.concatenate((motion[:3, 0, :3].ravel(), motion[0, 0, 3:], rates))
        away = np.abs(ours - theirs)
        away[9] = abs((ours[9] - theirs[9] + np.pi) % (2 * np.pi) - np.pi)
        thrust = ours[6:9] + np.array([0, 0, 9.81])
        if thrust[2] < max(WEAKEST, np.cos(STEEPEST) * np.linalg.norm(thrust)):
            away[10:] = 0
        worst = np.maximum.reduceat(away, (0, 3, 6, 9, 10))
        self.deviations = np.maximum(self.deviations, worst)


@pytest.fixture(scope="module")
def source() -> Path:
    """The firmware's sources."""
    return sources()


@pytest.mark.parametrize(
    ("wide", "flights", "tolerance"),
    [
        pytest.param(True, 1000, 1e-5, id="in double precision"),
        # Its rounding alone, of polynomials of degree 7 and of time.
        pytest.param(False, 100, 0.01, id="as it flies"),
    ],
)
def test_random_flights_are_those_of_the_firmware(
    source: Path, tmp_path: Path, wide: bool, flights: int, tolerance: float
) -> None:
    firmware = Firmware(source, tmp_path, wide=wide)
    largest = np.zeros(len(QUANTITIES))
    for seed in range(flights):
        flight = Flight(firmware, seed)
        flight.run()
        assert flight.deviations.max() < tolerance, f"flight {seed}: {flight.deviations}"
        largest = np.maximum(largest, flight.deviations)
    print(", ".join(f"{name} {value:.1e}" for name, value in zip(QUANTITIES, largest)))
