"""Poses of coordinate frames over time, and the transform between any two of them. No ROS."""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from crazyflow_ros.checks.limits import shown, suggestion
from crazyflow_ros.scene.frames import body_to_world, multiply, world_to_body

KEPT = 10.0
"""s; default time for which poses are kept."""
_MOST_KEPT = 100_000  # poses of a frame, whatever their times
_JUMP_NS = 1_000_000_000
"""A pose older than the latest by more than this means that time has jumped back."""
_DEPTH = 1000  # frames between a frame and the root of its tree


class TransformError(ValueError):
    """There is no transform; the message has the reason."""


class UnknownFrame(TransformError):
    """A frame is unknown."""


class Unconnected(TransformError):
    """No frame connects two frames."""


class OutOfTime(TransformError):
    """No pose at this time is known, or not any more."""


class Transform(NamedTuple):
    """The pose of a frame, the source, in another one, the target.

    A point p in the source is at `body_to_world(quat, p) + pos` in the target.
    """

    time_ns: int
    """Time at which it holds; 0 if it always does."""
    pos: np.ndarray
    """Position [m], shape (3,)."""
    quat: np.ndarray
    """Attitude xyzw, shape (4,)."""


@dataclass
class _Frame:
    """The poses of one frame in its parent, by time."""

    parent: str
    is_static: bool
    times: list[int] = field(default_factory=list)
    poses: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def add(self, time_ns: int, pose: tuple[np.ndarray, np.ndarray], kept_ns: int) -> None:
        if self.is_static or (self.times and time_ns < self.times[-1] - _JUMP_NS):
            self.times.clear()
            self.poses.clear()
        if time_ns not in self.poses:
            insort(self.times, time_ns)
        self.poses[time_ns] = pose
        oldest = self.times[-1] - kept_ns
        while self.times[0] < oldest or len(self.times) > _MOST_KEPT:
            del self.poses[self.times.pop(0)]

    def at(self, time_ns: int, name: str) -> tuple[np.ndarray, np.ndarray]:
        times = self.times
        if self.is_static:
            return self.poses[times[0]]
        if time_ns in self.poses:
            return self.poses[time_ns]
        after = bisect_left(times, time_ns)
        if after in (0, len(times)):
            known = f"from {times[0] * 1e-9:.3f} s to {times[-1] * 1e-9:.3f} s"
            wanted = f"the pose of {name} at {time_ns * 1e-9:.3f} s"
            raise OutOfTime(f"{wanted} is not known, but {known}")
        begin, end = times[after - 1], times[after]
        share = (time_ns - begin) / (end - begin)
        (pos, quat), (next_pos, next_quat) = self.poses[begin], self.poses[end]
        return pos + share * (next_pos - pos), _between(quat, next_quat, share)


