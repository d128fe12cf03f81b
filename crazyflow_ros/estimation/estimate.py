"""Estimates of the drones' states: the Kalman filter with its whole memory."""

from __future__ import annotations

from typing import NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.drones.deck_optics import ORDINARY, DeckSurface
from crazyflow_ros.dynamics.components import (
    Matrix3,
    Vec3,
    Vec4,
    add,
    heading,
    rotate_quat,
    rotation_matrix,
    scale,
    sin_cos,
    split,
    stack,
    subtract,
    transform,
    transpose,
    vector,
)
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.estimation import beacons, external_poses, kalman
from crazyflow_ros.estimation import instrument_readings as readings
from crazyflow_ros.estimation.below import Below, seen_below
from crazyflow_ros.estimation.instrument_readings import (
    Errors,
    FlowReading,
    MeanMotion,
    PoseReading,
    Random,
)
from crazyflow_ros.estimation.kalman import PREDICTION_RATE, Measure, N
from crazyflow_ros.estimation.parts import TRIANGLE, WHERE, Parts, belief_of, is_zero, parts_of
from crazyflow_ros.estimation.positioning import Positioning
from crazyflow_ros.xla.kernels import apart
from crazyflow_ros.xla.on_device import on_device
from crazyflow_ros.xla.struct import Struct, static_field

FLOW_SETTINGS = (0.0, 0.0, 2.0)
"""Defaults of `Estimate.flow_settings`."""
_RANGE_RATE = 40  # Hz, of the distance sensor
_STANDS = 0.1  # m, above the height of every drone that stands on the floor


