"""Flights come back from each format as they were written, within what it can hold."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import flight_writers as writers
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.flight_logs import FlightLog, TimedValues, read_flight_log

QUANTITIES = {"pose", "setpoint", "gyro", "accelerometer", "pwm", "voltage", "estimate"}
TOLERANCES = {
    "pose": 1e-6, "setpoint": 2e-6, "gyro": 1e-5, "accelerometer": 1e-5, "pwm": 0.51,
    "voltage": 0.51e-3, "estimate": 2e-6, "rotor_vel": 0.51,
}  # fmt: skip
"""Single precision, or half of an integer's step."""


@pytest.fixture(scope="module")
def truth() -> FlightLog:
    return writers.flight()


def check(read: FlightLog, truth: FlightLog, names: set[str], **tolerances: float) -> None:
    """Compare quantities at the times at which they were logged."""
    assert read.quantities.keys() == names
    for name, samples in read.quantities.items():
        expected = getattr(truth, name).at(samples.time)
        tolerance = tolerances.get(name, TOLERANCES[name])
        np.testing.assert_allclose(samples.values, expected, 0, tolerance, err_msg=name)


@pytest.mark.parametrize("clock", [85 / 84, 1.0])
def test_an_sd_card(truth: FlightLog, tmp_path: Path, clock: float) -> None:
    """The log tells its clock, also where the loop is 0.1 % off."""
    written = writers.write_sd_card(truth, tmp_path / "log00", clock * 1.001)
    read = read_flight_log(written)
    stretched = {
        name: TimedValues(part.time / 1.001, part.values) for name, part in truth.quantities.items()
    }
    expected = replace(truth, **stretched)
    check(read, expected, QUANTITIES | {"rotor_vel"}, pose=3e-5)
    assert read.clock == clock
    assert read.name == "log00" and not read.pose_is_estimate and read.controller is None
    assert len(read.pose.time) == len(truth.pose.time)
    half = read_flight_log(written, clock=0.5).gyro
    assert half is not None
    assert half.time[-1] == pytest.approx(0.5 * truth.gyro.time[-1] / clock / 1.001)


