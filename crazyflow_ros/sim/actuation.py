"""Stages between the commands and the rotors, to insert before `integrate`.

They change `data.controls.actuators`, which each tick recomputes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.drones import AnyDrone, load_battery
from crazyflow_ros.drones.rotors import MOST
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.dynamics.components import split, stack
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.elementwise import exp, maximum, sqrt
from crazyflow_ros.sim.arguments import whole
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.randomization import DELAY
from crazyflow_ros.sim.stages import THRUST_MAX


@dataclass(frozen=True)
class ActionDelay:
    """Delays commands to the rotors, or to the fitted model, by `ticks` ticks.

    Attributes:
        ticks: At least 1.
        each: Whether each drone has its own delay of at most `ticks`, see `randomize_delay`.
    """

    ticks: int
    each: bool = False

    def __post_init__(self) -> None:
        """Check the delay.

        Raises:
            ValueError: `ticks` is less than 1, or not an integer.
        """
        whole("ticks", self.ticks)

    def begin(self, data: SimData) -> SimData:
        """Return the data with an empty queue."""
        lead, size = data.controls.actuators.shape[:2], data.controls.actuators.shape[2]
        waiting = jnp.zeros((*lead, self.ticks, size), data.controls.actuators.dtype)
        own = {DELAY: jnp.full((*lead, 1), self.ticks, jnp.int32)} if self.each else {}
        return data.replace(plugins=data.plugins | {"action_delay": waiting} | own)

    def __call__(self, data: SimData) -> SimData:
        """Append the new command to the queue, and apply the oldest."""
        waiting, new = data.plugins["action_delay"], data.controls.actuators
        queue = jnp.concatenate([waiting, new[..., None, :]], axis=-2)
        due = queue[..., 0, :]
        if self.each:
            index = self.ticks - data.plugins[DELAY][..., None]
            due = jnp.take_along_axis(queue, index, axis=-2)[..., 0, :]
        controls = data.controls.replace(actuators=due)
        plugins = data.plugins | {"action_delay": queue[..., 1:, :]}
        return data.replace(controls=controls, plugins=plugins)


@dataclass(frozen=True)
class MotorFailure:
    """Cuts the power of a rotor.

    Attributes:
        rotor: Index of the rotor.
        time: Time of the failure, in s after the last reset.
        drone: Index of the drone in each world; None for all drones.
    """

    rotor: int
    time: float = 0.0
    drone: int | None = None

    def __post_init__(self) -> None:
        """Check rotor and time.

        Raises:
            ValueError: `rotor` is negative, or `time` is not finite.
        """
        if self.rotor not in range(MOST):
            raise ValueError(f"rotor must be one of 0 to {MOST - 1}, got {self.rotor}")
        if not math.isfinite(self.time):
            raise ValueError(f"time must be finite, got {self.time}")

    def begin(self, data: SimData) -> SimData:
        """Return the data unchanged; the stage has no memory.

        Raises:
            ValueError: Drone or rotor does not exist, or the model has no rotors.
        """
        _rotor_params(data, "MotorFailure")
        if self.rotor not in range(n_rotors := data.states.rotor_vel.shape[-1]):
            raise ValueError(
                f"MotorFailure: rotor must be one of 0 to {n_rotors - 1}, got {self.rotor}"
            )
        if self.drone is not None and self.drone not in range(data.core.n_drones):
            last = data.core.n_drones - 1
            raise ValueError(f"MotorFailure: drone must be one of 0 to {last}, got {self.drone}")
        return data

    def __call__(self, data: SimData) -> SimData:
        """Stop the rotor after the time of failure."""
        failed = data.core.steps >= round(self.time * data.core.freq)
        if self.drone is not None:
            failed &= jnp.arange(data.core.n_drones) == self.drone
        commands = list(split(data.controls.actuators))
        commands[self.rotor] = jnp.where(failed, 0.0, commands[self.rotor])
        return data.replace(controls=data.controls.replace(actuators=stack(tuple(commands))))


class WeakMotors:
    """Slows rotors down by `LOSS` in `data.plugins`, (N, M, n).

    The loss is the missing share of the commanded speed: 0 for an intact motor, 1 for a stopped
    one.
    """

    LOSS = "motor_loss"

    def begin(self, data: SimData) -> SimData:
        """Return the data with intact motors.

        Raises:
            ValueError: The drones have no rotors.
        """
        _rotor_params(data, "WeakMotors")
        loss = jnp.zeros_like(data.states.rotor_vel)
        return data.replace(plugins=data.plugins | {self.LOSS: loss})

    def __call__(self, data: SimData) -> SimData:
        """Reduce the commanded speeds."""
        pairs = zip(split(data.controls.actuators), split(data.plugins[self.LOSS]))
        slower = tuple(command - loss * command for command, loss in pairs)
        return data.replace(controls=data.controls.replace(actuators=stack(slower)))


@dataclass(frozen=True)
class Battery:
    """Slows rotors down as the battery's voltage falls, with its charge and under load.

    O. Tremblay, L.-A. Dessaint, A.-I. Dekkiche, "A generic battery model for the dynamic
    simulation of hybrid electric vehicles", VPPC 2007, from three points of the discharge curve in
    a data sheet. Commands of a rotor's thrust do not depend on the voltage, because firmware
    compensates it; below `full_speed`, the greatest rotor speed falls in proportion to the voltage.

    Attributes:
        capacity: A h.
        full: Voltage of the full battery, V.
        knee: Charge drawn [A h] and voltage [V] at the end of the first, exponential part.
        nominal: Charge drawn [A h] and voltage [V] at the end of the flat part.
        resistance: Ohm.
        current: Current at which the curve of the data sheet was measured, A.
        efficiency: Mechanical power of the rotors divided by electrical power.
        full_speed: Voltage under load, V, above which rotors reach their maximum speed; by default
            `full`.
        empty: Voltage under load, V, at which the drone has to land.
    """

    capacity: float
    full: float
    knee: tuple[float, float]
    nominal: tuple[float, float]
    resistance: float
    current: float = 0.0
    efficiency: float = 0.6
    full_speed: float | None = None
    empty: float = 3.0

    @classmethod
    def of(cls, drone: AnyDrone) -> Battery:
        """Return the battery of a drone.

        Raises:
            ValueError: There is no such drone, or its battery is not known.
        """
        return cls(**load_battery(drone))

    def __post_init__(self) -> None:
        """Check that the curve falls.

        Raises:
            ValueError: The points are not in order, or a number is negative or not finite.
        """
        charges = (0.0, self.knee[0], self.nominal[0], self.capacity)
        volts = (self.full, self.knee[1], self.nominal[1], 0.0)
        rising = all(a < b for a, b in pairwise(charges))
        falling = all(a > b for a, b in pairwise(volts))
        figures = (*charges, *volts, self.resistance, self.current, self.fastest_from, self.empty)
        proper = (
            all(map(math.isfinite, figures)) and self.resistance >= 0 and 0 < self.efficiency <= 1
        )
        proper &= 0 < self.fastest_from <= self.full and 0 < self.empty < self.full
        if not (rising and falling and proper):
            raise ValueError(f"the curve has to fall from full to knee, nominal, empty, got {self}")

    @property
    def fastest_from(self) -> float:
        """`full_speed`, or its default."""
        return self.full if self.full_speed is None else self.full_speed

    def voltage(self, drawn: Array) -> Array:
        """Return the voltage without load [V] after `drawn` A h."""
        fall, (charge, volts) = 3 / self.knee[0], self.nominal
        bump = self.full - self.knee[1]
        slope = (
            (self.full - volts + bump * (math.exp(-fall * charge) - 1))
            * (self.capacity - charge)
            / charge
        )
        level = self.full + slope + self.resistance * self.current - bump
        # The formula diverges for an empty battery.
        left = maximum(self.capacity - drawn, 1e-3 * self.capacity)
        return maximum(level - slope * self.capacity / left + bump * exp(-fall * drawn), 0.0)

    def loaded(self, drawn: Array, power: Array) -> tuple[Array, Array]:
        """Return voltage [V] and current [A] under load.

        Args:
            drawn: A h drawn so far; array of JAX or NumPy.
            power: Electrical power, W.
        """
        source = self.voltage(drawn)
        # V = E - R I with I = P / V; at most half of E drops in the resistance.
        least = 1e-6 * self.full**2  # keeps the root differentiable
        root = sqrt(maximum(source * source - 4 * self.resistance * power, least))
        volts = (source + root) / 2
        return volts, power / maximum(volts, 1e-3 * self.full)

    def begin(self, data: SimData) -> SimData:
        """Return the data with full batteries."""
        params = _rotor_params(data, "Battery")
        drawn = jnp.zeros((*data.states.pos.shape[:2], 1), data.states.pos.dtype)
        fastest = params.rotor_vel_limits[..., 1] + drawn[..., 0]
        most = _weakest(params, fastest)[..., None]
        return data.replace(plugins=data.plugins | {"battery": drawn, THRUST_MAX: most})

    def under_load(self, data: SimData) -> tuple[Array, Array]:
        """Return voltage [V] and current [A] at the present rotor speeds, (n_worlds, n_drones)."""
        params = _rotor_params(data, "Battery")
        drawn = data.plugins["battery"][..., 0]
        power = jnp.zeros_like(drawn)
        for i, speed in enumerate(split(data.states.rotor_vel)):
            t0, t1, t2 = split(params.rpm2torque[..., i % params.rpm2torque.shape[-2], :])
            power += speed * RPM * (t0 + speed * (t1 + speed * t2)) / self.efficiency
        return self.loaded(drawn, power)

    def __call__(self, data: SimData) -> SimData:
        """Draw the rotors' power for a tick, and limit their speed."""
        volts, current = self.under_load(data)
        data = self.limited(data, volts)
        drawn = data.plugins["battery"][..., 0] + current / (3600 * data.core.freq)
        return data.replace(plugins=data.plugins | {"battery": drawn[..., None]})

    def limited(self, data: SimData, volts: Array) -> SimData:
        """Limit the rotors to the speeds that they reach at a voltage (N, M) under load."""
        params = _rotor_params(data, "Battery")
        share = jnp.minimum(volts / self.fastest_from, 1.0)
        fastest = params.rotor_vel_limits[..., 1] * share
        commands = tuple(jnp.minimum(c, fastest) for c in split(data.controls.actuators))
        most = _weakest(params, fastest)[..., None]
        return data.replace(
            controls=data.controls.replace(actuators=stack(commands)),
            plugins=data.plugins | {THRUST_MAX: most},
        )


def _rotor_params(data: SimData, stage: str) -> Params:
    if not isinstance(data.params, Params):
        raise ValueError(f"{stage} needs rotors: dynamics=first_principles")
    return data.params


def _weakest(params: Params, speed: Array) -> Array:
    """Return the thrust of a rotor [N], the weakest if they differ, at a speed [RPM]."""
    curves = (split(params.rpm2thrust[..., i, :]) for i in range(params.rpm2thrust.shape[-2]))
    return reduce(jnp.minimum, (a + speed * (b + speed * c) for a, b, c in curves))