class Estimate(Struct):
    """Belief of each drone's filter, and its memory. The filter starts where `quat` is zero.

    It starts at the true state with the smallest variances, which grow as its errors do. On the
    floor it starts at the attitude that explains the accelerometer's readings at rest.
    """

    pos: Array
    """(N, M, 3) world frame, m."""
    quat: Array
    """(N, M, 4) body to world, xyzw."""
    body_vel: Array
    """(N, M, 3) body frame, m/s."""
    covariance: Array
    """(N, M, 45) upper triangle, row by row, of the covariance of position [m], body velocity [m/s]
    and attitude error [rad, body frame]."""
    gyro_error: Array
    """(N, M, 3) present error of the gyroscope, rad/s."""
    initial: Array
    """(N, M, 4) position [m] and yaw [rad] at which the filter starts again when it is lost."""
    external: Array
    """(N, M, 10) latest external pose: position [m], attitude (zeros if unknown), their standard
    deviations [m, rad], and a number; when the number changes, the filter uses the pose once."""
    taken: Array
    """(N, M, 1) number of the latest pose that the filter used."""
    seen: Array
    """(N, M, 10) true position, attitude and velocity at the last prediction; zeros before the
    first."""
    errors: Array
    """(N, M, 10) `Errors`."""
    noise: Array
    """(N, M, 2) `Random`; a reset does not restore it."""
    deck: Array
    """(N, M, 4) latest readings of range [m] and flow deck: counts along the axes of the body, and
    SQUAL; zeros before the first."""
    flow_settings: Array
    """(N, M, 3) the firmware's parameters `motion.disable`, `adaptive` and `flowStdFixed`."""
    positioning: Positioning = static_field()
    freq: int = static_field()
    """Physics ticks per second."""
    gravity: float = static_field(default=kalman.GRAVITY)
    """Gravity of the world, which the filter knows, m/s^2, downwards."""
    floor: float = static_field(default=0.0)
    """Height of the floor, which the filter knows, m."""
    surface: DeckSurface = static_field(default=ORDINARY)
    """Of the floor."""
    beacons: Array | None = None
    """(N, M, k) memory for base stations and radio anchors, see `beacons.columns`; None without."""

    @classmethod
    def create(
        cls, n_worlds: int, n_drones: int, positioning: Positioning, freq: int, seed: int
    ) -> Self:
        """Return estimates that have not started."""

        def zeros(size: int) -> Array:
            return on_device(np.zeros((n_worlds, n_drones, size)))

        return cls(
            pos=zeros(3),
            quat=zeros(4),
            body_vel=zeros(3),
            covariance=zeros(len(TRIANGLE)),
            gyro_error=zeros(3),
            initial=zeros(4),
            external=zeros(external_poses.SIZE),
            taken=zeros(1),
            seen=zeros(10),
            errors=zeros(10),
            noise=on_device(Random.seeds(seed, n_worlds, n_drones)),
            deck=zeros(4),
            flow_settings=on_device(np.broadcast_to(FLOW_SETTINGS, (n_worlds, n_drones, 3))),
            positioning=positioning,
            freq=freq,
            beacons=_placed(beacons.initial(positioning, n_worlds, n_drones, seed)),
        )

    def seeded(self, seed: int) -> Estimate:
        """Return the estimates with other random numbers."""
        n_worlds, n_drones, _ = self.noise.shape
        return self.replace(
            noise=on_device(Random.seeds(seed, n_worlds, n_drones)),
            beacons=_placed(beacons.initial(self.positioning, n_worlds, n_drones, seed)),
        )

    @property
    def period(self) -> int:
        """Ticks between two predictions."""
        rates = range(min(PREDICTION_RATE, self.freq), 0, -1)
        return self.freq // next(rate for rate in rates if self.freq % rate == 0)

    @property
    def vel(self) -> Array:
        """(N, M, 3) velocity, world frame, m/s."""
        rot = rotation_matrix(split(self.quat))  # type: ignore[arg-type]
        return stack(transform(rot, vector(self.body_vel)))

    @property
    def variances(self) -> Array:
        """(N, M, 9) diagonal of the covariance."""
        return stack(tuple(self.covariance[..., WHERE[i, i]] for i in range(N)))

    def updated(
        self, now: PoseReading, flies: Array, steps: Array, obstacles: Obstacles | None = None
    ) -> Estimate:
        """Return the estimates after a tick.

        Args:
            now: True motion, components (N, M).
            flies: (N, M) which drones fly.
            steps: (N, 1) number of the tick.
            obstacles: What drones may see below them besides the floor.
        """
        steps = jnp.broadcast_to(steps, flies.shape)
        parts = {name: split(getattr(self, name)) for name in self._leaves}
        # External poses change between ticks, if there are any.
        given = {} if self.positioning.external else {"external": parts.pop("external")}
        fresh, due = is_zero(parts["quat"]), steps % self.period == 0

        def run(parts: Parts) -> Parts:
            seen, unseen = {"seen": now.numbers}, is_zero(parts["seen"][3:7])
            # Where there is nothing to predict from, a zero quaternion would give NaN.
            usable = parts | given | _where(fresh, {"quat": now.quat}, parts)
            usable |= _where(unseen, seen, parts)
            begun = _where(fresh, self._start(usable, now, flies, steps), parts)
            changed = self._step(usable, now, flies, steps, obstacles)
            new = parts | begun | _where(due & ~fresh & ~unseen, changed, parts | begun)
            return new | _where(due, seen, parts)

        parts = jax.lax.cond(jnp.any(fresh | due), run, lambda parts: parts, parts)
        return self.replace(**{name: stack(part) for name, part in parts.items()})

    @property
    def _leaves(self) -> list[str]:
        fields = self.__dataclass_fields__.values()
        names = [field.name for field in fields if not field.metadata.get("static")]
        return [name for name in names if getattr(self, name) is not None]

    def _start(self, parts: Parts, now: PoseReading, flies: Array, steps: Array) -> Parts:
        """Return what changes when filters start."""

        def drawn(state: Array, step: Array, steps: Array) -> tuple[Errors, Array]:
            random = Random(state, step)
            random.jump(steps)
            return Errors.drawn(random, now.pos[0].dtype), random.state

        errors, state = apart(drawn, *parts["noise"], steps)
        vel = transform(transpose(rotation_matrix(now.quat)), now.vel)
        east, north, _ = heading(now.quat)
        # The attitude of a filter that has run for long; others would first look like a motion.
        stands = ~flies & (kalman.above(now.pos[2], self.floor) < _STANDS)
        x, y, _ = scale(errors.acc, jnp.where(stands, 1 / self.gravity, 0.0))
        lean = (y, -x, jnp.zeros_like(x))
        return {
            **parts_of(kalman.certain(now.pos, rotate_quat(now.quat, lean), vel)),
            "gyro_error": errors.gyro,
            "initial": (*now.pos, jnp.arctan2(north, east)),
            "taken": (parts["external"][-1],),
            "errors": errors.numbers,
            "noise": (state, parts["noise"][1]),
        }

    def _step(
        self,
        parts: Parts,
        now: PoseReading,
        flies: Array,
        steps: Array,
        obstacles: Obstacles | None,
    ) -> Parts:
        """Return what changes when filters run."""
        dt, below = self.period / self.freq, None
        if self.positioning.range or self.positioning.flow:
            given = self.floor, self.surface, obstacles, self._measures_range(steps)
            below = seen_below(now.pos, now.quat, *given)
        heard, state = apart(lambda *args: self._sensed(*args), parts, now, below, steps)
        belief = belief_of(parts)
        rot = apart(rotation_matrix, belief.quat)
        x, y, z, yaw = parts["initial"]
        level = _level(yaw)
        belief = kalman.predicted(
            *(belief, rot, heard.gyro, heard.acc, dt, flies, level, self.gravity),
            reverts=not self.positioning.stations,
        )
        belief = kalman.diffused(belief, dt)
        for measure in self._measures(heard, rot, parts["flow_settings"]):
            for measurement in apart(measure, belief):
                belief = kalman.updated(belief, measurement)
        memory = {}
        if "beacons" in parts:
            random, count = Random(state, parts["noise"][1]), steps // self.period
            belief, memory["beacons"] = beacons.fused(
                belief, parts["beacons"], self.positioning, now, rot, count, random, dt
            )
            state = random.state
        if self.positioning.external:
            belief = external_poses.told(belief, parts["external"], parts["taken"][0])
        belief = kalman.settled(belief)
        lost = apart(kalman.out_of_bounds, belief)
        again = _where(lost, parts_of(kalman.begun((x, y, z), level)), parts_of(belief))
        return {
            **again,
            "gyro_error": heard.gyro_error,
            "taken": (parts["external"][-1],),
            "noise": (state, parts["noise"][1]),
            "deck": readings.on_deck(heard.range, heard.flow, parts["deck"]),
            **memory,
        }

    def _sensed(
        self, parts: Parts, now: PoseReading, below: Below | None, steps: Array
    ) -> tuple[_Heard, Array]:
        """Return what the instruments measure, and the new state of the random numbers."""
        dt, dtype, has = self.period / self.freq, now.pos[0].dtype, self.positioning
        random, errors = Random(*parts["noise"]), Errors.of(parts["errors"])
        seen = parts["seen"]
        before = PoseReading(seen[:3], seen[3:7], seen[7:])  # type: ignore[arg-type]
        motion = MeanMotion.between(before, now, dt, self.gravity)
        gyro, acc = readings.imu(motion, errors, random, dt, self.gravity)
        heard = _Heard(gyro, acc, subtract(gyro, motion.turn))
        if has.range and below is not None:
            value, is_seen = readings.height(below, errors.range, random)
            due = self._measures_range(steps)
            heard = heard._replace(range=(value, is_seen & due, due))
        if has.flow and below is not None:
            heard = heard._replace(flow=readings.flow(motion, below, random, dt))
        if has.motion_capture:
            pos = add(now.pos, scale(random.vector(dtype), external_poses.POS_STD))
            quat = rotate_quat(now.quat, scale(random.vector(dtype), external_poses.QUAT_STD))
            comes: Array | bool = True
            if has.capture_delay:
                pos = subtract(pos, scale(now.vel, has.capture_delay))
                quat = rotate_quat(quat, scale(motion.turn, -has.capture_delay))
            if has.capture_dropout:
                comes = random.uniform(dtype) > has.capture_dropout
            heard = heard._replace(pose=(pos, quat, comes))
        return heard, random.state

    def _measures_range(self, steps: Array) -> Array:
        """Return where the range sensor measures: as often as its mean rate says."""
        rate = self.freq // self.period
        return steps // self.period % rate * _RANGE_RATE % rate < _RANGE_RATE

    def _measures(self, heard: _Heard, rot: Matrix3, settings: tuple[Array, ...]) -> list[Measure]:
        """Return the measurements of a run, in order."""
        dt = self.period / self.freq
        found: list[Measure] = []
        if heard.range is not None:
            value, valid, _ = heard.range
            found.append(lambda belief: [kalman.height(belief, rot, value, valid, self.floor)])
        if (seen := heard.flow) is not None:
            disabled, adapts, fixed = settings
            std = jnp.where(adapts != 0, seen.std, fixed * readings.FLOW_COUNT)
            own = heard.gyro, seen.pixels, dt, self.floor, std, seen.valid & (disabled == 0)
            found.append(lambda belief: kalman.flow(belief, rot, *own))
        if heard.pose is not None:
            pos, quat, comes = heard.pose
            found += external_poses.captured(pos, quat, comes)
        return found


