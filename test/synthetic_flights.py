"""Flights of drones with known, drawn figures, as a truth that identification should find again.

`Sim` flies all drones at once, under a controller that knows the nominal drone only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import flight_writers as writers
import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones import load_drone
from crazyflow_ros.flight_logs import FlightLog, TimedValues
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.functional import state_control

DRONE = "cf2x_T350"
"""The known drone; it has thrust to spare for drones that are 30 % weaker."""
FEW = 4
"""Drones, for tests that all compile the same."""
FREQ = 500  # Hz
_SPREAD = 0.3
_MOMENT, _OFFSET, _LAG = 6e-4, 1.5e-3, 0.05  # N m/(m/s), m, s
_POSE_RATE = 100  # Hz
_POSITION, _ANGLE = 0.5e-3, 3e-3  # m, rad
_GYRO, _RPM, _VOLTS = 0.03, 60.0, 0.01  # rad/s, RPM, V


def truths(drones: int, seed: int) -> dict[str, np.ndarray]:
    """Figures of drones, by the names of a fit, (drones, k)."""
    rng, known = np.random.default_rng(seed), load_drone(DRONE)

    def drawn(*nominal: float) -> np.ndarray:
        return np.array(nominal) * (1 + _SPREAD * rng.uniform(-1, 1, (drones, len(nominal))))

    drag = -np.diag(known["drag_matrix"])
    return {
        "thrust": drawn(1.0),
        "J": drawn(*np.diag(known["J"])),
        "drag_xy": drawn(drag[0]),
        "drag_z": drawn(drag[2]),
        "rotor_moment": drawn(_MOMENT, _MOMENT),
        "thrust_offset": _OFFSET * rng.uniform(-1, 1, (drones, 3)) * (1, 1, 0.1),
        "motor_lag": drawn(_LAG),
    }


def fly(
    truth: dict[str, np.ndarray], controller: str, seconds: float, seed: int
) -> list[FlightLog]:
    """Return what happened in flights to random places, one for each drone, without noise."""
    drones, ticks = len(truth["thrust"]), round(seconds * FREQ)
    sim = Sim(
        n_worlds=drones,
        drone=DRONE,
        control="state",
        integrator="rk4",
        controller=controller,
        power_distribution="capped",
        state_freq=FREQ if controller == "mellinger" else 100,  # as in the firmware
        scene="floor",
    )
    params: Any = sim.data.params
    shaped = {name: jnp.asarray(values[:, None]) for name, values in truth.items()}
    drag = jnp.concatenate([shaped["drag_xy"]] * 2 + [shaped["drag_z"]], axis=-1)
    rate = 1 / shaped["motor_lag"]
    params = params.replace(
        rpm2thrust=shaped["thrust"][..., None] * params.rpm2thrust,
        rpm2torque=shaped["thrust"][..., None] * params.rpm2torque,
        J=jnp.eye(3) * shaped["J"][..., None],
        drag_matrix=-jnp.eye(3) * drag[..., None],
        rotor_moment=shaped["rotor_moment"],
        thrust_offset=shaped["thrust_offset"],
        rotor_dyn_coef=jnp.concatenate([rate, 0 * rate] * 2, axis=-1)[..., None, :],
    )
    states = sim.data.states
    states = states.replace(pos=states.pos.at[..., 2].set(5.0))
    commands = jnp.asarray(_places(drones, seconds, seed, _REACH[controller]))
    pipeline = sim.step_pipeline

    def tick(data: Any, command: Any) -> tuple[Any, Any]:
        data = state_control(data, command[:, None])
        for stage in pipeline:
            data = stage(data)
        now = data.states
        return data, (now.pos, now.quat, now.ang_vel, now.rotor_vel, data.controls.actuators)

    @jax.jit
    def flown(data: Any, commands: Any) -> Any:
        def period(data: Any, command: Any) -> tuple[Any, Any]:
            return jax.lax.scan(lambda d, _: tick(d, command), data, None, _PERIOD)

        return jax.lax.scan(period, data, commands)[1]

    rows = flown(sim.data.replace(params=params, states=states), commands)
    arrays = [np.asarray(x, float)[:, :, :, 0].reshape(ticks, drones, -1) for x in rows]
    return [_log(i, *(array[:, i] for array in arrays)) for i in range(drones)]


_PERIOD = 5  # ticks
_REACH = {"pid": 0.7, "mellinger": 0.4}  # m, of the places; Mellinger goes there faster


def _places(drones: int, seconds: float, seed: int, reach: float) -> np.ndarray:
    """Return commands (n, drones, 16), one for each period, that move every 0.6 to 1.5 s."""
    far = np.array([reach, reach, 0.7 * reach, 0.7])
    rng, n = np.random.default_rng([seed, 1]), round(seconds * FREQ) // _PERIOD
    commands = np.zeros((n, drones, 16))
    for drone in range(drones):
        goals, i = np.zeros((n, 4)), 0
        while i < n:
            until = i + int(rng.integers(60, 150))
            goals[i:until] = (0, 0, 5, 0) + far * rng.uniform(-1, 1, 4)
            i = until
        move = np.hanning(_MOVE + 2)
        padded = np.vstack([np.tile([0, 0, 5.0, 0], (_MOVE, 1)), goals, goals[-1:]])
        smooth = np.stack([np.convolve(x, move / move.sum(), "valid") for x in padded.T], axis=1)
        commands[:, drone, :3] = smooth[:n, :3]
        commands[:, drone, 9:13] = Rotation.from_euler("z", smooth[:n, 3:]).as_quat()
    return commands


_MOVE = 40  # periods, of a move


def _log(
    drone: int,
    pos: np.ndarray,
    quat: np.ndarray,
    ang_vel: np.ndarray,
    rotor_vel: np.ndarray,
    command: np.ndarray,
) -> FlightLog:
    """Return a log of everything at every tick."""
    known, time = load_drone(DRONE), np.arange(len(pos)) / FREQ
    command = np.vstack([command[1:], command[-1:]])  # that under which the next tick begins
    volts = (4.0 - 0.4 * time / time[-1])[:, None]
    needed, grid = polyval(command, known["rpm2thrust"]), np.linspace(0, 5, 5001)
    at_motor = np.interp(needed, polyval(grid, known["voltage2thrust"]), grid)
    assert (at_motor < volts).all(), "the battery must give what the firmware asks for"
    parts = {
        "pose": np.hstack((pos, quat)),
        "gyro": ang_vel,
        "accelerometer": 0 * pos,
        "pwm": np.round(65535 * at_motor / volts),
        "rotor_vel": rotor_vel,
        "voltage": volts,
        "estimate": np.hstack((pos, quat, 0 * pos)),
        "setpoint": np.hstack((pos, np.zeros((len(pos), 9)), quat[:, :1], 0 * pos)),
    }
    parts["setpoint"][:, 12] = 1
    return FlightLog(f"drone{drone}", **{k: TimedValues(time, v) for k, v in parts.items()})


def measured(log: FlightLog, seed: int, delay: float = 0.0) -> FlightLog:
    """Return the log with noise, and poses that arrive late [s]."""
    rng, every = np.random.default_rng([seed, 2]), FREQ // _POSE_RATE
    pose = log.pose.values[::every].copy()
    pose[:, :3] += _POSITION * rng.normal(size=(len(pose), 3))
    turns = Rotation.from_rotvec(_ANGLE * rng.normal(size=(len(pose), 3)))
    pose[:, 3:] = (Rotation.from_quat(pose[:, 3:]) * turns).as_quat()
    poses = TimedValues(log.pose.time[::every] + delay, pose)
    changed: dict[str, Any] = {"pose": poses}
    for name, spread in (("gyro", _GYRO), ("rotor_vel", _RPM), ("voltage", _VOLTS)):
        exact = getattr(log, name)
        noise = spread * rng.normal(size=exact.values.shape)
        changed[name] = TimedValues(exact.time, exact.values + noise)
    changed["estimate"] = TimedValues(poses.time, np.hstack((pose, 0 * pose[:, :3])))
    return replace(log, **changed)


def without_speeds(log: FlightLog) -> FlightLog:
    """Return the log of a drone that measures no rotor speeds."""
    return replace(log, rotor_vel=None)


def _at_radio(log: FlightLog) -> FlightLog:
    """What a radio's log has of the drone: the clock of the log is 1.2 % from that of the loop.

    So the log does not always see the same phase of loops that run at its own rate.
    """
    time = np.arange(log.gyro.time[0], log.gyro.time[-1], 1.012 / 100)
    pwm = TimedValues(time, log.pwm.held_at(time))
    return replace(log, pwm=pwm, gyro=TimedValues(time, log.gyro.at(time)), rotor_vel=None)


def _write_sd_card(log: FlightLog, path: Path) -> Path:
    late = TimedValues(log.pose.time + _DELAY, log.pose.values)
    return writers.write_sd_card(replace(log, pose=late), path)


def _write_nanobench(log: FlightLog, path: Path) -> Path:
    late = TimedValues(log.pose.time + _DELAY, log.pose.values)
    full = replace(_at_radio(log), pose=late, rotor_vel=log.rotor_vel)
    return writers.write_nanobench(full, path.with_suffix(".csv"))


def _write_radio(log: FlightLog, path: Path) -> Path:
    return writers.write_radio(replace(_at_radio(log), rotor_vel=log.rotor_vel), path)


def _write_mcap(log: FlightLog, path: Path) -> Path:
    time = log.gyro.time[:: FREQ // _TOPIC_RATE]
    slower = {
        name: TimedValues(time, getattr(log, name).at(time))
        for name in ("gyro", "accelerometer", "rotor_vel", "voltage")
    }
    late = TimedValues(log.pose.time + _DELAY, log.pose.values)
    messages = writers.entries(replace(log, pose=late, **slower))
    return writers.write_mcap(path.with_suffix(".mcap"), messages)


_DELAY = 0.008  # s, of motion capture and its radio
_TOPIC_RATE = 250  # Hz
FORMATS: tuple[Callable[[FlightLog, Path], Path], ...] = (
    _write_sd_card,
    _write_nanobench,
    _write_mcap,
    _write_radio,
)
"""Writers of the formats, with the delays that their streams have."""
