"""Log variables of the firmware, computed from the state of a drone.

Units and signs are those of the firmware: degrees, pitch with the sign that it has had since the
first Crazyflie (negative is forward), accelerations in units of g.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import degrees, inf, isfinite

import numpy as np

from crazyflow_ros.checks.compressed_quaternions import compressed
from crazyflow_ros.crazyflie import beacon_variables
from crazyflow_ros.crazyflie.deck_readings import N_RANGES
from crazyflow_ros.crazyflie.telemetry import Telemetry
from crazyflow_ros.drones.deck_optics import STD_OF_FEATURES, STD_OF_SHUTTER
from crazyflow_ros.estimation.instrument_readings import NOTHING
from crazyflow_ros.flight import AttitudeThrust
from crazyflow_ros.scene.frames import (
    body_to_world,
    heading_to_world,
    quat_from_rpy,
    world_to_body,
    yaw,
)

GRAVITY = 9.81  # m/s^2
PWM = 65535.0
"""Full thrust."""

_OUT_OF_RANGE = [32767] * 5 + [round(1e3 * NOTHING)]  # mm, of range sensors that see nothing
_SEA_LEVEL = 1013.25  # hPa
_ROOM = 25.0  # degrees Celsius
_MOTION, _STILL = 0xB0, 0x30  # status of a flow sensor
_LOW = 1 / 6  # of the range of its voltage, below which the firmware calls a battery low: 3.2 V
_UP = np.array([0.0, 0.0, 1.0])
_SIGNS = (1, -1, 1)  # of the firmware's roll, pitch and yaw
_RANGES = ("front", "back", "left", "right", "up", "zrange")


@dataclass(frozen=True)
class Variable:
    """A log variable."""

    ctype: str
    value: Callable[[Telemetry], float]


def _vector(
    group: str, names: str, value: Callable[[Telemetry], np.ndarray], ctype: str = "float"
) -> dict[str, Variable]:
    """Return the components of a vector as variables."""

    def component(i: int) -> Callable[[Telemetry], float]:
        return lambda t: float(value(t)[i])

    return {
        f"{group}.{name}": Variable(ctype, component(i)) for i, name in enumerate(names.split())
    }


def _one(
    name: str, value: Callable[[Telemetry], float], ctype: str = "float"
) -> dict[str, Variable]:
    return {name: Variable(ctype, value)}


def _nothing(group: str, names: str, ctype: str = "float") -> dict[str, Variable]:
    """Return variables of parts that these drones lack; like the firmware's, they are zero."""
    return {f"{group}.{name}": Variable(ctype, lambda _: 0.0) for name in names.split()}


def _color_deck(group: str) -> dict[str, Variable]:
    """Return the variables of a deck with lights, which stays cool."""
    return {
        **_one(f"{group}.deckTemp", lambda _: _ROOM, "uint8"),
        **_nothing(group, "throttlePct", "uint8"),
        **_nothing(group, "ledCurR ledCurG ledCurB ledCurW", "uint16"),
    }


def _in_each(names: str, value: Callable[[Telemetry], np.ndarray]) -> dict[str, Variable]:
    """Return variables that the PID and Mellinger controllers both have."""
    return _vector("controller", names, value) | _vector("ctrlMel", names, value)


def _attitude(t: Telemetry) -> np.ndarray:
    """Roll, pitch, yaw [degrees], with the firmware's sign of the pitch."""
    return np.degrees(t.rpy) * _SIGNS


def _output(t: Telemetry) -> np.ndarray:
    """Return the attitude controller's thrust, roll, pitch and yaw for the mixer [PWM]."""
    return t.desired[7:11] / t.units * (1, 1, -1, -1)


