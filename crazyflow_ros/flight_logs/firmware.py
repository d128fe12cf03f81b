"""Variables of the Crazyflie's firmware, as quantities of a flight.

Their names and units are those of `LOG_ADD` in the firmware: positions in m, attitudes and rates in
degrees, accelerations in g; compressed ones, with a Z, in mm and mrad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from crazyflow_ros.checks.compressed_quaternions import decompressed
from crazyflow_ros.checks.limits import Limit, vector
from crazyflow_ros.flight_logs.flight_log import PWM_MAX, FlightLog, TimedValues

_GRAVITY = 9.81  # m/s^2, of the accelerometer's unit
_UINT32 = Limit(2**32 - 1, "")


class Table(NamedTuple):
    """Variables that were logged together."""

    time: np.ndarray
    """(n,) s."""
    columns: dict[str, np.ndarray]
    """(n,) each, by the name of the variable, as logged."""


class _Source(NamedTuple):
    """Variables that tell a quantity."""

    names: tuple[str, ...]
    convert: Callable[[np.ndarray], np.ndarray]
    """From (n, k) in the firmware's units."""


def _in(group: str, names: str, unit: float = 1.0) -> _Source:
    return _Source(tuple(f"{group}.{name}" for name in names.split()), lambda values: unit * values)


def _attitude(degrees: np.ndarray) -> np.ndarray:
    """Return quaternions of roll, pitch and yaw; the firmware's pitch has the opposite sign."""
    return Rotation.from_euler("xyz", degrees * (1, -1, 1), degrees=True).as_quat()


def _decompressed(numbers: np.ndarray) -> np.ndarray:
    return decompressed(vector("stateEstimateZ.quat", numbers[:, 0], (len(numbers),), _UINT32))


_XYZ, _V, _A, _Q = "x y z", "vx vy vz", "ax ay az", "qx qy qz qw"
_RPY = "roll pitch yaw"
_MOCAP = _Source((*_in("locSrv", _XYZ).names, *_in("locSrv", _Q).names), lambda values: values)
_POSITION = (_in("stateEstimate", _XYZ), _in("stateEstimateZ", _XYZ, 1e-3))
_ATTITUDE = (
    _in("stateEstimate", _Q),
    _Source(("stateEstimateZ.quat",), _decompressed),
    _in("stateEstimate", _RPY)._replace(convert=_attitude),
    _in("stabilizer", _RPY)._replace(convert=_attitude),
)
_VELOCITY = (_in("stateEstimate", _V), _in("stateEstimateZ", _V, 1e-3))
_GYRO = (
    _in("gyro", _XYZ, np.pi / 180),
    _in("stateEstimateZ", "rateRoll ratePitch rateYaw")._replace(
        convert=lambda values: 1e-3 * values * (1, -1, 1)
    ),
)
_ACCELEROMETER = (_in("acc", _XYZ, _GRAVITY),)
_PWM = (_in("motor", "m1 m2 m3 m4"), _in("pwm", "m1_pwm m2_pwm m3_pwm m4_pwm"))
_ROTOR_VEL = (_in("rpm", "m1 m2 m3 m4"),)
_VOLTAGE = (_in("pm", "vbat"), _in("pm", "vbatMV", 1e-3))
_TARGETS = (("ctrltarget", 1.0), ("ctrltargetZ", 1e-3))  # and their units
_POSITION_OUTPUT = _Source(
    tuple(f"controller.{name}" for name in ("roll", "pitch", "yaw", "cmd_thrust")),
    lambda values: values * np.array([np.pi / 180, -np.pi / 180, np.pi / 180, 1]),
)
_YAW = _in("controller", "yaw", np.pi / 180)
_YAW_RATE = _in("ctrltarget", "yaw", np.pi / 180)


