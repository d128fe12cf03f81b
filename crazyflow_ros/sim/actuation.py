"""What comes between a command and the rotors: stages to insert before `integrate`.

They change `data.controls.actuators`, which is made anew in each tick.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp, isfinite

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import split, stack
from crazyflow_ros.dynamics.first_principles import RPM, Params
from crazyflow_ros.sim.arguments import whole
from crazyflow_ros.sim.data import SimData


@dataclass(frozen=True)
class ActionDelay:
    """Commands reach the rotors, or the fitted model, `ticks` ticks late.

    Attributes:
        ticks: At least 1.
    """

    ticks: int

    def __post_init__(self) -> None:
        """Refuse no delay.

        Raises:
            ValueError: `ticks` is below 1, or no whole number.
        """
        whole("ticks", self.ticks)

    def begin(self, data: SimData) -> SimData:
        """Data with nothing on the way."""
        shape = (*data.controls.actuators.shape[:2], self.ticks, 4)
        waiting = jnp.zeros(shape, data.controls.actuators.dtype)
        return data.replace(plugins=data.plugins | {"action_delay": waiting})

    def __call__(self, data: SimData) -> SimData:
        """Exchange the newest command for the oldest."""
        waiting, new = data.plugins["action_delay"], data.controls.actuators
        queue = jnp.concatenate([waiting, new[..., None, :]], axis=-2)
        controls = data.controls.replace(actuators=queue[..., 0, :])
        plugins = data.plugins | {"action_delay": queue[..., 1:, :]}
        return data.replace(controls=controls, plugins=plugins)


@dataclass(frozen=True)
class MotorFailure:
    """A rotor that gets no more power.

    Attributes:
        rotor: Which, 0 to 3.
        time: s after the last reset.
        drone: Of which drone of each world; of all of them if None.
    """

    rotor: int
    time: float = 0.0
    drone: int | None = None

    def __post_init__(self) -> None:
        """Refuse a rotor that no drone has.

        Raises:
            ValueError: `rotor` is not one of 0 to 3, or `time` is not finite.
        """
        if self.rotor not in range(4):
            raise ValueError(f"rotor has to be one of 0 to 3, got {self.rotor}")
        if not isfinite(self.time):
            raise ValueError(f"time has to be finite, got {self.time}")

    def begin(self, data: SimData) -> SimData:
        """The data; there is nothing to remember.

        Raises:
            ValueError: There is no such drone, or it has no rotors.
        """
        _rotor_params(data, "MotorFailure")
        if self.drone is not None and self.drone not in range(data.core.n_drones):
            last = data.core.n_drones - 1
            raise ValueError(f"MotorFailure: drone has to be one of 0 to {last}, got {self.drone}")
        return data

    def __call__(self, data: SimData) -> SimData:
        """Stop the rotor once it is time."""
        failed = data.core.steps >= round(self.time * data.core.freq)
        if self.drone is not None:
            failed &= jnp.arange(data.core.n_drones) == self.drone
        commands = list(split(data.controls.actuators))
        commands[self.rotor] = jnp.where(failed, 0.0, commands[self.rotor])
        return data.replace(controls=data.controls.replace(actuators=stack(tuple(commands))))


class WeakMotors:
    """Rotors that are slower than they are told to be: by `LOSS` in `data.plugins`, (N, M, 4).

    It is the share of the speed that is missing: 0 is a sound motor, 1 one that stands still.
    """

    LOSS = "motor_loss"

    def begin(self, data: SimData) -> SimData:
        """Data with sound motors.

        Raises:
            ValueError: The drones have no rotors.
        """
        _rotor_params(data, "WeakMotors")
        loss = jnp.zeros_like(data.states.rotor_vel)
        return data.replace(plugins=data.plugins | {self.LOSS: loss})

    def __call__(self, data: SimData) -> SimData:
        """Slow the commands down."""
        pairs = zip(split(data.controls.actuators), split(data.plugins[self.LOSS]))
        slower = tuple(command - loss * command for command, loss in pairs)
        return data.replace(controls=data.controls.replace(actuators=stack(slower)))


@dataclass(frozen=True)
class Battery:
    """Rotors that slow down as the battery's voltage falls, with its charge and under load.

    O. Tremblay, L.-A. Dessaint, A.-I. Dekkiche, "A generic battery model for the dynamic
    simulation of hybrid electric vehicles", VPPC 2007, from three points of a data sheet's
    discharge curve. The greatest rotor speed is proportional to the voltage, as a motor's without
    load.

    Attributes:
        capacity: A h.
        full: Voltage of the full battery, V, at which rotors reach their greatest speed.
        knee: Charge drawn [A h] and voltage at the end of the first, exponential part.
        nominal: The same at the end of the flat part.
        resistance: Ohm.
        current: At which the data sheet's curve was taken, A.
        efficiency: Mechanical power of the rotors over electrical power.
    """

    capacity: float
    full: float
    knee: tuple[float, float]
    nominal: tuple[float, float]
    resistance: float
    current: float = 0.0
    efficiency: float = 0.6

    def __post_init__(self) -> None:
        """Refuse a curve that does not fall.

        Raises:
            ValueError: The points are not in order, or a figure is negative or not finite.
        """
        charges = (0.0, self.knee[0], self.nominal[0], self.capacity)
        volts = (self.full, self.knee[1], self.nominal[1], 0.0)
        rising = all(a < b for a, b in pairwise(charges))
        falling = all(a > b for a, b in pairwise(volts))
        figures = (*charges, *volts, self.resistance, self.current)
        proper = all(map(isfinite, figures)) and self.resistance >= 0 and 0 < self.efficiency <= 1
        if not (rising and falling and proper):
            raise ValueError(f"the curve has to fall from full to knee, nominal, empty, got {self}")

    def voltage(self, drawn: Array) -> Array:
        """Without load [V], after `drawn` A h."""
        fall, (charge, volts) = 3 / self.knee[0], self.nominal
        bump = self.full - self.knee[1]
        slope = (
            (self.full - volts + bump * (exp(-fall * charge) - 1))
            * (self.capacity - charge)
            / charge
        )
        level = self.full + slope + self.resistance * self.current - bump
        # Empty, the formula goes to minus infinity.
        left = jnp.maximum(self.capacity - drawn, 1e-3 * self.capacity)
        return jnp.maximum(
            level - slope * self.capacity / left + bump * jnp.exp(-fall * drawn), 0.0
        )

    def begin(self, data: SimData) -> SimData:
        """Data with full batteries."""
        _rotor_params(data, "Battery")
        drawn = jnp.zeros((*data.states.pos.shape[:2], 1), data.states.pos.dtype)
        return data.replace(plugins=data.plugins | {"battery": drawn})

    def under_load(self, data: SimData) -> tuple[Array, Array]:
        """Voltage [V] and current [A] as the rotors turn, shape (n_worlds, n_drones) each."""
        params = _rotor_params(data, "Battery")
        drawn = data.plugins["battery"][..., 0]
        power = jnp.zeros_like(drawn)
        for i, speed in enumerate(split(data.states.rotor_vel)):
            t0, t1, t2 = split(params.rpm2torque[..., i % params.rpm2torque.shape[-2], :])
            power += speed * RPM * (t0 + speed * (t1 + speed * t2)) / self.efficiency
        source = self.voltage(drawn)
        # V = E - R I with I = P / V; more than half of E cannot be lost.
        least = 1e-6 * self.full**2  # the root has a derivative
        root = jnp.sqrt(jnp.maximum(source * source - 4 * self.resistance * power, least))
        volts = (source + root) / 2
        return volts, power / jnp.maximum(volts, 1e-3 * self.full)

    def __call__(self, data: SimData) -> SimData:
        """Draw the rotors' power for a tick, and limit their speed."""
        volts, current = self.under_load(data)
        params = _rotor_params(data, "Battery")
        fastest = params.rotor_vel_limits[..., 1] * volts / self.full
        commands = tuple(jnp.minimum(c, fastest) for c in split(data.controls.actuators))
        drawn = data.plugins["battery"][..., 0] + current / (3600 * data.core.freq)
        return data.replace(
            controls=data.controls.replace(actuators=stack(commands)),
            plugins=data.plugins | {"battery": drawn[..., None]},
        )


CRAZYFLIE_BATTERY = Battery(
    capacity=0.25, full=4.2, knee=(0.025, 4.1), nominal=(0.225, 3.78), resistance=0.1
)
"""The battery of a Crazyflie 2.1 with 250 mA h: charged to 4.2 V, with 90 and 10 % left 4.1 and
3.78 V, the table of its firmware (`pm_stm32f4.c`). The resistance is assumed, and the efficiency,
with which it hovers for 7 minutes, as Bitcraze says."""


def _rotor_params(data: SimData, stage: str) -> Params:
    if not isinstance(data.params, Params):
        raise ValueError(f"{stage} needs rotors: dynamics=first_principles")
    return data.params
