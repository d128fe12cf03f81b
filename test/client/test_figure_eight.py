"""The figure-eight: its path, the record of a flight, and the program that flies it."""

from __future__ import annotations

import numpy as np
import pytest
from command_processes import run_python
from figure_eight_tracks import PAD, flown, without
from geometry_msgs.msg import PoseStamped
from rclpy.serialization import serialize_message
from ros_client import SimulatorProcess, own_domain

from crazyflow_ros.client.figure_eight.flight_path import (
    ALTITUDE,
    MOST_LAG,
    SHORTEST,
    SIZE,
    FigureEightPath,
    FlightPath,
    Glide,
    plan_flight,
)
from crazyflow_ros.client.figure_eight.flight_record import FlightRecord, Track
from crazyflow_ros.client.figure_eight.trajectory_messages import read_pose, read_poses

DOMAIN = own_domain("test_figure_eight")


def differences(
    flight: FlightPath | Glide | FigureEightPath, duration: float
) -> tuple[float, float]:
    """Largest difference of velocity and acceleration from finite differences."""
    step = 1e-3
    times = np.arange(0, duration + step / 2, step)
    motion = flight(times)
    vel = (motion.pos[2:] - motion.pos[:-2]) / (2 * step)
    acc = (motion.vel[2:] - motion.vel[:-2]) / (2 * step)
    return np.abs(vel - motion.vel[1:-1]).max(), np.abs(acc - motion.acc[1:-1]).max()


@pytest.mark.parametrize(
    "segment",
    [Glide(PAD, 2 * PAD, 2.5), FigureEightPath(PAD, SIZE, laps=2, duration=16.0)],
)
def test_segment_has_true_derivatives_and_rests_at_its_ends(
    segment: Glide | FigureEightPath,
) -> None:
    vel, acc = differences(segment, segment.duration)
    assert vel < 1e-5
    assert acc < 1e-3  # its derivative jumps where the phase has reached its rate
    ends = segment(np.array([0.0, segment.duration]))
    assert np.allclose(ends.vel, 0, atol=1e-12)
    assert np.allclose(ends.acc, 0, atol=1e-12)


def test_figure_eight_has_its_size_and_crosses_its_centre() -> None:
    figure = FigureEightPath(PAD, SIZE, laps=2, duration=16.0)
    offset = figure(np.linspace(0, 16, 16001)).pos - PAD
    assert np.allclose(offset.max(axis=0), SIZE, atol=1e-4)
    assert np.allclose(offset.min(axis=0), -SIZE, atol=1e-4)
    middle = figure(np.array([8.0]))
    assert np.allclose(middle.pos, PAD)
    assert np.linalg.norm(middle.vel) > 0.5


@pytest.mark.parametrize("duration", [SHORTEST, 30.0, 31.7, 120.0])
@pytest.mark.parametrize("lag", [0.0, MOST_LAG / 3, MOST_LAG])
def test_flight_is_smooth_moderate_and_as_long_as_asked(duration: float, lag: float) -> None:
    flight = plan_flight(PAD, duration, lag)
    assert flight.duration == pytest.approx(duration)
    vel, acc = differences(flight, duration)
    assert vel < 1e-5
    assert acc < 2e-3  # the third derivative jumps where segments join
    motion = flight(np.linspace(0, duration, 5000))
    assert np.linalg.norm(motion.vel, axis=1).max() < 1.2
    assert np.linalg.norm(motion.acc, axis=1).max() < 2.0


def test_flight_starts_and_ends_on_its_pad() -> None:
    flight = plan_flight(PAD, 30.0)
    start, up, end, later = flight(np.array([-1.0, flight.airborne[0], 30.0, 40.0])).pos
    assert np.array_equal(start, PAD)
    assert np.allclose(up, [*PAD[:2], ALTITUDE])
    assert np.allclose(end, PAD)
    assert np.array_equal(later, end)


