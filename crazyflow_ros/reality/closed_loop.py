"""Recorded flights flown again by the simulated drone, with its controllers in the loop.

The simulation begins with the recorded state. From then on it receives only the setpoints, the
voltage of the battery and, by choice, the errors of the drone's own estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.checks.enum_members import member
from crazyflow_ros.checks.limits import Limit, number
from crazyflow_ros.control import Controller
from crazyflow_ros.drones import DEFAULT_DRONE, AnyDrone, resolve
from crazyflow_ros.drones.figures import has_battery
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.dynamics.forces.aerodynamics import ground_effect
from crazyflow_ros.dynamics.forces.external import External
from crazyflow_ros.dynamics.forces.floor import floor_contact
from crazyflow_ros.estimation import Estimator, Positioning
from crazyflow_ros.flight_logs import FlightLog
from crazyflow_ros.reality.recorded import (
    ERROR,
    NO_ERROR,
    RATE,
    VOLTAGE,
    Recorded,
    RecordedEstimate,
    RecordedVoltage,
)
from crazyflow_ros.sim import Battery, Sim, SimData, functional, pipeline

FREQ = 500
"""Ticks of the physics per second."""
BATCH = 64
"""Most flights of a batch."""

_STATE_RATES = {Controller.pid: 100, Controller.indi: 100}
"""Rates of position controllers [Hz]; the firmware runs all others as often as that of attitude."""
_SEGMENT = 5 * RATE  # samples that are flown together
_SETTLING = 4  # segments of hovering before a flight that begins in the air
_MASS = Limit(100, "kg")


class KnownState(StrEnum):
    """What the controllers of the simulated drone know of its state."""

    true = "true"
    """The true state."""
    kalman = "kalman"
    """The estimate of the firmware's Kalman filter with simulated motion capture."""
    recorded = "recorded"
    """The true state plus the error that the real drone's estimate had at that time, where both
    were logged."""


