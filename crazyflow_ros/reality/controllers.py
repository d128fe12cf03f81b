"""The controllers, run on the states and setpoints of real flights beside the firmware's.

The same states and setpoints should give the same commands, but the log has the states at 100 Hz
with gaps, while controllers run at 500 Hz on states of 1 kHz. Commands are therefore judged in the
`BAND`: above it, derivatives are noise; below it are the controllers' integrals, which keep the
error of each gap. A position controller's desired angles have hardly any integral, and are judged
at all frequencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.signal import butter, sosfiltfilt

from crazyflow_ros.control import Controller, PowerDistribution
from crazyflow_ros.drones import load_drone, load_mellinger
from crazyflow_ros.dynamics.components import BodyState, split
from crazyflow_ros.flight_logs import FlightLog, TimedValues
from crazyflow_ros.flight_logs.flight_log import PWM_MAX
from crazyflow_ros.identification.fit import rms
from crazyflow_ros.reality import duty_cycles
from crazyflow_ros.reality.duty_cycles import in_flight, needed

ATTITUDE_RATE = 500
"""Rate of the firmware's controllers, Hz."""
POSITION_RATES = {Controller.pid: 100, Controller.mellinger: ATTITUDE_RATE}
"""Rates of their position parts, Hz."""
BAND = (0.2, 3.0)
"""Hz."""
DRONE = "cf2x_L250"
"""Drone whose figures convert the firmware's units into newtons, and back again."""
FIRMWARE_GAINS: dict[Controller, dict[str, Any]] = {
    Controller.pid: {},
    Controller.mellinger: {"kd": (0.2, 0.2, 0.4)},
}
"""Gains of position controllers that differ from those of Crazyflow, `controller_mellinger.c`."""
_TAKE_OFF, _LANDING = 5.0, 4.0  # s that are not judged: the planner's velocities are not logged
_LEAST = 100  # samples
_DELAYS = np.arange(-0.03, 0.0501, 0.002)  # s, of the logged commands


@dataclass(frozen=True)
class FirmwareCommands:
    """What a controller commands, in the firmware's units."""

    time: np.ndarray
    """(n,) s."""
    rpy: np.ndarray
    """(n, 3) desired roll, pitch, yaw, rad."""
    thrust: np.ndarray
    """(n,) collective thrust, 0 to 65535 and, of Mellinger's controller, more."""
    torque: np.ndarray
    """(n, 3) about the body axes FLU, in the units of the thrust."""

    def at(self, times: np.ndarray) -> FirmwareCommands:
        """Return the commands at other times [s]."""
        values = np.column_stack([self.rpy, self.thrust, self.torque])
        new = TimedValues(self.time, values).at(times)
        return FirmwareCommands(times, new[:, :3], new[:, 3], new[:, 4:])


@dataclass(frozen=True)
class ControllerErrors:
    """RMS differences between our commands and the logged ones; None for what was not logged."""

    flight: str
    controller: str
    delay: float
    """Delay of the logged motor commands behind the logged states, s; ours are shifted by it."""
    roll: float | None
    """Desired angles, degrees."""
    pitch: float | None
    thrust: float
    """Collective thrust in the `BAND`, share of 65535."""
    thrust_offset: float
    """Its mean, which is not in the band."""
    thrust_size: float
    """RMS of the logged thrust itself in the band."""
    torque: tuple[float, ...]
    """Roll, pitch, yaw in the band, share of 65535."""
    torque_size: tuple[float, ...]
    """RMS of the logged torque itself in the band."""
    pwm: float
    """All four motors in the band, share of 65535."""
    pwm_size: float
    """RMS of the logged motor commands themselves in the band."""


def replayed(log: FlightLog) -> FirmwareCommands:
    """Run our controller on the logged states and setpoints, from the start of the motors.

    Raises:
        ValueError: The log lacks what this needs, or the controller is not PID or Mellinger's.
    """
    controller = next((each for each in POSITION_RATES if each == log.controller), None)
    if controller is None:
        known = " or ".join(POSITION_RATES)
        raise ValueError(f"{log.name}: expected a flight of {known}, got {log.controller}")
    estimate, gyro = needed(log, "estimate"), needed(log, "gyro")
    setpoint, (start, end) = needed(log, "setpoint"), in_flight(log)
    times = np.arange(start, end, 1 / ATTITUDE_RATE)
    states, commands = estimate.at(times), setpoint.held_at(times)
    states[:, 3:7] /= np.linalg.norm(states[:, 3:7], axis=1, keepdims=True)
    inputs = np.column_stack([states, gyro.at(times), commands])
    outputs = duty_cycles.for_each_row(partial(_run, controller=controller), inputs)
    newton = load_drone(DRONE)["thrust_max"] / load_mellinger(DRONE, "attitude")["pwm_max"]
    lever = 2 * load_drone(DRONE)["L"]
    yaw_lever = 4 * load_mellinger(DRONE, "attitude")["thrust2torque"]
    torque = outputs[:, 4:] / (newton * np.array([lever, lever, yaw_lever]))
    return FirmwareCommands(times, outputs[:, :3], outputs[:, 3] / (4 * newton), torque)