def test_drones_on_a_grid_stay_apart() -> None:
    times = np.linspace(0, 30, 3000)
    pads = [np.array([x, y, 0.014]) for x in (0.0, 1.0) for y in (0.0, 1.0)]
    lags = np.linspace(0, MOST_LAG, 4)
    for i, a in enumerate(pads):
        for j, b in enumerate(pads):
            if a is b:
                continue
            pair = plan_flight(a, 30.0, lags[i]), plan_flight(b, 30.0, lags[j])
            distance = np.linalg.norm(pair[0](times).pos - pair[1](times).pos, axis=1)
            assert distance.min() > 0.45


@pytest.mark.parametrize(("duration", "lag"), [(SHORTEST - 1, 0), (np.nan, 0), (30, -0.1), (30, 2)])
def test_impossible_flights_are_refused(duration: float, lag: float) -> None:
    with pytest.raises(ValueError, match="got"):
        plan_flight(PAD, duration, lag)


def test_record_measures_the_error_in_the_air() -> None:
    track = flown(0.015)
    assert track.mean_error == pytest.approx(0.015)
    assert track.max_error == pytest.approx(0.015)
    record = FlightRecord(
        (track, flown(0.01, name="cf1")), simulated=30.5, elapsed=61.0, received=3000
    )
    assert record.factor == 0.5
    assert record.problems() == []
    assert "0.015 m" in record.summary() and "3000 messages received, 0 lost" in record.summary()


@pytest.mark.parametrize(
    ("track", "message"),
    [
        (flown(0.021), "mean tracking error 0.021 m, has to be below 0.02 m"),
        (flown(end=20.0), "above where it started"),
        (flown(end=2.0), "no pose was received"),
    ],
)
def test_record_tells_what_went_wrong(track: Track, message: str) -> None:
    problems = FlightRecord((flown(name="cf7"), track), 30.0, 30.0, 1).problems()
    assert any(message in problem for problem in problems)
    assert all(problem.startswith("cf0") for problem in problems)


@pytest.mark.parametrize(
    ("lost", "gaps"),
    [([], 0), ([500, 501, 502, 900], 2), ([*range(1400, 1500)], 0), ([0, 700, 701, 1499], 1)],
)
def test_lost_poses_are_counted(lost: list[int], gaps: int) -> None:
    track = without(flown(), lost)
    assert track.lost == len(lost)
    assert len(track.gaps) == gaps
    record = FlightRecord((track, flown(name="cf1")), 30.0, 30.0, 3000 - len(lost))
    assert f", {len(lost)} lost" in record.summary()


def test_hardly_any_pose_has_no_gaps() -> None:
    for kept in (0, 1):
        track = without(flown(), [*range(kept, 1500)])
        assert track.gaps.size == 0 and track.lost == 0
        assert "no pose was received" in track.problems()[0]


def test_serialised_poses_are_read_together() -> None:
    messages = []
    for sec, nanosec, x in ((7, 999_999_999, 1.5), (0, 0, -2.5), (2**31 - 1, 20_000_000, 1e-300)):
        message = PoseStamped()
        message.header.frame_id = "map"
        message.header.stamp.sec, message.header.stamp.nanosec = sec, nanosec
        message.pose.position.x, message.pose.position.z = x, 3 * x
        messages.append(serialize_message(message))
    times_ns, pos = read_poses(messages)
    for message, time_ns, place in zip(messages, times_ns.tolist(), pos):
        expected_ns, expected = read_pose(message)
        assert time_ns == expected_ns and np.array_equal(place, expected)


def test_client_flies_the_drones_of_a_simulator_in_a_namespace() -> None:
    fleet = ["-r", "__ns:=/fleet"]
    parameters = ["drones:=[alpha,beta]", "start_paused:=true", "real_time_factor:=0.0"]
    with SimulatorProcess(DOMAIN, [*fleet, *parameters]):
        words = ["-m", "crazyflow_ros.client.figure_eight", "--ros-args", *fleet]
        flight = run_python(DOMAIN, *words, "-p", "duration:=20", timeout=180)
    assert flight.returncode == 0, flight.stderr
    assert "beta" in flight.stdout