def _attitude_setpoint(t: Telemetry) -> np.ndarray:
    """Return roll, pitch [degrees] and thrust [PWM] of a setpoint that has them, or zeros."""
    if t.setpoint is not None:
        roll, pitch, _ = np.degrees(t.setpoint.rpy).tolist()
        return np.array([roll, -pitch, t.setpoint.thrust / t.units[0]])
    setpoint = None if t.flight.order is None else t.flight.order.setpoint
    if not isinstance(setpoint, AttitudeThrust):
        return np.zeros(3)
    roll = 0.0 if setpoint.roll_is_rate else degrees(setpoint.roll)
    pitch = 0.0 if setpoint.pitch_is_rate else degrees(setpoint.pitch)
    return np.array([roll, -pitch, setpoint.thrust / t.units[0]])


def _aligned(value: Callable[[Telemetry], np.ndarray]) -> Callable[[Telemetry], np.ndarray]:
    """Return a function whose vector (3,) is in the heading frame, as in the firmware's PID."""
    return lambda t: heading_to_world(-yaw(t.quat), value(t))


def _decks(t: Telemetry) -> np.ndarray:
    """Readings of the decks (9,); those of decks that see nothing, without a request."""
    return np.array([*[inf] * N_RANGES, 0.0, 0.0, 0.0]) if t.decks is None else t.decks


def _flow(t: Telemetry) -> np.ndarray:
    """Counts x, y of the flow sensor in 10 ms (2,), along its axes."""
    x, y = _decks(t)[N_RANGES : N_RANGES + 2]
    return -np.array([y, x])


def _squal(t: Telemetry) -> float:
    return float(_decks(t)[-1])


def _flow_error(t: Telemetry) -> float:
    """Error of the flow sensor, of which its shutter tells [counts]."""
    least, slope = STD_OF_FEATURES
    return least + slope * _squal(t)


def _shutter(t: Telemetry) -> float:
    """Exposure of the flow sensor [cycles of its clock]."""
    least, slope = STD_OF_SHUTTER
    return (_flow_error(t) - least) / slope


def _rates(t: Telemetry) -> np.ndarray:
    """Body rates [mrad/s] (3,), with the firmware's sign of the pitch."""
    return t.ang_vel * (1e3, -1e3, 1e3)


def _thrusts(t: Telemetry) -> np.ndarray:
    """Thrusts of the motors as PWM (4,)."""
    return np.clip(t.thrusts, 0.0, 1.0) * PWM


def _target(i: int) -> Callable[[Telemetry], np.ndarray]:
    """Position, velocity or acceleration (3,) of the setpoint; zero without one."""

    def value(t: Telemetry) -> np.ndarray:
        if t.setpoint is not None:
            return np.asarray((t.setpoint.pos, t.setpoint.vel, t.setpoint.acc)[i])
        return np.zeros(3) if t.reference is None else t.reference[i][:3]

    return value


def _yaw_rate(t: Telemetry) -> float:
    """Yaw rate of the setpoint [degrees/s]; zero without one."""
    if t.setpoint is not None:
        return degrees(np.asarray(t.setpoint.rates)[2])
    return degrees(t.reference.vel[3]) if t.reference else 0.0


def _distances(t: Telemetry) -> np.ndarray:
    """Readings of the range sensors [mm] (6,)."""
    ranges = _decks(t)[:N_RANGES]
    return np.where(np.isfinite(ranges), ranges * 1e3, _OUT_OF_RANGE)


def _height(t: Telemetry) -> float:
    return float(t.pos[2])


def _pressure(t: Telemetry) -> float:
    """Pressure [hPa] of the standard atmosphere (ISO 2533) near sea level."""
    return _SEA_LEVEL * (1 - _height(t) / 44_331.5) ** 5.25588