@dataclass(frozen=True)
class Replay:
    """How flights are flown again.

    Raises:
        ValueError: A value is out of its limits, or there is no such drone or model.
    """

    drone: AnyDrone = DEFAULT_DRONE
    dynamics: str = Dynamics.first_principles
    """A `Dynamics`."""
    controller: str | None = None
    """A `Controller`; None: that of the log."""
    mass: float | None = None
    """kg; None: that of the drone."""
    known: str = KnownState.recorded
    """A `KnownState`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "drone", resolve(self.drone))
        object.__setattr__(self, "dynamics", member(Dynamics, self.dynamics))
        object.__setattr__(self, "known", member(KnownState, self.known))
        if self.controller is not None:
            object.__setattr__(self, "controller", member(Controller, self.controller))
        if self.mass is not None and number("mass", self.mass, _MASS) <= 0:
            raise ValueError(f"mass must be more than 0 kg, got {self.mass:g}")

    def controller_of(self, log: FlightLog) -> Controller:
        """Return the controller that flies a log.

        Raises:
            ValueError: The log does not name one, or one that the package does not have.
        """
        if self.controller is not None:
            return Controller(self.controller)
        if log.controller not in list(Controller):
            raise ValueError(
                f"{log.name}: the log names the controller {log.controller}, expected one of "
                f"{', '.join(Controller)}: choose the one to fly with"
            )
        return Controller(log.controller)


class Flown(NamedTuple):
    """A recorded flight, and the same flight of the simulated drone at the same times."""

    real: Recorded
    controller: Controller
    pos: np.ndarray
    """(n, 3) m, heights as in the log."""
    quat: np.ndarray
    """(n, 4)"""
    command: np.ndarray
    """(n, 4) roll, pitch, yaw [rad] and collective thrust [N] of the position controller."""
    rotors: np.ndarray | None
    """(n, 4) commanded speeds as shares of the greatest; None of models without rotors."""


def fly(
    flights: Sequence[Recorded],
    replay: Replay | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Flown]:
    """Fly recorded flights again, many at once.

    Args:
        flights: See `recorded`.
        replay: How; by default as `Replay()`.
        progress: Called with a line of text.

    Returns:
        The flights in the same order.

    Raises:
        ValueError: A log does not name its controller; the message names the log.
    """
    replay = replay or Replay()
    kinds = [replay.controller_of(flight.log) for flight in flights]
    found: dict[int, Flown] = {}
    for controller in dict.fromkeys(kinds):
        # Flights of like duration together: a batch lasts as long as its longest.
        own = [i for i, kind in enumerate(kinds) if kind is controller]
        own.sort(key=lambda i: len(flights[i].time))
        batch = None
        for first in range(0, len(own), BATCH):
            some = own[first : first + BATCH]
            batch = batch or _Batch(replay, controller, min(len(own), BATCH))
            progress(f"{len(found)} of {len(flights)} flown; now {len(some)} with {controller}")
            found |= zip(some, batch.fly([flights[i] for i in some], progress))
    return [found[i] for i in range(len(flights))]


class _Batch:
    """A simulation of several flights with one controller."""

    def __init__(self, replay: Replay, controller: Controller, size: int) -> None:
        drone, dynamics = str(replay.drone), Dynamics(replay.dynamics)
        forces: list[External] = [floor_contact(drone, FREQ)]
        if dynamics.has_rotors:
            forces += [ground_effect(drone)]
        estimator: dict[str, Any] = {}
        if replay.known is not KnownState.true:
            given = replay.known is KnownState.recorded
            sources = Positioning(flow=False, range=False, motion_capture=not given, external=given)
            estimator = {"estimator": Estimator.kalman, "positioning": sources}
        self._sim = Sim(
            size,
            1,
            drone,
            dynamics=dynamics,
            control="state",
            controller=controller,
            power_distribution="capped",
            freq=FREQ,
            state_freq=_STATE_RATES.get(controller, FREQ),
            forces=tuple(forces),
            **estimator,
        )
        stages = self._sim.step_pipeline
        if replay.known is KnownState.recorded:
            stages = pipeline.replace(stages, "estimate_state", RecordedEstimate())
        if dynamics.has_rotors and has_battery(drone):
            battery = RecordedVoltage(Battery.of(drone))
            stages = pipeline.insert_before(stages, "integrate", battery)
        self._sim.step_pipeline = stages
        if replay.mass is not None:
            mass = jnp.full_like(self._sim.data.params.mass, replay.mass)
            params = self._sim.data.params.replace(mass=mass)
            self._sim.data = self._sim.data.replace(params=params)
        limits = getattr(self._sim.data.params, "rotor_vel_limits", None)
        self._fastest = None if limits is None else float(limits[..., 1].max())
        self._size, self._controller, self._rest = size, controller, rest_height(drone)
        self._segment = jax.jit(self._scan(self._sim.build_step_fn()))

    def fly(self, flights: Sequence[Recorded], progress: Callable[[str], None]) -> Iterator[Flown]:
        """Yield the flights of the simulated drones."""
        padded = [*flights, *[flights[-1]] * (self._size - len(flights))]
        data = self._begun(padded)
        n = max(len(flight.time) for flight in padded)
        parts = []
        for begin in range(0, n, _SEGMENT):
            inputs = _Inputs.of(padded, begin, begin + _SEGMENT, self._rest)
            data, part = self._segment(data, inputs)
            parts.append([np.asarray(x)[:, :, 0] for x in part])
            progress(f"{self._controller}: {min(begin + _SEGMENT, n) / RATE:.0f} s flown")
        pos, quat, command, rotors = (np.concatenate(x) for x in zip(*parts))
        for i, flight in enumerate(flights):
            m = slice(len(flight.time))
            height = [0, 0, flight.floor - self._rest]
            yield Flown(
                flight,
                self._controller,
                pos[m, i].astype(float) + height,
                quat[m, i].astype(float),
                command[m, i].astype(float),
                rotors[m, i] / self._fastest if self._fastest else None,
            )

    def _scan(self, step: Any) -> Callable[[SimData, _Inputs], tuple[SimData, Any]]:
        def sample(data: SimData, given: _Inputs) -> tuple[SimData, tuple[Array, ...]]:
            data = functional.state_control(data, given.setpoint)
            known = {ERROR: given.error, VOLTAGE: given.voltage}
            known = {name: value for name, value in known.items() if name in data.plugins}
            data = data.replace(plugins=data.plugins | known)
            pos, quat = data.states.pos, data.states.quat
            data = step(data, FREQ // RATE)
            attitude = data.controls.attitude
            assert attitude is not None
            return data, (pos, quat, attitude.cmd, data.controls.actuators)

        return lambda data, inputs: jax.lax.scan(sample, data, inputs)

    def _begun(self, flights: Sequence[Recorded]) -> SimData:
        """Return the data with the recorded states of the beginning.

        Where a flight begins in the air, rotors and the controllers' integrals are those of a drone
        that has hovered there for a while.
        """
        data = self._sim.data
        new = {
            "pos": [flight.pos[0] - [0, 0, flight.floor - self._rest] for flight in flights],
            "quat": [flight.quat[0] for flight in flights],
            "vel": [np.zeros(3) if flight.stands else flight.vel[0] for flight in flights],
        }
        dtype = data.states.pos.dtype
        arrays = {name: jnp.asarray(np.stack(x)[:, None], dtype) for name, x in new.items()}
        begun = data.replace(states=data.states.replace(**arrays))
        if all(flight.stands for flight in flights):
            return begun
        hovering, settled = _Inputs.hovering(flights, self._rest), begun
        for _ in range(_SETTLING):
            settled, _ = self._segment(settled, hovering)
        stands = np.array([flight.stands for flight in flights])[:, None, None]

        def chosen(new: Any, old: Any) -> Any:
            return jax.tree.map(lambda a, b: jnp.where(stands, a, b), new, old)

        controls, rotor_vel = begun.controls, begun.states.rotor_vel
        for name in ("state", "attitude"):
            level, other = getattr(controls, name), getattr(settled.controls, name)
            if level is not None:
                memory = chosen(level.memory, other.memory)
                controls = controls.replace(**{name: level.replace(memory=memory)})
        rotor_vel = chosen(rotor_vel, settled.states.rotor_vel)
        return begun.replace(controls=controls, states=begun.states.replace(rotor_vel=rotor_vel))


class _Inputs(NamedTuple):
    """What the simulation gets of recordings, (samples, flights, 1, k)."""

    setpoint: np.ndarray
    voltage: np.ndarray
    error: np.ndarray

    @classmethod
    def hovering(cls, flights: Sequence[Recorded], rest: float) -> _Inputs:
        """Return the samples of a segment of hovering where flights begin."""
        still = []
        for flight in flights:
            setpoint = np.zeros((1, 16))
            setpoint[0, :3], setpoint[0, 9:13] = flight.pos[0], flight.quat[0]
            still.append(flight._replace(setpoint=setpoint, error=NO_ERROR[None]))
        first = cls.of(still, 0, 1, rest)
        return cls(*(np.repeat(x, _SEGMENT, axis=0) for x in first))

    @classmethod
    def of(cls, flights: Sequence[Recorded], begin: int, end: int, rest: float) -> _Inputs:
        """Return some samples; flights that have ended keep their last one."""

        def column(array: np.ndarray) -> np.ndarray:
            return array[np.minimum(np.arange(begin, end), len(array) - 1)]

        def table(columns: list[np.ndarray]) -> np.ndarray:
            return np.stack(columns, axis=1)[:, :, None].astype(np.float32)

        setpoints = [column(flight.setpoint).copy() for flight in flights]
        for setpoint, flight in zip(setpoints, flights):
            setpoint[:, 2] -= flight.floor - rest
        return cls(
            table(setpoints),
            table([column(flight.voltage) for flight in flights]),
            table([column(flight.error) for flight in flights]),
        )