class TransformTree:
    """All known frames. Thread-safe.

    Args:
        kept: How long poses are kept [s]; fixed ones are kept for ever.
    """

    def __init__(self, kept: float = KEPT) -> None:
        self._kept_ns = round(kept * 1e9)
        self._frames: dict[str, _Frame] = {}
        self._lock = threading.Lock()

    def add(
        self,
        parent: str,
        child: str,
        time_ns: int,
        pos: Sequence[float] | np.ndarray,
        quat: Sequence[float] | np.ndarray,
        *,
        is_static: bool = False,
    ) -> None:
        """Add the pose of a frame in its parent at a time.

        Args:
            parent: Name of the parent.
            child: Name of the frame.
            time_ns: The time.
            pos: Position [m], shape (3,).
            quat: Attitude xyzw, shape (4,); it is normalised.
            is_static: Whether it holds at all times.

        Raises:
            ValueError: A number is not finite, the quaternion is zero, a name is empty, or a frame
                would be its own parent.
        """
        place, attitude = np.array(pos, float), np.array(quat, float)
        norm = np.linalg.norm(attitude)
        if not (np.isfinite(place).all() and np.isfinite(norm) and norm > 0):
            raise ValueError(f"the pose of {shown(child)} in {shown(parent)} is no pose")
        if not parent or not child or parent == child:
            raise ValueError(f"{shown(child)!r} in {shown(parent)!r} is no pair of frames")
        with self._lock:
            frame = self._frames.get(child)
            if frame is None or (frame.parent, frame.is_static) != (parent, is_static):
                frame = self._frames[child] = _Frame(parent, is_static)
            frame.add(time_ns, (place, attitude / norm), self._kept_ns)

    def clear(self) -> None:
        """Forget all poses that are not fixed, as after a jump of time."""
        with self._lock:
            self._frames = {name: one for name, one in self._frames.items() if one.is_static}

    def names(self) -> list[str]:
        """Return the names of all frames."""
        with self._lock:
            return sorted({*self._frames, *(frame.parent for frame in self._frames.values())})

    def parents(self) -> dict[str, str]:
        """Return the parents of all frames that have one."""
        with self._lock:
            return {name: frame.parent for name, frame in sorted(self._frames.items())}

    def lookup(self, target: str, source: str, time_ns: int | None = None) -> Transform:
        """Return the pose of the frame `source` in the frame `target`.

        Args:
            target: Name of a frame.
            source: Name of a frame.
            time_ns: The time; None: the latest at which all poses between the two are known.

        Raises:
            UnknownFrame: A name is unknown.
            Unconnected: No frame is above both.
            OutOfTime: A pose at this time is not known.
        """
        with self._lock:
            up, down = self._path(target, source)
            if time_ns is None:
                between = [self._frames[name] for name in up + down]
                latest = [frame.times[-1] for frame in between if not frame.is_static]
                time_ns = min(latest, default=0)
            pos, quat = self._pose(down, time_ns)
            target_pos, target_quat = self._pose(up, time_ns)
        inverse = target_quat * np.array([-1.0, -1.0, -1.0, 1.0])
        return Transform(
            time_ns, world_to_body(target_quat, pos - target_pos), multiply(inverse, quat)
        )

    def _path(self, target: str, source: str) -> tuple[list[str], list[str]]:
        """Return the frames from target and source up to, but without, their first common one."""
        lines = []
        for name in (target, source):
            line = [name]
            while (frame := self._frames.get(line[-1])) is not None and len(line) < _DEPTH:
                line.append(frame.parent)
            if len(line) == 1 and all(name != frame.parent for frame in self._frames.values()):
                known = {*self._frames, *(frame.parent for frame in self._frames.values())}
                hint = f"; {near}" if (near := suggestion(name, known)) else ""
                raise UnknownFrame(f"there is no frame {shown(name)!r}{hint}")
            lines.append(line)
        first, second = lines
        common = next((name for name in first if name in second), None)
        if common is None:
            raise Unconnected(f"nothing connects {target}, below {first[-1]}, with {source}")
        return first[: first.index(common)], second[: second.index(common)]

    def _pose(self, line: list[str], time_ns: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the pose of the first frame of a line in the parent of its last one."""
        pos, quat = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])
        for name in line:
            in_parent, attitude = self._frames[name].at(time_ns, name)
            pos, quat = body_to_world(attitude, pos) + in_parent, multiply(attitude, quat)
        return pos, quat


def _between(first: np.ndarray, second: np.ndarray, share: float) -> np.ndarray:
    """Return the attitude xyzw on the shortest rotation between two, at a constant rate."""
    cosine = float(first @ second)
    if cosine < 0:  # the same attitude with the other sign is nearer
        second, cosine = -second, -cosine
    angle = np.arccos(min(cosine, 1.0))
    if angle < 1e-6:
        mixed = (1 - share) * first + share * second
        return mixed / np.linalg.norm(mixed)
    return (np.sin((1 - share) * angle) * first + np.sin(share * angle) * second) / np.sin(angle)