def _charge(t: Telemetry) -> float:
    """Charge of the battery [percent], from its voltage in steps of ten as in the firmware."""
    share = (t.voltage - t.cell.empty) / (t.cell.full - t.cell.empty)
    return float(np.clip(share * 10, 0, 10) // 1 * 10)


def _battery_state(t: Telemetry) -> float:
    """0 on battery, 3 low."""
    return 3.0 if t.voltage < t.cell.empty + _LOW * (t.cell.full - t.cell.empty) else 0.0


def _millimetres(value: Callable[[Telemetry], np.ndarray]) -> Callable[[Telemetry], np.ndarray]:
    return lambda t: value(t) * 1e3


_XYZ, _V, _A = "x y z", "vx vy vz", "ax ay az"

VARIABLES: dict[str, Variable] = {
    **_vector("stateEstimate", _XYZ, lambda t: t.pos),
    **_vector("stateEstimate", _V, lambda t: t.vel),
    **_vector("stateEstimate", _A, lambda t: t.acc / GRAVITY),
    **_vector("stateEstimate", "roll pitch yaw", _attitude),
    **_vector("stateEstimate", "qx qy qz qw", lambda t: t.quat),
    **_vector("stateEstimateZ", _XYZ, _millimetres(lambda t: t.pos), "int16"),
    **_vector("stateEstimateZ", _V, _millimetres(lambda t: t.vel), "int16"),
    **_vector("stateEstimateZ", _A, _millimetres(lambda t: t.acc + GRAVITY * _UP), "int16"),
    **_one("stateEstimateZ.quat", lambda t: compressed(t.quat), "uint32"),
    **_vector("stateEstimateZ", "rateRoll ratePitch rateYaw", _rates, "int16"),
    **_vector("stabilizer", "roll pitch yaw", _attitude),
    **_one("stabilizer.thrust", lambda t: float(_thrusts(t).mean())),
    **_vector("ctrltarget", _XYZ, _target(0)),
    **_vector("ctrltarget", _V, _target(1)),
    **_vector("ctrltarget", _A, _target(2)),
    **_one("ctrltarget.yaw", _yaw_rate),
    **_vector("ctrltarget", "roll pitch thrust", _attitude_setpoint),
    **_vector("ctrltargetZ", _XYZ, _millimetres(_target(0)), "int16"),
    **_vector("ctrltargetZ", _V, _millimetres(_target(1)), "int16"),
    **_vector("ctrltargetZ", _A, _millimetres(_target(2)), "int16"),
    **_vector("controller", "roll pitch yaw", lambda t: np.degrees(t.desired[:3]) * _SIGNS),
    **_vector(
        "controller", "rollRate pitchRate yawRate", lambda t: np.degrees(t.desired[4:7]) * _SIGNS
    ),
    **_one("controller.actuatorThrust", lambda t: float(t.desired[3] / t.units[0])),
    **_one("controller.ctr_yaw", lambda t: float(_output(t)[3]), "int16"),
    **_in_each("cmd_thrust cmd_roll cmd_pitch cmd_yaw", _output),
    **_in_each("r_roll r_pitch r_yaw", lambda t: t.ang_vel * _SIGNS),
    **_in_each("accelz", lambda t: t.specific_force[2:] / GRAVITY),
    **_vector("ctrlMel", "zdx zdy zdz", lambda t: body_to_world(quat_from_rpy(t.desired[:3]), _UP)),
    **_vector("ctrlMel", "i_err_x i_err_y i_err_z", lambda t: t.desired[11:]),
    **_vector("posCtl", "targetX targetY targetZ", _aligned(_target(0))),
    **_vector("posCtl", "targetVX targetVY targetVZ", _aligned(_target(1))),
    **_vector("posCtl", "bodyX bodyY", _aligned(lambda t: t.pos)),
    **_vector("posCtl", "bodyVX bodyVY", _aligned(lambda t: t.vel)),
    **_vector("gyro", _XYZ, lambda t: np.degrees(t.ang_vel)),
    **_vector("acc", _XYZ, lambda t: t.specific_force / GRAVITY),
    **_vector("mag", _XYZ, lambda _: np.zeros(3)),  # drones of this kind have no magnetometer
    **_one("baro.asl", _height),
    **_one("baro.temp", lambda _: _ROOM),
    **_one("baro.pressure", _pressure),
    **_vector("motor", "m1 m2 m3 m4", _thrusts, "uint16"),
    **_vector("motor", "m1req m2req m3req m4req", _thrusts, "int32"),
    **_vector("motor", "m1_rpm m2_rpm m3_rpm m4_rpm", lambda t: t.rpm, "uint16"),
    **_vector("rpm", "m1 m2 m3 m4", lambda t: t.rpm, "uint16"),
    **_one("pm.vbat", lambda t: t.voltage),
    **_one("pm.vbatMV", lambda t: t.voltage * 1e3, "uint16"),
    **_one("pm.state", _battery_state, "int8"),
    **_one("pm.batteryLevel", _charge, "uint8"),
    **_nothing("pm", "extVbat extCurr chargeCurrent"),
    **_nothing("pm", "extVbatMV", "uint16"),
    **_one("pm.temp", lambda _: _ROOM),
    **_vector("motion", "deltaX deltaY", _flow, "int16"),
    **_one("motion.motion", lambda t: _MOTION if _flow(t).any() else _STILL, "uint8"),
    **_one("motion.squal", _squal, "uint8"),
    **_one("motion.shutter", _shutter, "uint16"),
    **_one("motion.std", lambda t: _flow_error(t) if t.flow_std is None else t.flow_std),
    **_nothing("motion", "outlierCount", "uint8"),
    **_vector("range", " ".join(_RANGES), _distances, "uint16"),
    **_one("sys.canfly", lambda t: t.info >> 3 & 1, "uint8"),
    **_one("sys.isFlying", lambda t: t.info >> 4 & 1, "uint8"),
    **_one("sys.isTumbled", lambda t: t.info >> 5 & 1, "uint8"),
    **_one("sys.testLogParam", lambda t: t.test_value, "int8"),
    **_one("supervisor.info", lambda t: t.info, "uint16"),
    **_one("supervisor.accNorm", lambda t: float(np.linalg.norm(t.specific_force)) / GRAVITY),
    **_vector("kalman", "stateX stateY stateZ", lambda t: t.pos),
    **_vector("kalman", "statePX statePY statePZ", lambda t: world_to_body(t.quat, t.vel)),
    **_vector(
        "kalman", "varX varY varZ varPX varPY varPZ varD0 varD1 varD2", lambda t: t.variances
    ),
    **_nothing("kalman", "stateD0 stateD1 stateD2"),  # as after each update of the firmware's
    **_vector("kalman", "q0 q1 q2 q3", lambda t: np.roll(t.quat, 1)),
    **_vector("ext_pos", "X Y Z", lambda t: t.external.pos),
    **_vector("locSrv", _XYZ, lambda t: t.external.pos),
    **_vector("locSrv", "qx qy qz qw", lambda t: t.external.quat),
    **_one("locSrvZ.tick", lambda t: t.external.time_ms % 65536, "uint16"),
    **_one("radio.rssi", lambda t: t.rssi, "uint8"),
    **_one("radio.isConnected", lambda _: 1.0, "uint8"),
    **_one("radio.numRxUc", lambda t: t.received % 65536, "uint16"),
    **_nothing("radio", "numRxBc", "uint16"),
    **_nothing("health", "motorPass batteryPass", "uint8"),  # tests for real motors
    **_nothing("health", "batterySag"),
    **_nothing("health", "motorTestCount", "uint16"),
    **_color_deck("colorLedBot"),
    **_color_deck("colorLedTop"),
    **{name: Variable(*own) for name, own in beacon_variables.variables().items()},
    **_one("memTst.errCntW", lambda t: t.write_errors, "uint32"),
}
"""The log variables by full name, in the order of their numbers."""

RANGES = tuple(name for name in VARIABLES if name.startswith(("range.", "motion.")))
"""Variables that need `Telemetry.decks`."""

_INTEGERS = {
    name: (np.iinfo(name).min, np.iinfo(name).max)
    for name in ("uint8", "uint16", "uint32", "int8", "int16", "int32")
}


def as_ctype(value: float, ctype: str) -> float | int:
    """Return a number in the range of a type; integers are cut off towards zero, as in C."""
    if ctype == "float":
        return float(value)
    low, high = _INTEGERS[ctype]
    return min(max(int(value), low), high) if isfinite(value) else 0
