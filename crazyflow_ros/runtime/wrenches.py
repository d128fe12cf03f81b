"""External forces and torques on drones and bodies, each for some simulated time."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.plain_values import plain
from crazyflow_ros.engine.moving_bodies import MovingBodies
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.runtime.health import Callbacks
from crazyflow_ros.runtime.requests import InvalidState
from crazyflow_ros.scene.frames import body_to_world

_MOST = 1000  # maximum number of wrenches at a time

MIRROR = "mirror"
"""Beginning of the keys of the wrenches that are applied to the mirror; drone and part follow."""


@dataclass(frozen=True)
class TimedWrench:
    """A force and a torque on a drone, or on another body.

    Raises:
        ValueError: A wrong shape, NaN or infinity, or a negative duration.
    """

    force: ArrayLike
    """(3,) N."""
    torque: ArrayLike
    """(3,) N m, in addition to the torque of the force."""
    duration: float
    """Simulated time [s] from the next tick on, at least one tick; infinity for no end."""
    in_body: bool = False
    """Whether both are in the axes of the drone, and turn with it, or in those of the world."""
    point: ArrayLike = field(default=(0.0, 0.0, 0.0))
    """(3,) where the force acts [m], from the centre of mass in the axes of the drone."""
    ramp_down: float = 0.0
    """The last part of the duration [s], over which both fall to zero."""

    def __post_init__(self) -> None:
        for name, limit in (
            ("force", limits.FORCE),
            ("torque", limits.TORQUE),
            ("point", limits.POSITION),
        ):
            value = limits.vector(name, getattr(self, name), (3,), limit)
            object.__setattr__(self, name, value)
        if not self.duration >= 0:
            raise ValueError(f"duration must be 0 s or more, got {self.duration}")
        if not 0 <= self.ramp_down <= self.duration:
            expected = f"from 0 s to the duration of {self.duration:g} s"
            raise ValueError(f"ramp_down must be {expected}, got {self.ramp_down}")


def _end(future: Future[None], error: Exception | None = None) -> None:
    """Complete the future of a wrench, unless it was cancelled."""
    if not future.set_running_or_notify_cancel():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


class ActiveWrench(NamedTuple):
    """A wrench that acts on a drone or a body."""

    name: str
    """Name of the drone or body."""
    wrench: TimedWrench
    end: float
    """Tick at which it ends, or infinity."""
    future: Future[None]


class Wrenches:
    """The wrenches on all drones and bodies. Any thread posts, one thread applies.

    Args:
        freq: Ticks per simulated second.
        told: Called when forces or torques on drones change, see `News.on_wrench`.
        told_of_bodies: The same for bodies, see `News.on_body_wrench`.

    Attributes:
        active: Wrenches that act, by key.
        posted: Wrenches that begin or, with None, end at the next `take`, by key.
    """

    def __init__(
        self,
        freq: int,
        told: Callbacks[Snapshot, np.ndarray],
        told_of_bodies: Callbacks[Snapshot, Mapping[str, np.ndarray]],
    ) -> None:
        self._freq, self._told, self._told_of_bodies = freq, told, told_of_bodies
        self._lock = threading.Lock()  # guards the two below
        self.active: dict[Hashable, ActiveWrench] = {}  # only the physics thread changes it
        self.posted: dict[Hashable, tuple[str, TimedWrench | None, Future[None]]] = {}

    @property
    def next_end(self) -> float:
        """Tick at which the next wrench ends; infinity if none does."""
        return min((active.end for active in self.active.values()), default=math.inf)

    def post(self, name: str, wrench: TimedWrench, key: Hashable) -> Future[None]:
        """See `PhysicsThread.apply_wrench`; the key identifies the wrench.

        Raises:
            InvalidState: Too many wrenches are active already.
        """
        (future,) = self.replace({key: (name, wrench)})
        return future

    def end(self, key: Hashable) -> None:
        """End the wrench with a key before the next tick, if there is one."""
        self.replace({key: ("", None)})

    def replace(
        self,
        wrenches: Mapping[Hashable, tuple[str, TimedWrench | None]],
        instead_of: Sequence[tuple[Hashable, ...]] = (),
    ) -> list[Future[None]]:
        """Post or, for None, end wrenches by their keys, all between the same two ticks.

        Args:
            wrenches: Drone and wrench, by key.
            instead_of: Beginnings of keys; all other wrenches with such keys end.

        Raises:
            InvalidState: Too many wrenches are active already.
        """
        others = {key for beginning in instead_of for key in self.group(*beginning)}
        wrenches = dict.fromkeys(others, ("", None)) | dict(wrenches)
        n_added = sum(
            wrench is not None and key not in self.posted and key not in self.active
            for key, (_, wrench) in wrenches.items()
        )
        if n_added and len(self.posted) + len(self.active) + n_added > _MOST:
            raise InvalidState(f"{_MOST} external wrenches act already")
        posted: dict[Hashable, tuple[str, TimedWrench | None, Future[None]]]
        posted = {key: (name, wrench, Future()) for key, (name, wrench) in wrenches.items()}
        with self._lock:
            replaced = [self.posted[key] for key in posted if key in self.posted]
            self.posted |= posted
        for _, _, future in replaced:
            _end(future)
        return [future for _, _, future in posted.values()]

    def group(self, *beginning: Hashable) -> dict[tuple[Any, ...], TimedWrench]:
        """Return the wrenches, posted or active, whose keys are tuples with this beginning."""
        latest: dict[Hashable, TimedWrench | None]
        with self._lock:
            latest = {key: active.wrench for key, active in self.active.items()}
            latest |= {key: wrench for key, (_, wrench, _) in self.posted.items()}
        return {
            key: wrench
            for key, wrench in latest.items()
            if wrench is not None and isinstance(key, tuple) and key[: len(beginning)] == beginning
        }

    def clear(self, names: Collection[str]) -> None:
        """End all wrenches on some drones or bodies, including posted ones."""
        with self._lock:
            posted = [key for key, (name, _, _) in self.posted.items() if name in names]
            ended = [self.posted.pop(key)[2] for key in posted]
            active = [key for key, active in self.active.items() if active.name in names]
            ended += [self.active.pop(key).future for key in active]
        for future in ended:
            _end(future, InvalidState("the simulation was reset"))

    @property
    def names(self) -> set[str]:
        """Names of the drones and bodies that have any, posted or active."""
        with self._lock:
            posted = {name for name, _, _ in self.posted.values()}
            return posted | {active.name for active in self.active.values()}

    def capture(self) -> list[dict[str, Any]]:
        """Return the active wrenches as JSON values, after `take` for the present state."""
        return [
            {
                "name": active.name,
                "wrench": plain(vars(active.wrench)),
                "end": active.end,
                "key": key if isinstance(key, tuple) else None,
            }
            for key, active in self.active.items()
        ]

    def restore(self, wrenches: Sequence[Mapping[str, Any]]) -> None:
        """Apply the result of `capture`, and nothing else."""
        self.clear([active.name for active in self.active.values()])
        with self._lock:
            posted = [name for name, _, _ in self.posted.values()]
        self.clear(posted)
        restored: dict[Hashable, ActiveWrench] = {}
        for entry in wrenches:
            key = object() if entry["key"] is None else tuple(entry["key"])
            wrench = TimedWrench(**entry["wrench"])
            restored[key] = ActiveWrench(entry["name"], wrench, entry["end"], Future())
        with self._lock:
            self.active = restored

    def rewind(self, n_ticks: int) -> None:
        """Move the clock back; active wrenches continue."""
        for key, active in self.active.items():
            self.active[key] = active._replace(end=active.end - n_ticks)

    def take(self, now: Snapshot, bodies: MovingBodies | None = None) -> np.ndarray:
        """Apply posted wrenches, and end those that are over. Has to be called if there are any.

        Args:
            now: State of the drones.
            bodies: What moves besides them; it gets the wrenches on bodies.

        Returns:
            (M, 6) force [N] and torque [N m] at the centres of mass of drones, in world axes, from
            now on.
        """
        ended: list[tuple[Future[None], Exception | None]] = []
        with self._lock:
            posted, self.posted = self.posted, {}
            over = {
                key
                for key, active in self.active.items()
                if not active.end > now.tick
                or active.future.cancelled()
                or not _is_there(active.name, now, bodies)
            }
            for key in over | (posted.keys() & self.active.keys()):
                ended.append((self.active.pop(key).future, None))
            for key, (name, wrench, future) in posted.items():
                if wrench is None or future.cancelled():
                    continue
                if name not in now.names and not (
                    bodies and bodies.has(name)
                ):  # it was removed meanwhile
                    ended.append((future, InvalidState(f"{name} has gone")))
                    continue
                ticks = max(1.0, wrench.duration * self._freq)
                end = now.tick + round(ticks) if math.isfinite(ticks) else ticks
                self.active[key] = ActiveWrench(name, wrench, end, future)
        for future, error in ended:
            _end(future, error)
        total, others = np.zeros((len(now.names), 6)), dict[str, np.ndarray]()
        for active in self.active.values():
            if active.name in now.names:
                i = now.names.index(active.name)
                total[i] += self._at(active, now.tick, now.quat[i])
            elif bodies is not None:
                acts = self._at(active, now.tick, bodies.quat(active.name))
                others[active.name] = others.get(active.name, np.zeros(6)) + acts
        if bodies is not None:
            bodies.apply(others)
        self._told_of_bodies.tell(now, others)
        self._told.tell(now, total)
        return total

    def _at(self, active: ActiveWrench, tick: int, quat: np.ndarray) -> np.ndarray:
        """Force and torque (6,) of a wrench at a tick."""
        wrench = active.wrench
        force, torque = np.asarray(wrench.force), np.asarray(wrench.torque)
        if wrench.in_body:
            force, torque = body_to_world(quat, np.stack((force, torque)))
        total = np.concatenate((force, torque))
        if np.any(wrench.point):
            total[3:] += np.cross(body_to_world(quat, np.asarray(wrench.point)), force)
        if wrench.ramp_down:
            total *= min(1.0, (active.end - tick) / self._freq / wrench.ramp_down)
        return total


def _is_there(name: str, now: Snapshot, bodies: MovingBodies | None) -> bool:
    return name in now.names or (bodies is not None and bodies.has(name))
