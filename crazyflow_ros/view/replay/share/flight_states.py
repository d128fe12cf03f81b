"""Where the drones of a recorded flight are at any time, between its states."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.ros.messages import NS
from crazyflow_ros.view.replay.recorded_samples import RecordedTrack

_GAP = 0.3  # s between two states, or a few of them: in a longer one, the drone was not there
_JUMP = 1.0  # m between two states, above which the drone was reset and did not fly


def poses_at(track: RecordedTrack, times_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (K, 3) [m] and attitudes xyzw (K, 4) at times (K,) [ns].

    They are NaN where the drone is not there.
    """
    positions, attitudes = np.full((len(times_ns), 3), np.nan), np.full((len(times_ns), 4), np.nan)
    known, count = track.times_ns, len(track.times_ns)
    if count == 0:
        return positions, attitudes
    steps = np.diff(known) / NS
    gap = max(_GAP, 4 * float(np.median(steps))) if count > 1 else _GAP
    now = np.clip(np.searchsorted(known, times_ns, "right") - 1, 0, count - 1)
    after = np.minimum(now + 1, count - 1)
    span = (known[after] - known[now]) / NS
    flew = np.linalg.norm(track.pos[after] - track.pos[now], axis=1) < _JUMP
    since = (times_ns - known[now]) / NS
    share = np.where((span > 0) & (span <= gap) & flew, since / np.maximum(span, 1e-9), 0.0)
    share = np.clip(share, 0.0, 1.0)[:, None]
    is_there = np.abs(since) <= gap
    positions[is_there] = ((1 - share) * track.pos[now] + share * track.pos[after])[is_there]
    first, second = track.quat[now], track.quat[after]
    second = second * np.where((first * second).sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    mixed = (1 - share) * first + share * second
    mixed /= np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-9)
    attitudes[is_there] = mixed[is_there]
    return positions, attitudes
