"""The filter on logged sensors: against an exact flight, and against real ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from real_flights import MISSING, flights_folder
from scipy.spatial.transform import Rotation

from crazyflow_ros.flight_logs import FlightLog, TimedValues, read_flight_log
from crazyflow_ros.reality import estimates
from crazyflow_ros.reality.estimates import TRUSTS, Trust, estimate_errors

G = 9.81
RATE = 500.0
END = 8.0  # s
RADIUS, OMEGA = 0.5, 2.0  # m, rad/s


@pytest.fixture(scope="module")
def circle() -> FlightLog:
    """A flight in a circle without drag, with readings and poses that are exact.

    The nose points along x, and the thrust towards the centre, which the drone is not turned to.
    """
    time = np.arange(0, END, 1 / RATE)
    phase = OMEGA * time
    zero, one = np.zeros_like(time), np.ones_like(time)
    pos = np.stack([RADIUS * np.cos(phase), RADIUS * np.sin(phase), one], axis=1)
    vel = RADIUS * OMEGA * np.stack([-np.sin(phase), np.cos(phase), zero], axis=1)
    force = np.stack([*(-(OMEGA**2) * pos[:, :2].T), G * one], axis=1)
    size = np.linalg.norm(force, axis=1)
    up = force / size[:, None]
    left = np.cross(up, [1.0, 0, 0])
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    attitude = Rotation.from_matrix(np.stack([np.cross(left, up), left, up], axis=2))
    rates = (attitude[:-1].inv() * attitude[1:]).as_rotvec() * RATE
    quat = attitude.as_quat()
    poses = slice(0, None, 10)
    return FlightLog(
        "circle",
        pose=TimedValues(time[poses], np.hstack([pos, quat])[poses]),
        gyro=TimedValues(time, np.vstack([rates[:1], rates])),
        accelerometer=TimedValues(time, np.stack([zero, zero, size], axis=1)),
        pwm=TimedValues(time, np.full((len(time), 4), 30_000.0)),
        estimate=TimedValues(time, np.hstack([pos, quat, vel])),
    )


def test_exact_readings_give_the_true_state(circle: FlightLog) -> None:
    errors = estimate_errors(circle)
    assert errors.position < 0.004 and errors.tilt < 0.3 and errors.yaw < 0.3
    assert errors.onboard_position < 1e-3  # the truth is compared with itself


def test_an_estimate_beside_ours_is_found(circle: FlightLog) -> None:
    assert circle.estimate is not None
    off = circle.estimate.values + np.r_[0, 0, 0.05, [0] * 7]
    errors = estimate_errors(replace(circle, estimate=TimedValues(circle.estimate.time, off)))
    assert errors.position == pytest.approx(0.05, abs=0.005)
    assert errors.onboard_position == pytest.approx(0.05, abs=1e-3)


def test_the_drone_is_where_trusted_poses_say(circle: FlightLog) -> None:
    """An error of poses, 4 cm and 10 degrees of yaw, is taken over as far as they are trusted."""
    values = circle.pose.values.copy()
    values[:, 0] += 0.04
    turned = Rotation.from_euler("z", 10, degrees=True) * Rotation.from_quat(values[:, 3:])
    values[:, 3:] = turned.as_quat()
    log = replace(circle, pose=TimedValues(circle.pose.time, values))
    off = {}
    for name, trust in (
        ("both", TRUSTS["crazyswarm2"]),
        ("position", Trust(1e-3, estimates.IGNORED)),
    ):
        found = estimates.replayed_estimate(log, trust)
        end = found.values[-1], circle.estimate.at(found.time[-1:])[0]  # type: ignore[union-attr]
        yaw = [Rotation.from_quat(v[3:7]).as_euler("ZYX", degrees=True)[0] for v in end]
        off[name] = end[0][0] - end[1][0], yaw[0] - yaw[1]
    assert off["both"][0] == pytest.approx(0.04, abs=0.01)
    assert off["position"][0] == pytest.approx(0.04, abs=0.01)
    assert off["both"][1] > 3 > abs(off["position"][1])


def test_what_cannot_be_judged_is_refused(circle: FlightLog) -> None:
    for log, lacks in (
        (replace(circle, pose_is_estimate=True), "poses"),
        (replace(circle, accelerometer=None), "accelerometer"),
        (circle.between(0, 0.5), "1 s"),
    ):
        with pytest.raises(ValueError, match=f"circle: .*{lacks}"):
            estimate_errors(log)


@pytest.mark.skipif(flights_folder() is None, reason=MISSING)
def test_ours_estimates_what_the_drone_did_where_poses_arrived() -> None:
    """In the one slow flight of which the radio lost few poses."""
    folder = flights_folder()
    assert folder is not None
    log = read_flight_log(folder / "nanobench" / "B6_linear_ramp_rep1.csv.xz")
    errors = estimate_errors(log)
    assert errors.position < 0.003 and errors.tilt < 0.6 and errors.yaw < 0.5