def flight_log(name: str, tables: Sequence[Table], pose: TimedValues | None = None) -> FlightLog:
    """Return the flight of which the firmware's variables were logged.

    Args:
        name: Its name.
        tables: Variables, by what was logged together; all times have the same clock.
        pose: (n, 7) by a motion capture, if there is one beside what the firmware logged.

    Raises:
        ValueError: There is neither a pose by a motion capture nor an estimate, or a value is out
            of its limits.
    """

    def found(*sources: _Source) -> TimedValues | None:
        return _found(tables, sources)

    attitude = _without(found(*_ATTITUDE), _is_unknown)
    estimated = _joined(found(*_POSITION), attitude)
    captured = pose if pose is not None else _without(found(_MOCAP), _is_held)
    pose = estimated if captured is None else captured
    if pose is None:
        raise ValueError(
            "there is no pose: expected locSrv (x to qw), or stateEstimate with position and "
            "attitude"
        )
    return FlightLog(
        name,
        pose=pose,
        pose_is_estimate=captured is None,
        setpoint=_setpoint(tables, pose),
        position_output=_without(found(_POSITION_OUTPUT), lambda output: output[:, 3] <= 0),
        gyro=found(*_GYRO),
        accelerometer=found(*_ACCELEROMETER),
        pwm=_without(found(*_PWM), lambda pwm: pwm.max(axis=1) > PWM_MAX),
        rotor_vel=found(*_ROTOR_VEL),
        voltage=found(*_VOLTAGE),
        estimate=_joined(estimated, found(*_VELOCITY)),
    )


def _found(tables: Sequence[Table], sources: Sequence[_Source]) -> TimedValues | None:
    """Return the samples of the first source all variables of which are in one table."""
    for source in sources:
        for table in tables:
            if table.columns.keys() >= set(source.names):
                values = stacked(table.columns, source.names)
                return TimedValues(table.time, source.convert(values))
    return None


def stacked(columns: dict[str, np.ndarray], names: Iterable[str]) -> np.ndarray:
    """Return columns side by side, (n, k)."""
    return np.stack([columns[name] for name in names], axis=-1)


def _without(
    samples: TimedValues | None, left: Callable[[np.ndarray], np.ndarray]
) -> TimedValues | None:
    """Return the samples without those that are left out."""
    if samples is None or (rows := left(samples.values)).all():
        return None
    return TimedValues(samples.time[~rows], samples.values[~rows])


def _is_unknown(quats: np.ndarray) -> np.ndarray:
    """Return where quaternions (n, 4) are zero, as before the first estimate or pose."""
    return np.linalg.norm(quats, axis=1) < 0.5


def _is_held(poses: np.ndarray) -> np.ndarray:
    """Return where no new pose has arrived, as where they are logged more often."""
    is_same = np.append(False, (np.diff(poses, axis=0) == 0).all(axis=1))
    return is_same | _is_unknown(poses[:, 3:])


def _joined(samples: TimedValues | None, more: TimedValues | None) -> TimedValues | None:
    """Return both side by side, the second one interpolated to the times of the first."""
    if samples is None or more is None:
        return None
    common = samples.between(more.time[0], more.time[-1])
    if common is None:
        return None
    values = more.values
    if values.shape[1] == 4:  # quaternions, which have two signs
        turned = np.where((values[1:] * values[:-1]).sum(axis=1) < 0, -1, 1)
        values = values * np.cumprod(np.append(1, turned))[:, None]
    interpolated = TimedValues(more.time, values).at(common.time)
    return TimedValues(common.time, np.hstack((common.values, interpolated)))


def _setpoint(tables: Sequence[Table], pose: TimedValues) -> TimedValues | None:
    """Return the setpoints from the first position.

    Of the desired yaw, the firmware logs the rate (`ctrltarget.yaw` is
    `setpoint.attitudeRate.yaw`). Where the yaw of the PID (`controller.yaw`) was not logged, the
    rate is integrated from the yaw that the drone has at the first setpoint.
    """
    for group, unit in _TARGETS:
        position = _found(tables, [_in(group, _XYZ, unit)])
        if position is not None and (is_set := (position.values != 0).any(axis=1)).any():
            break
    else:
        return None
    time = position.time[is_set]
    values = np.zeros((len(time), 16))
    values[:, :3] = position.values[is_set]
    for columns, source in (
        (slice(3, 6), _in(group, _V, unit)),
        (slice(6, 9), _in(group, _A, unit)),
        (slice(15, 16), _YAW_RATE),
    ):
        if (more := _found(tables, [source])) is not None:
            values[:, columns] = more.held_at(time)
    if (yaws := _found(tables, [_YAW])) is not None:
        yaw = yaws.held_at(time)
    else:
        turned = np.cumsum(np.append(0, np.diff(time) * values[:-1, 15]))
        first = Rotation.from_quat(pose.held_at(time[:1])[:, 3:]).as_euler("xyz")[0, 2]
        yaw = (first + turned)[:, None]
    values[:, 9:13] = Rotation.from_euler("z", yaw).as_quat()
    return TimedValues(time, values)