@partial(jax.jit, static_argnames="controller")
def _run(inputs: Array, controller: Controller) -> Array:
    """Return roll, pitch, yaw [rad], thrust [N] and torque [N m] for each row of the inputs."""
    cascade, every = controller.cascade, ATTITUDE_RATE // POSITION_RATES[controller]
    outer = cascade.load_params("state", DRONE, POSITION_RATES[controller])
    outer |= {name: jnp.asarray(gain) for name, gain in FIRMWARE_GAINS[controller].items()}
    inner = cascade.load_params("attitude", DRONE, ATTITUDE_RATE)
    zero = jnp.zeros(())

    def step(carry: Any, row: Array) -> Any:
        tick, outer_memory, inner_memory, wanted = carry
        x: Any = split(row)
        body = BodyState(x[:3], x[3:7], x[7:10], x[10:13], (zero,) * 4)
        setpoint, rates = (x[13:16], x[16:19], x[19:22], x[22:26]), x[26:29]

        def position(_: Any) -> Any:
            dt = 1 / POSITION_RATES[controller]
            rpy, thrust, memory = cascade.state2attitude(body, setpoint, outer_memory, dt, outer)
            return memory, (*rpy, thrust)

        outer_memory, wanted = jax.lax.cond(
            tick % every == 0, position, lambda _: (outer_memory, wanted), None
        )
        command = wanted[:3], rates, wanted[3]
        thrust, torque, inner_memory = cascade.attitude2force_torque(
            body,
            command,
            inner_memory,
            1 / ATTITUDE_RATE,
            inner,
            distribution=PowerDistribution.capped,
        )
        found = jnp.stack([*wanted[:3], thrust, *torque])
        return (tick + 1, outer_memory, inner_memory, wanted), found

    memories = [
        {name: (zero,) * size for name, size in sizes.items()}
        for sizes in (cascade.POSITION_MEMORY, cascade.ATTITUDE_MEMORY)
    ]
    return jax.lax.scan(step, (jnp.zeros((), int), *memories, (zero,) * 4), inputs)[1]


def controller_errors(log: FlightLog) -> ControllerErrors:
    """Compare our controller's commands with the logged ones.

    Args:
        log: A flight with estimate, gyroscope, setpoints, motor commands and voltage, of a drone
            whose firmware compensates the voltage as `duty_cycles.CF21_PLUS`.

    Raises:
        ValueError: See `replayed`; or the flight is too short.
    """
    volts, (start, end) = needed(log, "voltage"), in_flight(log)
    voltage = TimedValues(volts.time, duty_cycles.filtered_voltage(volts)[:, None])
    judged = needed(log, "pwm").between(start + _TAKE_OFF, end - _LANDING)
    if judged is None or len(judged.time) < _LEAST:
        raise ValueError(f"{log.name}: expected a flight of {_TAKE_OFF + _LANDING + 1:g} s or more")
    ours = replayed(log)
    times, slow = judged.time, voltage.at(judged.time)[:, 0]
    logged = _Judged(judged.values, duty_cycles.command_of(judged.values, slow), times)

    def shifted(delay: float) -> _Judged:
        commands = ours.at(times - delay)
        wanted = duty_cycles.distributed(commands.thrust, commands.torque)
        pwm = duty_cycles.capped(duty_cycles.duty_of(wanted, slow))
        return _Judged(pwm, duty_cycles.command_of(pwm, slow), times)

    delay = float(min(_DELAYS, key=lambda d: rms(shifted(d).thrust - logged.thrust)))
    found = shifted(delay)
    angles: tuple[float | None, float | None] = (None, None)
    if log.position_output is not None:
        off = np.degrees(ours.at(times - delay).rpy - log.position_output.at(times)[:, :3])
        angles = rms(off[:, 0]), rms(off[:, 1])
    return ControllerErrors(
        log.name,
        log.controller or "",
        delay,
        *angles,
        rms(found.thrust - logged.thrust),
        found.mean_thrust - logged.mean_thrust,
        rms(logged.thrust),
        tuple(map(rms, (found.torque - logged.torque).T)),
        tuple(map(rms, logged.torque.T)),
        rms(found.pwm - logged.pwm),
        rms(logged.pwm),
    )


class _Judged:
    """Motor commands in the band, as shares of 65535."""

    def __init__(self, pwm: np.ndarray, commands: np.ndarray, times: np.ndarray) -> None:
        band = butter(2, BAND, "bandpass", fs=1 / np.median(np.diff(times)), output="sos")
        thrust, torque = duty_cycles.gathered(commands / PWM_MAX)
        self.mean_thrust = float(thrust.mean())
        self.thrust, self.torque, self.pwm = (
            sosfiltfilt(band, values, axis=0) for values in (thrust, torque, pwm / PWM_MAX)
        )