def restarted(initial: np.ndarray) -> dict[str, np.ndarray]:
    """Return fields of an `Estimate` that starts again.

    NumPy computes this, because JAX would compile it at its first use, while a drone flies.

    Args:
        initial: (4,) where the drone stands: position [m] and yaw [rad].
    """
    yaw = initial[3]
    covariance = np.zeros(len(TRIANGLE))
    for i, variance in enumerate(kalman.INITIAL_VARIANCES):
        covariance[WHERE[i, i]] = variance
    return {
        "initial": initial,
        "pos": initial[:3],
        "quat": np.array([0, 0, np.sin(yaw / 2), np.cos(yaw / 2)]),
        "body_vel": np.zeros(3),
        "covariance": covariance,
    }


class _Heard(NamedTuple):
    """Readings of the instruments; None for instruments that a drone does not have."""

    gyro: Vec3
    acc: Vec3
    gyro_error: Vec3
    range: tuple[Array, Array, Array] | None = None
    """Distance, whether there is one, and whether there is a reading."""
    flow: FlowReading | None = None
    pose: tuple[Vec3, Vec4, Array | bool] | None = None
    """Position, attitude, and whether there is one."""


def _placed(memory: np.ndarray | None) -> Array | None:
    return None if memory is None else on_device(memory)


def _level(yaw: Array) -> Vec4:
    sine, cosine = sin_cos(yaw / 2)
    zero = jnp.zeros_like(yaw)
    return (zero, zero, sine, cosine)


def _where(condition: Array, new: Parts, old: Parts) -> Parts:
    """Return the components of `new` where the condition holds, those of `old` elsewhere."""
    return {
        name: tuple(jnp.where(condition, x, y) for x, y in zip(part, old[name]))
        for name, part in new.items()
    }