def test_the_first_version_has_milliseconds(truth: FlightLog, tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_bytes(writers.sd_card(writers.sd_events(truth, 1.0), version=1))
    check(read_flight_log(path), truth, QUANTITIES | {"rotor_vel"}, pose=3e-5)


def test_compressed_variables(truth: FlightLog, tmp_path: Path) -> None:
    """Millimetres, milliradians, and nine bits for each component of a quaternion."""
    time, path = truth.gyro.time, tmp_path / "small"
    event = writers.PERIODIC, "fixedFrequency", time, writers.compressed(truth, time)
    path.write_bytes(writers.sd_card([event]))
    read = read_flight_log(path)
    assert read.pose_is_estimate
    assert read.estimate is not None and truth.estimate is not None
    assert read.setpoint is not None and truth.setpoint is not None
    quats = (Rotation.from_quat(log.estimate.values[:, 3:7]) for log in (read, truth))
    assert 0 < (next(quats).inv() * next(quats)).magnitude().max() < 0.004
    np.testing.assert_array_equal(read.pose.values, read.estimate.values[:, :7])
    for part in (slice(0, 3), slice(7, 10)):
        error = read.estimate.values[:, part] - truth.estimate.values[:, part]
        np.testing.assert_allclose(error, 0, atol=1.001e-3)
    others = replace(read, pose=truth.pose, estimate=None, setpoint=None)
    check(others, truth, {"pose", "gyro"}, gyro=1.001e-3)
    both = (log.setpoint.values[:, :9] for log in (read, truth))
    np.testing.assert_allclose(*both, atol=1.001e-3)


def test_repeated_poses_arrive_once(truth: FlightLog, tmp_path: Path) -> None:
    """Poses that are logged with the other variables count when they change, and not before."""
    time, path = truth.gyro.time, tmp_path / "fixed"
    held = truth.pose.values[np.arange(len(time)) // 5 * 5]
    held[:20] = 0  # nothing has arrived
    names = [f"locSrv.{name}" for name in ("x", "y", "z", "qx", "qy", "qz", "qw")]
    columns = {name: ("f", column) for name, column in zip(names, held.T)}
    event = writers.PERIODIC, "fixedFrequency", time, columns | writers.variables(truth, time)
    path.write_bytes(writers.sd_card([event]))
    read = read_flight_log(path)
    np.testing.assert_allclose(read.pose.time, time[20::5], atol=1e-6)
    np.testing.assert_allclose(read.pose.values, truth.pose.values[20::5], atol=1e-6)


def test_log_blocks_of_a_folder(truth: FlightLog, tmp_path: Path) -> None:
    """Position, velocity and attitude are in blocks of their own."""
    read = read_flight_log(writers.write_radio(truth, tmp_path / "20261127T00-00-00"))
    check(replace(read, setpoint=truth.setpoint), truth, QUANTITIES, pose=0.011, estimate=1e-5)
    assert read.pose_is_estimate and read.estimate is not None and read.setpoint is not None
    np.testing.assert_array_equal(read.pose.values, read.estimate.values[:, :7])
    assert truth.setpoint is not None
    expected = truth.setpoint.at(read.setpoint.time)
    np.testing.assert_allclose(read.setpoint.values[:, :3], expected[:, :3], atol=1e-9)
    np.testing.assert_allclose(read.setpoint.values[:, 9:13], expected[:, 9:13], atol=1e-9)


def test_one_log_block(truth: FlightLog, tmp_path: Path) -> None:
    """The time of packets starts again after 2^24 ms."""
    n = 200
    columns = {name: np.linspace(i, i + 1, n) for i, name in enumerate(writers.POSE_BY_RADIO)}
    times = {"timestamp": (np.arange(n) * 10 + (1 << 24) - 500) % (1 << 24)}
    read = read_flight_log(writers.write_csv(tmp_path / "a.csv", times | columns), clock=1.01)
    np.testing.assert_allclose(read.pose.time, 0.0101 * np.arange(n))
    assert read.estimate is None and read.pose_is_estimate
    roll, pitch, yaw = Rotation.from_quat(read.pose.values[0, 3:]).as_euler("xyz", degrees=True)
    np.testing.assert_allclose((roll, pitch, yaw), (3, -4, 5))


def test_the_yaw_is_integrated_where_only_its_rate_was_logged(
    truth: FlightLog, tmp_path: Path
) -> None:
    time, path = truth.gyro.time, tmp_path / "log"
    columns = writers.variables(truth, time)
    del columns["controller.yaw"]
    path.write_bytes(writers.sd_card([(writers.PERIODIC, "fixedFrequency", time, columns)]))
    read = read_flight_log(path).setpoint
    assert read is not None and truth.setpoint is not None
    np.testing.assert_allclose(read.values, truth.setpoint.values, atol=1e-5)


@pytest.mark.parametrize("compress", [False, True])
def test_nanobench(truth: FlightLog, tmp_path: Path, compress: bool) -> None:
    path = writers.write_nanobench(truth, tmp_path / "helix_mell.csv")
    if compress:
        content = lzma.compress(path.read_bytes())
        path = tmp_path / "helix_mell.csv.xz"
        path.write_bytes(content)
    read = read_flight_log(path)
    assert read.name == "helix_mell" and read.controller == "mellinger"
    check(read, truth, QUANTITIES)


@pytest.mark.parametrize("thrust", [0.0, 40_000.0])
def test_an_idle_pid_tells_that_mellinger_flew(
    truth: FlightLog, tmp_path: Path, thrust: float
) -> None:
    """Names of NanoBench's flights do not, in 22 cases."""
    path = writers.write_nanobench(truth, tmp_path / "trefoil.csv")
    names, *lines = path.read_text().splitlines()
    missing = [n for n in ("roll", "pitch", "yaw") if f"pid_controller_{n}" not in names]
    more = [*(f"pid_controller_{n}" for n in missing), "pid_controller_cmd_thrust"]
    rows = [f"{line},{'0.1,' * len(missing)}{thrust}" for line in lines]
    path.write_text("\n".join([",".join([names, *more]), *rows]))
    read = read_flight_log(path)
    assert read.controller == ("pid" if thrust else "mellinger")
    assert (read.position_output is not None) == bool(thrust)
    if read.position_output is not None:
        assert (read.position_output.values[:, 3] == thrust).all()
        assert read.position_output.values[0, 1] == pytest.approx(-np.radians(0.1))


def test_the_straight_end_of_nanobench_is_cut(truth: FlightLog, tmp_path: Path) -> None:
    """Where Vicon went on, the table continues what the drone had logged in a straight line."""
    path = writers.write_nanobench(truth, tmp_path / "ramp.csv")
    names, *lines = path.read_text().splitlines()
    table = np.array([line.split(",") for line in lines], float)
    end, n = 200, len(table)
    assert n == 300
    onboard = slice(8, None)  # without t and the pose
    steps = np.arange(1, n - end + 1)[:, None]
    table[end:, onboard] = (
        table[end - 1, onboard] + steps * (table[end - 1] - table[end - 2])[onboard]
    )
    np.savetxt(path, table, delimiter=",", header=names, comments="", fmt="%.12g")
    read = read_flight_log(path)
    assert len(read.pose.time) == n
    for name, samples in read.quantities.items():
        assert len(samples.time) == (n if name == "pose" else end), name


def write_recording(log: FlightLog, path: Path) -> Path:
    pytest.importorskip("mcap.writer", reason="the extra record is not installed")
    return writers.write_mcap(path, writers.entries(log))


@pytest.mark.parametrize("write", [writers.write_sd_card, writers.write_nanobench, write_recording])
def test_noise_and_delay_stay_what_they_are(
    write: Callable[[FlightLog, Path], Path], truth: FlightLog, tmp_path: Path
) -> None:
    delay, noise = 0.02, 0.003
    late = writers.measured(truth, np.random.default_rng(0), delay, noise)
    pose = read_flight_log(write(late, tmp_path / "log.csv")).pose
    if write is writers.write_nanobench:  # whose times begin with Vicon's
        delay = 0
    inside = pose.time > delay + 0.001
    errors = (pose.values[:, :3] - truth.pose.at(pose.time - delay)[:, :3])[inside]
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(noise, rel=0.1)


@pytest.mark.parametrize(
    ("poses", "compression"),
    [("odom", "ZSTD"), ("pose", "LZ4"), ("tf", "NONE"), ("poses", "ZSTD")],
)
def test_recordings(truth: FlightLog, tmp_path: Path, poses: str, compression: str) -> None:
    mcap = pytest.importorskip("mcap.writer", reason="the extra record is not installed")
    messages = writers.entries(truth.between(0, 0.2), poses=poses)
    path = writers.write_mcap(
        tmp_path / "a.mcap", messages, compression=getattr(mcap.CompressionType, compression)
    )
    names = {"pose", "gyro", "accelerometer", "rotor_vel", "voltage"}
    check(read_flight_log(path), truth, names, voltage=1e-6)
    with pytest.raises(ValueError, match=r"no messages of poses, cf1/odom, .* with poses of cf1"):
        read_flight_log(path, "cf1")


def test_recorded_commands(truth: FlightLog, tmp_path: Path) -> None:
    """Numbers of `command` mean what the parameter `control` says."""
    pytest.importorskip("mcap.writer", reason="the extra record is not installed")
    part = truth.between(0, 0.2)
    setpoint, attitude = part.setpoint, part.attitude_command
    assert setpoint is not None and attitude is not None

    def read(values: np.ndarray, control: str | None) -> FlightLog:
        kind, rows = "std_msgs/Float64MultiArray", zip(setpoint.time.tolist(), values.tolist())
        commands = [(time, "/cf0/command", kind, {"data": row}) for time, row in rows]
        parameters = control and json.dumps({"control": control, "controller": "pid"})
        messages = writers.entries(part) + commands
        return read_flight_log(writers.write_mcap(tmp_path / "a.mcap", messages, parameters))

    for control in (None, "attitude"):
        found = read(attitude.values, control).attitude_command
        assert found is not None
        np.testing.assert_array_equal(found.values, attitude.values)
    others = read(attitude.values, "body_rate")
    assert others.attitude_command is None and others.setpoint is None
    assert others.controller == "pid"
    yaw = 0.1 + 0.4 * setpoint.time[:, None]
    short = np.hstack((setpoint.values[:, :9], yaw, setpoint.values[:, 13:]))
    for values in (setpoint.values, short):
        read_again = read(values, "state").setpoint
        assert read_again is not None
        np.testing.assert_allclose(read_again.values, setpoint.values, atol=1e-12)


def test_streamed_setpoints(truth: FlightLog, tmp_path: Path) -> None:
    pytest.importorskip("mcap.writer", reason="the extra record is not installed")
    part = truth.between(0, 0.2)
    assert part.setpoint is not None
    messages: list[writers.Entry] = []
    for time, row in zip(part.setpoint.time.tolist(), part.setpoint.values):
        content: dict[str, Any] = {
            "pose": writers.pose(row[[0, 1, 2, 9, 10, 11, 12]]),
            "twist": {"linear": writers.xyz(row[3:6]), "angular": writers.xyz(row[13:])},
            "acc": writers.xyz(row[6:9]),
        }
        messages.append((time, "/cf0/cmd_full_state", "crazyflie_interfaces/FullState", content))
    place = {"x": 1.0, "y": 2.0, "z": 3.0, "yaw": 90.0}
    messages.append((0.3, "/cf0/cmd_position", "crazyflie_interfaces/Position", place))
    path = writers.write_mcap(tmp_path / "a.mcap", writers.entries(part) + messages)
    read = read_flight_log(path).setpoint
    assert read is not None
    np.testing.assert_allclose(read.values[:-1], part.setpoint.values, atol=1e-12)
    np.testing.assert_allclose(
        read.values[-1], [1, 2, 3, *6 * [0], 0, 0, 0.5**0.5, 0.5**0.5, 0, 0, 0], atol=1e-7
    )
